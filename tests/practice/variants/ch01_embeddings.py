"""Right answers of chapter 01 in other ways."""

import math

import numpy as np

import tutorial_lib as tl


def embed_one_hot(ids, E, P=None):
    X = (ids[..., None] == np.arange(len(E))) @ E
    return X if P is None else X + P[np.arange(ids.shape[-1])]


def embed_by_take(ids, E, P=None):
    return np.take(E, ids, axis=0) + (0 if P is None else P[: ids.shape[-1]])


def embed_in_place(ids, E, P=None):
    X = E[ids]
    if P is not None:
        X += P[: ids.shape[-1]]
    return X


def sinusoids_by_loop(T, d_model, *, base=10_000.0):
    rows = [[t / base ** (2 * (i // 2) / d_model) for i in range(d_model)] for t in range(T)]
    return np.array([[(math.sin, math.cos)[i % 2](a) for i, a in enumerate(row)] for row in rows])


def padded_by_where(ids, E, P, pad_id):
    return np.where((ids == pad_id)[..., None], 0, embed_by_take(ids, E, P))


def padded_in_place(ids, E, P, pad_id):
    X = tl.embed(ids, E, P)
    X[ids == pad_id] = 0
    return X


def wavelengths_by_rotations(T, wavelengths):
    turns = np.exp(2j * np.pi * np.outer(np.arange(T), 1 / wavelengths))
    return np.stack([turns.imag, turns.real], axis=-1).reshape(T, -1)


VARIANTS = [
    ("embed", "one-hot product", embed_one_hot),
    ("embed", "added in place to its own copy", embed_in_place),
    ("embed_padded", "where", padded_by_where),
    ("embed_padded", "in place on its own copy", padded_in_place),
    ("sinusoidal_positions", "loop", sinusoids_by_loop),
    ("positions_from_wavelengths", "complex rotations", wavelengths_by_rotations),
    ("is_equivariant", "np.bool_", lambda f, X, o: np.allclose(f(X[o]) - f(X)[o], 0) & np.True_),
]
