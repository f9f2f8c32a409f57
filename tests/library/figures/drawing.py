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
TOKENS = ["<BOS>", "dogs", "$bark$"]
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


def draw(kind, array):
    """The figure of each kind for one array."""
    caption = "Where does <BOS> look?"
    if kind == "attention_maps":
        return figures.attention_maps(array, TOKENS, key_tokens=KEYS, caption=caption)
    if kind == "signed_maps":
        return figures.signed_maps({"head 1": array}, rows=TOKENS, columns=KEYS, caption=caption)
    if kind == "bar_chart":
        return figures.bar_chart(array, TOKENS, ["loop", "<error>"], label="ms", caption=caption)
    if kind == "bar_panels":
        panels = dict(zip(("head 1", "<error>"), array.T, strict=True))
        return figures.bar_panels(panels, TOKENS, caption=caption)
    if kind == "spread_chart":
        runs = dict(zip(TOKENS, array, strict=True))
        return figures.spread_chart(runs, label="<error>", caption=caption)
    if kind == "task_maps":
        names = {"heads": KEYS[:H], "tasks": TOKENS}
        return figures.task_maps({"<error>": array}, ramp(T), **names, caption=caption)
    if kind == "block_diagram":
        named = enumerate(zip(TOKENS, array, strict=True))
        blocks = {token: Block(2 * t, 0, f"{y:.4f}") for t, (token, y) in named}
        blocks |= {f"name {t}": Block(2 * t, 1.2, token) for t, token in enumerate(TOKENS)}
        arrows = [("<BOS>", "dogs", "<i>"), ("$bark$", "<BOS>")]
        alt = "Three blocks in a row, the first with an arrow to the second."
        return figures.block_diagram({"head 1": Diagram(blocks, arrows)}, caption=caption, alt=alt)
    series = {f"d_k = {4**h}": y for h, y in enumerate(array)}
    return figures.line_chart(np.arange(T), series, labels=("step", "<error>"), caption=caption)


@functools.cache
def drawn(kind):
    """The figure of each kind for its own array, drawn once."""
    return draw(kind, ARRAYS[kind])


@functools.cache
def network():
    """A layer as a tensor network, drawn once."""
    return figures.tensor_network(CHAINS, between="softmax over s", caption="Which ends are open?")


@functools.cache
def streams():
    """The second map of two models, drawn once."""
    models = {"a block": (), "<error>": ("norm", "MLP")}
    return figures.block_map(models, layers=2, caption="Which parts are not there?")


@functools.cache
def sentence():
    """A sentence with arcs of two kinds, drawn once."""
    kinds = {"agreement": [(4, 1)], "<copy>": [(3, 2), (4, 2)]}
    return figures.arcs([*TOKENS, "<BOS>", "cats"], kinds, caption="What decides <BOS>?")


OTHERS = {"network": network, "streams": streams, "sentence": sentence}  # that draw no array


def shown(figure):
    """All that a notebook stores of a figure, as one string."""
    bundle = figure._repr_mimebundle_()
    return bundle["text/plain"] + bundle["text/html"]


def digest():
    """A fingerprint of one figure of each kind."""
    every = [*map(drawn, ARRAYS), *(figure() for figure in OTHERS.values())]
    return hashlib.sha256("".join(map(shown, every)).encode()).hexdigest()


def parsed(figure, *, phone=False):
    """The pictures of a figure as elements, as they are on a desk or on a phone."""
    root = ElementTree.fromstring(f"<div>{figure.svg}</div>")
    for pair in root.iterfind("div/div"):
        pair.remove(pair[0 if phone else 1])
    return root


def texts(figure, *, phone=False):
    """The text elements of a figure."""
    return list(parsed(figure, phone=phone).iter(f"{SVG}text"))


def luminance(colour):
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (
        0.2126,
        0.7152,
        0.0722,
    )


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
    pictures = []
    for picture in parsed(figure).iter(f"{SVG}svg"):
        colours = {}
        for path in picture.iter(f"{SVG}path"):
            for x, y in re.findall(r"M(\S+) (\S+?)H", path.get("d")):
                colours[float(y), float(x)] = re.search(r"fill:(#\w+)", path.get("style"))[1]
        pictures.append([colours[place] for place in sorted(colours)])
    return pictures


def coloured(figure, *, marks):
    """The paths in a head's colour: the markers and arrowheads, or the lines."""
    paths = [p for p in parsed(figure).iter(f"{SVG}path") if "color-mix" in p.get("style")]
    return [path for path in paths if ("transform" in path.attrib) == marks]


def diagram(blocks, *arrows, **options):
    """A diagram of one panel."""
    options = {"caption": "", "alt": "Blocks."} | options
    return figures.block_diagram({"map": Diagram(blocks, arrows)}, **options)
