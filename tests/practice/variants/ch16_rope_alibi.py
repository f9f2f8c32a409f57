"""Right answers of chapter 16 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.positions import rotate


def rotate_by_complex_numbers(X, positions, frequencies, *, half=False):
    n = len(frequencies)
    layout = "...ji->...ij" if half else "...ij->...ij"
    shape = (2, n) if half else (n, 2)
    pairs = np.einsum(layout, X[..., : 2 * n].reshape(*X.shape[:-1], *shape))
    rotated = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * positions[..., None] * frequencies)
    pairs = np.stack([rotated.real, rotated.imag], axis=-2 if half else -1)
    return np.concatenate([pairs.reshape(*X.shape[:-1], 2 * n), X[..., 2 * n :]], axis=-1)


def rotate_half_as_in_llama(X, positions, frequencies, *, half=False):
    """The code with rotate_half, and interleaved pairs through a new order of columns."""
    n, width = len(frequencies), X.shape[-1]
    order = np.arange(width)
    if not half:
        order[: 2 * n] = np.arange(2 * n).reshape(n, 2).T.ravel()
    Z = X[..., order]
    cos, sin = (np.tile(f(positions[..., None] * frequencies), 2) for f in (np.cos, np.sin))
    front = Z[..., : 2 * n]
    other = np.concatenate([-front[..., n:], front[..., :n]], axis=-1)
    Z = np.concatenate([front * cos + other * sin, Z[..., 2 * n :]], axis=-1)
    return Z[..., np.argsort(order)]


def slopes_by_recursion(n_heads):
    if n_heads & (n_heads - 1) == 0:
        return np.array([2 ** (-8 * (i + 1) / n_heads) for i in range(n_heads)])
    power = 2 ** (n_heads.bit_length() - 1)
    more = slopes_by_recursion(2 * power)[::2][: n_heads - power]
    return np.concatenate([slopes_by_recursion(power), more])


def halves_by_slices(W, n):
    return np.concatenate([W[..., : 2 * n : 2], W[..., 1 : 2 * n : 2], W[..., 2 * n :]], axis=-1)


def longer_frequencies_pair_by_pair(d_k, factor, *, base=10_000.0):
    pairs = np.arange(d_k // 2)
    return base ** (-2 * pairs / d_k) / factor ** (pairs / (d_k // 2 - 1))


def rotated_back_by_hand(Q, C, positions, frequencies, *, mask=None):
    """Each value rotated by its distance from the query, one pair of words after the other."""
    rotated = rotate(C, positions, frequencies)
    scores = tl.attention_scores(rotate(Q, positions, frequencies), rotated)
    weights = tl.attention_weights(scores, mask=mask)
    heads = np.zeros(Q.shape)
    for t, here in enumerate(positions):
        for s, there in enumerate(positions):
            relative = rotate(C[..., s : s + 1, :], np.array([there - here]), frequencies)
            heads[..., t, :] += weights[..., t, s, None] * relative[..., 0, :]
    return heads


VARIANTS = [
    ("rotate", "complex numbers", rotate_by_complex_numbers),
    ("rotate", "rotate_half", rotate_half_as_in_llama),
    ("alibi_slopes", "recursion", slopes_by_recursion),
    ("halves_from_interleaved", "slices", halves_by_slices),
    ("longer_frequencies", "pair by pair", longer_frequencies_pair_by_pair),
    ("rotated_back", "each value by its distance", rotated_back_by_hand),
]


NARROW = [
    ("rotate", "positions from 0", "positions[..., None]", "(positions - positions[0])[..., None]"),
    ("rotate", "positions of one sequence", "positions[..., None]", "np.ravel(positions)[:, None]"),
    ("rotate", "positions up to 15", "positions[..., None]", "positions[..., None] % 16"),
    (
        "rotate",
        "positions up to 1,000",
        "positions[..., None]",
        "np.minimum(positions, 1000)[..., None]",
    ),
    (
        "alibi_slopes",
        "more than two heads",
        "return",
        "series = series if n_heads > 2 else 2 * series\nreturn",
    ),
    ("alibi_slopes", "powers of two", "2 ** int(np.log2(n_heads))", "n_heads"),
    ("halves_from_interleaved", "all pairs rotated", "order =", "n = W.shape[-1] // 2\norder ="),
    ("longer_frequencies", "one base", "base=base *", "base=1e4 *"),
]
