"""X → Q, K, V: three learned matrices per head."""

import numpy as np

from tutorial_lib.contract import checked, checked_record
from tutorial_lib.errors import require_divisible


@checked
def project_heads(X: "... T d_model", W: "any H d_model d") -> "... H T d":
    """Multiply X by one matrix per head, such as W_Q, all heads at once.

    Built in chapter 02.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> project_heads(np.ones((5, 12)), np.ones((3, 12, 4))).shape
    (3, 5, 4)
    """
    return X[..., None, :, :] @ W  # (..., 1, T, d_model) @ (H, d_model, d) = (..., H, T, d)


@checked_record(made_by="Make them with Params(W_Q, W_K, W_V, W_O) or init_params(rng, ...).")
class Params:
    """The four learned arrays of one multi-head attention layer; there are no biases.

    Introduced in chapter 02.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    W_Q: "H d_model d_k"
    W_K: "H d_model d_k"
    W_V: "H d_model d_v"
    W_O: "H*d_v d_model"


@checked
def init_params(
    rng: np.random.Generator,
    *,
    d_model: "length",
    n_heads: "length",
    d_k: "length" = None,
    d_v: "length" = None,
) -> Params:
    """Sample the parameters of a layer, each entry normal with variance 1 / (rows of its matrix).

    Built in chapter 07. With inputs of variance 1, queries, keys and values have variance 1.

    Parameters
    ----------
    d_k, d_v : widths of a head; d_k is d_model / n_heads and d_v is d_k unless given

    Raises
    ------
    ShapeError : d_k is left out and d_model does not split into n_heads parts

    >>> init_params(np.random.default_rng(0), d_model=12, n_heads=3).W_Q.shape
    (3, 12, 4)
    """
    require_divisible("d_model", d_model, "n_heads", n_heads if d_k is None else 1)
    d_k = d_model // n_heads if d_k is None else d_k
    d_v = d_k if d_v is None else d_v
    by_head = [(n_heads, d_model, d) for d in (d_k, d_k, d_v)]  # W_Q, W_K, W_V
    shapes = [*by_head, (n_heads * d_v, d_model)]  # and W_O
    matrices = [rng.standard_normal(shape) / np.sqrt(shape[-2]) for shape in shapes]
    return Params(*matrices)
