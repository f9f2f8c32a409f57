"""Answers of chapter 03, computed."""

import numpy as np

import tutorial_lib as tl

RNG = np.random.default_rng(3)


def shape_of_the_scores():
    """Multiply Q by K with its last two axes swapped."""
    Q, K = np.ones((2, 3, 4)), np.ones((2, 3, 4))
    return (Q @ np.swapaxes(K, -1, -2)).shape


def exponentials_of_large_scores():
    """Raise e to 1000 and to 999, and divide by the sum."""
    scores, weights, stopped = np.array([1000.0, 999.0]), np.zeros(2), False
    try:
        with np.errstate(all="ignore"):  # warnings, which are no errors
            exponentials = np.exp(scores)
            weights = exponentials / exponentials.sum()
    except ArithmeticError:
        stopped = True
    return [
        np.allclose(weights, (0.731, 0.269), atol=5e-4),
        np.isnan(weights).all(),
        np.allclose(weights, (1, 0)),
        stopped,
    ]


def axis_of_the_softmax():
    """Sum weights of shape (B, H, T, S) along each axis."""
    weights = tl.attention_weights(RNG.standard_normal((2, 3, 4, 5)))

    def sums_to_one(axis):
        return np.allclose(weights.sum(axis=axis), 1)

    return [sums_to_one(1), sums_to_one(2), sums_to_one(3), sums_to_one((2, 3))]


def five_added():
    """Add 5 to a row of scores and compare its weights."""
    scores = RNG.standard_normal((1, 6))
    before, after = tl.softmax(scores), tl.softmax(scores + 5)
    change = after.max() - before.max()
    return [np.allclose(after, before), change > 1e-9, after.sum() > 1 + 1e-9, change < -1e-9]


def mask_after_the_softmax():
    """Multiply weights by a causal mask and compare with masked scores."""
    scores, mask = RNG.standard_normal((4, 4)), tl.causal_mask(4)
    late, right = tl.softmax(scores) * mask, tl.attention_weights(scores, mask=mask)
    masked = ~mask.all(axis=-1)
    return [
        (late[~mask] != 0).any(),
        (late[masked].sum(axis=-1) < 1 - 1e-9).all(),
        (late < 0).any(),
        np.allclose(late, right),
    ]


def lookup_and_product():
    """Look ids up in a table, and multiply one-hot rows by it."""
    E, P, ids = RNG.standard_normal((6, 8)), RNG.standard_normal((4, 8)), np.array([1, 2, 3])
    product = np.eye(6)[ids] @ E
    return [
        np.allclose(E[ids], tl.embed(ids, E, P)),
        np.allclose((E + 1)[ids], E[ids]),
        product.shape == E[ids].T.shape,
        np.array_equal(product, E[ids]),
    ]


def features_of_a_query():
    """Change one feature of a token at a time and see whether its queries change."""
    X, W_Q = RNG.standard_normal((1, 8)), RNG.standard_normal((2, 8, 4))
    changed = X + np.eye(8)  # row i: feature i is another
    moved = np.abs(tl.project_heads(changed, W_Q) - X @ W_Q).max(axis=-1) > 1e-9  # (H, features)
    first_four = np.arange(8) < 4
    return [
        moved[0].all(),
        np.array_equal(moved[0], first_four),
        moved[0].sum() == 4,
        np.array_equal(moved[0], ~moved[1]),
    ]
