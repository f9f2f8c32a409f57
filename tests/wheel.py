"""The wheel that `pip` makes of the library."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.chapters import ROOT

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def build_wheel(target):
    """Build it from a copy of the sources, without a network; return the file."""
    with tempfile.TemporaryDirectory() as folder:
        litter = shutil.ignore_patterns("*.egg-info", "__pycache__")
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=litter)
        for path in (ROOT / "pyproject.toml", ROOT / "README.md", *ROOT.glob("LICENSE*")):
            shutil.copyfile(path, Path(folder) / path.name)
        command = [sys.executable, "-c", BUILD, str(target.resolve())]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.glob("tutorial_lib-*.whl"))
