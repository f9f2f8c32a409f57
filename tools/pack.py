"""Pack what a release offers into `dist/`: the library as a wheel and as sources, and the site.

    python -m tools.pack

The library is that of the last commit, and nothing may be changed beside it. The site is the one
that is built, with the licences, as a zip file; unpacked anywhere, its `index.html` opens.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release import ROOT, git, version_of

SITE = ROOT / "_build" / "html"
# Both builds change sys.argv.
BUILD = (
    "import sys; from setuptools import build_meta as build; target = sys.argv[1]; "
    "build.build_sdist(target); build.build_wheel(target)"
)


def pack(target):
    """Write the three files into a folder, which is made anew, and return them.

    Raises
    ------
    ValueError : no site; no commit, or changes beside it; a library that cannot be built
    """
    if not (SITE / "index.html").is_file():
        raise ValueError(f"{SITE} holds no site: run `make book` first.")
    if changed := git(ROOT, "status", "--porcelain", "--untracked-files=no"):
        raise ValueError(f"What is packed has to be one commit: commit these first.\n{changed}")
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "sources.zip")
        if git(ROOT, "archive", "--format=zip", f"--output={sources}", "HEAD") is None:
            raise ValueError(f"git finds no commit in {ROOT}: work in a clone, with git installed.")
        shutil.unpack_archive(sources, folder)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        command = [sys.executable, "-c", BUILD, str(target.resolve())]
        built = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if built.returncode:
        raise ValueError(f"the library cannot be built: {built.stderr.decode(errors='replace')}")
    for licence in ROOT.glob("LICENSE*"):
        shutil.copy(licence, SITE)
    name = target / f"attention-head-by-head-{version_of(ROOT)}"
    shutil.make_archive(str(name), "zip", SITE.parent, SITE.name)
    return sorted(target.iterdir())


if __name__ == "__main__":
    try:
        for path in pack(ROOT / "dist"):
            print(f"packed: {path.relative_to(ROOT)}, {path.stat().st_size / 1e6:.1f} MB")
    except ValueError as error:
        sys.exit(str(error))
