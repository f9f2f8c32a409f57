"""Wrong forms of the task of Part I's review, from ids to the layer's output, step by step."""

import math

import numpy as np

from tutorial_lib import embedding
from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.heads import concat_heads
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.practice.ch01_embeddings import mistakes as embeddings
from tutorial_lib.practice.ch03_attention_weights import mistakes as attention_weights
from tutorial_lib.practice.ch06_output_projection import mistakes as output_projection
from tutorial_lib.practice.mistake import Mistake, taken_over
from tutorial_lib.projection import Params, project_heads


def _sentence(embed=embedding.embed, layer=multi_head_attention, mask=causal_mask):
    def attend_to_sentence(ids, E, P, params):
        return layer(embed(ids, E, P), params, mask=mask(ids.shape[-1]))

    return attend_to_sentence


def _layer(attend):
    def layer(X, params, *, mask):
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        return concat_heads(attend(Q, K, V, mask)) @ params.W_O

    return layer


def _scores(Q, K, mask):
    return np.where(mask, Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]), -np.inf)


def _attend_with(softmax):
    return _layer(lambda Q, K, V, mask: softmax(_scores(Q, K, mask)) @ V)


def _softmax_or_nan(scores):
    positive = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return positive / positive.sum(axis=-1, keepdims=True)


def _not_divided(Q, K, V, mask):
    scores = _scores(Q, K, mask)
    return np.exp(scores - scores.max(axis=-1, keepdims=True)) @ V


def _max_with_hidden(Q, K, V, mask):
    scores = _scores(Q, K, True)
    positive = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    return positive / positive.sum(axis=-1, keepdims=True) @ V


def _with_params(change):
    def layer(X, params, *, mask):
        arrays = change(params.W_Q, params.W_K, params.W_V, params.W_O)
        return multi_head_attention(X, Params(*arrays), mask=mask)

    return layer


def _taken(module, name, make):
    """Take over the mistakes of one function as mistakes of the whole task."""
    return {m.name: taken_over(m, make) for m in module.MISTAKES[name]}


_EMBED = _taken(embeddings, "embed", lambda embed: _sentence(embed=embed))
_LAYER = _taken(output_projection, "multi_head_attention", lambda layer: _sentence(layer=layer))
_SOFTMAX = _taken(attention_weights, "softmax", lambda own: _sentence(layer=_attend_with(own)))
_MASK = _taken(attention_weights, "causal_mask", lambda mask: _sentence(mask=mask))

_PROJECT = (
    Mistake(
        "one_head_for_all",
        "every head uses the matrices of head 0",
        "Each head has matrices of its own: X[..., None, :, :] @ W meets all of them.",
        _sentence(
            layer=_with_params(lambda *W: (*(w[:1].repeat(len(w), axis=0) for w in W[:3]), W[3]))
        ),
    ),
    Mistake(
        "keys_with_w_q",
        "the keys are projected with W_Q",
        "Keys have a matrix of their own, W_K.",
        _sentence(layer=_with_params(lambda W_Q, W_K, W_V, W_O: (W_Q, W_Q, W_V, W_O))),
    ),
)
_SCORE = (
    Mistake(
        "sees_the_future",
        "no mask hides the future",
        "Put -inf in place of the scores of later tokens, before the softmax.",
        _sentence(mask=lambda T: None),
    ),
    Mistake(
        "mask_hides_the_diagonal",
        "the mask hides the diagonal, so the first token has nothing to look at and gives NaN",
        "The diagonal belongs to the past: np.tri(T) is 1 on it.",
        _sentence(
            layer=_attend_with(_softmax_or_nan),
            mask=lambda T: np.tri(T, k=-1, dtype=bool),
        ),
    ),
)
_LARGE = (
    Mistake(
        "max_with_hidden",
        "the largest score of a row is taken with the hidden keys, and may leave nothing of others",
        "Put -inf in place of hidden scores first, then take the row's maximum.",
        _sentence(layer=_layer(_max_with_hidden)),
    ),
)
_MIX = (
    Mistake(
        "weights_transposed",
        "the weights are transposed: a row mixes with the weights that others gave to it",
        "Rows are queries: weights @ V.",
        _sentence(
            layer=_layer(
                lambda Q, K, V, mask: np.swapaxes(softmax(_scores(Q, K, mask)), -1, -2) @ V
            )
        ),
    ),
    Mistake(
        "not_divided",
        "the powers are not divided by their sum, so the weights of a row do not sum to 1",
        "Divide by powers.sum(axis=-1, keepdims=True).",
        _sentence(layer=_layer(_not_divided)),
    ),
)
_OUT = (
    Mistake(
        "averaged",
        "the output is divided by the number of heads",
        "Heads are added up, each through its own rows of W_O; nothing is averaged.",
        _sentence(
            layer=lambda X, params, *, mask: (
                multi_head_attention(X, params, mask=mask) / params.n_heads
            )
        ),
    ),
    Mistake(
        "input_added",
        "X is added to the output; a model does that around the layer, not in it",
        "Return concat @ W_O alone.",
        _sentence(layer=lambda X, params, *, mask: X + multi_head_attention(X, params, mask=mask)),
    ),
)


def _chosen(table, *names):
    return tuple(table[name] for name in names)


_ATTEND_TO_SENTENCE = (
    *_EMBED.values(),
    *_PROJECT,
    *_chosen(_LAYER, "q_k_swapped", "reshape_without_transpose"),
    *_chosen(_LAYER, "no_scale", "scale_d_k", "scale_d_model"),
    *_SCORE,
    *_chosen(_LAYER, "mask_upside_down", "mask_after_softmax", "mask_filled_with_0"),
    *_chosen(_MASK, "one_step_ahead"),
    *_chosen(_LAYER, "softmax_over_queries"),
    *_chosen(_SOFTMAX, "over_everything", "overflow", "base_two"),
    *_LARGE,
    *_MIX,
    *_chosen(_LAYER, "interleaved", "concat_without_transpose", "heads_reversed"),
    *_chosen(_LAYER, "w_o_transposed", "w_o_forgotten"),
    *_OUT,
)


MISTAKES = {
    "attend_to_sentence": _ATTEND_TO_SENTENCE,
}
