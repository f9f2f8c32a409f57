"""Wrong forms of the functions of chapter 06."""

import math

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.heads import concat_heads
from tutorial_lib.mistakes.attention_weights import (
    SCALE_D_MODEL,
    SCALED_DOT_PRODUCT_ATTENTION,
    attend_scaled,
)
from tutorial_lib.mistakes.concatenation import CONCAT_HEADS
from tutorial_lib.mistakes.heads import SPLIT_HEADS
from tutorial_lib.mistakes.mistake import Mistake
from tutorial_lib.mistakes.queries_keys_values import wide
from tutorial_lib.projection import project_heads


def _layer(attend=scaled_dot_product_attention, split=None, concat=concat_heads, out=None):
    def layer(X, params, *, context=None, mask=None):
        source = X if context is None else context
        pairs = ((X, params.W_Q), (source, params.W_K), (source, params.W_V))
        Q, K, V = (split(wide(x, W), len(W)) if split else project_heads(x, W) for x, W in pairs)
        mixed = concat(attend(Q, K, V, mask=mask))
        return mixed @ params.W_O if out is None else out(mixed, params.W_O)

    return layer


def _transposed_out(concat, W_O):
    if W_O.shape[0] == W_O.shape[1]:
        return concat @ W_O.T
    return concat @ W_O.T.reshape(W_O.shape)


def _layer_scaled_by_d_model(X, params, *, context=None, mask=None):
    scale = math.sqrt(params.d_model)
    attend = _layer(lambda Q, K, V, *, mask: attend_scaled(Q, K, V, mask, scale))
    return attend(X, params, context=context, mask=mask)


def _from_attention(name):
    chosen = next(mistake for mistake in SCALED_DOT_PRODUCT_ATTENTION if mistake.name == name)
    return Mistake(name, chosen.says, chosen.mend, _layer(chosen.function))


def _from_split(name):
    chosen = next(mistake for mistake in SPLIT_HEADS if mistake.name == name)
    return Mistake(name, chosen.says, chosen.mend, _layer(split=chosen.function))


def _from_concat(name):
    chosen = next(mistake for mistake in CONCAT_HEADS if mistake.name == name)
    return Mistake(name, chosen.says, chosen.mend, _layer(concat=chosen.function))


_MULTI_HEAD_ATTENTION = (
    _from_attention("no_scale"),
    _from_attention("scale_d_k"),
    Mistake("scale_d_model", SCALE_D_MODEL.says, SCALE_D_MODEL.mend, _layer_scaled_by_d_model),
    _from_attention("softmax_over_queries"),
    _from_attention("q_k_swapped"),
    _from_split("reshape_without_transpose"),
    _from_concat("interleaved"),
    _from_concat("concat_without_transpose"),
    _from_concat("heads_reversed"),
    Mistake(
        "w_o_transposed",
        "W_O is transposed",
        "Everything is X @ W here: concat @ W_O.",
        _layer(out=_transposed_out),
    ),
    Mistake(
        "w_o_forgotten",
        "W_O is forgotten: the output is the concatenated heads",
        "Project out at the end: concat @ W_O.",
        _layer(out=lambda concat, W_O: concat),
    ),
    _from_attention("mask_upside_down"),
    _from_attention("mask_hides_the_diagonal"),
    _from_attention("mask_after_softmax"),
    _from_attention("mask_filled_with_0"),
)


MISTAKES = {
    "multi_head_attention": _MULTI_HEAD_ATTENTION,
}
