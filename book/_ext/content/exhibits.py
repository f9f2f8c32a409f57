"""Exhibits on pages: what the first page shows, and the small map of the steps in each chapter.

The line of the six steps is text in Colab and in Jupyter. Here it is a small map with the chapter's
steps lit; in the chapters that build the layer by hand it opens the live map.
"""

import json
import re
from functools import cache, partial

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.transforms.post_transforms import SphinxPostTransform

from book._ext.content.folds import OUTPUT as WAITING
from book._ext.content.folds import SUMMARY
from tools.chapters import FOLDER, page_of_document, pages
from tutorial_lib import figures, multihead
from tutorial_lib.describe import format_array, fraction_text
from tutorial_lib.elements.banks import check_bank
from tutorial_lib.elements.exhibits import (
    ask_model,
    heads_sum,
    live_map,
    paint_mask,
    query_plane,
    softmax_bench,
)
from tutorial_lib.elements.exhibits.board import STEPS
from tutorial_lib.elements.markup import ask, inline
from tutorial_lib.elements.prediction.element import draw_prediction
from tutorial_lib.example import running_example
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import WORDS
from tutorial_lib.records import checkpoint

MAP = " · ".join(STEPS)
COMMENT = re.compile(r"<!--(?! computed: )(.*?)-->", re.DOTALL)  # behind a number: its source
FOLD = SUMMARY.format(classes="below-input", closed=WAITING[0], opened=WAITING[1])
OUTPUT = f"""\
<div class="cell container">{FOLD}\
<div class="cell_output"><div class="output text_plain"><pre>{{}}</pre></div></div>
</details></div>"""


@cache
def cells(path):
    """Return the cells of a notebook; a page of `book/` is one cell of Markdown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return json.loads(text)["cells"]
    return [{"cell_type": "markdown", "source": text}]


@cache
def document_by_step() -> dict[str, str]:
    """Return, for each step, the document of the first chapter that lights it."""
    chapters = reversed([page for page in pages() if page.number])
    return {step: FOLDER + page.name for page in chapters for step in page.steps}


@cache
def document_of_playground() -> str:
    """Return the document that shows the playground."""
    shown = ((page, cell) for page in pages() for cell in cells(page.path))
    return next(FOLDER + p.name for p, c in shown if "playground()" in "".join(c["source"]))


def steps_line_html(steps) -> str:
    """Return the line of the six steps as a small map with some of them lit."""
    drawn = []
    for step in STEPS:
        lit, said = (' data-lit=""', " (here)") if step in steps else ("", "")
        hidden = f'<span class="visually-hidden">{said}</span>' if said else ""
        drawn.append(f'<span class="book-step"{lit}>{step}{hidden}</span>')
    return f'<span class="book-map">{" ".join(drawn)}</span>'


def raw(html):
    """Return a node that is its HTML."""
    return nodes.raw("", html, format="html")


class place(nodes.raw):
    """Where a page asks for the live map, until every address is known.

    It is HTML, as what replaces it will be, so that who writes anything else passes it over.
    """


class DrawMaps(SphinxPostTransform):
    """Draw the live map where it is asked for, and the lines of steps as small maps."""

    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place; a chapter's line comes right below its title."""
        for asked in list(self.document.findall(place)):
            said = f"<p>{inline(asked.astext())}</p>\n"
            asked.replace_self(
                raw(re.sub('(?=<p class="tl-ask">)', said, self.live_map(), count=1))
            )
        lines = [p for p in self.document.findall(nodes.paragraph) if p.astext() == MAP]
        for line in lines:
            steps = [step.astext() for step in line.findall(nodes.strong)]
            if isinstance(line.parent.parent, nodes.document):
                line.parent.insert(1, raw(self.head(steps)))
                line.parent.remove(line)
            else:
                line.replace_self(raw(f'<p class="book-steps">{steps_line_html(steps)}</p>'))

    def head(self, steps) -> str:
        """Return the small map of a chapter; where the layer is built by hand, it opens."""
        page = page_of_document(self.env.docname)
        if not (page and page.builds_by_hand):
            return f'<p class="book-steps">{steps_line_html(steps)}</p>'
        summary = f'{steps_line_html(steps)} <span class="book-open">the numbers</span>'
        opened = self.live_map(steps)
        return f'<details class="book-steps"><summary>{summary}</summary>\n{opened}</details>'

    def live_map(self, steps=()) -> str:
        """Return the live map, its steps leading to their chapters."""
        here = self.env.docname
        to = partial(self.app.builder.get_relative_uri, here)
        links = {step: to(home) for step, home in document_by_step().items() if home != here}
        return live_map(steps, links=links, playground=to(document_of_playground())).html


class LiveMap(Directive):
    """The directive `live-map`: the map with all steps lit; its content stands above the task."""

    has_content = True

    def run(self):
        """Return its place."""
        return [place("", COMMENT.sub("", " ".join(self.content)), format="html")]


def two_heads(caption):
    """Show the weights of both heads of the running example, as a figure."""
    example = running_example()
    weights = multihead.trace(example.X, example.params, mask=example.mask).weights
    return figures.attention_maps(weights, example.tokens, fractions=True, caption=caption).html()


def trained_model(task):
    """Show the model of chapter 20."""
    model = TinyModel.of(checkpoint("known_text"))
    split = ("barks", "bark")
    return ask_model(model, WORDS, "the dog that the cats see", question=task, split=split).html


def with_task(exhibit, task):
    """Show an exhibit of a chapter with a task of this page."""
    return re.sub(r'<p class="tl-ask">.*?</p>', lambda _: ask(task), exhibit().html, count=1)


SHOWN = {
    "query-plane": partial(with_task, query_plane),
    "softmax-bench": partial(with_task, softmax_bench),
    "two-heads": two_heads,
    "heads-sum": partial(with_task, heads_sum),
    "paint-mask": lambda task: paint_mask(task).html,
    "trained-model": trained_model,
}


class Exhibit(Directive):
    """The directive `exhibit`: one of SHOWN by its name, with the reader's task or a caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the exhibit with its task."""
        [name] = self.arguments
        if name not in SHOWN:
            raise self.error(f"There is no exhibit {name!r}. Choose one of: {', '.join(SHOWN)}.")
        return [raw(SHOWN[name](COMMENT.sub("", " ".join(self.content))))]


class Prediction(Directive):
    """The directive `prediction`: a question as in a bank; its output is the weights of head 0."""

    has_content = True

    def run(self):
        """Return the question and what stays closed until it is answered."""
        question = json.loads(COMMENT.sub("", "\n".join(self.content)))
        bank = check_bank({"predictions": [question], "quiz": [], "parsons": None}, "first page")
        example = running_example()
        weights = multihead.trace(example.X, example.params, mask=example.mask).weights[0]
        rows = format_array(weights, fraction_text, rows=example.tokens, columns=example.tokens)
        return [raw(draw_prediction(bank, "first-page", 1).html + OUTPUT.format(rows))]
