"""What is read from a figure: its pictures, their texts, paths and colours."""

import re
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_rgb

from tutorial_lib.figures import ink

SVG = "{http://www.w3.org/2000/svg}"


def stored_text(figure):
    """All that a notebook stores of a figure, as one string."""
    bundle = figure._repr_mimebundle_()
    return bundle["text/plain"] + bundle["text/html"]


def parsed_svg(figure, *, phone=False):
    """The pictures of a figure as elements, as they are on a desk or on a phone; or one of them."""
    if isinstance(figure, ElementTree.Element):
        return figure
    svg_root = ElementTree.fromstring(f"<div>{figure.svg}</div>")
    for picture_pair in svg_root.iterfind("div/div"):
        picture_pair.remove(picture_pair[0 if phone else 1])
    return svg_root


def pictures(figure, **options):
    """The pictures of a figure, one by one."""
    return list(parsed_svg(figure, **options).iter(f"{SVG}svg"))


def texts(figure, **options):
    """The text elements of a figure or of one picture."""
    return list(parsed_svg(figure, **options).iter(f"{SVG}text"))


def words(figure, **options):
    """What is written in a figure, in its order."""
    return [text.text for text in texts(figure, **options)]


def text_xy(figure, **options):
    """Where each text stands that is not turned, (x, y) by the text."""
    level_texts = [t for t in texts(figure, **options) if t.get("x")]
    return {t.text: np.array([float(t.get("x")), float(t.get("y"))]) for t in level_texts}


def paths(figure, **options):
    """The paths of a figure or of one picture."""
    return list(parsed_svg(figure, **options).iter(f"{SVG}path"))


def points_of(path):
    """The points of a path."""
    return np.array(re.findall(r"([-\d.]+) ([-\d.]+)", path.get("d")), dtype=float)


def colours_of(scale, levels):
    """The colours on light pages of steps of a scale."""
    return [ink.CSS_COLOURS[scale.cells[level]][0] for level in levels]


def luminance(colour):
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    rgb = np.array(to_rgb(colour))
    linear_rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear_rgb @ (0.2126, 0.7152, 0.0722)


def contrast(first_colour, second_colour):
    """Contrast of two colours, from 1 to 21."""
    low_luminance, high_luminance = sorted((luminance(first_colour), luminance(second_colour)))
    return (high_luminance + 0.05) / (low_luminance + 0.05)


def on_both_pages(colour):
    """A colour as it is on light and on dark pages."""
    css = ink.CSS_COLOURS.get(colour, (colour,))[-1]
    return re.findall(r"#[0-9a-f]+", css.removeprefix("light-dark")) * (1 + ("(" not in css))


def cell_colours(figure):
    """The colours on light pages of the cells of each picture, row by row."""
    for picture in pictures(figure):
        colours = {}
        for path in paths(picture):
            for x, y in re.findall(r"M(\S+) (\S+?)H", path.get("d")):
                colours[float(y), float(x)] = re.search(r"fill:(#\w+)", path.get("style"))[1]
        yield [colours[cell_place] for cell_place in sorted(colours)]


def coloured_paths(figure, *, marks):
    """The paths in a head's colour: the markers and arrowheads, or the lines."""
    head_paths = (path for path in paths(figure) if "color-mix" in path.get("style"))
    return [path for path in head_paths if ("transform" in path.attrib) == marks]
