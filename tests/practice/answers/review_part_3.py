"""What computes the keys of the review of Part III, with the sizes of each question."""

from dataclasses import replace

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.cache import KVCache, merge_heads
from tutorial_lib.variants.grouped import GroupedParams, group_params
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate
from tutorial_lib.variants.state import delta_step


def size_of_W_K():
    """The entries of W_K, d_model 2880, 64 heads of 64, 8 KV heads, as a multiple of 2880."""
    wide = [np.broadcast_to(0.0, (heads, 2880, 64)) for heads in (64, 8, 8)]
    params = GroupedParams(*wide, np.broadcast_to(0.0, (64 * 64, 2880)))
    return f"2880 · {params.W_K.size // 2880}"


def weight_of_the_sink():
    """The weight of a sink of score 0, beside exponentials that sum to 6 and one more, of 5."""
    exponentials = np.array([[[1.0, 2, 3, 5]]])
    assert exponentials[..., :3].sum() == 6
    return 1 - attention_with_sink(np.log(exponentials), np.zeros(1)).sum()


def tokens_in_shared_pages():
    """The tokens of all pages of 50 sequences, 1,000 shared tokens and 200 own, 8 per page."""
    pages = set()
    for user in range(50):
        tokens = [("prompt", n) for n in range(1000)] + [(user, n) for n in range(200)]
        pages |= {tuple(tokens[start - 8 : start]) for start in range(8, len(tokens) + 1, 8)}
    return 8 * len(pages)


def keys_without_a_copy(expressions):
    """Which expression is right for four heads in two groups, in the memory of K."""
    K = np.random.default_rng(0).standard_normal((2, 6, 4))
    right = [K[0], K[0], K[1], K[1]]
    found = [eval(text, {"np": np, "K": K}) for text in expressions]
    return [np.shares_memory(A, K) and np.array_equal(A.reshape(4, 6, 4), right) for A in found]


def half_a_correction():
    """What a key of length 1 reads that has written 8 and then 0, β = 1/2."""
    state, k = np.zeros((3, 1)), np.eye(3)[1]
    for value in (8.0, 0.0):
        state = delta_step(state, k, np.array([value]), beta=1 / 2)
    return (k @ state)[0]


def receptive_field_of_the_last_row():
    """On how many tokens the last row depends through windows of 4, 8 and 4 keys."""
    reached = np.eye(64, dtype=int)
    for window in (4, 8, 4):
        reached = window_mask(64, 64, window).astype(int) @ reached
    return np.count_nonzero(reached[-1])


def _changes(params, grouped, X):
    return not np.allclose(
        tl.multi_head_attention(X, grouped.expanded()), tl.multi_head_attention(X, params)
    )


def where_pooling_changes_nothing():
    """Which layers of 4 heads compute the same with 2 KV heads."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 12))
    sampled = tl.init_params(rng, d_model=12, n_heads=4)
    pairs = {name: np.repeat(W[::2], 2, axis=0) for name, W in vars(sampled).items() if W.ndim == 3}
    rows = np.tile(sampled.W_O[:3], (4, 1))
    layers = [
        sampled,
        replace(sampled, W_O=rows),
        replace(sampled, W_K=pairs["W_K"], W_V=pairs["W_V"]),
        replace(sampled, W_Q=pairs["W_Q"]),
    ]
    return [not _changes(layer, group_params(layer, 2), X) for layer in layers]


def merged_with_an_empty_part():
    """The merged head of two parts, of which the first sees no key."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((3, 2, 5, 4))
    second = tl.scaled_dot_product_attention(Q, K, V)
    logsumexp = np.log(np.exp(tl.attention_scores(Q, K)).sum(axis=-1, keepdims=True))
    nothing = np.zeros_like(second), np.full_like(logsumexp, -np.inf)
    merged = merge_heads(np.stack([nothing[0], second]), np.stack([nothing[1], logsumexp]))
    return [
        np.allclose(merged, second / 2),
        np.allclose(merged, second),
        np.isnan(merged).any(),
        np.allclose(merged, (nothing[0] + second) / 2),
    ]


def _score(distance, frequencies):
    """The score of one query and one key at a distance."""
    q, k = np.random.default_rng(0).standard_normal((2, 1, 2 * len(frequencies)))
    rotated = rotate(q, np.array([distance]), frequencies), rotate(k, np.array([0]), frequencies)
    return tl.attention_scores(*rotated).item()


def distance_of_a_full_turn():
    """At which distance a pair of frequency π/4 contributes what it does at 0."""
    quarter = np.array([np.pi / 4])
    [first, *_] = [n for n in range(1, 33) if np.isclose(_score(n, quarter), _score(0, quarter))]
    return first


def what_moves_with_the_heads():
    """What has to be reordered with heads 0 and 1, so that Y stays."""
    rng = np.random.default_rng(0)
    X, params = rng.standard_normal((5, 12)), tl.init_params(rng, d_model=12, n_heads=3)
    order = [1, 0, 2]
    W_O = params.W_O.reshape(3, -1, 12)[order].reshape(params.W_O.shape)
    features = [*range(4, 8), *range(4), *range(8, 12)]
    inward = [W[order] for W in (params.W_Q, params.W_K, params.W_V)]
    right = tl.multi_head_attention(X, params)
    found = [
        (X, params.W_O),
        (X, params.W_O[:, features]),
        (X[:, features], params.W_O),
        (X, W_O),
    ]
    return [
        np.allclose(tl.multi_head_attention(given, tl.Params(*inward, out)), right)
        for given, out in found
    ]


def position_after_padding():
    """The next position of the sequence of 3 words, beside one of 5."""
    params = tl.init_params(np.random.default_rng(0), d_model=12, n_heads=3)
    words = np.array([5, 3])
    cache = KVCache.empty(params, 9, batch=(2,), pad=words.max() - words)
    cache = cache.append(*np.zeros((2, 2, 3, words.max(), 4)))
    return np.broadcast_to(cache.positions(1), (2, 1))[1, 0]


def distance_at_half_the_frequencies():
    """At which distance words scored as words do 10 positions apart, with frequencies halved."""
    frequencies = rope_frequencies(8)
    now = _score(10, frequencies / 2)
    [before] = [n for n in range(64) if np.isclose(_score(n, frequencies), now)]
    return f"{before} positions"


def keys_seen_by_the_last_query():
    """How many of 6 keys the last of 2 queries sees with top-left alignment."""
    return np.tri(2, 6)[-1].sum()


def tokens_that_a_state_weighs():
    """From how many tokens on keys of 48 and values of 96 entries outweigh a state."""
    state = delta_step(np.zeros((48, 96)), np.eye(48)[0], np.ones(96))
    return min(n for n in range(1, 200) if n * (48 + 96) >= state.size)
