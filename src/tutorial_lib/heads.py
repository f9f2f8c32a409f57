"""Wide rows ↔ heads: cut the width into heads, and lay the heads side by side again."""

import numpy as np

from tutorial_lib.contract import checked
from tutorial_lib.errors import require_divisible


@checked
def split_heads(X: "raw ... T width", n_heads: "length") -> "... H T d":
    """Cut each row into n_heads equal pieces and give each head its own matrix.

    Built in chapter 04. Head h holds columns h*d to (h+1)*d of X, such as the product of the input
    and one wide matrix.

    Raises
    ------
    ShapeError : a width that does not split

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> split_heads(np.ones((5, 12)), 3).shape
    (3, 5, 4)
    """
    require_divisible("width", X.shape[-1], "n_heads", n_heads)
    *batch, T, width = X.shape
    pieces = X.reshape(*batch, T, n_heads, width // n_heads)  # (..., T, H, d)
    return np.swapaxes(pieces, -3, -2)  # (..., H, T, d)


@checked
def concat_heads(heads: "raw ... H T d_v") -> "... T H*d_v":
    """Lay the heads side by side, head 0 first.

    Built in chapter 05.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> concat_heads(np.ones((3, 5, 4))).shape
    (5, 12)
    """
    *batch, H, T, d_v = heads.shape
    pieces = np.swapaxes(heads, -3, -2)  # (..., T, H, d_v)
    return pieces.reshape(*batch, T, H * d_v)
