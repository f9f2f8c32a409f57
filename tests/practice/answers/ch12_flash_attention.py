"""The answers of chapter 12, computed."""

import math
from unittest.mock import patch

import numpy as np

import tutorial_lib as tl
from tests import oracle
from tutorial_lib.counting import attention_bytes, attention_flop
from tutorial_lib.onepass import flash_forward, fold_block

EMPTY = -1e30, 0.0, 0.0  # the state before the first key


def _sampled(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def blocks_that_agree():
    """Run 100 tokens in each size of block, and compare with attention that holds all scores."""
    Q, K, V = _sampled(3, 2, 100, 64)
    exact = tl.scaled_dot_product_attention(Q, K, V)
    sizes, digits = [1, 7, 64, 100, 1000], 12
    close = {"rtol": 10.0**-digits, "atol": 10.0**-digits}
    agree = [
        block
        for block in sizes
        if np.allclose(flash_forward(Q, K, V, block=block).heads, exact, **close)
    ]
    return [agree == [1, 100], agree == [100, 1000], agree == sizes, agree == sizes[1:]]


def _fold(scores, V, blocks):
    """Fold blocks of keys in, each a list of positions."""
    state = EMPTY
    for keys in blocks:
        state = fold_block(state, scores[:, keys], V[keys])
    return state


def why_blocks_do_not_matter():
    """Fold 90 keys in different groups and orders, into sums and into an average of softmaxes."""
    scores, V, order = _sampled(5, 90), _sampled(90, 7), np.random.default_rng(1).permutation(90)
    top = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - top)
    sums = top, exponentials.sum(axis=-1, keepdims=True), exponentials @ V
    even, uneven = np.split(order, 6), np.array_split(order, 7)

    def same(blocks, scores=scores, exact=sums):
        return all(map(np.allclose, _fold(scores, V, blocks), exact))

    averaged = np.mean([tl.attention_weights(scores[:, keys]) @ V[keys] for keys in even], axis=0)
    thousands = 1000 * scores
    return [
        same(even) and same(uneven) and same([order]),
        not same(uneven),
        np.allclose(averaged, sums[2] / sums[1]),
        not same(even, thousands, _fold(thousands, V, [order])),
    ]


def what_a_higher_maximum_does():
    """Fold in a key whose score is higher by 3 ln 2, and remove the key again."""
    value = np.array([[1.0, 2.0, 4.0]])
    _, total, mixed = state = fold_block(EMPTY, np.array([[0.0]]), value)
    _, new_total, new_mixed = fold_block(state, np.array([[3 * math.log(2)]]), value)
    new_total, new_mixed = new_total - 1, new_mixed - value  # the new key has exponential 1

    def become(total, mixed):
        return np.allclose(new_total, total) and np.allclose(new_mixed, mixed)

    return [
        become(total * 8, mixed * 8),
        become(total / 8, mixed / 8),
        become(total / 8, mixed),
        become(total - 3, mixed - 3),
    ]


def what_is_stored_for_the_backward_pass():
    """Compute a tile of weights again from its scores and from each thing that might be stored."""
    Q, K, V = _sampled(3, 2, 12, 4)
    scores = np.where(tl.causal_mask(12), tl.attention_scores(Q, K), -np.inf)
    weights = tl.attention_weights(tl.attention_scores(Q, K), mask=tl.causal_mask(12))
    stored = flash_forward(Q, K, V, causal=True, block=4).logsumexp
    rows, tile = np.s_[:, 4:8], np.s_[:, 4:8, :4]  # the second queries, the first keys

    def gives(sums):
        return np.allclose(np.exp(scores[tile] - sums), weights[tile])

    tops = scores.reshape(2, 12, 3, 4).max(axis=-1)  # of each tile
    with np.errstate(divide="ignore", invalid="ignore"):  # −∞ less −∞ where keys are hidden
        from_last = scores[..., -1:] - np.log(weights[..., -1:])
    of_the_tile = np.log(np.exp(scores[tile]).sum(axis=-1, keepdims=True))
    return [
        gives(tops.max(axis=-1, keepdims=True)[rows]),
        gives(from_last[rows]),
        gives(of_the_tile),
        stored.shape == (2, 12, 1) and gives(stored[rows]),
    ]


def what_a_dweight_is_compared_with():
    """Run a softmax backwards, and compare with a difference from each candidate."""
    weights, dweights = tl.attention_weights(_sampled(5, 6)), _sampled(6, 5).T
    found = oracle.softmax_backward(weights, dweights)

    def compared_with(level):
        return np.allclose(weights * (dweights - level), found)

    return [
        compared_with((weights * dweights).sum(axis=-1, keepdims=True)),
        compared_with(dweights.max(axis=-1, keepdims=True)),
        compared_with(dweights.mean(axis=-2)),
        compared_with(weights),
    ]


def what_one_fused_program_changes():
    """Count the pairs that tiles score, and so flop, and the bytes, of a long sequence."""
    T, d = 2048, 64
    Q, K, V = np.ones((3, T, d), dtype=np.float32)
    with patch.object(tl.onepass, "score_tile", wraps=tl.onepass.score_tile) as scored:
        flash_forward(Q, K, V, block=256)
    pairs = sum(len(call.args[0]) * len(call.args[1]) for call in scored.call_args_list)
    flop = 2 * pairs * (d + d) / attention_flop(Q, K, V)  # fused, over step by step
    fused, steps = (attention_bytes(Q, K, V, fused=fused) for fused in (True, False))
    moved, tables = fused / steps, steps - fused == 4 * T * T * Q.itemsize
    return [
        flop < 1,
        flop == 1 and tables,
        flop < 1 and math.isclose(flop, moved),
        flop == 1 and moved == 1,
    ]
