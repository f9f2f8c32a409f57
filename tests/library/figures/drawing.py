"""What the tests of figures share: a figure of each kind, and what is read from its picture."""

import functools
import hashlib
import re
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_rgb

from tutorial_lib import figures
from tutorial_lib.figures import Block, Diagram, ink

H, T, S = 2, 3, 4
TOKENS, CAPTION = ["<BOS>", "dogs", "$bark$"], "Where does <BOS> look?"
KEYS = ["les", "chiens", "qui", "aboient"]
SVG = "{http://www.w3.org/2000/svg}"


def ramp(*shape):
    """Numbers from 0.05 to 0.95, all different, with 4 decimals none of which is 0."""
    return np.linspace(0.05, 0.95, np.prod(shape)).round(3).reshape(shape) + 4e-4


ARRAYS = {
    "attention_maps": ramp(H, T, S),
    "signed_maps": ramp(T, S) - 0.5,
    "line_chart": ramp(H, T),
    "bar_chart": ramp(T, H),
    "bar_panels": ramp(T, H) - 0.5,
    "spread_chart": ramp(T, S),
    "block_diagram": ramp(T) - 0.5,
    "task_maps": ramp(H, T),
}
CHAINS = {
    "scores": ("tm,hmd,hnd,sn->hts", ["X", "W_Q", "W_K", "X"]),
    "Y": ("hts,sm,hmv,hvn->tn", ["weights", "X", "W_V", "W_O"]),
}
PAIR = {"a": Block(0, 0, "a"), "b": Block(2, 0, "b", width=0.5, height=2)}


def three_blocks(array):
    """The panels of a diagram whose texts are numbers."""
    numbered = enumerate(zip(TOKENS, array, strict=True))
    blocks = {token: Block(2 * t, 0, f"{y:.4f}") for t, (token, y) in numbered}
    blocks |= {f"name {t}": Block(2 * t, 1.2, token) for t, token in enumerate(TOKENS)}
    return {"head 1": Diagram(blocks, [("<BOS>", "dogs", "<i>"), ("$bark$", "<BOS>")])}


DRAW = {
    "attention_maps": lambda f, array: f(array, TOKENS, key_tokens=KEYS),
    "signed_maps": lambda f, array: f({"head 1": array}, rows=TOKENS, columns=KEYS),
    "line_chart": lambda f, array: f(
        np.arange(T), {"d_k = 1": array[0], "d_k = 4": array[1]}, labels=("step", "<error>")
    ),
    "bar_chart": lambda f, array: f(array, TOKENS, ["loop", "<error>"], label="ms"),
    "bar_panels": lambda f, array: f({"head 1": array[:, 0], "<error>": array[:, 1]}, TOKENS),
    "spread_chart": lambda f, array: f(dict(zip(TOKENS, array, strict=True)), label="<error>"),
    "block_diagram": lambda f, array: f(
        three_blocks(array), alt="Three blocks in a row, the first with an arrow to the second."
    ),
    "task_maps": lambda f, array: f({"<error>": array}, ramp(T), heads=KEYS[:H], tasks=TOKENS),
}


def draw(kind, array):
    """The figure of each kind for one array."""
    return DRAW[kind](functools.partial(getattr(figures, kind), caption=CAPTION), array)


def heads_by_task(n_maps, n_heads):
    """Maps of scores for ten tasks."""
    scores = {f"map {n}": np.full((n_heads, 10), 0.25) for n in range(n_maps)}
    names = {"heads": [f"0.{n}" for n in range(n_heads)], "tasks": ["across a clause"] * 10}
    return figures.task_maps(scores, np.full(10, 0.5), **names, caption="")


ARCS = {"agreement": [(4, 1)], "<copy>": [(3, 2), (4, 2)]}
OTHERS = {  # that draw no array
    "network": lambda: figures.tensor_network(CHAINS, between="softmax over s", caption=CAPTION),
    "streams": lambda: figures.block_map(
        {"a block": (), "<error>": ("norm", "MLP")}, layers=2, caption=CAPTION
    ),
    "sentence": lambda: figures.arcs([*TOKENS, "<BOS>", "cats"], ARCS, caption=CAPTION),
}
WIDE = {
    "eight words": lambda: figures.attention_maps(np.full((8, 8), 0.0625), range(8), caption=""),
    "many columns": lambda: figures.signed_maps({"W": np.ones((2, 18), dtype=int)}, caption=""),
    "many bars": lambda: figures.bar_panels({"s": np.arange(9)}, range(9), caption=""),
    "long row": lambda: diagram({n: Block(1.5 * n, 0, str(n)) for n in range(6)}),
    "seventeen words": lambda: figures.arcs(range(900, 917), {"far": [(16, 0)]}, caption=""),
    "two layers of four heads": lambda: heads_by_task(2, 4),
    "three seeds": lambda: heads_by_task(3, 8),
    "five arrays": lambda: figures.tensor_network({"Y": ("ab,bc,cd,de->ae", "ABCD")}, caption=""),
}


@functools.cache
def figure_of(name):
    """A figure, that of its own array if it draws one, drawn once."""
    return draw(name, ARRAYS[name]) if name in ARRAYS else (OTHERS | WIDE)[name]()


def stored_text(figure):
    """All that a notebook stores of a figure, as one string."""
    bundle = figure._repr_mimebundle_()
    return bundle["text/plain"] + bundle["text/html"]


def digest():
    """A fingerprint of one figure of each kind."""
    outputs = [stored_text(figure_of(name)) for name in (*ARRAYS, *OTHERS)]
    return hashlib.sha256("".join(outputs).encode()).hexdigest()


def parsed(figure, *, phone=False):
    """The pictures of a figure as elements, as they are on a desk or on a phone; or one of them."""
    if isinstance(figure, ElementTree.Element):
        return figure
    root = ElementTree.fromstring(f"<div>{figure.svg}</div>")
    for pair in root.iterfind("div/div"):
        pair.remove(pair[0 if phone else 1])
    return root


def pictures(figure, **options):
    """The pictures of a figure, one by one."""
    return list(parsed(figure, **options).iter(f"{SVG}svg"))


def texts(figure, **options):
    """The text elements of a figure or of one picture."""
    return list(parsed(figure, **options).iter(f"{SVG}text"))


def words(figure, **options):
    """What is written in a figure, in its order."""
    return [text.text for text in texts(figure, **options)]


def spots(figure, **options):
    """Where each text stands that is not turned, (x, y) by the text."""
    level = [t for t in texts(figure, **options) if t.get("x")]
    return {t.text: np.array([float(t.get("x")), float(t.get("y"))]) for t in level}


def paths(figure, **options):
    """The paths of a figure or of one picture."""
    return list(parsed(figure, **options).iter(f"{SVG}path"))


def points_of(path):
    """The points of a path."""
    return np.array(re.findall(r"([-\d.]+) ([-\d.]+)", path.get("d")), dtype=float)


def colours_of(scale, levels):
    """The colours on light pages of steps of a scale."""
    return [ink.STAND_INS[scale.cells[level]][0] for level in levels]


def luminance(colour):
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_both_pages(colour):
    """A colour as it is on light and on dark pages."""
    css = ink.STAND_INS.get(colour, (colour,))[-1]
    return re.findall(r"#[0-9a-f]+", css.removeprefix("light-dark")) * (1 + ("(" not in css))


def cell_colours(figure):
    """The colours on light pages of the cells of each picture, row by row."""
    for picture in pictures(figure):
        colours = {}
        for path in paths(picture):
            for x, y in re.findall(r"M(\S+) (\S+?)H", path.get("d")):
                colours[float(y), float(x)] = re.search(r"fill:(#\w+)", path.get("style"))[1]
        yield [colours[place] for place in sorted(colours)]


def coloured(figure, *, marks):
    """The paths in a head's colour: the markers and arrowheads, or the lines."""
    of_heads = (path for path in paths(figure) if "color-mix" in path.get("style"))
    return [path for path in of_heads if ("transform" in path.attrib) == marks]


def diagram(blocks, *arrows, **options):
    """A diagram of one panel."""
    options = {"caption": "", "alt": "Blocks."} | options
    return figures.block_diagram({"map": Diagram(blocks, arrows)}, **options)
