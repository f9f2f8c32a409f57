"""Draw a mask and read its receptive field: the pairs it leaves, and what layers connect."""

import re
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.elements.exhibits.pairs import mask_from_hex, mask_to_hex, pair_grid
from tutorial_lib.elements.markup import HIDDEN, button_row, exhibit, fold_numbers, given, slider
from tutorial_lib.elements.tables import table
from tutorial_lib.variants.patterns import (
    global_mask,
    random_mask,
    receptive_field,
    strided_mask,
    window_mask,
)

_TOKENS, _LAYERS = 16, 6
_BEFORE = causal_mask(_TOKENS)
_BEGINS, _CAUSAL = "window", "Causal"
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


@dataclass(frozen=True)
class _DrawnMask:
    """A mask, and after how many layers it is read.

    Parameters
    ----------
    seen : (T, T), True = may look, without the future where that is kept out
    """

    seen: np.ndarray
    causal: bool
    layers: int

    def receptive_field(self, layers=None):
        return receptive_field(self.seen, layers or self.layers)

    def first_dependent_layer(self):
        """Return after which layer a row depends on a token, 0 where none connects them: (T, T)."""
        fields = [self.receptive_field(n) for n in range(1, self.layers + 1)]
        return np.select(fields, range(1, self.layers + 1), 0)

    def pair_count_text(self, pairs):
        """Count pairs, of how many there could be."""
        return f"{pairs.sum()} of {_BEFORE.sum() if self.causal else _TOKENS**2}"

    def receptive_field_texts(self, n_layers):
        """Count the tokens on which the last row depends, and the pairs that are connected."""
        field = self.receptive_field(n_layers)
        return f"{field[-1].sum()} of {_TOKENS}", self.pair_count_text(field)


def mask_drawing():
    """Show a mask on 16 tokens to draw on, and on which tokens each row depends after some layers.

    Introduced in chapter 17. It begins from one of four published patterns, or from all pairs.
    """
    return draw_drawing()


def draw_drawing(*, mask=None, causal="yes", layers=1):
    """Draw the mask in a state, whose parts are called and written as a link does."""
    patterns = _mask_patterns()
    mask = patterns[_BEGINS][1] if mask is None else mask_from_hex(mask, _TOKENS)
    seen = mask & _BEFORE if causal == "yes" else mask
    drawing = _DrawnMask(seen, causal == "yes", layers)
    digits = [[key, mask_to_hex(pattern), says] for key, (_, pattern, says) in patterns.items()]
    begins = {"patterns": digits, "from": _BEGINS}
    named = [name for name, pattern, _ in patterns.values() if (pattern == seen).all()]
    parts = [
        button_row([name for name, *_ in patterns.values()], named),
        f'<div class="tl-draw" {given(begins)}>',
        pair_grid(_grid_cells(drawing)),
        f"<div>{_slider(layers)}\n{_totals(drawing)}\n{_layer_table(drawing)}</div></div>",
        button_row([_CAUSAL, "Reset"], [_CAUSAL] * drawing.causal),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers_fold(drawing),
    ]
    text = "\n".join(
        f"   after {_layer_count_text(n)} row {_TOKENS - 1} depends on "
        f"{drawing.receptive_field_texts(n)[0]} tokens"
        for n in range(1, _LAYERS + 1)
    )
    title = ", ".join([f"Mask on {_TOKENS} tokens", *(name.lower() for name in named)])
    text = f"{title}: {drawing.pair_count_text(seen)} pairs\n{text}"
    return exhibit("drawing", "Draw a mask", _QUESTION, _HOW_TO, *parts, text=text)


def _mask_patterns():
    """Return of each pattern its name, its mask and what is said of it, by its word in a link."""
    T = _TOKENS
    near, wide = (window_mask(T, T, n) for n in (2, 3))
    sampled = random_mask(np.random.default_rng(0), T, 2)
    masks = {
        "window": window_mask(T, T, 4),
        "strided": window_mask(T, T, 4) | strided_mask(T, 4),
        "longformer": wide | wide.T | global_mask(T, [0]),
        "bigbird": near | near.T | global_mask(T, [0, 1]) | sampled,
        "all": _BEFORE,
    }
    return {key: (_NAMES[key][0], mask, _NAMES[key][1]) for key, mask in masks.items()}


def _grid_cells(drawing):
    late, out = drawing.first_dependent_layer(), ~_BEFORE & drawing.causal
    rows = zip(drawing.seen, late, out, strict=True)
    return [[_grid_cell(*pair) for pair in zip(*row, strict=True)] for row in rows]


def _grid_cell(is_visible, first_layer, is_after_query):
    """Write of a pair after which layer its row depends on its token, if any connects them."""
    if is_visible:
        return "data-on", f"<b>{first_layer}</b>"
    if first_layer:
        return f'data-late="{first_layer}"', f"{first_layer}"
    return "data-out" if is_after_query else "", ""


def _totals(drawing):
    counted = drawing.pair_count_text(drawing.seen)
    count, possible = map(int, counted.split(" of "))
    percent = int(1000 * count / possible + 0.5) / 10  # half a tenth goes up
    open_ = f"{counted} pairs may be looked at: {percent:.1f}\N{NO-BREAK SPACE}%."
    blind, future = ~drawing.seen.any(axis=1), (drawing.seen & ~_BEFORE).sum()
    rows = f"Rows {_ranges(blind)} see" if blind.sum() > 1 else f"Row {_ranges(blind)} sees"
    sight = f"{rows} nothing." if blind.any() else "Every row sees something."
    looks = "1 pair looks" if future == 1 else f"{future or 'No'} pairs look"
    words = f"{sight} {looks} at the future."
    return f'<p class="tl-share">{open_}</p><p class="tl-alarm">{words}</p>'


def _layer_count_text(count):
    return f"{count} layer" + "s" * (count > 1)


def _slider(layers):
    control = slider("layers", layers, _LAYERS, least=1)
    name = f"<span>{_layer_count_text(layers)}</span>"
    return f'<div class="tl-lists tl-depth" {HIDDEN}>{name}{control}</div>'


def _layer_table(drawing):
    """Tabulate the receptive field after each number of layers; those to come are not told."""
    shown = [
        (n, *(drawing.receptive_field_texts(n) if n <= drawing.layers else "––"))
        for n in range(1, _LAYERS + 1)
    ]
    return table(("layers", f"tokens in row {_TOKENS - 1}", "pairs connected"), shown)


def _numbers_fold(drawing):
    field = drawing.receptive_field()
    rows = [
        (t, _ranges(drawing.seen[t]), f"{_ranges(field[t])} ({field[t].sum()})")
        for t in range(_TOKENS)
    ]
    title = f"depends, after {_layer_count_text(drawing.layers)}, on"
    return fold_numbers(table(("row", "may look at", title), rows))


def _ranges(row):
    """Write the positions of a row, those side by side as a range: 0, 12–15."""
    runs = re.finditer("1+", "".join("01"[one] for one in row * 1))
    ends = [dict.fromkeys((run.start(), run.end() - 1)) for run in runs]
    return ", ".join("–".join(map(str, two)) for two in ends) or "nothing"
