"""Masks as small drawings: which key each query may look at."""

import numpy as np

from tutorial_lib.contract import require, require_value_fits_annotation
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import Figure, Table, require_nonempty_dict
from tutorial_lib.figures.ink import CSS_COLOURS, SEQUENTIAL
from tutorial_lib.figures.svg import LINE, side_by_side, text_width

_DRAWING_SIDE, _MAX_CELL = 144, 18  # pixels of the longer side of a drawing, and of a cell at most
_STROKE = ";".join(f"stroke:{colour}" for colour in CSS_COLOURS[SEQUENTIAL.cells[62]])
_HIDDEN_FILL = "fill:currentColor;fill-opacity:.07"
_PAINTED, _GAP_SHARE = 0.86, 0.14  # of a cell: what is painted, and what parts it from the next


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
    require_nonempty_dict("masks", masks)
    for title, mask in masks.items():
        require(
            isinstance(mask, np.ndarray) and mask.dtype == bool,
            TypeError,
            f"{title!r} is no array of booleans; expected True where a query may look. "
            f"Compare first, for example weights > 0.",
        )
        require_value_fits_annotation(repr(title), mask.astype(int), "T S")
    printed_masks = {escaped_name(title): mask for title, mask in masks.items()}
    panel_draws = [lambda room, t=t, m=m: _titled_mask_svg(t, m) for t, m in printed_masks.items()]
    min_width = max(_mask_panel_width_px(title, mask) for title, mask in printed_masks.items())
    counts = " ".join(f"{title}: {pair_count_text(mask)}." for title, mask in printed_masks.items())
    tables = tuple(_seen_keys_table(title, mask) for title, mask in printed_masks.items())
    svg = side_by_side(panel_draws, least=min_width)
    return Figure(svg, tables, caption, alt or f"Masks, queries down and keys across. {counts}")


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
    path_elements = f'<path d="{_path_data(mask)}" style="{_stroke_css(1)}"/>' if mask.any() else ""
    if through is not None and (indirect := through & ~mask).any():
        path_elements += f'<path d="{_path_data(indirect)}" style="{_stroke_css(1)};opacity:.45"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {S} {T}">'
        f'<rect width="{S}" height="{T}" style="{_HIDDEN_FILL}"/>{path_elements}</svg>'
    )


def pair_count_text(mask):
    """Say how many pairs a mask allows."""
    return f"{int(mask.sum()):,} of {mask.size:,} pairs"


def _path_data(mask, *, cell=1):
    """Return one path: a line for each run of keys in a row, whose dashes are its cells."""
    segments = []
    for row, row_flags in enumerate(mask):
        for first_key, last_key in _key_runs(row_flags):
            segment_x = (first_key + _GAP_SHARE / 2) * cell
            segment_length = (last_key - first_key + _PAINTED) * cell
            segments.append(f"M{segment_x:.4g} {(row + 0.5) * cell:.4g}h{segment_length:.4g}")
    return "".join(segments)


def _key_runs(row_flags):
    """Yield the first and the last key of each run that a row may look at."""
    edges = np.flatnonzero(np.diff(row_flags, prepend=False, append=False)).tolist()
    for first_key, end in zip(edges[::2], edges[1::2], strict=True):
        yield first_key, end - 1


def _stroke_css(cell_size):
    dashes = f"{_PAINTED * cell_size:.4g} {_GAP_SHARE * cell_size:.4g}"
    return f"fill:none;{_STROKE};stroke-width:{_PAINTED * cell_size:.4g};stroke-dasharray:{dashes}"


def _mask_cell_px(mask):
    return min(_MAX_CELL, _DRAWING_SIDE // max(mask.shape)) or _DRAWING_SIDE / max(mask.shape)


def _mask_panel_width_px(title, mask):
    return round(max(LINE + mask.shape[1] * _mask_cell_px(mask), text_width(title) * 1.1))


def _titled_mask_svg(title, mask):
    """Draw a mask below its title, with the names of both axes."""
    cell, width = _mask_cell_px(mask), _mask_panel_width_px(title, mask)
    grid_h, grid_w = (axis_length * cell for axis_length in mask.shape)
    grid_top, bottom = LINE + 6, 2 * LINE + 8 + grid_h
    key_label = f'<text x="{LINE + grid_w:g}" y="{bottom - 4:g}" text-anchor="end">key</text>'
    query_transform = f"translate(12 {grid_top + grid_h:g}) rotate(-90)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom:g}" '
        f'style="width:100%;max-width:{width}px;height:auto;overflow:visible;'
        f'font-family:inherit;font-size:14px;fill:currentColor">'
        f'<text x="0" y="14" style="font-weight:bold">{_escape_xml(title)}</text>'
        f'<text transform="{query_transform}">query</text>'
        f'<g transform="translate({LINE} {grid_top})"><rect width="{grid_w:g}" height="{grid_h:g}" '
        f'style="{_HIDDEN_FILL}"/><path d="{_path_data(mask, cell=cell)}" '
        f'style="{_stroke_css(cell)}"/></g>'
        f"{key_label}</svg>"
    )


def _escape_xml(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _seen_keys_table(title, mask):
    """Say of each query how many keys it may look at, and which."""
    cells = [[str(int(row.sum())), _key_ranges_text(row)] for row in mask]
    queries = [str(query) for query in range(len(mask))]
    title = f"{title}, {pair_count_text(mask)}"
    return Table(title, np.array(cells), queries, ["keys", "which"], "query")


def _key_ranges_text(row_flags):
    """Write the places of the keys of a row, those in a run as 2–5."""
    runs = _key_runs(row_flags)
    return ", ".join(f"{a}–{b}" if a < b else str(a) for a, b in runs) or "none"
