"""Python in the page: the code of the library, its data, and the button of the pages that run.

The archive is code alone; `tutorial_lib.records` fetches a file of data when a chapter reads it.
The button stands in the page as built, so that nothing moves; `run.js` answers it.
"""

import ast
import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

from tools.chapters import FOLDER, pages
from tutorial_lib.records import DATA, FOLDERS, MANIFEST, page_of_room

LIBRARY = DATA.parent
ROOMS = LIBRARY / "practice"
ELSEWHERE = {page.name for page in pages() if not page.runs_in_browser}
LEFT_OUT = (  # folders that no page that runs reads
    "pytorch",
    "probe",
    "models/real",
    *(f"practice/{room.name}" for room in ROOMS.iterdir() if page_of_room(room.name) in ELSEWHERE),
    *(f"data/{folder}" for folder in FOLDERS),
)
BANKS = {  # of the rooms that the archive holds; they are fetched as data is
    f"banks/{page_of_room(path.parent.name)}.json": path
    for path in sorted(ROOMS.glob("*/bank.json"))
    if page_of_room(path.parent.name) not in ELSEWHERE
}
PYTHON_FORM = 'class="tl tl-python"'
STATUS = '<p role="status">'
BEFORE = '<section id="goal">'
BAR = """\
<div class="tl-run" data-library="{library}">
<button type="button" title="{notice}">Run here</button>
<button type="button" hidden>Stop</button>
<progress hidden aria-label="Files of Python that have arrived"></progress>
<p role="status"></p>
</div>
"""
NOTICE = (
    "Python runs in this page alone. It is a download of more than 10 MB, from cdn.jsdelivr.net "
    "unless this site keeps a copy."
)


def pack_library(target: Path) -> Path:
    """Pack the library's code, all files in one stream, without a network; return the file.

    A wheel packs each file alone, which here makes it nearly twice as large. The same sources give
    the same bytes, and so the same name, which holds the beginning of their sha256. Docstrings, a
    seventh of it all, stay behind, as with `python -OO`.

    Parameters
    ----------
    target : folder
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:bz2") as archive:
        for path in sorted(LIBRARY.rglob("*")):
            name = path.relative_to(LIBRARY).as_posix()
            if path.is_file() and "__pycache__" not in path.parts and not is_left_out(name):
                content = packed_bytes(path)
                member = tarfile.TarInfo(f"tutorial_lib/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    file = target / f"tutorial_lib-{digest[:8]}.tar.bz2"
    file.write_bytes(packed.getvalue())
    return file


def packed_bytes(path: Path) -> bytes:
    """The bytes of a file as the archive has them: its list of data names the banks too."""
    content = path.read_bytes()
    if path == MANIFEST:
        digests = {name: hashlib.sha256(p.read_bytes()).hexdigest() for name, p in BANKS.items()}
        return json.dumps(json.loads(content) | digests).encode()
    return without_docstrings(content) if path.suffix == ".py" else content


def without_docstrings(source: bytes) -> bytes:
    """The source of a module without docstrings; each line keeps its number for tracebacks."""
    lines, documented = source.split(b"\n"), (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            indent = lines[first][: node.body[0].col_offset]
            lines[first:last] = [indent + b'""', *[b""] * (last - first - 1)]
    return b"\n".join(lines)


def is_left_out(name) -> bool:
    """Whether the archive does without a file of the library."""
    return name.endswith("/bank.json") or name.startswith(
        tuple(f"{folder}/" for folder in LEFT_OUT)
    )


def place_library(app):
    """Pack the library into the site, and copy the data that the archive leaves out."""
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    for old in static.glob("tutorial_lib-*"):
        old.unlink()
    app.library = pack_library(static)
    shutil.rmtree(static / "data", ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(DATA / folder, static / "data" / folder)
    (static / "data" / "banks").mkdir()
    for name, path in BANKS.items():
        shutil.copy(path, static / "data" / name)


def add_button(app, pagename, templatename, context, doctree):
    """Place the button above the goal of a page that can run; tell forms the library.

    The status of a form says what a first press downloads.
    """
    if PYTHON_FORM in context.get("body", ""):
        app.add_js_file("forms.js", loading_method="defer")
        form = f'{PYTHON_FORM} data-library="{app.library.name}"'
        body = context["body"].replace(PYTHON_FORM, form)
        context["body"] = body.replace(STATUS, f'{STATUS[:-1]} aria-live="polite">{NOTICE}')
    if pagename not in {FOLDER + p.name for p in pages() if p.runs_in_browser}:
        return
    app.add_js_file("run.js", loading_method="defer")
    bar = BAR.format(library=app.library.name, notice=NOTICE)
    context["body"] = context["body"].replace(BEFORE, bar + BEFORE, 1)
