"""The KV cache: *project* runs only for new tokens; keys and values of old ones are cached."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask, softmax
from tutorial_lib.errors import (
    ShapeError,
    require_array,
    require_finite,
    require_length,
    require_operand,
    require_shape,
)
from tutorial_lib.heads import concat_heads
from tutorial_lib.projection import Params, project_heads


def write_rows(buffer, length, rows):
    """Write rows into a reserved buffer, behind those that it holds.

    Built in chapter 14. Changes `buffer`; no row that it holds already is changed or copied.

    Parameters
    ----------
    buffer : (..., capacity, d)
    length : number of rows that the buffer holds already
    rows : (..., T, d)

    Returns
    -------
    filled : (..., length + T, d), a view of buffer

    Raises
    ------
    TypeError : no arrays of numbers, rows of more precision, a length that is no whole number
    ShapeError : other axes than those of buffer
    ValueError : NaN or infinity, more rows than the buffer can hold, a length below 0

    >>> write_rows(np.zeros((3, 6, 4)), 2, np.ones((3, 1, 4))).shape
    (3, 3, 4)
    """
    require_rows(buffer, length, rows)
    end = length + rows.shape[-2]
    buffer[..., length:end, :] = rows
    return buffer[..., :end, :]


@dataclass(frozen=True)
class KVCache:
    """The keys and values of the tokens that a layer has processed, in a buffer with room for more.

    Introduced in chapter 14. A static cache: `append` writes into the buffer and returns a longer
    view of it, so no step copies cached rows; the shorter view still shows the same rows.

    Parameters
    ----------
    params : the layer whose cache it is
    buffers : (..., G, capacity, d_k) and (..., G, capacity, d_v), shared by all views
    length : number of tokens, padding included
    pad : (...), numbers of padding tokens at the left of each sequence; None: none
    written : (), number of tokens of the longest view, shared by all views

    Source: Pope et al. (2023).
    """

    params: object
    buffers: tuple
    length: int
    pad: np.ndarray | None
    written: np.ndarray

    @classmethod
    def empty(cls, params, capacity, *, batch=(), pad=None):
        """Reserve buffers for a number of tokens.

        Parameters
        ----------
        params : Params, or a record with W_K (G, d_model, d_k) and W_V (G, d_model, d_v); a width
            may be 0, where a layer caches only one array
        capacity : number of tokens, padding included
        batch : lengths of the batch axes
        pad : (...) whole numbers, how many tokens at the left of each sequence are padding

        Returns
        -------
        cache : KVCache, in the precision of W_K, float32 at least

        Raises
        ------
        TypeError : params without W_K and W_V, lengths or pad that are no whole numbers
        ShapeError : W_K and W_V of different numbers of heads, pad of another shape than batch
        ValueError : a length below 1, more padding than the capacity

        >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
        >>> KVCache.empty(params, 6).append(*np.ones((2, 3, 5, 4))).K.shape
        (3, 5, 4)
        """
        pad = None if pad is None else np.array(pad)
        require_new_cache(params, capacity, batch, pad)
        pad = None if pad is None else pad.astype(int)  # positions are differences, below 0 too
        dtype = np.result_type(params.W_K.dtype, np.float32)
        shapes = ((*batch, len(W), capacity, W.shape[-1]) for W in (params.W_K, params.W_V))
        buffers = tuple(np.zeros(shape, dtype) for shape in shapes)
        return cls(params, buffers, 0, pad, np.zeros((), int))

    @property
    def K(self):
        """The keys so far, to read: (..., G, length, d_k)."""
        return self._filled(0)

    @property
    def V(self):
        """The values so far, to read: (..., G, length, d_v)."""
        return self._filled(1)

    def _filled(self, n):
        rows = self.buffers[n][..., : self.length, :]
        rows.flags.writeable = False  # longer views show the same rows
        return rows

    @property
    def batch(self):
        """The lengths of the batch axes."""
        return self.buffers[0].shape[:-3]

    @property
    def capacity(self):
        """Number of tokens that its buffers can hold."""
        return self.buffers[0].shape[-2]

    def append(self, K, V):
        """Write the keys and values of new tokens behind the others.

        Parameters
        ----------
        K, V : (..., G, T, d_k), (..., G, T, d_v)

        Returns
        -------
        cache : KVCache, longer by T

        Raises
        ------
        TypeError : no arrays of numbers, or of more precision than the cache
        ShapeError : another batch, number of heads or width; K and V of different lengths
        ValueError : NaN or infinity, a full buffer, a cache that was continued already
        """
        require_next(self, K, V)
        for buffer, rows in zip(self.buffers, (K, V), strict=True):
            if buffer.shape[-1]:
                write_rows(buffer, self.length, rows)
        self.written[...] = self.length + V.shape[-2]
        return replace(self, length=int(self.written))

    def fork(self):
        """Copy the cached rows, to continue a second time, or from a view that was continued.

        Returns
        -------
        cache : KVCache of the same layer and length, in buffers of its own
        """
        buffers = tuple(buffer.copy() for buffer in self.buffers)
        return replace(self, buffers=buffers, written=np.array(self.length))

    def mask(self, T):
        """Return the mask of the next T tokens: all before them and themselves, no padding.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        mask : booleans, (T, length + T), or (..., 1, T, length + T) where there is padding

        Raises
        ------
        TypeError, ValueError : T is no positive whole number
        """
        require_length("T", T)
        S = self.length + T
        seen = causal_mask(T, S)  # bottom-right alignment
        if self.pad is None:
            return seen
        real = np.arange(S) >= self.pad[..., None]  # (..., S)
        return seen & real[..., None, None, :]

    def positions(self, T):
        """Return the positions of the next T tokens, padding not counted; padding itself has 0.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        positions : whole numbers, (T,), or (..., T) where there is padding

        Raises
        ------
        TypeError, ValueError : T is no positive whole number
        """
        require_length("T", T)
        index = np.arange(self.length, self.length + T)
        return index if self.pad is None else np.maximum(index - self.pad[..., None], 0)


def require_end(step):
    """Require that a step comes to its end, else leave the cache to be continued as before.

    Rows that a failed step has written lie behind every view that was returned, so the next step
    may overwrite them.
    """

    @functools.wraps(step)
    def whole(X, params, cache):
        written = int(cache.written) if isinstance(cache, KVCache) else None
        try:
            return step(X, params, cache)
        except BaseException:
            if written is not None:
                cache.written[...] = written
            raise

    return whole


@require_end
def decode_step(X, params, cache):
    """Run the layer for new tokens, which attend causally to the cache and to one another.

    Built in chapter 14. From an empty cache, in chunks of any length, it returns the rows that the
    layer gives in one pass under a causal mask. Many tokens at once are prefill, one is decoding.

    Parameters
    ----------
    X : (..., T, d_model), only the new tokens; one or more
    params : Params
    cache : KVCache of this layer, with the tokens before

    Returns
    -------
    Y : (..., T, d_model), the new rows
    cache : KVCache, longer by T

    Raises
    ------
    TypeError : no arrays of numbers, no Params, no KVCache, more precision than the cache
    ShapeError : another width or batch
    ValueError : a cache of another layer, one that was continued already, a full buffer, NaN or
        infinity in X, scores too large for their type; after each the given cache can be continued

    Source: Pope et al. (2023).

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> decode_step(np.ones((5, 12)), params, KVCache.empty(params, 6))[0].shape
    (5, 12)
    """
    require_decode(X, params, cache)
    mask = cache.mask(X.shape[-2])  # of the old tokens and the new
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    cache = cache.append(K, V)
    weights = attention_weights(attention_scores(Q, cache.K), mask=mask)
    return concat_heads(weights @ cache.V) @ params.W_O, cache


def gather_pages(pool, table, length):
    """Collect the rows of one sequence from the pages that hold them.

    Built in chapter 14. It copies them, to show where they lie; a kernel of PagedAttention reads
    each page where it lies.

    Parameters
    ----------
    pool : (pages, ..., page, d), the pages of all sequences, each of which holds `page` tokens
    table : (n,) whole numbers, the pages of this sequence in order: its block table
    length : number of its tokens; the last page may be filled in part

    Returns
    -------
    rows : (..., length, d)

    Raises
    ------
    TypeError : no array of numbers, a table of anything but whole numbers
    ShapeError : a pool with fewer than three axes or no page, a table with other than one
    ValueError : a page that the pool does not have, more tokens than the pages hold

    Source: Kwon et al. (2023), section 4.1.

    >>> gather_pages(np.ones((9, 3, 4, 7)), np.array([5, 0]), 6).shape
    (3, 6, 7)
    """
    require_table(pool, table, length)
    pages = np.moveaxis(pool[table], 0, -3)  # (..., n, page, d)
    *lead, n, size, d = pages.shape
    return pages.reshape(*lead, n * size, d)[..., :length, :]


def merge_heads(heads, logsumexp):
    """Merge the heads of queries over parts of the keys, each part with a softmax of its own.

    Built in chapter 14. The weight of a part is proportional to e to its logsumexp, its sum of
    exponentials. This is the second half of flash-decoding (split-KV).

    Parameters
    ----------
    heads : (P, ..., T, d_v), an entry for each part
    logsumexp : (P, ..., T, 1), the logarithm of each part's sum of e to the score; -inf where a
        query sees no key of a part

    Returns
    -------
    heads : (..., T, d_v), as from one softmax over all keys

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : parts, queries or batch axes that differ
    ValueError : NaN or infinity in heads, NaN or +inf in logsumexp, a query that sees no key

    Source: Milakov & Gimelshein (2018), for the sums; of heads, Ye et al. (2025).

    >>> merge_heads(np.ones((2, 3, 5, 7)), np.zeros((2, 3, 5, 1))).shape
    (3, 5, 7)
    """
    require_parts(heads, logsumexp)
    weights = softmax(logsumexp, axis=0)  # (P, ..., T, 1)
    return (weights * heads).sum(axis=0)


def quantise(A, bits, *, axis=-1):
    """Round to whole numbers of a few bits, spread evenly from the smallest entry to the largest.

    Built in chapter 14. `low + step * codes` is the array again, each entry off by at most half a
    step; an entry on one of the 2**bits levels comes back unchanged.

    Parameters
    ----------
    A : (..., S, d), such as the keys of a cache
    bits : 1 to 8
    axis : along which entries share their levels; -1: per token, -2: per channel, as KIVI does
        for keys

    Returns
    -------
    codes : the shape of A, from 0 to 2**bits - 1, in bytes of their own
    low, step : the shape of A with the length 1 along the axis

    Raises
    ------
    TypeError : no array of floats, bits that are no whole number
    ShapeError : no such axis, an empty array
    ValueError : bits below 1 or above 8, NaN or infinity, a range too wide for the type of A

    Source: Liu et al. (2024).

    >>> print(quantise(np.eye(5, 4), 2)[0].max())
    3
    """
    require_levels(A, bits, axis)
    low = A.min(axis=axis, keepdims=True)
    step = (A.max(axis=axis, keepdims=True) - low) / (2**bits - 1)
    step = np.where(step > 0, step, 1)  # all entries equal
    codes = np.rint((A - low) / step).astype(np.uint8)
    return codes, low, step


def require_rows(buffer, length, rows):
    """Require rows that fit behind the first `length` of the buffer.

    Raises
    ------
    TypeError : no arrays of numbers, rows of more precision, a length that is no whole number
    ShapeError : other axes than those of buffer
    ValueError : NaN or infinity, more rows than the buffer can hold, a length below 0
    """
    require_shape("buffer", buffer, "... capacity d")
    require_shape("rows", rows, "... T d")
    require_count("length", length)
    if rows.shape[:-2] + rows.shape[-1:] != buffer.shape[:-2] + buffer.shape[-1:]:
        raise ShapeError(
            f"rows has shape {rows.shape} and buffer {buffer.shape}; expected them to agree in all "
            f"axes but the last but one. Reserve a buffer of the shape of the rows."
        )
    if np.result_type(rows, buffer) != buffer.dtype:
        raise TypeError(
            f"rows is of {rows.dtype}, and a buffer of {buffer.dtype} would change them; "
            f"expected {buffer.dtype} or less. Convert the rows first, or reserve another buffer."
        )
    require_finite("rows", rows)
    require_capacity(rows.shape[-2], length, buffer.shape[-2])


def require_count(name, value):
    """Require a whole number of at least 0.

    Raises
    ------
    TypeError : not a whole number
    ValueError : below 0
    """
    if value != 0 or not isinstance(value, int | np.integer) or isinstance(value, bool):
        require_length(name, value)


def require_capacity(T, length, capacity):
    """Require that a buffer can hold T tokens behind the first `length`.

    Raises
    ------
    ValueError : it cannot
    """
    if length + T > capacity:
        raise ValueError(
            f"{T} new tokens after {length} make {length + T}, more than capacity={capacity}; "
            f"expected {capacity - length} at most. Give empty a larger capacity."
        )


def require_new_cache(params, capacity, batch, pad):
    """Require a layer's W_K and W_V, lengths, and padding that leaves a token.

    Raises
    ------
    TypeError : params without W_K and W_V, lengths or pad that are no whole numbers
    ShapeError : W_K and W_V of different numbers of heads, pad of another shape than batch
    ValueError : a length below 1, more padding than the capacity
    """
    for name in ("W_K", "W_V"):
        W = getattr(params, name, None)
        if not isinstance(W, np.ndarray) or W.ndim != 3:
            raise TypeError(
                f"params.{name} is {'missing' if W is None else type(W).__name__}; expected an "
                f"array of three axes, (G, d_model, d). Give Params, or a record that has one."
            )
    if len(params.W_K) != len(params.W_V):
        raise ShapeError(
            f"params.W_K has {len(params.W_K)} heads and params.W_V {len(params.W_V)}; expected as "
            f"many, since a token adds a key and a value to each. Give both for the same heads."
        )
    require_length("capacity", capacity)
    if not isinstance(batch, tuple):
        raise TypeError(f"batch is {batch!r}; expected a tuple of lengths, such as (2,) or ().")
    for length in batch:
        require_length("a length of batch", length)
    if pad is not None:
        require_pad(pad, batch, capacity)


def require_pad(pad, batch, capacity):
    """Require a whole number for each sequence, from 0 to less than the capacity.

    Raises
    ------
    TypeError : no whole numbers
    ShapeError : another shape than batch
    ValueError : below 0, or no token beside the padding
    """
    if pad.dtype.kind not in "iu":
        raise TypeError(
            f"pad is of type {pad.dtype}; expected whole numbers, how many tokens at the left of "
            f"each sequence are padding. Count them: (~is_token).sum(axis=-1)."
        )
    if pad.shape != batch:
        raise ShapeError(
            f"pad has shape {pad.shape}; expected {batch}, a number for each sequence of the "
            f"batch. Give as many, 0 where nothing is padded."
        )
    if pad.min(initial=0) < 0 or pad.max(initial=0) >= capacity:
        raise ValueError(
            f"pad goes from {pad.min()} to {pad.max()}; expected numbers from 0 to {capacity - 1}, "
            f"since a capacity of {capacity} holds the padding too. Reserve more, or pad less."
        )


def require_unused(cache):
    """Require the newest view of a cache.

    Raises
    ------
    ValueError : it was continued already
    """
    if cache.length != cache.written:
        raise ValueError(
            f"this cache of {cache.length} tokens was continued already, to {cache.written}; "
            f"expected the newest, or the tokens behind it would be overwritten. Continue with the "
            f"cache that the last step returned, or with a copy of this one: cache.fork()."
        )


def require_next(cache, K, V):
    """Require keys and values that belong behind those of a cache.

    Raises
    ------
    TypeError : no arrays of numbers, or of more precision than the cache
    ShapeError : another batch, number of heads or width; K and V of different lengths
    ValueError : NaN or infinity, a full buffer, a cache that was continued already
    """
    require_unused(cache)
    T = np.shape(V)[-2] if np.ndim(V) > 1 else 0
    for name, new, buffer in zip("KV", (K, V), cache.buffers, strict=True):
        require_array(name, new)
        *lead, _, d = buffer.shape
        if T == 0 or new.shape != (*lead, T, d):
            expected = ", ".join(map(str, (*lead, "T", d)))
            raise ShapeError(
                f"{name} has shape {new.shape}; expected ({expected}) with one T of at least 1 "
                f"for K and V. Use the cache of this layer and of this batch."
            )
        require_precision(name, new.dtype, buffer.dtype)
        require_finite(name, new)
    require_capacity(T, cache.length, cache.capacity)


def require_precision(name, given, cached):
    """Require numbers that a cache stores without rounding.

    Raises
    ------
    TypeError : they have more precision
    """
    if np.result_type(given, cached) != cached:
        raise TypeError(
            f"{name} is of {given}, and the cache of {cached} would round it; expected {cached} or "
            f"less. Convert it first, {name}.astype(np.{cached}), or make the cache for params of "
            f"{given}."
        )


def require_decode(X, params, cache):
    """Require new tokens, a layer, and a cache of it that can be continued.

    Raises
    ------
    TypeError : no arrays of numbers, no Params, no KVCache, more precision than the cache
    ShapeError : another width or batch
    ValueError : a cache of another layer, one that was continued already, a full buffer, NaN or
        infinity in X
    """
    for name, value, kind in (("params", params, Params), ("cache", cache, KVCache)):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} is a {type(value).__name__}; expected {kind.__name__}. A step takes X, "
                f"params and cache, in this order: decode_step(X, params, cache)."
            )
    require_shape("X", X, "... T d_model", d_model=params.d_model)
    require_operand("X", X)
    require_layer(params, cache)
    if X.shape[:-2] != cache.batch:
        raise ShapeError(
            f"X has shape {X.shape}, a batch of {X.shape[:-2]}, and the cache one of "
            f"{cache.batch}; expected the same: KVCache.empty(params, capacity, batch=...)."
        )
    require_precision("X", np.result_type(X, params.W_K, params.W_V), cache.buffers[0].dtype)
    require_unused(cache)
    require_capacity(X.shape[-2], cache.length, cache.capacity)


def require_layer(params, cache):
    """Require the layer whose cache it is.

    Raises
    ------
    ValueError : W_K or W_V are others
    """
    made_for = cache.params
    same = made_for is params or all(
        np.array_equal(getattr(made_for, name), getattr(params, name)) for name in ("W_K", "W_V")
    )
    if not same:
        raise ValueError(
            "the cache was made for another layer: its W_K or W_V differ from those of params; "
            "expected a cache that this layer filled. Make one for each layer: "
            "KVCache.empty(params, capacity)."
        )


def require_table(pool, table, length):
    """Require pages of the pool, enough of them for the tokens.

    Raises
    ------
    TypeError : no array of numbers, a table of anything but whole numbers
    ShapeError : a pool with fewer than three axes or no page, a table with other than one
    ValueError : a page that the pool does not have, more tokens than the pages hold
    """
    require_shape("pool", pool, "... pages page d")
    require_array("table", table)
    if table.ndim != 1 or table.dtype.kind not in "iu":
        raise (TypeError if table.dtype.kind not in "iu" else ShapeError)(
            f"table is an array of {table.dtype} of shape {table.shape}; expected whole numbers of "
            f"shape (n,), the pages of one sequence. Gather one sequence at a time."
        )
    if not len(pool):
        raise ShapeError(
            f"pool has shape {pool.shape}, and no page; expected one at least. Reserve pages "
            f"first: np.zeros((pages, ..., page, d))."
        )
    outside = table[(table < 0) | (table >= len(pool))]
    if outside.size:
        raise ValueError(
            f"table points to page {outside[0]}; expected 0 to {len(pool) - 1}, one of the "
            f"{len(pool)} pages of the pool. Was the page freed?"
        )
    require_length("length", length)
    if length > len(table) * pool.shape[-2]:
        raise ValueError(
            f"length={length}, and {len(table)} pages of {pool.shape[-2]} hold "
            f"{len(table) * pool.shape[-2]} tokens; expected no more. Add a page to the table."
        )


def require_parts(heads, logsumexp):
    """Require as many parts, queries and batch axes in heads as in logsumexp.

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : they differ
    ValueError : NaN or infinity in heads, NaN or +inf in logsumexp, a query that sees no key
    """
    for name, array in (("heads", heads), ("logsumexp", logsumexp)):
        require_shape(name, array, "... T d_v")
    require_operand("heads", heads)
    require_operand("logsumexp", np.where(logsumexp == -np.inf, 0, logsumexp))  # sees no key
    if heads.ndim < 3 or logsumexp.shape != (*heads.shape[:-1], 1):
        raise ShapeError(
            f"heads has shape {heads.shape} and logsumexp {logsumexp.shape}; expected "
            f"(P, ..., T, d_v) and (P, ..., T, 1). Stack the parts along a new first axis: "
            f"np.stack."
        )
    unseen = np.argwhere((logsumexp == -np.inf).all(axis=0)[..., 0])
    if unseen.size:
        raise ValueError(
            f"logsumexp is -inf in all parts for the query at {tuple(map(int, unseen[0]))}; "
            f"expected a part with a key that it sees. Leave the query out, or give it a key."
        )


def require_levels(A, bits, axis):
    """Require finite floats, 1 to 8 bits, and an axis of the array.

    Raises
    ------
    TypeError : no array of floats, bits that are no whole number
    ShapeError : no such axis, an empty array
    ValueError : bits below 1 or above 8, NaN or infinity, a range too wide for the type of A
    """
    require_shape("A", A, "... S d")
    if A.dtype.kind != "f":
        raise TypeError(
            f"A is an array of {A.dtype}; expected floats, since whole numbers are codes already. "
            f"Convert it first: A.astype(float)."
        )
    require_finite("A", A)
    require_length("bits", bits)
    if bits > 8:
        raise ValueError(f"bits={bits}; expected 1 to 8, since a code has a byte. Use fewer bits.")
    if not (isinstance(axis, int | np.integer) and -A.ndim <= axis < A.ndim):
        raise ShapeError(
            f"A has shape {A.shape}; expected an axis {axis} of it. Choose -1 to group per token, "
            f"or -2 to group per channel."
        )
    with np.errstate(over="ignore"):
        widest = np.ptp(A, axis=axis).max()
    if not np.isfinite(widest):
        raise ValueError(
            f"A goes from {A.min()} to {A.max()}, a range that {A.dtype} cannot represent; "
            f"expected less. Convert it first: A.astype(float), or scale it."
        )
