"""Paint a mask: booleans in two readings, the weights they leave, and which outputs change."""

import json
from dataclasses import replace
from html import escape

import numpy as np

from tutorial_lib.elements.exhibits.arrays import entry, example_arrays
from tutorial_lib.elements.exhibits.pairs import packed, pair_grid
from tutorial_lib.elements.maps import table
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    Element,
    ask,
    band,
    button_row,
    fold_numbers,
    wrap,
)
from tutorial_lib.embedding import embed
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace

_MORE = ("cats", "sleep")  # a second document behind the running example
_KEYS, _REAL, _FEW, _WINDOW = 5, 3, 3, 2  # keys, those that are no padding, few queries, a window
_OTHER = np.array([0.7, -1.3, 0.2, 1.9, -0.6, 1.1, -2.1, 0.4])  # what replaces a token
_READS = ("look", "hide")
_KINDS = {"causal": "Causal", "padded": "Padded", "packed": "Packed", "window": "Window"}
_QUESTION = "Which of these four masks leaks? Decide before you press one."
_TAP = (
    "Tap a cell, or use arrow keys and the space bar: full means that the query may look at the "
    "key. The other grid has by how much each output changes when a token does. A number above its "
    "diagonal is a leak: an earlier word depends on a later one."
)
_HOW_TO = (
    "Press a mask, or paint one of your own: click a cell, drag across several, or use arrow keys "
    "and the space bar. A mask leaks if an output changes when a later token does. Three queries "
    "are the last three of the five tokens. The table of changes holds the largest change among "
    "an output's entries."
)
_LEGEND = (
    "Padded treats the last two tokens as padding, Packed keeps <i>dogs that bark</i> and "
    "<i>cats sleep</i> apart, Window shows each query its own token and the one before."
)
_HOW = "Each token in turn is replaced by other numbers, and the layer runs again."


def paint_mask(task=None):
    """Show a mask to paint on, the weights it leaves, and which outputs change with which token.

    The array is read as *True means look* or as *True means hide*, and written as a line of NumPy
    and of PyTorch.

    Parameters
    ----------
    task : what to do with the mask of the running example's three tokens, with nothing to choose;
        by default the question is which of four masks leaks
    """
    T = _KEYS if task is None else _FEW
    arrays, made, mask = _arrays(T), _made(T), np.tri(T, dtype=bool)
    given = _given() if task is None else [[made[0][3], "look", T]]
    data = escape(json.dumps([made, given, _OTHER.tolist()], separators=(",", ":")))
    grids = f'<div class="tl-paints" {arrays.given()} data-made="{data}">{_grids(mask)}</div>'
    if task is None:
        body = [ask(_QUESTION), band(_HOW_TO), *_choices(), grids, _code(made[0][4:])]
        body += [f'<p class="tl-legend">{_LEGEND}</p>', _numbers(mask, *_judgements())]
    else:
        body = [ask(task), band(_TAP), grids, button_row(["Reset"]), _numbers(mask)]
    html = wrap("paint", "tl-paint", "Paint a mask", body)
    rows = "\n".join(f"   {': '.join(row[:2])}; depends on {row[-1]}" for row in _rows(mask))
    return Element(html, f"Mask of {T} tokens, causal, True means look\n{rows}")


def _choices():
    """Draw the masks of the question and the buttons."""
    reading = ["True means look", "align bottom-right", "5 queries", "masked rows: zeros"]
    return _four(), button_row([*_KINDS.values(), "Reset"]), button_row(reading)


def _tokens():
    return (*running_example().tokens, *_MORE)


def _inputs(T):
    """Return X of the first tokens of two documents in one row: (T, d_model).

    Each document has positions of its own.
    """
    example = running_example()
    more = embed(example.vocabulary.ids(_MORE), example.E, example.P)
    return np.concatenate([example.X, more])[:T]


def _arrays(T):
    """Return the example's arrays with that X and the causal mask."""
    arrays = example_arrays()
    inputs = {"X": [_inputs(T).tolist()], "mask": [np.tri(T, dtype=bool).tolist()]}
    return replace(arrays, tokens=_tokens()[:T], matrices=arrays.matrices | inputs)


def _made(T):
    """List every mask with a name: kind, alignment, queries, digits and its lines of code."""
    if T < _KEYS:
        return [["causal", "bottom-right", T, packed(np.tri(T, dtype=bool))]]
    sizes = [(_KEYS, "bottom-right"), (_FEW, "bottom-right"), (_FEW, "top-left")]
    return [
        [kind, align, T, packed(_mask(kind, T, align)), *_lines(kind, T, align)]
        for T, align in sizes
        for kind in _KINDS
    ]


def _shift(T, align):
    return 0 if align == "top-left" else _KEYS - T


def _mask(kind, T, align):
    """Return a causal mask, and what a kind hides beside: (T, 5), True = may look."""
    k = _shift(T, align)
    keys = np.arange(_KEYS)
    document = keys // _REAL
    more = {
        "causal": keys >= 0,
        "padded": keys < _REAL,
        "packed": document[-T:, None] == document,
        "window": ~np.tri(T, _KEYS, k - _WINDOW, dtype=bool),
    }
    return np.tri(T, _KEYS, k, dtype=bool) & more[kind]


def _lines(kind, T, align):
    """Write a mask in NumPy and in PyTorch."""
    k = _shift(T, align)
    size, shift = (f"{T}" if T == _KEYS else f"{T}, {_KEYS}"), f", k={k}" * bool(k)
    lower = f"np.tri({size}{shift}, dtype=bool)", f"torch.ones({T}, {_KEYS}, dtype=torch.bool)"
    lower = lower[0], f"{lower[1]}.tril({k or ''})"
    if kind == "window":
        above = k - _WINDOW + 1
        return [f"np.triu({lower[0]}, k={above})", f"{lower[1]}.triu({above})"]
    rows = f"{_KEYS - T}, {_KEYS}" if T < _KEYS else f"{_KEYS}"
    more = {
        "causal": "",
        "padded": f" & (LIB.arange({_KEYS}) < {_REAL})",
        "packed": f" & (LIB.arange({rows})[:, None] // {_REAL} == LIB.arange({_KEYS}) // {_REAL})",
    }[kind]
    names = ("np", "torch")
    return [line + more.replace("LIB", name) for line, name in zip(lower, names, strict=True)]


def _given():
    """List the four masks of the question: digits, reading, queries."""
    lower, few = (_mask("causal", T, "bottom-right") for T in (_KEYS, _FEW))
    four = ((lower, "look"), (~lower, "hide"), (lower, "hide"), (few, "look"))
    return [[packed(mask), reads, len(mask)] for mask, reads in four]


def _unpacked(digits):
    rows = [f"{int(digits[i : i + 2], 16):0{_KEYS}b}" for i in range(0, len(digits), 2)]
    return np.array([[digit == "1" for digit in row] for row in rows])


def _four():
    """Draw the masks of the question, which the script lets press."""
    drawn = [
        f'<div class="tl-gave">{_thumb(_unpacked(digits))}'
        f"<span><b>{name}</b> True means {reads}</span></div>"
        for name, (digits, reads, _) in zip("ABCD", _given(), strict=True)
    ]
    words = "Full cells are True; queries go down, keys across."
    return (
        f'<figure class="tl-four"><div>{"".join(drawn)}</div><figcaption>{words}</figcaption>'
        "</figure>"
    )


def _thumb(mask):
    T, S = mask.shape
    full = "".join(f"M{s} {t}h.9v.9h-.9z" for t, s in np.argwhere(mask))
    rest = "".join(f"M{s} {t}h.9v.9h-.9z" for t, s in np.argwhere(~mask))
    alt = f"{np.count_nonzero(mask)} of {T} × {S} cells are True"
    paths = f'<path class="tl-none" d="{rest}"/><path d="{full}"/>'
    return f'<svg viewBox="0 0 {S} {S}" role="img" aria-label="{alt}">{paths}</svg>'


def _run(looks, changed=None):
    """Run the layer, with one token replaced by other numbers if one is given."""
    X = _inputs(len(looks))
    if changed is not None:
        X[changed] = _OTHER
    return trace(X, running_example().params, mask=looks)


def _changes(looks):
    """Return by how much each output changes when each token is replaced: (T, S)."""
    before = _run(looks).Y
    after = [_run(looks, s).Y for s in range(len(looks))]
    return np.stack([np.abs(Y - before).max(axis=-1) for Y in after], axis=-1)


def _grids(mask):
    weights, changes = _run(mask).weights, _changes(mask)
    full = [[("data-on", "<b>True</b>") if on else ("", "") for on in row] for row in mask]
    heads = [
        [
            [_weight(*pair) for pair in zip(*row, strict=True)]
            for row in zip(head, mask, strict=True)
        ]
        for head in weights
    ]
    by = [[_change(*cell) for cell in enumerate(row, -t)] for t, row in enumerate(changes)]
    captions = "mask: query ↓ &nbsp; key →", "change: output ↓ &nbsp; token →"
    names = _tokens()[: len(mask)]
    drawn = [
        pair_grid(full, names=names, caption=captions[0]),
        pair_grid(by, names=names, caption=captions[1]),
    ]
    for h, cells in enumerate(heads if len(mask) == _KEYS else []):
        title = f"weights of head {h}: query ↓ &nbsp; key →"
        drawn.append(pair_grid(cells, names=names, caption=title, kind="tl-mixed"))
    return "\n".join(drawn)


def _weight(weight, look):
    text = entry("weights", weight)
    short = text if len(text) <= 5 else f"{weight:.2f}"
    return (f'style="--n:{round(100 * weight)}%"', short) if look else ("data-out", "·")


def _change(ahead, by):
    """Draw by how much an output changes with a token so many positions ahead of its own."""
    if by <= 1e-9:
        return "data-out", "·"
    return ("data-leak", f"<b>{by:.2f}</b>") if ahead > 0 else ("", f"{by:.2f}")


def _code(lines):
    """Write the two lines of code, each with a button that copies it."""
    rows = [
        f"<div><span>{name}</span><code>mask = {escape(line)}</code>"
        f'<button type="button" {KEYS} {HIDDEN}>Copy</button></div>'
        for name, line in zip(("NumPy", "PyTorch"), lines, strict=True)
    ]
    return f'<div class="tl-code">{"".join(rows)}</div>'


def _rows(mask):
    """List for each query what it sees, its weights in each head, what its output depends on."""
    weights, changes = _run(mask).weights, _changes(mask)
    tokens = _tokens()
    return [
        (
            query,
            _listed(tokens, mask[t]),
            *(", ".join(entry("weights", w) for w in head[t]) for head in weights),
            _listed(tokens, changes[t] > 1e-9),
        )
        for t, query in enumerate(tokens[: len(mask)])
    ]


def _listed(tokens, chosen):
    return ", ".join(name for name, on in zip(tokens, chosen, strict=False) if on) or "nothing"


def _numbers(mask, *judgements):
    names = ("query", "may look at", "weights, head 0", "weights, head 1", "depends on")
    summary = "The numbers as a table" + ", the four masks judged" * bool(judgements)
    return fold_numbers(table(names, _rows(mask)), *judgements, summary=summary, how=_HOW)


def _judgements():
    four = [
        (f"mask {name}", *_judged(*given)) for name, given in zip("ABCD", _given(), strict=True)
    ]
    return [table(("given", "pairs that may look", "leaks"), four)]


def _judged(digits, reads, T):
    """Say of a given mask how many pairs may look, and how many outputs depend on a later token."""
    looks = _unpacked(digits) ^ (reads == "hide")
    whole = np.concatenate([np.tri(_KEYS, dtype=bool)[: _KEYS - T], looks])
    ahead = np.triu(_changes(whole) > 1e-9, k=1)[-T:]
    leaks = f"yes, {np.count_nonzero(ahead)} pairs" if ahead.any() else "no"
    return f"{np.count_nonzero(looks)} of {T * _KEYS}", leaks
