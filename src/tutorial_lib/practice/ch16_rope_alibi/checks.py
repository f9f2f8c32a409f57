"""Checks for chapter 16."""

import numpy as np

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_MODEL, B, H, S, T, masks, normal
from tutorial_lib.variants.positions import alibi_slopes, rope_frequencies, rotate

MISTAKES, cases_of = read_room(__file__)


@cases_of(rotate)
def check_rotate():
    positions, base_500 = np.arange(T), rope_frequencies(8, base=500)
    own = positions + np.array([[[7]], [[1000]]])  # (B, 1, T)
    all_pairs, two_pairs = rope_frequencies(8), rope_frequencies(14)[:2]
    two, two_halves = (_rotate_case(seed, positions, two_pairs, width=14) for seed in (72, 73))
    late = _rotate_case(71, 40 + positions, all_pairs)
    yield "interleaved pairs", _rotate_case(70, positions, all_pairs)
    yield "rotate_half, from position 40", late, {"half": True}
    yield "two pairs of seven rotated", two
    yield "two pairs of seven rotated, rotate_half", two_halves, {"half": True}
    yield "frequencies of another base", _rotate_case(86, positions, base_500)
    yield (
        "a batch, each sequence with its own positions, up to 1,004",
        _rotate_case(74, own, all_pairs, B, H, width=14),
    )


def _rotate_case(seed, positions, frequencies, *batch, width=8):
    X = normal(seed, *(batch or (H,)), T, width)
    return {"X": X, "positions": positions, "frequencies": frequencies}


@cases_of(alibi_slopes)
def check_alibi_slopes():
    yield from ((f"{n} head" + "s" * (n > 1), {"n_heads": n}) for n in (8, 12, 16, 7, 2, 1))


def _halves_from_interleaved(W, n):
    """Reorder the columns of n interleaved pairs for the layout of `rotate_half`."""
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2), *range(2 * n, W.shape[-1])]
    return W[..., order]


@cases_of(_halves_from_interleaved)
def check_halves_from_interleaved():
    yield "all four pairs rotated", {"W": normal(75, H, D_MODEL, 8), "n": 4}
    yield "five pairs rotated, one head", {"W": normal(76, D_MODEL, 10), "n": 5}
    yield "four pairs of seven rotated", {"W": normal(77, H, D_MODEL, 14), "n": 4}


def _longer_frequencies(d_k, factor, *, base=10_000.0):
    return rope_frequencies(d_k, base=base * factor ** (d_k / (d_k - 2)))


@cases_of(_longer_frequencies)
def check_longer_frequencies():
    yield "8 entries, three times the length", {"d_k": 8, "factor": 3}
    yield "12 entries, 16 times the length", {"d_k": 12, "factor": 16}
    yield "another base", {"d_k": 6, "factor": 4}, {"base": 500_000.0}


def _rotated_back(Q, C, positions, frequencies, *, mask=None):
    """Attend to rotated rows that are keys and values, and rotate the output back."""
    Q, rotated = rotate(Q, positions, frequencies), rotate(C, positions, frequencies)
    mixed = scaled_dot_product_attention(Q, rotated, rotated, mask=mask)
    return rotate(mixed, positions, -frequencies)


@cases_of(_rotated_back)
def check_rotated_back():
    batch = _latent_case(82, 4, B, start=40, width=14)
    shown = masks(empty=False)
    own = {label: mask[..., S - T :] for label, mask in shown.items()}  # for T of the S keys
    yield "every token sees all", _latent_case(78, 4)
    yield "one pair of four rotated", _latent_case(84, 1)
    yield "a batch of wider heads, the sequence begins at 40", batch
    yield from ((label, batch, {"mask": mask}) for label, mask in own.items())


def _latent_case(seed, pairs, *batch, start=0, width=8):
    Q, C = normal(seed, *batch, H, T, width), normal(seed + 1, *batch, 1, T, width)
    frequencies = rope_frequencies(width)[:pairs]
    return {"Q": Q, "C": C, "positions": start + np.arange(T), "frequencies": frequencies}
