"""The same layer in blocks of queries: fast, and in memory that grows with T, not with T²."""

import math
from itertools import product

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.contract import checked, require
from tutorial_lib.errors import ShapeError, first_true_index, require_one_precision
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.projection import Params


@checked
def attend_block(
    Q: "any ... rows d_k", K_T: "any ... d_k S", V: "any ... S d_v", *, causal: bool = False
) -> "... rows d_v":
    """Let a block of queries attend; the scores are the only large array, rewritten in place.

    Built in chapter 07. Q has been divided by sqrt(d_k) already. We divide by the sums after
    mixing, which takes rows * d_v divisions instead of rows * S. A query whose largest score
    overflows gets NaN; `attend_in_blocks` refuses it.

    Parameters
    ----------
    K_T : the keys as columns
    causal : the queries are the last of the S tokens, and none sees a later token

    Raises
    ------
    TypeError : anything but three arrays of float32, or three of float64
    ShapeError : more queries than keys in a causal block

    >>> attend_block(np.ones((5, 4)), np.ones((4, 6)), np.ones((6, 7))).shape
    (5, 7)
    """
    require_tile_operands(Q, K_T, V, causal)
    scores = Q @ K_T  # (..., rows, S)
    if causal:
        rows = Q.shape[-2]
        np.copyto(scores[..., -rows:], -np.inf, where=~causal_mask(rows))
    scores -= scores.max(axis=-1, keepdims=True)  # exp cannot overflow
    exponentials = np.exp(scores, out=scores)
    ones = np.ones((scores.shape[-1], 1), dtype=V.dtype)
    total = exponentials @ ones  # (..., rows, 1)
    return exponentials @ V / total  # (..., rows, d_v)


@checked
def attend_in_blocks(
    Q: "any H T d_k", K_T: "any H d_k T", V: "any H T d_v", *, causal: bool, block: "length"
) -> "H T d_v":
    """Let all queries of a sequence attend: some heads at a time, one block of queries at a time.

    Built in chapter 07. Q has been divided by sqrt(d_k) already.

    Parameters
    ----------
    K_T : the keys as columns
    causal : a block is scored against the keys up to its own end, and no others
    block : number of queries

    Raises
    ------
    TypeError : anything but three arrays of float32, or three of float64
    ValueError : scores that overflow

    >>> attend_in_blocks(*np.ones((3, 3, 4, 4)), causal=True, block=2).shape
    (3, 4, 4)
    """
    require_tile_operands(Q, K_T, V, causal)
    H, T, _ = V.shape
    heads = np.empty_like(V)  # lies in memory as V does
    together = max(1, 2**19 // (block * T))  # heads whose scores stay in the cache
    for h, start in product(range(0, H, together), range(0, T, block)):
        some, rows = slice(h, h + together), slice(start, start + block)
        seen = slice(0, start + block if causal else T)
        tile = Q[some, rows], K_T[some, :, seen], V[some, seen]
        heads[some, rows] = attend_block(*tile, causal=causal)
    require(
        not np.isnan(heads).any(),
        ValueError,
        f"(head, query) {first_true_index(np.isnan(heads))[:-1]} got NaN: a score, or a sum of "
        f"values, overflows {heads.dtype}, or an input is NaN; expected finite numbers. Make X, "
        f"W_Q, W_K or W_V smaller, or look for NaN in them.",
    )
    return heads


@checked
def tiled_multi_head_attention(
    X: "... T d_model", params: Params, *, causal: bool = False, block: "length" = 128
) -> "... T d_model":
    """Run the layer block by block, one sequence of the batch after the other.

    Built in chapter 07. The result is that of `multi_head_attention`, for self-attention only.
    Beside its output it needs memory that grows with T, not with T². Float32 stays float32.

    Parameters
    ----------
    causal : no query sees a later token
    block : number of queries that are scored at once

    Raises
    ------
    TypeError : integers, half precision, two precisions
    ValueError : scores that overflow

    Source: blocks of queries as in Rabe & Staats (2021); the layer as in Vaswani et al. (2017),
    section 3.2.2.

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> tiled_multi_head_attention(np.ones((5, 12)), params).shape
    (5, 12)
    """
    require_one_precision(X=X, **vars(params))
    W_Q, W_K, W_V = (concat_heads(W) for W in (params.W_Q, params.W_K, params.W_V))
    W_Q = W_Q / math.sqrt(params.d_k)  # no score needs dividing
    H, T = params.n_heads, X.shape[-2]
    Y = np.empty(X.shape, dtype=X.dtype)
    for index in np.ndindex(X.shape[:-2]):
        sequence = X[index]  # (T, d_model)
        Q, V = split_heads(sequence @ W_Q, H), split_heads(sequence @ W_V, H)
        K_T = (W_K.T @ sequence.T).reshape(H, params.d_k, T)
        heads = attend_in_blocks(Q, K_T, V, causal=causal, block=block)
        np.matmul(concat_heads(heads), params.W_O, out=Y[index])
    return Y


def require_tile_operands(Q, K_T, V, causal):
    """Require one precision, and in a causal block at least as many keys as queries."""
    require_one_precision(Q=Q, K_T=K_T, V=V)
    require(
        not causal or Q.shape[-2] <= K_T.shape[-1],
        ShapeError,
        f"Q has {Q.shape[-2]} rows and K_T has {K_T.shape[-1]} columns; expected at least as "
        f"many keys as queries, since in a causal block the queries are the last of the "
        f"tokens. Pass the keys of these tokens too.",
    )
