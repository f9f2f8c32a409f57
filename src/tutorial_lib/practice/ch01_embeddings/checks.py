"""Checks for chapter 01."""

import numpy as np

from tutorial_lib import attention, embedding
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_MODEL, S, T, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(embedding.embed)
def check_embed():
    E, P = normal(0, 9, D_MODEL), normal(1, 11, D_MODEL)
    ids = np.array([[3, 1, 4, 1, 5], [8, 2, 6, 0, 7]])  # (B, T)
    yield "one sentence", {"ids": ids[0], "E": E, "P": P}
    yield "a batch", {"ids": ids, "E": E, "P": P}
    yield "no positions", {"ids": ids, "E": E}


@cases_of(embedding.sinusoidal_positions)
def check_sinusoidal_positions():
    yield "7 positions of width 10", {"T": S, "d_model": 10}
    yield "width 16, another base", {"T": T, "d_model": 16}, {"base": 100.0}


def _embed_padded(ids, E, P, pad_id):
    """Look up word and position, and make the rows of padding 0."""
    return embedding.embed(ids, E, P) * (ids != pad_id)[..., None]


@cases_of(_embed_padded)
def check_embed_padded():
    E, P = normal(0, 9, D_MODEL), normal(1, 11, D_MODEL)
    ids = np.array([[3, 1, 4, 1, 5], [8, 2, 7, 0, 0]])  # (B, T)
    in_front = np.array([[3, 1, 4, 1, 5], [8, 8, 2, 0, 6]])
    yield "padding at the end", {"ids": ids, "E": E, "P": P, "pad_id": 0}
    yield "padding in front, pad_id 8", {"ids": in_front, "E": E, "P": P, "pad_id": 8}


def _positions_from_wavelengths(T, wavelengths):
    """Fill a table of positions with a sine and a cosine of each wavelength."""
    angles = 2 * np.pi * np.arange(T)[:, None] / wavelengths
    P = np.empty((T, 2 * len(wavelengths)))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles)
    return P


@cases_of(_positions_from_wavelengths)
def check_positions_from_wavelengths():
    yield "wavelengths 4, 10 and 100", {"T": T, "wavelengths": np.array([4.0, 10.0, 100.0])}
    yield "one wavelength", {"T": S, "wavelengths": np.array([9.0])}


def _is_equivariant(layer, X, order):
    return bool(np.allclose(layer(X[order]), layer(X)[order]))


@cases_of(_is_equivariant)
def check_is_equivariant():
    X, order = normal(16, T, D_MODEL), np.array([2, 0, 1, 4, 3])
    layers = {
        "a layer that subtracts the mean": lambda X: X - X.mean(axis=0),
        "a layer that attends": lambda X: attention.softmax(X @ X.T) @ X,
        "a layer that adds positions": lambda X: X + np.arange(len(X))[:, None],
        "a layer that adds up what came before": lambda X: np.cumsum(X, axis=0),
        "a layer that reverses the order": lambda X: X[::-1],
        "a layer that gives every token the same": lambda X: np.ones_like(X),
        "a layer that changes the last row": lambda X: X + (np.arange(len(X)) == T - 1)[:, None],
    }
    whole, swap = np.arange(65.0).reshape(T, D_MODEL) ** 2, np.array([1, 0, 2, 3, 4])
    centred = layers["a layer that subtracts the mean"]
    yield from ((label, {"layer": f, "X": X, "order": order}) for label, f in layers.items())
    yield "two tokens that are swapped", {"layer": centred, "X": X, "order": swap}
    yield "whole numbers", {"layer": centred, "X": whole, "order": order}
