"""Answers of chapter 02, computed."""

import numpy as np

import tutorial_lib as tl

EXAMPLE = tl.running_example()
RNG = np.random.default_rng(2)


def shape_of_the_product():
    """Give five sentences a head axis and multiply."""
    X, W_Q = np.ones((5, 3, 8)), np.ones((2, 8, 4))
    return (X[..., None, :, :] @ W_Q).shape


def query_at_another_position():
    """Compute the query of *bark* at its position and at two others, from 8 columns and from 4."""
    W_Q, word = EXAMPLE.params.W_Q[0], EXAMPLE.E[EXAMPLE.ids[2]]
    rows = word + EXAMPLE.P[[2, 0, 1]]
    full, sliced = rows @ W_Q, rows[:, :4] @ W_Q[:4]
    in_full, in_sliced = (not np.allclose(queries, queries[0]) for queries in (full, sliced))
    return [
        in_full and in_sliced,
        in_sliced and not in_full,
        not in_full and not in_sliced,
        in_full and not in_sliced,
    ]


def without_a_head_axis():
    """Multiply two sentences by the matrices of two heads, without an axis for heads."""
    X, W_Q = RNG.standard_normal((2, 3, 8)), RNG.standard_normal((2, 8, 4))
    right = X[:, None] @ W_Q
    try:
        result = X @ W_Q
    except ValueError:
        result = None
    return [
        result is None,
        np.shape(result) == right.shape,
        np.allclose(result, right[[0, 1], [0, 1]]),
        np.allclose(result, right.sum(axis=1)),
    ]


def parameters_of_eight_heads():
    """Count the entries of the three matrices of 8 heads of 64, and of one of 512."""

    def count(n_heads, d_k):
        params = tl.init_params(RNG, d_model=512, n_heads=n_heads, d_k=d_k)
        return params.W_Q.size + params.W_K.size + params.W_V.size

    times = count(8, 64) / count(1, 512)
    return [times == 8, times == 1, times == 1 / 8, times == 64]


def position_in_a_query():
    """Compute queries with positions, without, at one position, and with another table."""
    words, table, W_Q = (RNG.standard_normal(shape) for shape in ((3, 8), (4, 8), (8, 4)))
    Q = (words + table[:3]) @ W_Q
    at_one_position, renumbered = (words + table[0]) @ W_Q, (words + table[1:]) @ W_Q
    both = np.allclose(Q, words @ W_Q + table[:3] @ W_Q)
    return [
        np.allclose(Q, words @ W_Q),
        np.allclose(at_one_position, at_one_position[0]),
        np.allclose(Q, renumbered),
        both,
    ]


def layers_that_cannot_tell():
    """Run a random layer on two orders of three words and compare each word's output."""
    params = tl.init_params(RNG, d_model=8, n_heads=2)
    E, table = RNG.standard_normal((3, 8)), RNG.standard_normal((3, 8))
    order = [2, 1, 0]  # bark that dogs

    def same(P=0, mask=None):
        here, there = (tl.multi_head_attention(X + P, params, mask=mask) for X in (E, E[order]))
        return np.allclose(here[order], there)

    before = tl.causal_mask(3)
    sinusoids = tl.sinusoidal_positions(3, 8)
    return [same(), same(mask=before), same(P=table), same(P=sinusoids)]
