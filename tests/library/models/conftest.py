"""Two models that several files test with: a small one at random, and the committed example."""

import pytest

from tutorial_lib import records
from tutorial_lib.models.copying import TinyModel

LAYERS = [((2, 5, 3), (2, 5, 3), (2, 5, 2), (4, 5)), ((3, 5, 2), (3, 5, 2), (3, 5, 4), (12, 5))]


@pytest.fixture
def model(normal):
    """Two layers with 2 and 3 heads, 7 words, 9 positions, d_model 5; widths of heads differ."""
    shapes = [(7, 5), (9, 5), *LAYERS[0], *LAYERS[1], (5, 7)]
    return TinyModel.of([normal(60 + i, *s) / s[-2] ** 0.5 for i, s in enumerate(shapes)])


@pytest.fixture(scope="package")
def example_model():
    """The committed model of the known text."""
    return TinyModel.of(records.checkpoint("known_text"))
