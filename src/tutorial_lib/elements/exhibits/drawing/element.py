"""Draw a mask and read its receptive field: the pairs it leaves, and what layers connect."""

import json
from html import escape

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.elements.exhibits.pairs import packed, pair_grid
from tutorial_lib.elements.maps import table
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
from tutorial_lib.variants.patterns import (
    global_mask,
    random_mask,
    receptive_field,
    strided_mask,
    window_mask,
)

_TOKENS, _LAYERS = 16, 6
_BEGINS, _DEPTH = "window", 1
_NAMES = {  # of each pattern, by its word in a link: its name, and what it is
    "window": (
        "Window of 4",
        "The last 4 keys, itself included, as in layers of Mistral 7B and gpt-oss",
    ),
    "strided": (
        "Strided",
        "The last 4 keys and every 4th before, as in the Sparse Transformer",
    ),
    "longformer": (
        "Longformer",
        "Two keys on each side, and token 0 global: it looks at all, and all look at it",
    ),
    "bigbird": (
        "BigBird",
        "One key on each side, tokens 0 and 1 global, and two random keys per row",
    ),
    "all": ("Full, causal", "Each query looks at itself and all before"),
}
_QUESTION = (
    "With a window of 4: after how many layers does row 15 depend on token 0? "
    "Commit to a number, then move the slider."
)
_HOW_TO = (
    "Move the slider of layers. Press a cell, or draw across many, to change the mask; with a "
    "finger begin sideways."
)
_LEGEND = (
    "A full cell is a pair that may be looked at; the space bar switches it. A digit is the layer "
    "after which the query's row depends on the key's token; a row keeps its own token, as a "
    "residual does. Point at a pair that is not full, or move to it by arrow keys, and its path "
    "lights up."
)


def mask_drawing():
    """Show a mask on 16 tokens to draw on, and on which tokens each row depends after some layers.

    Introduced in chapter 17. It begins from one of four published patterns, or from all pairs.
    """
    patterns = _patterns()
    given = {
        "patterns": [[key, packed(mask), says] for key, (_, mask, says) in patterns.items()],
        "from": _BEGINS,
    }
    mask = patterns[_BEGINS][1]
    body = [
        ask(_QUESTION),
        band(_HOW_TO),
        button_row([name for name, *_ in patterns.values()]),
        f'<div class="tl-draw" data-given="{escape(json.dumps(given, separators=(",", ":")))}">',
        pair_grid(_cells(mask)),
        f"<div>{_slider()}\n{_sums(mask)}\n{_layers(mask)}</div></div>",
        button_row(["Causal", "Reset"]),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers(mask),
    ]
    text = "\n".join(f"   {_says_receptive_field(mask, n)}" for n in range(1, _LAYERS + 1))
    name = patterns[_BEGINS][0].lower()
    return Element(
        wrap("drawing", "tl-drawing", "Draw a mask", body),
        f"Mask on {_TOKENS} tokens, {name}: {_counted(mask)} pairs\n{text}",
    )


def _patterns():
    """Return of each pattern its name, its mask and what is said of it, by its word in a link."""
    T = _TOKENS
    near, wide = (window_mask(T, T, n) for n in (2, 3))
    sampled = random_mask(np.random.default_rng(0), T, 2)
    masks = {
        "window": window_mask(T, T, 4),
        "strided": window_mask(T, T, 4) | strided_mask(T, 4),
        "longformer": wide | wide.T | global_mask(T, [0]),
        "bigbird": near | near.T | global_mask(T, [0, 1]) | sampled,
        "all": causal_mask(T),
    }
    return {key: (_NAMES[key][0], mask, _NAMES[key][1]) for key, mask in masks.items()}


def _cells(mask):
    field = receptive_field(mask, _DEPTH)
    return [[_cell(mask[t, s], field[t, s], s > t) for s in range(_TOKENS)] for t in range(_TOKENS)]


def _cell(open_, in_field, out):
    if open_:
        return "data-on", "<b>1</b>"
    return "data-out" if out else "", "1" if in_field else ""


def _counted(mask):
    """Count pairs of a causal mask, of how many there could be."""
    return f"{np.count_nonzero(mask)} of {np.count_nonzero(causal_mask(_TOKENS))}"


def _sums(mask):
    percent = 100 * np.count_nonzero(mask) / np.count_nonzero(causal_mask(_TOKENS))
    open_ = f"{_counted(mask)} pairs may be looked at: {percent:.1f}\N{NO-BREAK SPACE}%."
    words = "Every row sees something. No pairs look at the future."
    return f'<p class="tl-share">{open_}</p><p class="tl-alarm">{words}</p>'


def _slider():
    control = (
        f'<input type="range" aria-label="layers" min="1" max="{_LAYERS}" value="{_DEPTH}" {KEYS}>'
    )
    return f'<div class="tl-lists tl-depth" {HIDDEN}><span>1 layer</span>{control}</div>'


def _depends(mask, n_layers):
    """Count the tokens on which the last row depends, and the pairs that are connected."""
    field = receptive_field(mask, n_layers)
    return f"{np.count_nonzero(field[-1])} of {_TOKENS}", _counted(field)


def _says_receptive_field(mask, n_layers):
    layers = f"{n_layers} layer" + "s" * (n_layers > 1)
    return f"after {layers} row {_TOKENS - 1} depends on {_depends(mask, n_layers)[0]} tokens"


def _layers(mask):
    """Tabulate the receptive field after each number of layers; the script fills in the rest."""
    shown = [_depends(mask, n) if n <= _DEPTH else ("–", "–") for n in range(1, _LAYERS + 1)]
    rows = [(n, *texts) for n, texts in enumerate(shown, start=1)]
    return table(("layers", f"tokens in row {_TOKENS - 1}", "pairs connected"), rows)


def _numbers(mask):
    field = receptive_field(mask, _DEPTH)
    rows = [
        (t, _spans(mask[t]), f"{_spans(field[t])} ({np.count_nonzero(field[t])})")
        for t in range(_TOKENS)
    ]
    shown = table(("row", "may look at", "depends, after 1 layer, on"), rows)
    return fold_numbers(shown)


def _spans(row):
    """Write the positions of a row that has no gap as a range: 12–15."""
    positions = np.flatnonzero(row)
    ends = dict.fromkeys((int(positions[0]), int(positions[-1])))
    return "–".join(map(str, ends))
