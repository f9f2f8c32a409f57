"""A layer to decode with: KV cache, grouped queries, RoPE, sliding window, sinks, QK-norm."""

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.errors import require_divisible, require_positive_whole
from tutorial_lib.pytorch.doors import (
    require_frequencies,
    require_new_cache,
    require_newest,
    require_no_graph,
    require_qk_norm,
    require_rotated,
    require_rotation,
    require_sight,
    require_sink,
    require_sizes,
    require_step,
    require_tensor_pad,
    require_tensors,
)
from tutorial_lib.pytorch.mha import fused_attention

BLOCK = 64  # queries of one call, where some keys are masked


class Rotation(nn.Module):
    """RoPE: rotate each pair of entries by the token's position times the frequency of the pair.

    Introduced in chapter 16. The module of `tutorial_lib.variants.rotate`. It has no parameters.
    Its frequencies are not in the state_dict; they stay the same float64 numbers when the module
    is converted, copied, emptied by `to_empty` or moved to the meta device.

    Parameters
    ----------
    frequencies : (n,) array of floats, radians per token, such as `rope_frequencies(d_k)`, which
        other code calls inv_freq; fewer than d_k/2 is a partial rotation
    half : False: entries 2i and 2i + 1 are a pair, interleaved; True: entries i and i + n, as in
        `rotate_half` of Hugging Face's Llama

    Raises
    ------
    TypeError : frequencies that are no array of floats, a half that is no bool
    ShapeError : frequencies of more axes than one
    ValueError : NaN or infinity

    Source: Su et al. (2021).
    """

    def __init__(self, frequencies, *, half=False):
        super().__init__()
        require_frequencies(frequencies, half)
        self.half, self._frequencies = half, np.array(frequencies, dtype=np.float64)
        self.register_buffer("bits", self._bits_on("cpu"), persistent=False)

    def _bits_on(self, device):
        # As bits, because MPS has no float64.
        return torch.from_numpy(self._frequencies).view(torch.int64).to(device, copy=True)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        # On the new device, but with the old numbers: `fn` may have rounded them, as in half(), or
        # dropped them, as in to_empty().
        self.bits = self._bits_on("cpu" if self.bits.is_meta else self.bits.device)
        return self

    def extra_repr(self):
        """Say what is rotated when the module is printed."""
        return f"{2 * len(self.bits)} entries of each head, half={self.half}"

    def forward(self, X, positions):
        """Rotate queries or keys.

        Parameters
        ----------
        X : (..., T, d)
        positions : (T,), or (..., T) that broadcasts to the tokens of X; int64, int32, float64 or
            float32

        Returns
        -------
        rotated : (..., T, d), in the precision of X; the angles are float64

        Raises
        ------
        TypeError : no tensors of floats, positions of another type
        ShapeError : an odd width, fewer pairs than frequencies, positions that do not fit X
        ValueError : positions that go backwards, NaN or infinity among them; checked only for
            tensors on the CPU
        """
        n = len(self.bits)
        require_rotated(X, positions, n)
        device = "cpu" if X.device.type == "mps" else X.device  # MPS has no float64
        frequencies = self.bits.to(device).view(torch.float64)
        angles = positions.to(device)[..., None] * frequencies  # (..., T, n)
        cos, sin = angles.cos().to(X), angles.sin().to(X)
        paired, unpaired = X[..., : 2 * n], X[..., 2 * n :]
        X_1, X_2 = paired.chunk(2, dim=-1) if self.half else (paired[..., ::2], paired[..., 1::2])
        pairs = cos * X_1 - sin * X_2, sin * X_1 + cos * X_2
        rotated = torch.cat(pairs, -1) if self.half else torch.stack(pairs, -1).flatten(-2)
        return torch.cat((rotated, unpaired), -1)


@dataclass(frozen=True)
class Sight:
    """What a query may attend to: a window of keys, a sink; and QK-norm before its scores.

    Introduced in chapter 17. What `tutorial_lib.variants.window_mask` and `attention_with_sink`
    are in NumPy, and QK-norm, which is `normed` in the chapter.

    Parameters
    ----------
    window : number of keys that a query attends to, its own included; None: all
    sink : (H,) array of floats, the initial values of the learned sinks, such as `np.zeros(H)`;
        -inf: the head has none; None: no head has one
    qk_norm : (2, d_k) array of floats, the initial values of the learned gains of queries and of
        keys, such as `np.ones((2, d_k))`: each query and each key is divided by the root of the
        mean of its squares, and multiplied by its gains, before it is rotated; None: it is not
    eps : added to that mean, so that zeros stay zeros

    Raises
    ------
    TypeError : a window that is no whole number, a sink or qk_norm that is no array of floats, an
        eps that is no number
    ShapeError : a sink of more axes than one, a qk_norm of another shape
    ValueError : a window below 1, NaN or +inf in sink, NaN or infinity in qk_norm, an eps below 0

    Source: Beltagy et al. (2020), section 3.1; OpenAI (2025), for learned sinks; Henry et al.
    (2020), for QK-norm.
    """

    window: int | None = None
    sink: np.ndarray | None = None
    qk_norm: np.ndarray | None = None
    eps: float = 1e-6

    def __post_init__(self):
        if self.window is not None:
            require_positive_whole("window", self.window)
        require_sink(self.sink)
        require_qk_norm(self.qk_norm, self.eps)


ALL = Sight()


class DecoderAttention(nn.Module):
    """A causal layer with a KV cache, grouped queries, RoPE, a sliding window and sinks.

    Introduced in chapter 14; its groups are those of chapter 15, its rotation that of chapter 16,
    its sight that of chapter 17. `forward` takes whole sequences, to train; `step` takes the next
    tokens and a cache. A sequence gives the same rows in chunks of any length.

    What it costs: a whole sequence without window, sink or padding, and one token without sink or
    padding, run in PyTorch's fused call without a mask. A window is computed block by block: the
    keys that no query of a block may see are skipped, and the others masked, in the same call. A
    sink takes explicit steps, block by block: the fused call supports it only as one more key, of
    zeros, with its score in a mask of floats for each head, (H, T, S + 1), for which CUDA's flash
    kernel has no argument; the CPU's takes one that is not learned.

    A graph has no loop over the blocks, because it serves sequences of every length. In a graph of
    `torch.compile` all blocks of a window run at once: a key is copied at most five times, and the
    masks of all blocks, with a sink their scores too, are in memory together. A sink without a
    window takes the scores of all pairs of tokens at once, and so does any window or sink in a
    graph of `torch.export`, which serves all lengths from PyTorch 2.13 on.

    Parameters
    ----------
    d_model, n_heads : width of the layer, number of heads
    n_kv_heads : G, the number of KV heads; each serves n_heads / G query heads; n_heads unless
        given
    sizes : (d_k, d_v), the widths of a head; both d_model / n_heads unless given; a d_v other than
        d_k takes PyTorch's slow path, which copies the keys
    rotation : Rotation of queries and keys, or None
    sight : Sight, with a window, sinks, QK-norm, or several of them
    bias : whether the projections add a vector

    Attributes
    ----------
    qkv_proj : nn.Linear, weight (H*d_k + G*(d_k + d_v), d_model): the rows of all heads' queries,
        then of the keys, then of the values, head 0 first
    out_proj : nn.Linear, weight (d_model, H*d_v)
    window : number of keys, or None
    sink : nn.Parameter (H,), or None
    qk_norm : nn.Parameter (2, d_k), the gains of queries and of keys, or None

    Raises
    ------
    TypeError : a length that is no whole number, sizes that are no pair, a rotation that is no
        Rotation, a sight that is no Sight
    ShapeError : more KV heads than heads, or a number that does not divide them; sizes that are
        left out where n_heads does not divide d_model; an odd d_k, or fewer pairs than frequencies
        of the rotation; another number of sinks than of heads, or of gains than d_k
    ValueError : a length below 1

    Source: Pope et al. (2023); Ainslie et al. (2023); Su et al. (2021).

    >>> layer = DecoderAttention(12, 6, n_kv_heads=2).requires_grad_(False)
    >>> cache = DecoderCache.empty(layer, 9)
    >>> Y, cache = layer.step(torch.ones(5, 12), cache)  # the prompt
    >>> Y, cache = layer.step(torch.ones(1, 12), cache)  # the next token
    >>> Y.shape, cache.K.shape
    (torch.Size([1, 12]), torch.Size([2, 6, 2]))
    """

    def __init__(
        self, d_model, n_heads, *, n_kv_heads=None, sizes=None, rotation=None, sight=ALL, bias=False
    ):
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_divisible("n_heads", n_heads, "n_kv_heads", n_kv_heads)
        require_positive_whole("d_model", d_model)
        if sizes is None:
            require_divisible("d_model", d_model, "n_heads", n_heads)
            sizes = d_model // n_heads, d_model // n_heads
        require_sizes(sizes)
        require_rotation(rotation, sizes[0], Rotation)
        require_sight(sight, n_heads, sizes[0], Sight)
        self.d_model, self.n_heads, self.n_kv_heads = int(d_model), int(n_heads), int(n_kv_heads)
        self.d_k, self.d_v = map(int, sizes)
        self.rotation = rotation
        self.window = None if sight.window is None else int(sight.window)
        self.sink, self.qk_norm = _parameter(sight.sink), _parameter(sight.qk_norm)
        self.eps = sight.eps
        qkv_width = self.n_heads * self.d_k + self.n_kv_heads * (self.d_k + self.d_v)
        self.qkv_proj = nn.Linear(self.d_model, qkv_width, bias=bias)
        self.out_proj = nn.Linear(self.n_heads * self.d_v, self.d_model, bias=bias)

    def extra_repr(self):
        """Say the sizes when the module is printed."""
        return (
            f"d_model={self.d_model}, n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}, "
            f"d_k={self.d_k}, d_v={self.d_v}, window={self.window}, sink={self.sink is not None}, "
            f"qk_norm={self.qk_norm is not None}"
        )

    def forward(self, X, *, pad=None):
        """Run the layer over whole sequences.

        Parameters
        ----------
        X : (..., T, d_model)
        pad : (...) tensor of integers of any type, how many tokens at the left of each sequence
            are padding; None: none

        Returns
        -------
        Y : (..., T, d_model); a row of padding is out_proj's bias, or zero

        Raises
        ------
        TypeError : no tensor of floats, another precision than the weights', a pad that is no
            tensor of integers
        ShapeError : another width, an empty sequence, a pad of other axes than the batch's
        ValueError : tensors on another device than the weights; more padding than tokens, checked
            only for tensors on the CPU
        """
        require_tensors(self, X, None, None)
        T, batch = X.shape[-2], X.shape[:-2]
        require_tensor_pad(pad, batch, T, X.device)
        if pad is not None:
            pad = pad.long()  # in uint8 T - pad would wrap
        Q, K, V = self._project(X, token_positions(0, T, pad, X.device))
        return self._attend(Q, K, V, distances(T, X.device), None if pad is None else T - pad)

    def step(self, X, cache):
        """Run the layer for the next tokens, one or more.

        After a step that fails the same cache can be continued, as if nothing had been tried. Only
        in a full window may one new token have overwritten the oldest key, which no later token
        sees. Cached rows do not follow a change of the weights: after one, begin with an empty
        cache. Under autocast the rows are computed in the lower precision and cached in that of the
        weights. Only one kind of step copies cached rows: several tokens at once, behind a full
        window, attend to a copy of the window before they overwrite it.

        Parameters
        ----------
        X : (..., T, d_model), only the new tokens
        cache : DecoderCache of this layer, with the tokens before; the newest

        Returns
        -------
        Y : (..., T, d_model), the new rows
        cache : DecoderCache, longer by T

        Raises
        ------
        TypeError : no tensor of floats, another precision than the weights', no DecoderCache
        ShapeError : another width or batch, an empty sequence
        ValueError : a cache of another layer, one that was continued already, a full buffer,
            tensors on two devices, an X or a parameter that requires gradients; NaN or infinity in
            X, checked only for tensors on the CPU
        """
        require_tensors(self, X, None, None)
        require_step(self, X, cache, DecoderCache)
        require_no_graph(X, *self.parameters())
        T, end = X.shape[-2], cache.length + X.shape[-2]
        lengths = None if cache.pad is None else end - cache.pad
        Q, K, V = self._project(X, cache.positions(T))
        if T > 1 and end > cache.capacity:  # these rows still attend to those that they overwrite
            pairs = ((cache.K, K), (cache.V, V))
            seen_KV = [torch.cat((old_A, new_A.to(old_A.dtype)), dim=-2) for old_A, new_A in pairs]
            Y = self._attend(Q, *seen_KV, distances(seen_KV[0].shape[-2], X.device), lengths)
            longer_cache = cache._append(K, V)
        else:
            longer_cache = cache._append(K, V)
            Y = self._attend(Q, *longer_cache._rows(), longer_cache._distances(), lengths)
        cache.continued.append(longer_cache.length)  # last: until then another step may write here
        return Y, longer_cache

    def _project(self, X, positions):
        H, G = self.n_heads, self.n_kv_heads
        outputs = self.qkv_proj(X).split([(H + G) * self.d_k, G * self.d_v], dim=-1)
        heads = (rows.unflatten(-1, (n, -1)) for rows, n in zip(outputs, (H + G, G), strict=True))
        QK, V = (rows.transpose(-3, -2) for rows in heads)  # (..., H + G, T, d_k), (..., G, T, d_v)
        if self.qk_norm is not None:
            gains = [gain.expand(n, 1, -1) for gain, n in zip(self.qk_norm, (H, G), strict=True)]
            QK = normed(QK, torch.cat(gains), self.eps)
        if self.rotation is not None:
            QK = self.rotation(QK, positions[..., None, :])  # one call for queries and keys
        Q, K = QK.split([H, G], dim=-3)
        return Q, K, V

    def _attend(self, Q, K, V, distance, lengths):
        """Attend for the T newest tokens; `distance`: (S,), of each key from the last token."""
        T, S = Q.shape[-2], K.shape[-2]
        # An export has one graph for all lengths, so it may not ask which is longer.
        compiling, exporting = torch.compiler.is_compiling(), torch.compiler.is_exporting()
        all_seen = self.window is None or (not exporting and self.window >= S)
        if all_seen and self.sink is None and lengths is None and T in (1, S):
            return self._out(fused_groups(Q, K, V, is_causal=T > 1))
        if exporting or (all_seen and (compiling or self.sink is None)):
            heads = self._mix(Q, K, V, visible(T, distance, lengths=lengths, window=self.window))
        elif compiling:
            heads = self._mix(*in_blocks(Q, K, V, lengths, self.window))  # a new axis of blocks
            heads = heads.transpose(-4, -3).flatten(-3, -2)[..., -T:, :]
        else:
            heads = torch.cat(list(self._block_by_block(Q, K, V, distance, lengths)), dim=-2)
        return self._out(heads)

    def _block_by_block(self, Q, K, V, distance, lengths):
        T, S = Q.shape[-2], K.shape[-2]
        window = S if self.window is None else self.window
        for start in range(0, T, BLOCK):
            end = min(start + BLOCK, T)
            later = T - end  # queries behind this block
            keys = slice(max(0, S - T + start + 1 - window), S - later)
            n_real = None if lengths is None else lengths - later
            mask = visible(end - start, distance[keys] - later, lengths=n_real, window=self.window)
            yield self._mix(Q[..., start:end, :], K[..., keys, :], V[..., keys, :], mask)

    def _mix(self, Q, K, V, mask):
        if self.sink is None:
            return fused_groups(Q, K, V, mask=mask)
        return sunk_groups(Q, K, V, self.sink, mask=mask)

    def _out(self, heads):
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))  # (..., T, d_model)


@dataclass(frozen=True, eq=False)
class DecoderCache:
    """The keys and values of the tokens that a DecoderAttention has processed, in reserved buffers.

    Introduced in chapter 14. What `tutorial_lib.variants.KVCache` is in NumPy, a static cache: a
    step writes into the buffers and returns a longer view of them, so no step copies cached rows.
    Where the layer has a window, only that many tokens are cached, and a new one overwrites the
    oldest: token t is in row t % window, which is often called a ring or a rolling buffer. A cache
    is equal only to itself. It may be created, continued and forked under
    `torch.inference_mode()` or outside of it, in any order.

    Parameters
    ----------
    layer : DecoderAttention whose cache it is
    buffers : (..., G, capacity, d_k) and (..., G, capacity, d_v), shared by all views
    length : number of tokens, padding included
    pad : (...) int64, numbers of padding tokens at the left of each sequence; None: none
    continued : list, empty until a step continues from here, then with the length of its result

    Source: Pope et al. (2023).
    """

    layer: DecoderAttention
    buffers: tuple
    length: int
    pad: torch.Tensor | None
    continued: list

    @classmethod
    def empty(cls, layer, capacity, *, batch=(), pad=None):
        """Reserve buffers for a number of tokens, in the weights' precision and on their device.

        Parameters
        ----------
        layer : DecoderAttention
        capacity : number of tokens, padding included; a layer with a window reserves no more than
            that, and then takes any number
        batch : lengths of the batch axes
        pad : (...) integers of any type, how many tokens at the left of each sequence are padding

        Returns
        -------
        cache : DecoderCache

        Raises
        ------
        TypeError : another layer, lengths or pad that are no whole numbers
        ShapeError : pad of another shape than batch
        ValueError : a length below 1, more padding than the capacity
        """
        pad = None if pad is None else torch.as_tensor(pad)
        require_new_cache(layer, capacity, batch, pad, DecoderAttention)
        weight, n_kv_heads = layer.qkv_proj.weight, layer.n_kv_heads
        capacity = capacity if layer.window is None else min(capacity, layer.window)
        with torch.inference_mode(False):  # or no step outside of the mode could write here
            buffers = tuple(
                weight.new_zeros(*batch, n_kv_heads, capacity, d) for d in (layer.d_k, layer.d_v)
            )
        pad = None if pad is None else pad.to(weight.device, torch.int64, copy=True)
        return cls(layer, buffers, 0, pad, [])

    @property
    def K(self):
        """The keys so far, rotated, the last `capacity` of them: (..., G, length, d_k)."""
        return self._in_order(0)

    @property
    def V(self):
        """The values so far, the last `capacity` of them: (..., G, length, d_v)."""
        return self._in_order(1)

    @property
    def batch(self):
        """The lengths of the batch axes."""
        return tuple(self.buffers[0].shape[:-3])

    @property
    def capacity(self):
        """Number of tokens that the buffers can hold."""
        return self.buffers[0].shape[-2]

    @property
    def rolls(self):
        """Whether a new token overwrites the oldest, once the buffers are full."""
        return self.capacity == self.layer.window

    @property
    def written(self):
        """Number of tokens of the view that a step made of this one, or of this one."""
        return self.continued[0] if self.continued else self.length

    def _append(self, K, V):
        end = self.length + K.shape[-2]
        start = max(self.length, end - self.capacity)  # of those that are cached
        buffer_rows = torch.arange(start, end, device=K.device) % self.capacity
        for buffer, rows in zip(self.buffers, (K, V), strict=True):
            buffer.index_copy_(-2, buffer_rows, rows[..., start - end :, :].to(buffer.dtype))
        return replace(self, length=end, continued=[])

    def _rows(self):
        return tuple(buffer[..., : self.length, :] for buffer in self.buffers)

    def _distances(self):
        row_index = torch.arange(self._rows()[0].shape[-2], device=self.buffers[0].device)
        return (self.length - 1 - row_index) % self.capacity  # from the last token

    def _in_order(self, buffer_index):
        require_newest(self)
        if self.length <= self.capacity:
            return self._rows()[buffer_index]
        token_index = torch.arange(
            self.length - self.capacity, self.length, device=self.buffers[buffer_index].device
        )
        return self.buffers[buffer_index].index_select(-2, token_index % self.capacity)

    def fork(self):
        """Copy the cached rows, to continue from here a second time.

        Returns
        -------
        cache : DecoderCache of the same layer, in buffers of its own

        Raises
        ------
        ValueError : the layer has a window, and a step has continued from here already
        """
        require_newest(self)
        with torch.inference_mode(False):  # as in `empty`
            buffers = tuple(buffer.clone() for buffer in self.buffers)
        return replace(self, buffers=buffers, continued=[])

    def mask(self, T):
        """Return the mask of the next T tokens: those before them and themselves, no padding.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        mask : booleans, (T, length + T), or (..., 1, T, length + T) where there is padding
        """
        end = self.length + T
        lengths = None if self.pad is None else end - self.pad
        distance = distances(end, self.buffers[0].device)
        return visible(T, distance, lengths=lengths, window=self.layer.window)

    def positions(self, T):
        """Return the positions of the next T tokens, padding not counted; padding itself has 0.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        positions : whole numbers, (T,), or (..., T) where there is padding
        """
        return token_positions(self.length, T, self.pad, self.buffers[0].device)


def _parameter(array):
    return None if array is None else nn.Parameter(torch.Tensor(array.copy()))


def normed(A, gain, eps):
    """Divide each row by the root of the mean of its squares, and multiply it by a gain.

    Introduced in chapter 17, without gains. The row is float32 meanwhile where A is of half
    precision.

    Parameters
    ----------
    A : (..., d_k), queries or keys
    gain : broadcastable to A
    eps : added to the mean

    Returns
    -------
    normed : the shape of A, in its precision

    >>> normed(torch.tensor([[3.0, 3.0], [0.0, 0.0]]), torch.ones(2), 1e-12).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    wide_A = A.to(torch.promote_types(A.dtype, torch.float32))
    return (F.rms_norm(wide_A, A.shape[-1:], eps=eps) * gain).to(A.dtype)


def fused_groups(Q, K, V, *, mask=None, is_causal=False):
    """Let each group of query heads attend to one KV head, in one call of PyTorch.

    Introduced in chapter 15. What `tutorial_lib.variants.grouped_attention` is in NumPy: the
    queries of a group become the rows of one matrix, so that its keys are read once and not
    copied. A whole sequence is not stacked so, since only with the flag `is_causal` does PyTorch
    skip the keys after a query.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K, V : (..., G, S, d_k), (..., G, S, d_v)
    mask : booleans, (T, S) or (..., 1, T, S), True = may look; None: all may
    is_causal : the T queries are the S tokens, and attend to no later one; no mask is given then

    Returns
    -------
    heads : (..., H, T, d_v)

    >>> fused_groups(torch.ones(6, 5, 4), *torch.ones(2, 2, 8, 4)).shape
    torch.Size([6, 5, 4])
    """
    *batch, H, T, _ = Q.shape
    G = K.shape[-3]
    Q, K, V = map(_four_axes, (Q, K, V))
    if is_causal and T > 1:
        gqa_options = {"enable_gqa": True} if G < H else {}  # a plain bool in a graph too
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True, **gqa_options)
        return heads.reshape(*batch, H, T, V.shape[-1])
    if mask is not None:
        mask = torch.cat([_four_axes(mask)] * (H // G), dim=-2)
    heads = fused_attention(_stack_groups(Q, G), K, V, mask=mask)
    return _unstack_groups(heads, H // G, T).reshape(*batch, H, T, V.shape[-1])


def sunk_groups(Q, K, V, sink, *, mask):
    """Let each group of query heads attend to one KV head, with a learned sink.

    Introduced in chapter 17. What `tutorial_lib.variants.attention_with_sink` is in NumPy, for
    groups. Divides by the root of d_k itself. Scores and weights are float32 where Q is of half
    precision, under autocast too, as in the fused call; for them the keys are copied.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K, V : (..., G, S, d_k), (..., G, S, d_v)
    sink : (H,), one more score in each row's sum, of any precision; -inf: none
    mask : booleans, (T, S) or (..., 1, T, S), True = may look

    Returns
    -------
    heads : (..., H, T, d_v)

    >>> seen = torch.ones(5, 8, dtype=torch.bool)
    >>> sunk_groups(torch.ones(6, 5, 4), *torch.ones(2, 2, 8, 4), torch.zeros(6), mask=seen).shape
    torch.Size([6, 5, 4])
    """
    (H, T), (G, S) = Q.shape[-3:-1], K.shape[-3:-1]
    dtype = torch.promote_types(Q.dtype, torch.float32)
    lowest = torch.finfo(dtype).min  # a fully masked row sums to this sink's exponential, not to 0
    with _no_autocast(Q.device.type):
        grouped_Q = _stack_groups(Q.to(dtype) / math.sqrt(Q.shape[-1]), G)
        scores = grouped_Q @ K.to(dtype).transpose(-2, -1)  # (..., G, H/G*T, S)
        scores = scores.masked_fill(~torch.cat([mask] * (H // G), dim=-2), -math.inf)
        sink_scores = sink.to(dtype).clamp(lowest, -lowest)[:, None].expand(H, T)
        sink_scores = sink_scores.reshape(G, H // G * T, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat((scores, sink_scores), dim=-1).softmax(dim=-1)[..., :S]
        return _unstack_groups(weights.to(V.dtype) @ V, H // G, T)


def _four_axes(A):
    # As the kernels expect; a reshape would need the strides, for every length.
    return A[(None,) * (4 - A.ndim)] if A.ndim < 4 else A.flatten(0, -4)


def _stack_groups(A, n_groups):
    # The heads of a group become one matrix: (..., H, T, d) to (..., G, H/G*T, d).
    return A.unflatten(-3, (n_groups, -1)).flatten(-3, -2)


def _unstack_groups(A, n, T):
    return A.unflatten(-2, (n, T)).flatten(-4, -3)  # back to (..., H, T, d)


def in_blocks(Q, K, V, lengths, window):
    """Cut the queries into blocks, each with the keys that it sees, on a new axis of the batch.

    Replaces a loop in a graph, which serves sequences of many lengths. A block has at
    least a quarter of the window's queries, so that no key is copied more than five times. What
    lies outside the sequence is masked, or precedes the first query.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K, V : (..., G, S, d_k), (..., G, S, d_v)
    lengths : (...), how many tokens of each sequence are no padding; None: all S
    window : number of keys that a query attends to, less than S

    Returns
    -------
    Q : (..., n, H, block_size, d_k), n blocks
    K, V : (..., n, G, block_size + window - 1, d_k) and (..., d_v)
    mask : booleans, (..., n, 1, block_size, block_size + window - 1)
    """
    T, S = Q.shape[-2], K.shape[-2]
    block_size = min(max(BLOCK, -(-window // 4)), T)
    n_later = block_size * distances(-(-T // block_size), Q.device)[:, None]  # (n, 1)
    query_distance = distances(block_size, Q.device)
    key_distance = distances(block_size + window - 1, Q.device)
    key_index = (S - 1 - n_later - key_distance).clamp(min=0)
    Q = Q[..., (T - 1 - n_later - query_distance).clamp(min=0), :].transpose(-4, -3)
    K, V = (A[..., key_index, :].transpose(-4, -3) for A in (K, V))
    n_tokens = (S if lengths is None else lengths[..., None]) - n_later[:, 0]
    n_tokens = n_tokens.expand(Q.shape[:-3])  # (..., n)
    return Q, K, V, visible(block_size, key_distance, lengths=n_tokens, window=window)


def _no_autocast(device):
    has_autocast = torch.amp.is_autocast_available(device)  # the meta device has none
    return torch.autocast(device, enabled=False) if has_autocast else nullcontext()


def distances(S, device):
    """Return the distance of each of S tokens from the last one."""
    return torch.arange(S - 1, -1, -1, device=device)


def visible(T, distance, *, lengths=None, window=None):
    """Return the mask of the T newest tokens, over keys at these distances from the last one.

    No later token, no padding, and of each row the last `window`; `lengths`: (...), how many tokens
    of each sequence are no padding.
    """
    query_distance = distances(T, distance.device)[:, None]
    mask = distance >= query_distance  # (T, S)
    if window is not None:
        mask = mask & (distance < query_distance + window)
    return mask if lengths is None else mask & (distance < lengths[..., None, None, None])


def token_positions(start, T, pad, device):
    """Return the positions of T tokens after `start` others, padding not counted; padding has 0."""
    positions = torch.arange(start, start + T, device=device)
    return positions if pad is None else (positions - pad[..., None]).clamp(min=0)
