"""Wide rows ↔ heads: cut the width into heads, and lay the heads side by side again."""

import numpy as np

from tutorial_lib.errors import require_divisible, require_shape


def split_heads(X, n_heads):
    """Cut each row into n_heads equal pieces and give each head its own matrix.

    Built in chapter 04.

    Parameters
    ----------
    X : (..., T, H*d), such as the product of the input and one wide matrix
    n_heads : H

    Returns
    -------
    heads : (..., H, T, d); head h holds columns h*d to (h+1)*d of X

    Raises
    ------
    TypeError : no array of numbers, or n_heads is no whole number
    ShapeError : fewer than two axes, an empty axis, or a width that does not split

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> split_heads(np.ones((5, 12)), 3).shape
    (3, 5, 4)
    """
    require_shape("X", X, "... T width")
    require_divisible("width", X.shape[-1], "n_heads", n_heads)
    *batch, T, width = X.shape
    pieces = X.reshape(*batch, T, n_heads, width // n_heads)  # (..., T, H, d)
    return np.swapaxes(pieces, -3, -2)  # (..., H, T, d)


def concat_heads(heads):
    """Lay the heads side by side, head 0 first.

    Built in chapter 05.

    Parameters
    ----------
    heads : (..., H, T, d_v)

    Returns
    -------
    concat : (..., T, H*d_v)

    Raises
    ------
    TypeError : no array of numbers
    ShapeError : fewer than three axes, or an empty axis

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> concat_heads(np.ones((3, 5, 4))).shape
    (5, 12)
    """
    require_shape("heads", heads, "... H T d_v")
    *batch, H, T, d_v = heads.shape
    pieces = np.swapaxes(heads, -3, -2)  # (..., T, H, d_v)
    return pieces.reshape(*batch, T, H * d_v)
