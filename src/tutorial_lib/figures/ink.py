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
CSS_COLOURS = {}  # stand-in -> CSS colours; a browser takes the last one that it understands


class ColourScale(NamedTuple):
    """A colour scale as stand-ins: of the cells, and of the text that is legible on each."""

    cells: tuple
    texts: tuple


def _register_css_stand_in(*css_colours):
    hex_code = f"#{0x010100 + len(CSS_COLOURS):06x}"
    CSS_COLOURS[hex_code] = css_colours
    return hex_code


def _light_dark_stand_in(light, dark):
    return _register_css_stand_in(
        *([light] if light == dark else [light, f"light-dark({light},{dark})"])
    )


def _is_light(colour):
    """Tell whether black text has more contrast on a colour than white text (WCAG 2)."""
    rgb = np.array(to_rgb(colour))
    linear_rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear_rgb @ [0.2126, 0.7152, 0.0722]
    return (luminance + 0.05) ** 2 > 0.05 * 1.05


def _colour_ramp(*stops):
    """Return LEVELS colours, evenly from the first stop to the last."""
    stop_positions = np.linspace(0, len(stops) - 1, LEVELS)
    channels = np.array([to_rgb(stop) for stop in stops]).T
    channel_ramps = [np.interp(stop_positions, range(len(stops)), channel) for channel in channels]
    return [to_hex(rgb) for rgb in np.stack(channel_ramps, axis=1)]


def _light_dark_colour_scale(light, dark):
    inks = list(zip(_colour_ramp(*light), _colour_ramp(*dark), strict=True))
    text_inks = [_TEXT_INKS[_is_light(on_light), _is_light(on_dark)] for on_light, on_dark in inks]
    return ColourScale(
        tuple(_light_dark_stand_in(*colour_pair) for colour_pair in inks), tuple(text_inks)
    )


_TEXT_COLOURS = {True: "#000", False: "#fff"}
_TEXT_INKS = {
    (on_light, on_dark): _light_dark_stand_in(_TEXT_COLOURS[on_light], _TEXT_COLOURS[on_dark])
    for on_light in (True, False)
    for on_dark in (True, False)
}

INK = _register_css_stand_in("currentColor")
PAPER = _TEXT_INKS[False, True]  # what INK is not: white on light pages, black on dark ones
HEAD_INKS = tuple(  # mixed with the text colour, so legible as text on either page
    _register_css_stand_in(colour, f"color-mix(in srgb,{colour} 65%,currentColor)")
    for colour in HEAD_COLOURS
)
# Both end far from the page's colour; blue against orange survives every colour blindness.
SEQUENTIAL = _light_dark_colour_scale(
    light=("#edf2f8", "#b7d0ea", "#72a6d6", "#2b6cb0", "#123c6e"),
    dark=("#1f2833", "#25466d", "#2f6cab", "#6aa6e0", "#cfe6ff"),
)
DIVERGING = _light_dark_colour_scale(
    light=("#7f3603", "#d9822b", "#f1f1ef", "#6aa3d8", "#124a86"),
    dark=("#f2ac66", "#a85b18", "#262c33", "#2f6cab", "#93c6f6"),
)
HEADS = ColourScale(HEAD_COLOURS, (_TEXT_INKS[False, False],) * len(HEAD_COLOURS))


def head_number_in_title(title):
    """Return the number in a title such as "head 1" or "head 1: Bob", or None."""
    title_match = re.match(r"head (\d+)\b", title)
    return int(title_match[1]) if title_match else None


def title_colour(title):
    """Return the colour of the head that a title names, or the page's text colour."""
    head_number = head_number_in_title(title)
    return INK if head_number is None else HEAD_INKS[head_number % len(HEAD_INKS)]
