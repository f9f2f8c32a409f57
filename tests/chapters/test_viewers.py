"""A viewer that strips scripts, style sheets and SVG, as GitHub does, still shows every figure."""

from base64 import b64decode
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup

from tests.chapters.pages import NAMES, code_cells, written
from tests.library.figures.reading import SVG

STRIPPED = ("script", "style", "svg")
SHOWN = {"class", "src", "alt", "width"}  # and no style, which GitHub strips too
DATA = "data:image/svg+xml;base64,"


def figures_of(notebook):
    """Return the figures of the outputs, in the form that viewers prefer."""
    outputs = [output.get("data", {}) for c in code_cells(notebook) for output in c.outputs]
    html = "".join(data.get("text/html", "") for data in outputs)
    return BeautifulSoup(html, "html.parser").select("figure.ahh-figure")


def drawn_words(figure):
    """Return the texts of the pictures, of two for one place those of the first."""
    for pair in figure.select(".ahh-grid > div"):
        pair.find_all("svg", recursive=False)[1].decompose()
    return [text.get_text() for text in figure.select("svg text")]


def image_words(figure):
    """Return the texts in the images that are left of a figure."""
    for node in figure(STRIPPED):
        node.decompose()
    for node in figure(True):
        node.attrs = {name: entry for name, entry in node.attrs.items() if name in SHOWN}
    sources = [image["src"].removeprefix(DATA) for image in figure("img")]
    images = [ElementTree.fromstring(b64decode(source, validate=True)) for source in sources]
    return [text.text for image in images for text in image.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_left_with_its_words_its_description_and_its_numbers(name):
    for figure in figures_of(written(name)):
        words, description = drawn_words(figure), figure.select_one(".ahh-panels")["aria-label"]
        assert image_words(figure) == words != []
        assert figure.find("img")["alt"] == description
        assert figure.figcaption
        assert figure.details.table
