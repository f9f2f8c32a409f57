"""The answers of chapter 14, computed."""

import numpy as np

import tutorial_lib as tl
from tests import oracle
from tutorial_lib.counting import cache_bytes
from tutorial_lib.onepass import attend_rows, last_keys
from tutorial_lib.variants.cache import KVCache, decode_step, merge_heads


def _sampled(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def rows_without_a_mask():
    """Read the running example with its mask and without one."""
    example = tl.running_example()
    right = tl.trace(example.X, example.params, mask=example.mask).Y
    wrong = np.abs(tl.trace(example.X, example.params).Y - right).max(axis=-1) > 1e-9
    words = [word for word, changed in zip(example.tokens, wrong, strict=True) if changed]
    return [
        words == ["dogs", "that", "bark"],
        words == ["dogs", "that"],
        words == ["bark"],
        not words,
    ]


def tokens_that_weigh_as_much():
    """Divide the bytes of the parameters by those that a token adds to the cache, to hundreds."""
    a_token = cache_bytes(n_layers=32, n_kv_heads=32, d_k=128, d_v=128, itemsize=2)
    billion = 6.74
    return round(billion * 10**9 * 2 / a_token, -2)


def why_keys_may_be_kept():
    """Add a token to a sequence, and compare the second layer's keys of the old tokens."""
    rng, X = np.random.default_rng(0), _sampled(6, 12)
    first, second = (tl.init_params(rng, d_model=12, n_heads=3) for _ in range(2))

    def keys(T, masked):
        mask = tl.causal_mask(T) if masked else None
        return tl.projection.project_heads(
            tl.multi_head_attention(X[:T], first, mask=mask), second.W_K
        )

    stay = {
        masked: np.allclose(keys(6, masked)[:, :5], keys(5, masked)) for masked in (True, False)
    }
    weights = tl.trace(X, first, mask=tl.causal_mask(6)).weights[:, 5, :5]
    return [stay[False], not weights.any(), stay[True] and not stay[False], not stay[True]]


def mask_of_a_piece():
    """Process five tokens, then three with each mask, and compare with one pass."""
    params = tl.init_params(np.random.default_rng(0), d_model=12, n_heads=3)
    X = _sampled(8, 12)
    right = oracle.mha(X, params, mask=tl.causal_mask(8))[5:]
    _, cache = decode_step(X[:5], params, KVCache.empty(params, 8))
    Q, K, V = (tl.projection.project_heads(X[5:], W) for W in (params.W_Q, params.W_K, params.W_V))
    cache = cache.append(K, V)

    def gives(mask):
        fits = mask is None or mask.shape == (3, cache.length)
        seen = mask if fits else tl.causal_mask(3, cache.length)
        heads = oracle.scaled_dot_product_attention(Q, cache.K, cache.V, seen)
        return fits and np.allclose(
            oracle.project_out(oracle.concat_heads(heads), params.W_O), right
        )

    others = tl.causal_mask(3, 8), tl.causal_mask(3), np.tri(3, 8, dtype=bool), None
    return [gives(other) for other in others]


def pages_that_are_shared():
    """Cut two sequences into pages of 16 tokens, and count those that both have."""
    texts = [[*range(40), *(name + str(n) for n in range(20))] for name in "ab"]
    pages = [[tuple(text[:end]) for end in range(16, len(text) + 1, 16)] for text in texts]
    return len(set(pages[0]) & set(pages[1]))


def how_parts_are_merged():
    """Let a query attend to two halves of its keys, with sums of exponentials 6 and 2."""
    scores = np.log([4.0, 2.0, 0.5, 1.5])
    Q, K, V = np.ones((1, 1)), scores[:, None], _sampled(4, 7)
    every = last_keys(1, 2, causal=False)
    first, second = (attend_rows(Q, K[s], V[s], every, 64) for s in np.s_[:2, 2:])
    assert np.allclose(np.exp([first[1].item(), second[1].item()]), [6, 2])
    right = oracle.scaled_dot_product_attention(Q, K, V)
    assert np.allclose(merge_heads(*map(np.stack, zip(first, second, strict=True))), right)

    def gives(one, other):
        return np.allclose(one * first[0] + other * second[0], right)

    return [gives(1 / 2, 1 / 2), gives(1, 0), gives(1, 1), gives(3 / 4, 1 / 4)]


def what_a_view_shows():
    """Take a view of five rows of a buffer of nine, and write the sixth row."""
    buffer = np.zeros((2, 9, 4))
    K = buffer[:, :5]
    before = K.copy()
    buffer[:, 5] = 7.0
    shared = np.shares_memory(K, buffer)
    return [
        K.shape[1] == 6,
        bool((K[:, -1] == 7).all()),
        np.array_equal(K, before) and shared,
        not shared,
    ]
