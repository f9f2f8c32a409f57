"""What the tests of figures share: a figure of each kind."""

import functools
import hashlib

import numpy as np

from tests.library.figures.reading import stored_text
from tutorial_lib import figures
from tutorial_lib.figures import Block, Diagram

H, T, S = 2, 3, 4
TOKENS, CAPTION = ["<BOS>", "dogs", "$bark$"], "Where does <BOS> look?"
KEYS = ["les", "chiens", "qui", "aboient"]


def ramp(*shape):
    """Numbers from 0.05 to 0.95, all different, with 4 decimals none of which is 0."""
    return np.linspace(0.05, 0.95, np.prod(shape)).round(3).reshape(shape) + 4e-4


ARRAYS = {
    "attention_maps": ramp(H, T, S),
    "signed_maps": ramp(T, S) - 0.5,
    "line_chart": ramp(H, T),
    "bar_chart": ramp(T, H),
    "spread_chart": ramp(T, S),
    "block_diagram": ramp(T) - 0.5,
}
PAIR = {"a": Block(0, 0, "a"), "b": Block(2, 0, "b", width=0.5, height=2)}


def three_blocks(array):
    """The panels of a diagram whose texts are numbers."""
    numbered_values = enumerate(zip(TOKENS, array, strict=True))
    blocks = {token: Block(2 * t, 0, f"{y:.4f}") for t, (token, y) in numbered_values}
    blocks |= {f"name {t}": Block(2 * t, 1.2, token) for t, token in enumerate(TOKENS)}
    return {"head 1": Diagram(blocks, [("<BOS>", "dogs", "<i>"), ("$bark$", "<BOS>")])}


DRAWING_CALLS = {
    "attention_maps": lambda f, array: f(array, TOKENS, key_tokens=KEYS),
    "signed_maps": lambda f, array: f({"head 1": array}, rows=TOKENS, columns=KEYS),
    "line_chart": lambda f, array: f(
        np.arange(T), {"d_k = 1": array[0], "d_k = 4": array[1]}, labels=("step", "<error>")
    ),
    "bar_chart": lambda f, array: f(array, TOKENS, ["loop", "<error>"], label="ms"),
    "spread_chart": lambda f, array: f(dict(zip(TOKENS, array, strict=True)), label="<error>"),
    "block_diagram": lambda f, array: f(
        three_blocks(array), alt="Three blocks in a row, the first with an arrow to the second."
    ),
}


def draw(kind, array):
    """The figure of each kind for one array."""
    return DRAWING_CALLS[kind](functools.partial(getattr(figures, kind), caption=CAPTION), array)


ARCS = {"agreement": [(4, 1)], "<copy>": [(3, 2), (4, 2)]}
ARRAYLESS = {  # that draw no array
    "streams": lambda: figures.block_map(
        {"a block": (), "<error>": ("norm", "MLP")}, layers=2, caption=CAPTION
    ),
    "sentence": lambda: figures.arcs([*TOKENS, "<BOS>", "cats"], ARCS, caption=CAPTION),
}
WIDE_FIGURES = {
    "eight words": lambda: figures.attention_maps(np.full((8, 8), 0.0625), range(8), caption=""),
    "many columns": lambda: figures.signed_maps({"W": np.ones((2, 18), dtype=int)}, caption=""),
    "long row": lambda: diagram({n: Block(1.5 * n, 0, str(n)) for n in range(6)}),
    "seventeen words": lambda: figures.arcs(range(900, 917), {"far": [(16, 0)]}, caption=""),
}


@functools.cache
def figure_of(name):
    """A figure, that of its own array if it draws one, drawn once."""
    return draw(name, ARRAYS[name]) if name in ARRAYS else (ARRAYLESS | WIDE_FIGURES)[name]()


def digest():
    """A fingerprint of one figure of each kind."""
    stored_texts = [stored_text(figure_of(name)) for name in (*ARRAYS, *ARRAYLESS)]
    return hashlib.sha256("".join(stored_texts).encode()).hexdigest()


def diagram(blocks, *arrows, **options):
    """A diagram of one panel."""
    options = {"caption": "", "alt": "Blocks."} | options
    return figures.block_diagram({"map": Diagram(blocks, arrows)}, **options)
