"""X → Q, K, V: three learned matrices per head."""

from dataclasses import dataclass

import numpy as np

from tutorial_lib.errors import (
    require_divisible,
    require_length,
    require_operand,
    require_shape,
)


def project_heads(X, W):
    """Multiply X by one matrix per head, all heads at once.

    Built in chapter 02.

    Parameters
    ----------
    X : (..., T, d_model)
    W : (H, d_model, d), such as W_Q, W_K or W_V

    Returns
    -------
    projected : (..., H, T, d)

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : widths that differ, a 1-D X, an empty axis
    ValueError : NaN or infinity in X

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> project_heads(np.ones((5, 12)), np.ones((3, 12, 4))).shape
    (3, 5, 4)
    """
    require_shape("X", X, "... T d_model")
    require_shape("W", W, "H d_model d", d_model=X.shape[-1])
    require_operand("X", X)
    return X[..., None, :, :] @ W  # (..., 1, T, d_model) @ (H, d_model, d) = (..., H, T, d)


@dataclass(frozen=True)
class Params:
    """The four learned arrays of one multi-head attention layer; there are no biases.

    Introduced in chapter 02.

    Parameters
    ----------
    W_Q, W_K : (H, d_model, d_k)
    W_V : (H, d_model, d_v)
    W_O : (H*d_v, d_model)

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : the arrays disagree on H, d_model, d_k or d_v
    ValueError : NaN or infinity in one of them

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray

    def __post_init__(self):
        require_shape("W_Q", self.W_Q, "H d_model d_k")
        H, d_model, d_k = self.W_Q.shape
        require_shape("W_K", self.W_K, "H d_model d_k", H=H, d_model=d_model, d_k=d_k)
        require_shape("W_V", self.W_V, "H d_model d_v", H=H, d_model=d_model)
        d_v = self.W_V.shape[-1]
        require_shape("W_O", self.W_O, "H*d_v d_model", **{"H*d_v": H * d_v, "d_model": d_model})
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            require_operand(name, getattr(self, name))

    @property
    def n_heads(self):
        """H, the number of heads."""
        return self.W_Q.shape[0]

    @property
    def d_model(self):
        """Width of the layer's input and output."""
        return self.W_Q.shape[1]

    @property
    def d_k(self):
        """Width of a query and of a key."""
        return self.W_Q.shape[2]

    @property
    def d_v(self):
        """Width of a value."""
        return self.W_V.shape[2]


def init_params(rng, *, d_model, n_heads, d_k=None, d_v=None):
    """Sample the parameters of a layer, each entry normal with variance 1 / (rows of its matrix).

    Built in chapter 07. With inputs of variance 1, queries, keys and values have variance 1.

    Parameters
    ----------
    rng : numpy.random.Generator
    d_model, n_heads : width of the layer, number of heads
    d_k, d_v : widths of a head; d_k is d_model / n_heads and d_v is d_k unless given

    Returns
    -------
    params : Params, float64

    Raises
    ------
    TypeError : rng is no Generator, or a length is no whole number
    ShapeError : d_k is left out and d_model does not split into n_heads parts
    ValueError : a length below 1

    >>> init_params(np.random.default_rng(0), d_model=12, n_heads=3).W_Q.shape
    (3, 12, 4)
    """
    require_generator(rng)
    require_widths(d_model, n_heads, d_k, d_v)
    d_k = d_model // n_heads if d_k is None else d_k
    d_v = d_k if d_v is None else d_v
    by_head = [(n_heads, d_model, d) for d in (d_k, d_k, d_v)]  # W_Q, W_K, W_V
    shapes = [*by_head, (n_heads * d_v, d_model)]  # and W_O
    matrices = [rng.standard_normal(shape) / np.sqrt(shape[-2]) for shape in shapes]
    return Params(*matrices)


def require_generator(rng):
    """Require NumPy's random generator.

    Raises
    ------
    TypeError : anything else, such as a seed
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng is a {type(rng).__name__}; expected a numpy.random.Generator. "
            f"Create one with a seed: np.random.default_rng(0)."
        )


def require_widths(d_model, n_heads, d_k, d_v):
    """Require lengths of a layer; without a d_k, that d_model splits into n_heads parts.

    Raises
    ------
    TypeError, ValueError : a length that is no whole number of at least 1
    ShapeError : a remainder is left
    """
    if d_k is None:
        require_divisible("d_model", d_model, "n_heads", n_heads)
    for name, value in {"d_model": d_model, "n_heads": n_heads, "d_k": d_k, "d_v": d_v}.items():
        if value is not None:
            require_length(name, value)
