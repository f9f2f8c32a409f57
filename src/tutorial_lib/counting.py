"""What attention costs, counted from shapes: flop, bytes to move, bytes of the cache."""

import math
from collections import Counter
from itertools import cycle, islice

from tutorial_lib.contract import checked, require
from tutorial_lib.errors import ShapeError, require_positive_whole

KV_FIELDS = ("kv_heads", "d_k", "d_v")
MAY_BE_ZERO = ("rope_dim", "channels", "random")  # lengths within a field that may be 0
LAYERS = {  # kind of layer -> the fields of a model that give the size of its cache
    "full": KV_FIELDS,  # a key and a value per token
    "window": (*KV_FIELDS, "window"),  # the same, only of the newest tokens
    "latent": ("latent",),  # a latent and a RoPE part of the key per token
    "state": ("state",),  # one state per head, however long the sequence is
    "chosen": ("latent", "chosen"),  # the same, and a short key of the indexer
    "pool": (*KV_FIELDS, "window", "pool"),  # a window, and one pooled key for every `pool` tokens
    "chosen pool": (*KV_FIELDS, "window", "chosen"),  # the same, and short keys of the indexer
    "both": KV_FIELDS,  # nothing: a bidirectional layer computes all keys again
    "sparse": (*KV_FIELDS, "sparse"),  # nothing: bidirectional, on some of the pairs
}


@checked
def attention_flop(Q: object, K: object, V: object) -> int:
    """Count the operations of the two products of attention, scoring and mixing, over all pairs.

    Built in chapter 11. A multiply-add is 2. A causal mask needs about half of the pairs; scale
    and softmax, a few operations per pair beside 2*(d_k + d_v), are left out.

    Parameters
    ----------
    Q, K, V : (..., T, d_k), (..., S, d_k), (..., S, d_v); only their shapes are read, so tensors
        on the device "meta", which have no entries, will do

    Raises
    ------
    TypeError : no arrays or tensors
    ShapeError : fewer than two axes, or lengths that do not fit

    >>> attention_flop(*np.ones((3, 5, 4)))
    400
    """
    require_fitting_qkv(Q, K, V)
    pairs = math.prod(Q.shape[:-1]) * K.shape[-2]  # of a query and a key, in all heads
    return 2 * pairs * (Q.shape[-1] + V.shape[-1])


@checked
def attention_bytes(Q: object, K: object, V: object, *, fused: bool) -> int:
    """Count the bytes that attention must at least move from and to the device's large memory.

    Built in chapter 11. Fused, each entry of Q, K, V and of the heads' output is moved once. Step
    by step the scores are written, read by the softmax, and its weights written and read as well,
    unless a processor's cache holds them.

    Parameters
    ----------
    Q, K, V : (..., T, d_k), (..., S, d_k), (..., S, d_v) of one precision; only their shapes and
        their precision are read
    fused : whether the matrix of scores stays out of the large memory

    Raises
    ------
    TypeError : no arrays or tensors
    ShapeError : fewer than two axes, or lengths that do not fit

    >>> attention_bytes(*np.ones((3, 5, 4)), fused=True)
    640
    """
    require_fitting_qkv(Q, K, V)
    queries = math.prod(Q.shape[:-1])  # in all heads
    output, table = (queries * n * Q.itemsize for n in (V.shape[-1], K.shape[-2]))
    once = Q.nbytes + K.nbytes + V.nbytes + output
    return once if fused else once + 4 * table


@checked
def cache_bytes(
    *,
    n_layers: "length",
    n_kv_heads: "length",
    d_k: "length",
    d_v: "length",
    itemsize: float,
):
    """Count the bytes per token of a KV cache: keys and values in all layers.

    Built in chapter 14.

    Parameters
    ----------
    n_layers : layers that cache keys and values of their own
    n_kv_heads : KV heads; as many as query heads where none is shared
    itemsize : bytes of an entry; 2 for 16 bits, 0.5 for 4

    Returns
    -------
    bytes : per token

    >>> cache_bytes(n_layers=2, n_kv_heads=3, d_k=4, d_v=7, itemsize=8)
    528
    """
    require_itemsize(itemsize)
    return n_layers * n_kv_heads * (d_k + d_v) * itemsize


def require_itemsize(itemsize):
    """Require a positive number of bytes per entry."""
    require(
        0 < itemsize < math.inf,
        ValueError,
        f"itemsize={itemsize}; expected a positive number of bytes. Give 2 for 16 bits, or 0.5 "
        f"for 4.",
    )


@checked
def cache_entries(model: dict):
    """Count the entries that a model caches of a sequence: keys, values, latents and states.

    Introduced in chapter 14.

    Parameters
    ----------
    model : dict, an entry of facts("models") or one with the same fields: `layers`, `pattern`,
        and those that LAYERS names for the kinds in it; a latent's `rank` and `rope_dim` are
        kv_lora_rank and qk_rope_head_dim of a configuration; `first` and `last` are the kinds of
        layers before and after the pattern, `shared` how many of the last layers use the keys of
        earlier ones, `full` the heads of full layers where they differ from the others'

    Returns
    -------
    growing, windowed, fixed : per token; per token in the window; once per sequence

    Raises
    ------
    TypeError : lengths that are no whole numbers
    ValueError : no pattern, a kind of layer that is none of LAYERS, a field that it lacks, a
        length below 1, or fewer layers than it names

    >>> cache_entries({"layers": 2, "pattern": ["full"], "kv_heads": 3, "d_k": 4, "d_v": 7})
    (66, 0, 0)
    """
    cached_kinds = layer_kinds(model)[: model["layers"] - model.get("shared", 0)]
    layer_entries = [_count_layer_cache_entries(model, kind) for kind in cached_kinds]
    return tuple(map(sum, zip(*layer_entries, strict=True)))


def _count_layer_cache_entries(model, kind):
    """Return the same of one layer."""
    indexer_entries = model.get("chosen", {}).get("d_k", 0) if "chosen" in kind else 0
    if kind in ("full", "window", "pool", "chosen pool"):
        head_sizes = model | (model.get("full", {}) if kind == "full" else {})
        kv_width = head_sizes["d_k"] + (0 if model.get("keys_are_values") else head_sizes["d_v"])
        kv_entries = head_sizes["kv_heads"] * kv_width
        if "pool" in kind:
            pool_size = model["chosen"]["pool"] if "chosen" in kind else model["pool"]
            return (kv_entries + indexer_entries) // pool_size, kv_entries, 0
        return (kv_entries, 0, 0) if kind == "full" else (0, kv_entries, 0)
    if kind in ("latent", "chosen"):
        return model["latent"]["rank"] + model["latent"]["rope_dim"] + indexer_entries, 0, 0
    if kind == "state":
        state_sizes = model["state"]
        state_entries = state_sizes["heads"] * state_sizes["d_k"] * state_sizes["d_v"]
        return 0, 0, state_entries + state_sizes["channels"] * (state_sizes["convolution"] - 1)
    return 0, 0, 0


@checked
def layer_kinds(model: dict) -> list:
    """List the kind of each layer of a model, from the first to the last.

    Introduced in chapter 17.

    `cache_entries` says what a model has to hold.

    >>> model = {"layers": 4, "pattern": ["window", "full"], "last": ["full"], "window": 6}
    >>> layer_kinds(model | {"kv_heads": 3, "d_k": 4, "d_v": 7})
    ['window', 'full', 'window', 'full']
    """
    require_cache_fields_of_model(model)
    first_kinds, last_kinds = model.get("first", []), model.get("last", [])
    n_between = model["layers"] - len(first_kinds) - len(last_kinds)
    return [*first_kinds, *islice(cycle(model["pattern"]), n_between), *last_kinds]


@checked
def layer_kind_counts(model: dict) -> Counter:
    """Count the layers of each kind in a model.

    Introduced in chapter 14.

    `cache_entries` says what a model has to hold.

    >>> model = {"layers": 5, "pattern": ["window", "full"], "window": 6}
    >>> layer_kind_counts(model | {"kv_heads": 3, "d_k": 4, "d_v": 7})["window"]
    3
    """
    return Counter(layer_kinds(model))


@checked
def model_cache_bytes(model: dict, tokens: float, *, itemsize: float = 2):
    """Count the bytes that a model caches of one sequence of so many tokens.

    Introduced in chapter 14.

    Parameters
    ----------
    model : dict, as `cache_entries` reads it
    tokens : 0 or more; curves have points between whole numbers too
    itemsize : bytes of an entry; half a byte for 4 bits

    Returns
    -------
    bytes : a whole number, unless `tokens` or `itemsize` is a fraction

    Raises
    ------
    ValueError : a model that `cache_entries` refuses, tokens below 0, a size of 0 or less, NaN

    >>> model_cache_bytes({"layers": 2, "pattern": ["full"], "kv_heads": 3, "d_k": 4, "d_v": 7}, 5)
    660
    """
    per_token, per_window_token, per_sequence = cache_entries(model)
    require_itemsize(itemsize)
    require(0 <= tokens < math.inf, ValueError, f"tokens={tokens}; expected 0 or more. Give 0.")
    window_tokens = min(tokens, model.get("window", 0))
    return itemsize * (per_token * tokens + per_window_token * window_tokens + per_sequence)


def require_fitting_qkv(Q, K, V):
    """Require queries, keys and values that fit one another."""
    for name, value in {"Q": Q, "K": K, "V": V}.items():
        if not (hasattr(value, "shape") and hasattr(value, "itemsize")):
            raise TypeError(
                f"{name} is a {type(value).__name__}; expected a NumPy array or a tensor. "
                f'For only its shape, make torch.empty(T, d, device="meta").'
            )
    shapes = [tuple(value.shape) for value in (Q, K, V)]
    widths_agree = min(map(len, shapes)) >= 2 and shapes[0][-1] == shapes[1][-1]
    if not widths_agree or shapes[1][-2] != shapes[2][-2]:
        raise ShapeError(
            f"Q, K and V have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}; expected "
            f"(..., T, d_k), (..., S, d_k) and (..., S, d_v). Make the widths of queries and "
            f"keys agree, and the numbers of keys and values."
        )


def require_cache_fields_of_model(model):
    """Require the fields that give the cache of each layer of a model."""
    name, pattern = model.get("name", "the model"), model.get("pattern")
    kinds = [*(pattern or []), *model.get("first", []), *model.get("last", [])]
    if not pattern or not set(kinds) <= set(LAYERS):
        raise ValueError(
            f"{name} has the pattern {kinds or pattern!r}; expected a list of kinds of layers out "
            f"of {', '.join(LAYERS)}, which is repeated through its layers."
        )
    required = {"layers", *(field for kind in kinds for field in LAYERS[kind])}
    if missing_fields := sorted(required - set(model)):
        raise ValueError(
            f"{name} lacks {', '.join(missing_fields)}; its pattern {pattern} needs "
            f"{', '.join(sorted(required))}. Add what is missing."
        )
    for field in sorted(required | ({"full", "shared"} & set(model))):
        lengths = model[field] if isinstance(model[field], dict) else {field: model[field]}
        for axis_name, length in lengths.items():
            if length != 0 or axis_name not in MAY_BE_ZERO:
                require_positive_whole(f"{axis_name} of {name}", length)
    n_named = len(kinds) - len(pattern)
    if max(n_named + 1, model.get("shared", 0) + 1) > model["layers"]:
        raise ValueError(
            f"{name} has {model['layers']} layers; expected more than the {n_named} that it names "
            f"before and after its pattern, and than the {model.get('shared', 0)} without keys."
        )
