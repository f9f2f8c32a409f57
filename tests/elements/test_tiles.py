"""The tiles as bytes: scores and values are the layer's, and tiles end in its outputs."""

import json

import numpy as np
import pytest

from tests.elements.test_elements import Tree
from tests.site.states import tiles_state
from tutorial_lib import causal_mask, running_example, scaled_dot_product_attention, trace
from tutorial_lib.elements.exhibits import fold_tiles
from tutorial_lib.elements.exhibits.tiles.element import draw_tiles

WORDS = ["dogs", "that", "bark", "cats", "that", "sleep"]


def test_scores_values_and_outputs_are_those_of_the_layer():
    tags = Tree(fold_tiles().html).tags
    given = json.loads(next(a["data-given"] for _, a in tags if "data-given" in a))
    example = running_example()
    X = example.E[example.vocabulary.ids(WORDS)] + np.tile(example.P[:3], (2, 1))
    whole = trace(X, example.params, mask=causal_mask(6))
    scores = np.array(given["S"]) * np.log(2)
    np.testing.assert_allclose(scores, whole.scores[0], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(given["V"], whole.V[0])
    plain = scaled_dot_product_attention(whole.Q[0], whole.K[0], whole.V[0], mask=causal_mask(6))
    np.testing.assert_allclose(given["heads"], plain, rtol=0, atol=1e-11)
    assert given["words"] == WORDS


@pytest.mark.parametrize("seed", range(8))
def test_no_output_is_wrong_with_the_factor_whatever_the_sizes_and_the_order(seed):
    state = tiles_state(np.random.default_rng(seed)) | {"factor": "yes"}
    assert "✗" not in draw_tiles(**state).html.partition("<script>")[0]
    assert draw_tiles(tiles="0.3.4.6.7.8").html.count('"tl-right">✓') == 6
