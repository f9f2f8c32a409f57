"""A causal attention layer with a KV cache, in one file that imports PyTorch alone: copy it.

It is read from top to bottom: options, the functions of a step, the cache, the layer. Shapes: B
sequences of T new tokens attend to S tokens; H query heads share G KV heads, so that query head h
attends to KV head h // (H/G); a query or key has d_k entries, a value d_v. An index counts the
tokens of a sequence from 0; negative, it is that of padding, or of a row that holds no token.

Chapter 14 builds the cache, 15 the groups, 16 the rotation, 17 what ScoreOptions change.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Rotation:
    """RoPE: each pair of entries of a query or key is rotated by its position times a frequency.

    Parameters
    ----------
    frequencies : (n,) tensor of floats, radians per token, also called inv_freq; with fewer than
        d_k/2 the last entries of a head are not rotated
    half : False: entries 2i and 2i + 1 are a pair (GPT-J, this book); True: i and i + n (Llama)
    stretch : what the rotated entries are multiplied by, as YaRN does

    Source: Su et al. (2021), section 3.2.2.
    """

    frequencies: torch.Tensor
    half: bool = False
    stretch: float = 1.0


@dataclass(frozen=True)
class ScoreOptions:
    """What is done to queries, keys and scores before the softmax, and which keys a query sees.

    Parameters
    ----------
    scale : factor of the scores; None: 1/√d_k
    soft_cap : scores become soft_cap * tanh(scores / soft_cap), so none exceeds it; None: no cap
    window : number of keys that a query sees, its own included; None: all
    sink : whether each head has a learned score that takes a share of every row's weights
    norm_eps : QK-norm: before its rotation each query and key is divided by its root mean square,
        to whose square this is added, and multiplied by learned gains; None: no QK-norm

    Source: Gemma 2 (2024); Beltagy et al. (2020); OpenAI (2025); Henry et al. (2020).
    """

    scale: float | None = None
    soft_cap: float | None = None
    window: int | None = None
    sink: bool = False
    norm_eps: float | None = None

    def __post_init__(self):
        if not all(A is None or 0 < A < math.inf for A in (self.window, self.soft_cap)):
            raise ValueError(f"{self}; expected a window and a soft_cap above 0, finite or None.")


def rotary_frequencies(width, base=10_000.0):
    """Return the frequencies for heads of which `width` entries are rotated: (width/2,) float64."""
    if width % 2:
        raise ValueError(f"width={width}; expected an even number, since entries turn in pairs.")
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def apply_rotation(A, tables, half):
    """Rotate queries or keys, (B, heads, T, d_k), by tables of cosines and sines, (B, 1, T, n)."""
    cos, sin = tables
    turning, rest = A.split([2 * cos.shape[-1], A.shape[-1] - 2 * cos.shape[-1]], dim=-1)
    X_1, X_2 = turning.chunk(2, dim=-1) if half else (turning[..., ::2], turning[..., 1::2])
    pair = cos * X_1 - sin * X_2, sin * X_1 + cos * X_2
    turned = torch.cat(pair, dim=-1) if half else torch.stack(pair, dim=-1).flatten(-2)
    return torch.cat((turned, rest), dim=-1)


def visible(query_index, key_index, window=None):
    """Return which keys each query sees, True = may look: (B, T) and (B, S) give (B, 1, T, S)."""
    distance = query_index[:, :, None] - key_index[:, None, :]
    mask = (distance >= 0) & (key_index >= 0)[:, None, :]
    return (mask if window is None else mask & (distance < window))[:, None]


def document_indices(documents):
    """Return the index of each token in its document, and the document's number, both (B, T)."""
    first = F.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)
    place = torch.arange(documents.shape[1], device=documents.device)
    return place - torch.where(first, place, 0).cummax(dim=1).values, first.cumsum(dim=1)


class DecoderCache:
    """The keys and values of the tokens that a layer has processed, for the tokens to come.

    It grows, or has `capacity` reserved rows, for which a graph is compiled once; all are attended
    to, under a mask. With `ring` a new token overwrites the oldest, which no query sees behind a
    window: token t is in row t % capacity. With n_spare = capacity - window rows to spare, so many
    tokens and one more can come at once without a copy of the window, and be forgotten again.

    Parameters
    ----------
    layer : DecoderAttention
    batch : B, the number of sequences
    capacity : number of rows; None: it grows
    ring : whether the oldest tokens are overwritten
    pad : (B,) integers, how many tokens at the left of each sequence are padding; None: none

    Attributes
    ----------
    buffers : keys, rotated, (B, G, rows, d_k), values (B, G, rows, d_v), and the index of the token
        in each row, (B or 1, 1, rows, 1)
    length, longest : tensors, the number of tokens now and the largest so far, padding included
    """

    def __init__(self, layer, batch, *, capacity=None, ring=False, pad=None):
        window = layer.scores.window
        if ring and (window is None or capacity is None or capacity < window):
            raise ValueError(f"capacity={capacity}, window={window}; expected capacity >= window.")
        if pad is not None and tuple(pad.shape) != (batch,):
            raise ValueError(f"pad has shape {tuple(pad.shape)}; expected ({batch},).")
        self.layer, self.batch, self.capacity, self.ring = layer, batch, capacity, ring
        self.n_spare = capacity - window if ring else 0
        weight, rows = layer.qkv_proj.weight, capacity or 0
        whole = {"dtype": torch.int64, "device": weight.device}
        self.length = self.longest = torch.zeros((), **whole)
        self.pad = torch.zeros(1, **whole) if pad is None else pad.to(**whole)
        KV = (weight.new_zeros(batch, layer.n_kv_heads, rows, d) for d in (layer.d_k, layer.d_v))
        self.buffers = [*KV, torch.full((len(self.pad), 1, rows, 1), -1, **whole)]

    def append(self, K, V, index):
        """Keep the rows of new tokens; return all keys, values and indices that they attend to."""
        T, new = K.shape[2], (K, V, index[:, None, :, None])
        new = [A.to(buffer.dtype) for A, buffer in zip(new, self.buffers, strict=True)]
        seen = self.buffers
        if self.capacity is None or (self.ring and self.n_spare + 1 < T):
            seen = [torch.cat(pair, dim=-2) for pair in zip(self.buffers, new, strict=True)]
        if self.capacity is None:
            self.buffers = seen
        else:
            rows = self._rows(torch.arange(max(0, T - self.capacity), T, device=K.device))
            for buffer, A in zip(self.buffers, new, strict=True):
                buffer.index_copy_(-2, rows, A[..., -len(rows) :, :])
        self.length = self.length + T
        self.longest = torch.maximum(self.longest, self.length)
        return seen[0], seen[1], seen[2][:, 0, :, 0]

    def rewind(self, n):
        """Forget the last n tokens, such as rejected drafts; a ring has lost the oldest it held."""
        length, first = int(self.length), int(self.longest) - (self.capacity or 0)
        kept = first + self.layer.scores.window - 1 if self.ring and first > 0 else 0
        if not 0 <= n <= length - kept:
            raise ValueError(f"n={n} of {length} tokens; expected 0 to {length - kept}.")
        self.length = self.length - n
        if self.capacity is None:
            self.buffers = [A[..., : length - n, :] for A in self.buffers]
        else:
            self.buffers[2][:, :, self._rows(torch.arange(n, device=self.length.device))] = -1

    def _rows(self, later):
        rows = self.length + later
        return rows % self.capacity if self.ring else rows

    def check(self, layer, X):
        """Refuse another layer or batch, gradients of reserved rows, and tokens without a row."""
        if self.layer is not layer or self.batch != len(X):
            text = f"expected one for each layer: DecoderCache(layer, {len(X)})."
            raise ValueError(f"a cache of {self.batch} sequences, or of another layer; {text}")
        needs_graph = X.requires_grad or layer.qkv_proj.weight.requires_grad
        if self.capacity is not None and torch.is_grad_enabled() and needs_graph:
            raise ValueError("a reserved cache with gradients; expected torch.no_grad().")
        if self.capacity is None or self.ring or torch.compiler.is_compiling():
            return
        total = self.length + X.shape[1]
        if X.device.type == "cpu" and total > self.capacity:  # a GPU would have to be waited for
            raise ValueError(
                f"{int(total)} tokens; expected at most {self.capacity}, the capacity."
            )


class DecoderAttention(nn.Module):
    """Causal attention for whole sequences, packed documents, and next tokens behind a cache.

    Parameters
    ----------
    d_model, n_heads : width of the layer, number of heads H
    n_kv_heads : G; None: H
    sizes : (d_k, d_v), widths of a head; None: both d_model / H
    rotation : Rotation, or None
    scores : ScoreOptions
    bias : whether the projections add a vector

    Attributes
    ----------
    qkv_proj : nn.Linear; rows of its weight: H*d_k of the queries, G*d_k of the keys, G*d_v of the
        values, head 0 first
    out_proj : nn.Linear (H*d_v, d_model)
    q_norm, k_norm, sink : nn.RMSNorm of d_k gains, twice, and nn.Parameter (H,), or None

    >>> layer = DecoderAttention(12, 6, n_kv_heads=2).requires_grad_(False)
    >>> cache = DecoderCache(layer, batch=1, capacity=9)
    >>> layer(torch.ones(1, 5, 12), cache=cache).shape  # the prompt
    torch.Size([1, 5, 12])
    >>> layer(torch.ones(1, 1, 12), cache=cache).shape  # the next token
    torch.Size([1, 1, 12])
    """

    def __init__(
        self,
        d_model,
        n_heads,
        *,
        n_kv_heads=None,
        sizes=None,
        rotation=None,
        scores=ScoreOptions(),
        bias=False,
    ):
        super().__init__()
        H, G = n_heads, n_heads if n_kv_heads is None else n_kv_heads
        if H % G or (sizes is None and d_model % H):
            raise ValueError(f"d_model={d_model}, H={H}, G={G}; expected H | d_model and G | H.")
        d_k, d_v = sizes or (d_model // H, d_model // H)
        if rotation is not None and 2 * len(rotation.frequencies) > d_k:
            raise ValueError(f"{rotation} for d_k={d_k}; expected at most d_k/2 frequencies.")
        self.d_model, self.n_heads, self.n_kv_heads, self.d_k, self.d_v = d_model, H, G, d_k, d_v
        self.rotation, self.scores = rotation, scores
        self.qkv_proj = nn.Linear(d_model, (H + G) * d_k + G * d_v, bias=bias)
        self.out_proj = nn.Linear(H * d_v, d_model, bias=bias)
        self.sink = nn.Parameter(torch.zeros(H)) if scores.sink else None
        eps = scores.norm_eps
        self.q_norm, self.k_norm = (None if eps is None else nn.RMSNorm(d_k, eps) for _ in "QK")

    def forward(self, X, *, cache=None, pad=None, documents=None):
        """Run the layer over whole sequences, or over the next tokens of a cache.

        Parameters
        ----------
        X : (B, T, d_model)
        cache : DecoderCache of this layer with the tokens before, to which these are appended
        pad : (B,) integers, how many tokens at the left of each sequence are padding
        documents : (B, T) integers, equal for the tokens of one document of a packed sequence,
            which see no other document and count their positions anew

        Returns
        -------
        Y : (B, T, d_model); a row of padding has no heads, so it is out_proj's bias, or zero
        """
        self._check(X, cache, pad, documents)
        index, window = torch.arange(X.shape[1], device=X.device)[None], self.scores.window
        if cache is not None:
            index = index + cache.length - cache.pad[:, None]
        elif pad is not None:
            index = index - pad.long()[:, None]
        elif documents is not None:
            index, documents = document_indices(documents)
        Q, K, V = self._project(X, index)
        K, V, key_index = (K, V, index) if cache is None else cache.append(K, V, index)
        is_plain = cache is pad is documents is window is None  # a causal mask needs no tensor
        mask = None if is_plain else visible(index, key_index, window)
        if documents is not None:
            mask = mask & (documents[:, :, None] == documents[:, None, :])[:, None]
        if self.sink is None and self.scores.soft_cap is None:
            heads = self._attend_fused(Q, K, V, mask)
        else:
            heads = self._attend_stepwise(Q, K, V, visible(index, index) if is_plain else mask)
        return self.out_proj(heads.transpose(1, 2).flatten(2))

    def _project(self, X, index):
        """Return Q (B, H, T, d_k), K (B, G, T, d_k) and V (B, G, T, d_v), normed and rotated."""
        H, G, d_k, d_v = self.n_heads, self.n_kv_heads, self.d_k, self.d_v
        parts = self.qkv_proj(X).split((H * d_k, G * d_k, G * d_v), dim=-1)
        heads = (A.unflatten(-1, (n, -1)) for A, n in zip(parts, (H, G, G), strict=True))
        Q, K, V = (A.transpose(1, 2) for A in heads)
        if self.q_norm is not None:
            normed = ((self.q_norm, Q), (self.k_norm, K))  # in the gains' precision
            Q, K = (norm(A.to(norm.weight.dtype)).to(A.dtype) for norm, A in normed)
        if self.rotation is not None:
            tables = self._rotary_tables(index.clamp(min=0), Q.dtype)
            Q, K = (apply_rotation(A, tables, self.rotation.half).to(Q.dtype) for A in (Q, K))
        return Q, K, V

    def _rotary_tables(self, positions, dtype):
        """Return cosines and sines, (B, 1, T, n), of angles in float64, where the device has it."""
        wide = torch.float32 if positions.device.type == "mps" else torch.float64
        given = {"dtype": wide, "device": positions.device}
        angles = positions[:, None, :, None] * torch.as_tensor(self.rotation.frequencies, **given)
        dtype = torch.promote_types(dtype, torch.float32)
        return tuple((self.rotation.stretch * A).to(dtype) for A in (angles.cos(), angles.sin()))

    def _attend_fused(self, Q, K, V, mask):
        """Return the heads (B, H, T, d_v) in one call of PyTorch; without a mask it is causal."""
        B, H, T, _ = Q.shape
        if T == 1:  # the queries of a group become the rows of one product, and K is not copied
            Q = Q.reshape(B, K.shape[1], -1, self.d_k)
        options = {"scale": self.scores.scale, "enable_gqa": Q.shape[1] != K.shape[1]}
        options |= {"is_causal": True} if mask is None else {"attn_mask": mask}
        return F.scaled_dot_product_attention(Q, K, V, **options).reshape(B, H, T, self.d_v)

    def _attend_stepwise(self, Q, K, V, mask):
        """Return the same with a soft cap or a sink, for which the fused call has no option."""
        wide = torch.promote_types(Q.dtype, torch.float32)
        scale, cap = self.scores.scale or self.d_k**-0.5, self.scores.soft_cap
        K, V = (A.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for A in (K, V))
        with torch.autocast(Q.device.type, enabled=False):
            scores = Q.to(wide) @ K.to(wide).mT * scale  # (B, H, T, S)
            scores = scores if cap is None else cap * torch.tanh(scores / cap)
            scores = scores.masked_fill(~mask, torch.finfo(wide).min)
            if self.sink is not None:
                sink = self.sink.to(wide)[:, None, None].expand(*scores.shape[:-1], 1)
                scores = torch.cat((scores, sink), dim=-1)
            weights = scores.softmax(dim=-1)[..., : K.shape[2]] * mask
            return weights.to(V.dtype) @ V

    def _check(self, X, cache, pad, documents):
        """Refuse what would give a wrong result or an unclear error."""
        dtype = self.qkv_proj.weight.dtype
        if X.ndim != 3 or X.shape[2] != self.d_model or not X.shape[1]:
            raise ValueError(f"X: {tuple(X.shape)}; expected (B, T, {self.d_model}) with T >= 1.")
        if X.dtype != dtype and not torch.is_autocast_enabled(X.device.type):
            raise TypeError(f"X is in {X.dtype}; expected {dtype}, that of the weights.")
        if (cache is not None) + (pad is not None) + (documents is not None) > 1:
            raise ValueError(
                "cache, pad, documents: expected one of them; DecoderCache() takes pad."
            )
        for name, A, axes in (("pad", pad, 1), ("documents", documents, 2)):
            if A is not None and A.shape != X.shape[:axes]:
                raise ValueError(f"{name}: {tuple(A.shape)}; expected {tuple(X.shape[:axes])}.")
        if cache is not None:
            cache.check(self, X)
