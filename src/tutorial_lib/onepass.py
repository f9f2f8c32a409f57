"""The softmax in one pass: attention that never holds the scores, and its backward pass, in NumPy.

What `pytorch/flash.py` runs as a kernel on a GPU.
"""

import math
from dataclasses import dataclass

import numpy as np

from tutorial_lib.contract import MADE_BY, checked, require
from tutorial_lib.errors import (
    ShapeError,
    first_true_index,
    require_gradient,
    require_one_precision,
)


@checked
def last_keys(T: "length", S: "length", *, causal: bool) -> "T 1":
    """Return the last key that each query may look at: the last of all, or by the causal mask.

    Built in chapter 12. Causal is `causal_mask(T, S)`; -1 and below is a fully masked row.

    >>> last_keys(5, 6, causal=True).shape
    (5, 1)
    """
    last = np.arange(T) + S - T if causal else np.full(T, S - 1)
    return last[:, None]


@checked
def score_tile(Q: "any ... rows d_k", K: "any ... keys d_k", seen: object) -> "... rows keys":
    """Score some queries against some keys, -inf where a query may not look.

    Built in chapter 12. Divides by the root of d_k itself.

    Parameters
    ----------
    seen : True, or booleans that broadcast to (..., rows, keys), True = may look

    >>> score_tile(np.ones((5, 4)), np.ones((6, 4)), True).shape
    (5, 6)
    """
    scores = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
    return np.where(seen, scores, -np.inf)


@checked
def fold_block(state: tuple, scores: "any ... rows keys", V: "any ... keys d_v") -> tuple:
    """Add a block of keys to the state of a softmax and its mix over the keys before.

    Built in chapter 12. The exponentials that were summed so far are relative to the old maximum;
    shrinking their sum and their mix by one factor makes them relative to the new one.

    Parameters
    ----------
    state : (maximum, total, mixed) of the keys before: the largest score, the sum of the
        exponentials exp(score - maximum), and the values mixed by these; (..., rows, 1) twice
        and (..., rows, d_v), or before the first block a number below every score, 0.0 and 0.0
    scores : -inf where a query may not look

    Source: Milakov & Gimelshein (2018), algorithm 3; Dao et al. (2022), section 3.1.

    >>> state = fold_block((-1e9, 0.0, 0.0), np.ones((5, 6)), np.ones((6, 7)))
    >>> [part.shape for part in state]
    [(5, 1), (5, 1), (5, 7)]
    """
    maximum, total, mixed = state
    raised = np.maximum(maximum, scores.max(axis=-1, keepdims=True))
    shrink, exponentials = np.exp(maximum - raised), np.exp(scores - raised)
    total = shrink * total + exponentials.sum(axis=-1, keepdims=True)
    mixed = shrink * mixed + exponentials @ V
    return raised, total, mixed


@checked
def attend_rows(
    Q: "any ... rows d_k",
    K: "any ... S d_k",
    V: "any ... S d_v",
    last: "int rows 1",
    block: "length",
):
    """Let a block of queries attend, one block of keys after the other: heads and logsumexp.

    Built in chapter 12. What `flash_kernel` does, in NumPy. A fully masked row gives
    zeros. Scores that overflow give NaN, or zeros where all of a row do so downwards;
    `flash_forward` refuses them.

    Parameters
    ----------
    last : the last key that each query may look at
    block : number of keys that are scored at once

    Returns
    -------
    heads : (..., rows, d_v)
    logsumexp : (..., rows, 1), the logarithm of the sum of exp(score): exp(score - logsumexp) is
        the weight; the lowest number of its precision for a fully masked row

    >>> found = attend_rows(np.ones((5, 4)), *np.ones((2, 6, 4)), last_keys(5, 6, causal=True), 2)
    >>> [part.shape for part in found]
    [(5, 4), (5, 1)]
    """
    state = np.finfo(V.dtype).min, 0.0, 0.0  # below every score; no sum; no mix
    for start in range(0, max(1, last.max() + 1), block):
        keys = np.arange(start, min(start + block, K.shape[-2]))
        scores = score_tile(Q, K[..., keys, :], keys <= last)
        state = fold_block(state, scores, V[..., keys, :])
    maximum, total, mixed = state
    total = np.where(total > 0, total, 1)  # 0 in a fully masked row
    return mixed / total, maximum + np.log(total)


@dataclass(frozen=True)
class FlashTrace:
    """What the backward pass needs of the forward pass; nothing here grows with T·S.

    Introduced in chapter 12.
    """

    Q: "... T d_k"
    K: "... S d_k"
    V: "... S d_v"
    heads: "... T d_v"
    logsumexp: "... T 1"  # the logarithm of each row's sum of exp(score)
    causal: bool  # whether `causal_mask(T, S)` held


MADE_BY[FlashTrace] = (
    "a FlashTrace, the record of the forward pass. Compute it with flash_forward(Q, K, V)."
)


@checked
def flash_forward(
    Q: "... T d_k",
    K: "... S d_k",
    V: "... S d_v",
    *,
    causal: bool = False,
    block: "length" = 64,
) -> FlashTrace:
    """Score and mix in one pass over blocks of keys, for one block of queries after the other.

    Built in chapter 12. The block changes the memory, and the result only by rounding.

    Parameters
    ----------
    causal : apply `causal_mask(T, S)`
    block : number of queries, and of keys, that are scored at once

    Raises
    ------
    TypeError : integers, half precision, two precisions
    ShapeError : batch axes that differ
    ValueError : a query all of whose scores, or the largest, overflow

    Source: Dao (2024), algorithm 1; blocks of queries and keys as in Rabe & Staats (2021).

    >>> flash_forward(*np.ones((3, 2, 5, 4))).heads.shape
    (2, 5, 4)
    """
    require_one_precision(Q=Q, K=K, V=V)
    require(
        Q.shape[:-2] == K.shape[:-2] == V.shape[:-2],
        ShapeError,
        f"Q, K and V have the leading axes {Q.shape[:-2]}, {K.shape[:-2]} and {V.shape[:-2]}; "
        f"expected the same. Copy what is shared: np.broadcast_to(K, ...).",
    )
    T, S = Q.shape[-2], K.shape[-2]
    last = last_keys(T, S, causal=causal)
    heads = np.empty((*Q.shape[:-1], V.shape[-1]), dtype=V.dtype)
    logsumexp = np.empty((*Q.shape[:-1], 1), dtype=V.dtype)
    for start in range(0, T, block):
        rows = np.s_[..., start : start + block, :]  # of any array (..., T, width)
        part = attend_rows(Q[rows], K, V, last[rows], block)
        heads[rows], logsumexp[rows] = part
    require_finite_logsumexp(logsumexp, last)
    return FlashTrace(Q, K, V, heads, logsumexp, causal)


@checked
def block_backward(trace: FlashTrace, dheads: "any ... T d_v", keys: "int n"):
    """Go back through a block of keys, whose weights are computed again from their scores.

    Built in chapter 12. The mean of a row of dweights needs no row of weights: it is the row of
    dheads times the row of heads. Divides by the root of d_k itself.

    Parameters
    ----------
    keys : the positions of the keys

    Returns
    -------
    dQ : (..., H, T, d_k), the contribution of these keys
    dK, dV : (..., H, n, d_k), (..., H, n, d_v)

    >>> record = flash_forward(*np.ones((3, 2, 5, 4)))
    >>> [d.shape for d in block_backward(record, np.ones((2, 5, 4)), np.arange(3))]
    [(2, 5, 4), (2, 3, 4), (2, 3, 4)]
    """
    Q, K, V = trace.Q, trace.K[..., keys, :], trace.V[..., keys, :]
    last = last_keys(Q.shape[-2], trace.K.shape[-2], causal=trace.causal)
    weights = np.exp(score_tile(Q, K, keys <= last) - trace.logsumexp)  # (..., T, n)
    dweights = dheads @ np.swapaxes(V, -1, -2)
    mean = (dheads * trace.heads).sum(axis=-1, keepdims=True)  # of dweights
    dproducts = weights * (dweights - mean) / math.sqrt(Q.shape[-1])
    dV = np.swapaxes(weights, -1, -2) @ dheads
    return dproducts @ K, np.swapaxes(dproducts, -1, -2) @ Q, dV


@checked
def flash_backward(trace: FlashTrace, dheads: "... T d_v", *, block: "length" = 64):
    """Go back from dL/dheads to dL/dQ, dL/dK and dL/dV, in memory that grows with T.

    Built in chapter 12.

    Parameters
    ----------
    block : number of keys whose weights are held at once; need not be that of the forward pass

    Raises
    ------
    TypeError : a dheads of another precision than heads
    ShapeError : a dheads of another shape than heads

    Source: Dao et al. (2022), appendix B.2.

    >>> record = flash_forward(*np.ones((3, 2, 5, 4)))
    >>> [d.shape for d in flash_backward(record, np.ones((2, 5, 4)))]
    [(2, 5, 4), (2, 5, 4), (2, 5, 4)]
    """
    require_gradient("dheads", dheads, trace.heads.shape)
    require_one_precision(heads=trace.heads, dheads=dheads)
    dQ, dK, dV = (np.zeros_like(A) for A in (trace.Q, trace.K, trace.V))
    S = trace.K.shape[-2]
    for start in range(0, S, block):
        keys = np.arange(start, min(start + block, S))
        term, *own = block_backward(trace, dheads, keys)
        dQ += term
        dK[..., keys, :], dV[..., keys, :] = own
    return dQ, dK, dV


def require_finite_logsumexp(logsumexp, last):
    """Require that scores did not overflow: a query that sees keys has a finite logsumexp."""
    overflows = (last >= 0) & ~(np.abs(logsumexp) < np.finfo(logsumexp.dtype).max)
    require(
        not overflows.any(),
        ValueError,
        f"the scores of query {first_true_index(overflows)[:-1]} overflow {logsumexp.dtype}; "
        f"expected a finite largest one. "
        f"Q and K are finite, but their products are not: make one smaller.",
    )
