"""Deterministic text about arrays: what the chapters print."""

import os
from fractions import Fraction
from itertools import product

import numpy as np

# How far from a rounding boundary a number must be: more than two processors differ. In single
# precision, with few decimals, five times what a trained model's losses do; relative above 10.
FLOAT64_MARGIN, FLOAT32_MARGIN, FEW_DECIMALS = 1e-9, 8e-5, 3


def show(label, value, *, rows=None, columns=None, decimals=4):
    """Print a number or an array with its shape, one matrix after the other.

    Parameters
    ----------
    label : what the value is, for the reader
    value : number, boolean, array of any shape, or tensor, also one that requires a gradient
    rows, columns : names of the entries of the last two axes, such as tokens
    decimals : at most so many; fewer where all values have fewer; -2 rounds to hundreds

    Raises
    ------
    ValueError : names that do not match an axis; or, when outputs are refreshed or compared, a
        value too close to a rounding boundary to be stable. Nothing is printed then
    """
    array = _as_numpy(value)
    _print_array(label, array, entry_formatter(array, decimals), rows, columns)


def show_fractions(label, value, *, rows=None, columns=None):
    """Print a number or an array as `show` does, in fractions with denominators up to 1000.

    Parameters
    ----------
    label, value, rows, columns : as for `show`

    Raises
    ------
    ValueError : names that do not match an axis, or a value that is no such fraction. Nothing is
        printed then
    """
    _print_array(label, _as_numpy(value), fraction_text, rows, columns)


def _as_numpy(value):
    # NumPy refuses a tensor that requires a gradient
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def _print_array(label, array, format_entry, rows, columns):
    if array.ndim == 0:
        for axis_name, names in {"rows": rows, "columns": columns}.items():
            _checked_entry_names(axis_name, names, None)
        text = f"{label}: {format_entry(array.item())}"
    elif array.size == 0:
        text = f"{label}   {array.shape}"
    else:
        table = format_array(array, format_entry, rows=rows, columns=columns)
        text = f"{label}   {array.shape}\n{table}" + "\n" * (array.ndim > 1)  # a gap between tables
    print(text)


def format_array(array, number, *, rows=None, columns=None):
    """Lay out an array as text: one aligned table for each matrix of the last two axes.

    Parameters
    ----------
    array : one axis or more
    number : function from an entry to its text
    rows, columns : names of the entries of the last two axes

    Raises
    ------
    ValueError : as many names as entries are expected
    """
    matrices = array[None] if array.ndim == 1 else array
    rows = _checked_entry_names("rows", rows, None if array.ndim == 1 else matrices.shape[-2])
    columns = _checked_entry_names("columns", columns, matrices.shape[-1])
    tables = []
    for index in product(*(range(length) for length in matrices.shape[:-2])):
        heading = [f"[{', '.join(str(axis_index) for axis_index in index)}]"] if index else []
        cells = [[number(entry.item()) for entry in row] for row in matrices[index]]
        tables.append("\n".join(heading + _aligned_table_lines(cells, rows, columns)))
    return "\n".join(tables)


def describe_attention(weights, tokens, *, query, head=0):
    """Say in a sentence where one query of one head looks, strongest first.

    Parameters
    ----------
    weights : (H, T, S)
    tokens : S names of the keys; the query is the same sequence
    query : position of the query in the sequence
    head : number of the head

    Raises
    ------
    TypeError : weights that are no NumPy array
    ValueError : weights without three axes, other than S tokens, no such head or query
    """
    if not isinstance(weights, np.ndarray):
        raise TypeError(
            f"weights is a {type(weights).__name__}; expected a NumPy array. "
            f"Convert it first: np.asarray(weights)."
        )
    if weights.ndim != 3 or len(tokens) != weights.shape[-1]:
        raise ValueError(
            f"weights has shape {weights.shape} and there are {len(tokens)} tokens; expected "
            f"(H, T, S) and S tokens. Pick one sequence of a batch first: weights[0]."
        )
    if not (0 <= head < weights.shape[0] and 0 <= query < min(weights.shape[1], len(tokens))):
        raise ValueError(
            f"head={head}, query={query}; expected a head below {weights.shape[0]} and a query "
            f"below {weights.shape[1]}. Both are counted from 0."
        )
    row = weights[head, query]
    shown = [round_unless_near_tie(weight, 3) for weight in row.tolist()]  # equal texts in order
    key_order = [s for s in np.argsort([-weight for weight in shown], kind="stable") if row[s] > 0]
    key_texts = [f"{tokens[s]} {_trimmed_decimal_text(shown[s], 3)}" for s in key_order]
    key_list = ", ".join(key_texts) if key_texts else "nothing"
    return f"Head {head}: {tokens[query]} looks at {key_list}."


def round_unless_near_tie(value, decimals, margin=FLOAT64_MARGIN):
    """Round a number; when outputs are refreshed or compared, refuse one that could flip.

    A value so near, within `margin`, to a rounding boundary may round up on one machine and down on
    another. It is refused only where the environment variable TUTORIAL_LIB_STRICT is set.

    Raises
    ------
    ValueError : too close to a boundary
    """
    decimal_part = abs(value) * 10.0**decimals % 1
    if os.environ.get("TUTORIAL_LIB_STRICT") and abs(decimal_part - 0.5) < margin * 10.0**decimals:
        raise ValueError(
            f"{value!r} lies on a rounding boundary at {decimals} decimals, so its last digit may "
            f"differ between machines. Print more decimals, a fraction, or a comparison."
        )
    return round(value, decimals) + 0.0  # -0.0 becomes 0.0


def escaped_name(name):
    """Write a name in one line: a token may be a line break."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(name))


def _is_rounding_tie(value, decimals):
    scaled_value = value * 2.0 ** (decimals + 1)
    return scaled_value == round(scaled_value) and abs(value) * 10.0**decimals % 1 == 0.5


def entry_formatter(array, decimals):
    """Return a function that prints each entry with as many decimals as the array needs."""
    if array.dtype.kind not in "fiub":
        return str
    if array.dtype.kind != "f":
        return lambda entry: "✓·"[not entry] if isinstance(entry, bool) else str(entry)
    finite_entries = [entry for entry in array.ravel().tolist() if np.isfinite(entry)]
    is_single = array.dtype == np.float32 and decimals <= FEW_DECIMALS
    while not is_single and any(_is_rounding_tie(entry, decimals) for entry in finite_entries):
        decimals += 1  # an exact short decimal such as 1/32 prints in full

    def round_entry(value):
        margin = FLOAT32_MARGIN * max(1, abs(value) / 10) if is_single else FLOAT64_MARGIN
        return round_unless_near_tie(value, decimals, margin)

    texts = (
        _trimmed_decimal_text(round_entry(entry), max(decimals, 0)) for entry in finite_entries
    )
    n_decimals = max(map(_count_decimals, texts), default=0)
    return lambda entry: f"{round_entry(entry):.{n_decimals}f}"


def _trimmed_decimal_text(value, decimals):
    text = f"{round_unless_near_tie(value, decimals):.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _count_decimals(text):
    return len(text.partition(".")[2])


def fraction_text(value):
    """Write a number as the fraction that it is, such as 4/7.

    Raises
    ------
    ValueError : no fraction with a denominator up to 1000
    """
    fraction = Fraction(value).limit_denominator(1000) if np.isfinite(value) else None
    if fraction is None or abs(float(fraction) - value) > 1e-9:
        raise ValueError(
            f"{value!r} is not a fraction with a denominator up to 1000. Show it with decimals."
        )
    return str(fraction)


def _checked_entry_names(axis_name, names, length):
    if names is None:
        return None
    if length is None:
        raise ValueError(
            f"{axis_name} named, {list(names)}, but the array has no axis of {axis_name}. "
            f"Leave {axis_name} out, or give a matrix, such as array[None]."
        )
    if len(names) != length:
        raise ValueError(
            f"{len(names)} {axis_name} named, {list(names)}, but the array has {length}. "
            f"Give one name for each of its {axis_name}."
        )
    return [str(name) for name in names]


def _aligned_table_lines(cells, rows, columns):
    width = max(len(text) for row in [*cells, columns or []] for text in row)
    margin = max((len(name) for name in rows), default=0) if rows else 0
    separator = "  " if rows else ""
    lines = []
    if columns:
        lines.append(" " * margin + separator + "  ".join(f"{name:>{width}}" for name in columns))
    for name, row in zip(rows or [""] * len(cells), cells, strict=True):
        lines.append(f"{name:<{margin}}{separator}" + "  ".join(f"{text:>{width}}" for text in row))
    return lines
