"""Weights with a sink: one more score in each row, which takes weight and has no value."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import attention_weights, causal_mask, softmax


def _with_column(visible, sink):
    column = np.broadcast_to(sink[:, None, None], (*visible.shape[:-1], 1))
    return softmax(np.concatenate([visible, column], axis=-1))


def _visible(scores, mask):
    return np.where(mask, scores, -np.inf)


def _shifted(visible):
    top = visible.max(axis=-1, keepdims=True)
    return np.exp(visible - np.where(np.isfinite(top), top, 0))


def sink_has_a_column(scores, sink, mask):
    return _with_column(_visible(scores, mask), sink)


def rows_sum_to_one(scores, sink, mask):
    return attention_weights(scores, mask=mask)


def sink_not_raised(scores, sink, mask):
    positive = _shifted(_visible(scores, mask))
    return positive / (positive.sum(axis=-1, keepdims=True) + sink[:, None, None])


def sink_not_shifted(scores, sink, mask):
    positive = _shifted(_visible(scores, mask))
    return positive / (positive.sum(axis=-1, keepdims=True) + np.exp(sink)[:, None, None])


def sink_of_the_query(scores, sink, mask):
    visible = _visible(scores, mask)
    column = np.broadcast_to(sink[:, None], (*visible.shape[:-1], 1))
    return softmax(np.concatenate([visible, column], axis=-1))[..., :-1]


def nothing_shifted(scores, sink, mask):
    positive = np.exp(_visible(scores, mask))
    return positive / (positive.sum(axis=-1, keepdims=True) + np.exp(sink)[:, None, None])


def nan_in_empty_rows(scores, sink, mask):
    visible = _visible(scores, mask)
    top = visible.max(axis=-1, keepdims=True)
    positive = np.exp(visible - top)
    return positive / (positive.sum(axis=-1, keepdims=True) + np.exp(sink[:, None, None] - top))


def mask_after_softmax(scores, sink, mask):
    return _with_column(scores, sink)[..., :-1] * mask


def mask_upside_down(scores, sink, mask):
    return _with_column(_visible(scores, ~mask), sink)[..., :-1]


MISTAKES = (
    Mistake(
        "sink_has_a_column",
        "the sink's own weight is left in, as one more column",
        "The sink belongs to no key: the result has S columns.",
        sink_has_a_column,
    ),
    Mistake(
        "rows_sum_to_one",
        "the sink has no effect: each row still sums to 1",
        "The sink's power of e is part of what a row is divided by.",
        rows_sum_to_one,
    ),
    Mistake(
        "sink_not_raised",
        "the sink itself is added to the sum, not e to the power of it",
        "A sink is a score: raise e to it, as to the others.",
        sink_not_raised,
    ),
    Mistake(
        "sink_not_shifted",
        "the largest score is taken away from the scores but not from the sink",
        "Weights stay the same only if the same number is taken away from all, the sink included.",
        sink_not_shifted,
    ),
    Mistake(
        "sink_of_the_query",
        "query t gets the sink of head t, whatever its own head is",
        "NumPy lines shapes up from the right: which axes does a number for each head lack?",
        sink_of_the_query,
    ),
    Mistake(
        "nothing_shifted",
        "scores far from 0 give NaN",
        "Take a number away from the scores and the sink before np.exp, as softmax does.",
        nothing_shifted,
    ),
    Mistake(
        "nan_in_empty_rows",
        "a row with no True gives NaN",
        "The largest of nothing but -inf is -inf. The sink is never hidden: let it take part.",
        nan_in_empty_rows,
    ),
    Mistake(
        "mask_after_softmax",
        "hidden keys take weight, and it is removed only afterwards",
        "Hide the scores before anything is summed, so that hidden keys take nothing.",
        mask_after_softmax,
    ),
    Mistake(
        "mask_upside_down",
        "the mask is upside down: True is taken for hidden",
        "True = may look: keep the scores where the mask is True.",
        mask_upside_down,
    ),
)


def cases(rng):
    """Sizes all differ but where the label says otherwise."""

    def arrays(*batch, H, T, S):
        return 2 * rng.standard_normal((*batch, H, T, S)), rng.standard_normal(H) + 0.5

    everything = np.ones((5, 6), dtype=bool)
    own = rng.random((4, 5, 6)) < 0.6
    own[..., 2] = True  # nobody sees nothing
    padding = np.arange(4) >= np.array([1, 3])[:, None, None, None]  # (B, 1, 1, S)
    empty = causal_mask(5, 4) & padding
    far = 1000.0 * np.array([1, -1, 2])
    scores, sink = arrays(2, H=3, T=4, S=5)
    return [
        Case("all keys visible", (*arrays(H=3, T=5, S=6), everything), 2),
        Case("a batch, a causal mask", (*arrays(2, H=3, T=4, S=7), causal_mask(4, 7)), 2),
        Case("two batch axes, a mask for each head", (*arrays(3, 2, H=4, T=5, S=6), own), 1),
        Case("queries with nothing to look at", (*arrays(2, H=3, T=5, S=4), empty), 2),
        Case("as many queries as heads", (*arrays(2, H=4, T=4, S=6), causal_mask(4, 6)), 1),
        Case(
            "scores and sinks of 1,000 and more, of either sign",
            (scores + far[:, None, None], sink + far, causal_mask(4, 5)),
            2,
        ),
    ]


ASSIGNMENT = Assignment((Task("weights_with_sink", cases, MISTAKES),))
