"""The byte calculator: the KV cache of a model's users, beside its weights."""

import math
from html import escape

from tutorial_lib.counting import cache_entries, layer_kind_counts, model_cache_bytes
from tutorial_lib.elements.maps import TABLE, headings
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    Element,
    ask,
    band,
    button_row,
    fold_numbers,
    wrap,
)
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
_BEGINS = "Llama 2 7B"
_TOKENS, _BITS = 4096, (32, 16, 8, 4)
_LOG_TOKENS, _LOG_USERS = 20, 10  # the ends of the sliders, as powers of 2
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
    models = [model for model in facts("models")["models"] if any(cache_entries_of(model))]
    begins = next(model for model in models if model["name"] == _BEGINS)
    body = [
        ask(_QUESTION),
        band(_HOW_TO),
        _controls([model["name"] for model in models]),
        _plot(begins),
        _facts(begins),
        button_row(["Show me", "Reset"]),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _table(models),
    ]
    html = wrap("bytes", "tl-bytes", "Byte calculator", body)
    lines = "\n".join(f"   {model['name']}: {_each(model)}" for model in models)
    return Element(html, f"Bytes of a cache, 16 bits per entry\n{lines}")


def cache_entries_of(model):
    """Return how many entries a model caches, zeros where the facts do not give its layers."""
    return cache_entries(model) if "pattern" in model else (0, 0, 0)


def _controls(names):
    """Draw the sliders, fields and lists that the script serves; without one they stay hidden."""
    options = [*names, "my own"]
    rows = [
        _row("model", _list("model", "model", options, _BEGINS)),
        _row(
            "tokens",
            _slider("tokens", _LOG_TOKENS, _TOKENS),
            _count("tokens", _LOG_TOKENS, _TOKENS),
        ),
        _row("users", _slider("users", _LOG_USERS, 1), _count("users", _LOG_USERS, 1)),
        _row("bits in the cache", _list("bits", "bits per cached entry", _BITS, 16)),
        _row("bits in the weights", _list("weights", "bits per weight", _BITS, 16)),
    ]
    own = [_row(name, _field(key, name, *limits)) for key, (name, *limits) in _OWN.items()]
    grid = f'<div class="tl-given">{"".join(rows)}</div>'
    return (
        f'<div class="tl-lists" {HIDDEN}>{grid}\n'
        f'<div class="tl-given" data-own hidden>{"".join(own)}</div></div>'
    )


def _row(name, *controls):
    cells = "".join(f"<span>{control}</span>" for control in controls)
    return f"<div><span>{name}</span>{cells}</div>"


def _list(key, label, options, chosen):
    items = "".join(f"<option{' selected' * (o == chosen)}>{o}</option>" for o in options)
    return f'<select data-key="{key}" aria-label="{label}" {KEYS}>{items}</select>'


def _slider(key, most, value):
    return (
        f'<input type="range" data-slides="{key}" aria-label="{key}, by powers of 2" '
        f'min="0" max="{most}" value="{math.log2(value):g}" {KEYS}>'
    )


def _count(key, power, value):
    return _field(key, key, value, 1, 2**power)


def _field(key, name, value, least, most):
    whole = "" if isinstance(least, float) else " data-whole"
    return (
        f'<input type="text" data-key="{key}" aria-label="{name}" value="{value:,}" '
        f'data-least="{least}" data-most="{most}"{whole} autocomplete="off" spellcheck="false" '
        f"{KEYS}>"
    )


def _plot(model):
    """Draw bytes against tokens, with the weights as a line; the axes never move."""
    cache = [model_cache_bytes(model, 2 ** (i / 4)) for i in range(4 * _LOG_TOKENS + 1)]
    points = " ".join(f"{100 * i / (len(cache) - 1):.2f},{_y(n):.2f}" for i, n in enumerate(cache))
    weights, x = _y(2 * model["parameters"]), 100 * math.log2(_TOKENS) / _LOG_TOKENS
    powers = range(_LEAST, _MOST, 3)
    across = "".join(f"M0 {_y(10**p):.2f}H100" for p in powers)
    names = "".join(
        f'<span class="tl-up" style="top:{_y(10**p):.2f}%">1 {_UNITS[p // 3]}</span>'
        for p in powers
    )
    ticks = "".join(
        f'<span class="tl-on" style="left:{100 * p / _LOG_TOKENS:g}%">{_short(2**p)}</span>'
        for p in range(0, _LOG_TOKENS + 1, 4)
    )
    return (
        '<div class="tl-plot" role="img" aria-label="Bytes of the cache, rising with the tokens, '
        'and the bytes of the weights, a level line"><svg viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" aria-hidden="true"><path class="tl-grid" d="{across}"/>'
        f'<path class="tl-weigh" d="M0 {weights:.2f}H100"/><polyline points="{points}"/></svg>'
        f"{names}{ticks}<i>tokens</i>"
        f'<b class="tl-weighed" style="top:{weights:.2f}%">weights</b>'
        f'<b class="tl-dot" style="left:{x:.2f}%;top:{_y(model_cache_bytes(model, _TOKENS)):.2f}%">'
        "<span>cache</span></b></div>"
    )


def _facts(model):
    cache, weights = model_cache_bytes(model, _TOKENS), 2 * model["parameters"]
    rows = {
        "per token": _each(model),
        f"cache of 1 user at {_TOKENS:,} tokens": _exact(cache),
        "weights": _exact(weights),
    }
    cells = "".join(
        f'<tr><th scope="row">{name}</th><td>{text}</td></tr>' for name, text in rows.items()
    )
    return f'<table class="tl-table tl-sums"><tbody>{cells}</tbody></table>'


def _table(models):
    rows = "\n".join(_line(model) for model in models)
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


def _line(model):
    growing, windowed, fixed = cache_entries(model)
    numbers = (growing, windowed, model.get("window", 0), fixed, model["parameters"])
    positions = model.get("positions", {}).get("max_positions", 0)
    positions *= model.get("positions", {}).get("kind") == "learned"
    data = " ".join(map(str, (*numbers, positions)))
    rest = model["parameters"] - fixed - windowed * model.get("window", 0)
    outgrows = f"{rest // growing + 1:,}" if growing else "never"
    outgrows += f", but it has learned {positions:,} positions" * bool(positions)
    cells = "".join(f"<td>{cell}</td>" for cell in (_layers(model), _each(model), outgrows))
    name = escape(model["name"])
    return f'<tr data-cached="{data}"><th scope="row">{name}</th>{cells}</tr>'


def _layers(model):
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


def _each(model):
    """Say how many bytes are cached per token, per token of the window, and once."""
    growing, windowed, fixed = (2 * number for number in cache_entries(model))
    parts = [f"{growing:,} bytes"] * bool(growing)
    parts += [f"{windowed:,} of each of the last {model.get('window', 0):,}"] * bool(windowed)
    parts += [f"{fixed:,} once"] * bool(fixed)
    return " and ".join(parts)


def _y(number):
    """Return how far from the top of the picture a number of bytes lies, in percent."""
    power = min(max(math.log10(number), _LEAST), _MOST)
    return 100 * (_MOST - power) / (_MOST - _LEAST)


def _exact(number):
    power = min(int(math.log10(number)) // 3, len(_UNITS) - 1)
    size = float(f"{number / 1000**power:.3g}")
    return f"{number:,} bytes = {size:,g}\N{NO-BREAK SPACE}{_UNITS[power]}"


def _short(tokens):
    """Write a power of 2 as lengths are written: 64, 1k, 256k."""
    for size, unit in ((2**20, "M"), (2**10, "k")):
        if tokens >= size:
            return f"{tokens // size}{unit}"
    return str(tokens)
