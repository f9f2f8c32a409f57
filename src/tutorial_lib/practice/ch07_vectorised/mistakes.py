"""Wrong forms of the functions of chapter 07."""

import math

import numpy as np

from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.mistake import Mistake, named
from tutorial_lib.practice.wrong import SPLIT_HEADS
from tutorial_lib.projection import project_heads
from tutorial_lib.tiled import attend_block


def _powers(scores):
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def _share(scores):
    return _powers(scores) / _powers(scores).sum(axis=-1, keepdims=True)


def _block(*, fill=-np.inf, diagonal=lambda rows, S: S - rows, share=_share):
    """Attend; `diagonal` is the number of the last key that the first query of a block sees."""

    def block(Q, K_T, V, *, causal=False):
        scores = Q @ K_T
        if causal:
            rows, S = scores.shape[-2:]
            scores = np.where(np.tri(rows, S, diagonal(rows, S), dtype=bool), scores, fill)
        return share(scores) @ V

    return block


_ATTEND_BLOCK = (
    Mistake(
        "sees_the_future",
        "causal changes nothing: queries see the keys behind them",
        "Put -inf into the scores of the future, in the last columns.",
        _block(diagonal=lambda rows, S: S),
    ),
    Mistake(
        "mask_in_the_first_columns",
        "the mask lies on the first keys, but the queries are the last of the tokens",
        "Mask scores[..., -rows:] with causal_mask(rows); all keys before are allowed.",
        _block(diagonal=lambda rows, S: 0),
    ),
    Mistake(
        "hides_the_diagonal",
        "a query may not look at its own key",
        "The causal mask contains the diagonal.",
        _block(diagonal=lambda rows, S: S - rows - 1),
    ),
    Mistake(
        "filled_with_0",
        "hidden scores become 0, which still takes a share",
        "Put -inf in place of hidden scores: e to that power is 0.",
        _block(fill=0.0),
    ),
    Mistake(
        "not_divided",
        "the powers are not divided by their sum",
        "Divide each row of the result by the sum of its powers.",
        _block(share=_powers),
    ),
    Mistake(
        "sum_over_queries",
        "the powers are summed over the queries instead of the keys",
        "Sum along the last axis: powers @ ones, or powers.sum(axis=-1, keepdims=True).",
        _block(share=lambda scores: _powers(scores) / _powers(scores).sum(-2, keepdims=True)),
    ),
    Mistake(
        "overflow",
        "large scores give NaN",
        "Take each row's largest score away before the exponential.",
        _block(share=lambda scores: np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)),
    ),
    Mistake(
        "scaled_again",
        "the scores are divided by the square root of d_k, which Q has been already",
        "Use Q @ K_T as it is.",
        lambda Q, *keys, **options: _block()(Q / math.sqrt(Q.shape[-1]), *keys, **options),
    ),
)


def _in_blocks(see):
    """Attend in blocks; `see(Q, K_T, V, causal, rows)` answers for one slice of the queries."""

    def attend(Q, K_T, V, *, causal, block):
        parts = [
            see(Q, K_T, V, causal, slice(start, min(start + block, Q.shape[-2])))
            for start in range(0, Q.shape[-2], block)
        ]
        return np.concatenate(parts, axis=-2)

    return attend


def _all_keys(Q, K_T, V, causal, rows):
    return attend_block(Q[..., rows, :], K_T, V, causal=causal)


def _own_keys(Q, K_T, V, causal, rows):
    return attend_block(Q[..., rows, :], K_T[..., rows], V[..., rows, :], causal=causal)


def _unmasked(Q, K_T, V, causal, rows):
    stop = rows.stop if causal else None
    return attend_block(Q[..., rows, :], K_T[..., :stop], V[..., :stop, :])


def _last_block_left_out(Q, K_T, V, *, causal, block):
    heads = attend_block(Q, K_T, V, causal=causal)
    heads[..., V.shape[-2] // block * block :, :] = 0
    return heads


_ATTEND_IN_BLOCKS = (
    Mistake(
        "last_block_left_out",
        "the queries behind the last full block are left out",
        "Let start run over range(0, T, block): the last block may be shorter.",
        _last_block_left_out,
    ),
    Mistake(
        "own_keys_alone",
        "a block sees its own keys alone, and not those before it",
        "Let the keys begin at 0 for every block.",
        _in_blocks(_own_keys),
    ),
    Mistake(
        "all_keys_in_a_causal_block",
        "a causal block gets all keys, so its mask hides the wrong ones",
        "Cut the keys at the end of the block when causal is True.",
        _in_blocks(_all_keys),
    ),
    Mistake(
        "mask_within_the_block_forgotten",
        "a query sees the keys behind it within its own block",
        "Hand causal on to attend_block.",
        _in_blocks(_unmasked),
    ),
)


def _keys_as_columns(x, W):
    return np.swapaxes(project_heads(x, W), -1, -2)


def _keys_reshaped(x, W):
    H, _, d_k = W.shape
    return (x @ concat_heads(W)).reshape(H, d_k, len(x))


def _reshape_heads(heads):
    H, T, d_v = heads.shape
    return heads.reshape(T, H * d_v)


def _tiled(*, power=0.5, keys=_keys_as_columns, split=project_heads, lay=concat_heads, see=None):
    def layer(X, params, *, causal=False, block=128):
        Y = np.empty(X.shape, dtype=X.dtype)
        for index in np.ndindex(X.shape[:-2]):
            x = X[index]
            Q = split(x, params.W_Q) / params.d_k**power
            V, K_T = split(x, params.W_V), keys(x, params.W_K)
            heads = attend_block(Q, K_T, V, causal=causal if see is None else see)
            Y[index] = lay(heads) @ params.W_O
        return Y

    return layer


def _split_wrongly(name):
    split = named(SPLIT_HEADS, name).function
    return lambda x, W: split(x @ concat_heads(W), len(W))


def _in_float64(X, params, *, causal=False, block=128):
    arrays = (W.astype(float) for W in vars(params).values())
    return _tiled()(X.astype(float), type(params)(*arrays), causal=causal)


_TILED_MULTI_HEAD_ATTENTION = (
    Mistake(
        "no_scale",
        "the scores are not divided by sqrt(d_k)",
        "Divide W_Q by math.sqrt(params.d_k) once, before the first product.",
        _tiled(power=0),
    ),
    Mistake(
        "scaled_twice",
        "the scores are divided by sqrt(d_k) twice",
        "Divide W_Q alone: the scores are then right as they are.",
        _tiled(power=1),
    ),
    Mistake(
        "keys_reshaped",
        "the keys are reshaped into columns, which mixes tokens and features",
        "Make them as columns, W_K.T @ X.T, and cut the rows into heads.",
        _tiled(keys=_keys_reshaped),
    ),
    Mistake(
        "interleaved",
        "Q and V are cut into interleaved heads",
        "Head 0 takes the first columns: split_heads(x @ W, H).",
        _tiled(split=_split_wrongly("interleaved")),
    ),
    Mistake(
        "concat_without_transpose",
        "the heads are reshaped without swapping heads and tokens first",
        "Lay them side by side with concat_heads.",
        _tiled(lay=_reshape_heads),
    ),
    Mistake(
        "sees_the_future",
        "causal=True changes nothing",
        "Hand causal on to the blocks.",
        _tiled(see=False),
    ),
    Mistake(
        "float64_returned",
        "float32 goes in and float64 comes out",
        "Give new arrays the precision of X: np.empty(X.shape, dtype=X.dtype).",
        _in_float64,
    ),
)


def _pairs(Q, K):
    return np.einsum("...gtd,...hsd->...ghts", Q, K)


def _same_heads(Q, K):
    same = np.einsum("...htd,...hsd->...hts", Q, K)
    return np.repeat(same[..., None, :, :], Q.shape[-3], axis=-3)


_SCORE_ACROSS_HEADS = (
    Mistake(
        "heads_exchanged",
        "the two head axes are exchanged: the first must be that of the queries",
        "Write the letters of the result in the order of the task: g of Q, then h of K.",
        lambda Q, K: np.swapaxes(_pairs(Q, K), -3, -4),
    ),
    Mistake(
        "same_head_repeated",
        "every query meets the keys of its own head alone",
        "Give the two heads different letters: a shared letter pairs head 0 with head 0.",
        _same_heads,
    ),
    Mistake(
        "divided",
        "the scores are divided by sqrt(d_k)",
        "Leave the dot products as they are.",
        lambda Q, K: _pairs(Q, K) / math.sqrt(Q.shape[-1]),
    ),
)


def _window(T, widths, *, behind=0, shift=0):
    age = np.arange(T)[:, None] - np.arange(T)
    return (age >= behind) & (age < widths[:, None, None] + shift)


_WINDOW_MASKS = (
    Mistake(
        "one_too_many",
        "each window is one key too wide",
        "A window of 1 is the token itself: t - s must be below the width.",
        lambda T, widths: _window(T, widths, shift=1),
    ),
    Mistake(
        "itself_hidden",
        "a token may not look at itself",
        "t - s may be 0.",
        lambda T, widths: _window(T, widths, behind=1, shift=1),
    ),
    Mistake(
        "sees_the_future",
        "it looks as far ahead as back",
        "t - s must not be negative.",
        lambda T, widths: _window(T, widths) | np.swapaxes(_window(T, widths), -1, -2),
    ),
    Mistake(
        "transposed",
        "queries and keys are exchanged: it looks ahead and not back",
        "Rows are queries: np.arange(T)[:, None] - np.arange(T).",
        lambda T, widths: np.swapaxes(_window(T, widths), -1, -2),
    ),
)


def _norms(V):
    return np.linalg.norm(V, axis=-1)[..., None, :]  # (..., H, 1, S)


_WEIGHTED_NORMS = (
    Mistake(
        "squared",
        "the norms are squared: the root is missing",
        "Take the square root of the sum of squares, or np.linalg.norm(V, axis=-1).",
        lambda weights, V: weights * _norms(V) ** 2,
    ),
    Mistake(
        "rows_sum_to_1",
        "the result is divided by the sum of each row",
        "Leave the products as they are: rows need not sum to 1.",
        lambda weights, V: weights * _norms(V) / (weights * _norms(V)).sum(-1, keepdims=True),
    ),
    Mistake(
        "one_norm_a_head",
        "one norm is taken of all values of a head together",
        "Take a norm for each value: axis=-1 alone.",
        lambda weights, V: weights * np.linalg.norm(V, axis=(-1, -2))[..., None, None],
    ),
)


MISTAKES = {
    "attend_block": _ATTEND_BLOCK,
    "attend_in_blocks": _ATTEND_IN_BLOCKS,
    "tiled_multi_head_attention": _TILED_MULTI_HEAD_ATTENTION,
    "score_across_heads": _SCORE_ACROSS_HEADS,
    "window_masks": _WINDOW_MASKS,
    "weighted_norms": _WEIGHTED_NORMS,
}
