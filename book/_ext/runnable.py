"""Python in the page: the wheel of the library, its data, and the button of the pages that run.

The wheel is code alone; `tutorial_lib.records` fetches a file of data when a chapter reads it. The
button stands in the page as built, so that nothing moves; `run.js` answers it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.errors import ExtensionError

from book._ext.site_shell import is_site
from tools.chapters import FOLDER, ROOT, pages
from tutorial_lib.records import DATA, FOLDERS, page_of

ROOMS = DATA.parent / "practice"
ELSEWHERE = {page.name for page in pages() if not page.runs_in_browser}
LEFT_OUT = (  # of the wheel of the page
    "pytorch",
    *(f"practice/{room.name}" for room in ROOMS.iterdir() if page_of(room.name) in ELSEWHERE),
    *(f"data/{folder}" for folder in FOLDERS),
)
# Of every file in a wheel, so that the same sources give the same bytes: the first that zip knows.
EPOCH = "315532800"
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"

BEFORE = '<section id="goal">'
BAR = """\
<div class="tl-run" data-wheel="{wheel}">
<button type="button">Run in the browser</button>
<button type="button" hidden>Stop</button>
<progress hidden aria-label="Files of Python that have arrived"></progress>
<p role="status">Python starts when you press and runs in this page alone. It is a download of more
than 10 MB, from cdn.jsdelivr.net unless this site keeps a copy.</p>
</div>
"""


def build_wheel(target: Path, left_out=()) -> Path:
    """Build the library's wheel from a copy of its sources, without a network; return the file.

    Parameters
    ----------
    target : folder
    left_out : folders of the library that the wheel does without

    Raises
    ------
    ExtensionError : the build failed, with what it printed
    """
    with tempfile.TemporaryDirectory() as folder:
        litter = shutil.ignore_patterns("*.egg-info", "__pycache__")
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=litter)
        for name in left_out:
            shutil.rmtree(Path(folder) / "src" / "tutorial_lib" / name)
        for path in (ROOT / "pyproject.toml", ROOT / "README.md", *ROOT.glob("LICENSE*")):
            shutil.copyfile(path, Path(folder) / path.name)
        command = [sys.executable, "-c", BUILD, str(target.resolve())]
        settings = os.environ | {"SOURCE_DATE_EPOCH": EPOCH}
        done = subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise ExtensionError(f"The wheel of the library was not built.\n{done.stdout}{done.stderr}")
    return next(target.glob("tutorial_lib-*.whl"))


def place_library(app):
    """Build the wheel into the site, and copy the data that it leaves out."""
    if not is_site(app):
        return
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    for old in static.glob("tutorial_lib-*.whl"):
        old.unlink()
    app.wheel = build_wheel(static, LEFT_OUT)
    shutil.rmtree(static / "data", ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(DATA / folder, static / "data" / folder)


def add_button(app, pagename, templatename, context, doctree):
    """Place the button above the goal of a page that can run."""
    if not is_site(app) or pagename not in {FOLDER + p.name for p in pages() if p.runs_in_browser}:
        return
    app.add_js_file("run.js", loading_method="defer")
    bar = BAR.format(wheel=app.wheel.name)
    context["body"] = context["body"].replace(BEFORE, bar + BEFORE, 1)


def setup(app):
    """Connect the steps above."""
    app.connect("builder-inited", place_library)
    app.connect("html-page-context", add_button)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
