"""What a page keeps folded: its set-up, as one line, and cells called by what they hold.

myst-nb folds each tagged cell alone and calls it "source", "content" or "output". A chapter begins
with what every chapter needs, installing and importing, so that stands in one fold. The text below
an output that waits for a prediction discusses it, so the output's fold takes it in.
"""

from itertools import takewhile

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

SET_UP = ("Show the set-up", "Hide the set-up")
SOLUTION = ("Show a solution", "Hide the solution")
PICTURE = ("Show the code of this picture", "Hide the code of this picture")
CODE = ("Show the code", "Hide the code")
OUTPUT = ("Show the output", "Hide the output")
WAITS = "○ "  # how a check begins that waits for the reader
DRAWN = ('class="ahh-figure', "<svg")
ASKED = "tl-predict"


def is_cell(node) -> bool:
    """Whether a node is a code cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def is_machinery(node) -> bool:
    """Whether a node is a cell with its code folded that shows nothing."""
    return is_cell(node) and node.get("hide_mode") == "input" and len(node.children) == 1


def draws(cell) -> bool:
    """Whether a cell shows a picture."""
    outputs = (raw.astext() for raw in cell.findall(nodes.raw))
    return any(sign in output for output in outputs for sign in DRAWN)


def shows_code(node) -> bool:
    """Whether a node is a code cell whose code is visible."""
    return is_cell(node) and any("cell_input" in part["classes"] for part in node.children)


def ends_discussion(node) -> bool:
    """Whether what follows an answer is no longer about it: a heading, code, or a new question."""
    asks = is_cell(node) and any(ASKED in raw.astext() for raw in node.findall(nodes.raw))
    return isinstance(node, nodes.section) or shows_code(node) or asks


def is_answer(fold) -> bool:
    """Whether a fold holds an output that waits for a prediction."""
    return "below-input" in fold["classes"]


def prompts(cell, fold) -> tuple[str, str]:
    """Return what opens and what closes a fold of a cell."""
    if is_answer(fold) or "above-output" in fold["classes"]:
        return OUTPUT
    if "tag_solution" in cell["classes"]:
        return SOLUTION
    return PICTURE if draws(cell) else CODE


def fold_set_up(cells):
    """Put cells that stand one after the other into one fold, each of them whole."""
    fold = HideCodeCellNode(prompt_show=SET_UP[0], prompt_hide=SET_UP[1])
    fold["classes"] += ["above-input", "book-setup"]
    first = cells[0]
    first.parent.replace(first, [fold, first])
    for cell in cells:
        cell.parent.remove(cell)
        [own] = cell.children
        cell.children = []
        cell.extend(own.children)
        fold.append(cell)


def fold_discussion(cell, fold):
    """Put what discusses an answer into its fold, behind the output."""
    after = cell.parent.children[cell.parent.index(cell) + 1 :]
    discussed = list(takewhile(lambda node: not ends_discussion(node), after))
    for node in discussed:
        cell.parent.remove(node)
    if discussed:
        fold.append(nodes.container("", *discussed, classes=["book-discussion"]))


class NameFolds(SphinxPostTransform):
    """Name the folds that myst-nb has made, join those of the set-up, widen those of answers."""

    default_priority = 200  # myst-nb folds at 199
    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place."""
        cells = [node for node in self.document.findall(nodes.container) if is_cell(node)]
        for cell in cells:
            for printed in cell.findall(nodes.literal_block):
                if printed.astext().startswith(WAITS):
                    printed["classes"].append("book-waits")
            for fold in list(cell.findall(HideCodeCellNode)):
                fold["prompt_show"], fold["prompt_hide"] = prompts(cell, fold)
                if is_answer(fold):
                    fold_discussion(cell, fold)
        if cells and is_machinery(cells[0]):
            parent = cells[0].parent
            after = parent.children[parent.index(cells[0]) :]
            fold_set_up(list(takewhile(is_machinery, after)))


def setup(app):
    """Connect the step above."""
    app.add_post_transform(NameFolds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
