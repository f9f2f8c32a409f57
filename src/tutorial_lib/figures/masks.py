"""Masks as small drawings: which key each query may look at."""

from itertools import groupby

import numpy as np

from tutorial_lib.contract import require, require_value
from tutorial_lib.describe import printable
from tutorial_lib.figures.figure import Figure, Table, require_some
from tutorial_lib.figures.ink import SEQUENTIAL, STAND_INS
from tutorial_lib.figures.svg import LINE, length_of, side_by_side

_SIDE, _LARGEST = 144, 18  # pixels of the longer side of a drawing, and of a cell at most
_SEEN = ";".join(f"stroke:{colour}" for colour in STAND_INS[SEQUENTIAL.cells[62]])
_HIDDEN = "fill:currentColor;fill-opacity:.07"
_FULL, _GAP = 0.86, 0.14  # of a cell: what is painted, and what parts it from the next


def mask_panels(masks, *, caption, alt=None):
    """Draw masks side by side: queries down, keys across, a painted cell where one may look.

    Parameters
    ----------
    masks : dict of title -> (T, S) booleans; True = may look
    caption : what to look for
    alt : the picture in words; by default how many pairs each mask allows

    Returns
    -------
    figure : Figure; each picture is one path, whatever its size

    Raises
    ------
    TypeError : a mask is no array of booleans
    ShapeError : other than two axes
    ValueError : no mask
    """
    require_some("masks", masks)
    for title, mask in masks.items():
        require(
            isinstance(mask, np.ndarray) and mask.dtype == bool,
            TypeError,
            f"{title!r} is no array of booleans; expected True where a query may look. "
            f"Compare first, for example weights > 0.",
        )
        require_value(repr(title), mask.astype(int), "T S")
    named = {printable(title): mask for title, mask in masks.items()}
    draws = [lambda room, t=t, m=m: _picture(t, m) for t, m in named.items()]
    least = max(_width(title, mask) for title, mask in named.items())
    words = " ".join(f"{title}: {in_words(mask)}." for title, mask in named.items())
    tables = tuple(_table(title, mask) for title, mask in named.items())
    svg = side_by_side(draws, least=least)
    return Figure(svg, tables, caption, alt or f"Masks, queries down and keys across. {words}")


def mask_svg(mask, *, through=None):
    """Draw one mask without words, as wide as the room it is given.

    Parameters
    ----------
    mask : (T, S) booleans
    through : (T, S) booleans, drawn fainter: what is seen through something else, such as a pool

    Returns
    -------
    svg : str
    """
    T, S = mask.shape
    drawn = f'<path d="{_path(mask)}" style="{_stroke(1)}"/>' if mask.any() else ""
    if through is not None and (faint := through & ~mask).any():
        drawn += f'<path d="{_path(faint)}" style="{_stroke(1)};opacity:.45"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {S} {T}">'
        f'<rect width="{S}" height="{T}" style="{_HIDDEN}"/>{drawn}</svg>'
    )


def in_words(mask):
    """Say how many pairs a mask allows."""
    return f"{int(mask.sum()):,} of {mask.size:,} pairs"


def _path(mask, *, cell=1, top=0):
    """Return one path: a line for each run of keys in a row, whose dashes are its cells."""
    runs = []
    for row, allowed in enumerate(mask.tolist()):
        y = top + (row + 0.5) * cell
        for seen, keys in groupby(range(len(allowed)), key=allowed.__getitem__):
            first, *_, last = [*keys] * 2
            if seen:
                start = (first + _GAP / 2) * cell
                length = (last - first + _FULL) * cell
                runs.append(f"M{start:.4g} {y:.4g}h{length:.4g}")
    return "".join(runs)


def _stroke(cell):
    dashes = f"{_FULL * cell:.4g} {_GAP * cell:.4g}"
    return f"fill:none;{_SEEN};stroke-width:{_FULL * cell:.4g};stroke-dasharray:{dashes}"


def _cell(mask):
    return min(_LARGEST, _SIDE // max(mask.shape)) or _SIDE / max(mask.shape)


def _width(title, mask):
    return round(max(LINE + mask.shape[1] * _cell(mask), length_of(title) * 1.1))


def _picture(title, mask):
    """Draw a mask below its title, with the names of both axes."""
    cell = _cell(mask)
    height, width = (length * cell for length in mask.shape)
    top, bottom = LINE + 6, 2 * LINE + 8 + height
    across = f'<text x="{LINE + width:g}" y="{bottom - 4:g}" text-anchor="end">key</text>'
    place = f"translate(12 {top + height:g}) rotate(-90)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_width(title, mask)} {bottom:g}" '
        f'style="width:100%;max-width:{_width(title, mask)}px;height:auto;overflow:visible;'
        f'font-family:inherit;font-size:14px;fill:currentColor">'
        f'<text x="0" y="14" style="font-weight:bold">{_escaped(title)}</text>'
        f'<text transform="{place}">query</text>'
        f'<g transform="translate({LINE} {top})"><rect width="{width:g}" height="{height:g}" '
        f'style="{_HIDDEN}"/><path d="{_path(mask, cell=cell)}" style="{_stroke(cell)}"/></g>'
        f"{across}</svg>"
    )


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _table(title, mask):
    """Say of each query how many keys it may look at, and which."""
    rows = [[str(int(row.sum())), _spans(row)] for row in mask]
    names = [str(query) for query in range(len(mask))]
    return Table(f"{title}, {in_words(mask)}", np.array(rows), names, ["keys", "which"], "query")


def _spans(row):
    """Write the places of the keys of a row, those in a run as 2–5."""
    spans = []
    for seen, keys in groupby(range(len(row)), key=row.tolist().__getitem__):
        first, *_, last = [*keys] * 2
        if seen:
            spans.append(str(first) if first == last else f"{first}–{last}")
    return ", ".join(spans) or "none"
