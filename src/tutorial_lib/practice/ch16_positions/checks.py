"""Checks for chapter 16."""

import numpy as np

from tutorial_lib.attention import causal_mask, scaled_dot_product_attention
from tutorial_lib.practice.account import D_MODEL, B, Case, H, T, against, normal
from tutorial_lib.practice.ch16_positions.mistakes import MISTAKES
from tutorial_lib.variants.positions import alibi_slopes, rope_rates, rotate

check = against(MISTAKES)


def check_rotate(function):
    """Check `rotate(X, positions, rates, *, half=False)` of chapter 16. Prints an account."""
    places = np.arange(T)
    cases = (
        Case("pairs of neighbours", _turn(70, places, rope_rates(6))),
        Case("halves", _turn(71, places, rope_rates(6)), {"half": True}),
        Case("two pairs of four turn", _turn(72, places, rope_rates(8)[:2], width=8)),
        Case(
            "two pairs of four turn, halves",
            _turn(73, places, rope_rates(8)[:2], width=8),
            {"half": True},
        ),
        Case("rates of another base", _turn(86, places, rope_rates(6, base=500))),
        Case(
            "a batch, each text with its places, up to 1,004",
            _turn(74, places + np.array([[[7]], [[1000]]]), rope_rates(4), B, H, width=4),
        ),
    )
    check("rotate", function, rotate, cases)


def _turn(seed, positions, rates, *batch, width=6):
    return {"X": normal(seed, *(batch or (H,)), T, width), "positions": positions, "rates": rates}


def check_alibi_slopes(function):
    """Check `alibi_slopes(n_heads)` of chapter 16. Prints an account."""
    cases = tuple(Case(f"{n} head" + "s" * (n > 1), {"n_heads": n}) for n in (8, 12, 16, 3, 2, 1))
    check("alibi_slopes", function, alibi_slopes, cases)


def _halves_from_neighbours(W, n):
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2), *range(2 * n, W.shape[-1])]
    return W[..., order]


def check_halves_from_neighbours(function):
    """Check `halves_from_neighbours(W, n)`: columns in another order, exercise of chapter 16."""
    cases = (
        Case("all three pairs turn", {"W": normal(75, H, D_MODEL, 6), "n": 3}),
        Case("five pairs turn, one head", {"W": normal(76, D_MODEL, 10), "n": 5}),
        Case("three pairs of five turn", {"W": normal(77, H, D_MODEL, 10), "n": 3}),
    )
    check("halves_from_neighbours", function, _halves_from_neighbours, cases)


def _longer_rates(d_k, factor, *, base=10_000.0):
    return rope_rates(d_k, base=base * factor ** (d_k / (d_k - 2)))


def check_longer_rates(function):
    """Check `longer_rates(d_k, factor, *, base=10_000.0)`, exercise of chapter 16."""
    cases = (
        Case("8 numbers, twice the length", {"d_k": 8, "factor": 2}),
        Case("12 numbers, 16 times the length", {"d_k": 12, "factor": 16}),
        Case("another base", {"d_k": 6, "factor": 4}, {"base": 500_000.0}),
    )
    check("longer_rates", function, _longer_rates, cases)


def _turned_back(Q, C, positions, rates, *, mask=None):
    Q, C = (rotate(array, positions, rates) for array in (Q, C))
    return rotate(scaled_dot_product_attention(Q, C, C, mask=mask), positions, -rates)


def check_turned_back(function):
    """Check `turned_back(Q, C, positions, rates, *, mask=None)`, exercise of chapter 16."""
    causal = {"mask": causal_mask(T)}
    cases = (
        Case("every word sees all", _latent(78)),
        Case("a causal mask", _latent(80), causal),
        Case("a batch, the text begins at 40", _latent(82, B, start=40), causal),
        Case("one pair of three turns", _latent(84, pairs=1)),
    )
    check("turned_back", function, _turned_back, cases)


def _latent(seed, *batch, start=0, pairs=3):
    Q, C = normal(seed, *batch, H, T, 6), normal(seed + 1, *batch, 1, T, 6)
    return {"Q": Q, "C": C, "positions": start + np.arange(T), "rates": rope_rates(6)[:pairs]}
