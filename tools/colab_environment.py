"""Make `.venv-colab`: the versions of Colab's runtime, in which chapters are tried alone.

    python -m tools.colab_environment

Of PyTorch it has the book's version: Colab's own would bring gigabytes of CUDA. The environment is
kept, and made again when its recipe changes.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from tools.environment import locked_versions

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv-colab"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
COLAB = ("numpy==2.1.3", "matplotlib==3.10.0")  # Colab's runtime, August 2026
LIBRARY = "tutorial-lib"
RUNNER = ("ipykernel", "nbclient", "nbformat")
OUTER = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "MPLCONFIGDIR": str(ENVIRONMENT / "matplotlib")}


class CommandFailed(Exception):
    """A command of the environment failed; the message is what it printed."""


def run(*command, folder=ROOT, **settings):
    """Run a command in a surrounding of its own; return what it prints.

    Raises
    ------
    CommandFailed : it ends with an error
    """
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
        raise CommandFailed(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def recipe():
    """Return what goes into the environment: requirements, and the lock as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    direct = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    torch = [line for line in direct if line.startswith("torch==")]  # and no Triton
    lock = locked_versions()  # without hashes: Colab's own versions have none here
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
    print("==> Making .venv-colab, with the versions of Colab", flush=True)
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


if __name__ == "__main__":
    environment()
