"""A notebook that keeps to the rules, to be broken."""

import copy

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.chapters.rules import SETUP
from tools.run_notebooks import normalise, notebook_text, parse_notebook

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FIGURE_CLASS = """\
class Dot:
    def __init__(self, share):
        self.share = share

    def _repr_mimebundle_(self, include=None, exclude=None):
        circle = f'<svg viewBox="0 0 1 1"><circle r="{self.share}"/></svg>'
        return {"text/html": circle, "text/plain": f"share {self.share:.4f}"}"""
FIGURE_HTML = '<svg viewBox="0 0 1 1"><circle r="0.5714"/></svg>'


def good():
    """Return the notebook as stored after a run: nbval and the rules both accept it."""
    cells = [
        new_markdown_cell(
            "# Weigh one word\n\nA weight of $\\tfrac47$ and its picture.", id="title"
        ),
        code("setup", SETUP, tags=["hide-input"]),
        code("class", FIGURE_CLASS),
        code("text", 'print("share", 4 / 7)', stdout("share 0.5714285714285714\n")),
        code("figure", "Dot(0.5714)", shown(FIGURE_HTML, "share 0.5714")),
        code("value", "round(4 / 7, 4)", shown(None, "0.5714")),
    ]
    notebook = new_notebook(cells=cells, metadata=METADATA)
    for count, cell in enumerate((c for c in cells if c.cell_type == "code"), start=1):
        cell.execution_count = count
        for output in cell.outputs:
            output.update({"execution_count": count} if "execution_count" in output else {})
    return nbformat.from_dict(copy.deepcopy(notebook))


def code(name, source, *outputs, tags=()):
    """Return a code cell with the outputs given; its execution count is filled in later."""
    metadata = {"tags": list(tags)} if tags else {}
    return new_code_cell(source, id=name, outputs=list(outputs), metadata=metadata)


def stdout(text):
    """Return what a print leaves."""
    return new_output("stream", name="stdout", text=text)


def shown(html, plain):
    """Return what the value of a cell's last line leaves."""
    data = {"text/plain": plain} | ({"text/html": html} if html else {})
    return new_output("execute_result", data=data, execution_count=1)


def cell_of(notebook, name):
    """Return the cell with this id."""
    return next(cell for cell in notebook.cells if cell.get("id") == name)


def text(name, source):
    """Return a Markdown cell."""
    return new_markdown_cell(source, id=name)


def stored_text(text):
    """The text that is stored for a notebook whose cells are not run again."""
    return notebook_text(normalise(parse_notebook(text)))
