"""The layer backwards: from dL/dY to the gradients of its inputs and of its parameters.

L is the number that training makes smaller, the loss. In front of an array's name, d means "the
derivative of L with respect to each of its entries", so dX always has the shape of X.
"""

import math
from dataclasses import dataclass

import numpy as np

from tutorial_lib.errors import (
    ShapeError,
    require_array,
    require_broadcast,
    require_finite,
    require_floats,
    require_shape,
)
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.multihead import Trace, require_layer_input


@dataclass(frozen=True)
class Gradients:
    """The derivative of the loss with respect to every input and parameter of one layer.

    Introduced in chapter 08.

    Parameters
    ----------
    dX : (..., T, d_model); in self-attention the sum over the paths through Q, K and V
    dcontext : (..., S, d_model), through K and V; None in self-attention
    dW_Q, dW_K : (H, d_model, d_k)
    dW_V : (H, d_model, d_v)
    dW_O : (H*d_v, d_model)
    """

    dX: np.ndarray
    dcontext: np.ndarray | None
    dW_Q: np.ndarray
    dW_K: np.ndarray
    dW_V: np.ndarray
    dW_O: np.ndarray


def softmax_backward(weights, dweights):
    """Go back through a softmax over the last axis: from dL/dweights to dL/dscores.

    Built in chapter 08. A score raises its own weight and lowers all others of its row, so what
    counts is how far dweights lies above its mean in the row. A row of zeros gives zeros.

    Parameters
    ----------
    weights : (..., T, S), what the softmax returned
    dweights : (..., T, S)

    Returns
    -------
    dscores : (..., T, S)

    Raises
    ------
    TypeError : not arrays of floats
    ShapeError : two shapes, or an empty axis
    ValueError : NaN or infinity in dweights

    >>> softmax_backward(np.full((5, 6), 1 / 6), np.ones((5, 6))).shape
    (5, 6)
    """
    require_shape("weights", weights, "... S")
    require_gradient("dweights", dweights, weights.shape)
    mean = (weights * dweights).sum(axis=-1, keepdims=True)  # (..., T, 1)
    return weights * (dweights - mean)


def sum_copies(gradient, shape):
    """Add up the gradients of the copies that broadcasting made of one array.

    Introduced in chapter 08.

    Parameters
    ----------
    gradient : of the copies
    shape : of the one array; it broadcasts to the shape of gradient

    Returns
    -------
    gradient : of that shape

    Raises
    ------
    TypeError : not an array of numbers
    ShapeError : a shape that does not broadcast to that of gradient

    >>> sum_copies(np.ones((2, 5, 4)), (5, 4)).shape
    (5, 4)
    """
    require_copies(gradient, shape)
    if gradient.shape == shape:
        return gradient
    once = (1,) * (gradient.ndim - len(shape)) + shape  # (1, 6, 12) for (6, 12)
    copied = tuple(np.flatnonzero(np.not_equal(once, gradient.shape)))  # axes
    return gradient.sum(axis=copied, keepdims=True).reshape(shape)


def attention_backward(Q, K, V, weights, dheads):
    """Go back through score and mix: from dL/dheads to dL/dQ, dL/dK and dL/dV.

    Built in chapter 08. The mask is no argument: a key that it hid has weight 0. Leading axes
    broadcast as in the forward pass, where values may have a batch axis that the weights lack. The
    root of d_k is divided by here, as `attention_scores` did in the forward pass.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K : (..., H, S, d_k)
    V : (..., H, S, d_v)
    weights : (..., H, T, S)
    dheads : (..., H, T, d_v), the shape of weights @ V

    Returns
    -------
    dQ, dK, dV : the shapes of Q, K and V

    Raises
    ------
    TypeError : not arrays of numbers, or a dheads of whole numbers
    ShapeError : lengths or widths that differ, an empty axis
    ValueError : NaN or infinity in dheads

    >>> [d.shape for d in attention_backward(*np.ones((5, 3, 4, 4)))]
    [(3, 4, 4), (3, 4, 4), (3, 4, 4)]
    """
    require_attention(Q, K, V, weights, dheads)
    dV = np.swapaxes(weights, -1, -2) @ dheads  # (..., H, S, d_v)
    dweights = sum_copies(dheads @ np.swapaxes(V, -1, -2), weights.shape)
    dproducts = softmax_backward(weights, dweights) / math.sqrt(Q.shape[-1])
    dQ = dproducts @ K  # (..., H, T, d_k)
    dK = np.swapaxes(dproducts, -1, -2) @ Q  # (..., H, S, d_k)
    return sum_copies(dQ, Q.shape), sum_copies(dK, K.shape), sum_copies(dV, V.shape)


def linear_backward(X, W, dY):
    """Go back through Y = X @ W, in which every token is multiplied by the same matrix.

    Built in chapter 08.

    Parameters
    ----------
    X : (..., T, d_in)
    W : (d_in, d_out)
    dY : (..., T, d_out)

    Returns
    -------
    dX, dW : the shapes of X and W; dW is the sum over all tokens

    Raises
    ------
    TypeError : not arrays of numbers, or a dY of whole numbers
    ShapeError : widths or lengths that differ, an empty axis
    ValueError : NaN or infinity in dY

    >>> [d.shape for d in linear_backward(np.ones((5, 12)), np.ones((12, 7)), np.ones((5, 7)))]
    [(5, 12), (12, 7)]
    """
    require_shape("X", X, "... T d_in")
    require_shape("W", W, "d_in d_out", d_in=X.shape[-1])
    require_gradient("dY", dY, (*X.shape[:-1], W.shape[-1]))
    tokens = X.reshape(-1, X.shape[-1])  # (all tokens, d_in)
    dW = tokens.T @ dY.reshape(-1, dY.shape[-1])  # (d_in, d_out)
    return dY @ W.T, dW


def project_heads_backward(X, W, dprojected):
    """Go back through `project_heads`: the heads side by side are one wide product.

    Built in chapter 08.

    Parameters
    ----------
    X : (..., T, d_model)
    W : (H, d_model, d), such as W_Q
    dprojected : (..., H, T, d), such as dQ

    Returns
    -------
    dX, dW : the shapes of X and W; dX is the sum over all heads, dW that over all tokens

    Raises
    ------
    TypeError : not arrays of numbers, or a dprojected of whole numbers
    ShapeError : widths or lengths that differ, an empty axis
    ValueError : NaN or infinity in dprojected

    >>> X, W, dprojected = np.ones((5, 12)), np.ones((3, 12, 4)), np.ones((3, 5, 4))
    >>> [d.shape for d in project_heads_backward(X, W, dprojected)]
    [(5, 12), (3, 12, 4)]
    """
    require_shape("X", X, "... T d_model")
    require_shape("W", W, "H d_model d", d_model=X.shape[-1])
    require_gradient("dprojected", dprojected, (*X.shape[:-2], len(W), X.shape[-2], W.shape[-1]))
    dX, dwide = linear_backward(X, concat_heads(W), concat_heads(dprojected))
    return dX, split_heads(dwide, len(W))


def multi_head_attention_backward(trace, dY):
    """Go back through the whole layer, from dL/dY to the gradients of its inputs and parameters.

    Built in chapter 08.

    Parameters
    ----------
    trace : Trace of the forward pass, of floats
    dY : (..., T, d_model)

    Returns
    -------
    gradients : Gradients

    Raises
    ------
    TypeError : not a Trace of arrays, whole numbers where a gradient is expected
    ShapeError : a dY of another shape than Y
    ValueError : NaN or infinity

    >>> record = trace(np.ones((5, 12)), Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))))
    >>> multi_head_attention_backward(record, np.ones((5, 12))).dW_O.shape
    (12, 12)
    """
    require_backward(trace, dY)
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


def require_gradient(name, gradient, shape):
    """Require finite floats of the shape of the array whose gradient they are.

    Raises
    ------
    TypeError : not an array of floats
    ShapeError : another shape
    ValueError : NaN or infinity
    """
    require_array(name, gradient)
    require_floats(name, gradient)
    if gradient.shape != tuple(shape):
        raise ShapeError(
            f"{name} has shape {gradient.shape}; expected {tuple(shape)}, the shape of "
            f"{name.removeprefix('d')}: a gradient has one entry for each entry of its array. "
            f"Take it from the loss of this very {name.removeprefix('d')}."
        )
    require_finite(name, gradient)


def require_copies(gradient, shape):
    """Require a tuple of lengths that broadcasts to the shape of the gradient.

    Raises
    ------
    TypeError : not an array of numbers
    ShapeError : lengths that do not broadcast to it
    """
    require_array("gradient", gradient)
    try:
        fits = np.broadcast_shapes(shape, gradient.shape) == gradient.shape
    except (TypeError, ValueError):
        fits = False
    if not (isinstance(shape, tuple) and fits):
        raise ShapeError(
            f"gradient has shape {gradient.shape}; expected copies of an array of shape {shape}, "
            f"but that does not broadcast to it. Pass the shape of the array, such as K.shape."
        )


def require_attention(Q, K, V, weights, dheads):
    """Require queries, keys, values, weights and a gradient that fit together.

    Raises
    ------
    TypeError : not arrays of numbers, or a dheads of whole numbers
    ShapeError : lengths or widths that differ, an empty axis, batch axes that do not fit
    ValueError : NaN or infinity in dheads
    """
    require_shape("Q", Q, "... T d_k")
    require_shape("K", K, "... S d_k", d_k=Q.shape[-1])
    require_shape("V", V, "... S d_v", S=K.shape[-2])
    require_shape("weights", weights, "... T S", T=Q.shape[-2], S=K.shape[-2])
    require_broadcast(Q=Q, K=K, V=V, weights=weights)
    leading = np.broadcast_shapes(weights.shape[:-2], V.shape[:-2])
    require_gradient("dheads", dheads, (*leading, weights.shape[-2], V.shape[-1]))


def require_backward(trace, dY):
    """Require a trace of finite floats, and a gradient of its output.

    Raises
    ------
    TypeError : not a Trace of arrays, whole numbers where a gradient is expected
    ShapeError : a dY of another shape than Y
    ValueError : NaN or infinity
    """
    if not isinstance(trace, Trace):
        raise TypeError(
            f"trace is a {type(trace).__name__}; expected a Trace, the record of the forward pass. "
            f"Compute it with trace(X, params, ...)."
        )
    require_gradient("dY", dY, trace.Y.shape)
    require_layer_input(trace.X, trace.params, trace.context, None)
    require_finite("trace.Y", trace.Y)  # what overflows anywhere in the layer ends up here
    source = trace.X if trace.context is None else trace.context
    for name, array in {"X": trace.X, "context": source}.items():
        require_floats(name, array)
