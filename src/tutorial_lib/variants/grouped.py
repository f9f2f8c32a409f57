"""X → fewer K, V: heads in groups share keys and values, and so may layers."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, scaled_dot_product_attention
from tutorial_lib.contract import checked, checked_record, require
from tutorial_lib.errors import ShapeError, require_divisible
from tutorial_lib.heads import concat_heads
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.projection import Params, project_heads


@checked_record(made_by="Make them with group_params(params, n_kv_heads).")
class GroupedParams:
    """The four parameter arrays of a layer whose H heads share the keys and values of G KV heads.

    Introduced in chapter 15. Heads g·H/G to (g+1)·H/G - 1 attend to KV head g. G = H is the layer
    of chapter 06; G = 1 is MQA. G divides H.

    Source: Ainslie et al. (2023); Shazeer (2019).
    """

    W_Q: "H d_model d_k"
    W_K: "G d_model d_k"
    W_V: "G d_model d_v"
    W_O: "H*d_v d_model"

    def require_consistent_fields(self):
        """Require that the heads split into equal groups."""
        require_divisible("n_heads", self.n_heads, "n_kv_heads", self.n_kv_heads)

    def expanded(self):
        """Return the Params of the layer of H KV heads that computes the same."""
        W_K, W_V = (np.repeat(W, self.n_heads // len(W), axis=0) for W in (self.W_K, self.W_V))
        return Params(self.W_Q, W_K, W_V, self.W_O)


@checked
def group_params(params: Params, n_kv_heads: "length") -> GroupedParams:
    """Give each group of heads the mean of its heads' keys and values.

    Built in chapter 15. `n_kv_heads` = H gives the layer back.

    Source: Ainslie et al. (2023).

    >>> params = Params(*np.ones((3, 6, 12, 4)), np.ones((24, 12)))
    >>> group_params(params, 2).W_K.shape
    (2, 12, 4)
    """
    require_divisible("n_heads", params.n_heads, "n_kv_heads", n_kv_heads)
    pooled = []
    for W in (params.W_K, params.W_V):
        groups = W.reshape(n_kv_heads, -1, *W.shape[1:])  # (G, H/G, d_model, d)
        pooled.append(groups.mean(axis=1))
    return GroupedParams(params.W_Q, *pooled, params.W_O)


@checked
def grouped_attention(
    Q: "... H T d_k",
    K: "any ... G S d_k",
    V: "any ... G S d_v",
    *,
    mask: "mask ... H T S" = None,
) -> "... H T d_v":
    """Let each group of heads attend to one KV head, and copy no key and no value.

    Built in chapter 15. Heads g·H/G to (g+1)·H/G - 1 belong to KV head g. The queries of a group
    become the rows of one matrix, head below head, so its keys are read once. With as many KV heads
    as heads this is `scaled_dot_product_attention`. Whether K and V are finite is checked where
    they are computed, because a look through them would cost as much as the rest.

    Raises
    ------
    ShapeError : a number of KV heads that does not divide that of heads, K and V of other batches
    ValueError : scores that are NaN or overflow

    Source: Ainslie et al. (2023).

    >>> grouped_attention(np.ones((6, 5, 4)), np.ones((2, 8, 4)), np.ones((2, 8, 7))).shape
    (6, 5, 7)
    """
    require_divisible("the number of query heads", Q.shape[-3], "KV heads", K.shape[-3])
    require(
        K.shape[:-3] == V.shape[:-3],
        ShapeError,
        f"K has the batch axes {K.shape[:-3]}, V has {V.shape[:-3]}; expected the same, since "
        f"each key has its value. Project both from one X.",
    )
    *batch, H, T, d_k = Q.shape
    G = K.shape[-3]
    rows = Q.reshape(*batch, G, H // G * T, d_k)  # a group's queries, head below head
    scores = attention_scores(rows, K)  # (..., G, H/G*T, S)
    *batch, _, _, S = scores.shape
    weights = attention_weights(scores.reshape(*batch, H, T, S), mask=mask)
    mixed = weights.reshape(scores.shape) @ V  # (..., G, H/G*T, d_v)
    return mixed.reshape(*batch, H, T, V.shape[-1])


@checked
def cross_layer_attention(
    X: "... T d_model", layers: list[Params], sources: list["integer"], *, mask: object = None
) -> "... T d_model":
    """Run layers on top of each other, some with the keys and values of an earlier one.

    Built in chapter 15. Each layer adds its output to X. With `sources` = (0, 1, 2, …) every
    layer has keys of its own, which gives the layers back.

    Parameters
    ----------
    layers : of equal widths; a borrower's W_K and W_V are not used
    sources : for each layer, the number of the layer whose keys and values it attends to
    mask : booleans that broadcast to (..., H, T, T), True = may look; None lets all look

    Raises
    ------
    ShapeError : widths or numbers of heads that differ
    ValueError : a source for each is missing, or is no earlier layer with keys of its own

    Source: Brandon et al. (2024).

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> cross_layer_attention(np.ones((5, 12)), [layer, layer], (0, 0)).shape
    (5, 12)
    """
    require_kv_sources(X, layers, sources, mask)
    cached = {}
    for n, (params, source) in enumerate(zip(layers, sources, strict=True)):
        if source == n:
            cached[n] = [project_heads(X, W) for W in (params.W_K, params.W_V)]
        Q = project_heads(X, params.W_Q)
        heads = scaled_dot_product_attention(Q, *cached[source], mask=mask)
        X = X + concat_heads(heads) @ params.W_O
    return X


def require_kv_sources(X, layers, sources, mask):
    """Require layers of equal sizes that fit X, each with a source that has keys of its own."""
    for params in layers:
        multi_head_attention.contract.check_arguments((X, params), {"mask": mask})
    require(
        all(params.sizes == layers[0].sizes for params in layers),
        ShapeError,
        f"the layers have the sizes {[params.sizes for params in layers]}; expected the same in "
        f"each, since queries of one are scored against keys of another. Sample all alike.",
    )
    require(
        len(sources) == len(layers),
        ValueError,
        f"there are {len(layers)} layers and {len(sources)} sources; expected one for each. "
        f"A layer with keys of its own has its own number.",
    )
    for n, source in enumerate(sources):
        require(
            0 <= source <= n and sources[source] == source,
            ValueError,
            f"layer {n} takes its keys from layer {source}; expected itself, or an earlier layer "
            f"with keys of its own. Its own number is {n}.",
        )
