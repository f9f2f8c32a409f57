"""A test of grouped attention under a mask: which of its implementations the test accepts."""

from pathlib import Path

from coursework.grader.assignment import Assignment, Case, Implementation, Task, student_code_cells
from tutorial_lib.practice.mistake import read_mistakes, replaced

HERE = Path(__file__).parent
WRITTEN = read_mistakes(HERE / "implementations.txt")  # as edits of the one that is handed out
[RIGHT] = [cell for cell in student_code_cells(HERE.name) if cell.startswith("def reference(")]


def implementation(name, edits=()):
    """Return the right function, with edits."""
    return Implementation(name, replaced(RIGHT, [(e.old, e.new) for e in edits], "reference"))


def cases(rng):
    """Each mistake beside all right styles, in any order: a test earns nothing that rejects one."""
    right = [implementation(style.says, style.edits) for style in WRITTEN["right styles"]]
    right.append(implementation("as it was handed out"))
    tried = [(m.says, [*right, implementation(m.name, m.edits)]) for m in WRITTEN["mistakes"]]
    return [Case(label, tuple(each[i] for i in rng.permutation(4))) for label, each in tried]


ASSIGNMENT = Assignment((Task("test_attention", cases, is_test=True),))
