"""What the cards of the models say: checked entries, arrows, small masks, receptive field.

An entry of `data/facts/models.json` says what its configuration says. A mask is drawn on 16 tokens
with smaller windows, from the functions of chapter 17; fractions are counted at the true sizes.
"""

import re

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.counting import LAYERS, cache_entries, layer_kinds
from tutorial_lib.records import facts
from tutorial_lib.variants.patterns import global_mask, top_k_mask, window_mask

TOKENS = 16  # of a drawn mask
LONG = 131_072  # tokens at which a model is looked at whose sources name no length
SMALL = {  # the sizes that a drawn mask has instead of the true ones
    "window": 4,
    "pool": 4,
    "chosen": {"keys": 4, "pool": 2, "gathers": 4},
    "sparse": {"window": 5},
}
POOLS_CHOSEN = 2  # of a drawn mask, where pools are chosen
STEPS = {  # row of the variants that a card names -> the steps of the map that it changes
    "No positions": ["embed"],
    "Shared keys (GQA, MQA)": ["project"],
    "Latent (MLA)": ["project"],
    "Keys of an earlier layer": ["project"],
    "RoPE": ["score"],
    "ALiBi": ["score"],
    "Window": ["score"],
    "Sparse patterns": ["score"],
    "Sink": ["score"],
    "Top-k attention": ["score"],
    "Bounded scores (QK-norm, soft cap)": ["score"],
    "Differential attention": ["score"],
    "Linear attention": ["score", "mix"],
    "Delta rule": ["score", "mix"],
    "Forget gate": ["score", "mix"],
    "Gate": ["mix"],
    "Output rotated back": ["mix"],
}
MAP = ("embed", "project", "score", "mix", "concat", "project out")
SOURCE = r"https://github\.com/[^/]+/[^/]+/(blob/[0-9a-f]{40}/\S+( \(.+\))?|issues/\d+)"
SOURCE += r"|arXiv:\d{4}\.\d{5}, .+"
ALWAYS = ("year", "layers", "d_model")
HEADS = ("heads", "d_k", "d_v", "kv_heads", "heads_times_d_k")
WORDS = ("name", "source", "licence", "source_kind")
MAY = ("pattern", "first", "last", "shared", "window", "pool", "keys_are_values", "context")
MAY += ("parameters", "parameters_sum", "scale", "read", "note", "config", "assumed")
UNREAD = ("year", "heads_times_d_k", "parameters")  # of the release, and worked out from others
UNREAD += ("read", "note", "config", "assumed", *WORDS)
FIELDS = {  # field that an entry may have -> its parts
    "latent": {"rank", "rope_dim"},
    "state": {"heads", "d_k", "d_v", "channels", "convolution"},
    "chosen": {"keys", "heads", "d_k", "pool", "gathers"},
    "sparse": {"window", "globals", "random", "block"},
    "full": {"kv_heads", "d_k", "d_v"},
    "positions": {"kind", "max_positions", "base", "rotated", "stretched", "rule", "window_base"},
    "variants": set(STEPS),
    "other": set(MAP),  # what a step has become, not built in this book
}
PARTED = ("window", "latent", "state", "chosen", "pool", "sparse", "full")
POSITIONS = {"learned", "rope", "alibi", "none"}


def models_with_card():
    """Return the entries that have a card: those that say what their layers are, by year."""
    entries = facts("models")["models"] + facts("models")["further"]
    return sorted((m for m in entries if "pattern" in m), key=lambda model: model["year"])


def faults(model) -> list[str]:
    """Say what is wrong in an entry of the models, a sentence each."""
    whole = ALWAYS if set(model.get("pattern", ())) == {"state"} else (*ALWAYS, *HEADS)
    told = [f"no {field}" for field in (*whole, *WORDS) if field not in model]
    if told:
        return told
    told += [f"unknown {each}" for each in set(model) - {*whole, *WORDS, *MAY, *FIELDS}]
    named = (*FIELDS, "read")
    unnamed = [field for field in named if not isinstance(model.get(field, {}), dict)]
    if unnamed:
        return [f"{field} is {model[field]!r}; expected its parts by name" for field in unnamed]
    for field, parts in FIELDS.items():
        told += [f"unknown {field}.{part}" for part in set(model.get(field, ())) - parts]
    told += [f"{name} is no whole number" for name in whole if type(model[name]) is not int]
    if "heads" in model and model["heads_times_d_k"] != model["heads"] * model["d_k"]:
        told.append("heads_times_d_k is not what its heads give")
    if "heads" in model and model["heads"] % model["kv_heads"]:
        told.append("kv_heads do not share its heads evenly")
    if model.get("parameters") != eval(model.get("parameters_sum", "None")):
        told.append("parameters are not their sum")
    sources = sources_of(model)
    told += [f"{each} names no commit" for each in sources if not re.fullmatch(SOURCE, each)]
    return told + inconsistencies(model) + misread(model)


def sources_of(model) -> dict[str, list[str]]:
    """Return where an entry was read, {address: its fields}; the main source comes first."""
    found = {"source": [], **model.get("read", {})}
    return {model["source"]: found.pop("source"), **found}


def misread(model) -> list[str]:
    """Say which fields of an entry have no source, more than one, or are none of its own."""
    fields = [field for field in model if field in {*ALWAYS, *HEADS, *MAY, *FIELDS} - {*UNREAD}]
    parts = {field: parts_of(model, field) for field in fields}
    own = [part for field in fields for part in parts[field]]
    named = [part for listed in sources_of(model).values() for part in listed]
    found = [part for name in named for part in parts.get(name, [name])]
    told = [f"{part} has no source" for part in own if part not in found]
    told += [f"{part} has two sources" for part in own if found.count(part) > 1]
    return told + [f"{part} has a source and no value" for part in found if part not in own]


def parts_of(model, field) -> list[str]:
    """Return a field, or the parts that it has, as `read` names them."""
    value = model[field]
    return [f"{field}.{part}" for part in value] if isinstance(value, dict) else [field]


def inconsistencies(model) -> list[str]:
    """Say what does not fit between the layers of an entry, its positions and its years."""
    told = []
    kinds = {*model.get("pattern", ()), *model.get("first", ()), *model.get("last", ())}
    if kinds:
        try:
            cache_entries(model)
        except (TypeError, ValueError) as error:
            told.append(str(error))
    used = {field for kind in kinds & set(LAYERS) for field in LAYERS[kind]} | kinds
    told += [f"{field} without a layer" for field in PARTED if field in model and field not in used]
    positions = model.get("positions", {"kind": "none"})
    if positions["kind"] not in POSITIONS:
        told.append(f"unknown positions {positions['kind']}")
    if ("stretched" in positions) != ("rule" in positions):
        told.append("stretched goes with its rule")
    chosen = model.get("chosen") or {}
    if "pool" in chosen and (chosen.get("gathers", 0) % chosen["pool"] or "gathers" not in chosen):
        told.append("its pools gather no whole number of strides")
    if positions.get("rotated", 0) > model.get("d_k", 0):
        told.append("more is rotated than a key has")
    named = re.findall(r"arXiv:(\d\d)\d\d\.", f"{model['source']} {model.get('note')}")
    if {2000 + int(year) for year in named} - {model["year"]}:
        told.append("its year is not its paper's")
    return told


def writes(model) -> bool:
    """Whether a model is causal, so that it caches something while it generates."""
    return any(cache_entries(model))


def window_words(model) -> str:
    """Say how long windows are, and in how many of the layers one stands."""
    kinds = layer_kinds(model)
    count = sum("window" in LAYERS[kind] for kind in kinds)
    layers = "every layer" if count == len(kinds) else f"{count} of {len(kinds)} layers"
    return f"{model['window']:,} keys, in {layers}"


def max_context_length(model):
    """Return the longest text that a model's sources name; None where they name none."""
    positions = model.get("positions", {})
    stretched = positions.get("stretched", 0) * positions.get("max_positions", 0)
    return model.get("context") or stretched or None


def display_context_length(model) -> int:
    """Return the length at which a model is looked at: its longest text, or else a long one."""
    return max_context_length(model) or LONG


def variants_of(model) -> dict[str, str]:
    """Return the variants that a model is made of, {row of the table: a few words}."""
    found = {}
    if "latent" in model:
        latent = model["latent"]
        found["Latent (MLA)"] = f"{latent['rank']} + {latent['rope_dim']} numbers per token"
    elif model.get("kv_heads", 0) < model.get("heads", 0):
        shared = f"{model['kv_heads']} KV head{'s' * (model['kv_heads'] > 1)} for {model['heads']}"
        own = ", whose key is its value" if model.get("keys_are_values") else ""
        found["Shared keys (GQA, MQA)"] = shared + own
    if "shared" in model:
        found["Keys of an earlier layer"] = f"in the last {model['shared']} layers"
    if "window" in model:
        found["Window"] = window_words(model)
    if "sparse" in model:
        found["Sparse patterns"] = sparse_pattern_text(model["sparse"])
    if "chosen" in model:
        found["Top-k attention"] = choice_words(model["chosen"])
    found |= position_variants(model) | model.get("variants", {})
    return dict(sorted(found.items(), key=lambda item: list(STEPS).index(item[0])))


def choice_words(chosen) -> str:
    """Say how many keys are chosen, of what, and by how many short heads."""
    what = "keys"
    if "pool" in chosen:
        what = f"pools of {chosen['gathers']} tokens at stride {chosen['pool']}"
    return f"{chosen['keys']:,} {what}, by {chosen['heads']} heads of {chosen['d_k']}"


def position_variants(model) -> dict[str, str]:
    """Return what a model does with positions: nothing here where it adds them in embed."""
    positions = model["positions"]
    if positions["kind"] == "none":
        return {"No positions": "nothing is added, nothing rotated"}
    if positions["kind"] == "alibi":
        return {"ALiBi": "slopes"}
    if positions["kind"] != "rope":
        return {}
    words = []
    if "base" in positions:
        words.append(f"base {positions['base']:,}")
    if "rotated" in positions:
        width = model.get("full", model)["d_k"]
        words.append(f"{positions['rotated']} of {width} rotated")
    if "stretched" in positions:
        words.append(f"stretched {positions['stretched']} times ({positions['rule']})")
    if "window_base" in positions:
        near = layer_kinds(model).count("window")
        words.append(f"base {positions['window_base']:,} in the {near} layers with only a window")
    return {"RoPE": ", ".join(words) or "the base is not given"}


def sparse_pattern_text(sparse) -> str:
    """Say what the pattern of an encoder is made of."""
    unit = "keys" if sparse["block"] == 1 else f"blocks of {sparse['block']}"
    words = f"a window of {sparse['window']} {unit}, {sparse['globals']} global"
    return words + (f", {sparse['random']} at random" if sparse["random"] else "")


def steps(model) -> list[str]:
    """Return the steps of the map that a model changes, in the order of the map.

    Whoever adds no learned positions changes embed, whatever stands in for them later.
    """
    changed = {step for row in variants_of(model) for step in STEPS[row]} | {
        *model.get("other", {})
    }
    changed |= {"embed"} if model["positions"]["kind"] != "learned" else set()
    changed |= {"score"} if "scale" in model else set()
    return [step for step in MAP if step in changed]


def scaled_for_drawing(model) -> dict:
    """Return a model with the windows, pools and choices of a drawn mask."""
    given = {field: size for field, size in SMALL.items() if field in model}
    shrunk = {
        field: model[field] | size if isinstance(size, dict) else size
        for field, size in given.items()
    }
    if "pool" in model.get("chosen", {}):
        shrunk["chosen"] |= {"keys": POOLS_CHOSEN}
    if model.get("sparse", {}).get("block", 1) > 1:  # a cell is a block
        shrunk["sparse"] = model["sparse"] | {"block": 1}
    return model | shrunk


def masks_of(model, kind, T=TOKENS):
    """Return which tokens each of T queries scores in a layer of a kind, and what it sees through.

    Where keys are chosen, random scores choose them. A pool is seen once it is full, a
    state holds every earlier token: neither scores a token itself.

    Returns
    -------
    scored, through : (T, T) booleans
    """
    rng, causal = np.random.default_rng(17), causal_mask(T)
    nothing = np.zeros_like(causal)
    if kind == "both":
        return ~nothing, nothing
    if kind == "sparse":
        return _sparse_mask(model["sparse"], T, rng), nothing
    if kind == "chosen":
        return top_k_mask(rng.random((T, T)), model["chosen"]["keys"], mask=causal), nothing
    if kind == "state":
        return nothing, causal
    if "window" not in LAYERS[kind]:
        return causal, nothing
    pooled = nothing if kind == "window" else _pooled_mask(model, kind, causal, rng)
    return window_mask(T, T, model["window"]), pooled


def _pooled_mask(model, kind, causal, rng):
    """Return the tokens of the pools that each query scores: those whose last token is there.

    A pool may gather the tokens of strides before its own too.
    """
    size = model["chosen"]["pool"] if "chosen" in kind else model["pool"]
    pools = causal[:, size - 1 :: size]  # (T, T // size)
    if "chosen" in kind:
        pools = top_k_mask(rng.random(pools.shape), model["chosen"]["keys"], mask=pools)
    seen = pools.copy()
    for back in range(1, model["chosen"]["gathers"] // size if "chosen" in kind else 1):
        seen[:, :-back] |= pools[:, back:]
    return np.repeat(seen, size, axis=1)  # T is a multiple of the size


def _sparse_mask(sparse, T, rng):
    """Return a window both ways, global tokens at both ends, and keys at random among the rest."""
    half = sparse["window"] // 2 + 1
    ends = [*range(T)][-(sparse["globals"] // 2) :] if sparse["globals"] > 1 else []
    firsts = range(sparse["globals"] - len(ends))
    near = window_mask(T, T, half) | window_mask(T, T, half).T
    rest = near | global_mask(T, [*firsts, *ends])
    if not sparse["random"]:
        return rest
    return rest | top_k_mask(rng.random((T, T)), sparse["random"], mask=~rest)


def keys_of(model, kind, T):
    """Count the keys that each of T queries scores in a layer of a kind; a pool is one key."""
    places = np.arange(1, T + 1)
    if kind == "both":
        return np.full(T, T)
    if kind == "sparse":
        block = model["sparse"]["block"]
        return np.repeat(_sparse_keys(model["sparse"], T // block) * block, block)
    if kind == "chosen":
        return np.minimum(places, model["chosen"]["keys"])
    if "window" not in LAYERS[kind]:
        return places
    near = np.minimum(places, model["window"])
    if kind == "window":
        return near
    if kind == "pool":
        return near + places // model["pool"]
    return near + np.minimum(places // model["chosen"]["pool"], model["chosen"]["keys"])


def _sparse_keys(sparse, T):
    """Count the blocks that each of T blocks looks at."""
    half, places = sparse["window"] // 2, np.arange(T)
    last = sparse["globals"] // 2
    first = sparse["globals"] - last
    low, high = np.maximum(places - half, 0), np.minimum(places + half, T - 1)
    beside = np.minimum(low, first) + np.minimum(T - 1 - high, last)  # global ones not in it
    counted = np.minimum(high - low + 1 + beside + sparse["random"], T)
    return np.where((places < first) | (places >= T - last), T, counted)


def share(model, kind, T) -> float:
    """Return the scores that a layer makes on T tokens, of all that it could make."""
    both_ways = kind in ("both", "sparse")
    return keys_of(model, kind, T).sum() / (T * T if both_ways else T * (T + 1) / 2)


def receptive_field_size(model, kinds):
    """Count the tokens that can move a row through layers of these kinds; None where all can.

    L windows of w reach L(w − 1) + 1 tokens. A full layer reaches all, and so does one that
    chooses, since its choice may fall on any. Two sparse layers do, through a global token.
    """
    if set(kinds) == {"window"}:
        return len(kinds) * (model["window"] - 1) + 1
    if kinds == ["sparse"]:
        return int(keys_of(model, "sparse", model["context"])[model["context"] // 2])
    return None
