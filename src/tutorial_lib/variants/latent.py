"""X → one short latent per token, in place of K and V of all heads."""

import math
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import attention_weights
from tutorial_lib.errors import (
    require_broadcast,
    require_length,
    require_mask,
    require_operand,
    require_shape,
    require_wide_dtype,
)
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.projection import Params


@dataclass(frozen=True)
class LatentParams:
    """The parameter arrays of a layer whose keys and values are linear in one latent, X @ W_D.

    Introduced in chapter 15. With W_D = np.eye(d_model), W_UK = W_K and W_UV = W_V the latent is X
    itself, and the layer is that of chapter 06.

    Parameters
    ----------
    W_Q : (H, d_model, d_k)
    W_D : (d_model, rank), the down-projection: computes the latent
    W_UK, W_UV : (H, rank, d_k), (H, rank, d_v), the up-projections: compute keys
        and values from it
    W_O : (H*d_v, d_model)

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : the arrays disagree on H, d_model, rank, d_k or d_v
    ValueError : NaN or infinity in one of them

    Source: DeepSeek-AI (2024), section 2.1.2.
    """

    W_Q: np.ndarray
    W_D: np.ndarray
    W_UK: np.ndarray
    W_UV: np.ndarray
    W_O: np.ndarray

    def __post_init__(self):
        require_shape("W_Q", self.W_Q, "H d_model d_k")
        H, d_model, d_k = self.W_Q.shape
        require_shape("W_D", self.W_D, "d_model rank", d_model=d_model)
        rank = self.W_D.shape[-1]
        require_shape("W_UK", self.W_UK, "H rank d_k", H=H, rank=rank, d_k=d_k)
        require_shape("W_UV", self.W_UV, "H rank d_v", H=H, rank=rank)
        width = H * self.W_UV.shape[-1]
        require_shape("W_O", self.W_O, "H*d_v d_model", **{"H*d_v": width, "d_model": d_model})
        for name in ("W_Q", "W_D", "W_UK", "W_UV", "W_O"):
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
        return self.W_UV.shape[2]

    @property
    def rank(self):
        """Width of the latent: the numbers cached per token."""
        return self.W_D.shape[1]

    def expanded(self):
        """Return the Params of the layer of chapter 06 that computes the same."""
        return Params(self.W_Q, self.W_D @ self.W_UK, self.W_D @ self.W_UV, self.W_O)


def latent_params(params, rank):
    """Give a layer a latent: the truncated SVD of [W_K | W_V] of all heads.

    Built in chapter 15. No matrix of that rank has a smaller sum of squared differences to
    [W_K | W_V]; scores and Y may be nearer with another. A rank of min(d_model, H*(d_k + d_v))
    gives the layer back.

    Parameters
    ----------
    params : Params
    rank : width of the latent

    Returns
    -------
    latent : LatentParams

    Raises
    ------
    TypeError : params that are no Params, a rank that is no whole number
    ValueError : a rank below 1, or above the smaller side of [W_K | W_V]

    >>> latent_params(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 5).W_UK.shape
    (3, 5, 4)
    """
    require_rank(params, rank)
    joint = np.concatenate([params.W_K, params.W_V], axis=-1)  # (H, d_model, d_k + d_v)
    left, sizes, right = np.linalg.svd(concat_heads(joint), full_matrices=False)
    W_D = left[:, :rank] * sizes[:rank]  # (d_model, rank)
    up = split_heads(right[:rank], params.n_heads)  # (H, rank, d_k + d_v)
    W_UK, W_UV = np.split(up, [params.d_k], axis=-1)
    return LatentParams(params.W_Q, W_D, W_UK, W_UV, params.W_O)


def require_rank(params, rank):
    """Require Params, and a rank that its keys and values together can have.

    Raises
    ------
    TypeError : params that are no Params, a rank that is no whole number
    ValueError : a rank below 1, or above the smaller side of [W_K | W_V]
    """
    if not isinstance(params, Params):
        raise TypeError(
            f"params is a {type(params).__name__}; expected Params, with keys and values of each "
            f"head. Expand a dataclass of a different kind first: params.expanded()."
        )
    require_length("rank", rank)
    sides = params.d_model, params.n_heads * (params.d_k + params.d_v)
    if rank > min(sides):
        raise ValueError(
            f"rank={rank}; expected 1 to {min(sides)}, since [W_K | W_V] of all heads is "
            f"{sides[0]} x {sides[1]}. At {min(sides)} the result is exact."
        )


def absorbed_attention(Q, C, latent, *, mask=None):
    """Attend to latents, without computing keys or values.

    Built in chapter 15. W_UK goes to the query and W_UV to the mixed latent, so all heads attend
    to the same C: multi-query attention, one KV head whose keys are also its values. It divides
    by the root of d_k itself, since its products have a different width. Heads are those of
    `latent.expanded()`. Whether C is finite is checked where it is computed, because a look through
    it would cost as much as the rest.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    C : (..., S, rank), the latents X @ latent.W_D of the tokens that Q attends to
    latent : LatentParams
    mask : booleans that broadcast to (..., H, T, S), True = may look; None lets all look

    Returns
    -------
    heads : (..., H, T, d_v)

    Raises
    ------
    TypeError : no arrays of numbers, no LatentParams, or a mask of anything but booleans
    ShapeError : widths or numbers of heads that differ, an empty axis, a mask that does not
        broadcast
    ValueError : NaN or infinity in Q, or scores that are NaN or overflow

    Source: DeepSeek-AI (2024), section 2.1.2.

    >>> latent = latent_params(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 5)
    >>> absorbed_attention(np.ones((3, 6, 4)), np.ones((8, 5)), latent).shape
    (3, 6, 4)
    """
    require_latents(Q, C, latent, mask)
    *batch, H, T, d_k = Q.shape
    absorbed_Q = Q @ np.swapaxes(latent.W_UK, -1, -2)  # (..., H, T, rank)
    rows = absorbed_Q.reshape(*batch, H * T, -1)  # all heads' queries, head below head
    scores = rows @ np.swapaxes(C, -1, -2) / math.sqrt(d_k)  # (..., H*T, S)
    *batch, _, S = scores.shape
    weights = attention_weights(scores.reshape(*batch, H, T, S), mask=mask)
    mixed = weights.reshape(scores.shape) @ C  # (..., H*T, rank)
    return mixed.reshape(*batch, H, T, -1) @ latent.W_UV  # (..., H, T, d_v)


def require_latents(Q, C, latent, mask):
    """Require finite queries and latents of the widths of LatentParams, and a mask that fits them.

    Raises
    ------
    TypeError : no arrays of numbers, no LatentParams, or a mask of anything but booleans
    ShapeError : widths or numbers of heads that differ, an empty axis, a mask that does not
        broadcast
    ValueError : NaN or infinity in Q
    """
    if not isinstance(latent, LatentParams):
        raise TypeError(
            f"latent is a {type(latent).__name__}; expected LatentParams. "
            f"Compute them with latent_params(params, rank)."
        )
    require_shape("Q", Q, "... H T d_k", H=latent.n_heads, d_k=latent.d_k)
    require_shape("C", C, "... S rank", rank=latent.rank)
    require_broadcast(Q=Q[..., 0, :, :], C=C)
    require_operand("Q", Q)
    require_wide_dtype("C", C)
    batch = np.broadcast_shapes(Q.shape[:-3], C.shape[:-2])
    require_mask(mask, (*batch, *Q.shape[-3:-1], C.shape[-2]))
