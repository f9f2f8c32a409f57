"""A packed matrix that lies group by group: heads of queries, then their one key and value."""

import numpy as np
import torch.nn.functional as F

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _kinds(wide, n_heads, n_groups):
    size = n_heads // n_groups
    return wide.unflatten(-1, (n_groups, size + 2, -1)).split([size, 1, 1], dim=3)


def _by_heads(kind):
    return kind.flatten(2, 3).transpose(1, 2)


def _read(wide, n_heads, n_groups):
    return [_by_heads(kind) for kind in _kinds(wide, n_heads, n_groups)]


def _attend(Q, K, V, *, causal=True):
    size = Q.shape[1] // K.shape[1]
    K, V = K.repeat_interleave(size, dim=1), V.repeat_interleave(size, dim=1)
    return F.scaled_dot_product_attention(Q, K, V, is_causal=causal)


def _concat(heads):
    return heads.transpose(1, 2).flatten(2)


def kinds_first(X, weight, out_weight, n_heads, n_groups):
    wide = F.linear(X, weight)
    d = wide.shape[-1] // (n_heads + 2 * n_groups)
    rows = [n_heads * d, n_groups * d, n_groups * d]
    Q, K, V = (_by_heads(kind.unflatten(-1, (-1, 1, d))) for kind in wide.split(rows, dim=-1))
    return F.linear(_concat(_attend(Q, K, V)), out_weight)


def values_before_keys(X, weight, out_weight, n_heads, n_groups):
    Q, V, K = _read(F.linear(X, weight), n_heads, n_groups)
    return F.linear(_concat(_attend(Q, K, V)), out_weight)


def groups_in_turn(X, weight, out_weight, n_heads, n_groups):
    Q, K, V = _read(F.linear(X, weight), n_heads, n_groups)
    times = (1, n_heads // n_groups, 1, 1)
    heads = _attend(Q, K.repeat(times), V.repeat(times))
    return F.linear(_concat(heads), out_weight)


def tokens_for_heads(X, weight, out_weight, n_heads, n_groups):
    kinds = _kinds(F.linear(X, weight), n_heads, n_groups)
    B, T, _, _, d = kinds[0].shape
    Q, K, V = (kind.reshape(B, -1, T, d) for kind in kinds)
    return F.linear(_concat(_attend(Q, K, V)), out_weight)


def heads_not_put_back(X, weight, out_weight, n_heads, n_groups):
    heads = _attend(*_read(F.linear(X, weight), n_heads, n_groups))
    return F.linear(heads.reshape(X.shape[0], X.shape[1], -1), out_weight)


def weight_not_turned(X, weight, out_weight, n_heads, n_groups):
    heads = _attend(*_read(X @ weight, n_heads, n_groups))
    return F.linear(_concat(heads), out_weight)


def out_weight_not_turned(X, weight, out_weight, n_heads, n_groups):
    heads = _attend(*_read(F.linear(X, weight), n_heads, n_groups))
    return _concat(heads) @ out_weight


def not_causal(X, weight, out_weight, n_heads, n_groups):
    heads = _attend(*_read(F.linear(X, weight), n_heads, n_groups), causal=False)
    return F.linear(_concat(heads), out_weight)


def scaled_twice(X, weight, out_weight, n_heads, n_groups):
    Q, K, V = _read(F.linear(X, weight), n_heads, n_groups)
    heads = _attend(Q / Q.shape[-1] ** 0.5, K, V)
    return F.linear(_concat(heads), out_weight)


MISTAKES = (
    Mistake(
        "kinds_first",
        "the rows are read as all queries, all keys, all values",
        "Take the groups apart first: each holds H/G blocks of queries, a key and a value.",
        kinds_first,
    ),
    Mistake(
        "values_before_keys",
        "the value of a group is read before its key",
        "The last two blocks of a group are its key and its value, in this order.",
        values_before_keys,
    ),
    Mistake(
        "groups_in_turn",
        "query head h uses group h % G: the heads of a group are not neighbours",
        "Tensor.repeat lays whole copies one after the other, as np.tile does. "
        "What np.repeat does is called repeat_interleave here.",
        groups_in_turn,
    ),
    Mistake(
        "tokens_for_heads",
        "the axes of tokens and heads are renamed where they should be swapped",
        "The product has the tokens before the heads: transpose, since a reshape moves nothing.",
        tokens_for_heads,
    ),
    Mistake(
        "heads_not_put_back",
        "the heads become one axis before they are behind the tokens again",
        "Transpose (B, H, T, d) to (B, T, H, d) first, and make the last two axes one then.",
        heads_not_put_back,
    ),
    Mistake(
        "weight_not_turned",
        "X is multiplied by the packed matrix as it lies",
        "A row of the packed matrix makes one number: F.linear(X, weight), or X @ weight.T.",
        weight_not_turned,
    ),
    Mistake(
        "out_weight_not_turned",
        "concat is multiplied by out_weight as it lies",
        "A row of out_weight makes one number of Y, as in nn.Linear.",
        out_weight_not_turned,
    ),
    Mistake(
        "not_causal",
        "tokens look at those after them",
        "Hide the later tokens; F.scaled_dot_product_attention has an option for it.",
        not_causal,
    ),
    Mistake(
        "scaled_twice",
        "the scores are divided by d: by √d, and by √d again",
        "F.scaled_dot_product_attention divides by √d itself: give it the queries as they are.",
        scaled_twice,
    ),
)


def cases(rng):
    """In the first case `out_weight` is square, in the second `weight`: there no error tells."""

    def arguments(*, B, T, H, G, d, d_model):
        X = rng.standard_normal((B, T, d_model))
        weight = rng.standard_normal(((H + 2 * G) * d, d_model)) * np.sqrt(2 / d_model)
        return X, weight, rng.standard_normal((d_model, H * d)), H, G

    return [
        Case("6 heads, 2 groups", arguments(B=7, T=5, H=6, G=2, d=4, d_model=24), 3),
        Case("a square packed matrix", arguments(B=5, T=7, H=8, G=2, d=3, d_model=36), 2),
        Case("d_model below H·d", arguments(B=8, T=4, H=6, G=3, d=5, d_model=7), 2),
        Case("one group for all heads", arguments(B=2, T=6, H=3, G=1, d=4, d_model=10), 1),
        Case("a group for each head", arguments(B=2, T=6, H=3, G=3, d=5, d_model=8), 1),
        Case("one token", arguments(B=3, T=1, H=4, G=2, d=5, d_model=9), 1),
    ]


ASSIGNMENT = Assignment((Task("grouped_layer", cases, MISTAKES),), torch=True)
