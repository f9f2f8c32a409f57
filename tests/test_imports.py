"""Who may import whom: the table of the house as data, read from the sources with `ast`."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"src/tutorial_lib": "", "coursework": "coursework.", "tools": "tools."}
FOLDERS |= {"book/_ext": "book.", "experiments": "experiments."}
OUTSIDE = {"coursework", "tools", "book", "experiments"}


class Row(NamedTuple):
    """What a module, or each module of a package, may import besides its own package and Python's.

    Parameters
    ----------
    ours : rows of this table
    others : packages of others
    inside : rows and packages that only a function may import, when it is called
    apart : the modules of the package know nothing of each other
    """

    ours: tuple
    others: tuple = ("numpy",)
    inside: tuple = ()
    apart: bool = False


CONTRACT = ("errors", "contract", "describe", "records")
STEPS = ("text", "embedding", "projection", "attention", "heads")
LAYER = (*CONTRACT, *STEPS, "multihead", "example")
FAST = (*LAYER, "gradients", "tiled", "onepass", "counting")
MODELS = (*FAST, "variants", "models")
LIBRARY = (
    *MODELS,
    "probe",
    "models_card",
    "practice",
    "checks",
    "figures",
    "elements",
    "pytorch",
    "__init__",
)
TORCH = ("numpy", "torch")
BUILD = ("docutils", "sphinx", "myst_nb", "fontTools", "math_core", "tinycss2")
# The worker runs where nothing of ours is installed: its parts lie beside it.
WORKER = ("IPython", "worker_cells", "worker_shell", "worker_silence")
NOTEBOOKS, PRINTED = (
    ("nbformat", "nbclient", "jupyter_client", "ipykernel"),
    ("playwright", "pypdf"),
)
TABLE = {
    **dict.fromkeys(CONTRACT, Row(())),
    "contract": Row(("errors",)),
    "records": Row((), inside=("js", "pyodide")),  # in a browser alone
    **dict.fromkeys(STEPS, Row(CONTRACT)),
    "multihead": Row((*CONTRACT, *STEPS)),
    "example": Row((*CONTRACT, *STEPS, "multihead")),
    **dict.fromkeys(FAST[len(LAYER) :], Row(LAYER)),
    "variants": Row(FAST, apart=True),
    "models": Row((*FAST, "variants")),
    "probe": Row((), inside=("torch", "transformers", "jax")),
    "models_card": Row((*FAST, "variants"), inside=("figures",)),
    "practice": Row(MODELS, inside=("pytorch", "torch")),
    "checks": Row(("practice",), ()),
    "hunt": Row(("practice", "checks", "records")),
    "mine": Row((*FAST, "variants", "practice")),
    "figures": Row(CONTRACT, ("numpy", "matplotlib")),
    "elements": Row(CONTRACT),
    "elements.exhibits": Row((*MODELS, "elements")),
    "pytorch": Row((*FAST, "variants"), (*TORCH, "triton")),
    "__init__": Row(FAST),
    "coursework": Row((*LIBRARY, "tools"), ("nbformat", *WORKER, *TORCH), ("matplotlib",)),
    "tools": Row(
        ("book", "records"),
        ("jupyter_book", "numpy", "yaml", "pytest", "threadpoolctl", *NOTEBOOKS, *PRINTED),
    ),
    "book": Row(
        (*MODELS, "hunt", "models_card", "figures", "elements", "elements.exhibits", "tools"),
        ("bs4", "numpy", "yaml", *BUILD, *PRINTED),
    ),
    "experiments": Row((*LIBRARY, "coursework"), ("threadpoolctl", *TORCH)),
}
LEFT_OUT = ("torch", "matplotlib")


def module_of(path):
    """Return the name of a file's module, such as "heads", "elements.quiz" or "tools.chapters"."""
    for folder, prefix in FOLDERS.items():
        if path.is_relative_to(ROOT / folder):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            return prefix + ".".join(part for part in parts if part != "__init__")
    raise ValueError(f"{path} lies in none of {list(FOLDERS)}")


def longest(name, known):
    """Return the longest beginning of a dotted name that is known; None where none is."""
    parts = name.split(".")
    return next((n for k in range(len(parts), 0, -1) if (n := ".".join(parts[:k])) in known), None)


def row_of(module):
    """Return the row of a module of ours: its own, its package's, or that of the root."""
    return longest(module, TABLE) or "__init__"


def imports(source):
    """Return (name, whether it stands inside a function) for each import of a source."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            start = "a relative import" if node.level else node.module
            found += [(f"{start}.{alias.name}", id(node) in inside) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, id(node) in inside) for alias in node.names]
    return found


def allows(module, name, inside):
    """Whether a module may import a name, at its top or inside a function."""
    row, package = row_of(module), name.partition(".")[0]
    ours, others, within, apart = TABLE[row]
    if package == "tutorial_lib":
        name = name.removeprefix("tutorial_lib").removeprefix(".")
        package = row_of(name)
        if package == row:
            return not apart or name.split(".")[1:2] == module.split(".")[1:2]
    elif package not in OUTSIDE:
        ours = {*others, *sys.stdlib_module_names}
    return package in {*ours, row} or (inside and package in within)


def faults(module, source):
    """List what a module imports and must not."""
    return [name for name, inside in imports(source) if not allows(module, name, inside)]


FILES = {p: module_of(p) for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))}


def arrows(sources):
    """Return, for each module, the others among them that it imports, inside functions too."""
    found = {}
    for module, source in sources.items():
        names = [name.removeprefix("tutorial_lib.") for name, _ in imports(source)]
        names = [name.replace("book._ext.", "book.") for name in names]
        found[module] = {longest(name, sources) for name in names} - {None, module}
    return found


@pytest.mark.parametrize("path", FILES, ids=FILES.get)
def test_file_imports_only_what_its_row_allows(path):
    assert faults(FILES[path], path.read_text(encoding="utf-8")) == []


def test_no_import_goes_in_a_circle():
    sources = {module: path.read_text(encoding="utf-8") for path, module in FILES.items()}
    TopologicalSorter(arrows(sources)).prepare()


def test_every_row_has_a_file():
    assert {row_of(module) for module in FILES.values()} == set(TABLE)


@pytest.mark.parametrize(
    "package", ["tutorial_lib", *(f"tutorial_lib.{name}" for name in (*MODELS, "checks"))]
)
def test_no_torch_and_no_matplotlib_come_with_the_library(package):
    ask = f"import sys, {package}; print([m for m in {LEFT_OUT} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "[]", run.stdout + run.stderr


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("attention", "import tutorial_lib.heads", ["tutorial_lib.heads"]),
        ("attention", "from .errors import ShapeError", ["a relative import.ShapeError"]),
        ("attention", "def f():\n    import torch", ["torch"]),
        ("practice.ch09_pytorch.checks", "from tutorial_lib.pytorch import mha", 1),
        ("heads", "from tools.chapters import pages", ["tools.chapters.pages"]),
        ("book.folds", "from tutorial_lib.pytorch import mha", ["tutorial_lib.pytorch.mha"]),
        ("practice.ch09_pytorch.checks", "def f():\n    from tutorial_lib.pytorch import mha", []),
        ("elements.exhibits.map.element", "from tutorial_lib import multihead", []),
    ],
)
def test_a_forbidden_import_is_noticed(module, source, expected):
    found = faults(module, source)
    assert found == expected or len(found) == expected


WITHOUT_MATPLOTLIB = """import sys, types
def find_spec(name, *_):
    if name == "matplotlib":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))
from tutorial_lib import figures"""


def test_figures_without_matplotlib_say_how_to_install_it():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True)
    assert "\nModuleNotFoundError: No module named 'matplotlib', with which" in run.stderr
    assert run.stderr.endswith(f"Install it: {sys.executable} -m pip install matplotlib\n")
