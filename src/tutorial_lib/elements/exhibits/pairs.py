"""A grid of pairs, query down and key across, as it stands before its script takes it over."""

import numpy as np

from tutorial_lib.elements.tables import grid


def pair_grid(cells, *, names=None, caption="query ↓ &nbsp; key →", css_class=""):
    """Draw a row for each query, a cell for each key.

    Parameters
    ----------
    cells : for each query, of each key the attributes of its cell and the text in it
    names : what keys are called, and queries, which are the last of them; places unless given
    caption : HTML that stands above
    css_class : a class of the frame around the grid
    """
    names = names or range(len(cells[0]))
    attributes = f'class="tl-mask" style="--keys:{len(names)}"'
    table = grid(cells, names[-len(cells) :], names, caption, attributes)
    return f'<div class="{f"tl-drawn {css_class}".strip()}">{table}</div>'


def mask_to_hex(mask):
    """Write a mask as a link does: each row as digits of base 16, the first key foremost."""
    digits = -(-mask.shape[1] // 4)
    return "".join(f"{int(''.join(map(str, row)), 2):0{digits}x}" for row in mask.astype(int))


def mask_from_hex(hex_digits, n_keys):
    """Read a mask that a link has written, of so many keys."""
    digits = -(-n_keys // 4)
    rows = [hex_digits[i : i + digits] for i in range(0, len(hex_digits), digits)]
    return np.array([[digit == "1" for digit in f"{int(row, 16):0{n_keys}b}"] for row in rows])
