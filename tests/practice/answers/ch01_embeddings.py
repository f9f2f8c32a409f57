"""Answers of chapter 01, computed."""

import numpy as np

import tutorial_lib as tl

EXAMPLE = tl.running_example()
RNG = np.random.default_rng(1)
E, P = RNG.standard_normal((6, 8)), RNG.standard_normal((4, 8))
BATCH = np.array([[1, 2, 3], [4, 2, 5]])  # dogs that bark, cats that sleep


def shape_of_a_batch():
    """Index a table of 6 rows of 8 with six ids."""
    assert E.shape == (6, 8)
    assert BATCH.shape == (2, 3)
    return E[BATCH].shape


def words_in_another_order():
    """Give the averaging layer the same words in two orders."""

    def averaging_layer(X):
        return X / 2 + X.mean(axis=-2, keepdims=True) / 2

    order = [2, 0, 1]  # bark dogs that
    X = EXAMPLE.E[EXAMPLE.ids]
    before, after = averaging_layer(X), averaging_layer(X[order])
    known = [any(np.allclose(row, old) for old in before) for row in after]
    return [
        not any(known),
        np.allclose(after, before[order]),
        np.allclose(after, before),
        np.allclose(after, after[0]),
    ]


def one_hot_times_table():
    """Multiply one-hot rows by a table and compare with what indexing gives."""
    ids = BATCH[1, :2]
    product = np.eye(len(E))[ids] @ E
    return [
        np.array_equal(product, E[ids]),
        product.shape == E[:, ids].shape,
        np.allclose(product, tl.embed(ids, E, P)),
        (product != E[ids]).any(),
    ]


def position_in_a_batch():
    """Find the row of P that was added to the first token of the second sentence."""
    assert BATCH.shape == (2, 3)
    added = tl.embed(BATCH, E, P)[1, 0] - E[BATCH[1, 0]]
    [row] = [t for t in range(len(P)) if np.allclose(added, P[t])]
    return f"Row {row}"


def shuffled_input():
    """Shuffle the input of attention without a mask: eight tokens, and as many features."""
    rng = np.random.default_rng(2)
    params, X = tl.init_params(rng, d_model=8, n_heads=2), rng.standard_normal((8, 8))
    order = np.roll(np.arange(8), 3)
    Y, shuffled = (tl.multi_head_attention(rows, params) for rows in (X, X[order]))
    others = Y, Y[order], Y[np.argsort(order)], Y[:, order]
    return [np.allclose(shuffled, other) for other in others]


def products_of_sinusoids():
    """Multiply every two of forty sinusoidal positions, also as two sentences get them."""
    table = tl.sinusoidal_positions(40, 8)
    products = table @ table.T
    by_distance = np.allclose(products[1:, 1:], products[:-1, :-1])
    added = [tl.embed(ids, E, table) - E[ids] for ids in BATCH]
    return [
        not by_distance,
        not np.allclose(*added),
        by_distance and np.ptp(products) > 1,
        np.allclose(products, table.shape[1] / 2),
    ]
