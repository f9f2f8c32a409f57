"""What computes the keys of chapter 15: layers are run, and matrices are asked for their rank."""

from fractions import Fraction

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.grouped import grouped_attention


def _example():
    example = tl.running_example()
    return example, tl.trace(example.X, example.params, mask=example.mask)


def heads_that_tiling_serves():
    """Which of four heads get from tiled keys what they get from their group's."""
    _, layer = _example()
    Q, K, V = layer.Q[[0, 1, 0, 1]], layer.K, layer.V
    right = grouped_attention(Q, K, V)
    tiled = tl.scaled_dot_product_attention(Q, np.tile(K, (2, 1, 1)), np.tile(V, (2, 1, 1)))
    served = [h for h in range(4) if np.allclose(right[h], tiled[h])]
    return [served == [0, 1, 2, 3], served == [0, 1], served == [0, 3], served == []]


def numbers_that_are_enough():
    """The rank of random matrices of three heads with keys and values of one number, X 8 wide."""
    params = tl.Params(*np.random.default_rng(3).standard_normal((3, 3, 8, 1)), np.ones((3, 8)))
    joint = np.concatenate([*params.W_K, *params.W_V], axis=-1)
    assert joint.shape == (8, 6)
    return np.linalg.matrix_rank(joint)


def keys_that_survive_a_missing_rotation():
    """The columns of the scores that do not change when the keys' rotation is left out."""
    _, layer = _example()
    quarter = np.kron(np.eye(2), [[0, 1], [-1, 0]])
    rotations = np.stack([np.linalg.matrix_power(quarter, t) for t in range(3)])
    Q, K = (np.einsum("htd,tde->hte", rows, rotations) for rows in (layer.Q, layer.K))
    same = np.isclose(tl.attention_scores(Q, K), tl.attention_scores(Q, layer.K))
    columns = np.flatnonzero(same.all(axis=(0, 1))).tolist()
    own = same[:, range(3), range(3)].all()
    return [columns == [0, 1, 2], bool(own), columns == [], columns == [0]]


def kv_head_of_head_13():
    """The KV head on which head 13 of 32 depends, with 8 KV heads."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((heads, 5, 4)) for heads in (32, 8, 8))
    before = grouped_attention(Q, K, V)[13]
    for g in range(8):
        changed = K.copy()
        changed[g] += rng.standard_normal(changed[g].shape)
        if not np.allclose(grouped_attention(Q, changed, V)[13], before):
            return g


def least_time_after_halving():
    """What becomes of the least time of a step when half of its bytes are read."""
    peak, bandwidth, read = 3.0, 1.0, 7.0  # flop and bytes a second; bytes, any

    def least(read):
        return max(12 * 7.0 / peak, read / bandwidth)

    ratio = least(read / 2) / least(read)
    return [ratio == 0.5, ratio == 0.25, ratio == 1, ratio == 2]


def _absorbs(change):
    """Whether one product with the query, computed beforehand, gives a head's scores."""
    example, layer = _example()
    absorbed_Q = change(layer.Q[0], example.params.W_K[0], np.zeros(8, dtype=int))
    return np.allclose(change(layer.Q[0], layer.K[0], np.arange(3)), absorbed_Q @ example.X.T)


def what_stops_absorption():
    """Whether a query cannot absorb W_K under each change of the layer."""
    quarter = np.kron(np.eye(2), [[0, 1], [-1, 0]])
    rotations = np.stack([np.linalg.matrix_power(quarter, t) for t in range(3)])
    example, layer = _example()
    absorbed = layer.Q[0] @ example.params.W_K[0].T @ example.X.T / 2
    weights = tl.attention_weights(absorbed, mask=example.mask)
    wide = np.concatenate(example.params.W_V, axis=-1)  # values twice as wide as keys
    mixed, computed = weights @ example.X @ wide, weights @ (example.X @ wide)

    def rotated(Q, K, position):
        return Q @ np.einsum("sd,sde->se", K, rotations[position]).T

    return [
        not np.allclose(weights, layer.weights[0]),
        not _absorbs(rotated),
        not np.allclose(mixed, computed),
        not _absorbs(lambda Q, K, position: Q @ K.T / 2),
    ]


def fraction_of_the_peak():
    """What a step of 4 flop for each byte reaches where there is time for 300."""
    bandwidth = 7.0  # bytes a second; any
    peak = 300 * bandwidth
    return Fraction(min(peak, 4 * bandwidth) / peak).limit_denominator(1000)


def why_stacking_needs_no_swap():
    """Whether a reshape without a swap leaves whole the rows of queries, and the rows of concat."""
    rng = np.random.default_rng(0)
    H, G, T, d_k = 6, 2, 5, 4
    X, W = rng.standard_normal((T, 12)), rng.standard_normal((H, 12, d_k))
    Q = tl.project_heads(X, W)
    rows = Q.reshape(G, H // G * T, d_k)
    right = [Q[g * 3 + m, t] for g in range(G) for m in range(H // G) for t in range(T)]
    whole = np.array_equal(rows.reshape(-1, d_k), right)
    concat_too = np.array_equal(Q.reshape(T, H * d_k), tl.concat_heads(Q))
    return [not whole, whole and not concat_too, concat_too, Q.shape[0] != H]
