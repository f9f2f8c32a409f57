"""From matplotlib to SVG that can stand in any page: no ids, no fonts, no colours of its own.

A picture is drawn for a room, a width in pixels, with texts of one size, and never shown larger.
As its column narrows, its texts do: first, pictures stand below each other; then a second one,
drawn for a phone, takes the place of the first; where that cannot shrink either, it scrolls.
"""

import io
import math
import re
import warnings
from xml.etree import ElementTree

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from tutorial_lib.figures.ink import INK, STAND_INS

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
LINE, RULE = 17, 1.5  # pixels from line to line of a text, and of a frame or an axis
_SIZE = 14  # pixels of a text as it is drawn
_BELOW, _REDRAWN, _LEAST = 13, 12, 11  # of a text that shrinks: the least until each step is taken
_COLUMN, _PHONE, _NARROWEST, _GAP = 692, 318, 256, 16  # of the page, and between two pictures
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so labels measure the same everywhere
    "font.size": _SIZE,
    "axes.labelsize": _SIZE,
    "axes.titlesize": _SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": _SIZE,
    "xtick.labelsize": _SIZE,
    "ytick.labelsize": _SIZE,
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), RULE),
    "text.parse_math": False,  # a token may be a dollar sign
    "svg.fonttype": "none",
    "svg.hashsalt": "attention-head-by-head",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
}
_PICTURE = f"overflow:visible;stroke-linejoin:round;font-family:inherit;font-size:{_SIZE}px"
_NARROW = frozenset(" ,.:;'()[]|/!fijlrtI1")
_KEPT = ("x", "y", "d", "transform")
_RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")
_RECTANGLE = re.compile(r"M(\S+) (\S+)L(\S+) \2L\3 (\S+)L\1 \4L\1 \2$")
_UNWANTED = ("font-family", "stroke-dashoffset", "stroke-linejoin")
_IMPLIED = (("text-anchor", "start"), ("stroke-linecap", "butt"), ("font-size", f"{_SIZE}px"))


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
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")  # the page has others
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        draw(figure.add_axes((0, 0, 1, 1), facecolor="none"))
        figure.patch.set_visible(False)
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(
            buffer, format="svg", bbox_inches="tight", pad_inches=3 / 72, metadata=metadata
        )
    return _clean(buffer.getvalue())


def length_of(text):
    """Return about the width of a line of text in pixels, whatever the page's font."""
    return sum(5.25 if sign in _NARROW else 8.75 for sign in text)


def draw_within(draw, room, height):
    """Draw on axes as wide as the labels around them leave of a room."""
    labels = _width(draw_svg(draw, room, height)) - room
    return draw_svg(draw, room - labels, height)


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
    rooms = _share(len(draws), least), _PHONE
    wide, narrow = ([draw(room) for draw in draws] for room in rooms)
    if _shrunk(wide, _LEAST) <= _NARROWEST or _widest(narrow) >= _widest(wide):
        narrow, pictures = wide, _to_scale(wide)
    else:
        pairs = zip(_to_scale(wide), _to_scale(narrow), strict=True)
        pictures = [_either(*pair, f"{_shrunk(wide, _REDRAWN)}px") for pair in pairs]
    least = _shrunk(narrow, _LEAST)
    columns = f"max({least}px,min(100%,{_shrunk(wide, _BELOW)}px))"
    style = (
        f"display:grid;gap:0.75rem 1rem;margin-bottom:0.5rem;"
        f"grid-template-columns:repeat(auto-fit,minmax({columns},1fr));"
        f"max-width:{len(draws) * (_widest(wide) + _GAP)}px"
    )
    name = "ahh-grid ahh-wide" if least > _NARROWEST else "ahh-grid"
    return f'<div class="{name}" style="{style}">{"".join(pictures)}</div>{key}'


def _share(count, least):
    """Return each picture's room in a column, with as many in each line as can be."""
    beside = max(1, min(count, int((_COLUMN + _GAP) // (least + _GAP))))
    beside = math.ceil(count / math.ceil(count / beside))
    return (_COLUMN + _GAP) / beside - _GAP


def _width(picture):
    """Return the width that a picture is drawn for."""
    return int(re.search(r"max-width:(\d+)px", picture)[1])


def _widest(pictures):
    return max(map(_width, pictures))


def _shrunk(pictures, size):
    """Return the width of the widest of some pictures at which its texts have a size."""
    return math.ceil(_widest(pictures) * size / _SIZE)


def _to_scale(pictures):
    """Give pictures in columns of one width one scale: the widest fills its column."""
    shares = [100 * _width(picture) / _widest(pictures) for picture in pictures]
    return [
        picture.replace("width:100%", f"width:{share:.4g}%", 1)
        for picture, share in zip(pictures, shares, strict=True)
    ]


def _either(wide, narrow, limit):
    """Return a picture and the one that takes its place where there is less room than a limit.

    No style sheet goes with a figure: what is not shown has a width of 0.
    """
    shown = {wide: f"100% - {limit} + 0.01px", narrow: f"{limit} - 100%"}
    both = [
        re.sub(
            r"(?<=width:)([\d.]+%)", rf"clamp(0px,({room})*9999,\1);display:block", picture, count=1
        )
        for picture, room in shown.items()
    ]
    return f"<div>{''.join(both)}</div>"


class Ticks(Formatter):
    """Write the ticks of one axis in one notation: as powers of ten, or as decimals."""

    def __init__(self, *, is_log=False):
        self.is_log = is_log

    def __call__(self, tick, pos=None):
        """Write one tick."""
        return self.format_ticks([tick])[0]

    def format_ticks(self, values):
        """Write the ticks of an axis."""
        low, high = sorted(self.axis.get_view_interval())
        seen = [pretty(value) for value in values if low <= value <= high and value]
        raised = [text.endswith(_DIGITS) for text in seen]
        if all(raised) or not any(raised):
            return [_grouped(pretty(value)) if self.is_log else pretty(value) for value in values]
        return [_power(value) if self.is_log else _decimal(value) for value in values]


def pretty(number, digits=8):
    """Write a number as one does by hand, in the picture alone: −0.5, 10⁻⁶, 2·10⁻⁶."""
    text = f"{number:.{digits}g}"
    if 0 < abs(number) < 0.001 and "e" not in text:
        return _power(number, digits)
    return _with_power(text)


def _grouped(text):
    """Set the thousands of a whole number apart: 1,000,000."""
    return f"{int(text):,}" if text.isdecimal() else text


def _power(number, digits=8):
    return _with_power(np.format_float_scientific(number, precision=digits - 1, trim="-"))


def _decimal(number, digits=8):
    text = np.format_float_positional(number, precision=digits, fractional=False, trim="-")
    return text.replace("-", "−")


def _with_power(text):
    """Write 2e-06 as 2·10⁻⁶, and other texts as they are."""
    mantissa, _, exponent = text.replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    power = "10" + str(int(exponent.replace("−", "-"))).replace("-", "−").translate(_RAISED)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _clean(source):
    root = ElementTree.fromstring(source)
    shapes = {f"#{node.get('id')}": node for node in root.iter() if node.get("id")}
    _, _, width, height = (round(float(number)) for number in root.get("viewBox").split())
    svg = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        style=f"width:100%;max-width:{width}px;height:auto;{_PICTURE}",
    )
    svg.extend(_visible_parts(root, shapes))
    return ElementTree.tostring(svg, encoding="unicode")


def _visible_parts(parent, shapes):
    """Return paths and texts below a node without their groups, each marker where it is used."""
    parts = []
    for node in parent:
        tag = node.tag.removeprefix(_NAMESPACE)
        if tag == "g":
            inner = _visible_parts(node, shapes)
            parts += _merged(inner, node.get("id")) if "cells" in node.get("id", "") else inner
        elif tag == "use":
            shape = shapes[node.get(_HREF)]
            place = f"translate({node.get('x')} {node.get('y')})"
            style = f"{shape.get('style', '')};{node.get('style', '')}"
            parts.append(_element("path", {"d": shape.get("d"), "transform": place}, style))
        elif tag in ("path", "text"):
            parts.append(_element(tag, node.attrib, node.get("style", ""), node.text))
    return [part for part in parts if part.tag == "text" or _is_painted(part)]


def _element(tag, attributes, style, text=None):
    """Return an element with its numbers rounded and its stand-ins replaced by CSS colours."""
    kept = {name: _short(attributes[name]) for name in _KEPT if name in attributes}
    if "rotate(0 " in kept.get("transform", ""):
        del kept["transform"]
    element = ElementTree.Element(tag, kept | {"style": _css(style)})
    element.text = text
    return element


def _short(numbers):
    numbers = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", numbers)
    numbers = re.sub(r"\.0\b", "", numbers).replace("-0 ", "0 ")
    return re.sub(r" *([MLCQHVz]) *", r"\1", numbers.replace("\n", " ")).strip()


def _css(style):
    """Return the declarations that differ from what the page or the picture as a whole says."""
    declarations = dict(re.findall(r"([\w-]+): *([^;]+)", style))
    if "font" in declarations:  # matplotlib before 3.11 writes style, weight, size in one
        words = re.match(r"(italic )?(?:(\d+|bold) )?([\d.]+px)", declarations.pop("font")).groups()
        names = ("font-style", "font-weight", "font-size")
        declarations |= {name: word for name, word in zip(names, words, strict=True) if word}
    written = []
    for name, value in declarations.items():
        if (name, value) not in _IMPLIED and name not in _UNWANTED:
            written += [f"{name}:{colour}" for colour in STAND_INS.get(value, (value,))]
    return ";".join(written)


def _is_painted(path):
    style = path.get("style")
    return "stroke:" in style or ("fill:none" not in style and "opacity:0" not in style)


def _merged(cells, kind):
    """Join the rectangles of one colour into one path."""
    joined = {}
    for cell in cells:
        joined.setdefault(cell.get("style"), []).append(
            _RECTANGLE.sub(r"M\1 \2H\3V\4H\1z", cell.get("d"))
        )
    crisp = ";shape-rendering:crispEdges" if kind == "solid cells" else ""  # or hairlines show
    return [
        ElementTree.Element("path", {"d": "".join(paths), "style": style + crisp})
        for style, paths in joined.items()
    ]
