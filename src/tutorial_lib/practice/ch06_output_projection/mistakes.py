"""Wrong forms of the functions of chapter 06."""

import math
from dataclasses import replace

import numpy as np

from tutorial_lib.attention import attention_weights, scaled_dot_product_attention
from tutorial_lib.heads import concat_heads
from tutorial_lib.multihead import trace
from tutorial_lib.practice.mistake import Mistake, named, taken_over
from tutorial_lib.practice.wrong import (
    CONCAT_HEADS,
    SCALED_DOT_PRODUCT_ATTENTION,
    SPLIT_HEADS,
    attend_scaled,
)
from tutorial_lib.projection import project_heads


def _layer(attend=scaled_dot_product_attention, split=None, concat=concat_heads, out=None):
    def layer(X, params, *, context=None, mask=None):
        source = X if context is None else context
        pairs = ((X, params.W_Q), (source, params.W_K), (source, params.W_V))
        Q, K, V = (
            split(x @ concat_heads(W), len(W)) if split else project_heads(x, W) for x, W in pairs
        )
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
    return taken_over(named(SCALED_DOT_PRODUCT_ATTENTION, name), _layer)


def _from_split(name):
    return taken_over(named(SPLIT_HEADS, name), lambda split: _layer(split=split))


def _from_concat(name):
    return taken_over(named(CONCAT_HEADS, name), lambda concat: _layer(concat=concat))


_SCALE_D_MODEL = named(SCALED_DOT_PRODUCT_ATTENTION, "scale_d_model")


_MULTI_HEAD_ATTENTION = (
    _from_attention("no_scale"),
    _from_attention("scale_d_k"),
    replace(_SCALE_D_MODEL, function=_layer_scaled_by_d_model),
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


def _traced(name, says, mend, change):
    """Name a wrong trace; `change` says what is wrong in the right one: (record, params, mask)."""

    def wrong(X, params, *, context=None, mask=None):
        record = trace(X, params, context=context, mask=mask)
        return replace(record, **change(record, params, mask))

    return Mistake(name, says, mend, wrong)


def _other_scale(record, params, mask):
    scores = record.scores * math.sqrt(params.d_k / params.d_model)
    weights = attention_weights(scores, mask=mask)
    heads = weights @ record.V
    concat = concat_heads(heads)
    arrays = {"scores": scores, "weights": weights, "heads": heads, "concat": concat}
    return arrays | {"Y": concat @ params.W_O}


_INTERLEAVED = named(CONCAT_HEADS, "interleaved")


def _interleave(record, params, mask):
    concat = _INTERLEAVED.function(record.heads)
    return {"concat": concat, "Y": concat @ params.W_O}


_TRACE = (
    _traced(
        "scores_masked",
        "scores are recorded after the mask, so that they hold -inf",
        "Keep the scores as they are; attention_weights(scores, mask=mask) hides keys by itself.",
        lambda record, params, mask: {
            "scores": record.scores if mask is None else np.where(mask, record.scores, -np.inf)
        },
    ),
    _traced(
        "scores_unscaled",
        "scores are recorded before the division by the square root of d_k",
        "Divide first: Q @ K.T / sqrt(d_k) is what the softmax gets.",
        lambda record, params, mask: {"scores": record.scores * math.sqrt(params.d_k)},
    ),
    _traced("scale_d_model", _SCALE_D_MODEL.says, _SCALE_D_MODEL.mend, _other_scale),
    _traced(
        "context_is_x",
        "context holds X although no context was given",
        "Pass context on as it came; None says that X looks at itself.",
        lambda record, params, mask: {
            "context": record.X if record.context is None else record.context
        },
    ),
    _traced("interleaved", _INTERLEAVED.says, _INTERLEAVED.mend, _interleave),
    _traced(
        "w_o_forgotten",
        "W_O is forgotten: Y is concat",
        "Project out at the end: concat @ W_O.",
        lambda record, params, mask: {"Y": record.concat},
    ),
)


def _parts(heads, W_O):
    """Return what each head adds to Y, and Y with an axis of 1 in the place of the heads."""
    H, d_v = heads.shape[-3], heads.shape[-1]
    parts = heads @ W_O.reshape(H, d_v, -1)
    return parts, parts.sum(axis=-3, keepdims=True)


def _length(array):
    return np.sqrt((array * array).sum(axis=-1))


def _of_parts(name, says, mend, measure):
    return Mistake(name, says, mend, lambda heads, W_O: measure(*_parts(heads, W_O)))


def _every_hth_row(heads, W_O):
    H, d_v = heads.shape[-3], heads.shape[-1]
    parts = heads @ np.swapaxes(W_O.reshape(d_v, H, -1), 0, 1)
    Y = parts.sum(axis=-3, keepdims=True)
    return (parts * Y).sum(axis=-1) / (Y * Y).sum(axis=-1)


_HEAD_SHARES = (
    _of_parts(
        "lengths",
        "it compares lengths, and lengths do not add up: parts may cancel",
        "Take the part along Y: its dot product with Y over the dot product of Y with itself.",
        lambda parts, Y: _length(parts) / _length(parts).sum(axis=-2, keepdims=True),
    ),
    _of_parts(
        "squares",
        "it takes the square of each part over the square of Y, which do not sum to 1",
        "Multiply each part by Y, not by itself.",
        lambda parts, Y: (parts * parts).sum(axis=-1) / (Y * Y).sum(axis=-1),
    ),
    _of_parts(
        "not_divided",
        "it is the dot product with Y, not yet divided",
        "Divide by the dot product of Y with itself; then the shares of a token sum to 1.",
        lambda parts, Y: (parts * Y).sum(axis=-1),
    ),
    _of_parts(
        "divided_once",
        "it is divided by the length of Y instead of its square",
        "Divide by (Y * Y).sum(axis=-1), without a root.",
        lambda parts, Y: (parts * Y).sum(axis=-1) / _length(Y),
    ),
    _of_parts(
        "mean_of_ratios",
        "it divides feature by feature and takes the mean, so features near 0 decide",
        "Add up over the features first, then divide.",
        lambda parts, Y: (parts / Y).mean(axis=-1),
    ),
    Mistake(
        "every_hth_row",
        "each head is multiplied by every H-th row of W_O",
        "The rows of a head stand together: W_O.reshape(H, d_v, -1).",
        _every_hth_row,
    ),
)


def _spread(W):
    return math.sqrt((W * W).mean())


_LENGTH_FACTOR = (
    Mistake(
        "rows_counted",
        "it counts the rows, but |x| already holds their sum",
        "x W has as many entries as W has columns: W.shape[1].",
        lambda W: _spread(W) * math.sqrt(len(W)),
    ),
    Mistake(
        "one_entry",
        "it is the factor for one entry of x W",
        "The squares of all m entries add up: multiply by math.sqrt(m).",
        _spread,
    ),
    Mistake(
        "no_root",
        "it is the factor of the squared length",
        "Take the root.",
        lambda W: W.shape[1] * (W * W).mean(),
    ),
    Mistake(
        "norm",
        "it is the length of all of W's entries, which grows with the rows",
        "Divide by math.sqrt(n), or take the mean of the squares in place of their sum.",
        lambda W: math.sqrt((W * W).sum()),
    ),
    Mistake(
        "mean_taken_away",
        "W.std() measures from the mean of the entries, and s from 0",
        "Take the mean of the squared entries: (W**2).mean().",
        lambda W: W.std() * math.sqrt(W.shape[1]),
    ),
    Mistake(
        "longest",
        "it is the largest factor that any vector can have, not the one to expect",
        "Take the mean of the squared entries for s², and count m of them.",
        lambda W: np.linalg.norm(W, 2),
    ),
)


_LAYER_PARAMETERS = (
    Mistake(
        "one_matrix",
        "it counts one matrix of four",
        "W_Q, W_K, W_V and W_O are four.",
        lambda d_model, heads, d_k, kv_heads: d_model * heads * d_k,
    ),
    Mistake(
        "out_forgotten",
        "W_O is not counted",
        "Add heads * d_k * d_model.",
        lambda d_model, heads, d_k, kv_heads: d_model * d_k * (heads + 2 * kv_heads),
    ),
    Mistake(
        "kv_heads_ignored",
        "W_K and W_V are counted for every head",
        "Keys and values have kv_heads heads.",
        lambda d_model, heads, d_k, kv_heads: 4 * d_model * heads * d_k,
    ),
    Mistake(
        "four_squares",
        "it is 4 d_model², which holds only where heads * d_k is d_model and nothing is shared",
        "Count with heads * d_k and kv_heads * d_k.",
        lambda d_model, heads, d_k, kv_heads: 4 * d_model**2,
    ),
    Mistake(
        "biases",
        "biases are counted too",
        "Count the four matrices alone.",
        lambda d_model, heads, d_k, kv_heads: (
            (d_model + 1) * d_k * (heads + 2 * kv_heads) + (heads * d_k + 1) * d_model
        ),
    ),
)


MISTAKES = {
    "trace": _TRACE,
    "multi_head_attention": _MULTI_HEAD_ATTENTION,
    "head_shares": _HEAD_SHARES,
    "length_factor": _LENGTH_FACTOR,
    "layer_parameters": _LAYER_PARAMETERS,
}
