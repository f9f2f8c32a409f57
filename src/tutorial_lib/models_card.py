"""Read a model's own configuration: python -m tutorial_lib.models_card config.json.

The reader turns a published `config.json` into an entry with the fields of `facts("models")`, which
the functions of `counting` count. Where a configuration has a field that has to do with attention
and that the reader does not know, it refuses and names the field. The book's cards are made so too.
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.counting import (
    cache_entries,
    layer_kind_counts,
    layer_kinds,
    model_cache_bytes,
)
from tutorial_lib.records import facts
from tutorial_lib.variants.patterns import window_mask

NAMES = {  # field of an entry -> its names in published configurations
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "d_model": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "d_k": ("head_dim", "kv_channels"),
    "d_v": ("v_head_dim",),
    "window": ("sliding_window", "attention_chunk_size", "sliding_window_size"),
    "shared": ("num_kv_shared_layers",),
    "context": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
}
KINDS = {  # entry of layer_types -> kind of layer, as counting.LAYERS names it
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "state",
    "mamba": "state",
}
STATES = (  # field of a state -> its names in the two families that transformers has
    {
        "heads": "linear_num_value_heads",
        "d_k": "linear_key_head_dim",
        "d_v": "linear_value_head_dim",
        "convolution": "linear_conv_kernel_dim",
    },
    {
        "heads": "mamba_n_heads",
        "d_k": "mamba_d_state",
        "d_v": "mamba_d_head",
        "convolution": "mamba_d_conv",
    },
)
PERIOD = {"cohere2": 4, "gemma2": 2, "gemma3_text": 6, "vaultgemma": 2, "llama4_text": 4}
NO_DECODERS = re.compile("MaskedLM|Classification|QuestionAnswering|PreTraining|Embedding")
GENERATES = re.compile("CausalLM|LMHead|ConditionalGeneration")
EVERY_LAYER = ("mistral", "mixtral", "phi3", "phimoe", "starcoder2", "moshi")  # has the window
BOTH_WAYS = ("is_encoder_decoder", "type_vocab_size")
TOLD = (1024, 8192, 32_768, 131_072)  # tokens
OTHERWISE = {  # model type -> what its class does that no field says
    "bert-generation": "it reads both ways unless it is told to be a decoder",
    "mimo_v2_flash": "its layers with a window have twice as many KV heads",
}
TOUCHES_ATTENTION = re.compile(
    "attn|attention|head|kv|key|value|window|cache|chunk|state|ssm|mamba|conv|lora|layer_types"
    "|block_type|index|sink|compress|linear_|recurrent|hybrid|local|global|multi_query|sparse|per_layer_c"
)
READ = {name for names in NAMES.values() for name in names}
READ |= {name for names in STATES for name in names.values()}
PERIODS = ("sliding_window_pattern", "full_attention_interval", "global_attn_every_n_layers")
SHOWN = ("num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window", PERIODS[0])
READ |= {"global_head_dim", "num_global_key_value_heads", "per_layer_config", "attn_layer_indices"}
READ |= {"layer_types", "use_sliding_window", "max_window_layers", *PERIODS}
READ |= {"index_topk", "index_n_heads", "index_head_dim"}
READ |= {"kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "qk_head_dim"}
READ |= {"linear_num_key_heads", "mamba_n_groups", "multi_query", "new_decoder_architecture"}
CHANGES_NO_CACHE = re.compile(  # names that touch attention, but neither its mask nor its cache
    "(attention|attn)_(bias|dropout|pdrop|multiplier|scale|softmax|logit|out|in|implementation"
    "|temperature|probs|value_scale|output)|output_(attentions|hidden_states)|use_cache"
    "|use_qkv_bias|qkv_bias|clip_qkv|scale_att|reorder_and|query_pre|lm_head|key_multiplier"
    "|_local_experts|mlp|moe|chunk_size_feed|_sliding_window_pattern|decoder_sparse|first_k"
    "|(mamba|linear)_(expand|chunk|proj|conv_bias|norm|rms|a_|dt_|hidden|allow)|ssm_.*multiplier"
    "|num_ln|parallel_attn|layer_idx|rope|rotary|index_first|initial|cross_attention_hidden|cache_"
    "|keys_to_ignore|token_index|experts?_sink|use_mamba|head_bias|attention_norm"
)


class ConfigError(ValueError):
    """A configuration that this reader does not understand; names the field."""


def read_config(config):
    """Return an entry with the fields of `facts("models")` from a published configuration.

    Parameters
    ----------
    config : dict, a `config.json`; of one that nests them, the fields of `text_config` are read

    Returns
    -------
    entry : dict that `cache_entries` counts; `assumed` lists the fields that the file leaves out

    Raises
    ------
    ConfigError : no decoder, a field that is missing, or one that touches attention and is unknown
    """
    if not isinstance(config, dict):
        raise ConfigError(f"The configuration is a {type(config).__name__}; expected an object.")
    outer, config = config, config.get("text_config") or config
    kind = config.get("model_type", "the model")
    known = {entry["name"]: entry["fields"] for entry in facts("config_defaults")["types"]}
    filled = known.get(kind, {}) | ({PERIODS[0]: PERIOD[kind]} if kind in PERIOD else {})
    given = {name: v for name, v in (filled | config).items() if v is not None}
    _require_decoder(outer | given, kind, kind in known)
    _require_known_fields(given, kind)
    _require_one_meaning(config, kind)
    entry = {"name": kind, "known": kind in known}
    entry["assumed"] = {
        name: v for name, v in filled.items() if name not in config and name in SHOWN
    }
    for field in ("layers", "d_model", "heads"):
        entry[field] = _require_field(given, field, kind)
    _read_heads(given, entry)
    entry["pattern"] = _read_kinds(given, entry)
    entry |= _read_layers(given, entry)
    try:
        cache_entries(entry)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The fields of {kind} do not fit together: {error}") from None
    return entry


def fill_in(text):
    """Return the text of `facts("models")` with the numbers that its configurations give."""
    return re.sub(r'\{"name".*"config":.*\}', _fill, text)  # an entry is a line


def _fill(found):
    model = json.loads(found[0])
    made = read_config(model["config"])
    made |= _read_rope(model["config"], made["d_k"])
    if "q_rank" in made:
        made["other"] = {"project": f"low-rank queries, of rank {made.pop('q_rank'):,}"}
    made = {field: value for field, value in made.items() if field not in ("name", "known")}
    own = [field for field in made if field not in ("assumed", "heads_times_d_k")]
    own = dict.fromkeys(own + model["read"].get("source", []))
    filled = {**model, **made, "read": {**model["read"], "source": [*own]}}
    return json.dumps(filled, ensure_ascii=False)


def _read_rope(config, width):
    """Return the rotation of a key of a width, where the file gives its base."""
    rope = {"rope_theta": config.get("rope_theta"), **(config.get("rope_scaling") or {})}
    rope |= config.get("rope_parameters", {})
    if not rope["rope_theta"]:
        return {}
    rotated = config.get("qk_rope_head_dim", int(config.get("partial_rotary_factor", 1) * width))
    found = {"kind": "rope", "base": int(rope["rope_theta"]), "rotated": rotated}
    if "factor" in rope:
        rule = {"yarn": "YaRN"}[rope.get("type", rope.get("rope_type"))]
        length = rope["original_max_position_embeddings"]
        found |= {"stretched": int(rope["factor"]), "max_positions": length, "rule": rule}
    return {"positions": found}


def _shortest_period(kinds):
    """Return the fewest layers that give all when they are repeated."""
    periods = (kinds[:n] for n in range(1, len(kinds) + 1))
    return next(few for few in periods if all(k == few[i % len(few)] for i, k in enumerate(kinds)))


def _require_decoder(given, kind, known):
    """Require a model that generates; the file of a type that no test has counted has to say so."""
    if kind in OTHERWISE:
        raise ConfigError(f"{kind} cannot be counted from its fields: {OTHERWISE[kind]}.")
    names = given.get("architectures") or ()
    for name in [name for name in names if NO_DECODERS.search(name)]:
        raise ConfigError(f"{kind} is published as {name}; this reader knows decoders only.")
    if not known and not any(map(GENERATES.search, names)):
        raise ConfigError(
            f"No test has counted {kind}, and its architectures are {[*names]}; expected one that "
            f"generates, such as LlamaForCausalLM. Give the whole file, or another model's."
        )
    for name in BOTH_WAYS:
        if given.get(name):
            raise ConfigError(f"{kind} has {name}={given[name]!r}; only decoders are read.")


def _require_known_fields(given, kind):
    for name, value in given.items():
        harmless = value is False or value == [] or CHANGES_NO_CACHE.search(name)
        if TOUCHES_ATTENTION.search(name) and name not in READ and not harmless:
            raise ConfigError(
                f"{kind} has {name}={value!r}, which this reader does not know. It may change what "
                f"the model caches, so nothing is counted. If you know that it does not, take it "
                f"out."
            )


def _require_one_meaning(config, kind):
    """Require that two names of one thing agree, and that heads share KV heads evenly."""
    for names in NAMES.values():
        said = {name: config[name] for name in names if config.get(name) is not None}
        if len(set(map(str, said.values()))) > 1:
            pairs = ", ".join(f"{name}={value!r}" for name, value in said.items())
            raise ConfigError(f"{kind} has {pairs}, two names of one thing. Keep the right one.")


def _read_field(given, field):
    return next((given[name] for name in NAMES[field] if name in given), None)


def _require_field(given, field, kind):
    value = _read_field(given, field)
    if type(value) is not int or value < 1:
        raise ConfigError(
            f"{kind} has {'no' if value is None else f'{value!r} as'} {NAMES[field][0]}; expected "
            f"a whole number of 1 or more, under one of the names {', '.join(NAMES[field])}. "
            f"{'Add' if value is None else 'Correct'} it."
        )
    return value


def _require_name(given, name, kind):
    if type(given.get(name)) is not int:
        raise ConfigError(
            f"{kind} has {name}={given.get(name)!r}; expected a whole number. Add it."
        )
    return given[name]


def _read_heads(given, entry):
    """Set the numbers and widths of the heads, and say which of them the file leaves out."""
    if given.get("multi_query") and not given.get("new_decoder_architecture"):
        entry["kv_heads"] = 1
    else:
        entry["kv_heads"] = _read_field(given, "kv_heads") or entry["heads"]
        if _read_field(given, "kv_heads") is None:
            entry["assumed"]["num_key_value_heads"] = entry["heads"]
    if "q_lora_rank" in given and "kv_lora_rank" in given:
        entry["q_rank"] = given["q_lora_rank"]
    if "kv_lora_rank" in given:
        parts = ("qk_nope_head_dim", "qk_rope_head_dim")
        entry["d_k"] = sum(_require_name(given, name, entry["name"]) for name in parts)
    else:
        entry["d_k"] = _read_field(given, "d_k") or entry["d_model"] // entry["heads"]
        if _read_field(given, "d_k") is None:
            entry["assumed"]["head_dim"] = entry["d_k"]
    entry["d_v"] = _read_field(given, "d_v") or entry["d_k"]
    if type(entry["kv_heads"]) is int and entry["heads"] % entry["kv_heads"]:
        raise ConfigError(
            f"{entry['name']} has {entry['heads']} heads and {entry['kv_heads']} KV heads; "
            f"expected a number of KV heads that divides the other. Correct num_key_value_heads."
        )
    entry["heads_times_d_k"] = entry["heads"] * entry["d_k"]


def _read_kinds(given, entry):
    full = "latent" if "kv_lora_rank" in given else "full"
    full = "chosen" if "index_topk" in given and full == "latent" else full
    if "layer_types" in given:
        unknown = sorted(set(given["layer_types"]) - set(KINDS))
        if unknown:
            raise ConfigError(
                f"{entry['name']} has layer_types with {', '.join(unknown)}; this reader knows "
                f"{', '.join(KINDS)}."
            )
        kinds = [full if KINDS[k] == "full" else KINDS[k] for k in given["layer_types"]]
        if len(kinds) != entry["layers"]:
            raise ConfigError(
                f"{entry['name']} has {entry['layers']} layers and layer_types for {len(kinds)}."
            )
        return kinds
    if "attn_layer_indices" in given:
        attends = given["attn_layer_indices"]
        return [full if index in attends else "state" for index in range(entry["layers"])]
    if states := [name for names in STATES for name in names.values() if name in given]:
        if period := given.get("full_attention_interval"):
            return ["state" if (index + 1) % period else full for index in range(entry["layers"])]
        raise _unplaced(entry, states[0], given, "linear_attention")
    windowed = _windowed_layers(given, entry)
    return ["window" if index in windowed else full for index in range(entry["layers"])]


def _windowed_layers(given, entry):
    """Return the indices of the layers with a window, where no list of layers says it."""
    layers = range(entry["layers"])
    if not _read_field(given, "window") or not given.get("use_sliding_window", True):
        return ()
    if "use_sliding_window" in given:
        return layers[given.get("max_window_layers", 0) :]
    if "sliding_window_pattern" in given:
        period = given["sliding_window_pattern"]
        period = len(period) if isinstance(period, str) else period
        return [index for index in layers if (index + 1) % period]
    if entry["name"] in EVERY_LAYER:
        return layers
    raise _unplaced(entry, "sliding_window", given, "sliding_attention")


def _unplaced(entry, name, given, kind):
    return ConfigError(
        f"{entry['name']} has {name}={given.get(name)!r} and does not say which layers have it. "
        f"Add layer_types, a list with {kind} or full_attention for each layer."
    )


def _read_layers(given, entry):
    """Return what the kinds of layers need beside heads: a window, a latent, a state."""
    kinds, found = set(entry["pattern"]), {"pattern": _shortest_period(entry["pattern"])}
    if "window" in kinds:
        found["window"] = _require_field(given, "window", entry["name"])
    if kinds & {"latent", "chosen"}:
        found["latent"] = {"rank": given["kv_lora_rank"], "rope_dim": given["qk_rope_head_dim"]}
    if "chosen" in kinds:
        names = {"keys": "index_topk", "heads": "index_n_heads", "d_k": "index_head_dim"}
        found["chosen"] = {
            field: _require_name(given, name, entry["name"]) for field, name in names.items()
        }
    if "state" in kinds:
        found["state"] = _read_state(given, entry)
    if full := _read_full_heads(given, entry):
        found["full"] = full
    for field in ("shared", "context"):
        if value := _read_field(given, field):
            found[field] = value
    return found


def _read_full_heads(given, entry):
    """Return the heads of full layers where they differ from the others'."""
    d_k, kv_heads = given.get("global_head_dim"), given.get("num_global_key_value_heads")
    if layers := given.get("per_layer_config"):
        full = {index for index, kind in enumerate(entry["pattern"]) if kind == "full"}
        first, *others = layers.values()
        understood = set(first) <= {"head_dim", "num_key_value_heads"}
        if set(map(int, layers)) != full or any(o != first for o in others) or not understood:
            raise ConfigError(
                f"{entry['name']} has per_layer_config={layers!r}; this reader knows one with "
                f"head_dim or num_key_value_heads, the same for all full layers."
            )
        d_k, kv_heads = first.get("head_dim"), first.get("num_key_value_heads")
    if d_k is None and kv_heads is None:
        return None
    d_k = d_k or entry["d_k"]
    return {"kv_heads": kv_heads or entry["kv_heads"], "d_k": d_k, "d_v": d_k}


def _read_state(given, entry):
    for names in STATES:
        if all(name in given for name in names.values()):
            state = {field: given[name] for field, name in names.items()}
            key_heads = given.get("linear_num_key_heads") or given.get("mamba_n_groups", 1)
            values = state["heads"] * state["d_v"]
            return state | {"channels": 2 * key_heads * state["d_k"] + values}
    raise ConfigError(
        f"{entry['name']} has layers with a state, of which fields are missing; expected "
        f"{', '.join(STATES[0].values())}, or {', '.join(STATES[1].values())}."
    )


def count_attention_parameters(entry):
    """Count the entries of W_Q, W_K, W_V and W_O in all layers with attention.

    Biases, norms, gates and layers with a state are left out. A latent counts its down- and
    up-projections, `q_rank` that of the queries where the configuration has one.
    """
    heads, d_model = entry["heads"], entry["d_model"]
    total = 0
    for kind, count in layer_kind_counts(entry).items():
        sizes = entry | (entry.get("full", {}) if kind == "full" else {})
        d_k, d_v, kv_heads = sizes["d_k"], sizes["d_v"], sizes["kv_heads"]
        if kind in ("latent", "chosen"):
            rank, rope_dim = entry["latent"]["rank"], entry["latent"]["rope_dim"]
            keys = d_model * (rank + rope_dim) + rank * heads * (d_k - rope_dim + d_v)
        else:
            keys = d_model * kv_heads * (d_k + d_v)
        q_rank = entry.get("q_rank")
        queries = q_rank * (d_model + heads * d_k) if q_rank else d_model * heads * d_k
        total += count * (queries + keys + heads * d_v * d_model) * (kind != "state")
    return total


def describe_model(entry):
    """Return a card of an entry as text: layers, heads, masks, and what was assumed."""
    lines = [
        f"{entry['name']}: {entry['layers']} layers, d_model {entry['d_model']:,}, "
        f"{entry['heads']} heads of {entry['d_k']}, {_cached_heads(entry)}"
    ]
    for kind, count in layer_kind_counts(entry).items():
        layers = [index for index, one in enumerate(layer_kinds(entry)) if one == kind]
        words = f"{count} × {_kind_in_words(entry, kind)}, {_layers_in_words(layers)}"
        lines += ["", words, *_draw_mask(kind)]
    parameters = count_attention_parameters(entry)
    lines += ["", f"W_Q, W_K, W_V, W_O of all layers: {parameters:,} parameters, without biases"]
    if "shared" in entry:
        lines.append(f"The last {entry['shared']} layers use the keys and values of earlier ones.")
    if entry["assumed"]:
        filled = ", ".join(f"{name} = {value}" for name, value in entry["assumed"].items())
        by = "transformers fills in" if entry["known"] else "usually"
        lines.append(f"Not in the file; {by}: {filled}")
    if not entry["known"]:
        lines.append("No test has counted this model type: its fields are taken by their names.")
    return "\n".join(lines)


def _layers_in_words(layers):
    """Return the indices of layers, counted from 0: all, a range, or the first few."""
    if len(layers) < 4:
        return f"layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"
    if layers == [*range(layers[0], layers[-1] + 1)]:
        return f"layers {layers[0]} to {layers[-1]}"
    return f"layers {', '.join(map(str, layers[:6]))}, … {layers[-1]}"


def _cached_heads(entry):
    if latent := entry.get("latent"):
        return f"a latent of {latent['rank']} + {latent['rope_dim']} numbers per token"
    return f"{entry['kv_heads']} KV head{'s' * (entry['kv_heads'] > 1)}"


def _kind_in_words(entry, kind):
    return {
        "full": "full attention",
        "window": f"a window of {entry.get('window', 0):,} (drawn as 3), the token itself counted",
        "latent": "full attention, with a cached latent",
        "chosen": f"the {entry.get('chosen', {}).get('keys', 0):,} best keys, with a cached latent",
        "state": "a state, no mask",
    }[kind]


def _draw_mask(kind, T=8):
    """Return the mask of a kind of layer as lines of text; a window is drawn as 3."""
    if kind in ("state", "chosen"):
        return []
    mask = window_mask(T, T, 3) if kind == "window" else causal_mask(T)
    return ["    " + " ".join("■" if seen else "·" for seen in row) for row in mask]


def cache_table(entries, tokens):
    """Return the bytes of the caches as text, a row for each length and a column for each model."""
    columns = [["tokens", *(f"{n:,}" for n in tokens)]]
    for number, entry in enumerate(entries, 1):
        for precision, itemsize in (("16 bits", 2), ("8 bits", 1)):
            sizes = (f"{model_cache_bytes(entry, n, itemsize=itemsize):,}" for n in tokens)
            columns.append([f"{number} {entry['name']}, {precision}", *sizes])
    aligned = [[cell.rjust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join(map("  ".join, zip(*aligned, strict=True)))


def plot_cache(entries):
    """Return the figure of the bytes of the caches against the tokens, at 16 bits per number."""
    from tutorial_lib.figures import line_chart

    tokens = np.array([2**power for power in range(8, 21)])
    curves = {
        f"{i} {e['name']}": np.array([model_cache_bytes(e, n) / 1e9 for n in tokens.tolist()])
        for i, e in enumerate(entries, 1)
    }
    return line_chart(
        tokens,
        curves,
        labels=("tokens", "GB of cache"),
        caption="Bytes of the cache of one sequence, at 16 bits per number. A line that turns flat "
        "has only windows or states left to fill.",
        log=("x", "y"),
    )


def read_text(text):
    """Return the entry of a configuration that is given as the text of its file."""
    try:
        return read_config(json.loads(text))
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"This is no JSON: {error}. Give the file as it was published, from its first brace to "
            f"the last."
        ) from None


def print_cards(entries, tokens=TOLD):
    """Print the cards of some entries, and the bytes of their caches side by side."""
    print(*map(describe_model, entries), sep="\n\n")
    print("\nBytes of the cache of one sequence", cache_table(entries, tokens), sep="\n")


def show_cards(first, second=""):
    """Print the cards of one or two configurations, and return the figure of their caches."""
    entries = [read_text(text) for text in (first, second) if text.strip()]
    print_cards(entries)
    return plot_cache(entries)


def _whole(text):
    return int(text.replace(",", ""))


def main(words=None):
    """Print the card of a configuration, and the bytes of its cache beside others."""
    parser = argparse.ArgumentParser(
        prog="python -m tutorial_lib.models_card", description=main.__doc__
    )
    parser.add_argument("config", type=Path, nargs="+", help="one config.json or more")
    parser.add_argument("--tokens", type=_whole, nargs="+", default=TOLD, help="lengths of a text")
    given = parser.parse_args(words)
    try:
        entries = [read_text(file.read_text("utf-8")) for file in given.config]
        print_cards(entries, given.tokens)
    except (OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
