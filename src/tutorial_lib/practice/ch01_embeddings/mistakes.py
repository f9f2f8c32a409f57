"""Wrong forms of the functions of chapter 01."""

import numpy as np

from tutorial_lib.practice.mistake import Mistake


def _embed_sequence_axis(ids, E, P=None):
    if P is None:
        return E[ids]
    places = P[np.arange(len(ids)) % len(P)]
    return E[ids] + (places if ids.ndim == 1 else places[:, None])


_EMBED = (
    Mistake(
        "no_positions",
        "the rows of P are not added",
        "Add P[:T] to the rows of E.",
        lambda ids, E, P=None: E[ids],
    ),
    Mistake(
        "one_position",
        "every token gets the first row of P",
        "Add row t of P to token t: P[:T], not P[0].",
        lambda ids, E, P=None: E[ids] + (0 if P is None else P[0]),
    ),
    Mistake(
        "position_of_id",
        "P is looked up with the ids instead of the places",
        "A place is counted from 0 along the sequence: P[:T], not P[ids].",
        lambda ids, E, P=None: E[ids] + (0 if P is None else P[ids % len(P)]),
    ),
    Mistake(
        "position_of_sequence",
        "in a batch, P follows the sequences instead of the tokens",
        "Positions run along the last axis of ids: ids.shape[-1] of them.",
        _embed_sequence_axis,
    ),
    Mistake(
        "positions_from_one",
        "the first token gets row 1 of P",
        "Count places from 0: P[:T], not P[1:T+1].",
        lambda ids, E, P=None: E[ids] + (0 if P is None else P[1 : ids.shape[-1] + 1]),
    ),
)


def _clock(T, rates, *, start=0, order="interleaved"):
    angles = (start + np.arange(T))[:, None] * rates
    pair = [np.sin(angles), np.cos(angles)]
    if order == "blocks":
        return np.concatenate(pair, axis=-1)
    return np.stack(pair[::-1] if order == "cosine first" else pair, axis=-1).reshape(T, -1)


def _rates(d_model, base, exponent=2):
    return base ** (-exponent * np.arange(d_model // 2) / d_model)


_SINUSOIDAL_POSITIONS = (
    Mistake(
        "blocks",
        "all sines stand first, then all cosines",
        "Sine and cosine of one wavelength are neighbours: P[:, 0::2] and P[:, 1::2].",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, base), order="blocks"),
    ),
    Mistake(
        "cosine_first",
        "cosine and sine have changed places",
        "Even columns hold the sine, odd columns the cosine.",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, base), order="cosine first"),
    ),
    Mistake(
        "exponent_halved",
        "the exponent is i / d_model instead of 2i / d_model",
        "Count the exponent in columns: 0, 2, 4, … over d_model.",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, base, 1)),
    ),
    Mistake(
        "from_one",
        "positions are counted from 1",
        "The first row is position 0, with sine 0 and cosine 1.",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, base), start=1),
    ),
    Mistake(
        "grows",
        "the rates grow from column to column instead of shrinking",
        "Divide the position by base^(2i/d_model); do not multiply.",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, base, -2)),
    ),
    Mistake(
        "base_ignored",
        "`base` is ignored",
        "Use the argument: the check calls with base=100 too.",
        lambda T, d_model, *, base=10_000.0: _clock(T, _rates(d_model, 10_000.0)),
    ),
)


def _embed_keeping(ids, E, P, keep):
    return (E[ids] + P[: ids.shape[-1]]) * keep[..., None]


_EMBED_PADDED = (
    Mistake(
        "positions_stay",
        "padded places lose their word but keep their position",
        "Set the whole row to 0 after both rows are added.",
        lambda ids, E, P, pad_id: E[ids] * (ids != pad_id)[..., None] + P[: ids.shape[-1]],
    ),
    Mistake(
        "padding_stays",
        "padded places are not set to 0",
        "Multiply by (ids != pad_id), with an axis of 1 for the features.",
        lambda ids, E, P, pad_id: E[ids] + P[: ids.shape[-1]],
    ),
    Mistake(
        "pad_id_ignored",
        "it takes 0 for the padding whatever `pad_id` says",
        "Compare with the argument: ids != pad_id.",
        lambda ids, E, P, pad_id: _embed_keeping(ids, E, P, ids != 0),
    ),
    Mistake(
        "padding_kept_only",
        "the words are set to 0 and the padding is kept",
        "Keep the rows where ids != pad_id.",
        lambda ids, E, P, pad_id: _embed_keeping(ids, E, P, ids == pad_id),
    ),
)


_POSITIONS_FROM_WAVELENGTHS = (
    Mistake(
        "no_two_pi",
        "the factor 2π is missing, so a wave is 2π times as long as asked",
        "A full turn is 2π: the angle is 2π · position / wavelength.",
        lambda T, wavelengths: _clock(T, 1 / wavelengths),
    ),
    Mistake(
        "multiplied",
        "positions are multiplied by the wavelength instead of divided by it",
        "A longer wave turns more slowly: divide.",
        lambda T, wavelengths: _clock(T, 2 * np.pi * wavelengths),
    ),
    Mistake(
        "blocks",
        "all sines stand first, then all cosines",
        "Sine and cosine of one wavelength are neighbours: P[:, 0::2] and P[:, 1::2].",
        lambda T, wavelengths: _clock(T, 2 * np.pi / wavelengths, order="blocks"),
    ),
    Mistake(
        "cosine_first",
        "cosine and sine have changed places",
        "Even columns hold the sine, odd columns the cosine.",
        lambda T, wavelengths: _clock(T, 2 * np.pi / wavelengths, order="cosine first"),
    ),
    Mistake(
        "degrees",
        "the angles are in degrees, but np.sin takes radians",
        "A full turn is 2π radians, not 360.",
        lambda T, wavelengths: _clock(T, 360 / wavelengths),
    ),
)


_IS_EQUIVARIANT = (
    Mistake(
        "invariance",
        "it asks whether the output stays the same, not whether it is permuted along",
        "Compare layer(X[order]) with layer(X)[order].",
        lambda layer, X, order: bool(np.allclose(layer(X[order]), layer(X))),
    ),
    Mistake(
        "undone_twice",
        "one side is permuted with the inverse order",
        "Use the same order on both sides: layer(X)[order].",
        lambda layer, X, order: bool(np.allclose(layer(X[order]), layer(X)[np.argsort(order)])),
    ),
    Mistake(
        "exactly_equal",
        "floats are compared with ==, but sums in another order differ in the last digit",
        "Compare with np.allclose.",
        lambda layer, X, order: bool((layer(X[order]) == layer(X)[order]).all()),
    ),
    Mistake(
        "features_permuted",
        "the features are permuted instead of the tokens",
        "Rows are tokens: X[order], not X[:, order].",
        lambda layer, X, order: bool(np.allclose(layer(X[:, order]), layer(X)[:, order])),
    ),
)


MISTAKES = {
    "embed": _EMBED,
    "sinusoidal_positions": _SINUSOIDAL_POSITIONS,
    "embed_padded": _EMBED_PADDED,
    "positions_from_wavelengths": _POSITIONS_FROM_WAVELENGTHS,
    "is_equivariant": _IS_EQUIVARIANT,
}
