"""Fewer pairs, sinks, gates and top-k keys: against loops, in the limit, and at the door."""

import math

import numpy as np
import pytest

from tests import oracle
from tests.memory import peak_bytes
from tutorial_lib import (
    ShapeError,
    attention_scores,
    attention_weights,
    causal_mask,
    concat_heads,
    multi_head_attention,
    project_heads,
    running_example,
    scaled_dot_product_attention,
    softmax,
    trace,
)
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


def layer(X, params, weigh, *, finish=lambda heads: heads):
    """The layer with other weights, or with something done to what its heads found."""
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    return concat_heads(finish(weigh(Q, K) @ V)) @ params.W_O


def scored(weigh):
    """Weights that are computed from the layer's scores."""
    return lambda Q, K: weigh(attention_scores(Q, K))


# --- shown in the chapter and no function of the library ---


def normed(X):
    """Rows of length sqrt(d), as QK-norm makes queries and keys."""
    return X / np.sqrt((X**2).mean(axis=-1, keepdims=True))


def capped(scores, cap):
    """Scores that end at a cap, whose small ones stay nearly what they are."""
    return cap * np.tanh(scores / cap)


def differential(scores, others, factor):
    """Weights, less a fraction of those that other queries and keys give."""
    mask = causal_mask(scores.shape[-1])
    return attention_weights(scores, mask=mask) - factor * attention_weights(others, mask=mask)


def talking(scores, before, after):
    """Weights of scores that heads exchange, exchanged again."""
    mixed = np.einsum("gh,...hts->...gts", before, scores)
    weights = attention_weights(mixed, mask=causal_mask(scores.shape[-1]))
    return np.einsum("gh,...hts->...gts", after, weights)


# --- the limits ---


@pytest.mark.parametrize("window", [5, 6, 99])
def test_a_window_as_long_as_the_sequence_is_the_layer(X, params, window):
    right = multi_head_attention(X, params, mask=causal_mask(5))
    mask = window_mask(5, 5, window)
    np.testing.assert_array_equal(multi_head_attention(X, params, mask=mask), right)
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    heads = windowed_attention(Q, K, V, window)
    np.testing.assert_allclose(concat_heads(heads) @ params.W_O, right, rtol=1e-13, atol=1e-14)


def test_every_step_and_every_token_global_are_the_layer(X, params):
    np.testing.assert_array_equal(strided_mask(5, 1), causal_mask(5))
    sampled = random_mask(np.random.default_rng(0), 5, 5)
    for everything in (global_mask(5, range(5)), sampled):
        Y = multi_head_attention(X, params, mask=everything & causal_mask(5))
        right = multi_head_attention(X, params, mask=causal_mask(5))
        np.testing.assert_array_equal(Y, right)


def test_a_sink_without_a_score_is_the_layer(X, params, square_mask, assert_close):
    Y = layer(X, params, scored(lambda s: attention_with_sink(s, NO_SINK, mask=square_mask)))
    assert_close(Y, multi_head_attention(X, params, mask=square_mask))


def test_twice_a_gate_of_zeros_is_the_layer(X, params):
    run = trace(X, params)
    halved = gate_heads(run.heads, X, np.zeros((3, 12, 7)))  # exact: 1 / (1 + e^0) is 1/2
    np.testing.assert_array_equal(2 * concat_heads(halved) @ params.W_O, run.Y)
    ones = np.concatenate([X[..., :-1], np.ones((*X.shape[:-1], 1))], axis=-1)  # a constant
    W_G = np.zeros((3, 12, 7))
    W_G[:, -1] = 40  # the gate is 1 in all its digits
    np.testing.assert_array_equal(gate_heads(run.heads, ones, W_G), run.heads)


def test_as_many_chosen_keys_as_tokens_is_the_layer(X, params):
    def weigh(scores):
        return attention_weights(scores, mask=top_k_mask(scores, 5, mask=causal_mask(5)))

    right = multi_head_attention(X, params, mask=causal_mask(5))
    np.testing.assert_array_equal(layer(X, params, scored(weigh)), right)


def test_scores_far_below_their_bound_are_the_layer(X, params):
    right = multi_head_attention(X, params)
    far = layer(X, params, scored(lambda s: attention_weights(capped(s, 1e7))))
    np.testing.assert_allclose(far, right, rtol=1e-10, atol=1e-12)
    off = [
        np.abs(layer(X, params, scored(lambda s, c=cap: softmax(capped(s, c)))) - right).max()
        for cap in (1e2, 1e3)
    ]
    assert 90 < off[0] / off[1] < 110  # a third of (score / cap) squared of each score
    Q, K = (normed(project_heads(X, W)) for W in (params.W_Q, params.W_K))
    np.testing.assert_allclose(normed(Q), Q, rtol=1e-14)  # the norm finds nothing to do
    weights = attention_weights(attention_scores(normed(3 * Q), normed(7 * K)))
    np.testing.assert_allclose(weights, attention_weights(attention_scores(Q, K)), rtol=1e-13)


def test_none_of_the_second_weights_is_the_layer(X, params, normal):
    others = normal(8, *X.shape[:-2], 3, 5, 5)
    right = multi_head_attention(X, params, mask=causal_mask(5))
    Y = layer(X, params, scored(lambda s: differential(s, others, 0)))
    np.testing.assert_array_equal(Y, right)  # exact: no more than 0 is taken from a weight
    rows = differential(others, others[..., ::-1], 0.5).sum(axis=-1)
    np.testing.assert_allclose(rows, 0.5, rtol=1e-14)


def test_heads_that_exchange_nothing_are_the_layer(X, params, assert_close):
    right = multi_head_attention(X, params, mask=causal_mask(5))
    Y = layer(X, params, scored(lambda s: talking(s, np.eye(3), np.eye(3))))
    assert_close(Y, right)


LIMITS = {
    "Window": test_a_window_as_long_as_the_sequence_is_the_layer,
    "Sparse patterns": test_every_step_and_every_token_global_are_the_layer,
    "Sink": test_a_sink_without_a_score_is_the_layer,
    "Gate": test_twice_a_gate_of_zeros_is_the_layer,
    "Top-k attention": test_as_many_chosen_keys_as_tokens_is_the_layer,
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
    again = random_mask(np.random.default_rng(0), 8, n)
    np.testing.assert_array_equal(masks[0], again)


def test_weights_beside_a_sink_equal_loops(scores, normal, mask, assert_close):
    for sink in (normal(5, 3), np.array([0.0, -np.inf, 40.0]), NO_SINK):
        weights = attention_with_sink(scores, sink, mask=mask)
        assert_close(weights, oracle.attention_with_sink(scores, sink, mask))


def test_a_sink_of_whole_numbers_and_scores_of_single_precision_do(scores):
    sink = np.array([0, 1, 2])
    right = oracle.attention_with_sink(scores, sink)
    np.testing.assert_allclose(attention_with_sink(scores, sink), right, rtol=1e-10)
    single = attention_with_sink(scores.astype(np.float32), sink.astype(np.float32))
    assert single.dtype == np.float32


def test_gated_heads_equal_loops(X, normal, batch, assert_close):
    heads, W_G = normal(2, *batch, 3, 5, 7), normal(3, 3, 12, 7)
    assert_close(gate_heads(heads, X, W_G), oracle.gate_heads(heads, X, W_G))
    np.testing.assert_array_equal(gate_heads(heads, -1e4 * X**2, np.ones((3, 12, 7))), 0)


@pytest.mark.parametrize("k", [1, 2, 6])
def test_chosen_keys_equal_loops_that_sort(scores, k):
    seen = causal_mask(5, 6)
    some, empty = (drawn & seen for drawn in oracle.drawn_masks(scores.shape))
    tied = np.rint(scores)  # many are equal
    for given in (scores, tied, tied.astype(int)):
        for mask in (seen, some, empty, window_mask(5, 6, 3)):
            chosen = top_k_mask(given, k, mask=mask)
            np.testing.assert_array_equal(chosen, oracle.top_k_mask(given, k, mask))


def test_the_newest_token_chooses_without_a_mask(normal):
    scores = normal(1, 3, 1, 6)
    np.testing.assert_array_equal(top_k_mask(scores, 2), oracle.top_k_mask(scores, 2, True))


@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("window", [1, 2, 4, 9, 30])
def test_blocks_of_a_window_equal_the_mask(normal, window, block, assert_close):
    for T, S, *batch in ((1, 1), (2, 2, 2), (7, 7), (9, 9, 2), (1, 6), (4, 9, 2)):
        shapes = (T, 4), (S, 4), (S, 7)
        Q, K, V = (normal(n, *batch, 3, *shape) for n, shape in enumerate(shapes, 1))
        heads = windowed_attention(Q, K, V, window, block=block)
        right = scaled_dot_product_attention(Q, K, V, mask=window_mask(T, S, window))
        np.testing.assert_allclose(heads, right, rtol=1e-12, atol=1e-14)
    loops = oracle.scaled_dot_product_attention(Q, K, V, oracle.window_mask(T, S, window))
    assert_close(heads, loops)


def test_blocks_of_a_window_copy_no_key(normal):
    Q, K, V = normal(1, 8, 1, 64), normal(2, 8, 9_000, 64), normal(3, 8, 9_000, 64)
    peak = peak_bytes(lambda: windowed_attention(Q, K, V, 9_000))
    assert peak < K.nbytes / 2


def test_blocks_of_a_window_skip_the_keys_that_none_of_them_sees(normal, monkeypatch):
    scored = []

    def counted(Q, K):
        scored.append((Q.shape[-2], K.shape[-2]))
        return attention_scores(Q, K)

    monkeypatch.setattr(patterns, "attention_scores", counted)
    Q, K, V = normal(1, 3, 9, 4), normal(2, 3, 20, 4), normal(3, 3, 20, 7)
    windowed_attention(Q, K, V, 3, block=4)
    assert scored == [(4, 6), (4, 6), (1, 3)]
    scored.clear()
    windowed_attention(Q, K[:, :9], V[:, :9], 3, block=4)
    assert scored == [(4, 4), (4, 6), (1, 3)]


def test_a_row_that_sees_nothing_gets_no_weight(scores):
    mask = causal_mask(5, 6) & (np.arange(5) != 2)[:, None]
    for sink in (np.zeros(3), NO_SINK):
        weights = attention_with_sink(scores, sink, mask=mask)
        assert not weights[..., 2, :].any()
        assert np.isfinite(weights).all()
    assert not top_k_mask(scores, 3, mask=mask)[..., 2, :].any()


# --- the numbers of the chapter ---


def test_a_sink_is_a_gate(X, params, normal, assert_close):
    run, sink = trace(X, params), normal(5, 3)
    heads = attention_with_sink(run.scores, sink) @ run.V
    lse = np.log(np.exp(run.scores).sum(axis=-1))  # (..., H, T)
    gate = 1 / (1 + np.exp(sink[:, None] - lse))
    assert_close(heads, run.heads * gate[..., None])


@pytest.mark.parametrize(
    ("sink", "fractions"),
    [(-math.log(2), [1 / 2, 1 / 8, 1 / 4]), (0, [4 / 9, 1 / 9, 2 / 9])],
)
def test_a_sink_leaves_bark_fractions(sink, fractions, assert_close):
    example = running_example()
    scores = trace(example.X, example.params).scores
    weights = attention_with_sink(scores, np.full(2, float(sink)), mask=example.mask)
    assert_close(weights[0, 2], np.array(fractions))


def test_a_window_of_two_takes_dogs_from_bark(assert_close):
    example = running_example()
    weights = trace(example.X, example.params, mask=window_mask(3, 3, 2)).weights
    assert_close(weights[0, 2], np.array([0, 1 / 3, 2 / 3]))


def test_a_key_of_normed_rows_has_a_ceiling():
    Q, keys = np.ones((1, 4)), -np.ones((64, 4))
    keys[0] = 1
    top = attention_weights(attention_scores(normed(9 * Q), normed(keys)))[0, 0]
    np.testing.assert_allclose(top, 1 / (1 + 63 * math.exp(-2 * math.sqrt(4))), rtol=1e-14)
    assert round(float(top), 3) == 0.464


MASKS = {
    "causal": causal_mask(7),
    "window": window_mask(7, 7, 3),
    "strided": strided_mask(7, 3),
    "global": global_mask(7, [2]),
    "global and causal": (global_mask(7, [0]) & causal_mask(7)) | window_mask(7, 7, 2),
    "random": random_mask(np.random.default_rng(1), 7, 2),
    "nothing": np.zeros((7, 7), dtype=bool),
}


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("name", MASKS)
def test_receptive_field_is_what_a_changed_token_changes(name, n_layers, params, normal):
    def run(X):
        for _ in range(n_layers):
            X = X + multi_head_attention(X, params, mask=MASKS[name])
        return X

    X = normal(1, 7, 12)
    before, depends = run(X), np.zeros((7, 7), dtype=bool)
    for s in range(7):
        changed = X.copy()
        changed[s] = normal(2, 12)
        depends[:, s] = (np.abs(run(changed) - before) > 1e-9).any(axis=-1)
    np.testing.assert_array_equal(receptive_field(MASKS[name], n_layers), depends)
    np.testing.assert_array_equal(oracle.receptive_field(MASKS[name], n_layers), depends)


@pytest.mark.parametrize(
    ("n_layers", "window", "tokens"), [(1, 4, 4), (2, 4, 7), (3, 4, 10), (6, 4, 19), (6, 8, 43)]
)
def test_layers_of_a_window_reach_a_key_less_than_their_windows_each(n_layers, window, tokens):
    assert tokens == n_layers * (window - 1) + 1
    assert receptive_field(window_mask(50, 50, window), n_layers)[-1].sum() == tokens


LONG = 1024


def fraction(mask):
    """The fraction of the pairs of a causal mask."""
    return round(float((mask & causal_mask(LONG)).sum() / causal_mask(LONG).sum()), 4)


def test_patterns_of_a_thousand_tokens_reach_what_the_chapter_says():
    near, past = window_mask(LONG, LONG, 16), causal_mask(LONG)
    first = near | (global_mask(LONG, [0]) & past)
    assert fraction(receptive_field(near, 2)) == 0.0596
    assert fraction(receptive_field(first, 2)) == 0.0615  # token 0 sees only itself
    block_ends = np.arange(LONG) % 32 == 31
    fixed = window_mask(LONG, LONG, 32) | (block_ends & past)
    assert fraction(fixed) == 0.0899
    assert fraction(receptive_field(fixed, 2)) == 1


# --- at the door ---

S36, S56, CAUSAL = np.zeros((3, 5, 6)), np.zeros((5, 6)), causal_mask(5, 6)
HEADS, X5, GATE = np.ones((3, 5, 7)), np.ones((5, 12)), np.ones((3, 12, 7))
Q4, V7 = np.ones((3, 5, 4)), np.ones((3, 5, 7))
RNG = np.random.default_rng(0)
BAD = {
    "fewer keys": (lambda: window_mask(5, 3, 2), ValueError, "T=5 queries and S=3 keys; expected"),
    "a token behind": (
        lambda: global_mask(5, [0, 5]),
        ValueError,
        "expected positions from 0 to 4.",
    ),
    "a token before it": (lambda: global_mask(5, [-1]), ValueError, "token -1 lies outside the"),
    "booleans for tokens": (lambda: global_mask(3, [True]), TypeError, "booleans into np.flat"),
    "a set of tokens": (lambda: global_mask(5, {0}), TypeError, "a set into sorted("),
    "too many sampled": (lambda: random_mask(RNG, 5, 6), ValueError, "n=6 keys are to be sampled"),
    "no square": (
        lambda: receptive_field(CAUSAL, 2),
        ShapeError,
        "mask has shape (5, 6); expected (T, T)",
    ),
    "a mask per head": (lambda: receptive_field(S36 > 0, 2), ShapeError, "mask.any(axis=0)"),
    "numbers": (
        lambda: receptive_field(np.eye(5), 2),
        TypeError,
        "expected a NumPy array of booleans",
    ),
    "a sink of NaN": (
        lambda: attention_with_sink(S36, np.array([0, np.nan, 0])),
        ValueError,
        "sink is nan for head 1; expected a finite number, or -inf",
    ),
    "a sink of all": (
        lambda: attention_with_sink(S36, np.array([0, 0, np.inf])),
        ValueError,
        "sink is inf for head 2; expected",
    ),
    "gates that overflow": (
        lambda: gate_heads(HEADS, 1e308 * np.ones((5, 12)), 1e308 * np.ones((3, 12, 7))),
        ValueError,
        "X @ W_G is inf at position (0, 0, 0)",
    ),
    "gates that overflow both ways": (
        lambda: gate_heads(HEADS, 1e308 * np.ones((5, 12)), 1e3 * np.sign(GATE)),
        ValueError,
        "X @ W_G is ",
    ),
    "gates that overflow by many terms": (
        lambda: gate_heads(HEADS, 1e154 * X5, 2e153 * GATE),
        ValueError,
        "X @ W_G is inf at position (0, 0, 0)",
    ),
    "another batch": (lambda: gate_heads(HEADS[None], X5, GATE), ShapeError, "X has the batch axe"),
    "too many keys": (lambda: top_k_mask(S56, 7, mask=CAUSAL), ValueError, "k=7 keys are to be"),
    "the future": (lambda: top_k_mask(S56, 2), ValueError, "query 0 of 5 may look at key 2, a la"),
    "a key ahead": (
        lambda: patterns.require_past(np.tri(5, 6, k=2, dtype=bool), 5, 6),
        ValueError,
        "query 0 of 5 may look at key 2, a later token; expected a mask of the past",
    ),
    "padding alone": (
        lambda: patterns.require_past(np.ones((3, 1, 6), dtype=bool), 5, 6),
        ValueError,
        "Give mask=causal_mask(5, 6), or your mask & causal_mask(5, 6).",
    ),
    "more queries": (
        lambda: windowed_attention(Q4, Q4[:, 1:], V7[:, 1:], 2),
        ValueError,
        "T=5 queries and S=4 keys",
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_a_sentence(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)


def test_pools_of_tokens_are_chosen_by_their_own_mask(normal):
    scores, full = normal(1, 3, 8, 2), causal_mask(8)[:, 3::4]  # a pool counts once it is full
    patterns.require_past(causal_mask(5, 6), 5, 6)
    chosen = top_k_mask(scores, 1, mask=full)
    np.testing.assert_array_equal(chosen, oracle.top_k_mask(scores, 1, full))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_are_taken_as_the_layer_takes_them(scores, bad):
    scores = scores.copy()
    scores[..., 0, 1, 1] = bad
    hidden = causal_mask(5, 6) & (np.arange(6) != 1)
    for weigh in (
        lambda **mask: attention_weights(scores, **mask),
        lambda **mask: attention_with_sink(scores, np.zeros(3), **mask),
        lambda **mask: top_k_mask(scores, 2, **mask),
    ):
        with pytest.raises(ValueError, match=f"is {bad}; expected a finite number"):
            weigh(mask=causal_mask(5, 6))
        weigh(mask=hidden)


def test_a_row_of_scores_that_are_minus_infinity_is_no_row_for_the_sink(scores):
    scores = scores.copy()
    scores[..., 1, 2, :] = -np.inf
    for weigh in (attention_weights, lambda s: attention_with_sink(s, np.zeros(3))):
        with pytest.raises(ValueError, match=r"is -inf; expected a finite number"):
            weigh(scores)
