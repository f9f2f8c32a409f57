"""The layer backwards: from dL/dY to the gradients of its inputs and of its parameters.

L is the number that training makes smaller, the loss. In front of an array's name, d means "the
derivative of L with respect to each of its entries", so dX always has the shape of X.
"""

import math
from dataclasses import dataclass

import numpy as np

from tutorial_lib.contract import checked, require, require_record_axes
from tutorial_lib.errors import (
    ShapeError,
    broadcasts_to,
    require_finite,
    require_float_array,
    require_gradient,
)
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.multihead import Trace, multi_head_attention


@dataclass(frozen=True)
class Gradients:
    """The derivative of the loss with respect to every input and parameter of one layer.

    Introduced in chapter 08.
    """

    dX: "... T d_model"  # in self-attention the sum over the paths through Q, K and V
    dcontext: "... S d_model"  # through K and V; None in self-attention
    dW_Q: "H d_model d_k"
    dW_K: "H d_model d_k"
    dW_V: "H d_model d_v"
    dW_O: "H*d_v d_model"


@checked
def softmax_backward(weights: "any ... S", dweights: "gradient ... S") -> "... S":
    """Go back through a softmax over the last axis: from dL/dweights to dL/dscores.

    Built in chapter 08. A score raises its own weight and lowers all others of its row, so what
    counts is how far dweights lies above its mean in the row. A row of zeros gives zeros.

    >>> softmax_backward(np.full((5, 6), 1 / 6), np.ones((5, 6))).shape
    (5, 6)
    """
    mean = (weights * dweights).sum(axis=-1, keepdims=True)  # (..., T, 1)
    return weights * (dweights - mean)


@checked
def sum_copies(gradient: "any ...", shape: tuple) -> "...":
    """Add up the gradients of the copies that broadcasting made of one array.

    Introduced in chapter 08. `shape` is that of the one array, and then of the sum.

    Raises
    ------
    ShapeError : a shape that does not broadcast to that of gradient

    >>> sum_copies(np.ones((2, 5, 4)), (5, 4)).shape
    (5, 4)
    """
    require(
        broadcasts_to(shape, gradient.shape),
        ShapeError,
        f"gradient has shape {gradient.shape}; expected copies of an array of shape {shape}, "
        f"but that does not broadcast to it. Pass the shape of the array, such as K.shape.",
    )
    if gradient.shape == shape:
        return gradient
    padded_shape = (1,) * (gradient.ndim - len(shape)) + shape  # (1, 6, 12) for (6, 12)
    copied_axes = tuple(np.flatnonzero(np.not_equal(padded_shape, gradient.shape)))  # axes
    return gradient.sum(axis=copied_axes, keepdims=True).reshape(shape)


@checked
def attention_backward(
    Q: "any ... T d_k",
    K: "any ... S d_k",
    V: "any ... S d_v",
    weights: "any ... T S",
    dheads: "gradient ... T d_v",
):
    """Go back through score and mix: from dL/dheads to dL/dQ, dL/dK and dL/dV.

    Built in chapter 08. The mask is no argument: a key that it hid has weight 0. Leading axes
    broadcast as in the forward pass, where values may have a batch axis that the weights lack. The
    root of d_k is divided by here, as `attention_scores` did in the forward pass.

    >>> [d.shape for d in attention_backward(*np.ones((5, 3, 4, 4)))]
    [(3, 4, 4), (3, 4, 4), (3, 4, 4)]
    """
    dV = np.swapaxes(weights, -1, -2) @ dheads  # (..., H, S, d_v)
    dweights = sum_copies(dheads @ np.swapaxes(V, -1, -2), weights.shape)
    dproducts = softmax_backward(weights, dweights) / math.sqrt(Q.shape[-1])
    dQ = dproducts @ K  # (..., H, T, d_k)
    dK = np.swapaxes(dproducts, -1, -2) @ Q  # (..., H, S, d_k)
    return sum_copies(dQ, Q.shape), sum_copies(dK, K.shape), sum_copies(dV, V.shape)


@checked
def linear_backward(X: "any ... T d_in", W: "any d_in d_out", dY: "gradient ... T d_out"):
    """Go back through Y = X @ W, in which every token is multiplied by the same matrix: dX and dW.

    Built in chapter 08. dW is the sum over all tokens.

    >>> [d.shape for d in linear_backward(np.ones((5, 12)), np.ones((12, 7)), np.ones((5, 7)))]
    [(5, 12), (12, 7)]
    """
    tokens = X.reshape(-1, X.shape[-1])  # (all tokens, d_in)
    dW = tokens.T @ dY.reshape(-1, dY.shape[-1])  # (d_in, d_out)
    return dY @ W.T, dW


@checked
def project_heads_backward(
    X: "any ... T d_model", W: "any H d_model d", dprojected: "gradient ... H T d"
):
    """Go back through `project_heads`, whose heads side by side are one wide product: dX and dW.

    Built in chapter 08. dX is the sum over all heads, dW that over all tokens.

    >>> X, W, dprojected = np.ones((5, 12)), np.ones((3, 12, 4)), np.ones((3, 5, 4))
    >>> [d.shape for d in project_heads_backward(X, W, dprojected)]
    [(5, 12), (3, 12, 4)]
    """
    dX, dwide = linear_backward(X, concat_heads(W), concat_heads(dprojected))
    return dX, split_heads(dwide, len(W))


@checked
def multi_head_attention_backward(trace: Trace, dY: "any ...") -> Gradients:
    """Go back through the whole layer, from dL/dY to the gradients of its inputs and parameters.

    Built in chapter 08. dY has the shape of trace.Y.

    Raises
    ------
    TypeError : a trace of whole numbers
    ValueError : NaN or infinity in the trace

    >>> record = trace(np.ones((5, 12)), Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))))
    >>> multi_head_attention_backward(record, np.ones((5, 12))).dW_O.shape
    (12, 12)
    """
    require_backward_inputs(trace, dY)
    dconcat, dW_O = linear_backward(trace.concat, trace.params.W_O, dY)
    dheads = split_heads(dconcat, trace.params.n_heads)  # (..., H, T, d_v)
    arrays = trace.Q, trace.K, trace.V, trace.weights
    dQ, dK, dV = attention_backward(*arrays, dheads)
    source = trace.X if trace.context is None else trace.context
    from_Q, dW_Q = project_heads_backward(trace.X, trace.params.W_Q, dQ)
    from_K, dW_K = project_heads_backward(source, trace.params.W_K, dK)
    from_V, dW_V = project_heads_backward(source, trace.params.W_V, dV)
    if trace.context is None:
        return Gradients(from_Q + from_K + from_V, None, dW_Q, dW_K, dW_V, dW_O)
    return Gradients(from_Q, from_K + from_V, dW_Q, dW_K, dW_V, dW_O)


def require_backward_inputs(trace, dY):
    """Require a trace of finite floats, and a gradient of its output."""
    require_gradient("dY", dY, trace.Y.shape)
    layer_input = {"X": trace.X, "params": trace.params, "context": trace.context}
    multi_head_attention.contract.check_arguments((), layer_input)
    key_input = trace.X if trace.context is None else trace.context
    require_record_axes("trace", trace, trace.params.sizes | {"S": key_input.shape[-2]})
    require_finite("trace.Y", trace.Y)  # what overflows anywhere in the layer ends up here
    for name, array in {"X": trace.X, "context": key_input}.items():
        require_float_array(name, array)
