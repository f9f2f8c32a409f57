"""A chapter's file alone, in Colab's versions, installs the library and prints what is stored.

Of PyTorch it has the book's version: Colab's own would bring gigabytes of CUDA. `make test` asks
this of the SAMPLE, `make colab-check` of all.

The environment is kept in `.venv-colab` at the root and made again when its recipe changes.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import nbformat
import pytest
from chapters import NAMES, NOTEBOOKS, ROOT, code_cells, listed, printed, read
from planted import cell_of, good
from runnable import build_wheel

pytestmark = pytest.mark.setup

ENVIRONMENT = ROOT / ".venv-colab"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
COLAB = ("numpy==2.1.3", "matplotlib==3.10.0")  # Colab's runtime, August 2026
LIBRARY = "tutorial-lib"
RUNNER = ("ipykernel", "nbclient", "nbformat")
PICTURE = re.compile(r'<svg\b.*?</svg>| style="[^"]*"', re.DOTALL)  # and the room it takes
SAMPLE = ("03_attention_weights", "08_gradients", "10_masks")  # figures, training, PyTorch
OUTER = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "MPLCONFIGDIR": str(ENVIRONMENT / "matplotlib")}


def run(*command, folder=ROOT, **settings):
    """Run a command; stop the test with its output when it fails."""
    outer = {name: value for name, value in os.environ.items() if name not in OUTER}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=outer | QUIET | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


def recipe():
    """Return what goes into the environment: requirements, and the lock as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    direct = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    torch = [line for line in direct if line.startswith("torch==")]  # and no Triton
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return {
        "python": sys.version.split()[0],
        "packages": [*COLAB, *torch, *RUNNER, *project["build-system"]["requires"]],
        "constraints": [line for line in lock if not line.startswith(("numpy=", "matplotlib="))],
    }


def environment():
    """Make the environment, or keep it while its recipe and its packages are the same."""
    key = ENVIRONMENT / "recipe.json"
    if PYTHON.exists() and key.is_file() and key.read_text(encoding="utf-8") == made():
        return
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    venv.create(ENVIRONMENT, with_pip=True)
    (ENVIRONMENT / ".gitignore").write_text("*\n", encoding="utf-8")
    constraints = ENVIRONMENT / "constraints.txt"
    constraints.write_text("\n".join(recipe()["constraints"]), encoding="utf-8")
    install = ["-m", "pip", "install", "--quiet", "--no-compile", "--constraint", constraints]
    run(PYTHON, *install, *recipe()["packages"])
    run(PYTHON, "-c", "import matplotlib.font_manager")  # its cache: made once, and not in a cell
    key.write_text(made(), encoding="utf-8")


def made():
    """Return the recipe and what is installed, as text."""
    others = {name: version for name, version in versions().items() if name != LIBRARY}
    return json.dumps({"recipe": recipe(), "installed": others}, indent=1, sort_keys=True)


def versions():
    """Return the version of every installed package."""
    ask = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name, d.version)"
    return dict(line.split() for line in run(PYTHON, "-c", ask).splitlines())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The library's wheel; the environment has all that it needs, and not the library."""
    environment()
    if LIBRARY in versions():
        run(PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", LIBRARY)
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def differences(stored, fresh):
    """List the cells that print, or show besides pictures, something else than is stored."""
    found = []
    for before, after in zip(code_cells(stored), code_cells(fresh), strict=True):
        if any(output.get("name") == "stderr" for output in after.outputs):
            found.append(f"{before.id} wrote to stderr: {printed(after)}")
        elif printed(before) != printed(after):
            found.append(f"{before.id} printed:\n{printed(after)}\nstored:\n{printed(before)}")
        elif _pages(before) != _pages(after):
            found.append(f"{before.id} shows another page, apart from its picture")
    return found


def _pages(cell):
    data = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
    return [PICTURE.sub("", page) for page in data]


@pytest.mark.parametrize(
    "name",
    [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.colab) for n in NAMES],
)
def test_notebook_alone_prints_what_is_stored(wheel, tmp_path, name):
    alone = Path(shutil.copy(NOTEBOOKS / f"{name}.ipynb", tmp_path))
    before = versions()
    tool = ROOT / "tools" / "run_notebooks.py"
    run(PYTHON, tool, alone, folder=tmp_path, TUTORIAL_LIB_SOURCE=str(wheel))
    found = differences(read(NOTEBOOKS / alone.name), read(alone))
    assert not found, listed(found)
    assert versions() == before | {LIBRARY: wheel.name.split("-")[1]}
    assert f"numpy=={before['numpy']}" in COLAB


@pytest.mark.parametrize(
    ("cell", "old", "new", "noticed"),
    [
        ("text", "0.571", "0.572", True),
        ("figure", "share 0.5714", "share 0.5715", True),
        ("figure", 'r="0.5714"', 'r="0.5715"', False),
        ("figure", "<svg", "<b>other</b><svg", True),
        ("text", "stdout", "stderr", True),
    ],
)
def test_only_the_bytes_of_a_picture_may_differ(cell, old, new, noticed):
    fresh = copy.deepcopy(good())
    outputs = json.dumps(cell_of(fresh, cell).outputs)
    changed = json.loads(outputs.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))
    cell_of(fresh, cell).outputs = nbformat.from_dict(changed)
    assert changed != json.loads(outputs)
    assert [fault.split()[0] for fault in differences(good(), fresh)] == [cell] * noticed
