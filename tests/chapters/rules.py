"""What every notebook must keep to, read from the file without running it.

nbval alone passes over cleared outputs, ignored cells and raster images. `violations` closes those
holes; `test_canaries.py` shows that the two together leave none of the known ones open.
"""

import ast
import re
import sys

import nbformat

from tests.chapters.pages import RELEASE, code_cells, printed, tags
from tools.release import setup_cell
from tools.run_notebooks import FOLDED

IN_BROWSER = {*sys.stdlib_module_names, "numpy", "matplotlib", "tutorial_lib"}
SETUP = setup_cell(RELEASE)
KNOWN_TAGS = {"hide-input", "keeper", "remove-input", "hide-output", "solution", "hide-cell"}
COMPARED_TYPES = {"text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml"}
CLOCKS = {"time", "timeit", "datetime"}
LARGEST_NOTEBOOK = 750_000  # bytes
STORE = "`make chapter` stores it as it should be"
PLAIN = "write plain Markdown, which Colab shows too"

NBVAL_COMMENT = re.compile(r"#[\s#]*((?:NBVAL|PYTEST_VALIDATE)_\w+)")
SWITCHES = ("MEASURE", "TRAIN")
REDRAWS = re.compile(r"\b(clear_output|display_id|update_display|get_ipython)\b")
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<)\]}])/[A-Za-z_][\w.-]*/[\w.-]+|\b[A-Z]:\\\w")
RASTER = re.compile(  # but for a mask, whose bytes an exhibit writes from numbers, everywhere alike
    r'(?<!mask-image:url\()data:image/(?!svg)[\w+]+|<image\b|<img\b(?! src="data:image/svg)'
)
FENCE = re.compile(r"^(```+|~~~+)(.*?)\n.*?^\1\s*$", re.DOTALL | re.MULTILINE)
MATHS = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
MYST = {
    "a role": re.compile(r"\{[a-z][\w:+.-]*\}`"),
    "a directive": re.compile(r"^\s*(?:```+|~~~+|:::+)\s*\{[\w:.-]+\}|^\s*:::", re.MULTILINE),
    "a comment": re.compile(r"^%", re.MULTILINE),
    "a target": re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE),
    "a substitution": re.compile(r"\{\{.*?\}\}"),
    "a block break": re.compile(r"^\+\+\+", re.MULTILINE),
    "a link without text": re.compile(r"(?<!!)\[\]\("),
}
PICTURE = re.compile(r"!\[|<(?:img|iframe|script|style|video|audio|object|embed|link)\b", re.I)
FORBIDDEN = re.compile(
    r"\b(simply|just|obviously|of course|powerful|crucial|comprehensive|unlock(?:s|ed|ing)?"
    r"|journeys?|div(?:e|es|ed|ing) into|delv(?:e|es|ed|ing))\b",
    re.IGNORECASE,
)


def in_browser(module):
    """Whether a page of the site has a module."""
    known = module.partition(".")[0] in IN_BROWSER
    return known and not module.startswith("tutorial_lib.pytorch")


def violations(notebook, *, may_import_torch=False):
    """List what a notebook does that it must not, a sentence each.

    Parameters
    ----------
    notebook : NotebookNode as it is on disk, see `pages.read`
    may_import_torch : whether it may import more than NumPy, Matplotlib and the library
    """
    found = [*_counts(notebook), *_ids(notebook), *_setup(notebook), *_weight(notebook)]
    for position, cell in enumerate(notebook.cells):
        where = f"cell {cell.get('id', position)}"
        rules = [*_words(cell.source), *_metadata(cell)]
        if cell.cell_type == "code":
            rules += [*_tags(cell), *_code(cell, may_import_torch), *_outputs(cell)]
        elif cell.cell_type == "markdown":
            rules += [*markdown_faults(cell.source)]
            attached = cell.get("attachments")
            rules += ["carries an attached image: draw it in a cell"] if attached else []
        else:
            rules += [f"is a {cell.cell_type} cell, neither run nor shown: make it another kind"]
        found += [f"{where}: {rule}" for rule in rules]
    return found


def _counts(notebook):
    cells = code_cells(notebook)
    wrong = [
        f"{cell.get('id')} has {cell.execution_count}, not {count}"
        for count, cell in enumerate(cells, start=1)
        if cell.execution_count != count
    ]
    if wrong:
        few = "; ".join(wrong[:3])
        yield f"execution counts: {few} ({len(wrong)} of {len(cells)} cells): {STORE}"
    if not cells:
        yield "has no code cell: begin with the setup cell of another chapter"


def _ids(notebook):
    ids = [cell.get("id") for cell in notebook.cells]
    if None in ids or len(set(ids)) < len(ids):
        yield f"every cell needs an id of its own: {STORE}"


def _setup(notebook):
    first = next(iter(code_cells(notebook)), None)
    if first is not None and (first.source != SETUP or tags(first) != ["hide-input"]):
        yield "the first code cell is not the setup cell: copy it, with its tag, from any chapter"


def _weight(notebook):
    size = len(nbformat.v4.writes(notebook).encode())
    if size > LARGEST_NOTEBOOK:
        most = LARGEST_NOTEBOOK // 1000
        yield f"weighs {size // 1000} kB, more than {most}: let its cells show less"


def _words(text):
    for match in FORBIDDEN.finditer(text):
        yield f"'{match[0]}' is a word we do not use: write the sentence without it"


def _tags(cell):
    markers = {tag for tag in tags(cell) if tag not in KNOWN_TAGS}
    markers |= set(NBVAL_COMMENT.findall(cell.source))
    yield from (f"{marker} is no tag of ours: take it out" for marker in sorted(markers))


def _metadata(cell):
    """Refuse what would make a page show something else than source and outputs."""
    asked = next((FOLDED[tag] for tag in tags(cell) if tag in FOLDED), {})
    found = {key: value for key, value in cell.metadata.items() if key != "tags"}
    if found != asked:
        yield f"has the metadata {found}; expected {asked}, as its tags ask: {STORE}"
    for output in cell.get("outputs", []):
        if output.get("metadata"):
            yield f"has an output with the metadata {output.metadata}; expected none: {STORE}"


def _code(cell, may_import_torch):
    source = cell.source.rstrip()
    if not source:
        yield "is empty: remove it"
    if re.search(r";\s*(#.*)?$", source):
        yield "ends in ';', which hides its value: take out the ';' or the value"
    for match in REDRAWS.finditer(source):
        yield f"{match[0]} makes outputs that nbval cannot compare: print or return the result"
    if match := ABSOLUTE_PATH.search(source):
        yield f"names an absolute path, {match[0]}: write one relative to the notebook"
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        yield f"is not plain Python ({error.msg}): correct the slip; no magic or shell command"
        return
    yield from _imports(tree, may_import_torch)
    for match in re.finditer(rf"^({'|'.join(SWITCHES)}) = (?!False\b)", source, re.MULTILINE):
        yield f"sets {match[1]} to something other than False: write {match[1]} = False"


def _imports(tree, may_import_torch):
    for module in imported_modules(_without_measurements(tree)):
        package = module.partition(".")[0]
        if package in CLOCKS:
            yield f"imports {package} outside `if MEASURE:`: show a record instead of a time"
    for module in imported_modules(ast.walk(tree)):
        if not (may_import_torch or in_browser(module)):
            yield f"imports {module}, which no part but that of PyTorch may: do without"


def _without_measurements(tree):
    """Leave out what stands under `if MEASURE:`, which a reader switches on."""
    guarded = [
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "MEASURE"
        for statement in node.body
    ]
    inside = {id(node) for statement in guarded for node in ast.walk(statement)}
    return [node for node in ast.walk(tree) if id(node) not in inside]


def imported_modules(nodes):
    """Name the modules that import statements among the nodes ask for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _outputs(cell):
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"stored an error: correct the cell, then {STORE}"
        if output.get("name") == "stderr":
            yield f"wrote to stderr: do what the warning asks, then {STORE}"
        for kind, data in output.get("data", {}).items():
            if kind not in COMPARED_TYPES:
                yield f"has an output of type {kind}, which is not compared: show text, HTML or SVG"
            elif RASTER.search(data):
                yield f"has a raster image in its {kind}: draw it as SVG, by tutorial_lib.figures"
        if "data" in output and "text/plain" not in output.data:
            yield "has an output without a text form: give its class a text/plain, or print it"
        yield from _output_text(output)
    text = printed(cell)
    if "<Figure" in text or re.fullmatch(r"\[?<.*>\]?", text.strip(), re.DOTALL):
        yield f"shows a bare object: {text.strip()[:60]}: print what it holds"


def _output_text(output):
    texts = [output.get("text", ""), *output.get("data", {}).values()]
    for text in (SCRIPT.sub("", str(text)) for text in texts):
        if match := ADDRESS.search(text):
            yield f"shows a memory address, {match[0]}, another each time: leave it out"
        if match := ABSOLUTE_PATH.search(text):
            yield f"shows an absolute path, {match[0]}, other on each machine: leave it out"


def markdown_faults(text):
    """List what Colab and JupyterLab would not show as the site does."""
    for fence in FENCE.finditer(text):
        if fence[2].strip().startswith("{"):
            yield f"has a MyST directive, {fence[2].strip()}: {PLAIN}"
    prose = MATHS.sub("", FENCE.sub("", text))
    for kind, pattern in MYST.items():
        if match := pattern.search(prose):
            yield f"has {kind} of MyST, {match[0].strip()}: {PLAIN}"
    if match := PICTURE.search(prose):
        yield f"embeds something from outside the file, {match[0]}: link to it, or draw it"
    if match := ABSOLUTE_PATH.search(prose):
        yield f"names an absolute path, {match[0]}: write one relative to the notebook"
