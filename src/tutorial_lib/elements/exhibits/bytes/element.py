"""The byte calculator: the KV cache of a model's users, beside its weights."""

import math
from html import escape

from tutorial_lib.counting import cache_entries, layer_kind_counts, model_cache_bytes
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    button_row,
    exhibit,
    fold_numbers,
    slider,
    text_field,
)
from tutorial_lib.elements.tables import TABLE, headings
from tutorial_lib.records import facts

_QUESTION = (
    "One user generates with Llama 2 7B. From which length on is the cache larger than the weights?"
)
_HOW_TO = "Choose a model and move a slider, or type a number: 32k stands for 32,768."
_LEGEND = (
    "One step up is a thousand times as many bytes, one step to the right sixteen times as many "
    "tokens. A kB is 1,000 bytes."
)
_ABSENT = (
    "BERT is not here: it is bidirectional, so a new token changes the keys of all others from the "
    "second layer on, and these cannot be cached. Some models are released in fewer bits than "
    "16, which the lists above can set: gpt-oss-120b mostly in 4, DeepSeek-V3 in 8. "
    "A state is counted once per sequence; libraries often store it in 32 bits."
)
_MY_OWN = "my own"
_BITS = (32, 16, 8, 4)
_FIRST = {"model": "Llama 2 7B", "tokens": 4096, "users": 1, "bits": 16, "weights": 16}
_COUNTS = {"tokens": 20, "users": 10}  # the ends of the sliders, as powers of 2
_LEAST, _MOST = 3, 16  # powers of 10 at the lower and the upper edge of the picture
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_OWN = {  # key of a field -> its name, what it begins with, the least and the most
    "layers": ("layers", 32, 1, 1000),
    "heads": ("KV heads", 32, 1, 1000),
    "d_k": ("width of a key", 128, 1, 10_000),
    "d_v": ("width of a value", 128, 1, 10_000),
    "billions": ("billions of parameters", 7, 0.001, 100_000),
}


def byte_calculator():
    """Show the bytes of a cache beside the bytes of the weights, for published models or one's own.

    Introduced in chapter 14. The reader chooses the model, the tokens, the users and the bits per
    entry.
    """
    return draw_calculator()


def draw_calculator(**state):
    """Draw the calculator in a state, whose parts are called as a link calls them."""
    known = [model for model in facts("models")["models"] if "pattern" in model]
    models = [model for model in known if any(cache_entries(model))]
    state = _FIRST | {key: begins for key, (_, begins, *_) in _OWN.items()} | state
    model = next((one for one in models if one["name"] == state["model"]), _own_model(state))
    parts = [
        _controls_html(state, [model["name"] for model in models]),
        _plot_html(state, model),
        _facts_html(state, model),
        button_row(["Show me", "Reset"]),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _table(models),
    ]
    lines = "\n".join(f"   {model['name']}: {_cache_text(model)}" for model in models)
    text = f"Bytes of a cache, 16 bits per entry\n{lines}"
    return exhibit("bytes", "Byte calculator", _QUESTION, _HOW_TO, *parts, text=text)


def _own_model(state):
    """Return a model of the reader's own sizes, as the facts write one."""
    parameters = 1e9 * state["billions"]
    sizes = {key: state[key] for key in ("layers", "d_k", "d_v")}
    return {**sizes, "kv_heads": state["heads"], "pattern": ["full"], "parameters": parameters}


def _controls_html(state, model_names):
    """Draw the sliders, fields and lists that the script serves; without one they stay hidden."""
    counts = [
        _row(key, _slider(key, power, state[key]), _field(key, key, state[key], 1, 2**power))
        for key, power in _COUNTS.items()
    ]
    rows = [
        _row("model", _select("model", "model", [*model_names, _MY_OWN], state)),
        *counts,
        _row("bits in the cache", _select("bits", "bits per cached entry", _BITS, state)),
        _row("bits in the weights", _select("weights", "bits per weight", _BITS, state)),
    ]
    own = [
        _row(name, _field(key, name, state[key], *ends)) for key, (name, _, *ends) in _OWN.items()
    ]
    hidden = " hidden" * (state["model"] != _MY_OWN)
    grid = f'<div class="tl-given">{"".join(rows)}</div>'
    return (
        f'<div class="tl-lists" {HIDDEN}>{grid}\n'
        f'<div class="tl-given" data-own{hidden}>{"".join(own)}</div></div>'
    )


def _row(name, *controls):
    cells = "".join(f"<span>{control}</span>" for control in controls)
    return f"<div><span>{name}</span>{cells}</div>"


def _select(state_key, label, options, state):
    items = "".join(f"<option{' selected' * (o == state[state_key])}>{o}</option>" for o in options)
    return f'<select data-key="{state_key}" aria-label="{label}" {KEYS}>{items}</select>'


def _slider(state_key, max_power, value):
    return slider(f"{state_key}, by powers of 2", round(math.log2(value)), max_power)


def _field(state_key, label, value, minimum, maximum):
    whole = "" if isinstance(minimum, float) else " data-whole"
    more = f' data-key="{state_key}" data-least="{minimum}" data-most="{maximum}"{whole} {KEYS}'
    return text_field(label, f"{value:,}", more)


def _cache_bytes(state, model, tokens):
    """Return the bytes of the cache of all users at so many tokens."""
    return model_cache_bytes(model, tokens, itemsize=state["bits"] / 8) * state["users"]


def _weight_bytes(state, model):
    """Return the bytes of the weights."""
    return model["parameters"] * state["weights"] / 8


def _plot_html(state, model):
    """Draw bytes against tokens, with the weights as a line; the axes never move."""
    ends = range(4 * _COUNTS["tokens"] + 1)
    cache = [_from_top(_cache_bytes(state, model, 2 ** (i / 4))) for i in ends]
    points = " ".join(f"{100 * i / ends[-1]:.2f},{y:.2f}" for i, y in zip(ends, cache, strict=True))
    weights = _from_top(_weight_bytes(state, model))
    x = 100 * math.log2(state["tokens"]) / _COUNTS["tokens"]
    end = " data-end" * (state["tokens"] > 2**14)
    top, (grid, names) = (_from_top(_cache_bytes(state, model, state["tokens"])), _axis_marks())
    return (
        '<div class="tl-plot" role="img" aria-label="Bytes of the cache, rising with the tokens, '
        'and the bytes of the weights, a level line"><svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" aria-hidden="true"><path class="tl-grid" d="{grid}"/>'
        f'<path class="tl-weigh" d="M0 {weights:.2f}H100"/><polyline points="{points}"/></svg>'
        f"{names}<i>tokens</i>"
        f'<b class="tl-weighed" style="top:{weights:.2f}%">weights</b>'
        f'<b class="tl-dot"{end} style="left:{x:.2f}%;top:{top:.2f}%">'
        "<span>cache</span></b></div>"
    )


def _axis_marks():
    """Draw the lines of the powers of a thousand; and what they and the lengths are called."""
    powers = range(_LEAST, _MOST, 3)
    grid = "".join(f"M0 {_from_top(10**p):.2f}H100" for p in powers)
    names = "".join(
        f'<span class="tl-up" style="top:{_from_top(10**p):.2f}%">1 {_UNITS[p // 3]}</span>'
        for p in powers
    )
    ticks = "".join(
        f'<span class="tl-on" style="left:{100 * p / _COUNTS["tokens"]:g}%">{_short(2**p)}</span>'
        for p in range(0, _COUNTS["tokens"] + 1, 4)
    )
    return grid, names + ticks


def _facts_html(state, model):
    who, at = (
        f"{state[key]:,} {key[: -1 if state[key] == 1 else None]}" for key in ("users", "tokens")
    )
    rows = {
        "per token": _cache_text(model, state["bits"]),
        f"cache of {who} at {at}": _exact_text(_cache_bytes(state, model, state["tokens"])),
        "weights": _exact_text(_weight_bytes(state, model)),
    }
    cells = "".join(
        f'<tr><th scope="row">{name}</th><td>{text}</td></tr>' for name, text in rows.items()
    )
    return f'<table class="tl-table tl-sums"><tbody>{cells}</tbody></table>'


def _table(models):
    rows = "\n".join(_model_row(model) for model in models)
    table = TABLE.format(
        headings(
            "model",
            "layers, and what each caches",
            "bytes in all",
            "outgrows its weights, if they are 16-bit, at",
        ),
        rows,
    )
    summary = "Every model, 16 bits per entry, one user"
    return fold_numbers(table, f"<p>{_ABSENT}</p>", summary=summary)


def _model_row(model):
    growing, windowed, fixed = cache_entries(model)
    numbers = (growing, windowed, model.get("window", 0), fixed, model["parameters"])
    positions = model.get("positions", {}).get("max_positions", 0)
    positions *= model.get("positions", {}).get("kind") == "learned"
    data = " ".join(map(str, (*numbers, positions)))
    rest = model["parameters"] - fixed - windowed * model.get("window", 0)
    outgrows = f"{rest // growing + 1:,}" if growing else "never"
    outgrows += f", but it has learned {positions:,} positions" * bool(positions)
    cells = "".join(f"<td>{c}</td>" for c in (_layers_text(model), _cache_text(model), outgrows))
    name = escape(model["name"])
    return f'<tr data-cached="{data}"><th scope="row">{name}</th>{cells}</tr>'


def _layers_text(model):
    """Say of each kind of layer how many there are and what they cache."""
    count = layer_kind_counts(model)
    heads = f"{model['kv_heads']} KV head{'s' * (model['kv_heads'] > 1)} of {model['d_k']}"
    latent = model.get("latent", {"rank": 0, "rope_dim": 0})
    state = model.get("state", {"heads": 0, "d_k": 0, "d_v": 0})
    words = {
        "full": heads,
        "window": f"{heads}, of the last {model.get('window', 0):,} tokens",
        "latent": f"a latent of {latent['rank']} and {latent['rope_dim']} RoPE entries",
        "state": f"{state['heads']} states of {state['d_k']} × {state['d_v']}",
    }
    return "; ".join(f"{count[kind]}: {words[kind]}" for kind in words if count[kind])


def _cache_text(model, bits=16):
    """Say how many bytes are cached per token, per token of the window, and once."""
    growing, windowed, fixed = (_bytes_text(number * bits / 8) for number in cache_entries(model))
    parts = [f"{growing} bytes"] * (growing != "0")
    parts += [f"{windowed} of each of the last {model.get('window', 0):,}"] * (windowed != "0")
    parts += [f"{fixed} once"] * (fixed != "0")
    return " and ".join(parts)


def _bytes_text(n_bytes):
    """Write a number of bytes, or of half bytes."""
    return f"{n_bytes:,.1f}".removesuffix(".0")


def _from_top(n_bytes):
    """Return how far from the top of the picture a number of bytes lies, in percent."""
    power = min(max(math.log10(n_bytes), _LEAST), _MOST)
    return 100 * (_MOST - power) / (_MOST - _LEAST)


def _exact_text(n_bytes):
    power = min(int(math.log10(n_bytes)) // 3, len(_UNITS) - 1)
    size = float(f"{n_bytes / 1000**power:.3g}")
    return f"{_bytes_text(n_bytes)} bytes = {size:,.10g}\N{NO-BREAK SPACE}{_UNITS[power]}"


def _short(tokens):
    """Write a power of 2 as lengths are written: 64, 1k, 256k."""
    for size, unit in ((2**20, "M"), (2**10, "k")):
        if tokens >= size:
            return f"{tokens // size}{unit}"
    return str(tokens)
