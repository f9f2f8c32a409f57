"""Wrong forms of the functions of chapter 03."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.practice.wrong import ATTENTION_WEIGHTS, SCALED_DOT_PRODUCT_ATTENTION


def _softmax_no_max(scores, axis=-1):
    return np.exp(scores) / np.exp(scores).sum(axis=axis, keepdims=True)


def _softmax_global_max(scores, axis=-1):
    positive = np.exp(scores - scores.max())
    return positive / positive.sum(axis=axis, keepdims=True)


_SOFTMAX = (
    Mistake(
        "over_everything",
        "the whole array sums to 1, not each row",
        "Sum along `axis` and keep it: sum(axis=axis, keepdims=True).",
        lambda scores, axis=-1: np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum(),
    ),
    Mistake(
        "wrong_axis",
        "columns sum to 1 instead of rows",
        "axis=-1 runs along a row, over the keys of one query.",
        lambda scores, axis=-1: softmax(scores, axis=-2 if axis == -1 else -1),
    ),
    Mistake(
        "overflow",
        "large scores give NaN",
        "Take each row's largest score away first: the weights stay the same, exp stays small.",
        _softmax_no_max,
    ),
    Mistake(
        "global_max",
        "the largest score of the whole array is taken away, so rows far below it become NaN",
        "Take each row's own maximum: scores.max(axis=axis, keepdims=True).",
        _softmax_global_max,
    ),
    Mistake(
        "not_the_largest",
        "what is taken away from each row is not its largest score, so distant scores give NaN",
        "Take the maximum away, not the mean or the minimum.",
        lambda scores, axis=-1: _softmax_no_max(scores - scores.mean(axis, keepdims=True), axis),
    ),
    Mistake(
        "base_two",
        "2 is raised to the scores instead of e",
        "Use np.exp; the running example packs its ln 2 into W_Q.",
        lambda scores, axis=-1: softmax(scores * np.log(2), axis=axis),
    ),
    Mistake(
        "no_exponential",
        "scores are divided by their sum without the exponential",
        "Raise e to the scores first: weights must be positive.",
        lambda scores, axis=-1: scores / scores.sum(axis=axis, keepdims=True),
    ),
)


def _tril(T, S=None, *, k=0):
    return np.tril(np.ones((T, T if S is None else S), dtype=bool), k=k)


def _last(T, S):
    return 0 if S is None else S - T


_CAUSAL_MASK = (
    Mistake(
        "upside_down",
        "the mask is upside down: it shows the future and hides the past",
        "True on and below the diagonal: np.tril, not np.triu.",
        lambda T, S=None: _tril(S or T, T, k=-_last(T, S)).T,
    ),
    Mistake(
        "hides_the_diagonal",
        "the mask hides the diagonal: no token may look at itself",
        "The diagonal belongs to the past: k=S - T, not k=S - T - 1.",
        lambda T, S=None: _tril(T, S, k=_last(T, S) - 1),
    ),
    Mistake(
        "first_corner",
        "the diagonal starts in the first corner also when S differs from T",
        "The last query is the last token: shift the diagonal by S - T.",
        lambda T, S=None: _tril(T, S),
    ),
    Mistake(
        "true_means_hidden",
        "True and False have changed places: here True = may look",
        "Return the mask itself, not its negation.",
        lambda T, S=None: ~_tril(T, S, k=_last(T, S)),
    ),
    Mistake(
        "one_step_ahead",
        "each token may look one step ahead",
        "End at the diagonal: k=S - T.",
        lambda T, S=None: _tril(T, S, k=_last(T, S) + 1),
    ),
)


_LOG_SOFTMAX = (
    Mistake(
        "log_of_softmax",
        "it takes the logarithm of a softmax: weights too small for a float become log 0 = -inf",
        "Stay with logarithms: scores minus the logarithm of the sum, after taking the maximum.",
        lambda scores: np.log(softmax(scores)),
    ),
    Mistake(
        "overflow",
        "large scores give inf or NaN",
        "Take each row's largest score away before np.exp.",
        lambda scores: scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "maximum_lost",
        "the maximum is taken away inside the sum but not outside",
        "Shift once, at the start, and use the shifted scores in both places.",
        lambda scores: (
            scores - np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True))
        ),
    ),
    Mistake(
        "no_logarithm",
        "it returns weights, not their logarithms",
        "Subtract the logarithm of the sum; do not divide by the sum.",
        softmax,
    ),
    Mistake(
        "over_everything",
        "the sum runs over the whole array, not each row",
        "Sum along the last axis and keep it: sum(axis=-1, keepdims=True).",
        lambda scores: scores - scores.max() - np.log(np.exp(scores - scores.max()).sum()),
    ),
    Mistake(
        "wrong_axis",
        "the sum runs over the queries",
        "Sum over the keys: axis=-1.",
        lambda scores: _shifted(scores) - np.log(np.exp(_shifted(scores)).sum(-2, keepdims=True)),
    ),
)


def _shifted(scores):
    return scores - scores.max(axis=-2, keepdims=True)


def _padding(is_token, combine, *, keys=True):
    T = is_token.shape[-1]
    padding = is_token[:, None, None, :] if keys else is_token[:, None, :, None]
    return combine(_tril(T), padding)


_CAUSAL_PADDING_MASK = (
    Mistake(
        "either",
        "a key is allowed when either mask allows it",
        "Both must allow it: combine with &, not |.",
        lambda is_token: _padding(is_token, np.logical_or),
    ),
    Mistake(
        "padded_queries",
        "the rows of padded queries are hidden instead of the columns of padded keys",
        "Padding must not be looked at, so it hides keys: is_token[:, None, None, :].",
        lambda is_token: _padding(is_token, np.logical_and, keys=False),
    ),
    Mistake(
        "no_head_axis",
        "the head axis is missing, so the mask would not fit scores of shape (B, H, T, S)",
        "Leave an axis of 1 for the heads: is_token[:, None, None, :].",
        lambda is_token: _padding(is_token, np.logical_and)[:, 0],
    ),
    Mistake(
        "padded_queries_too",
        "padded queries are hidden as well; here they may look, and nobody looks at them",
        "Hide columns only: is_token[:, None, None, :].",
        lambda is_token: _padding(is_token, np.logical_and) & is_token[:, None, :, None],
    ),
    Mistake(
        "padding_only",
        "the future is not hidden",
        "Combine is_token with causal_mask(T).",
        lambda is_token: _padding(
            is_token, lambda causal, padding: padding | np.zeros_like(causal)
        ),
    ),
    Mistake(
        "true_means_hidden",
        "True and False have changed places: here True = may look",
        "Return the mask itself, not its negation.",
        lambda is_token: ~_padding(is_token, np.logical_and),
    ),
    Mistake(
        "upside_down",
        "the causal part is upside down: it shows the future and hides the past",
        "Use causal_mask(T): True on and below the diagonal.",
        lambda is_token: _padding(is_token, lambda causal, padding: causal.T & padding),
    ),
)


def _first_sum(weights, axes, close=np.isclose):
    return next((axis for axis in axes if close(weights.sum(axis=axis), 1).all()), 0)


def _from_the_end(weights):
    return range(-1, -weights.ndim - 1, -1)


_SUMMED_AXIS = (
    Mistake(
        "counted_from_the_front",
        "the axis is counted from the front, so it changes when a batch axis is added",
        "Count from the end: -1 is the last axis.",
        lambda weights: _first_sum(weights, _from_the_end(weights)) + weights.ndim,
    ),
    Mistake(
        "exactly_one",
        "sums are compared with == 1, but 0.9999999999999999 is a sum of 1 too",
        "Compare with np.allclose.",
        lambda weights: _first_sum(weights, _from_the_end(weights), close=np.equal),
    ),
    Mistake(
        "first_row_only",
        "only the first sum is looked at",
        "Every sum along the axis must be 1: np.allclose takes them all.",
        lambda weights: next(
            (a for a in _from_the_end(weights) if np.isclose(weights.sum(axis=a).flat[0], 1)), 0
        ),
    ),
    Mistake(
        "off_by_one",
        "the count from the end starts at 0",
        "The last axis is -1.",
        lambda weights: _first_sum(weights, _from_the_end(weights)) + 1,
    ),
)


MISTAKES = {
    "softmax": _SOFTMAX,
    "causal_mask": _CAUSAL_MASK,
    "attention_weights": ATTENTION_WEIGHTS,
    "log_softmax": _LOG_SOFTMAX,
    "causal_padding_mask": _CAUSAL_PADDING_MASK,
    "summed_axis": _SUMMED_AXIS,
    "scaled_dot_product_attention": SCALED_DOT_PRODUCT_ATTENTION,
}
