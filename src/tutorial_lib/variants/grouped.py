"""X → fewer K, V: heads in groups share keys and values, and so may layers."""

from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, scaled_dot_product_attention
from tutorial_lib.errors import (
    ShapeError,
    require_broadcast,
    require_divisible,
    require_mask,
    require_operand,
    require_shape,
    require_wide_dtype,
)
from tutorial_lib.heads import concat_heads
from tutorial_lib.multihead import require_layer_input
from tutorial_lib.projection import Params, project_heads


@dataclass(frozen=True)
class GroupedParams:
    """The four parameter arrays of a layer whose H heads share the keys and values of G KV heads.

    Introduced in chapter 15. Heads g·H/G to (g+1)·H/G - 1 attend to KV head g. G = H is the layer
    of chapter 06; G = 1 is MQA.

    Parameters
    ----------
    W_Q : (H, d_model, d_k)
    W_K : (G, d_model, d_k)
    W_V : (G, d_model, d_v)
    W_O : (H*d_v, d_model)

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : the arrays disagree on G, d_model, d_k or d_v, or G does not divide H
    ValueError : NaN or infinity in one of them

    Source: Ainslie et al. (2023); Shazeer (2019).
    """

    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray

    def __post_init__(self):
        require_shape("W_Q", self.W_Q, "H d_model d_k")
        H, d_model, d_k = self.W_Q.shape
        require_shape("W_K", self.W_K, "G d_model d_k", d_model=d_model, d_k=d_k)
        require_divisible("n_heads", H, "n_kv_heads", len(self.W_K))
        require_shape("W_V", self.W_V, "G d_model d_v", G=len(self.W_K), d_model=d_model)
        width = H * self.W_V.shape[-1]
        require_shape("W_O", self.W_O, "H*d_v d_model", **{"H*d_v": width, "d_model": d_model})
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            require_operand(name, getattr(self, name))

    @property
    def n_heads(self):
        """H, the number of query heads."""
        return self.W_Q.shape[0]

    @property
    def n_kv_heads(self):
        """G, the number of KV heads."""
        return self.W_K.shape[0]

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

    def expanded(self):
        """Return the Params of the layer of H KV heads that computes the same."""
        W_K, W_V = (np.repeat(W, self.n_heads // len(W), axis=0) for W in (self.W_K, self.W_V))
        return Params(self.W_Q, W_K, W_V, self.W_O)


def group_params(params, n_kv_heads):
    """Give each group of heads the mean of its heads' keys and values.

    Built in chapter 15. `n_kv_heads` = H gives the layer back.

    Parameters
    ----------
    params : Params
    n_kv_heads : G, a divisor of H

    Returns
    -------
    grouped : GroupedParams

    Raises
    ------
    TypeError : params that are no Params, a number that is not whole
    ShapeError : more KV heads than heads, or a number that does not divide them
    ValueError : below 1

    Source: Ainslie et al. (2023).

    >>> params = Params(*np.ones((3, 6, 12, 4)), np.ones((24, 12)))
    >>> group_params(params, 2).W_K.shape
    (2, 12, 4)
    """
    require_group(params, n_kv_heads)
    pooled = []
    for W in (params.W_K, params.W_V):
        groups = W.reshape(n_kv_heads, -1, *W.shape[1:])  # (G, H/G, d_model, d)
        pooled.append(groups.mean(axis=1))
    return GroupedParams(params.W_Q, *pooled, params.W_O)


def require_group(params, n_kv_heads):
    """Require Params, and a number of KV heads that divides its heads.

    Raises
    ------
    TypeError : params that are no Params, a number that is not whole
    ShapeError : more KV heads than heads, or a number that does not divide them
    ValueError : below 1
    """
    if not isinstance(params, Params):
        raise TypeError(
            f"params is a {type(params).__name__}; expected Params, with a KV head for each head. "
            f"Expand a dataclass of a different kind first: params.expanded()."
        )
    require_divisible("n_heads", params.n_heads, "n_kv_heads", n_kv_heads)


def grouped_attention(Q, K, V, *, mask=None):
    """Let each group of heads attend to one KV head, and copy no key and no value.

    Built in chapter 15. The queries of a group become the rows of one matrix, head below head, so
    its keys are read once. With as many KV heads as heads this is `scaled_dot_product_attention`.
    Whether K and V are finite is checked where they are computed, because a look through them would
    cost as much as the rest.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K : (..., G, S, d_k); heads g·H/G to (g+1)·H/G - 1 belong to KV head g
    V : (..., G, S, d_v)
    mask : booleans that broadcast to (..., H, T, S), True = may look; None lets all look

    Returns
    -------
    heads : (..., H, T, d_v)

    Raises
    ------
    TypeError : no arrays of numbers, or a mask of anything but booleans
    ShapeError : widths or lengths that differ, more KV heads than heads or a number that does not
        divide them, an empty axis, a mask that does not broadcast
    ValueError : NaN or infinity in Q, or scores that are NaN or overflow

    Source: Ainslie et al. (2023).

    >>> grouped_attention(np.ones((6, 5, 4)), np.ones((2, 8, 4)), np.ones((2, 8, 7))).shape
    (6, 5, 7)
    """
    require_groups(Q, K, V, mask)
    *batch, H, T, d_k = Q.shape
    G = K.shape[-3]
    rows = Q.reshape(*batch, G, H // G * T, d_k)  # a group's queries, head below head
    scores = attention_scores(rows, K)  # (..., G, H/G*T, S)
    *batch, _, _, S = scores.shape
    weights = attention_weights(scores.reshape(*batch, H, T, S), mask=mask)
    mixed = weights.reshape(scores.shape) @ V  # (..., G, H/G*T, d_v)
    return mixed.reshape(*batch, H, T, V.shape[-1])


def require_groups(Q, K, V, mask):
    """Require finite queries of H heads, keys and values of G, and a mask that fits them.

    Raises
    ------
    TypeError : no arrays of numbers, or a mask of anything but booleans
    ShapeError : widths or lengths that differ, a G that does not divide H, an empty axis, a mask
        that does not broadcast
    ValueError : NaN or infinity in Q
    """
    require_shape("Q", Q, "... H T d_k")
    require_shape("K", K, "... G S d_k", d_k=Q.shape[-1])
    require_shape("V", V, "... G S d_v", G=K.shape[-3], S=K.shape[-2])
    require_divisible("the number of query heads", Q.shape[-3], "KV heads", K.shape[-3])
    require_same_batch(K, V)
    require_broadcast(Q=Q[..., 0, :, :], K=K[..., 0, :, :])
    require_operand("Q", Q)
    require_wide_dtype("K", K)
    require_wide_dtype("V", V)
    batch = np.broadcast_shapes(Q.shape[:-3], K.shape[:-3])
    require_mask(mask, (*batch, *Q.shape[-3:-1], K.shape[-2]))


def require_same_batch(K, V):
    """Require keys and values of the same sequences.

    Raises
    ------
    ShapeError : different batch axes
    """
    if K.shape[:-3] != V.shape[:-3]:
        raise ShapeError(
            f"K has the batch axes {K.shape[:-3]}, V has {V.shape[:-3]}; expected the same, since "
            f"each key has its value. Project both from one X."
        )


def cross_layer_attention(X, layers, sources, *, mask=None):
    """Run layers on top of each other, some with the keys and values of an earlier one.

    Built in chapter 15. Each layer adds its output to X. With `sources` = (0, 1, 2, …) every
    layer has keys of its own, which gives the layers back.

    Parameters
    ----------
    X : (..., T, d_model)
    layers : list or tuple of Params, of equal widths; a borrower's W_K and W_V are not used
    sources : for each layer, the number of the layer whose keys and values it attends to
    mask : booleans that broadcast to (..., H, T, T), True = may look; None lets all look

    Returns
    -------
    X : (..., T, d_model), after the last layer

    Raises
    ------
    TypeError : layers or sources that are no list or tuple, layers that are no Params, X no array
        of numbers, a mask of anything but booleans
    ShapeError : widths or numbers of heads that differ, a mask that does not broadcast
    ValueError : no layer, a source for each is missing, or is no earlier layer with keys of its
        own; NaN or infinity in X

    Source: Brandon et al. (2024).

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> cross_layer_attention(np.ones((5, 12)), [layer, layer], (0, 0)).shape
    (5, 12)
    """
    require_sources(X, layers, sources, mask)
    cached = {}
    for n, (params, source) in enumerate(zip(layers, sources, strict=True)):
        if source == n:
            cached[n] = [project_heads(X, W) for W in (params.W_K, params.W_V)]
        Q = project_heads(X, params.W_Q)
        heads = scaled_dot_product_attention(Q, *cached[source], mask=mask)
        X = X + concat_heads(heads) @ params.W_O
    return X


def require_sources(X, layers, sources, mask):
    """Require layers of equal shapes that fit X, each with a source that has keys of its own.

    Raises
    ------
    TypeError : layers that are no list or tuple of Params, sources that are neither, X no array
        of numbers, a mask of no booleans
    ShapeError : widths or numbers of heads that differ, a mask that does not fit
    ValueError : no layer, a different number of sources than of layers, a source that is no earlier
        layer with keys of its own; NaN or infinity
    """
    _require_list("layers", layers)
    _require_list("sources", sources)
    for params in layers:
        require_layer_input(X, params, None, mask)
    shapes = {tuple(W.shape for W in vars(params).values()) for params in layers}
    if len(shapes) > 1:
        raise ShapeError(
            f"the layers have the shapes {sorted(shapes)}; expected the same in each, since the "
            f"queries of one are scored against keys of another. Sample all with the same widths."
        )
    if len(sources) != len(layers):
        raise ValueError(
            f"there are {len(layers)} layers and {len(sources)} sources; expected one for each. "
            f"A layer with keys of its own has its own number."
        )
    for n, source in enumerate(sources):
        if source not in list(range(n + 1)) or sources[int(source)] != source:
            raise ValueError(
                f"layer {n} takes its keys from layer {source!r}; expected itself, or an earlier "
                f"layer with keys of its own. Its own number is {n}."
            )


def _require_list(name, given):
    if not isinstance(given, list | tuple | range):
        raise TypeError(
            f"{name} is a {type(given).__name__}; expected a list or a tuple, with an entry for "
            f"each layer. Turn it into a list first."
        )
    if not len(given):
        raise ValueError(f"{name} is empty; expected one or more. Pass an entry for each layer.")
