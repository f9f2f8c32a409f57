"""Colours that read well on light and on dark pages.

matplotlib draws with stand-ins, plain colours that `svg.py` replaces by what CSS can say and
matplotlib cannot: the page's text colour, or one colour for light pages and one for dark ones.
"""

import re
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_hex, to_rgb

HEAD_COLOURS = ("#2861a8", "#b52f5b", "#1f7a3d", "#8f5a00")
LEVELS = 101  # steps of a colour scale; the numbers are written, nobody reads them off a colour
STAND_INS = {}  # stand-in -> CSS colours; a browser takes the last one that it understands


class Scale(NamedTuple):
    """A colour scale as stand-ins: of the cells, and of the text that is legible on each."""

    cells: tuple
    texts: tuple


def _stand_in(*css):
    code = f"#{0x010100 + len(STAND_INS):06x}"
    STAND_INS[code] = css
    return code


def _either(light, dark):
    return _stand_in(*([light] if light == dark else [light, f"light-dark({light},{dark})"]))


def _luminance(colour):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def _is_light(colour):
    """Tell whether black text has more contrast on a colour than white text (WCAG 2)."""
    return (_luminance(colour) + 0.05) ** 2 > 0.05 * 1.05


def _ramp(*stops):
    """Return LEVELS colours, evenly from the first stop to the last."""
    places = np.linspace(0, len(stops) - 1, LEVELS)
    channels = np.array([to_rgb(stop) for stop in stops]).T
    ramps = [np.interp(places, range(len(stops)), channel) for channel in channels]
    return [to_hex(rgb) for rgb in np.stack(ramps, axis=1)]


def _scale(light, dark):
    pairs = list(zip(_ramp(*light), _ramp(*dark), strict=True))
    texts = [_CELL_TEXT[_is_light(on_light), _is_light(on_dark)] for on_light, on_dark in pairs]
    return Scale(tuple(_either(*pair) for pair in pairs), tuple(texts))


_BLACK_WHITE = {True: "#000", False: "#fff"}
_CELL_TEXT = {
    (on_light, on_dark): _either(_BLACK_WHITE[on_light], _BLACK_WHITE[on_dark])
    for on_light in (True, False)
    for on_dark in (True, False)
}

INK = _stand_in("currentColor")
PAPER = _CELL_TEXT[False, True]  # what INK is not: white on light pages, black on dark ones
HEAD_INKS = tuple(  # mixed with the text colour, so legible as text on either page
    _stand_in(colour, f"color-mix(in srgb,{colour} 65%,currentColor)") for colour in HEAD_COLOURS
)
# Both end far from the page's colour; blue against orange survives every colour blindness.
SEQUENTIAL = _scale(
    light=("#edf2f8", "#b7d0ea", "#72a6d6", "#2b6cb0", "#123c6e"),
    dark=("#1f2833", "#25466d", "#2f6cab", "#6aa6e0", "#cfe6ff"),
)
DIVERGING = _scale(
    light=("#7f3603", "#d9822b", "#f1f1ef", "#6aa3d8", "#124a86"),
    dark=("#f2ac66", "#a85b18", "#262c33", "#2f6cab", "#93c6f6"),
)
HEADS = Scale(HEAD_COLOURS, (_CELL_TEXT[False, False],) * len(HEAD_COLOURS))


def head_of(title):
    """Return the number in a title such as "head 1" or "head 1: Bob", or None."""
    found = re.match(r"head (\d+)\b", title)
    return int(found[1]) if found else None


def title_ink(title):
    """Return the colour of the head that a title names, or the page's text colour."""
    head = head_of(title)
    return INK if head is None else HEAD_INKS[head % len(HEAD_INKS)]
