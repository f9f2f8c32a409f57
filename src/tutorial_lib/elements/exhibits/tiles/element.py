"""The softmax tile by tile: a table of scores that is folded in, and what is held of it."""

from fractions import Fraction
from itertools import product

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.elements.markup import (
    HIDDEN,
    button_row,
    exhibit,
    fold_numbers,
    given,
    inline,
    slider,
)
from tutorial_lib.elements.tables import headings, table
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace
from tutorial_lib.onepass import fold_block

_WORDS = ("dogs", "that", "bark", "cats", "that", "sleep")
_POSITIONS = (0, 1, 2, 0, 1, 2)  # each of the two phrases counts from 0
_SIZE = 2  # queries, and keys, of a tile at the start
_QUESTION = (
    "Choose the size of a tile and the order, by the buttons or tile by tile: can you make any "
    "output wrong? And without the factor?"
)
_RING_QUESTION = (
    "Each process folds in the keys at hand and passes them on. Which one waits, and what if the "
    "words are dealt in turn?"
)
_CELLS = (
    "The strongest cells are the tile just folded in, and striped ones lie in tiles that are "
    "skipped. Once a query has all its keys, its output appears below mixed."
)
_HOW_TO = (
    "Press a tile, or go to it by arrow keys and press Enter, to fold it in next. × old is the "
    f"factor that shrank the old total and mixed. {_CELLS}"
)
_RING_HOW_TO = (
    "Press *Next step*, or deal the words otherwise. Above a key is the process that folds it in; "
    f"queries stay where they are. {_CELLS}"
)
_HOW = (
    "The words go through head 0 of *dogs that bark*; its scores are whole numbers times ln 2, "
    "so that e to a score is a power of 2."
)
_HELD = (
    "At one time we hold the scores of one tile, and maximum, total and mixed of its queries. A "
    "longer text needs no more, although its table grows with the square of its length."
)


def fold_tiles(*, owners=1):
    """Show a softmax tile by tile: the maximum, total and mix of each query, and the factor.

    Introduced in chapter 12. The reader chooses the sizes of the tiles and their order.

    Parameters
    ----------
    owners : processes in a ring, of which each holds some queries while keys and values travel

    Raises
    ------
    ValueError : a number of owners that is not 1, 2 or 3
    """
    if owners not in (1, 2, 3):
        raise ValueError(f"owners is {owners!r}; expected 1, 2 or 3, as six words divide.")
    ring = owners > 1
    label = "A ring, step by step" if ring else "Tiles, one step at a time"
    asked, how = (_RING_QUESTION, _RING_HOW_TO) if ring else (_QUESTION, _HOW_TO)
    parts = [
        _controls(ring),
        button_row(["Next step" if ring else "Next tile", "All the rest", "Start over"]),
        f'<figure class="tl-fold" {_given(owners)}>',
        f"{_grid(owners)}\n{_states(owners)}\n{_meter(owners)}",
        "</figure>",
        _numbers(owners),
    ]
    lines = [": ".join((row[0], f"query {row[1]}", "; ".join(row[2:]))) for row in _rows(owners)]
    text = "\n".join((f"{label}: {', '.join(_WORDS)}", *lines))
    return exhibit("tiles", label, asked, how, *parts, text=text)


def _record():
    """Run the layer on the six words."""
    example = running_example()
    X = example.E[example.vocabulary.ids(_WORDS)] + example.P[list(_POSITIONS)]
    return trace(X, example.params, mask=causal_mask(len(_WORDS)))


def _given(owners):
    """Write what the script starts from."""
    record, params = _record(), running_example().params
    begins = {
        "owners": owners,
        "words": _WORDS,
        "S": np.rint(record.scores[0] / np.log(2)).astype(int).tolist(),
        "V": record.V[0].astype(int).tolist(),
        "heads": [[float(_exact(n)) for n in row] for row in record.heads[0]],
        "width": params.d_k + params.d_v,
    }
    return given(begins)


def _controls(ring):
    """Draw the choices: sizes, order and factor of the tiles, or who has which words."""
    if ring:
        return button_row(["Halves", "In turn"], ["Halves"])
    sliders = "".join(
        f"<label><span>{_SIZE} {what}</span>"
        f"{slider(f'{what} of a tile', _SIZE, len(_WORDS), least=1)}</label>"
        for what in ("queries", "keys")
    )
    orders = button_row(["By rows", "By columns", "Last keys first", "No factor"], ["By rows"])
    return f'<div class="tl-lists tl-sizes" {HIDDEN}>{sliders}</div>\n{orders}'


def _grid(owners):
    """Draw the scores, query down and key across, hidden ones empty."""
    scores = np.rint(_record().scores[0] / np.log(2)).astype(int)
    T = len(_WORDS)
    homes = [t * owners // T for t in range(T)] if owners > 1 else range(T)
    where, held = ("at ", "rank ") if owners > 1 else ("", "")
    keys, names = (
        [f"{word}<small>{name}{i}</small></th>" for word, i in zip(_WORDS, homes, strict=True)]
        for name in (where, held)
    )
    keys = [f'<th scope="col">{key}' for key in keys]
    rows = [
        f'<tr><th scope="row">{name}'
        + "".join(
            f"<td{_edges(t, s, owners)}{_fate(t, s, owners)}><b>{_fraction(n)}</b></td>"
            if s <= t
            else f"<td data-out{_edges(t, s, owners)}{_fate(t, s, owners)}></td>"
            for s, n in enumerate(scores[t])
        )
        + "</tr>"
        for t, name in enumerate(names)
    ]
    head = f"<thead><tr><td></td>{''.join(keys)}</tr></thead>"
    caption = "<caption>query ↓ &nbsp; key →</caption>"
    body = "\n".join(rows)
    return f'<table class="tl-scores">{caption}{head}\n<tbody>{body}</tbody></table>'


def _edges(t, s, owners):
    """Say of a pair whether its tile begins there."""
    size = len(_WORDS) // owners if owners > 1 else _SIZE
    starts = {name: at and at % size == 0 for name, at in (("top", t), ("left", s))}
    return "".join(f" data-{name}" for name, start in starts.items() if start)


def _fate(t, s, owners):
    """Say of a pair whether its tile is the first, or lies beyond what the query may see."""
    seen = [keys for queries, keys in _steps(owners)[:owners] if t in queries]
    if not seen or (s not in seen[0] and owners > 1):
        return ""
    return f' data-fate="{"now" if s in seen[0] else "skipped"}"'


def _states(owners):
    """Draw what is held of each query after the first tile, or the first step of a ring."""
    first = sum(len(queries) for queries, _ in _steps(owners)[:owners])
    states = {row[1]: row[2:] for row in _rows(owners)[:first]}
    rows = ""
    for t, word in enumerate(_WORDS):
        maximum, total, mixed, output = states.get(f"{t} {word}", "––––")
        verdict = (
            f'<b class="tl-right">✓ {output}</b>' if output != "–" else '<b class="tl-wrong"></b>'
        )
        rows += (
            f'<tr><th scope="row">{word}<small>{t}</small></th><td>{maximum}</td><td></td>'
            f"<td>{total}</td><td>{mixed}{verdict}</td></tr>"
        )
    names = headings("max.", "× old", "total", "mixed<br>and output")
    caption = "<caption>what each query has</caption>"
    head = f"<thead><tr><td></td>{names}</tr></thead>"
    return f'<table class="tl-held">{caption}{head}<tbody>{rows}</tbody></table>'


def _meter(owners):
    """Draw the numbers that are held beside those of the table, or the pairs of each process."""
    names = [f"rank {rank}" for rank in range(owners)] if owners > 1 else ["held", "table"]
    lines = "".join(f"<p><span>{name}</span><i></i></p>" for name in names)
    return f'<div class="tl-lists tl-meter" {HIDDEN}>{lines}</div>'


def _exact(number):
    """Return the fraction that a float stands for, the same on every machine."""
    return Fraction(float(number)).limit_denominator(1000)


def _fraction(number):
    return str(_exact(number)).replace("-", "−")


def _vector(numbers):
    return f"({', '.join(map(_fraction, numbers))})"


def _span(positions):
    """Write consecutive positions by the first and the last."""
    ends = dict.fromkeys((positions[0], positions[-1]))
    return "–".join(map(str, ends))


def _steps(owners):
    """List (queries, keys) of each tile that is folded in, in order; a ring starts at home."""
    T = len(_WORDS)
    size = T // owners if owners > 1 else _SIZE
    blocks = [range(start, start + size) for start in range(0, T, size)]
    pairs = list(product(range(len(blocks)), repeat=2))
    if owners > 1:
        pairs.sort(key=lambda pair: ((pair[0] - pair[1]) % owners, pair[0]))
    return [(blocks[i], blocks[j]) for i, j in pairs if j <= i]


def _rows(owners):
    """List of each tile, and each of its queries, the state afterwards, by `fold_block`."""
    record, T = _record(), len(_WORDS)
    scores = np.where(causal_mask(T), record.scores[0], -np.inf)
    states, rows, came = {}, [], np.zeros(T, int)  # keys that each query has seen
    for queries, keys in _steps(owners):
        state = states.get(queries, (np.finfo(float).min, 0.0, 0.0))
        tile = np.ix_(queries, keys)
        states[queries] = maximum, total, mixed = fold_block(state, scores[tile], record.V[0][keys])
        name = f"queries {_span(queries)}, keys {_span(keys)}"
        came[queries] += (scores[tile] > -np.inf).sum(axis=1)
        for i, t in enumerate(queries):
            output = _vector(mixed[i] / total[i]) if came[t] == t + 1 else "–"
            numbers = _fraction(maximum[i, 0] / np.log(2)), _fraction(total[i, 0])
            rows.append((name, f"{t} {_WORDS[t]}", *numbers, _vector(mixed[i]), output))
    return rows


def _numbers(owners):
    names = ("tile", "query", "maximum", "total", "mixed", "output")
    in_rows = f"in tiles of {_SIZE} queries by {_SIZE} keys, row by row"
    sizes = "words in halves" if owners > 1 else in_rows
    how = inline(" ".join((_HOW,) if owners > 1 else (_HOW, _HELD)))
    return fold_numbers(
        table(names, _rows(owners)), summary=f"All steps as a table, {sizes}", how=how
    )
