"""Who may import whom: the table of the house as data, read from the sources with `ast`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[1] / "src" / "tutorial_lib"
STEPS = {"text", "embedding", "projection", "attention", "heads"}
WHOLE_LAYER = {"multihead", "gradients", "tiled", "onepass", "counting"}
NUMPY_MODULES = {"errors", "describe"} | STEPS | WHOLE_LAYER
MAY_IMPORT = {
    "errors": (set(), {"numpy"}),
    "describe": (set(), {"numpy"}),
    "records": (set(), {"numpy", "js", "pyodide"}),  # the last two in a browser alone
    **dict.fromkeys(STEPS, ({"errors"}, {"numpy"})),
    **dict.fromkeys(
        WHOLE_LAYER,
        ({"errors", "projection", "attention", "heads", "multihead"}, {"numpy"}),
    ),
    **dict.fromkeys(["example", "variants", "models"], (NUMPY_MODULES, {"numpy"})),
    "practice": (
        NUMPY_MODULES | {"example", "models", "pytorch"},
        {"numpy", "torch"},  # inside its functions: see the test of what is loaded
    ),
    "checks": ({"practice"}, set()),
    "figures": ({"errors", "describe"}, {"numpy", "matplotlib"}),
    "elements": ({"errors", "describe", "records", "multihead", "example"}, set()),
    "pytorch": ({"errors", "projection", "multihead", "onepass"}, {"numpy", "torch", "triton"}),
    "__init__": (NUMPY_MODULES | {"example"}, {"numpy"}),
}
LEFT_OUT = ("torch", "matplotlib")


def module_of(path, root=LIBRARY):
    """Return the row of the table that a file belongs to: its module, or its package."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def imports(source):
    """Return (modules of ours, foreign packages) that a source file imports."""
    ours, foreign = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            ours.add("a relative import")
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            ours |= {name.split(".")[1] for name in names if name.startswith("tutorial_lib.")}
            foreign.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            ours |= {
                (name + ".").split(".")[1] for name in names if name.startswith("tutorial_lib")
            }
            foreign |= {name.partition(".")[0] for name in names}
    return ours, foreign - set(sys.stdlib_module_names) - {"tutorial_lib"}


def faults(module, source):
    """List what a file of a module imports and must not."""
    ours, foreign = imports(source)
    allowed, packages = MAY_IMPORT[module]
    wrong = [f"tutorial_lib.{name}" for name in ours - allowed - {module}]
    return sorted(wrong + list(foreign - packages))


FILES = sorted(LIBRARY.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_file_imports_only_what_its_row_allows(path):
    assert faults(module_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "package",
    [
        "tutorial_lib",
        *(f"tutorial_lib.{name}" for name in ("checks", "onepass", "counting", "variants")),
        *(f"tutorial_lib.models.{name}" for name in ("copying", "training")),
    ],
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
        ("errors", "from tutorial_lib.text import Vocabulary", ["tutorial_lib.text"]),
        ("attention", "from tutorial_lib import heads", ["tutorial_lib.heads"]),
        ("attention", "import tutorial_lib.heads", ["tutorial_lib.heads"]),
        ("attention", "import tutorial_lib", ["tutorial_lib."]),
        ("attention", "from .errors import ShapeError", ["tutorial_lib.a relative import"]),
        ("attention", "def f():\n    import torch", ["torch"]),
        ("attention", "from matplotlib import pyplot", ["matplotlib"]),
        ("heads", "from tutorial_lib.attention import softmax", ["tutorial_lib.attention"]),
        ("multihead", "from tutorial_lib import softmax", ["tutorial_lib.softmax"]),
        ("practice", "from tutorial_lib.checks import check_softmax", ["tutorial_lib.checks"]),
        ("elements", "import numpy as np", ["numpy"]),
        ("figures", "from tutorial_lib.elements import quiz", ["tutorial_lib.elements"]),
        ("__init__", "from tutorial_lib.figures import Figure", ["tutorial_lib.figures"]),
        ("figures", "import json\nfrom tutorial_lib.figures.ink import HEADS", []),
        ("multihead", "import math\nfrom tutorial_lib.heads import concat_heads", []),
    ],
)
def test_a_forbidden_import_is_noticed(module, source, expected):
    assert faults(module, source) == expected


def test_the_check_of_what_is_loaded_can_fail():
    ask = f"import sys, matplotlib; print([m for m in {LEFT_OUT} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['matplotlib']"
