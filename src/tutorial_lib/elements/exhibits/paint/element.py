"""Paint a mask: booleans in two readings, the weights they leave, and which outputs change."""

from dataclasses import dataclass, replace
from html import escape

import numpy as np

from tutorial_lib.elements.exhibits.arrays import entry_text, example_arrays, strength_percent
from tutorial_lib.elements.exhibits.pairs import mask_from_hex, mask_to_hex, pair_grid
from tutorial_lib.elements.markup import HIDDEN, KEYS, button_row, exhibit, fold_numbers, given
from tutorial_lib.elements.tables import table
from tutorial_lib.embedding import embed
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace

_MORE = ("cats", "sleep")  # a second document behind the running example
_KEYS, _REAL, _FEW, _WINDOW = 5, 3, 3, 2  # keys, those that are no padding, few queries, a window
_OTHER = np.array([0.7, -1.3, 0.2, 1.9, -0.6, 1.1, -2.1, 0.4])  # what replaces a token
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
    return draw_mask(task)


@dataclass(frozen=True)
class _PaintedMask:
    """A mask as it is read: True means "look" or "hide"; its rows are the last of the tokens.

    Parameters
    ----------
    align : where the masks with a name have their diagonal
    masked : what a row gives that sees nothing, "zeros" or "nan"
    """

    mask: np.ndarray
    reads: str
    align: str
    masked: str

    @property
    def visible(self):
        return self.mask ^ (self.reads == "hide")

    @property
    def tokens(self):
        return _token_names()[: self.mask.shape[1]]

    def weights_and_changes(self):
        """Return the weights and by how much each output changes with each token.

        (H, T, S) and (T, S)
        """
        weights, changes = _layer_outputs(self.visible).weights, _output_changes(self.visible)
        blind = ~self.visible.any(axis=1) & (self.masked == "nan")
        weights[:, blind], changes[blind] = np.nan, np.nan
        return weights, changes

    def matching_kinds(self):
        """List the kinds that the mask is."""
        T, S = self.mask.shape
        if S < _KEYS:
            return []
        masks = {kind: _pattern_mask(kind, T, self.align) for kind in _KINDS}
        return [_KINDS[kind] for kind, looks in masks.items() if (looks == self.visible).all()]

    def code_lines(self):
        """Write the mask in NumPy and in PyTorch, by its name or its opposite's if there is one."""
        T, S = self.mask.shape
        made = [one for one in _named_masks(S) if one[2] == T]
        made.sort(key=lambda one: one[1] != self.align)
        lines = {digits: some for _, _, _, digits, *some in reversed(made)}
        if mask_to_hex(self.mask) in lines:
            return lines[mask_to_hex(self.mask)]
        if mask_to_hex(~self.mask) in lines:
            opposite = lines[mask_to_hex(~self.mask)]
            return [f"~({line})" if " & " in line else f"~{line}" for line in opposite]
        rows = str(self.mask.astype(int).tolist())
        return f"np.array({rows}, dtype=bool)", f"torch.tensor({rows}, dtype=torch.bool)"


def draw_mask(task=None, **state):
    """Draw the mask in a state, whose parts are called and written as a link does."""
    S = _KEYS if task is None else _FEW
    first = {"true": "look", "align": "bottom-right", "queries": S, "masked": "zeros"}
    reads, align, T, masked = ((first | state)[key] for key in first)
    causal = np.tri(T, S, S - T if align == "bottom-right" else 0, dtype=bool)
    mask = mask_from_hex(state["mask"], S) if "mask" in state else causal ^ (reads == "hide")
    painting = _PaintedMask(mask, reads, align, masked)
    arrays, made = _example_arrays(S), _named_masks(S)
    four = _question_masks() if task is None else [[made[0][3], "look", S]]
    data = given([made, four, _OTHER.tolist()], "made")
    grids = f'<div class="tl-paints" {arrays.given()} {data}>{_grids_html(painting)}</div>'
    if task is None:
        asked, how = _QUESTION, _HOW_TO
        parts = [*_choices_html(painting), grids, _code_html(painting.code_lines())]
        parts += [f'<p class="tl-legend">{_LEGEND}</p>', _numbers_fold(painting, *_judgements())]
    else:
        asked, how = task, _TAP
        parts = [grids, button_row(["Reset"]), _numbers_fold(painting)]
    rows = "\n".join(f"   {': '.join(row[:2])}; depends on {row[-1]}" for row in _rows(painting))
    kind = "causal, " * bool((painting.visible == causal).all())
    text = f"Mask of {S} tokens, {kind}True means {reads}\n{rows}"
    return exhibit("paint", "Paint a mask", asked, how, *parts, text=text)


def _choices_html(painting):
    """Draw the masks of the question and the buttons."""
    rows = {"zeros": "zeros", "nan": "NaN"}[painting.masked]
    reading = [f"True means {painting.reads}", f"align {painting.align}"]
    reading += [f"{len(painting.mask)} queries", f"masked rows: {rows}"]
    kinds = button_row([*_KINDS.values(), "Reset"], painting.matching_kinds())
    return _draw_question_masks(), kinds, button_row(reading)


def _token_names():
    return (*running_example().tokens, *_MORE)


def _sample_X(T):
    """Return X of the first tokens of two documents in one row: (T, d_model).

    Each document has positions of its own.
    """
    example = running_example()
    more = embed(example.vocabulary.ids(_MORE), example.E, example.P)
    return np.concatenate([example.X, more])[:T]


def _example_arrays(T):
    """Return the example's arrays with that X and the causal mask."""
    arrays = example_arrays()
    inputs = {"X": [_sample_X(T).tolist()], "mask": [np.tri(T, dtype=bool).tolist()]}
    return replace(arrays, tokens=_token_names()[:T], matrices=arrays.matrices | inputs)


def _named_masks(T):
    """List every mask with a name: kind, alignment, queries, digits, and its lines of code."""
    if T < _KEYS:
        return [["causal", "bottom-right", T, mask_to_hex(np.tri(T, dtype=bool))]]
    sizes = [(_KEYS, "bottom-right"), (_FEW, "bottom-right"), (_FEW, "top-left")]
    return [
        [kind, align, T, mask_to_hex(_pattern_mask(kind, T, align)), *_mask_code(kind, T, align)]
        for T, align in sizes
        for kind in _KINDS
    ]


def _diagonal_offset(T, align):
    return 0 if align == "top-left" else _KEYS - T


def _pattern_mask(pattern, T, align):
    """Return a causal mask, and what a kind hides beside: (T, 5), True = may look."""
    k = _diagonal_offset(T, align)
    keys = np.arange(_KEYS)
    document = keys // _REAL
    more = {
        "causal": keys >= 0,
        "padded": keys < _REAL,
        "packed": document[-T:, None] == document,
        "window": ~np.tri(T, _KEYS, k - _WINDOW, dtype=bool),
    }
    return np.tri(T, _KEYS, k, dtype=bool) & more[pattern]


def _mask_code(pattern, T, align):
    """Write a mask in NumPy and in PyTorch."""
    k = _diagonal_offset(T, align)
    size, shift = (f"{T}" if T == _KEYS else f"{T}, {_KEYS}"), f", k={k}" * bool(k)
    lower = f"np.tri({size}{shift}, dtype=bool)", f"torch.ones({T}, {_KEYS}, dtype=torch.bool)"
    lower = lower[0], f"{lower[1]}.tril({k or ''})"
    if pattern == "window":
        above = k - _WINDOW + 1
        return [f"np.triu({lower[0]}, k={above})", f"{lower[1]}.triu({above})"]
    rows = f"{_KEYS - T}, {_KEYS}" if T < _KEYS else f"{_KEYS}"
    more = {
        "causal": "",
        "padded": f" & (LIB.arange({_KEYS}) < {_REAL})",
        "packed": f" & (LIB.arange({rows})[:, None] // {_REAL} == LIB.arange({_KEYS}) // {_REAL})",
    }[pattern]
    names = ("np", "torch")
    return [line + more.replace("LIB", name) for line, name in zip(lower, names, strict=True)]


def _question_masks():
    """List the four masks of the question: digits, reading, queries."""
    lower, few = (_pattern_mask("causal", T, "bottom-right") for T in (_KEYS, _FEW))
    four = ((lower, "look"), (~lower, "hide"), (lower, "hide"), (few, "look"))
    return [[mask_to_hex(mask), reads, len(mask)] for mask, reads in four]


def _draw_question_masks():
    """Draw the masks of the question, which the script lets press."""
    drawn = [
        f'<div class="tl-gave">{_thumbnail_html(mask_from_hex(digits, _KEYS))}'
        f"<span><b>{name}</b> True means {reads}</span></div>"
        for name, (digits, reads, _) in zip("ABCD", _question_masks(), strict=True)
    ]
    words = "Full cells are True; queries go down, keys across."
    return (
        f'<figure class="tl-four"><div>{"".join(drawn)}</div><figcaption>{words}</figcaption>'
        "</figure>"
    )


def _thumbnail_html(mask):
    T, S = mask.shape
    full = "".join(f"M{s} {t}h.9v.9h-.9z" for t, s in np.argwhere(mask))
    rest = "".join(f"M{s} {t}h.9v.9h-.9z" for t, s in np.argwhere(~mask))
    alt = f"{np.count_nonzero(mask)} of {T} × {S} cells are True"
    paths = f'<path class="tl-none" d="{rest}"/><path d="{full}"/>'
    return f'<svg viewBox="0 0 {S} {S}" role="img" aria-label="{alt}">{paths}</svg>'


def _layer_outputs(visible, changed_token=None):
    """Run the layer on the last tokens, with other numbers for a token if one is given."""
    X = _sample_X(visible.shape[1])
    if changed_token is not None:
        X[changed_token] = _OTHER
    return trace(X[-len(visible) :], running_example().params, context=X, mask=visible)


def _output_changes(visible):
    """Return by how much each output changes when each token is replaced: (T, S)."""
    before = _layer_outputs(visible).Y
    after = [_layer_outputs(visible, s).Y for s in range(visible.shape[1])]
    return np.stack([np.abs(Y - before).max(axis=-1) for Y in after], axis=-1)


def _grids_html(painting):
    (weights, changes), names = painting.weights_and_changes(), painting.tokens
    T, S = painting.mask.shape
    full = [[("data-on", "<b>True</b>") if on else ("", "") for on in row] for row in painting.mask]
    ahead = np.arange(S) - np.arange(S - T, S)[:, None]
    by = [list(map(_change_cell, *rows)) for rows in zip(ahead, changes, strict=True)]
    captions = "mask: query ↓ &nbsp; key →", "change: output ↓ &nbsp; token →"
    drawn = [
        pair_grid(cells, names=names, caption=caption)
        for cells, caption in zip((full, by), captions, strict=True)
    ]
    for h, head in enumerate(weights if S == _KEYS else []):
        cells = [list(map(_weight_cell, *row)) for row in zip(head, painting.visible, strict=True)]
        title = f"weights of head {h}: query ↓ &nbsp; key →"
        drawn.append(pair_grid(cells, names=names, caption=title, css_class="tl-mixed"))
    return "\n".join(drawn)


def _weight_cell(weight, is_visible):
    if not is_visible and weight == 0:
        return "data-out", "·"
    text = entry_text("weights", weight)
    tint = 0 if np.isnan(weight) else strength_percent("weights", weight)
    return f'style="--n:{tint}%"', text if len(text) <= 5 else f"{weight:.2f}"


def _change_cell(positions_ahead, change):
    """Draw by how much an output changes with a token so many positions ahead of its own."""
    if change <= 1e-9:
        return "data-out", "·"
    text = "NaN" if np.isnan(change) else f"{change:.2f}"
    return ("data-leak", f"<b>{text}</b>") if positions_ahead > 0 and change > 1e-9 else ("", text)


def _code_html(lines):
    """Write the two lines of code, each with a button that copies it."""
    rows = [
        f"<div><span>{name}</span><code>mask = {escape(line)}</code>"
        f'<button type="button" {KEYS} {HIDDEN}>Copy</button></div>'
        for name, line in zip(("NumPy", "PyTorch"), lines, strict=True)
    ]
    return f'<div class="tl-code">{"".join(rows)}</div>'


def _rows(painting):
    """List for each query what it sees, its weights in each head, what its output depends on."""
    weights, changes = painting.weights_and_changes()
    tokens, T = painting.tokens, len(painting.mask)
    return [
        (
            query,
            _chosen_names(tokens, painting.visible[t]),
            *(", ".join(entry_text("weights", w) for w in head[t]) for head in weights),
            _chosen_names(tokens, ~(changes[t] <= 1e-9)),
        )
        for t, query in enumerate(tokens[-T:])
    ]


def _chosen_names(tokens, chosen):
    return ", ".join(name for name, on in zip(tokens, chosen, strict=True) if on) or "nothing"


def _numbers_fold(painting, *judgements):
    names = ("query", "may look at", "weights, head 0", "weights, head 1", "depends on")
    summary = "The numbers as a table" + ", the four masks judged" * bool(judgements)
    shown = table(names, _rows(painting))
    return fold_numbers(shown, *judgements, summary=summary, how=_HOW)


def _judgements():
    four = [
        (f"mask {name}", *_mask_judgement(*given))
        for name, given in zip("ABCD", _question_masks(), strict=True)
    ]
    return [table(("given", "pairs that may look", "leaks"), four)]


def _mask_judgement(digits, convention, T):
    """Say of a given mask how many pairs may look, and how many outputs depend on a later token."""
    looks = mask_from_hex(digits, _KEYS) ^ (convention == "hide")
    whole = np.concatenate([np.tri(_KEYS, dtype=bool)[: _KEYS - T], looks])
    ahead = np.triu(_output_changes(whole) > 1e-9, k=1)[-T:]
    leaks = f"yes, {np.count_nonzero(ahead)} pairs" if ahead.any() else "no"
    return f"{np.count_nonzero(looks)} of {T * _KEYS}", leaks
