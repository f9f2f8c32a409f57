"""The lengths of a case by their symbols, as a table of arguments says."""

import math
import re
from dataclasses import is_dataclass

import numpy as np

from tutorial_lib.projection import Params
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.latent import LatentParams

# The last axes of an argument, by its name, that of a function and its own, or a record's and its
# own. What stands before them, or at the dots, is a batch: B1 next to what follows, then B2. The
# axes of several arrays in a tuple have a semicolon between them; in brackets: the argument's
# numbers are lengths themselves.
TABLE = """
    X Y dY: T d_model
    context: S d_model
    Q dQ dprojected rotate.X rotated_back.C: H T d_k
    K dK: H S d_k
    V dV: H S d_v
    K_T: H d_k S
    scores weights dweights mask gradient: H T S
    heads dheads: H T d_v
    concat: T H*d_v
    logsumexp: H T 1
    W: H d_model d_k
    b: H d_k
    grouped_attention.K: G S d_k
    grouped_attention.V: G S d_v
    W_1: d_model d_hidden
    W_2: d_hidden d_model
    W_gate W_up: d_model d_feed
    W_down: d_feed d_model
    gain_1 gain_2 rms_norm_with_gain.gain RealModel.gain: d_model
    RealTrace.X RealTrace.feeds: layers ... T d_model
    RealTrace.normed: T d_model
    RealTrace.weights: layers ... H T S
    RealTrace.heads: layers ... H T d_v
    probabilities: digits
    feed: T d_model
    dequantise.scale dequantise.minimum: blocks
    nibbles: blocks 16
    W_QK W_OV: d_model d_model
    packed: T 3*H*d
    weight: 3*H*d d_model
    split_heads.X passes_round_trip.X: T H*d
    ids other others is_token target order owner surprisal task decided_by: T
    whole patched fraction_below.tokens: T
    Documents.ids: read
    leak.other: T d_model
    E: words d_model
    P: positions d_model
    U: d_model words
    logits: T words
    luck: B1
    C: S rank
    frequencies: pairs
    positions betas decays: H T
    beta: H 1 1
    decay: H d_k 1
    outputs: T d_v
    last: T 1
    twice fresh: H 2*p 2*p
    sources n_layers: layers
    n_heads sink widths: H
    n_kv_heads kv_heads: G
    n_tokens: words
    world_size pairs_seen.n: processes
    halves_from_interleaved.n: pairs
    with_n_open.gates layer_parameters.heads users_that_fit.heads: H
    ablate.heads prune_greedily.heads prune_to.heads: heads 2
    concat_tokens_first.heads: T H d_v
    project_sliced_input.X: T H*d_in
    project_sliced_input.W: H d_in d_out
    linear_backward.W: d_model d_out
    linear_backward.dY: T d_out
    composition.first: rows inner
    composition.second: inner columns
    seeds_apart.first seeds_apart.second: seeds values
    sum_copies.shape: (H T S)
    bytes_sent.shape: (T d_model)
    wrong_entries.gradient: T d_model
    result exact: T d_v
    leaking_pairs.mask receptive_field.mask random indexed_weights.scores: H T T
    score_head.weights score_by_kind.weights duplicate_score.weights: H T T
    positions_of_new.is_token: S
    q: J T d_index
    keys: T d_index
    w: T J
    query key: 2 d_model
    fold_block.state: H T 1; H T 1; H T d_v
    delta_step.state: H d_k d_v
    delta_step.k: H d_k
    v: H d_v
    windowed_step.K: H kept d_k
    windowed_step.V: H kept d_v
    cache: G kept d_k; G kept d_v; 1 1
    scored_heads.kinds: T
    concatenation.factor concatenation.gain: pairs
    gradients.scale slopes: H
    fewer_keys.A_K: S R H
    fewer_keys.B_K: S R d_k
    fewer_keys.A_V: S P H
    fewer_keys.B_V: S P d_v
    kv_cache.rows: B1 H S d_k
    seen pad lengths: B1
    parents drafted: B1 N
    chosen: B1 N+1
    masks.P: P
    gates: T H
    b_V: H d_v
    b_O: d_model
    positions.table: H N d_k
    taps: H n d_k
    promises.W_K: G d_model d_k
    kept_K: G ring d_k
    W_C: d_model rank
    kept_C: ring rank
    promises.W_V: H rank d_v
    out_weight: d_model H*d
    n_shards: shards
    whole_layer.W_Q: G d_model d_k
    whole_layer.W_K: G d_context d_k
    whole_layer.W_V: H d_context d_v
    whole_layer.context: S d_context
    whole_layer.mask: G T S
"""
ITSELF = """
    T S d_model d_k d_v window block size k n p itemsize bits rank rope_dim factor words tokens
    length width layers capacity repeats warm_up values wavelengths names
"""  # arguments whose name is the symbol
RECORDS = LatentParams, GroupedParams, Params  # whose annotations name their axes
FIELDS = [(r, field, axes.text) for r in RECORDS for field, axes in r.contract.axes.items()]
AXES = {name: name for name in ITSELF.split()}
AXES |= {name: text for r, field, text in FIELDS for name in (field, f"{r.__name__}.{field}")}
AXES |= {
    name: axes.strip()
    for names, axes in (line.split(":") for line in TABLE.strip().splitlines())
    for name in names.split()
}
ONE = "it is one of several, and no length"
LIMIT = "a limit far above all lengths"
NO_SIZES = {
    **dict.fromkeys(["axis", "head", "layer", "end", "pad_id", "offset", "steps"], ONE),
    "copy_row.source": ONE,
    "copy_row.target": ONE,
    "digit": ONE,
    "Tokenizer.tokens": "a model that gets ids has no texts",
    "merges": "a model that gets ids has no texts",
    "shard_params.rank": ONE,
    "shard_unevenly.rank": ONE,
    "free": LIMIT,
    "parameters": LIMIT,
    "kinds": "lists of unequal lengths",
    "first": ONE,
    "n_kinds": "how many rules are tried, as furthest is",
    "furthest": "how many rules are tried, as n_kinds is",
}
ITS_OWN_KEYS = {  # functions whose keys are those of the queries
    *("attend_in_blocks", "chunked", "chunked_decay", "linear_attention"),
    *("gated_delta", "rotated_back"),
}
OF_EACH_LAYER = {"find_circuit": ["H"]}  # symbols that stand for another length in each layer
SAID = {  # what a label says of lengths: {symbol: symbols whose product it is}
    "as many (queries as keys|keys as queries)|as long as X|first chunk|a square,": {"S": "T"},
    "square matrices": {"rows": "inner", "columns": "inner"},
    "tokens at once": {"block": "T"},
    "one chunk": {"size": "T"},
    "all of six|all heads": {"n": "H"},
    "a KV head for each (query )?head|a group for each head": {"G": "H"},
    "a shard for each head": {"shards": "H"},
    "as many sequences as heads": {"B1": "H"},
}


class Unclear(AssertionError):
    """The table does not say what an argument's lengths are, or says it wrongly."""


def lengths(function, case, same=()):
    """The lengths of a case, {symbols whose product it is: length}, and its packed axes.

    Packed axes hold a symbol that no other axis tells. `same` says which symbols are products of
    others, {symbol: symbols}. That S is T where a layer looks at its own input need not be told.

    Raises
    ------
    Unclear : an argument that is in neither table, or lengths that contradict the table
    """
    same = _own_keys(function, case) | {s: other.split("*") for s, other in dict(same).items()}
    found, single = {}, set()
    for name, axes, shape in arguments(function, "", case.inputs):
        first, axes = (part.split() for part in f"...{axes}".split("...")[-2:])
        batch = [f"B{n}" for n in range(len(shape) - len(first) - len(axes), 0, -1)]
        axes = first + batch + axes
        for axis, length in zip(axes[::-1], shape[::-1], strict=False):
            symbols = [part for s in axis.split("*") for part in same.get(s, [s])]
            key = tuple(sorted(symbols))
            if length < 2:
                single |= {key}
            elif found.setdefault(key, length) != length and not axis.isdigit():
                raise Unclear(
                    f"{function}, {case.label!r}: {'*'.join(symbols)} is {found[key]} and, by "
                    f"{name}, {length}. Mend the axes of {name} in TABLE, or what the label says"
                )
    return _solved(function, found, single)


def said(case):
    """Which symbols are products of others, by the case's label, or since its mask is square."""
    found = re.findall(r"(\w+) = (\w+) \* (\w+)", case.label)
    same = {symbol: "*".join(factors) for symbol, *factors in found}
    for pattern, also in SAID.items():
        same |= also if re.search(pattern, case.label) else {}
    mask = np.asarray(case.inputs.get("mask"))
    square = mask.ndim == 2 and np.array_equal(mask, np.tri(len(mask)))
    return same | ({"S": "T"} if square else {})


def _own_keys(function, case):
    """S is T where a layer attends to its own input."""
    given = getattr(case.inputs.get("trace"), "__dict__", case.inputs)
    own = "X" in given and given.get("context") is None
    return {"S": ["T"]} if own or function in ITS_OWN_KEYS else {}


def _solved(function, found, single):
    """Tell the factors that stand in products alone, and which products these are."""
    found = {key: n for key, n in found.items() if not all(map(str.isdigit, key))}
    packed = []
    for key in sorted(found, key=len):
        if len(key) == 1:
            continue
        found |= {(s,): int(s) for s in key if s.isdigit()}
        known = math.prod(found.get((s,), 1) for s in key)
        unknown = [s for s in key if (s,) not in found | dict.fromkeys(single)]
        if len(unknown) > 1 or found[key] % known or (not unknown and found[key] != known):
            raise Unclear(f"{function}: {'*'.join(key)} is {found[key]}, which its factors are not")
        if unknown:
            found[unknown[0],] = found[key] // known
            packed.append(key)
    return found | {key: 1 for key in single if key not in found}, packed


def arguments(function, record, parts):
    """Give (name, axes, shape) of all arguments, or of the parts of a record."""
    for name, value in parts.items():
        names = f"{function}.{name}", f"{record}.{name}", name
        key = next((key for key in names if key in AXES or key in NO_SIZES), None)
        yield from _of(function, name, key, value)


def _of(function, name, key, value):
    if is_dataclass(value):
        yield from arguments(function, type(value).__name__, vars(value))
    elif isinstance(value, dict) and all(isinstance(part, str) for part in value):
        yield from arguments(function, name, value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _of(function, name, key, part)
    elif isinstance(value, tuple | list) and value and is_dataclass(value[0]):
        yield name, "layers", (len(value),)
        for n, part in enumerate(value):
            for part_name, axes, shape in _of(function, name, key, part):
                for symbol in OF_EACH_LAYER.get(function, ()):
                    axes = axes.replace(symbol, f"{symbol}{n}")
                yield part_name, axes, shape
    elif _has_sizes(value) and key not in NO_SIZES:
        if key is None:
            raise Unclear(
                f"{function}: the axes of {name} are not known. Add them to TABLE in "
                "tests/practice/axes.py, or to NO_SIZES the reason why it has none"
            )
        yield from _shapes(name, AXES[key], value)


def _has_sizes(value):
    whole = isinstance(value, int | np.integer | list | tuple) and not isinstance(value, bool)
    return whole or hasattr(value, "shape")


def _shapes(name, axes, value):
    if ";" in axes:
        for part, part_axes in zip(value, axes.split(";"), strict=True):
            if np.ndim(part):
                yield name, part_axes, np.shape(part)
    elif axes.startswith("("):
        yield name, axes.strip("()"), tuple(value)
    elif isinstance(value, int | np.integer):
        yield name, axes, (int(value),)
    else:
        yield name, axes, tuple(getattr(value, "shape", None) or np.shape(value))
