"""Fewer pairs, sinks, gates and top-k keys: against loops, in the limit, and at the door."""

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle
from tests.memory import peak_bytes
from tutorial_lib.variants import patterns
from tutorial_lib.variants.patterns import (
    attention_with_sink,
    gate_heads,
    global_mask,
    random_mask,
    receptive_field,
    strided_mask,
    top_k_mask,
    window_mask,
    windowed_attention,
)

NO_SINK = np.full(3, -np.inf)


def layer_Y(X, params, weight_function):
    """The layer with weights that are computed from its scores in another way."""
    Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    return tl.concat_heads(weight_function(tl.attention_scores(Q, K)) @ V) @ params.W_O


# --- shown in the chapter and no function of the library ---


def rms_normed(X):
    """Rows of length sqrt(d), as QK-norm makes queries and keys."""
    return X / np.sqrt((X**2).mean(axis=-1, keepdims=True))


def capped_scores(scores, cap):
    """Scores that end at a cap, whose small ones stay nearly what they are."""
    return cap * np.tanh(scores / cap)


def differential_weights(scores, noise, factor):
    """Weights, less a fraction of those that other queries and keys give."""
    mask = tl.causal_mask(scores.shape[-1])
    return tl.attention_weights(scores, mask=mask) - factor * tl.attention_weights(noise, mask=mask)


def talking_weights(scores, score_mixer, weight_mixer):
    """Weights of scores that heads exchange, exchanged again."""
    mixed_scores = np.einsum("gh,...hts->...gts", score_mixer, scores)
    weights = tl.attention_weights(mixed_scores, mask=tl.causal_mask(scores.shape[-1]))
    return np.einsum("gh,...hts->...gts", weight_mixer, weights)


# --- the limits ---


@pytest.mark.parametrize("window", [5, 6, 99])
def test_a_window_as_long_as_the_sequence_is_the_layer(X, params, window):
    expected = tl.multi_head_attention(X, params, mask=tl.causal_mask(5))
    mask = window_mask(5, 5, window)
    np.testing.assert_array_equal(tl.multi_head_attention(X, params, mask=mask), expected)
    Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    heads = windowed_attention(Q, K, V, window)
    np.testing.assert_allclose(
        tl.concat_heads(heads) @ params.W_O, expected, rtol=1e-13, atol=1e-14
    )


def test_every_step_and_every_token_global_are_the_layer(X, params):
    np.testing.assert_array_equal(strided_mask(5, 1), tl.causal_mask(5))
    random_full_mask = random_mask(np.random.default_rng(0), 5, 5)
    for full_mask in (global_mask(5, range(5)), random_full_mask):
        Y = tl.multi_head_attention(X, params, mask=full_mask & tl.causal_mask(5))
        expected = tl.multi_head_attention(X, params, mask=tl.causal_mask(5))
        np.testing.assert_array_equal(Y, expected)


def test_a_sink_without_a_score_is_the_layer(X, params, square_mask, assert_close):
    Y = layer_Y(X, params, lambda s: attention_with_sink(s, NO_SINK, mask=square_mask))
    assert_close(Y, tl.multi_head_attention(X, params, mask=square_mask))


def test_twice_a_gate_of_zeros_is_the_layer(X, params):
    layer_trace = tl.trace(X, params)
    half_Y = gate_heads(layer_trace.heads, X, np.zeros((3, 12, 7)))  # exact: 1 / (1 + e^0) is 1/2
    np.testing.assert_array_equal(2 * tl.concat_heads(half_Y) @ params.W_O, layer_trace.Y)
    X_ones = np.concatenate([X[..., :-1], np.ones((*X.shape[:-1], 1))], axis=-1)  # a constant
    W_G = np.zeros((3, 12, 7))
    W_G[:, -1] = 40  # the gate is 1 in all its digits
    np.testing.assert_array_equal(gate_heads(layer_trace.heads, X_ones, W_G), layer_trace.heads)


def test_top_k_keys_of_all_tokens_are_the_layer(X, params):
    def weight_function(scores):
        return tl.attention_weights(scores, mask=top_k_mask(scores, 5, mask=tl.causal_mask(5)))

    expected = tl.multi_head_attention(X, params, mask=tl.causal_mask(5))
    np.testing.assert_array_equal(layer_Y(X, params, weight_function), expected)


def test_scores_far_below_their_bound_are_the_layer(X, params):
    expected = tl.multi_head_attention(X, params)
    Y = layer_Y(X, params, lambda s: tl.attention_weights(capped_scores(s, 1e7)))
    np.testing.assert_allclose(Y, expected, rtol=1e-10, atol=1e-12)
    errors_Y = [
        np.abs(
            layer_Y(X, params, lambda s, c=cap: tl.softmax(capped_scores(s, c))) - expected
        ).max()
        for cap in (1e2, 1e3)
    ]
    assert 90 < errors_Y[0] / errors_Y[1] < 110  # a third of (score / cap) squared of each score
    Q, K = (rms_normed(tl.project_heads(X, W)) for W in (params.W_Q, params.W_K))
    np.testing.assert_allclose(rms_normed(Q), Q, rtol=1e-14)  # the norm finds nothing to do
    weights = tl.attention_weights(tl.attention_scores(rms_normed(3 * Q), rms_normed(7 * K)))
    np.testing.assert_allclose(weights, tl.attention_weights(tl.attention_scores(Q, K)), rtol=1e-13)


def test_none_of_the_second_weights_is_the_layer(X, params, normal):
    noise = normal(8, *X.shape[:-2], 3, 5, 5)
    expected = tl.multi_head_attention(X, params, mask=tl.causal_mask(5))
    Y = layer_Y(X, params, lambda s: differential_weights(s, noise, 0))
    np.testing.assert_array_equal(Y, expected)  # exact: no more than 0 is taken from a weight
    row_sums = differential_weights(noise, noise[..., ::-1], 0.5).sum(axis=-1)
    np.testing.assert_allclose(row_sums, 0.5, rtol=1e-14)


def test_heads_that_exchange_nothing_are_the_layer(X, params, assert_close):
    expected = tl.multi_head_attention(X, params, mask=tl.causal_mask(5))
    Y = layer_Y(X, params, lambda s: talking_weights(s, np.eye(3), np.eye(3)))
    assert_close(Y, expected)


LIMITS = {
    "Window": test_a_window_as_long_as_the_sequence_is_the_layer,
    "Sparse patterns": test_every_step_and_every_token_global_are_the_layer,
    "Sink": test_a_sink_without_a_score_is_the_layer,
    "Gate": test_twice_a_gate_of_zeros_is_the_layer,
    "Top-k attention": test_top_k_keys_of_all_tokens_are_the_layer,
    "Bounded scores (QK-norm, soft cap)": test_scores_far_below_their_bound_are_the_layer,
    "Differential attention": test_none_of_the_second_weights_is_the_layer,
    "Talking heads": test_heads_that_exchange_nothing_are_the_layer,
}


# --- against loops ---


@pytest.mark.parametrize("T", [1, 2, 5, 8])
def test_masks_equal_loops_over_pairs(T):
    for n in (1, 2, 3, 8, 20):
        for S in (T, T + 1, T + 6):
            np.testing.assert_array_equal(window_mask(T, S, n), oracle.window_mask(T, S, n))
        np.testing.assert_array_equal(strided_mask(T, n), oracle.strided_mask(T, n))
    for tokens in ([], [0], (T - 1, 0), np.arange(T)[::2], range(T)):
        np.testing.assert_array_equal(global_mask(T, tokens), oracle.global_mask(T, tokens))


@pytest.mark.parametrize("n", [1, 3, 8])
def test_each_query_has_as_many_random_keys_and_every_key_its_turn(n):
    rng = np.random.default_rng(0)
    masks = np.array([random_mask(rng, 8, n) for _ in range(400)])
    assert (masks.sum(axis=-1) == n).all()
    np.testing.assert_allclose(masks.mean(axis=0), n / 8, atol=0.1)
    repeated_mask = random_mask(np.random.default_rng(0), 8, n)
    np.testing.assert_array_equal(masks[0], repeated_mask)


def test_weights_beside_a_sink_equal_loops(scores, normal, mask, assert_close):
    for sink in (normal(5, 3), np.array([0.0, -np.inf, 40.0]), NO_SINK, np.array([0, 1, 2])):
        weights = attention_with_sink(scores, sink, mask=mask)
        assert_close(weights, oracle.attention_with_sink(scores, sink, mask))


def test_gated_heads_equal_loops(X, normal, batch, assert_close):
    heads, W_G = normal(2, *batch, 3, 5, 7), normal(3, 3, 12, 7)
    assert_close(gate_heads(heads, X, W_G), oracle.gate_heads(heads, X, W_G))
    np.testing.assert_array_equal(gate_heads(heads, -1e4 * X**2, np.ones((3, 12, 7))), 0)


@pytest.mark.parametrize("k", [1, 2, 6])
def test_top_k_keys_equal_loops_that_sort(scores, k):
    causal = tl.causal_mask(5, 6)
    partial_mask, empty_row_mask = (mask & causal for mask in oracle.drawn_masks(scores.shape))
    tied_scores = np.rint(scores)  # many are equal
    pool_mask = np.tri(5, 6, k=2, dtype=bool)  # a key may be a pool of tokens, which counts early
    for A in (scores, tied_scores, tied_scores.astype(int)):
        for mask in (causal, partial_mask, empty_row_mask, window_mask(5, 6, 3), pool_mask):
            top_k_keys = top_k_mask(A, k, mask=mask)
            np.testing.assert_array_equal(top_k_keys, oracle.top_k_mask(A, k, mask))
        last_row = A[..., :1, :]
        np.testing.assert_array_equal(top_k_mask(last_row, k), oracle.top_k_mask(last_row, k, True))


@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("window", [1, 2, 4, 9, 30])
def test_blocks_of_a_window_equal_the_mask(normal, window, block, assert_close):
    for T, S, *batch in ((1, 1), (2, 2, 2), (7, 7), (9, 9, 2), (1, 6), (4, 9, 2)):
        shapes = (T, 4), (S, 4), (S, 7)
        Q, K, V = (normal(n, *batch, 3, *shape) for n, shape in enumerate(shapes, 1))
        heads = windowed_attention(Q, K, V, window, block=block)
        expected = tl.scaled_dot_product_attention(Q, K, V, mask=window_mask(T, S, window))
        np.testing.assert_allclose(heads, expected, rtol=1e-12, atol=1e-14)
    loop_heads = oracle.scaled_dot_product_attention(Q, K, V, oracle.window_mask(T, S, window))
    assert_close(heads, loop_heads)


def test_blocks_of_a_window_copy_no_key(normal):
    Q, K, V = normal(1, 8, 1, 64), normal(2, 8, 9_000, 64), normal(3, 8, 9_000, 64)
    peak_memory = peak_bytes(lambda: windowed_attention(Q, K, V, 9_000))
    assert peak_memory < K.nbytes / 2


def test_blocks_of_a_window_skip_the_keys_that_none_of_them_sees(normal, monkeypatch):
    block_shapes = []

    def logged_scores(Q, K):
        block_shapes.append((Q.shape[-2], K.shape[-2]))
        return tl.attention_scores(Q, K)

    monkeypatch.setattr(patterns, "attention_scores", logged_scores)
    Q, K, V = normal(1, 3, 9, 4), normal(2, 3, 20, 4), normal(3, 3, 20, 7)
    windowed_attention(Q, K, V, 3, block=4)
    assert block_shapes == [(4, 6), (4, 6), (1, 3)]
    block_shapes.clear()
    windowed_attention(Q, K[:, :9], V[:, :9], 3, block=4)
    assert block_shapes == [(4, 4), (4, 6), (1, 3)]


MASKS = {
    "causal": tl.causal_mask(7),
    "window": window_mask(7, 7, 3),
    "strided": strided_mask(7, 3),
    "global": global_mask(7, [2]),
    "global and causal": (global_mask(7, [0]) & tl.causal_mask(7)) | window_mask(7, 7, 2),
    "random": random_mask(np.random.default_rng(1), 7, 2),
    "nothing": np.zeros((7, 7), dtype=bool),
}


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("name", MASKS)
def test_receptive_field_is_what_a_changed_token_changes(name, n_layers, params, normal):
    def run_layers(X):
        for _ in range(n_layers):
            X = X + tl.multi_head_attention(X, params, mask=MASKS[name])
        return X

    X = normal(1, 7, 12)
    original_Y, dependence = run_layers(X), np.zeros((7, 7), dtype=bool)
    for s in range(7):
        changed_X = X.copy()
        changed_X[s] = normal(2, 12)
        dependence[:, s] = (np.abs(run_layers(changed_X) - original_Y) > 1e-9).any(axis=-1)
    np.testing.assert_array_equal(receptive_field(MASKS[name], n_layers), dependence)
    np.testing.assert_array_equal(oracle.receptive_field(MASKS[name], n_layers), dependence)


# --- bad input ---

S36, CAUSAL, X5 = np.zeros((3, 5, 6)), tl.causal_mask(5, 6), np.ones((5, 12))
HEADS, GATE = np.ones((3, 5, 7)), np.ones((3, 12, 7))
Q4, K4 = np.ones((3, 5, 4)), np.ones((3, 4, 4))
RNG = np.random.default_rng(0)


def sink_of(*scores):
    """Attention beside sinks of these scores."""
    return attention_with_sink(S36, np.array(scores))


BAD_CALLS = [
    (lambda: window_mask(5, 3, 2), ValueError, "T=5 queries and S=3 keys; expected"),
    (lambda: windowed_attention(Q4, K4, K4, 2, block=2), ValueError, "T=5 queries and S=4 keys"),
    (lambda: global_mask(5, [0, 5]), ValueError, "expected positions from 0 to 4."),
    (lambda: global_mask(5, [-1]), ValueError, "tokens is [-1]; expected positions from 0"),
    (lambda: global_mask(3, [True]), TypeError, "booleans into np.flat"),
    (lambda: global_mask(5, {0}), TypeError, "a set into sorted("),
    (lambda: random_mask(RNG, 5, 6), ValueError, "n=6 keys are to be sampled"),
    (lambda: receptive_field(CAUSAL, 2), tl.ShapeError, "mask has shape (5, 6); expected (T, T)"),
    (lambda: receptive_field(CAUSAL[:0, :0], 2), tl.ShapeError, "mask has shape (0, 0); expected"),
    (lambda: receptive_field(S36 > 0, 2), tl.ShapeError, "mask.any(axis=0)"),
    (lambda: receptive_field(np.eye(5), 2), TypeError, "expected a NumPy array of booleans"),
    (lambda: sink_of(0, np.nan, 0), ValueError, "sink is nan for head 1; expected a finite number"),
    (lambda: sink_of(0, 0, np.inf), ValueError, "sink is inf for head 2; expected"),
    (lambda: gate_heads(HEADS, 1e308 * X5, 1e308 * GATE), ValueError, "X @ W_G is inf at position"),
    (lambda: gate_heads(HEADS, 1e308 * X5, 1e3 * np.sign(GATE)), ValueError, "X @ W_G is "),
    (lambda: gate_heads(HEADS, 1e154 * X5, 2e153 * GATE), ValueError, "X @ W_G is inf at position"),
    (lambda: gate_heads(HEADS[None], X5, GATE), tl.ShapeError, "X has the batch axes ()"),
    (lambda: top_k_mask(S36, 7, mask=CAUSAL), ValueError, "k=7 keys are to be"),
    (lambda: top_k_mask(S36, 2), ValueError, "mask is None for 5 queries, all of which may"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS)
def test_bad_input_is_refused_in_a_sentence(call, error, message):
    with pytest.raises(error) as refusal:
        call()
    assert message in str(refusal.value)


@pytest.mark.parametrize("bad_value", [np.nan, np.inf])
def test_scores_are_refused_as_the_layer_refuses_them(scores, bad_value):
    scores = scores.copy()
    scores[..., 0, 1, 1] = bad_value
    hiding_mask = tl.causal_mask(5, 6) & (np.arange(6) != 1)
    for weight_function in (
        lambda **mask: tl.attention_weights(scores, **mask),
        lambda **mask: attention_with_sink(scores, np.zeros(3), **mask),
        lambda **mask: top_k_mask(scores, 2, **mask),
    ):
        with pytest.raises(ValueError, match=f"is {bad_value}; expected a finite number"):
            weight_function(mask=tl.causal_mask(5, 6))
        weight_function(mask=hiding_mask)


def test_a_row_of_scores_that_are_minus_infinity_is_no_row_for_the_sink(scores):
    scores = scores.copy()
    scores[..., 1, 2, :] = -np.inf
    for weight_function in (tl.attention_weights, lambda s: attention_with_sink(s, np.zeros(3))):
        with pytest.raises(ValueError, match=r"is -inf; expected a finite number"):
            weight_function(scores)
