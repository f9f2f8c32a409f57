"""A mask as a small drawing: which key each query may look at."""

import numpy as np

from tutorial_lib.figures.ink import CSS_COLOURS, SEQUENTIAL

_HIDDEN_FILL = "fill:currentColor;fill-opacity:.07"
_PAINTED, _GAP_SHARE = 0.86, 0.14  # of a cell: what is painted, and what parts it from the next
_COLOURS = ";".join(f"stroke:{colour}" for colour in CSS_COLOURS[SEQUENTIAL.cells[62]])
_STROKE_CSS = (
    f"fill:none;{_COLOURS};stroke-width:{_PAINTED};stroke-dasharray:{_PAINTED} {_GAP_SHARE}"
)


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
    path_elements = f'<path d="{_path_data(mask)}" style="{_STROKE_CSS}"/>' if mask.any() else ""
    if through is not None and (indirect := through & ~mask).any():
        path_elements += f'<path d="{_path_data(indirect)}" style="{_STROKE_CSS};opacity:.45"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {S} {T}">'
        f'<rect width="{S}" height="{T}" style="{_HIDDEN_FILL}"/>{path_elements}</svg>'
    )


def _path_data(mask):
    """Return one path: a line for each run of keys in a row, whose dashes are its cells."""
    segments = []
    for row, row_flags in enumerate(mask):
        edges = np.flatnonzero(np.diff(row_flags, prepend=False, append=False)).tolist()
        for first_key, end in zip(edges[::2], edges[1::2], strict=True):
            length = end - 1 - first_key + _PAINTED
            segments.append(f"M{first_key + _GAP_SHARE / 2:.4g} {row + 0.5:.4g}h{length:.4g}")
    return "".join(segments)
