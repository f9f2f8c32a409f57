"""What a DecoderAttention, its cache, its rotation and its sight require of their arguments."""

import numpy as np
import torch

from tutorial_lib.contract import require_by_annotation
from tutorial_lib.errors import (
    ShapeError,
    require_finite,
    require_float_array,
    require_positive_whole,
)
from tutorial_lib.pytorch.tensors import autocast_converts, type_phrase
from tutorial_lib.variants.cache import require_capacity, require_newest_view, require_pad
from tutorial_lib.variants.patterns import require_sink_scores
from tutorial_lib.variants.positions import require_even_width, require_nondecreasing_positions

FLOATS = torch.float64, torch.float32, torch.float16, torch.bfloat16
INTEGERS = (
    *(torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)
POSITIONS = torch.int64, torch.int32, torch.float64, torch.float32  # bfloat16 has no 257


def require_module(module, kind, advice):
    """Require a module of a class of this library; `mend` says what to do with another.

    Raises
    ------
    TypeError : another module
    """
    if not isinstance(module, kind):
        raise TypeError(
            f"module is a {type(module).__name__}; expected a {kind.__name__} of this library. "
            f"{advice}"
        )


def require_tensors(module, X, context, mask):
    """Require a sequence that fits the module; a decoder has neither context nor mask.

    Whether all numbers are finite is not asked: on a GPU the answer would have to be waited for.

    Raises
    ------
    TypeError : no tensor of floats, another precision than the weights'
    ShapeError : another width, an empty sequence
    ValueError : a tensor on another device than the weights
    """
    _require_sequence("X", X, "T", module)


def _require_sequence(name, value, length, module):
    weight = module.qkv_proj.weight
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        raise TypeError(
            f"{name} is {type_phrase(value)}; expected a tensor of floats. "
            f"Convert it first: torch.as_tensor({name}, dtype={weight.dtype})."
        )
    if value.dtype != weight.dtype and not autocast_converts(value, weight):
        raise TypeError(
            f"{name} is in {value.dtype} and the weights are in {weight.dtype}; expected one "
            f"precision. Convert one: {name}.to({weight.dtype}), or module.to({value.dtype})."
        )
    if value.ndim < 2 or value.shape[-1] != module.d_model or value.shape[-2] == 0:
        raise ShapeError(
            f"{name} has shape {tuple(value.shape)}; expected (..., {length}, d_model) with "
            f"d_model={module.d_model} and at least one token. Make the two agree."
        )
    if value.device != weight.device:
        raise ValueError(
            f"{name} is on {value.device} and the weights are on {weight.device}; expected one "
            f"device. Move one of them: {name}.to({str(weight.device)!r})."
        )


def _require_device(name, tensor, reference, device):
    if tensor.device != device:
        raise ValueError(
            f"{name} is on {tensor.device} and {reference} is on {device}; expected one device. "
            f"Move it: {name}.to({str(device)!r})."
        )


def _require_dtype(name, tensor, reference, dtypes, expected):
    dtype = getattr(tensor, "dtype", type(tensor).__name__)
    if not isinstance(tensor, torch.Tensor) or dtype not in dtypes or dtype != reference.dtype:
        raise TypeError(
            f"{name} is of type {dtype}; expected {expected}. "
            f"Convert it, for example torch.as_tensor({name}).to({dtypes[0]})."
        )


def require_frequencies(frequencies, half):
    """Require a finite frequency for each pair of entries that is rotated, and a bool.

    Raises
    ------
    TypeError : no array of floats, a half that is no bool
    ShapeError : another number of axes than one, or an empty one
    ValueError : NaN or infinity
    """
    require_by_annotation("frequencies", frequencies, "raw n")
    require_float_array("frequencies", frequencies)
    require_finite("frequencies", frequencies)
    if not isinstance(half, bool):
        raise TypeError(
            f"half is {half!r}; expected True or False. Give True for weights of Hugging Face's "
            f"Llama, in which entries i and i + n are a pair."
        )


def require_rotation(rotation, d_k, kind):
    """Require None, or a rotation of no more pairs than a key has.

    Raises
    ------
    TypeError : no rotation
    ShapeError : an odd d_k, or more frequencies than pairs
    """
    if rotation is None:
        return
    require_module(rotation, kind, "Make one: Rotation(rope_frequencies(d_k)).")
    require_pairs_to_rotate(d_k, len(rotation.bits))


def require_sizes(sizes):
    """Require the lengths of a head's queries and keys, and of its values.

    Raises
    ------
    TypeError : no pair of whole numbers
    ValueError : a length below 1
    """
    if not isinstance(sizes, tuple) or len(sizes) != 2:
        raise TypeError(
            f"sizes is {sizes!r}; expected (d_k, d_v), the widths of a head's keys and of its "
            f"values. Give a pair, such as (64, 64)."
        )
    for name, width in zip(("d_k", "d_v"), sizes, strict=True):
        require_positive_whole(name, width)


def require_sink(sink):
    """Require None, or for each head a finite number, or -inf for none.

    Raises
    ------
    TypeError : no array of floats
    ShapeError : another number of axes than one, or an empty one
    ValueError : NaN or +inf
    """
    if sink is not None:
        require_by_annotation("sink", sink, "raw H")
        require_float_array("sink", sink)
        require_sink_scores(sink)


def require_qk_norm(qk_norm, eps):
    """Require None, or finite gains for queries and for keys; and a number that is not negative.

    Raises
    ------
    TypeError : no array of floats, an eps that is no number
    ShapeError : another shape than (2, d_k)
    ValueError : NaN or infinity, an eps below 0
    """
    if qk_norm is not None:
        require_by_annotation("qk_norm", qk_norm, "raw two d_k", two=2)
        require_float_array("qk_norm", qk_norm)
        require_finite("qk_norm", qk_norm)
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        raise TypeError(
            f"eps is {eps!r}, a {type(eps).__name__}; expected a number from 0 on. "
            f"Give a float, such as 1e-6."
        )
    if not 0 <= eps < np.inf:
        raise ValueError(
            f"eps={eps}; expected a number from 0 on. It is added to a mean of squares, so give a "
            f"small one, such as 1e-6."
        )


def require_sight(sight, n_heads, d_k, kind):
    """Require a sight, with as many sinks as heads and gains as a key has entries, or none.

    Raises
    ------
    TypeError : no sight
    ShapeError : another number of sinks or of gains
    """
    if not isinstance(sight, kind):
        raise TypeError(
            f"sight is a {type(sight).__name__}; expected a {kind.__name__}. Make one: "
            f"{kind.__name__}(window=128), {kind.__name__}(sink=np.zeros({n_heads})), or both."
        )
    if sight.sink is not None and len(sight.sink) != n_heads:
        raise ShapeError(
            f"sink has {len(sight.sink)} entries for {n_heads} heads; expected one for each. "
            f"Give for example np.zeros({n_heads})."
        )
    if sight.qk_norm is not None and sight.qk_norm.shape[1] != d_k:
        raise ShapeError(
            f"qk_norm has shape {sight.qk_norm.shape}; expected (2, d_k) with d_k={d_k}, gains of "
            f"the queries and of the keys. Give for example np.ones((2, {d_k}))."
        )


def require_pairs_to_rotate(width, n):
    """Require an even width with at least n pairs.

    Raises
    ------
    ShapeError : odd, or fewer pairs
    """
    require_even_width("d_k", width)
    if 2 * n > width:
        raise ShapeError(
            f"the rotation has {n} frequencies, and a key of d_k={width} has {width // 2} pairs; "
            f"expected at most one for each pair. Make them with rope_frequencies({width})."
        )


def require_rotated(X, positions, n):
    """Require floats with n pairs or more, and positions that do not go backwards.

    Raises
    ------
    TypeError : no tensors of floats, positions of another type than POSITIONS
    ShapeError : an odd width, fewer pairs, positions that do not fit the tokens
    ValueError : positions that go backwards, NaN or infinity, where that can be checked at once
    """
    if not isinstance(X, torch.Tensor) or not X.is_floating_point():
        raise TypeError(
            f"X is {type_phrase(X)}; expected a tensor of floats, queries or keys. "
            f"Convert it first: torch.as_tensor(X, dtype=torch.float64)."
        )
    require_pairs_to_rotate(X.shape[-1], n)
    if not isinstance(positions, torch.Tensor) or positions.dtype not in POSITIONS:
        raise TypeError(
            f"positions is {type_phrase(positions)}; expected a tensor of int64, int32, float64 or "
            f"float32, a position for each token. Count them: torch.arange(T)."
        )
    _require_positions(positions, tuple(X.shape[:-1]))


def _require_positions(positions, tokens):
    try:
        is_broadcast = torch.broadcast_shapes(positions.shape, tokens) == tokens
    except RuntimeError:
        is_broadcast = False
    if not is_broadcast or positions.shape[-1:] != tokens[-1:]:
        raise ShapeError(
            f"positions has shape {tuple(positions.shape)}; expected (..., T) with T={tokens[-1]} "
            f"that broadcasts to the tokens' {tokens}. Positions of each sequence, (B, T), need a "
            f"head axis: positions[:, None]."
        )
    if _may_check(positions) and (tokens[-1] > 1 or positions.is_floating_point()):
        wide_dtype = float if positions.is_floating_point() else np.int64
        require_nondecreasing_positions(positions.numpy(force=True).astype(wide_dtype), tokens)


def _may_check(tensor):
    # A check of numbers on a GPU would have to wait for it, and a graph holds none.
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _require_pad(pad, batch, T, may_check):
    expected = "a tensor of integers, how many tokens at the left of each sequence are padding"
    _require_dtype("pad", pad, pad, INTEGERS, expected)
    if not torch.compiler.is_compiling():  # a graph holds no numbers
        pad_lengths = pad.numpy(force=True) if may_check(pad) else np.zeros(pad.shape, np.int64)
        require_pad(pad_lengths, tuple(batch), T)


def require_tensor_pad(pad, batch, T, device):
    """Require None, or an integer for each sequence, from 0 to less than T.

    Raises
    ------
    TypeError : no tensor of integers
    ShapeError : other axes than those of the batch, outside a graph
    ValueError : another device; below 0 or only padding, where that can be checked at once
    """
    if pad is not None:
        _require_pad(pad, batch, T, _may_check)
        _require_device("pad", pad, "X", device)


def require_new_cache(layer, capacity, batch, pad, kind):
    """Require a layer, lengths, and padding that leaves a token.

    Raises
    ------
    TypeError : another layer, lengths or pad that are no whole numbers
    ShapeError : pad of another shape than batch
    ValueError : a length below 1, more padding than capacity
    """
    require_module(layer, kind, "A cache belongs to a layer: DecoderCache.empty(layer, capacity).")
    require_positive_whole("capacity", capacity)
    if not isinstance(batch, tuple):
        raise TypeError(
            f"batch is {batch!r}; expected the lengths of the batch axes. Give a tuple, such as "
            f"(2,) or ()."
        )
    for length in batch:
        require_positive_whole("a length of batch", length)
    if pad is not None:
        _require_pad(pad, batch, capacity, lambda pad: not pad.is_meta)


def require_step(layer, X, cache, kind):
    """Require a cache of this layer and of X that can be continued.

    Raises
    ------
    TypeError : no cache
    ShapeError : another batch
    ValueError : a cache of another layer, of weights that were converted since, one that was
        continued already, a full buffer; NaN or infinity in X, where that can be checked at once
    """
    if not isinstance(cache, kind):
        raise TypeError(
            f"cache is a {type(cache).__name__}; expected a {kind.__name__}. Make one for each "
            f"layer: {kind.__name__}.empty(layer, capacity)."
        )
    buffer, weight = cache.buffers[0], layer.qkv_proj.weight
    if cache.layer is not layer or (buffer.dtype, buffer.device) != (weight.dtype, weight.device):
        raise ValueError(
            f"the cache was made for another layer, or for these weights before they were moved or "
            f"converted: it is in {buffer.dtype} on {buffer.device}. Make one for each layer: "
            f"{kind.__name__}.empty(layer, capacity); a copy of a cache is cache.fork()."
        )
    if X.shape[:-2] != cache.batch:
        raise ShapeError(
            f"X has shape {tuple(X.shape)}, a batch of {tuple(X.shape[:-2])}, and the cache one of "
            f"{cache.batch}; expected the same. Give batch to {kind.__name__}.empty."
        )
    require_newest_view(cache)
    if not cache.rolls:
        require_capacity(X.shape[-2], cache.length, cache.capacity)
    if _may_check(X):  # NumPy has no bfloat16
        require_finite("X", (X.float() if X.dtype == torch.bfloat16 else X).numpy(force=True))


def require_newest(cache):
    """Require a view whose rows were not overwritten: the newest, where the layer has a window.

    Raises
    ------
    ValueError : a step has continued from it, in a layer with a window
    """
    if cache.rolls and cache.continued:
        raise ValueError(
            f"this cache of {cache.length} tokens was continued already, to {cache.written}; "
            f"expected the newest, since a layer with a window overwrites keys that have left "
            f"it. Fork before the step: cache.fork()."
        )


def require_no_graph(*tensors):
    """Require that no gradient of cached rows is needed.

    Raises
    ------
    ValueError : a tensor that requires gradients, outside torch.no_grad()
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise ValueError(
            "X or a weight requires gradients; expected none, since the rows of a reserved buffer "
            "have no graph. Call the step under torch.inference_mode(), or train with layer(X)."
        )
