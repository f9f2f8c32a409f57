"""ids → X: a row of a table for each token, plus a row for its position."""

import numpy as np

from tutorial_lib.errors import (
    ShapeError,
    require_ids,
    require_length,
    require_operand,
    require_shape,
)


def require_positions(P, T, d_model):
    """Require None, or a finite table of at least T rows of width d_model.

    Raises
    ------
    TypeError : not an array of numbers
    ShapeError : another width, or fewer rows than tokens
    ValueError : NaN or infinity in the table
    """
    if P is None:
        return
    require_shape("P", P, "positions d_model", d_model=d_model)
    require_operand("P", P)
    if len(P) < T:
        raise ShapeError(
            f"the sequence has {T} tokens, but P has rows for {len(P)} positions; expected at "
            f"least {T} rows. Cut the sequence, or give P more rows."
        )


def embed(ids, E, P=None):
    """Look up a vector for each token and add its position's vector.

    Built in chapter 01.

    Parameters
    ----------
    ids : (..., T) integers
    E : (vocabulary size, d_model), a row for each token
    P : (at least T, d_model), a row for each position; None adds nothing

    Returns
    -------
    X : (..., T, d_model)

    Raises
    ------
    TypeError : no arrays, or ids that are not integers
    ShapeError : an empty sequence, widths that differ, or fewer positions than tokens
    ValueError : an id outside E, or NaN in a table

    Source: Vaswani et al. (2017), sections 3.4 and 3.5, without the factor sqrt(d_model).

    >>> embed(np.array([2, 0, 1]), np.ones((4, 12))).shape
    (3, 12)
    """
    require_shape("E", E, "vocabulary d_model")
    require_operand("E", E)
    require_ids(ids, len(E))
    require_positions(P, ids.shape[-1], E.shape[-1])
    X = E[ids]  # (..., T, d_model)
    if P is None:
        return X
    return X + P[: ids.shape[-1]]


def sinusoidal_positions(T, d_model, *, base=10_000.0):
    """Fill a table of positions with sines and cosines of ever longer wavelengths.

    Built in chapter 01. Columns 2i and 2i+1 hold the sine and the cosine of t / base^(2i/d_model).

    Parameters
    ----------
    T : number of positions
    d_model : width, even
    base : the lowest frequency is base^(2/d_model) / base radians per position, 0.001 for width 8

    Returns
    -------
    P : (T, d_model)

    Raises
    ------
    TypeError : T or d_model is not a whole number
    ShapeError : d_model is odd
    ValueError : T or d_model below 1, or base not a positive finite number

    Source: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal_positions(5, 12).shape
    (5, 12)
    """
    require_length("T", T)
    require_even(d_model)
    require_base(base)
    frequencies = base ** (-np.arange(0, d_model, 2) / d_model)  # (d_model/2,)
    angles = np.arange(T)[:, None] * frequencies  # (T, d_model/2)
    P = np.empty((T, d_model))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles)
    return P


def require_even(d_model):
    """Require a width that splits into pairs of a sine and a cosine.

    Raises
    ------
    TypeError, ValueError : not a positive whole number
    ShapeError : odd
    """
    require_length("d_model", d_model)
    if d_model % 2:
        raise ShapeError(
            f"d_model={d_model}; expected an even width, a sine and a cosine for each wavelength. "
            f"Choose {d_model - 1} or {d_model + 1}."
        )


def require_base(base):
    """Require a positive, finite base of the wavelengths.

    Raises
    ------
    ValueError : anything else
    """
    if not isinstance(base, int | float | np.number) or not 0 < base < np.inf:
        raise ValueError(
            f"base={base}; expected a positive finite number. The paper's choice is base=10_000.0."
        )
