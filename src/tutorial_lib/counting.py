"""What attention costs, counted from shapes alone: flop, and bytes that have to move."""

import math

from tutorial_lib.errors import ShapeError, require_length


def attention_flop(Q, K, V):
    """Count the operations of the two products of attention, scoring and mixing, over all pairs.

    Built in chapter 11. A multiply-add is 2. A causal mask needs about half of the pairs; scale
    and softmax, a few operations a pair beside 2*(d_k + d_v), are left out.

    Parameters
    ----------
    Q, K, V : (..., T, d_k), (..., S, d_k), (..., S, d_v); only their shapes are read, so tensors
        on the device "meta", which hold no numbers, will do

    Returns
    -------
    flop : int

    Raises
    ------
    TypeError : no arrays or tensors
    ShapeError : fewer than two axes, or lengths that do not fit

    >>> attention_flop(*np.ones((3, 5, 4)))
    400
    """
    require_attention(Q, K, V)
    pairs = math.prod(Q.shape[:-1]) * K.shape[-2]  # of a query and a key, in all heads
    return 2 * pairs * (Q.shape[-1] + V.shape[-1])


def attention_bytes(Q, K, V, *, fused):
    """Count the bytes that attention must at least move from and to the device's large memory.

    Built in chapter 11. Fused, each number of Q, K, V and of the heads' output is moved once. Step
    by step the scores are written, read by the softmax, and its weights written and read as well,
    unless a cache keeps them.

    Parameters
    ----------
    Q, K, V : (..., T, d_k), (..., S, d_k), (..., S, d_v) of one precision; only their shapes and
        their precision are read
    fused : whether the table of scores stays out of the large memory

    Returns
    -------
    bytes : int

    Raises
    ------
    TypeError : no arrays or tensors
    ShapeError : fewer than two axes, or lengths that do not fit

    >>> attention_bytes(*np.ones((3, 5, 4)), fused=True)
    640
    """
    require_attention(Q, K, V)
    queries = math.prod(Q.shape[:-1])  # in all heads
    output, table = (queries * n * Q.itemsize for n in (V.shape[-1], K.shape[-2]))
    once = Q.nbytes + K.nbytes + V.nbytes + output
    return once if fused else once + 4 * table


def cache_bytes(*, n_layers, n_kv_heads, d_k, d_v, itemsize):
    """Count the bytes that a cache grows by with each token: its keys and values in all layers.

    Built in chapter 14.

    Parameters
    ----------
    n_layers : layers that keep keys and values of their own
    n_kv_heads : heads of keys and values; as many as query heads where none is shared
    d_k, d_v : widths of a key and of a value
    itemsize : bytes of a number; 2 for 16 bits, 0.5 for 4

    Returns
    -------
    bytes : a token

    Raises
    ------
    TypeError : lengths that are no whole numbers, an itemsize that is no number
    ValueError : one that is not positive

    >>> cache_bytes(n_layers=2, n_kv_heads=3, d_k=4, d_v=7, itemsize=8)
    528
    """
    require_cache(n_layers, n_kv_heads, d_k, d_v, itemsize)
    return n_layers * n_kv_heads * (d_k + d_v) * itemsize


def require_cache(n_layers, n_kv_heads, d_k, d_v, itemsize):
    """Require positive whole numbers, and a positive number of bytes for each number.

    Raises
    ------
    TypeError : lengths that are no whole numbers, an itemsize that is no number
    ValueError : one that is not positive
    """
    lengths = {"n_layers": n_layers, "n_kv_heads": n_kv_heads, "d_k": d_k, "d_v": d_v}
    for name, value in lengths.items():
        require_length(name, value)
    if isinstance(itemsize, bool) or not isinstance(itemsize, int | float):
        raise TypeError(
            f"itemsize is {itemsize!r}, a {type(itemsize).__name__}; expected bytes for each "
            f"number. Give 2 for 16 bits, or 0.5 for 4."
        )
    if not 0 < itemsize < math.inf:
        raise ValueError(
            f"itemsize={itemsize}; expected a positive number of bytes. Divide the bits by 8."
        )


def require_attention(Q, K, V):
    """Require queries, keys and values that fit one another.

    Raises
    ------
    TypeError : no arrays or tensors
    ShapeError : fewer than two axes, or lengths that do not fit
    """
    for name, value in {"Q": Q, "K": K, "V": V}.items():
        if not (hasattr(value, "shape") and hasattr(value, "itemsize")):
            raise TypeError(
                f"{name} is a {type(value).__name__}; expected a NumPy array or a tensor. "
                f'For its shape alone make torch.empty(T, d, device="meta").'
            )
    shapes = [tuple(value.shape) for value in (Q, K, V)]
    fits = min(map(len, shapes)) >= 2 and shapes[0][-1] == shapes[1][-1]
    if not fits or shapes[1][-2] != shapes[2][-2]:
        raise ShapeError(
            f"Q, K and V have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}; expected "
            f"(..., T, d_k), (..., S, d_k) and (..., S, d_v). Make the widths of queries and "
            f"keys agree, and the numbers of keys and values."
        )
