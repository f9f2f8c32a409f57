"""A layer to decode with: its keys are kept, shared by groups of heads, and turned."""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.errors import require_divisible, require_length
from tutorial_lib.pytorch.doors import (
    require_new_room,
    require_no_graph,
    require_rates,
    require_rotation,
    require_step,
    require_tensor_pad,
    require_tensors,
    require_turned,
)
from tutorial_lib.pytorch.mha import fused_attention


class Rotation(nn.Module):
    """Turn pairs of numbers of each token by its position times the pair's rate.

    Introduced in chapter 16. What `tutorial_lib.variants.rotate` is in NumPy. It has no weights,
    and its rates are no part of a state_dict.

    Parameters
    ----------
    rates : (n,) array of floats, radians a token, such as `rope_rates(d_k)`, which others call
        inv_freq; fewer than d_k/2 is a partial rotation
    half : False: numbers 2i and 2i+1 are a pair; True: numbers i and i + n, as in Llama's code,
        whose function is rotate_half

    Raises
    ------
    TypeError : rates that are no array of floats, a half that is no bool
    ShapeError : rates of more axes than one
    ValueError : NaN or infinity

    Source: Su et al. (2021).
    """

    def __init__(self, rates, *, half=False):
        super().__init__()
        require_rates(rates, half)
        self.half = half
        # As bits: module.half() and module.bfloat16() would round the rates with the weights.
        bits = torch.from_numpy(np.array(rates, dtype=np.float64)).view(torch.int64)
        self.register_buffer("bits", bits, persistent=False)

    def extra_repr(self):
        """Say what turns when the module is printed."""
        return f"{2 * len(self.bits)} numbers of each head, half={self.half}"

    def forward(self, X, positions):
        """Turn queries or keys.

        Parameters
        ----------
        X : (..., T, d)
        positions : (T,), or (..., T) that broadcasts to the tokens of X; int64, int32, float64 or
            float32

        Returns
        -------
        turned : (..., T, d), in the precision of X; the angles are float64

        Raises
        ------
        TypeError : no tensors of floats, positions of another type
        ShapeError : an odd width, fewer pairs than rates, positions that do not fit the tokens
        ValueError : positions that go backwards, NaN or infinity among them; asked of tensors on
            the CPU alone
        """
        n = len(self.bits)
        require_turned(X, positions, n)
        device = "cpu" if X.device.type == "mps" else X.device  # MPS has no float64
        rates = self.bits.to(device).view(torch.float64)
        angles = positions.to(device)[..., None] * rates  # (..., T, n)
        cos, sin = angles.cos().to(X), angles.sin().to(X)
        turning, rest = X[..., : 2 * n], X[..., 2 * n :]
        a, b = turning.chunk(2, dim=-1) if self.half else (turning[..., ::2], turning[..., 1::2])
        pairs = cos * a - sin * b, sin * a + cos * b
        turned = torch.cat(pairs, -1) if self.half else torch.stack(pairs, -1).flatten(-2)
        return torch.cat((turned, rest), -1)


class DecoderAttention(nn.Module):
    """A causal layer that keeps its keys, shares them between heads, and turns them.

    Introduced in chapter 14; its groups are those of chapter 15, its rotation that of chapter 16.
    `forward` takes whole sequences, to train; `step` takes the next tokens and a cache. Cut in any
    way, a sequence gives the same rows.

    Parameters
    ----------
    d_model, n_heads : width of the layer, number of heads
    n_kv_heads : G, how many heads have keys and values; each serves n_heads / G; n_heads unless
        given
    d_k, d_v : widths of a head; d_k is d_model / n_heads and d_v is d_k unless given; another d_v
        takes PyTorch's slow path, which copies the keys
    rotation : Rotation that turns queries and keys, or None
    bias : whether the projections add a vector

    Attributes
    ----------
    qkv_proj : nn.Linear, weight (H*d_k + G*(d_k + d_v), d_model): the rows of all heads' queries,
        then of the keys, then of the values, head 0 first
    out_proj : nn.Linear, weight (d_model, H*d_v)

    Raises
    ------
    TypeError : a length that is no whole number, a rotation that is no Rotation
    ShapeError : more key heads than heads, or a number that does not divide them; a d_k that is
        left out and does not divide d_model; an odd one, or fewer pairs than the rotation turns
    ValueError : a length below 1

    Source: Pope et al. (2023); Ainslie et al. (2023); Su et al. (2021).

    >>> layer = DecoderAttention(12, 6, n_kv_heads=2).requires_grad_(False)
    >>> cache = DecoderCache.empty(layer, 9)
    >>> Y, cache = layer.step(torch.ones(5, 12), cache)  # the prompt
    >>> Y, cache = layer.step(torch.ones(1, 12), cache)  # the next word
    >>> Y.shape, cache.K.shape
    (torch.Size([1, 12]), torch.Size([2, 6, 2]))
    """

    def __init__(
        self, d_model, n_heads, *, n_kv_heads=None, d_k=None, d_v=None, rotation=None, bias=False
    ):
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_divisible("n_heads", n_heads, "n_kv_heads", n_kv_heads)
        if d_k is None:
            require_divisible("d_model", d_model, "n_heads", n_heads)
            d_k = d_model // n_heads
        d_v = d_k if d_v is None else d_v
        for name, value in {"d_model": d_model, "d_k": d_k, "d_v": d_v}.items():
            require_length(name, value)
        require_rotation(rotation, d_k, Rotation)
        self.d_model, self.n_heads, self.n_kv_heads = int(d_model), int(n_heads), int(n_kv_heads)
        self.d_k, self.d_v = int(d_k), int(d_v)
        self.rotation = rotation
        width = self.n_heads * self.d_k + self.n_kv_heads * (self.d_k + self.d_v)
        self.qkv_proj = nn.Linear(self.d_model, width, bias=bias)
        self.out_proj = nn.Linear(self.n_heads * self.d_v, self.d_model, bias=bias)

    def extra_repr(self):
        """Say the sizes when the module is printed."""
        return (
            f"d_model={self.d_model}, n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}, "
            f"d_k={self.d_k}, d_v={self.d_v}"
        )

    def forward(self, X, *, pad=None):
        """Run the layer over whole sequences.

        Parameters
        ----------
        X : (..., T, d_model)
        pad : (...) tensor of whole numbers, how many tokens at the left of each sequence are
            padding; None: none

        Returns
        -------
        Y : (..., T, d_model); a row of padding is out_proj's bias, or zero

        Raises
        ------
        TypeError : no tensor of floats, another precision than the weights', a pad of anything
            but whole numbers
        ShapeError : another width, an empty sequence, a pad of other axes than the batch's
        ValueError : tensors on another device than the weights; more padding than tokens, asked of
            tensors on the CPU alone
        """
        require_tensors(self, X, None, None)
        T, batch = X.shape[-2], X.shape[:-2]
        require_tensor_pad(pad, batch, T, X.device)
        Q, K, V = self._project(X, places(0, T, pad, X.device))
        mask = None if pad is None else visible(T, T, pad, X.device)
        return self._mix(Q, K, V, mask=mask, is_causal=pad is None)

    def step(self, X, cache):
        """Run the layer for the next tokens, one or more.

        A step that fails leaves the cache as it was. Rows of weights that have changed since stay
        in it: after a change of the weights begin with an empty one. Under autocast the rows are
        made in the lower precision and kept in that of the weights.

        Parameters
        ----------
        X : (..., T, d_model), the new tokens alone
        cache : DecoderCache of this layer, with the tokens before; the newest

        Returns
        -------
        Y : (..., T, d_model), the new rows
        cache : DecoderCache, longer by T

        Raises
        ------
        TypeError : no tensor of floats, another precision than the weights', no DecoderCache
        ShapeError : another width or batch, an empty sequence
        ValueError : a cache of another layer, one that was continued already, no room left,
            tensors on two devices, gradients that are asked for; NaN or infinity in X, asked of
            tensors on the CPU alone
        """
        require_tensors(self, X, None, None)
        require_step(self, X, cache, DecoderCache)
        require_no_graph(X, *self.qkv_proj.parameters())
        T = X.shape[-2]
        whole = cache.length == 0 and cache.pad is None
        everything = whole or (T == 1 and cache.pad is None)
        mask = None if everything else cache.mask(T)
        Q, K, V = self._project(X, cache.positions(T))
        longer = cache._append(K, V)
        Y = self._mix(Q, longer.K, longer.V, mask=mask, is_causal=whole)
        cache.continued.append(longer.length)  # last: until then another step may write here
        return Y, longer

    def _project(self, X, positions):
        H, G = self.n_heads, self.n_kv_heads
        wide = self.qkv_proj(X).split([(H + G) * self.d_k, G * self.d_v], dim=-1)
        heads = (A.unflatten(-1, (n, -1)) for A, n in zip(wide, (H + G, G), strict=True))
        QK, V = (A.transpose(-3, -2) for A in heads)  # (..., H + G, T, d_k), (..., G, T, d_v)
        if self.rotation is not None:
            QK = self.rotation(QK, positions[..., None, :])  # one turn for queries and keys
        Q, K = QK.split([H, G], dim=-3)
        return Q, K, V

    def _mix(self, Q, K, V, *, mask, is_causal):
        heads = fused_groups(Q, K, V, mask=mask, is_causal=is_causal)  # (..., H, T, d_v)
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


@dataclass(frozen=True)
class DecoderCache:
    """The keys and values of the tokens that a DecoderAttention has read, in reserved room.

    Introduced in chapter 14. What `tutorial_lib.variants.KVCache` is in NumPy: a step writes
    into the room and returns a longer view of it, so no step copies what is kept.

    Parameters
    ----------
    layer : DecoderAttention that it was made for
    rooms : (..., G, room, d_k) and (..., G, room, d_v), shared by all views; a room's length is
        often called its capacity
    length : number of tokens, padding included
    pad : (...), numbers of padding tokens at the left of each sequence; None: none
    continued : list, empty until a step goes on from here, then with the length of what it returned

    Source: Pope et al. (2023).
    """

    layer: DecoderAttention
    rooms: tuple
    length: int
    pad: torch.Tensor | None
    continued: list

    @classmethod
    def empty(cls, layer, room, *, batch=(), pad=None):
        """Reserve room for a number of tokens, in the precision and on the device of the weights.

        Parameters
        ----------
        layer : DecoderAttention
        room : number of tokens, padding included
        batch : lengths of the batch axes
        pad : (...) whole numbers, how many tokens at the left of each sequence are padding

        Returns
        -------
        cache : DecoderCache

        Raises
        ------
        TypeError : another layer, lengths or pad that are no whole numbers
        ShapeError : pad of another shape than batch
        ValueError : a length below 1, more padding than room
        """
        pad = None if pad is None else torch.as_tensor(pad)
        require_new_room(layer, room, batch, pad, DecoderAttention)
        weight, G = layer.qkv_proj.weight, layer.n_kv_heads
        rooms = tuple(weight.new_zeros(*batch, G, room, d) for d in (layer.d_k, layer.d_v))
        pad = None if pad is None else pad.to(weight.device, copy=True)
        return cls(layer, rooms, 0, pad, [])

    @property
    def K(self):
        """The keys so far, turned: (..., G, length, d_k)."""
        return self.rooms[0][..., : self.length, :]

    @property
    def V(self):
        """The values so far: (..., G, length, d_v)."""
        return self.rooms[1][..., : self.length, :]

    @property
    def batch(self):
        """The lengths of the batch axes."""
        return tuple(self.rooms[0].shape[:-3])

    @property
    def room(self):
        """Number of tokens that it was made for."""
        return self.rooms[0].shape[-2]

    @property
    def written(self):
        """Number of tokens of the view that a step made of this one, or of this one."""
        return self.continued[0] if self.continued else self.length

    def _append(self, K, V):
        end = self.length + K.shape[-2]
        for room, rows in zip(self.rooms, (K, V), strict=True):
            room[..., self.length : end, :] = rows
        return replace(self, length=end, continued=[])

    def fork(self):
        """Copy what is kept, to go on from here a second time.

        Returns
        -------
        cache : DecoderCache of the same layer, in room of its own
        """
        return replace(self, rooms=tuple(room.clone() for room in self.rooms), continued=[])

    def mask(self, T):
        """Say what the next T tokens may look at: all before them and themselves, no padding.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        mask : booleans, (T, length + T), or (..., 1, T, length + T) where there is padding
        """
        return visible(T, self.length + T, self.pad, self.rooms[0].device)

    def positions(self, T):
        """Count the places of the next T tokens from 0, padding left out; padding itself has 0.

        Parameters
        ----------
        T : number of new tokens

        Returns
        -------
        positions : whole numbers, (T,), or (..., T) where there is padding
        """
        return places(self.length, T, self.pad, self.rooms[0].device)


def fused_groups(Q, K, V, *, mask=None, is_causal=False):
    """Let each group of heads attend to one head of keys and values, in one call of PyTorch.

    Introduced in chapter 15. What `tutorial_lib.variants.grouped_attention` is in NumPy: the
    queries of a group become the rows of one matrix, so that its keys are read once and not
    copied. A whole sequence goes without, since PyTorch skips the keys behind a query by the flag
    `is_causal` alone.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K, V : (..., G, S, d_k), (..., G, S, d_v)
    mask : booleans, (T, S) or (..., 1, T, S), True = may look; None lets all look
    is_causal : the T queries are the S tokens, and look at no later one; no mask is given then

    Returns
    -------
    heads : (..., H, T, d_v)

    >>> fused_groups(torch.ones(6, 5, 4), *torch.ones(2, 2, 8, 4)).shape
    torch.Size([6, 5, 4])
    """
    *batch, H, T, _ = Q.shape
    G, S = K.shape[-3:-1]
    # Four axes, as the kernels expect; a reshape would ask how the room lies, for every length.
    Q, K, V = (A[None] if A.ndim == 3 else A.flatten(0, -4) for A in (Q, K, V))
    if is_causal and T > 1:
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=G < H)
        return heads.reshape(*batch, H, T, -1)
    rows = Q.reshape(-1, G, H // G * T, Q.shape[-1])  # a group's queries, head below head
    if mask is not None:
        mask = mask.reshape(-1, 1, 1, T, S).expand(-1, 1, H // G, T, S).flatten(2, 3)
    heads = fused_attention(rows, K, V, mask=mask)  # (B, G, H/G*T, d_v)
    return heads.reshape(*batch, H, T, V.shape[-1])


def visible(T, S, pad, device):
    """Say what the last T of S tokens may look at: none behind themselves, and no padding."""
    causal = torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)
    if pad is None:
        return causal
    real = torch.arange(S, device=device) >= pad[..., None]  # (..., S)
    return causal & real[..., None, None, :]  # (..., 1, T, S)


def places(start, T, pad, device):
    """Count the places of T tokens behind `start` others, padding left out; padding has 0."""
    counted = torch.arange(start, start + T, device=device)
    return counted if pad is None else (counted - pad[..., None]).clamp(min=0)
