"""The drawings of the site show the running example, and are small enough for every page."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tutorial_lib import multihead
from tutorial_lib.elements.exhibits.board import STEPS
from tutorial_lib.example import running_example

STATIC = Path(__file__).resolve().parents[2] / "book" / "_static"
FAINTEST = 0.09  # the opacity of a 0; the largest number of an array has 1


def shown():
    """The arrays of the running example in the order of the drawing, head by head."""
    example = running_example()
    steps = multihead.trace(example.X, example.params, mask=example.mask)
    names = ("X", "Q", "K", "V", "weights", "heads", "concat", "Y")
    shades = {name: np.abs(getattr(steps, name)) for name in names}
    shades = {name: array / array.max() for name, array in shades.items()}
    shades["weights"] = np.where(example.mask, shades["weights"], np.nan)  # a hidden cell is hollow
    for head in (0, 1):
        yield from (shades[name][head] for name in names[1:6])
    yield shades["X"]
    yield from np.split(shades["concat"], 2, axis=1)
    yield shades["Y"]


@pytest.mark.parametrize("name", ["map.svg", "social.svg"])
def test_cells_of_a_picture_are_the_numbers_of_the_running_example(name):
    source = (STATIC / name).read_text(encoding="utf-8")
    drawn = re.findall(r'<g class="(?:ink|a|b)">(<use.*?)</g>', source)
    for cells, array in zip(drawn, shown(), strict=True):
        shades = re.findall(r'<use [^>]*?(?:fill-opacity="([\d.]+)"|class="off")/>', cells)
        expected = FAINTEST + (1 - FAINTEST) * array.ravel()
        found = [float(shade or "nan") for shade in shades]
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.00501)


@pytest.mark.parametrize("name", ["map.svg", "social.svg", "logo.svg", "favicon.svg"])
def test_picture_is_small_and_calls_on_nobody(name):
    source = (STATIC / name).read_text(encoding="utf-8")
    assert len(source.encode()) <= 20_000
    assert source.count("http") == 1, "only the namespace"
    ElementTree.fromstring(source)


def test_map_names_the_six_steps_in_order():
    words = [e.text for e in ElementTree.parse(STATIC / "map.svg").iter() if e.tag.endswith("text")]
    assert [word for word in words if word in STEPS] == list(STEPS)
