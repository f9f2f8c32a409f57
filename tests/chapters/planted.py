"""A notebook that keeps to the rules, and a chapter and a review in good order, to be broken."""

import copy

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.chapters.anatomy import STEPS, UNLIT, colab_address, next_map
from tests.chapters.pages import FIRST_REVIEW, NAMES
from tests.chapters.rules import SETUP
from tools.chapters import page
from tools.run_notebooks import VISIBLE_WORDS

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


CHAPTER, OTHER = NAMES[:2]
OPENING = f"""\
# Ask and offer: queries, keys, values

[Open in Colab]({colab_address(CHAPTER)})

embed · **project** · score · mix · concat · project out

## Goal

- **You get** `X → Q, K, V`.
- **Why**: one word asks another.
- **One number**: 3.

About 5 minutes of reading and 20 of doing. [Notation](../book/notation.md),
[Glossary](../book/glossary.md)."""
HINTS = [
    f"<details><summary>Hint {n}</summary>\n\nCount the axes.\n\n</details>" for n in (1, 2, 3)
]
HINT = "\n".join(HINTS)
MYTH = (
    '## Myth and measurement: narrow heads\n\n> *"Half the width, half the work."*\n\n'
    "No ([Vaswani et al. 2017](https://arxiv.org/abs/1706.03762))."
)
RECAP = f"## Recap\n\nThree lines.\n\n{next_map(CHAPTER)}"
SOLUTION = "def biased(X):\n    return X + 1\n\n\ncheck_biased(biased)"


def chapter():
    """Return a chapter in the order of all chapters; its outputs are written, not computed."""
    figure = shown("<figure><svg/></figure>", "0.5")
    cells = [
        text("opening", OPENING),
        code("setup", SETUP, tags=["hide-input"]),
        text("idea", "## Idea\n\nWhy? Which is longer?"),
        code("picture", "signed_maps(arrays)", figure, tags=["hide-input"]),
        text("build", "## Build\n\n### Round 1: one head"),
        *(cell for n in (1, 2, 3) for cell in prediction(n)),
        code(
            "keeper", "def project_heads(X, W):\n    return X[..., None, :, :] @ W", tags=["keeper"]
        ),
        text("check", "## Check: one head"),
        code("checked", "check_project_heads(project_heads)", stdout("✓ project_heads\n")),
        text("look", "## Look: weights of dogs\n\nWhich is longer?"),
        code("figure", "attention_maps(weights, tokens)", figure),
        code("sentence", "print('dogs')", stdout("dogs\n")),
        text("myth", MYTH),
        code("measured", "show('ratio', 4)", stdout("ratio: 4\n")),
        *exercises(),
        text("quiz", "## Quiz"),
        code("questions", f'quiz("{CHAPTER}")', tags=["remove-input"]),
        text("recap", RECAP),
    ]
    return new_notebook(cells=cells, metadata=METADATA | {VISIBLE_WORDS: 300})


def exercises():
    """Return a Parsons problem, and an exercise with stub, check, hints and solution."""
    return [
        text("puzzle", "## Exercises\n\n**Exercise 1: order the lines.** Of project_heads."),
        code("parsons", f'parsons("{CHAPTER}")', tags=["remove-input"]),
        *exercise("**Exercise 2: with a bias.** Add one."),
    ]


def exercise(task):
    """Return the cells of a task: stub, check, hints and solution."""
    return [
        text("task", task),
        code("stub", "def biased(X):\n    ...  # your line"),
        code("unsolved", "check_biased(biased)", stdout("○ biased: not done yet\n")),
        text("hints", HINT),
        solution(),
    ]


REVIEW = FIRST_REVIEW
REVIEW_OPENING = f"""\
# Build the layer again

[Open in Colab]({colab_address(REVIEW)})

{UNLIT.replace("mix", "**mix**")}

## Goal

All six steps, `ids → Y`. About 5 minutes of reading and 10 of doing."""


def review():
    """Return a review in the order of all reviews; its outputs are written, not computed."""
    rows = [f"| **{step}** | looks up |" for step in STEPS]
    rows += [f"| in | [{name}]({name}.ipynb) |" for name in page(REVIEW).closes]
    table = "\n".join(["| step | chapter |", "|---|---|", *rows])
    cells = [
        text("opening", REVIEW_OPENING),
        code("setup", SETUP, tags=["hide-input"]),
        text("abilities", f"## What you can do now\n\n{table}"),
        text("quiz", "## Quiz"),
        code("questions", f'quiz("{REVIEW}")', tags=["remove-input"]),
        *exercise("## The task\n\nWrite all of it."),
        code("chosen", "layer = biased", tags=["solution"]),
        *prediction(1, REVIEW),
        code("use", "print(layer(0))", stdout("1\n"), tags=["solution"]),
        text("again", "The old numbers."),
        text("recap", f"## Recap\n\nThree lines.\n\n{next_map(REVIEW)}"),
    ]
    return new_notebook(cells=cells, metadata=METADATA)


def text(name, source):
    """Return a Markdown cell."""
    return new_markdown_cell(source, id=name)


def prediction(n, name=CHAPTER):
    """Return a prediction and the closed cell that answers it."""
    answer = code(
        f"answer-{n}", f"show('shape', {n})", stdout(f"shape: {n}\n"), tags=["hide-output"]
    )
    answer.metadata.jupyter = {"outputs_hidden": True}
    asked = code(f"prediction-{n}", f'prediction("{name}", {n})', tags=["remove-input"])
    return asked, answer


def solution():
    """Return the folded solution of an exercise."""
    cell = code("solution", SOLUTION, stdout("✓ biased\n"), tags=["solution", "hide-cell"])
    cell.metadata.jupyter = {"outputs_hidden": True, "source_hidden": True}
    return cell
