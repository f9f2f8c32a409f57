"""Checks for chapter 12."""

import math

import numpy as np

from tutorial_lib import attention
from tutorial_lib.onepass import (
    attend_rows,
    flash_backward,
    flash_forward,
    fold_block,
    last_keys,
)
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_V, WIDE, B, H, S, T, normal, qkv

MISTAKES, cases_of = read_room(__file__)

NOTHING = -1e30, 0.0, 0.0


def _ignore_underflow(function, *arguments, **options):
    """Call where an exponential may be too small for a float."""
    with np.errstate(under="ignore"):
        return function(*arguments, **options)


@cases_of(fold_block)
def check_fold_block():
    scores, V = 2 * normal(70, H, T, S), normal(71, H, S, D_V)
    low, high = scores.copy(), 3 * normal(72, H, T, S)
    low[..., 0] -= 9  # for every row a different maximum than in `high`
    hidden = np.where(attention.causal_mask(T, S) & (np.arange(T) != 2)[:, None], high, -np.inf)
    before = _ignore_underflow(fold_block, NOTHING, low, V)
    new = {"state": before, "scores": high, "V": normal(73, H, S, D_V)}
    yield "the first block", {"state": NOTHING, "scores": scores, "V": V}
    yield "a second block", new
    yield "a block of one key", {**new, "scores": high[..., :1], "V": V[:, :1]}
    yield "a block in which a row sees nothing", {**new, "scores": hidden}
    yield "scores in the thousands", {**new, "scores": 1000 * high}
    yield "much smaller scores than before", {**new, "scores": high - 2000}


@cases_of(attend_rows)
def check_attend_rows():
    tile, wide, batch = qkv(74, H), qkv(74, H, d_k=WIDE), qkv(74, B, H)
    every, causal = (last_keys(T, S, causal=causal) for causal in (False, True))
    large, few = {**tile, "Q": 400 * tile["Q"]}, last_keys(S, T, causal=True)
    yield "5 queries, 7 keys in blocks of 2", {**tile, "last": every, "block": 2}
    yield "causal, wider heads", {**wide, "last": causal, "block": 2}
    yield "one block for all", {**tile, "last": causal, "block": 100}
    yield "blocks of 1, a batch", {**batch, "last": causal, "block": 1}
    yield "scores in the thousands", {**large, "last": every, "block": 2}
    yield "queries that see nothing", {**qkv(74, H, rows=(S, T)), "last": few, "block": 2}
    yield "no query sees a key", {**tile, "last": causal - S, "block": 2}


@cases_of(flash_backward)
def check_flash_backward():
    def case(label, block, sizes, *lead, causal=True, d_k=D_K):
        inputs = qkv(74, *lead, rows=sizes, d_k=d_k).values()
        trace = _ignore_underflow(flash_forward, *inputs, causal=causal)
        arguments = {"trace": trace, "dheads": normal(77, *lead, sizes[0], D_V)}
        return (label, arguments, {"block": block} if block else {})

    yield case("blocks of 2", 2, (T, S), H, causal=False)
    yield case("causal, wider heads", 2, (T, S), H, d_k=WIDE)
    yield case("the default, one block for all", None, (T, S), H)
    yield case("as many queries as keys, a batch, blocks of 1", 1, (S, S), B, H)
    yield case("queries that see nothing", 2, (S, T), H)


def _merge_parts(heads, logsumexp):
    top = logsumexp.max(axis=0)
    sums = np.exp(logsumexp - top)
    total = sums.sum(axis=0)
    return (sums * heads).sum(axis=0) / total, top + np.log(total)


@cases_of(_merge_parts)
def check_merge_parts():
    logsumexp = (
        np.round(128 * normal(79, 3, T, 1)) / 64
    )  # exact in single precision, and 1024 later
    three = {"heads": normal(78, 3, T, D_V), "logsumexp": logsumexp}
    batch = {"heads": normal(80, 7, B, H, T, D_V), "logsumexp": 2 * normal(81, 7, B, H, T, 1)}
    without = {name: array.copy() for name, array in three.items()}
    without["heads"][1], without["logsumexp"][1] = 0, -1e30
    yield "three parts", three
    yield "seven parts, a batch", batch
    yield "scores above a thousand", {**three, "logsumexp": logsumexp + 1024}
    yield "a part that saw nothing", without


def _tiles_to_score(T, window, block):
    first = np.arange(0, T, block)
    last = np.minimum(first + block, T) - 1
    return (last[:, None] >= first) & (first[:, None] - last < window)


@cases_of(_tiles_to_score)
def check_tiles_to_score():
    yield "12 tokens, a window of 5, blocks of 4", {"T": 12, "window": 5, "block": 4}
    yield "a last block of 2", {"T": 14, "window": 6, "block": 4}
    yield "a window of 1", {"T": 12, "window": 1, "block": 4}
    yield "a window that ends with a block", {"T": 24, "window": 9, "block": 4}
    yield "a window of all", {"T": 9, "window": 20, "block": 2}
    yield "blocks of 1", {"T": 5, "window": 3, "block": 1}


def _weights_on(Q, K, logsumexp):
    scores = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
    return np.exp(scores - logsumexp)


@cases_of(_weights_on)
def check_weights_on():
    def case(label, some, more, *lead, d_k=D_K):
        Q, K = (np.round(8 * normal(82 + n, *lead, (T, S)[n], d_k)) / 8 for n in range(2))
        Q[..., 0], K[..., 0] = 2.0, more  # as much more in every score, and nothing in a weight
        scores = Q @ np.swapaxes(K, -1, -2) / math.sqrt(d_k)
        top = scores.max(axis=-1, keepdims=True)
        logsumexp = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
        exact = np.round(64 * logsumexp) / 64  # in single precision too
        return (label, {"Q": Q, "K": K[..., some, :], "logsumexp": exact})

    yield case("2 keys of 7", slice(1, 3), 1, H)
    yield case("one key, wider heads", slice(0, 1), -1, B, H, d_k=WIDE)
    yield case("scores above a thousand", slice(0, 2), 4096, H, d_k=16)
