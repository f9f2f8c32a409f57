"""What the tests know of pages: the two kinds, chapters and reviews, and how a notebook is read."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from tools.chapters import ROOT, page, pages
from tools.release import release_of
from tutorial_lib import records

REPOSITORY = records.REPOSITORY
RELEASE = release_of(ROOT)
NAMES = [page.name for page in pages()]
FIRST_REVIEW, *_ = (page.name for page in pages() if page.closes)
EDITS = """
add ask begin break change copy correct cut do draw exchange give leave let link make move name
number order print remove replace say show split take write
"""
QUESTIONS_A_CHAPTER = 2  # of a review
QUESTIONS_BACK = 4  # of a review, to earlier parts


@dataclass(frozen=True)
class Kind:
    """What a page of one kind has.

    Parameters
    ----------
    headings : those of level 2, in order
    tasks : the one below which readers write code
    predictions, puzzles, questions : how many its bank holds and its notebook shows; None: as
        many as the bank holds
    """

    headings: tuple
    tasks: str
    predictions: int | None
    puzzles: int
    questions: int


CHAPTER = Kind(
    (
        *("Goal", "Idea", "Build", "Check", "Look"),
        *("Myth and measurement", "Exercises", "Quiz", "Recap"),
    ),
    tasks="Exercises",
    predictions=3,
    puzzles=1,
    questions=5,
)


def kind_of(name):
    """Return the kind of a page, such as "03_attention_weights" or "review_part_1"."""
    closed = page(name).closes
    if not closed:
        return CHAPTER
    back = QUESTIONS_BACK if NAMES.index(closed[0]) else 0
    return _review(QUESTIONS_A_CHAPTER * len(closed) + back)


def _review(questions):
    headings = ("Goal", "What you can do now", "Quiz", "The task", "Recap")
    return Kind(headings, tasks="The task", predictions=None, puzzles=0, questions=questions)


def read(path):
    """Read a notebook as it is on disk: nothing is added, upgraded or repaired."""
    return nbformat.v4.reads(Path(path).read_text(encoding="utf-8"))


def written(name):
    """Return the notebook of a page."""
    return read(page(name).path)


def chapter_headings(number):
    """Return the headings of a chapter, such as "10"."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    return re.findall(r"^#+ (.+)$", "\n".join(texts), re.MULTILINE)


def code_cells(notebook):
    """Return the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    """Return a cell's tags, none when it has none."""
    return cell.metadata.get("tags", [])


def printed(cell):
    """Return what a cell printed or showed as text, in order."""
    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append(output.text)
        elif "data" in output:
            texts.append(output.data.get("text/plain", ""))
    return "\n".join(texts)


def advises(fault):
    """Return whether a fault says what to do: at its beginning, or behind a colon."""
    return bool(set(re.findall(r"(?:^|: )`?(\w+)", fault)) & set(EDITS.split()))


def listed(faults, name=None):
    """Return one fault a line, for the message of a failed test; of a page, with what to type."""
    command = [f"After the edit: make chapter NB={name}"] if name else []
    return "\n  ".join(["", *faults, *command])
