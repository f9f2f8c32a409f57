"""Normed heads: each head is brought to one scale and multiplied by a gain before the concat."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _side_by_side(heads):
    *batch, H, T, d_v = heads.shape
    return np.swapaxes(heads, -3, -2).reshape(*batch, T, H * d_v)


def _normed(heads, eps, axis=-1):
    return heads / np.sqrt((heads**2).mean(axis=axis, keepdims=True) + eps)


def _times(gain, heads):
    return gain[:, None, None] * heads


def reshape_alone(heads, gain, eps):
    *batch, H, T, d_v = heads.shape
    return _times(gain, _normed(heads, eps)).reshape(*batch, T, H * d_v)


def normed_together(heads, gain, eps):
    return _side_by_side(_times(gain, _normed(heads, eps, axis=(-3, -1))))


def normed_over_tokens(heads, gain, eps):
    return _side_by_side(_times(gain, _normed(heads, eps, axis=-2)))


def not_averaged(heads, gain, eps):
    root = np.sqrt((heads**2).sum(axis=-1, keepdims=True) + eps)
    return _side_by_side(_times(gain, heads / root))


def mean_subtracted(heads, gain, eps):
    centred = heads - heads.mean(axis=-1, keepdims=True)
    return _side_by_side(_times(gain, _normed(centred, eps)))


def eps_outside(heads, gain, eps):
    root = np.sqrt((heads**2).mean(axis=-1, keepdims=True))
    return _side_by_side(_times(gain, heads / (root + eps)))


def no_eps(heads, gain, eps):
    return _side_by_side(_times(gain, _normed(heads, 0.0)))


def gain_in_turn(heads, gain, eps):
    return np.tile(gain, heads.shape[-1]) * _side_by_side(_normed(heads, eps))


def gain_first(heads, gain, eps):
    return _side_by_side(_normed(_times(gain, heads), eps))


MISTAKES = (
    Mistake(
        "reshape_alone",
        "the heads are reshaped without a swap, so a row mixes tokens",
        "Swap the head and token axes first, then merge the last two.",
        reshape_alone,
    ),
    Mistake(
        "normed_together",
        "one root is taken over all heads of a token, so a loud head drowns the others",
        "Each head is divided by the root of its own d_v numbers.",
        normed_together,
    ),
    Mistake(
        "normed_over_tokens",
        "the mean runs over the tokens, so a row depends on the rows of other tokens",
        "Average over the features, the last axis of heads, and keep that axis.",
        normed_over_tokens,
    ),
    Mistake(
        "not_averaged",
        "the squares are added up and not averaged: it divides by the length",
        "The root mean square has a mean under the root.",
        not_averaged,
    ),
    Mistake(
        "mean_subtracted",
        "the mean of the features is taken away first, as a layer norm does",
        "Divide the numbers as they are: nothing is subtracted.",
        mean_subtracted,
    ),
    Mistake(
        "eps_outside",
        "eps is added to the root instead of the mean under it",
        "Add eps before the root is taken.",
        eps_outside,
    ),
    Mistake(
        "no_eps",
        "eps is not used, so a row of zeros becomes NaN",
        "Add eps to the mean of the squares.",
        no_eps,
    ),
    Mistake(
        "gain_in_turn",
        "the gains go to the columns in turn, so each head gets all of them",
        "Head h owns d_v columns side by side, and all of these get gain h.",
        gain_in_turn,
    ),
    Mistake(
        "gain_first",
        "the gain is multiplied in before the division, which takes its size away again",
        "Divide by the root first, then multiply by the gain.",
        gain_first,
    ),
)


def cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, H, T, d_v, eps=0.5):
        return 2 * rng.standard_normal((*batch, H, T, d_v)), rng.standard_normal(H), eps

    loud, gain, eps = arrays(H=4, T=6, d_v=3, eps=1e-5)
    loud = loud * 10.0 ** rng.permutation(4)[:, None, None]
    silent, other_gain, other_eps = arrays(2, H=3, T=5, d_v=4, eps=0.01)
    silent[:, 1, 2:] = 0
    return [
        Case("3 heads", arrays(H=3, T=5, d_v=7), 3),
        Case("2 heads, a batch", arrays(4, H=2, T=5, d_v=3, eps=0.3), 2),
        Case("two batch axes", arrays(3, 2, H=4, T=6, d_v=5), 1),
        Case("one head", arrays(H=1, T=4, d_v=6), 1),
        Case("heads of very different sizes", (loud, gain, eps), 1),
        Case("rows of zeros", (silent, other_gain, other_eps), 1),
        Case("heads one number wide", arrays(H=3, T=4, d_v=1), 1),
    ]


ASSIGNMENT = Assignment((Task("concat_normed", cases, MISTAKES),), withheld=("concat_heads",))
