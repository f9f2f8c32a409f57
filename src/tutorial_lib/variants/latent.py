"""X → one short latent per token, in place of K and V of all heads."""

import math

import numpy as np

from tutorial_lib.attention import attention_weights
from tutorial_lib.contract import checked, checked_record, require
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.projection import Params


@checked_record(made_by="Compute them with latent_params(params, rank).")
class LatentParams:
    """The parameter arrays of a layer whose keys and values are linear in one latent, X @ W_D.

    Introduced in chapter 15. With W_D = np.eye(d_model), W_UK = W_K and W_UV = W_V the latent is X
    itself, and the layer is that of chapter 06.

    Source: DeepSeek-AI (2024), section 2.1.2.
    """

    W_Q: "H d_model d_k"
    W_D: "d_model rank"  # the down-projection: computes the latent
    W_UK: "H rank d_k"  # the up-projections: compute keys and values from it
    W_UV: "H rank d_v"
    W_O: "H*d_v d_model"

    def expanded(self):
        """Return the Params of the layer of chapter 06 that computes the same."""
        return Params(self.W_Q, self.W_D @ self.W_UK, self.W_D @ self.W_UV, self.W_O)


@checked
def latent_params(params: Params, rank: "length") -> LatentParams:
    """Give a layer a latent: the truncated SVD of [W_K | W_V] of all heads.

    Built in chapter 15. No matrix of that rank has a smaller sum of squared differences to
    [W_K | W_V]; scores and Y may be nearer with another. A rank of min(d_model, H*(d_k + d_v))
    gives the layer back; no larger one can be.

    >>> latent_params(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 5).W_UK.shape
    (3, 5, 4)
    """
    require(
        rank <= min(params.d_model, params.n_heads * (params.d_k + params.d_v)),
        ValueError,
        f"rank={rank}; expected at most the smaller side of [W_K | W_V] of all heads, exact there: "
        f"{params.d_model} x {params.n_heads * (params.d_k + params.d_v)}. Give a lower rank.",
    )
    joint = np.concatenate([params.W_K, params.W_V], axis=-1)  # (H, d_model, d_k + d_v)
    left, sizes, right = np.linalg.svd(concat_heads(joint), full_matrices=False)
    W_D = left[:, :rank] * sizes[:rank]  # (d_model, rank)
    up = split_heads(right[:rank], params.n_heads)  # (H, rank, d_k + d_v)
    W_UK, W_UV = np.split(up, [params.d_k], axis=-1)
    return LatentParams(params.W_Q, W_D, W_UK, W_UV, params.W_O)


@checked
def absorbed_attention(
    Q: "... H T d_k",
    C: "any ... S rank",
    latent: LatentParams,
    *,
    mask: "mask ... H T S" = None,
) -> "... H T d_v":
    """Attend to latents, without computing keys or values.

    Built in chapter 15. C holds the latents X @ latent.W_D of the tokens that Q attends to. W_UK
    goes to the query and W_UV to the mixed latent, so all heads attend to the same C: multi-query
    attention, one KV head whose keys are also its values. It divides by the root of d_k itself,
    since its products have a different width. Heads are those of `latent.expanded()`. Whether C is
    finite is checked where it is computed, because a look through it would cost as much as the
    rest.

    Raises
    ------
    ValueError : scores that are NaN or overflow

    Source: DeepSeek-AI (2024), section 2.1.2.

    >>> latent = latent_params(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 5)
    >>> absorbed_attention(np.ones((3, 6, 4)), np.ones((8, 5)), latent).shape
    (3, 6, 4)
    """
    *batch, H, T, d_k = Q.shape
    absorbed_Q = Q @ np.swapaxes(latent.W_UK, -1, -2)  # (..., H, T, rank)
    rows = absorbed_Q.reshape(*batch, H * T, -1)  # all heads' queries, head below head
    scores = rows @ np.swapaxes(C, -1, -2) / math.sqrt(d_k)  # (..., H*T, S)
    *batch, _, S = scores.shape
    weights = attention_weights(scores.reshape(*batch, H, T, S), mask=mask)
    mixed = weights.reshape(scores.shape) @ C  # (..., H*T, rank)
    return mixed.reshape(*batch, H, T, -1) @ latent.W_UV  # (..., H, T, d_v)
