"""Wrong forms of the functions of chapter 05."""

import numpy as np

from tutorial_lib.heads import concat_heads
from tutorial_lib.mistakes.mistake import Mistake


def _concat_interleaved(heads):
    *batch, H, T, d_v = heads.shape
    return np.moveaxis(heads, -3, -1).reshape(*batch, T, H * d_v)


def _concat_reshape(heads):
    *batch, H, T, d_v = heads.shape
    return heads.reshape(*batch, T, H * d_v)


CONCAT_HEADS = (
    Mistake(
        "concat_without_transpose",
        "the heads are reshaped without a transpose, so a row mixes tokens",
        "Swap the head and token axes first, then merge the last two.",
        _concat_reshape,
    ),
    Mistake(
        "interleaved",
        "the heads are interleaved: a row takes one feature of each head in turn",
        "Head 0 fills the first d_v columns, head 1 the next.",
        _concat_interleaved,
    ),
    Mistake(
        "heads_reversed",
        "the heads lie in reverse order",
        "Head 0 stands first.",
        lambda heads: concat_heads(heads[..., ::-1, :, :]),
    ),
    Mistake(
        "summed",
        "the heads are added instead of laid side by side",
        "Concatenation keeps every number: the width is H*d_v.",
        lambda heads: heads.sum(axis=-3),
    ),
    Mistake(
        "along_tokens",
        "the heads are stacked along the tokens",
        "Lay them along the last axis: the width is H*d_v, the length stays T.",
        lambda heads: heads.reshape(*heads.shape[:-3], -1, heads.shape[-1]),
    ),
    Mistake(
        "averaged",
        "the heads are averaged",
        "Concatenation keeps every number: the width is H*d_v.",
        lambda heads: heads.mean(axis=-3),
    ),
)


MISTAKES = {
    "concat_heads": CONCAT_HEADS,
}
