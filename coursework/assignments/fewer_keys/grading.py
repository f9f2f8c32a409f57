"""Keys and values as means of products: a factor for each head times a row that heads share."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import softmax


def _by_head(A):
    """Turn factors of one product, (..., S, H), into (..., H, 1, S)."""
    return np.swapaxes(A, -1, -2)[..., None, :]


def _together(array):
    """Lay heads below each other, (..., H, T, n) to (..., H*T, n): they share what they meet."""
    *batch, H, T, n = array.shape
    return array.reshape(*batch, H * T, n)


def _meet(Q, B):
    """Multiply queries of all heads, (..., H, T, d_k), with rows that they share, (..., S, d_k)."""
    products = _together(Q) @ np.swapaxes(B, -1, -2)  # (..., H*T, S)
    return products.reshape(*Q.shape[:-1], -1)


def _scores(Q, A, B):
    """Add up a score for each product; not yet divided by anything."""
    R = B.shape[-2]
    return sum(_by_head(A[..., r, :]) * _meet(Q, B[..., r, :]) for r in range(R))


def _mix(weights, A, B):
    """Add up the mix of each product's values; not yet divided."""
    P, mixed = B.shape[-2], 0
    for p in range(P):
        mixed = mixed + _together(weights * _by_head(A[..., p, :])) @ B[..., p, :]
    return mixed.reshape(*weights.shape[:-1], -1)


def _attended(Q, keys, values, *, over=(None, None), root=None):
    """Attend; `over` holds what stands in place of R and of P, `root` that of d_k."""
    R, P = (n or B.shape[-2] for n, (_, B) in zip(over, (keys, values), strict=True))
    root = np.sqrt(Q.shape[-1]) if root is None else root
    return _mix(softmax(_scores(Q, *keys) / (R * root)), *values) / P


def added(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), over=(1, 1))


def values_added(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), over=(None, 1))


def keys_added(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), over=(1, None))


def divided_by_R_twice(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), over=(None, B_K.shape[-2]))


def not_scaled(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), root=1)


def scaled_by_all_rows(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (A_V, B_V), root=np.sqrt(B_K.shape[-2] * B_K.shape[-1]))


def _mean(array):
    return array.mean(axis=-2, keepdims=True)


def product_of_means(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (_mean(A_K), _mean(B_K)), (_mean(A_V), _mean(B_V)))


def every_pair(Q, A_K, B_K, A_V, B_V):
    """Factors added up, and rows: each factor meets each row, and the sum is divided once."""
    R, P = B_K.shape[-2], B_V.shape[-2]
    keys, values = (R * _mean(A_K), R * _mean(B_K)), (P * _mean(A_V), P * _mean(B_V))
    return _attended(Q, keys, values, over=(R, P))


def first_product_alone(Q, A_K, B_K, A_V, B_V):
    keys, values = ((A[..., :1, :], B[..., :1, :]) for A, B in ((A_K, B_K), (A_V, B_V)))
    return _attended(Q, keys, values)


def _reread(A):
    *batch, S, R, H = A.shape
    return np.swapaxes(A.reshape(*batch, S, H, R), -1, -2)


def axes_by_reshape(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (_reread(A_K), B_K), (_reread(A_V), B_V))


def _turned_round(A):
    return A[..., ::-1, :]


def products_crossed(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (_turned_round(A_K), B_K), (_turned_round(A_V), B_V))


def one_key_for_all(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (np.ones_like(A_K), B_K), (A_V, B_V))


def one_value_for_all(Q, A_K, B_K, A_V, B_V):
    return _attended(Q, (A_K, B_K), (np.ones_like(A_V), B_V))


def factors_of_keys_twice(Q, A_K, B_K, A_V, B_V):
    if A_K.shape != A_V.shape:
        raise ValueError("the rows of the values need as many factors as there are rows")
    return _attended(Q, (A_K, B_K), (A_K, B_V))


def softmax_for_each(Q, A_K, B_K, A_V, B_V):
    R = B_K.shape[-2]
    pairs = ((A_K[..., r : r + 1, :], B_K[..., r : r + 1, :]) for r in range(R))
    weights = sum(softmax(_scores(Q, *pair) / np.sqrt(Q.shape[-1])) for pair in pairs) / R
    return _mix(weights, A_V, B_V) / B_V.shape[-2]


def mixed_apart(Q, A_K, B_K, A_V, B_V):
    weights = softmax(_scores(Q, A_K, B_K) / (B_K.shape[-2] * np.sqrt(Q.shape[-1])))
    P, mixed = B_V.shape[-2], 0
    for p in range(P):
        factor = (weights * _by_head(A_V[..., p, :])).sum(axis=-1, keepdims=True)
        rows = (_together(weights) @ B_V[..., p, :]).reshape(*weights.shape[:-1], -1)
        mixed = mixed + factor * rows
    return mixed / P


def not_shifted(Q, A_K, B_K, A_V, B_V):
    powers = np.exp(_scores(Q, A_K, B_K) / (B_K.shape[-2] * np.sqrt(Q.shape[-1])))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return _mix(weights, A_V, B_V) / B_V.shape[-2]


MISTAKES = (
    Mistake(
        "added",
        "the products of a key, and those of a value, are added up, not averaged",
        "Divide by R for the keys and by P for the values.",
        added,
    ),
    Mistake(
        "values_added",
        "the products of a value are added up, not averaged",
        "Divide the mix by P, the number of products of a value.",
        values_added,
    ),
    Mistake(
        "keys_added",
        "the products of a key are added up, not averaged: all scores are R times too large",
        "Divide the scores by R before the softmax.",
        keys_added,
    ),
    Mistake(
        "divided_by_R_twice",
        "the values are divided by R, the number of products of a key",
        "A value has P products: divide by A_V.shape[-2].",
        divided_by_R_twice,
    ),
    Mistake(
        "not_scaled",
        "the scores are not divided by √d_k",
        "Divide by np.sqrt(Q.shape[-1]) before the softmax.",
        not_scaled,
    ),
    Mistake(
        "scaled_by_all_rows",
        "the scores are divided by the root of R·d_k beside the mean",
        "A key still has d_k numbers: divide by √d_k, however it is kept.",
        scaled_by_all_rows,
    ),
    Mistake(
        "product_of_means",
        "it multiplies the mean factor by the mean row",
        "First each factor times its own row, then the mean over the products.",
        product_of_means,
    ),
    Mistake(
        "every_pair",
        "every factor meets every row: a sum over two letters where there is one",
        "Factor r belongs to row r alone. In an einsum both have the same letter for it.",
        every_pair,
    ),
    Mistake(
        "first_product_alone",
        "of each key and value only the first product counts",
        "All R products make a key, and all P a value: take the mean over them.",
        first_product_alone,
    ),
    Mistake(
        "axes_by_reshape",
        "a reshape brings the heads in front of the products, and moves no number",
        "The last two axes of A are (R, H): swap them with np.swapaxes.",
        axes_by_reshape,
    ),
    Mistake(
        "products_crossed",
        "the first factor goes with the last row",
        "Factor r goes with row r, in keys and in values.",
        products_crossed,
    ),
    Mistake(
        "one_key_for_all",
        "the heads' factors of the keys are left out: all heads look at one key",
        "Multiply each product with a query by A_K of the head.",
        one_key_for_all,
    ),
    Mistake(
        "one_value_for_all",
        "the heads' factors of the values are left out: all heads mix one value",
        "Multiply the weights of a head by its A_V of each token before they mix.",
        one_value_for_all,
    ),
    Mistake(
        "factors_of_keys_twice",
        "the values are made with the factors of the keys",
        "Rows of B_V go with factors of A_V.",
        factors_of_keys_twice,
    ),
    Mistake(
        "softmax_for_each",
        "each product has a softmax of its own, and the weights are averaged",
        "First the mean of the products: that is the score. Then one softmax.",
        softmax_for_each,
    ),
    Mistake(
        "mixed_apart",
        "factors and rows of the values are mixed apart, and then multiplied",
        "Each token's factor goes with that token's row: multiply the weight by it, then mix.",
        mixed_apart,
    ),
    Mistake(
        "not_shifted",
        "where scores are large, powers of e overflow",
        "Take the largest score of a row away before np.exp, as the library's softmax does.",
        not_shifted,
    ),
)


def cases(rng):
    """Sizes all differ but in one case, in which factors of keys and values can be confused.

    In the last, keys or values of all heads take more than 2 GiB; what is kept of them, 30 MB.
    """

    def arrays(*batch, H=3, T=5, S=6, R=2, P=4, d_k=7, d_v=8, large=1.0):
        shapes = (H, T, d_k), (S, R, H), (S, R, d_k), (S, P, H), (S, P, d_v)
        Q, *kept = (rng.standard_normal((*batch, *shape)) for shape in shapes)
        return 2 * large * Q, *kept

    new = {"H": 512, "T": 1, "S": 1_200, "R": 2, "P": 1, "d_k": 500, "d_v": 490}
    return [
        Case("two products a key, four a value", arrays(), 2),
        Case("three products a key, two a value, a batch", arrays(2, R=3, P=2, H=4), 2),
        Case("two batch axes, one query", arrays(4, 2, H=5, T=1, S=7, R=3, P=2, d_k=6), 1),
        Case("as many products a key as a value", arrays(H=4, T=3, S=5, R=2, P=2, d_k=6), 1),
        Case("one product a key, three a value", arrays(H=2, T=4, S=5, R=1, P=3, d_k=6), 1),
        Case("scores in the thousands", arrays(H=2, R=3, P=4, large=1e3), 1),
        Case("keys of all heads do not fit into memory", arrays(**new), 2),
    ]


ASSIGNMENT = Assignment((Task("attend_to_products", cases, MISTAKES),))
