"""What a page keeps folded: code, an output that waits for an answer, the hints of an exercise.

myst-nb folds each tagged cell alone and calls it "source", "content" or "output". Here three things
get three looks. Closed code is one line: its first line, and how many there are. An output that
waits is an empty output, which the paragraph behind it, the one that reads the answer, shares. The
hints of an exercise and its solution are one row. Cells that show nothing and stand one behind the
other, as in the set-up of a chapter, are one fold.
"""

import re
from html import escape
from itertools import takewhile

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

SET_UP = "Set-up"
SOLUTION = "Solution"
OUTPUT = "Output: answer above, or <u>show it</u>", "Hide the output"
SUMMARY = """\
<details class="admonition hide {classes}">
<summary>
<p class="collapsed admonition-title">{closed}</p>
<p class="expanded admonition-title">{opened}</p>
</summary>
"""
HINT = re.compile(r"<summary>(Hint \d+)((?:(?!</summary>).)*)</summary>")
HINT_TITLE = r"<summary>\1<span>\2</span></summary>"
HINTS = '<div class="book-hints">', "</div>"
WAITS = "○ "  # how a check begins that waits for the reader


def is_cell(node) -> bool:
    """Whether a node is a code cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def is_machinery(node) -> bool:
    """Whether a node is a cell with its code folded that shows nothing."""
    return is_cell(node) and node.get("hide_mode") == "input" and len(node.children) == 1


def is_solution(node) -> bool:
    """Whether a node is the cell with the solution of an exercise."""
    return is_cell(node) and "tag_solution" in node["classes"]


def is_answer(fold) -> bool:
    """Whether a fold holds an output that waits for an answer."""
    return {"below-input", "above-output"} & set(fold["classes"]) != set()


def code_summary(code) -> str:
    """Return closed code as a line: the first that says something, and how many there are."""
    lines = code.strip().splitlines()
    count = f"{len(lines)} lines" if len(lines) > 1 else "1 line"
    first = next(line for line in lines if line != "display(")
    return f"<code>{escape(first.strip())}</code> <span>{count}</span>"


def name_code_fold(fold):
    """Give a fold of code its look, and the words that open and close it."""
    code = "\n".join(block.astext() for block in fold.findall(nodes.literal_block))
    fold["classes"].append("book-code")
    fold["closed"], fold["opened"] = code_summary(code), "Hide the code"


def name_cell_fold(cell, fold):
    """Give a fold of a cell the words that open and close it."""
    if is_answer(fold):
        fold["closed"], fold["opened"] = OUTPUT
    elif is_solution(cell):
        fold["closed"] = fold["opened"] = SOLUTION
    else:
        name_code_fold(fold)


def join_silent_cells(cells) -> HideCodeCellNode:
    """Put cells that show nothing and stand one after the other into one fold, each whole."""
    joined = HideCodeCellNode()
    joined["classes"].append("above-input")
    first = cells[0]
    first.parent.replace(first, [joined, first])
    for cell in cells:
        cell.parent.remove(cell)
        [own] = cell.children
        cell.children = []
        cell.extend(own.children)
        joined.append(cell)
    name_code_fold(joined)
    return joined


def join_machinery_cells(cells):
    """Join what shows nothing, and call that of the beginning the set-up."""
    left = [cell for cell in cells if is_machinery(cell)]
    while left:
        parent, place = left[0].parent, left[0].parent.index(left[0])
        run = list(takewhile(is_machinery, parent.children[place:]))
        left = left[len(run) :]
        if run[0] is cells[0]:
            fold = join_silent_cells(run)
            fold["classes"].append("book-setup")
            fold["closed"] = fold["opened"] = SET_UP
        elif len(run) > 1:
            join_silent_cells(run)


def gather_answer_into_fold(cell, output_fold):
    """Put the cell's closed code, and the paragraph that reads the answer, into its output."""
    after = cell.parent.children[cell.parent.index(cell) + 1 :]
    if after and isinstance(after[0], nodes.paragraph):
        cell.parent.remove(after[0])
        output_fold.append(nodes.container("", after[0], classes=["book-reading"]))
    for code in [child for child in cell.children if isinstance(child, HideCodeCellNode)]:
        if code is not output_fold:
            cell.remove(code)
            output_fold.insert(0, code)


def put_hints_in_row(first_hint):
    """Put the hints that begin at a node, and the solution behind them, into one row."""
    parent, place = first_hint.parent, first_hint.parent.index(first_hint)
    last = place
    for number, node in enumerate(parent.children[place:], start=place):
        if is_solution(node):
            last = number
        if isinstance(node, nodes.raw) and "</details>" in node.astext():
            last = number
        if isinstance(node, nodes.section) or is_cell(node):
            break
    for tag, where in zip(HINTS, (place, last + 2), strict=True):
        parent.insert(where, nodes.raw("", tag, format="html"))


class NameFolds(SphinxPostTransform):
    """Name the folds that myst-nb has made, join what shows nothing, and gather what belongs."""

    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place."""
        cells = [node for node in self.document.findall(nodes.container) if is_cell(node)]
        for cell in cells:
            for printed in cell.findall(nodes.literal_block):
                if printed.astext().startswith(WAITS):
                    printed["classes"].append("book-waits")
            for fold in list(cell.findall(HideCodeCellNode)):
                name_cell_fold(cell, fold)
                if is_answer(fold):
                    gather_answer_into_fold(cell, fold)
        join_machinery_cells(cells)
        hints = [raw for raw in self.document.findall(nodes.raw) if HINT.search(raw.astext())]
        for raw in hints:
            text = HINT.sub(HINT_TITLE, raw.astext())
            raw.children, raw.rawsource = [nodes.Text(text)], text
            if "Hint 1<" in text:
                put_hints_in_row(raw)


def visit_fold(translator, node):
    """Begin a fold of cells."""
    classes = " ".join(node["classes"])
    translator.body.append(SUMMARY.format(**node.attributes | {"classes": classes}))


def depart_fold(translator, node):
    """End a fold of cells."""
    translator.body.append("</details>\n")
