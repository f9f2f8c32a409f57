"""RoPE and ALiBi: against loops, and in the limits in which the layer of chapter 06 is back."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import (
    Params,
    ShapeError,
    attention_scores,
    attention_weights,
    concat_heads,
    embed,
    project_heads,
    running_example,
    scaled_dot_product_attention,
    sinusoidal_positions,
    trace,
)
from tutorial_lib.variants.positions import (
    alibi_bias,
    alibi_scores,
    alibi_slopes,
    rope_frequencies,
    rotate,
)

LAYOUTS = pytest.mark.parametrize("half", [False, True], ids=["interleaved", "rotate_half"])


def rotary_layer(X, params, positions, frequencies, *, mask=None, half=False):
    """The layer, with a rotation between project and score."""
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, K = (rotate(array, positions, frequencies, half=half) for array in (Q, K))
    return concat_heads(scaled_dot_product_attention(Q, K, V, mask=mask)) @ params.W_O


def biased_layer(X, params, slopes, *, mask=None):
    """The layer, with a bias in the scores."""
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    weights = attention_weights(alibi_scores(Q, K, slopes), mask=mask)
    return concat_heads(weights @ V) @ params.W_O


def rotated_back(Q, K, positions, frequencies, *, mask=None):
    """Heads whose values are their keys, rotated back by the query's position."""
    Q, K = rotate(Q, positions, frequencies), rotate(K, positions, frequencies)
    return rotate(scaled_dot_product_attention(Q, K, K, mask=mask), positions, -frequencies)


def test_without_a_rotation_the_layer_is_back(X, params, square_mask):
    Y = trace(X, params, mask=square_mask).Y
    for half in (False, True):
        plain_Y = rotary_layer(X, params, np.arange(5), np.zeros(2), mask=square_mask, half=half)
        np.testing.assert_array_equal(plain_Y, Y)
    position_0_Y = rotary_layer(X, params, np.zeros(5), rope_frequencies(4), mask=square_mask)
    np.testing.assert_array_equal(position_0_Y, Y)


def test_without_a_slope_the_layer_is_back(X, params, square_mask):
    Y = trace(X, params, mask=square_mask).Y
    np.testing.assert_array_equal(biased_layer(X, params, np.zeros(3), mask=square_mask), Y)


def test_without_position_embeddings_the_layer_is_the_one_with_zero_embeddings():
    example = running_example()
    X = embed(example.ids, example.E)
    zero_position_X = embed(example.ids, example.E, np.zeros_like(example.P))
    Y = trace(zero_position_X, example.params, mask=example.mask).Y
    np.testing.assert_array_equal(trace(X, example.params, mask=example.mask).Y, Y)


def test_without_a_rotation_the_layer_is_back_whose_keys_are_its_values(X, normal, square_mask):
    W_Q, W_K, W_O = normal(1, 3, 12, 4), normal(2, 3, 12, 4), normal(3, 12, 12)
    Q, C = project_heads(X, W_Q), project_heads(X, W_K)
    heads = rotated_back(Q, C, np.arange(5), np.zeros(2), mask=square_mask)
    Y = trace(X, Params(W_Q=W_Q, W_K=W_K, W_V=W_K, W_O=W_O), mask=square_mask).Y
    np.testing.assert_array_equal(concat_heads(heads) @ W_O, Y)


LIMITS = {
    "RoPE": test_without_a_rotation_the_layer_is_back,
    "ALiBi": test_without_a_slope_the_layer_is_back,
    "No positions": test_without_position_embeddings_the_layer_is_the_one_with_zero_embeddings,
    "Output rotated back": test_without_a_rotation_the_layer_is_back_whose_keys_are_its_values,
}


def test_frequencies_are_those_of_the_sines(assert_close):
    sine_columns = sinusoidal_positions(2, 12)[1]  # sine and cosine of one step
    assert_close(np.arctan2(sine_columns[0::2], sine_columns[1::2]), rope_frequencies(12))
    assert_close(rope_frequencies(4, base=16), np.array([1, 0.25]))


ROW_POSITIONS = np.array([[[0, 1, 2, 3, 4]], [[-2, -1, 0, 1, 2]]])  # (B, 1, T): of each sequence


@LAYOUTS
@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize(
    "positions", [np.arange(5) / 2 - 7, np.array([0, 0, 3, 9, 9]), ROW_POSITIONS]
)
def test_a_rotation_equals_a_product_of_complex_numbers(normal, positions, n, half, assert_close):
    X, frequencies = normal(1, 2, 3, 5, 12), rope_frequencies(12)[:n]
    rotated_X = rotate(X, positions, frequencies, half=half)
    assert_close(rotated_X, oracle.rotate(X, positions, frequencies, half))


@LAYOUTS
def test_scores_depend_only_on_the_distance(normal, half):
    Q, K, frequencies = normal(1, 3, 5, 6), normal(2, 3, 5, 6), rope_frequencies(6)
    scores, shifted_scores = (
        attention_scores(*(rotate(A, positions, frequencies, half=half) for A in (Q, K)))
        for positions in (np.arange(5), np.arange(5) + 1000)
    )
    np.testing.assert_allclose(shifted_scores, scores, atol=1e-12)
    assert np.abs(scores - attention_scores(Q, K)).max() > 0.1  # and they do depend on it


@LAYOUTS
def test_a_rotation_keeps_lengths_and_is_undone_by_negated_frequencies(normal, half, assert_close):
    X, frequencies = normal(1, 3, 5, 6), rope_frequencies(6)
    rotated_X = rotate(X, np.arange(5), frequencies, half=half)
    assert_close(np.linalg.norm(rotated_X, axis=-1), np.linalg.norm(X, axis=-1))
    assert_close(rotate(rotated_X, np.arange(5), -frequencies, half=half), X)


@pytest.mark.parametrize("n_heads", range(1, 34))
def test_slopes_are_those_of_the_recursion(n_heads, assert_close):
    assert_close(alibi_slopes(n_heads), oracle.alibi_slopes(n_heads))


@pytest.mark.parametrize(("T", "S"), [(5, 5), (5, 6), (1, 6), (6, 5)])
def test_bias_is_the_slope_times_the_distance(T, S, assert_close):
    assert_close(alibi_bias(T, S, alibi_slopes(3)), oracle.alibi_bias(T, S, alibi_slopes(3)))


def test_a_step_away_subtracts_one_slope(Q, K, assert_close):
    slopes = alibi_slopes(3)
    scores = oracle.scores(Q, K) + oracle.alibi_bias(5, 6, slopes)
    assert_close(alibi_scores(Q, K, slopes), scores)


def test_the_output_rotated_back_does_not_depend_on_where_the_sequence_begins(normal):
    Q, K, frequencies = normal(1, 3, 5, 4), normal(2, 1, 5, 4), rope_frequencies(4)
    heads = rotated_back(Q, K, np.arange(5), frequencies)
    np.testing.assert_allclose(
        rotated_back(Q, K, np.arange(5) + 1000, frequencies), heads, atol=1e-12
    )


def test_whole_numbers_become_floats():
    rotated_X = rotate(np.ones((5, 4), dtype=np.int64), np.arange(5), rope_frequencies(4))
    assert rotated_X.dtype == np.float64
    np.testing.assert_allclose(rotated_X[1, 0], np.cos(1) - np.sin(1))


X4, POSITIONS, PAIR_POSITIONS = np.ones((2, 3, 5, 4)), np.arange(5), np.arange(10).reshape(2, 5)


def rotated_by(positions):
    """An array of ones, rotated by the positions of its tokens."""
    return rotate(X4, positions, np.ones(2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rope_frequencies(7), ShapeError, "d_k=7; expected an even width"),
        (lambda: rope_frequencies(4, base=-1), ValueError, "base=-1"),
        (lambda: rotate(X4[..., :3], POSITIONS, np.ones(1)), ShapeError, "d=3; expected an even"),
        (
            lambda: rotate(X4, POSITIONS, np.ones(3)),
            ShapeError,
            "3 entries, but X of width 4 has 2",
        ),
        (lambda: rotate(X4[0, 0], PAIR_POSITIONS, np.ones(2)), ShapeError, "does not broadcast"),
        (lambda: rotated_by(PAIR_POSITIONS), ShapeError, r"need a head axis: positions\[:, None\]"),
        (lambda: rotated_by(np.arange(6)), ShapeError, "positions has shape"),
        (lambda: rotated_by(np.arange(1)), ShapeError, "positions has shape"),
        (lambda: rotated_by(np.array([0, 1, 2, 1, 2])), ValueError, "from 2 to 1 at token 3"),
        (lambda: rotated_by(-POSITIONS), ValueError, "negate the frequencies"),
        (lambda: rotated_by(POSITIONS + np.nan), ValueError, "positions is nan"),
        (lambda: rotated_by([0, 1, 2, 3, 4]), TypeError, "positions is a list"),
        (lambda: rotated_by(POSITIONS.astype(np.uint8)), TypeError, "uint8"),
        (lambda: alibi_bias(5, 5, -np.ones(3)), ValueError, "Drop the sign"),
        (lambda: alibi_scores(X4, X4, np.ones(4)), ShapeError, "slopes has 4 entries, but Q has"),
        (lambda: alibi_scores(X4, X4, np.ones(1)), ShapeError, "slopes has 1 entries"),
        (lambda: alibi_scores(X4[0, 0], X4, np.ones(5)), ShapeError, "slopes has 5 entries"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
