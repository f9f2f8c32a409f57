"""Wrong forms of the functions of chapter 05."""

import numpy as np

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.practice.mistake import Mistake, named
from tutorial_lib.practice.wrong import CONCAT_HEADS, SPLIT_HEADS


def _merged(heads):
    *lead, H, d_v = heads.shape
    return heads.reshape(*lead, H * d_v)


_CONCAT_TOKENS_FIRST = (
    Mistake(
        "concat_heads",
        "it is concat_heads, which takes the second axis from the end for the tokens",
        "Here that axis counts heads, and H and d_v are neighbours already: merge them.",
        concat_heads,
    ),
    Mistake(
        "swapped_first",
        "the token and head axes are swapped first, so a row mixes tokens",
        "H and d_v are neighbours already: merge them and swap nothing.",
        lambda heads: np.swapaxes(heads, -3, -2).reshape(_merged(heads).shape),
    ),
    Mistake(
        "interleaved",
        "the heads are interleaved: a row takes one feature of each head in turn",
        "Head 0 fills the first d_v columns, head 1 the next.",
        lambda heads: _merged(np.swapaxes(heads, -1, -2)),
    ),
    Mistake(
        "tokens_merged",
        "tokens and heads are merged instead of heads and features",
        "Merge the last two axes; the token axis stays.",
        lambda heads: heads.reshape(*heads.shape[:-3], -1, heads.shape[-1]),
    ),
)


def _comes_back(split, concat, X, n_heads):
    return np.array_equal(concat(split(X, n_heads)), X)


def _tokens_apart(split, X, n_heads):
    """Number the tokens of all sentences and cut them: say whether each is in its own place."""
    tokens = np.arange(X[..., 0].size).reshape(X.shape[:-1])
    marks = split(np.broadcast_to(tokens[..., None], X.shape), n_heads)
    return bool((marks == tokens[..., None, :, None]).all())


def _sentences_alike(split, concat, X, n_heads):
    rows = split(np.indices(X.shape)[-2], n_heads)
    stay = bool((rows == np.indices(rows.shape)[-2]).all())
    return _comes_back(split, concat, X, n_heads) and stay


def _as_split_heads(split, concat, X, n_heads):
    same = np.array_equal(split(X, n_heads), split_heads(X, n_heads))
    return same and _comes_back(split, concat, X, n_heads)


_PASSES_ROUND_TRIP = (
    Mistake(
        "round_trip_alone",
        "it asks only whether X comes back; a pair by reshape brings it back too",
        "Also require that row t of every head holds numbers of token t alone.",
        _comes_back,
    ),
    Mistake(
        "tokens_alone",
        "it asks only whether tokens stay apart, not whether X comes back",
        "Also compare concat(split(X, n_heads)) with X, number by number.",
        lambda split, concat, X, n_heads: _tokens_apart(split, X, n_heads),
    ),
    Mistake(
        "shapes_alone",
        "it compares shapes; a right shape may hold numbers in a wrong order",
        "Compare the numbers: np.array_equal.",
        lambda split, concat, X, n_heads: concat(split(X, n_heads)).shape == X.shape,
    ),
    Mistake(
        "sentences_alike",
        "it numbers the tokens of every sentence alike, so a pair that mixes sentences passes",
        "Give each token of each sentence a number of its own.",
        _sentences_alike,
    ),
    Mistake(
        "as_split_heads",
        "it compares with split_heads, which is one right way to cut among several",
        "Mark the tokens and look where the marks arrive: heads may lie in another order.",
        _as_split_heads,
    ),
)


_split_reshape = named(SPLIT_HEADS, "reshape_without_transpose").function
_concat_reshape = named(CONCAT_HEADS, "concat_without_transpose").function


def _parts_reshaped(packed):
    *batch, T, width = packed.shape
    return packed.reshape(3, *batch, T, width // 3)


def _packed(*, parts=None, split=split_heads, concat=concat_heads):
    def attend(packed, n_heads):
        cut = parts(packed) if parts else np.split(packed, 3, axis=-1)
        Q, K, V = (split(part, n_heads) for part in cut)
        return concat(scaled_dot_product_attention(Q, K, V))

    return attend


def _head_by_head(packed, n_heads):
    *batch, T, width = packed.shape
    pieces = packed.reshape(*batch, T, n_heads, 3, width // (3 * n_heads))
    Q, K, V = (np.swapaxes(pieces[..., i, :], -3, -2) for i in range(3))
    return concat_heads(scaled_dot_product_attention(Q, K, V))


_FIRST = "The 3 is cut out of the last axis: np.split(packed, 3, axis=-1)."
_SECOND = "Cut the width, (B, T, H, d), and then swap the token and head axes."
_THIRD = "Swap the token and head axes, and then merge H and d."
_ATTEND_PACKED = (
    Mistake(
        "first_reshape",
        "the first reshape is still wrong: Q gets the first third of the batch, keys and values "
        "included",
        _FIRST,
        _packed(parts=_parts_reshaped),
    ),
    Mistake(
        "second_reshape",
        "the second reshape is still wrong: a head holds features of other tokens",
        _SECOND,
        _packed(split=_split_reshape),
    ),
    Mistake(
        "third_reshape",
        "the third reshape is still wrong: a row of the result mixes tokens",
        _THIRD,
        _packed(concat=_concat_reshape),
    ),
    Mistake(
        "second_and_third",
        "the second and the third reshape are still wrong; they undo each other, not the damage",
        _SECOND,
        _packed(split=_split_reshape, concat=_concat_reshape),
    ),
    Mistake(
        "first_and_second",
        "the first and the second reshape are still wrong",
        _FIRST,
        _packed(parts=_parts_reshaped, split=_split_reshape),
    ),
    Mistake(
        "first_and_third",
        "the first and the third reshape are still wrong",
        _FIRST,
        _packed(parts=_parts_reshaped, concat=_concat_reshape),
    ),
    Mistake(
        "as_printed",
        "all three reshapes are as printed",
        _FIRST,
        _packed(parts=_parts_reshaped, split=_split_reshape, concat=_concat_reshape),
    ),
    Mistake(
        "packed_head_by_head",
        "it reads the width as heads first, each with its query, key and value",
        "The width is all queries, then all keys, then all values: cut it in 3, then in heads.",
        _head_by_head,
    ),
)


MISTAKES = {
    "concat_heads": CONCAT_HEADS,
    "concat_tokens_first": _CONCAT_TOKENS_FIRST,
    "passes_round_trip": _PASSES_ROUND_TRIP,
    "attend_packed": _ATTEND_PACKED,
}
