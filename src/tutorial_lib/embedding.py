"""ids → X: a row of a table for each token, plus a row for its position."""

import numpy as np

from tutorial_lib.contract import checked, require, require_value_fits_annotation
from tutorial_lib.errors import ShapeError, require_ids


@checked
def embed(
    ids: "int ... T", E: "vocabulary d_model", P: "positions d_model" = None
) -> "... T d_model":
    """Look up a vector for each token and add its position's vector.

    Built in chapter 01. E has a row for each token, P one for each position; no P adds nothing.

    Raises
    ------
    ShapeError : fewer positions than tokens
    ValueError : an id outside E

    Source: Vaswani et al. (2017), sections 3.4 and 3.5, without the factor sqrt(d_model).

    >>> embed(np.array([2, 0, 1]), np.ones((4, 12))).shape
    (3, 12)
    """
    require_ids(ids, len(E))
    require_position_table(P, ids.shape[-1], E.shape[-1])
    X = E[ids]  # (..., T, d_model)
    if P is None:
        return X
    return X + P[: ids.shape[-1]]


def require_position_table(P, T, d_model):
    """Require None, or a finite table of at least T rows of width d_model."""
    if P is None:
        return
    require_value_fits_annotation("P", P, "positions d_model", d_model=d_model)
    require(
        len(P) >= T,
        ShapeError,
        f"the sequence has {T} tokens, but P has rows for {len(P)} positions; expected at "
        f"least {T} rows. Cut the sequence, or give P more rows.",
    )


@checked
def sinusoidal_positions(T: "length", d_model: "length", *, base: float = 10_000.0) -> "T d_model":
    """Fill a table of positions with sines and cosines of ever longer wavelengths.

    Built in chapter 01. Columns 2i and 2i+1 hold the sine and the cosine of t / base^(2i/d_model),
    so the lowest frequency is base^(2/d_model) / base radians per position, 0.001 for width 8.

    Raises
    ------
    ShapeError : d_model is odd
    ValueError : base is no positive finite number

    Source: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal_positions(5, 12).shape
    (5, 12)
    """
    require(
        d_model % 2 == 0,
        ShapeError,
        f"d_model={d_model}; expected an even width, a sine and a cosine for each wavelength. "
        f"Choose {d_model - 1} or {d_model + 1}.",
    )
    require_wavelength_base(base)
    frequencies = base ** (-np.arange(0, d_model, 2) / d_model)  # (d_model/2,)
    angles = np.arange(T)[:, None] * frequencies  # (T, d_model/2)
    P = np.empty((T, d_model))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles)
    return P


def require_wavelength_base(base):
    """Require a positive, finite base of the wavelengths."""
    require(
        0 < base < np.inf,
        ValueError,
        f"base={base}; expected a positive finite number. The paper's choice is base=10_000.0.",
    )
