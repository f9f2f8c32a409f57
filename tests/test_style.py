"""Short functions, few parameters, a docstring on every public name, records that stay."""

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tools", "experiments", "book/_ext", "coursework/grader")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FILES += sorted((ROOT / "coursework").glob("*.py"))
MOST_LINES, MEDIAN_LINES = 25, 8
MOST_PARAMETERS, MOST_OF_A_CONSTRUCTOR = 5, 7
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def lines(function):
    """Count the lines of a function without its docstring."""
    docstring = ast.get_docstring(function, clean=False)
    return function.end_lineno - function.lineno + 1 - len((docstring or "").splitlines())


def parameters(function):
    """Return the names of the parameters but self and cls."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return [arg.arg for arg in every if arg.arg not in ("self", "cls")]


def constructors(tree, path):
    """Return the functions that make one whole record of what they take.

    These are __init__ of any class, and in FOLDER/element.py the function that is named as its
    folder: it puts that element together.
    """
    found = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS) and n.name == "__init__"]
    if path.name == "element.py":
        found += [n for n in tree.body if isinstance(n, FUNCTIONS) and n.name == path.parent.name]
    return found


def faults(source, path=Path("module.py")):
    """List the functions that are too long or take too much, a sentence each."""
    found, tree = [], ast.parse(source)
    making = constructors(tree, path)
    for node in ast.walk(tree):
        if not isinstance(node, FUNCTIONS):
            continue
        most = MOST_OF_A_CONSTRUCTOR if node in making else MOST_PARAMETERS
        if lines(node) > MOST_LINES:
            found.append(f"{node.name} has {lines(node)} lines, more than {MOST_LINES}")
        if len(parameters(node)) > most:
            found.append(f"{node.name} takes {len(parameters(node))} parameters, more than {most}")
    return found


def undocumented(source):
    """List the public names of a module, and the module, that have no docstring.

    Checks get theirs from the function that they ask for, see `practice.account.read_room`.
    """
    tree = ast.parse(source)
    missing = [] if ast.get_docstring(tree) else ["the module"]
    nodes = [node for node in tree.body if isinstance(node, FUNCTIONS | ast.ClassDef)]
    for node in nodes:
        is_check = "cases_of(" in " ".join(map(ast.unparse, node.decorator_list))
        public = not node.name.startswith("_") and not is_check
        missing += [] if not public or ast.get_docstring(node) else [node.name]
        if public and isinstance(node, ast.ClassDef):
            methods = [method for method in node.body if isinstance(method, FUNCTIONS)]
            named = [m for m in methods if not m.name.startswith("_") and not ast.get_docstring(m)]
            missing += [f"{node.name}.{method.name}" for method in named]
    return missing


def unannotated(source):
    """List the arguments of checked functions that have no annotation."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, FUNCTIONS) and "checked" in map(ast.unparse, node.decorator_list):
            every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            found += [f"{node.name}({arg.arg})" for arg in every if arg.annotation is None]
    return found


def changeable(source):
    """List the dataclasses whose fields can be set after they were made."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    kinds = {node.name: list(map(ast.unparse, node.decorator_list)) for node in classes}
    records = {name: str(kind) for name, kind in kinds.items() if "dataclass" in str(kind)}
    return [name for name, kind in records.items() if "frozen=True" not in kind]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_short_public_names_documented_and_records_frozen(path):
    source = path.read_text(encoding="utf-8")
    found = [*faults(source, path), *(f"{name} has no docstring" for name in undocumented(source))]
    found += [f"{name} has no annotation, so it is not checked" for name in unannotated(source)]
    found += [
        f"{name} can be changed; make it a dataclass(frozen=True)" for name in changeable(source)
    ]
    assert not found, "\n".join(found)


def test_the_median_function_of_the_library_has_at_most_eight_lines():
    library = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    functions = [
        n for text in library for n in ast.walk(ast.parse(text)) if isinstance(n, FUNCTIONS)
    ]
    assert statistics.median(lines(function) for function in functions) <= MEDIAN_LINES


def test_a_long_function_and_a_missing_docstring_are_noticed():
    assert faults("def f():\n" + "    x = 1\n" * 25) == ["f has 26 lines, more than 25"]
    assert faults('def f():\n    """a\n' + "\n" * 40 + '    """\n' + "    x = 1\n" * 23) == []
    many = "def f(a, b, c, d, *, e, f):\n    pass"
    assert faults(many) == ["f takes 6 parameters, more than 5"]
    source = "def f():\n  pass\n\nclass A:\n  def g(self):\n    pass\n  def _h(self):\n    pass"
    assert undocumented(source) == ["the module", "f", "A", "A.g"]
    assert unannotated("@checked\ndef f(a, *, b: int, c=1):\n  pass") == ["f(a)", "f(c)"]
    assert changeable("@dataclass(frozen=True)\nclass A:\n  x: int") == []
    assert changeable("@dataclass\nclass A:\n  x: int") == ["A"]
