"""The record that every plotting function returns: panels of SVG and the numbers they draw."""

from dataclasses import dataclass
from fractions import Fraction
from html import escape

import numpy as np

from tutorial_lib.contract import require_value_fits_annotation
from tutorial_lib.describe import entry_formatter, format_array, fraction_text
from tutorial_lib.errors import ShapeError, require_finite
from tutorial_lib.figures.svg import fallback_images

_TABLE_CSS = (
    "width:auto;margin:0.5rem 0;border-collapse:separate;border-spacing:0.8rem 0.15rem;"
    "text-align:right;font-variant-numeric:tabular-nums"
)
_NO_MATH_CSS = "tex2jax_ignore mathjax_ignore"  # a token may be a dollar sign
# GitHub, and Jupyter for a notebook that it does not trust, strip style sheets and SVG, but not
# images; texts of the SVG, which may be left, have no size. Elsewhere the rule hides the images.
_FALLBACK_RULE = "<style>style+.ahh-fallback{display:none}</style>"


@dataclass(frozen=True)
class Table:
    """One titled table of numbers, as the texts that are printed."""

    title: str  # what the numbers are
    cells: np.ndarray  # (rows, columns) of texts
    rows: list  # names of its entries, as those of the columns
    columns: list
    corner: str = ""  # names of the two axes, such as "query, key"

    def text(self):
        """Lay the table out as `show` does."""
        table = format_array(self.cells, str, rows=self.rows, columns=self.columns)
        return f"{self.title}   {self.cells.shape}\n{table}"

    def html(self):
        """Return the table as HTML, in a box of its own that scrolls when it is wide."""
        header_html = "".join(f'<th scope="col">{escape(column)}</th>' for column in self.columns)
        row_htmls = [
            f'<tr><th scope="row">{escape(row_name)}</th>'
            + "".join(f"<td>{escape(text)}</td>" for text in cells)
            + "</tr>"
            for row_name, cells in zip(self.rows, self.cells.tolist(), strict=True)
        ]
        title_html = escape(self.title)
        return (
            f'<div style="overflow-x:auto" tabindex="0" role="group" aria-label="{title_html}">'
            f'<table class="ahh-numbers {_NO_MATH_CSS}" style="{_TABLE_CSS}">'
            f'<caption style="text-align:left;color:inherit">{title_html}</caption>'
            f"<thead><tr><td>{escape(self.corner)}</td>{header_html}</tr></thead>"
            f"<tbody>{''.join(row_htmls)}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Figure:
    """A static figure: what notebooks and pages show, with its numbers a click away.

    Parameters
    ----------
    svg : SVG elements, laid out by `side_by_side`
    tables : the rounded numbers that the panels draw
    caption : what to look for
    alt : the picture in words, for those who cannot see it
    """

    svg: str
    tables: tuple
    caption: str
    alt: str

    def text(self):
        """Return the caption and the numbers as text."""
        return "\n".join([self.caption, *(table.text() for table in self.tables)])

    def html(self):
        """Return the figure as one HTML element that follows the page's text colour."""
        tables_html = "".join(table.html() for table in self.tables)
        alt_html = escape(self.alt)
        images_html = fallback_images(self.svg).replace('alt=""', f'alt="{alt_html}"', 1)
        tab_index = ' tabindex="0"' if "ahh-wide" in self.svg else ""  # a keyboard can scroll it
        return (
            '<figure class="ahh-figure" style="margin:1rem 0">'
            f'<div class="ahh-panels {_NO_MATH_CSS}" role="img" aria-label="{alt_html}" '
            f'style="overflow-x:auto;font-size:0"{tab_index}>{_FALLBACK_RULE}'
            f'<div class="ahh-fallback">{images_html}</div>{self.svg}</div>'
            f'<figcaption style="margin:0.5rem 0">{escape(self.caption)}</figcaption>'
            f"<details><summary>The numbers</summary>{tables_html}</details></figure>"
        )

    def __repr__(self):
        return self.text()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.text(), "text/html": self.html()}


def rounded_numbers_and_texts(array, *, fine=False, fractions=False):
    """Round an array as `show` prints it, to 4 decimals.

    Parameters
    ----------
    array : integers or floats
    fine : keep 4 digits of a number that is close to 0, for a logarithmic axis
    fractions : write 4/7 in place of 0.5714, as `show_fractions` does

    Returns
    -------
    numbers : float array, what is drawn
    texts : array of str, what is written
    """
    format_entry = fraction_text if fractions else entry_formatter(array, 4)
    parse = Fraction if fractions else float
    texts = [
        f"{entry:.3e}" if fine and abs(entry) < 0.01 else format_entry(entry)
        for entry in array.ravel().tolist()
    ]
    numbers = np.array([float(parse(text)) for text in texts])
    return numbers.reshape(array.shape), np.array(texts).reshape(array.shape)


def require_nonempty_dict(name, panels):
    """Require a dict with at least one entry."""
    if not isinstance(panels, dict) or not panels:
        raise ValueError(
            f"{name} is {panels!r}; expected a dict with at least one entry. "
            f"Give each a name: {{'head 0': ...}}."
        )


def require_plottable(name, array, axes, *, limits=(-np.inf, np.inf), log=False, **entries):
    """Require finite numbers with these axes, and what belongs to each entry of an axis.

    Parameters
    ----------
    name : what the caller calls the array
    array : the array
    axes : as in an annotation
    limits : the least and the largest number, but for a rounding error
    log : whether they stand on a logarithmic axis
    entries : by axis, names or places, one for each of its entries; None for none

    Raises
    ------
    TypeError : no array of numbers
    ShapeError : other axes, or another number of entries
    ValueError : NaN, infinity, or a number that is outside of the limits or has no logarithm
    """
    require_value_fits_annotation(name, array, f"raw {axes}")
    require_finite(name, array)
    for axis, length in zip(axes.split(), array.shape, strict=True):
        labels = entries.get(axis)
        if labels is not None and len(labels) != length:
            raise ShapeError(
                f"{name} has shape {array.shape}, but {axis} has {len(labels)} entries, {labels}; "
                f"expected {length}, one for each along that axis. Make the two agree."
            )
    low, high = limits
    misfits = np.argwhere((array < low - 1e-9) | (array > high + 1e-9) | (log & (array <= 0)))
    if len(misfits):
        position = tuple(misfits[0].tolist())
        limits_text = f"{low} to {high}. Draw other numbers with signed_maps."
        demand = "positive numbers on a logarithmic axis. Leave log= out." if log else limits_text
        raise ValueError(f"{name} is {array[position]} at position {position}; expected {demand}")


def short_label(name):
    """Cut a long name for the picture; the table has it in full."""
    return name if len(name) <= 20 else name[:19] + "…"


def on_two_lines(text, max_length):
    """Break a text longer than so many signs over two lines, at the blank nearest its middle."""
    blank_positions = [break_position for break_position, char in enumerate(text) if char == " "]
    if len(text) <= max_length or not blank_positions:
        return text
    break_position = min(blank_positions, key=lambda position: abs(len(text) - 1 - 2 * position))
    return f"{text[:break_position]}\n{text[break_position + 1 :]}"
