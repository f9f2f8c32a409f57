"""The KV cache: *project* runs only for new tokens; keys and values of old ones are cached."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask, softmax
from tutorial_lib.contract import MADE_BY, checked, require
from tutorial_lib.errors import (
    ShapeError,
    require_array,
    require_finite,
    require_positive_whole,
    require_wide_dtype_and_finite,
)
from tutorial_lib.heads import concat_heads
from tutorial_lib.projection import Params, project_heads

FLOAT_KINDS = (
    "{0} is of {1}, and {2} of {3} would change it; expected {3} or less. Convert {0}, or what it "
    "is computed from, such as X: .astype(np.{3}). Or reserve {2} of {1}."
)


@checked
def write_rows(
    buffer: "raw ... capacity d", length: "integer", rows: "... T d"
) -> "any ... filled d":
    """Write rows into a reserved buffer, behind the `length` rows that it holds already.

    Built in chapter 14. Changes `buffer` and returns a view of it, (..., length + T, d); no row
    that it holds already is changed or copied.

    Raises
    ------
    TypeError : rows of more precision than the buffer
    ShapeError : other batch axes than those of buffer
    ValueError : more rows than the buffer can hold, a length below 0

    >>> write_rows(np.zeros((3, 6, 4)), 2, np.ones((3, 1, 4))).shape
    (3, 3, 4)
    """
    require(
        rows.shape[:-2] == buffer.shape[:-2],
        ShapeError,
        f"rows has shape {rows.shape} and buffer {buffer.shape}; expected them to agree in all "
        f"axes but the last but one. Reserve a buffer of the shape of the rows.",
    )
    require(
        np.result_type(rows, buffer) == buffer.dtype,
        TypeError,
        FLOAT_KINDS.format("rows", rows.dtype, "a buffer", buffer.dtype),
    )
    require(length >= 0, ValueError, f"length={length}; expected 0 or more. Count the rows so far.")
    require_capacity(rows.shape[-2], length, buffer.shape[-2])
    end = length + rows.shape[-2]
    buffer[..., length:end, :] = rows
    return buffer[..., :end, :]


def require_capacity(T, length, capacity):
    """Require that a buffer can hold T tokens behind the first `length`."""
    if length + T > capacity:  # a compiled step can form no sentence, so `require` is no help
        raise ValueError(
            f"{T} new tokens after {length} make {length + T}, more than capacity={capacity}; "
            f"expected {capacity - length} at most. Give empty a larger capacity."
        )


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
    @checked
    def empty(cls, params: object, capacity: "length", *, batch: tuple = (), pad: object = None):
        """Reserve buffers for a number of tokens, in the precision of W_K, float32 at least.

        Parameters
        ----------
        params : Params, or a record with W_K (G, d_model, d_k) and W_V (G, d_model, d_v); a width
            may be 0, where a layer caches only one array
        capacity : number of tokens, padding included
        batch : lengths of the batch axes
        pad : (...) whole numbers, how many tokens at the left of each sequence are padding,
            fewer than capacity

        >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
        >>> KVCache.empty(params, 6).append(*np.ones((2, 3, 5, 4))).K.shape
        (3, 5, 4)
        """
        for name in ("W_K", "W_V"):
            W = getattr(params, name, None)
            require(
                isinstance(W, np.ndarray) and W.ndim == 3,
                TypeError,
                f"params.{name} is {'missing' if W is None else type(W).__name__}; expected an "
                f"array of three axes, (G, d_model, d). Give Params, or a record that has one.",
            )
        require(
            len(params.W_K) == len(params.W_V),
            ShapeError,
            f"params.W_K has {len(params.W_K)} heads and params.W_V {len(params.W_V)}; expected as "
            f"many, since a token adds a key and a value to each. Give both for the same heads.",
        )
        for length in batch:
            require_positive_whole("a length of batch", length)
        if pad is not None:
            require_pad(np.array(pad), batch, capacity)
            pad = np.array(pad, int)  # positions are differences, below 0 too
        dtype = np.result_type(params.W_K.dtype, np.float32)
        shapes = ((*batch, len(W), capacity, W.shape[-1]) for W in (params.W_K, params.W_V))
        buffers = tuple(np.zeros(shape, dtype) for shape in shapes)
        return cls(params, buffers, 0, pad, np.zeros((), int))

    @property
    def K(self):
        """The keys so far, to read: (..., G, length, d_k)."""
        return self._filled_rows(0)

    @property
    def V(self):
        """The values so far, to read: (..., G, length, d_v)."""
        return self._filled_rows(1)

    def _filled_rows(self, buffer_index):
        rows = self.buffers[buffer_index][..., : self.length, :]
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
        """Write K (..., G, T, d_k) and V (..., G, T, d_v) of new tokens: a cache longer by T.

        Raises
        ------
        TypeError : more precision than the cache
        ShapeError : another batch, number of heads or width
        ValueError : NaN or infinity, a full buffer, a cache that was continued already
        """
        require_newest_view(self)
        T = np.shape(V)[-2] if np.ndim(V) > 1 else 0
        for name, rows, buffer in zip("KV", (K, V), self.buffers, strict=True):
            require_array(name, rows)
            *batch, _, width = buffer.shape
            require(
                T > 0 and rows.shape == (*batch, T, width),
                ShapeError,
                f"{name} has shape {rows.shape}; expected ({', '.join(map(str, batch))}, T, "
                f"{width}) with one T of at least 1 for K and V. Use the cache of this layer and "
                f"batch.",
            )
            cache_dtype = buffer.dtype
            dtype_message = FLOAT_KINDS.format(name, rows.dtype, "a cache", cache_dtype)
            require(np.result_type(rows, cache_dtype) == cache_dtype, TypeError, dtype_message)
            require_finite(name, rows)
        for buffer, rows in zip(self.buffers, (K, V), strict=True):
            if buffer.shape[-1]:
                write_rows(buffer, self.length, rows)
        self.written[...] = self.length + T
        return replace(self, length=int(self.written))

    def fork(self):
        """Copy the cached rows, to continue a second time, or from a view that was continued."""
        buffers = tuple(buffer.copy() for buffer in self.buffers)
        return replace(self, buffers=buffers, written=np.array(self.length))

    @checked
    def mask(self, T: "length"):
        """Return the mask of the next T tokens: all before them and themselves, no padding.

        Booleans of shape (T, length + T), or (..., 1, T, length + T) where there is padding.
        """
        S = self.length + T
        mask = causal_mask(T, S)  # bottom-right alignment
        if self.pad is None:
            return mask
        is_token = np.arange(S) >= self.pad[..., None]  # (..., S)
        return mask & is_token[..., None, None, :]

    @checked
    def positions(self, T: "length"):
        """Return the positions of the next T tokens, padding not counted; padding itself has 0.

        Whole numbers of shape (T,), or (..., T) where there is padding.
        """
        token_index = np.arange(self.length, self.length + T)
        return token_index if self.pad is None else np.maximum(token_index - self.pad[..., None], 0)


MADE_BY[KVCache] = "KVCache. Make one with KVCache.empty(params, capacity)."


def require_pad(pad, batch, capacity):
    """Require a whole number for each sequence, from 0 to less than the capacity."""
    require(
        pad.dtype.kind in "iu",
        TypeError,
        f"pad is of type {pad.dtype}; expected whole numbers, how many tokens at the left of "
        f"each sequence are padding. Count them: (~is_token).sum(axis=-1).",
    )
    require(
        pad.shape == batch,
        ShapeError,
        f"pad has shape {pad.shape}; expected {batch}, a number for each sequence of the "
        f"batch. Give as many, 0 where nothing is padded.",
    )
    if pad.min(initial=0) < 0 or pad.max(initial=0) >= capacity:
        raise ValueError(
            f"pad goes from {pad.min()} to {pad.max()}; expected numbers from 0 to {capacity - 1}, "
            f"since a capacity of {capacity} holds the padding too. Reserve more, or pad less."
        )


def require_newest_view(cache):
    """Require the newest view of a cache."""
    if cache.length != cache.written:
        raise ValueError(
            f"this cache of {cache.length} tokens was continued already, to {cache.written}; "
            f"expected the newest, or the tokens behind it would be overwritten. Continue with the "
            f"cache that the last step returned, or with a copy of this one: cache.fork()."
        )


def require_cache_restored_on_error(step):
    """Require that a step comes to its end, else leave the cache to be continued as before.

    Rows that a failed step has written lie behind every view that was returned, so the next step
    may overwrite them.
    """

    @functools.wraps(step)
    def run_step_or_restore_cache(X, params, cache):
        n_written = int(cache.written)
        try:
            return step(X, params, cache)
        except BaseException:
            cache.written[...] = n_written
            raise

    return run_step_or_restore_cache


@checked
@require_cache_restored_on_error
def decode_step(X: "... T d_model", params: Params, cache: KVCache) -> tuple:
    """Run the layer for new tokens, which attend causally to the cache and to one another.

    Built in chapter 14. From an empty cache, in chunks of any length, it returns the rows that the
    layer gives in one pass under a causal mask. Many tokens at once are prefill, one is decoding.
    X holds only the new tokens, and the cache is of this layer, with the tokens before.

    Returns
    -------
    Y : (..., T, d_model), the new rows
    cache : KVCache, longer by T

    Raises
    ------
    TypeError : more precision than the cache
    ShapeError : another batch
    ValueError : a cache of another layer, one that was continued already, a full buffer, scores
        too large for their type; after each the given cache can be continued

    Source: Pope et al. (2023).

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> decode_step(np.ones((5, 12)), params, KVCache.empty(params, 6))[0].shape
    (5, 12)
    """
    require(
        cache.params is params
        or all(np.array_equal(getattr(cache.params, W), vars(params)[W]) for W in ("W_K", "W_V")),
        ValueError,
        "the cache was made for another layer: its W_K or W_V differ from those of params; "
        "expected a cache that this layer filled. Make one for each layer: "
        "KVCache.empty(params, capacity).",
    )
    require(
        X.shape[:-2] == cache.batch,
        ShapeError,
        f"X has shape {X.shape}, a batch of {X.shape[:-2]}, and the cache one of "
        f"{cache.batch}; expected the same: KVCache.empty(params, capacity, batch=...).",
    )
    mask = cache.mask(X.shape[-2])  # of the old tokens and the new
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    cache = cache.append(K, V)
    weights = attention_weights(attention_scores(Q, cache.K), mask=mask)
    return concat_heads(weights @ cache.V) @ params.W_O, cache


@checked
def gather_pages(
    pool: "raw pages ... page d", table: "int n", length: "length"
) -> "any ... length d":
    """Collect the rows of the `length` tokens of one sequence from the pages that hold them.

    Built in chapter 14. It copies them, to show where they lie; a kernel of PagedAttention reads
    each page where it lies. The last page may be filled in part.

    Parameters
    ----------
    pool : the pages of all sequences, each of which holds `page` tokens
    table : the pages of this sequence in order: its block table

    Raises
    ------
    ValueError : a page that the pool does not have, more tokens than the pages hold

    Source: Kwon et al. (2023), section 4.1.

    >>> gather_pages(np.ones((9, 3, 4, 7)), np.array([5, 0]), 6).shape
    (3, 6, 7)
    """
    require(
        0 <= table.min() <= table.max() < len(pool),
        ValueError,
        f"table goes from page {table.min()} to {table.max()}; expected 0 to {len(pool) - 1}, the "
        f"{len(pool)} pages of the pool. Was a page freed?",
    )
    require(
        length <= len(table) * pool.shape[-2],
        ValueError,
        f"length={length}, and {len(table)} pages of {pool.shape[-2]} tokens are "
        f"{len(table) * pool.shape[-2]}; expected no more. Add a page to the table.",
    )
    pages = np.moveaxis(pool[table], 0, -3)  # (..., n, page, d)
    *lead, n, size, d = pages.shape
    return pages.reshape(*lead, n * size, d)[..., :length, :]


@checked
def merge_heads(heads: "parts ... T d_v", logsumexp: "any parts ... T 1") -> "... T d_v":
    """Merge the heads of queries over parts of the keys, each part with a softmax of its own.

    Built in chapter 14. The weight of a part is proportional to e to its logsumexp, its sum of
    exponentials. This is the second half of flash-decoding (split-KV).

    Parameters
    ----------
    logsumexp : the logarithm of each part's sum of e to the score; -inf where a query sees no key
        of a part

    Raises
    ------
    ShapeError : batch axes that differ
    ValueError : NaN or +inf in logsumexp, a query that sees no key

    Source: Milakov & Gimelshein (2018), for the sums; of heads, Ye et al. (2025).

    >>> merge_heads(np.ones((2, 3, 5, 7)), np.zeros((2, 3, 5, 1))).shape
    (3, 5, 7)
    """
    # A part that sees no key has -inf.
    require_wide_dtype_and_finite("logsumexp", np.where(logsumexp == -np.inf, 0, logsumexp))
    require(
        logsumexp.shape[:-1] == heads.shape[:-1],
        ShapeError,
        f"heads has shape {heads.shape} and logsumexp {logsumexp.shape}; expected "
        f"(P, ..., T, d_v) and (P, ..., T, 1). Stack the parts along a new first axis: np.stack.",
    )
    require(
        (logsumexp > -np.inf).any(axis=0).all(),
        ValueError,
        f"logsumexp is -inf in all parts for the query at "
        f"{np.argwhere((logsumexp == -np.inf).all(axis=0)[..., 0]).tolist()}; expected a part "
        f"with a key that it sees. Leave the query out, or give it a key.",
    )
    weights = softmax(logsumexp, axis=0)  # (P, ..., T, 1)
    return (weights * heads).sum(axis=0)


@checked
def quantise(A: "... S d", bits: "length", *, axis: "integer" = -1) -> tuple:
    """Round to whole numbers of a few bits, spread evenly from the smallest entry to the largest.

    Built in chapter 14. `low + step * codes` is the array again, each entry off by at most half a
    step; an entry on one of the 2**bits levels comes back unchanged.

    Parameters
    ----------
    A : floats, such as the keys of a cache
    bits : 1 to 8
    axis : along which entries share their levels; -1: per token, -2: per channel, as KIVI does
        for keys

    Returns
    -------
    codes : the shape of A, from 0 to 2**bits - 1, in bytes of their own
    low, step : the shape of A with the length 1 along the axis

    Raises
    ------
    TypeError : whole numbers
    ValueError : more than 8 bits, no such axis, a range too wide for the type of A

    Source: Liu et al. (2024).

    >>> print(quantise(np.eye(5, 4), 2)[0].max())
    3
    """
    require(
        A.dtype.kind == "f",
        TypeError,
        f"A is an array of {A.dtype}; expected floats, since whole numbers are codes already. "
        f"Convert it first: A.astype(float).",
    )
    require(bits <= 8, ValueError, f"bits={bits}; expected 1 to 8, a byte. Use fewer bits.")
    require(
        -A.ndim <= axis < A.ndim,
        ShapeError,
        f"A has shape {A.shape}; expected an axis {axis} of it. Choose -1 to group per token, "
        f"or -2 to group per channel.",
    )
    require(
        (A.max(axis=axis) / 2 - A.min(axis=axis) / 2).max() <= np.finfo(A.dtype).max / 2,
        ValueError,
        f"A goes from {A.min()} to {A.max()}, a range that {A.dtype} cannot represent; "
        f"expected less. Convert it first: A.astype(float), or scale it.",
    )
    low = A.min(axis=axis, keepdims=True)
    step = (A.max(axis=axis, keepdims=True) - low) / (2**bits - 1)
    step = np.where(step > 0, step, 1)  # all entries equal
    codes = np.rint((A - low) / step).astype(np.uint8)
    return codes, low, step
