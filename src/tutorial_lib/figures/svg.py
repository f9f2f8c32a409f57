"""From matplotlib to SVG that can stand in any page: no ids, no fonts, no colours of its own.

A picture is drawn for a room, a width in pixels, with texts of one size, and never shown larger.
As its column narrows, its texts do: first, pictures stand below each other; then a second one,
drawn for a phone, takes the place of the first; where that cannot shrink either, it scrolls.
"""

import io
import math
import re
import warnings
from base64 import b64encode
from xml.etree import ElementTree

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import Formatter

from tutorial_lib.figures.ink import CSS_COLOURS, INK

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
LINE, RULE = 17, 1.5  # pixels from line to line of a text, and of a frame or an axis
_FONT_SIZE = 14  # pixels of a text as it is drawn
_SHRUNK, _REDRAWN, _LEAST = 13, 12, 11  # of a text that shrinks: the least until each step is taken
_PAGE_WIDTH, _PHONE, _MIN_PHONE, _GAP = 692, 318, 256, 16  # of the page, and between two pictures
_RC_PARAMS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so labels measure the same everywhere
    "font.size": _FONT_SIZE,
    "axes.labelsize": _FONT_SIZE,
    "axes.titlesize": _FONT_SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": _FONT_SIZE,
    "xtick.labelsize": _FONT_SIZE,
    "ytick.labelsize": _FONT_SIZE,
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), RULE),
    "text.parse_math": False,  # a token may be a dollar sign
    "svg.fonttype": "none",
    "svg.hashsalt": "attention-head-by-head",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
}
_ROOT_CSS = f"overflow:visible;stroke-linejoin:round;font-family:inherit;font-size:{_FONT_SIZE}px"
_IMAGE_CSS = f"stroke-linejoin:round;font:{_FONT_SIZE}px sans-serif;background:#fff"
_NARROW_CHARACTERS = frozenset(" ,.:;'()[]|/!fijlrtI1")
_GEOMETRY = ("x", "y", "d", "transform")
_SUPERSCRIPTS = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUPERSCRIPT_DIGITS = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")
_RECTANGLE_PATH = re.compile(r"M(\S+) (\S+)L(\S+) \2L\3 (\S+)L\1 \4L\1 \2$")
_PICTURE = re.compile(r"<div>(<svg.*?</svg>)<svg.*?</svg></div>|(<svg.*?</svg>)")  # the wide one
_MIXED_COLOUR = re.compile(r";[\w-]+:(?:light-dark|color-mix)\((?:[^()]|\([^()]*\))*\)")
_DROPPED_PROPERTIES = ("font-family", "stroke-dashoffset", "stroke-linejoin")
_DEFAULTS = (("text-anchor", "start"), ("stroke-linecap", "butt"), ("font-size", f"{_FONT_SIZE}px"))


def draw_svg(draw, width, height):
    """Draw on axes of exactly so many pixels; labels are added around them.

    Parameters
    ----------
    draw : function that draws on the matplotlib axes it is given
    width, height : of the axes, in pixels; the picture is never shown larger than that

    Returns
    -------
    svg : str, the same bytes on every run
    """
    with matplotlib.style.context(["default", _RC_PARAMS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")  # the page has others
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        draw(figure.add_axes((0, 0, 1, 1), facecolor="none"))
        figure.patch.set_visible(False)
        svg_buffer = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(
            svg_buffer, format="svg", bbox_inches="tight", pad_inches=3 / 72, metadata=metadata
        )
    return _cleaned_svg(svg_buffer.getvalue())


def text_width(text):
    """Return about the width of a line of text in pixels, whatever the page's font."""
    return sum(5.25 if character in _NARROW_CHARACTERS else 8.75 for character in text)


def chart_svg(draw, height):
    """Draw one chart, on axes as wide as the labels around them leave; `height` is of a room."""

    def draw_within(room):
        label_width = _picture_width(draw_svg(draw, room, height(room))) - room
        return draw_svg(draw, room - label_width, height(room))

    return side_by_side([draw_within])


def side_by_side(draws, *, least=0, key=""):
    """Lay pictures out in columns of one width, as many as fit, and a key below them.

    Parameters
    ----------
    draws : functions from a room, in pixels, to a picture that takes no more of it than it needs
    least : room that each picture needs to stand beside others
    key : SVG of what the colours mean

    Returns
    -------
    grid : str
    """
    column_rooms = _column_width(len(draws), least), _PHONE
    wide, narrow = ([draw(room) for draw in draws] for room in column_rooms)
    if _width_at_font(wide, _LEAST) <= _MIN_PHONE or _max_width(narrow) >= _max_width(wide):
        narrow, pictures = wide, _scaled_pictures(wide)
    else:
        picture_pairs = zip(_scaled_pictures(wide), _scaled_pictures(narrow), strict=True)
        limit = f"{_width_at_font(wide, _REDRAWN)}px"
        pictures = [_responsive_svg(*pair, limit) for pair in picture_pairs]
    least = _width_at_font(narrow, _LEAST)
    column_width = f"max({least}px,min(100%,{_width_at_font(wide, _SHRUNK)}px))"
    grid_style = (
        f"display:grid;gap:0.75rem 1rem;margin-bottom:0.5rem;"
        f"grid-template-columns:repeat(auto-fit,minmax({column_width},1fr));"
        f"max-width:{len(draws) * (_max_width(wide) + _GAP)}px"
    )
    class_names = "ahh-grid ahh-wide" if least > _MIN_PHONE else "ahh-grid"
    return f'<div class="{class_names}" style="{grid_style}">{"".join(pictures)}</div>{key}'


def fallback_images(grid):
    """Return the pictures of a grid as images on white, for a viewer that takes SVG out of pages.

    An image knows neither the page's colours nor its font, and has but one width.
    """
    images = []
    for picture in (wide or single for wide, single in _PICTURE.findall(grid)):
        image = re.sub(r'style="[^"]*"', f'style="{_IMAGE_CSS}"', picture, count=1)
        data = b64encode(_MIXED_COLOUR.sub("", image).encode()).decode()
        source, width = f"data:image/svg+xml;base64,{data}", _picture_width(picture)
        images.append(f'<img src="{source}" width="{width}" alt="" />')
    return "".join(images)


def _column_width(n_pictures, min_room):
    """Return each picture's room in a column, with as many in each line as can be."""
    n_columns = max(1, min(n_pictures, int((_PAGE_WIDTH + _GAP) // (min_room + _GAP))))
    n_columns = math.ceil(n_pictures / math.ceil(n_pictures / n_columns))
    return (_PAGE_WIDTH + _GAP) / n_columns - _GAP


def _picture_width(picture):
    """Return the width that a picture is drawn for."""
    return int(re.search(r"max-width:(\d+)px", picture)[1])


def _max_width(pictures):
    return max(map(_picture_width, pictures))


def _width_at_font(pictures, font_size):
    """Return the width of the widest of some pictures at which its texts have a size."""
    return math.ceil(_max_width(pictures) * font_size / _FONT_SIZE)


def _scaled_pictures(pictures):
    """Give pictures in columns of one width one scale: the widest fills its column."""
    width_shares = [100 * _picture_width(picture) / _max_width(pictures) for picture in pictures]
    return [
        picture.replace("width:100%", f"width:{width_share:.4g}%", 1)
        for picture, width_share in zip(pictures, width_shares, strict=True)
    ]


def _responsive_svg(wide_picture, narrow_picture, limit):
    """Return a picture and the one that takes its place where there is less room than a limit.

    No style sheet goes with a figure: what is not shown has a width of 0.
    """
    room_formulas = {wide_picture: f"100% - {limit} + 0.01px", narrow_picture: f"{limit} - 100%"}
    clamped_pictures = [
        re.sub(
            r"(?<=width:)([\d.]+%)", rf"clamp(0px,({room})*9999,\1);display:block", picture, count=1
        )
        for picture, room in room_formulas.items()
    ]
    return f"<div>{''.join(clamped_pictures)}</div>"


def draw_arrow(axes, path, **look):
    """Draw an arrow along a path that may leave the axes."""
    arrow = FancyArrowPatch(path=path, mutation_scale=16, shrinkA=0, shrinkB=0, **look)
    arrow.set_clip_on(False)
    axes.add_patch(arrow)


def draw_legend_above(axes, names, **look):
    """Write the key of several names above the axes, in columns as even as they can be."""
    if len(names) > 1:
        entry_width = 70 + max(map(text_width, names))
        n_rows = -(-len(names) // max(1, int(axes.bbox.width // entry_width)))
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        axes.legend(ncols=-(-len(names) // n_rows), frameon=False, **place, **look)


def open_frame(axes, grid):
    """Leave the frame above and to the right of a chart out, and draw a pale grid behind it."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=INK, alpha=0.15, linewidth=0.8)


class TickFormat(Formatter):
    """Write the ticks of one axis in one notation: as powers of ten, or as decimals."""

    def __init__(self, *, is_log=False):
        self.is_log = is_log

    def __call__(self, tick, pos=None):
        return self.format_ticks([tick])[0]

    def format_ticks(self, values):
        """Write the ticks of an axis."""
        low, high = sorted(self.axis.get_view_interval())
        visible_texts = [number_text(tick) for tick in values if low <= tick <= high and tick]
        has_exponent = [text.endswith(_SUPERSCRIPT_DIGITS) for text in visible_texts]
        if all(has_exponent) or not any(has_exponent):
            texts = list(map(number_text, values))
            return [f"{int(t):,}" if self.is_log and t.isdecimal() else t for t in texts]
        if self.is_log:
            return list(map(_power_of_ten_text, values))
        decimals = {"precision": 8, "fractional": False, "trim": "-"}
        return [np.format_float_positional(n, **decimals).replace("-", "−") for n in values]


def number_text(number, digits=8):
    """Write a number as one does by hand, in the picture alone: −0.5, 10⁻⁶, 2·10⁻⁶."""
    text = f"{number:.{digits}g}"
    if 0 < abs(number) < 0.001 and "e" not in text:
        return _power_of_ten_text(number, digits)
    return _with_superscript(text)


def _power_of_ten_text(number, digits=8):
    return _with_superscript(np.format_float_scientific(number, precision=digits - 1, trim="-"))


def _with_superscript(text):
    """Write 2e-06 as 2·10⁻⁶, and other texts as they are."""
    mantissa, _, exponent = text.replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    power = "10" + str(int(exponent.replace("−", "-"))).replace("-", "−").translate(_SUPERSCRIPTS)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _cleaned_svg(svg_text):
    svg_root = ElementTree.fromstring(svg_text)
    shapes_by_id = {f"#{node.get('id')}": node for node in svg_root.iter() if node.get("id")}
    _, _, width, height = (round(float(number)) for number in svg_root.get("viewBox").split())
    cleaned_root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        style=f"width:100%;max-width:{width}px;height:auto;{_ROOT_CSS}",
    )
    cleaned_root.extend(_visible_elements(svg_root, shapes_by_id))
    return ElementTree.tostring(cleaned_root, encoding="unicode")


def _visible_elements(parent, shapes_by_id):
    """Return paths and texts below a node without their groups, each marker where it is used."""
    elements = []
    for node in parent:
        tag = node.tag.removeprefix(_NAMESPACE)
        if tag == "g":
            inner = _visible_elements(node, shapes_by_id)
            elements += (
                _join_cells(inner, node.get("id")) if "cells" in node.get("id", "") else inner
            )
        elif tag == "use":
            path = shapes_by_id[node.get(_HREF)]
            offset = f"translate({node.get('x')} {node.get('y')})"
            style = f"{path.get('style', '')};{node.get('style', '')}"
            elements.append(_svg_element("path", {"d": path.get("d"), "transform": offset}, style))
        elif tag in ("path", "text"):
            elements.append(_svg_element(tag, node.attrib, node.get("style", ""), node.text))
    return [element for element in elements if element.tag == "text" or _is_painted(element)]


def _svg_element(tag, attributes, style, text=None):
    """Return an element with its numbers rounded and its stand-ins replaced by CSS colours."""
    geometry = {name: _rounded_path(attributes[name]) for name in _GEOMETRY if name in attributes}
    if "rotate(0 " in geometry.get("transform", ""):
        del geometry["transform"]
    element = ElementTree.Element(tag, geometry | {"style": _nondefault_css(style)})
    element.text = text
    return element


def _rounded_path(numbers):
    numbers = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.1f}", numbers)
    numbers = re.sub(r"\.0\b", "", numbers).replace("-0 ", "0 ")
    return re.sub(r" *([MLCQHVz]) *", r"\1", numbers.replace("\n", " ")).strip()


def _nondefault_css(style):
    """Return the declarations that differ from what the page or the picture as a whole says."""
    declarations = dict(re.findall(r"([\w-]+): *([^;]+)", style))
    if "font" in declarations:  # matplotlib before 3.11 writes style, weight, size in one
        words = re.match(r"(italic )?(?:(\d+|bold) )?([\d.]+px)", declarations.pop("font")).groups()
        properties = ("font-style", "font-weight", "font-size")
        declarations |= {key: entry for key, entry in zip(properties, words, strict=True) if entry}
    css_texts = []
    for key, text in declarations.items():
        if (key, text) not in _DEFAULTS and key not in _DROPPED_PROPERTIES:
            css_texts += [f"{key}:{colour}" for colour in CSS_COLOURS.get(text, (text,))]
    return ";".join(css_texts)


def _is_painted(path):
    style = path.get("style")
    return "stroke:" in style or ("fill:none" not in style and "opacity:0" not in style)


def _join_cells(cells, cell_kind):
    """Join the rectangles of one colour into one path."""
    paths_by_style = {}
    for cell in cells:
        paths_by_style.setdefault(cell.get("style"), []).append(
            _RECTANGLE_PATH.sub(r"M\1 \2H\3V\4H\1z", cell.get("d"))
        )
    edges = ";shape-rendering:crispEdges" if cell_kind == "solid cells" else ""  # or hairlines show
    return [
        ElementTree.Element("path", {"d": "".join(paths), "style": style + edges})
        for style, paths in paths_by_style.items()
    ]
