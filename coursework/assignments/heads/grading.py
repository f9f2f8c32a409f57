"""Grouped heads: several query heads share one head of keys and values."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import softmax


def _attend(Q, K, V):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    return softmax(scores) @ V


def _repeated(shared, n_heads):
    return np.repeat(shared, n_heads // shared.shape[-3], axis=-3)


def _tiled(shared, n_heads):
    return np.concatenate([shared] * (n_heads // shared.shape[-3]), axis=-3)


def groups_in_turn(Q, K, V):
    H = Q.shape[-3]
    return _attend(Q, _tiled(K, H), _tiled(V, H))


def values_in_turn(Q, K, V):
    H = Q.shape[-3]
    return _attend(Q, _repeated(K, H), _tiled(V, H))


def first_group_for_all(Q, K, V):
    return _attend(Q, K[..., :1, :, :], V[..., :1, :, :])


def groups_averaged(Q, K, V):
    return _attend(Q, K.mean(axis=-3, keepdims=True), V.mean(axis=-3, keepdims=True))


def one_head_for_each_group(Q, K, V):
    size = Q.shape[-3] // K.shape[-3]
    return _attend(Q[..., ::size, :, :], K, V)


def not_scaled(Q, K, V):
    H = Q.shape[-3]
    scores = Q @ np.swapaxes(_repeated(K, H), -1, -2)
    return softmax(scores) @ _repeated(V, H)


def scaled_by_all_heads(Q, K, V):
    H = Q.shape[-3]
    scores = Q @ np.swapaxes(_repeated(K, H), -1, -2) / np.sqrt(H * Q.shape[-1])
    return softmax(scores) @ _repeated(V, H)


def softmax_over_queries(Q, K, V):
    H = Q.shape[-3]
    scores = Q @ np.swapaxes(_repeated(K, H), -1, -2) / np.sqrt(Q.shape[-1])
    return softmax(scores, axis=-2) @ _repeated(V, H)


MISTAKES = (
    Mistake(
        "groups_in_turn",
        "query head h uses group h % G: the heads of a group are not neighbours",
        "Repeat each group H/G times in a row, as np.repeat does, not the whole list of groups.",
        groups_in_turn,
    ),
    Mistake(
        "values_in_turn",
        "the keys are shared as asked, but the values are dealt out in turn",
        "Keys and values of a group go to the same query heads.",
        values_in_turn,
    ),
    Mistake(
        "first_group_for_all",
        "every query head uses the keys and values of group 0",
        "Head h uses group h // (H/G).",
        first_group_for_all,
    ),
    Mistake(
        "groups_averaged",
        "the groups are averaged into one head of keys and values",
        "Each group keeps its own keys and values.",
        groups_averaged,
    ),
    Mistake(
        "one_head_for_each_group",
        "only one query head of each group is left",
        "The output has H heads, as many as Q.",
        one_head_for_each_group,
    ),
    Mistake(
        "not_scaled",
        "the scores are not divided by √d_k",
        "Divide by np.sqrt(Q.shape[-1]) before the softmax.",
        not_scaled,
    ),
    Mistake(
        "scaled_by_all_heads",
        "the scores are divided by √(H·d_k), the width of all heads together",
        "A score is a dot product of d_k terms: divide by √d_k.",
        scaled_by_all_heads,
    ),
    Mistake(
        "softmax_over_queries",
        "the softmax runs over the queries, so columns sum to 1",
        "A query shares out its weight among the keys: the last axis.",
        softmax_over_queries,
    ),
)


def cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, H, G, T=5, S=6, d_k=4, d_v=7):
        shapes = (H, T, d_k), (G, S, d_k), (G, S, d_v)
        return tuple(2 * rng.standard_normal((*batch, *shape)) for shape in shapes)

    return [
        Case("6 heads, 2 groups", arrays(H=6, G=2), 3),
        Case("6 heads, 3 groups, a batch", arrays(2, H=6, G=3), 2),
        Case("two batch axes", arrays(3, 2, H=4, G=2, T=1), 1),
        Case("one group for all heads", arrays(H=3, G=1), 2),
        Case("a group for each head", arrays(H=3, G=3), 1),
        Case("scores of 1,000 and more", tuple(40 * a for a in arrays(H=4, G=2)), 1),
    ]


ASSIGNMENT = Assignment((Task("attend_in_groups", cases, MISTAKES),))
