"""The softmax tile by tile: a table of scores that is folded in, and what is held of it."""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.elements.exhibits.arrays import entry_text
from tutorial_lib.elements.markup import (
    HIDDEN,
    button_row,
    exhibit,
    fold_numbers,
    given,
    inline,
    slider,
)
from tutorial_lib.elements.tables import grid, table
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace
from tutorial_lib.onepass import fold_block

_WORDS = ("dogs", "that", "bark", "cats", "that", "sleep")
_NAMES = tuple(f"{word}<small>{t}</small>" for t, word in enumerate(_WORDS))
_POSITIONS = (0, 1, 2, 0, 1, 2)  # each of the two phrases counts from 0
_ORDERS = {"rows": "By rows", "columns": "By columns", "last": "Last keys first"}
_LABEL = "Tiles, one step at a time"
_QUESTION = (
    "Choose the size of a tile and the order, by the buttons or tile by tile: can you make any "
    "output wrong? And without the factor?"
)
_HOW_TO = (
    "Press a tile, or go to it by arrow keys and press Enter, to fold it in next. × old is the "
    "factor that shrank the old total and mixed. The strongest cells are the tile just folded in, "
    "and striped ones lie in tiles that are skipped. Once a query has all its keys, its output "
    "appears below mixed."
)
_HOW = (
    "The words go through head 0 of *dogs that bark*; its scores are whole numbers times ln 2, "
    "so that e to a score is a power of 2. At one time we hold the scores of one tile, and "
    "maximum, total and mixed of its queries. A longer text needs no more, although its table "
    "grows with the square of its length."
)


class _QueryState(NamedTuple):
    """What a query has: maximum, total and mixed, the keys it has seen, and the last factor."""

    maximum: float = np.finfo(float).min
    total: float = 0.0
    mixed: np.ndarray = np.zeros(4)
    came: int = 0
    factor: float | None = None

    def number_texts(self):
        """Write maximum, total and mixed."""
        if not self.came:
            return ["–"] * 3
        return [_text(self.maximum / np.log(2)), _text(self.total), _vector(self.mixed)]

    def output(self, t):
        """Return the output of query t, None where a key has not come yet."""
        return self.mixed / self.total if self.came == t + 1 else None


def fold_tiles():
    """Show a softmax tile by tile: the maximum, total and mix of each query, and the factor.

    Introduced in chapter 12. The reader chooses the sizes of the tiles and their order.
    """
    return draw_tiles()


def draw_tiles(*, rows=2, keys=2, order="rows", factor="yes", tiles="0"):
    """Draw the exhibit in a state.

    Parameters
    ----------
    rows, keys : size of a tile
    order : in which the buttons fold tiles in
    factor : "no" where what is old is not shrunk
    tiles : numbers of the tiles that are in, the last one at the end, such as "0.3"
    """
    cut = _tiles_of_size(rows, keys)
    folded = [cut[int(n)] for n in tiles.split(".") if n]
    states = _fold_tiles(folded, rescale=factor == "yes")
    pressed = [_ORDERS[order], *["No factor"] * (factor == "no")]
    parts = [
        _size_sliders(rows, keys) + button_row([*_ORDERS.values(), "No factor"], pressed),
        button_row(["Next tile", "All the rest", "Start over"]),
        f'<figure class="tl-fold" {_script_data()}>',
        f"{_score_grid(cut, folded, states)}\n{_states_table(states)}",
        "</figure>",
        fold_numbers(
            table(("tile", "query", "maximum", "total", "mixed", "output"), _fold_steps()),
            summary="All steps as a table, in tiles of 2 queries by 2 keys, row by row",
            how=inline(_HOW),
        ),
    ]
    lines = [f"{tile}: query {query}: {'; '.join(more)}" for tile, query, *more in _fold_steps()]
    text = "\n".join((f"{_LABEL}: {', '.join(_WORDS)}", *lines))
    return exhibit("tiles", _LABEL, _QUESTION, _HOW_TO, *parts, text=text)


@cache
def _example_trace():
    """Run the layer on the six words."""
    example = running_example()
    X = example.E[example.vocabulary.ids(_WORDS)] + example.P[list(_POSITIONS)]
    return trace(X, example.params, mask=causal_mask(len(_WORDS)))


def _script_data():
    """Write what the script starts from."""
    record = _example_trace()
    begins = {
        "words": _WORDS,
        "S": np.rint(record.scores[0] / np.log(2)).astype(int).tolist(),
        "V": record.V[0].astype(int).tolist(),
        "heads": record.heads[0].round(15).tolist(),
    }
    return given(begins)


def _tiles_of_size(n_queries, n_keys):
    """List (queries, keys) of all tiles of a size, row by row."""
    T = len(_WORDS)
    blocks = ([range(i, min(i + n, T)) for i in range(0, T, n)] for n in (n_queries, n_keys))
    return list(product(*blocks))


def _fold_tiles(tiles, *, rescale=True):
    """Return what each query has after tiles are folded in."""
    states = [_QueryState()] * len(_WORDS)
    for queries, keys in tiles:
        states = [state._replace(factor=None) for state in states]
        for t in queries:
            seen = [s for s in keys if s <= t]
            if seen:
                states[t] = _fold_query(states[t], t, seen, rescale)
    return states


def _fold_query(state, t, keys, rescale):
    """Fold keys into the state of a query, by `fold_block`."""
    record = _example_trace()
    before = tuple(np.reshape(part, (1, -1)) for part in state[:3])
    scores = record.scores[0][t, keys][None]
    maximum, total, mixed = (part[0] for part in fold_block(before, scores, record.V[0][keys]))
    factor = np.exp(state.maximum - maximum[0])
    if not rescale:  # what the factor took away comes back
        total, mixed = total + (1 - factor) * state.total, mixed + (1 - factor) * state.mixed
        factor = 1
    shown = factor if state.came else None
    return _QueryState(maximum[0], total[0], mixed, state.came + len(keys), shown)


def _size_sliders(n_queries, n_keys):
    """Draw the sliders of the size of a tile."""
    sliders = "".join(
        f"<label><span>{size} {one if size == 1 else many}</span>"
        f"{slider(f'{many} of a tile', size, len(_WORDS), least=1)}</label>"
        for one, many, size in (("query", "queries", n_queries), ("key", "keys", n_keys))
    )
    return f'<div class="tl-lists tl-sizes" {HIDDEN}>{sliders}</div>\n'


def _score_grid(tiles, folded_tiles, states):
    """Draw the scores, query down and key across, hidden ones empty."""
    scores = _example_trace().scores[0] / np.log(2)
    places = range(len(_WORDS))
    texts = [[f"<b>{_text(scores[t, s])}</b>" * (s <= t) for s in places] for t in places]
    cells = [
        [(_cell_attributes(t, s, tiles, folded_tiles, states), texts[t][s]) for s in places]
        for t in places
    ]
    return grid(cells, _NAMES, _NAMES, "query ↓ &nbsp; key →", 'class="tl-scores"')


def _cell_attributes(t, s, tiles, folded_tiles, states):
    """Say of a pair whether its tile begins there, and what has become of the tile."""
    [tile] = [tile for tile in tiles if t in tile[0] and s in tile[1]]
    queries, keys = tile
    edges = " data-top" * (t == queries[0] > 0) + " data-left" * (s == keys[0] > 0)
    fate = "now" if tile in folded_tiles[-1:] else "in" if tile in folded_tiles else ""
    if keys[0] > queries[-1]:
        gone = all(states[query].came == query + 1 for query in queries)
        fate = "skipped" if gone else ""
    marks = " data-out" * (s > t) + edges + f' data-fate="{fate}"' * bool(fate)
    return marks.strip()


def _states_table(states):
    """Draw what is held of each query."""
    cells = []
    for t, state in enumerate(states):
        maximum, total, mixed = state.number_texts()
        factor = "" if state.factor is None else _text(state.factor)
        texts = (maximum, factor, total, mixed + _output_verdict(t, state.output(t)))
        cells.append([("", text) for text in texts])
    names = ("max.", "× old", "total", "mixed<br>and output")
    return grid(cells, _NAMES, names, "what each query has", 'class="tl-held"')


def _output_verdict(t, output):
    """Write an output, and whether it is that of plain attention."""
    if output is None:
        return '<b class="tl-wrong"></b>'
    right = np.allclose(output, _example_trace().heads[0][t], rtol=0, atol=1e-9)
    mark, kind = ("✓", "right") if right else ("✗", "wrong")
    return f'<b class="tl-{kind}">{mark} {_vector(output)}</b>'


def _text(number):
    return entry_text("", float(number))


def _vector(numbers):
    return f"({', '.join(map(_text, numbers))})"


def _fold_steps():
    """List of each tile of the start, and each of its queries, the state afterwards."""
    tiles = [(queries, keys) for queries, keys in _tiles_of_size(2, 2) if keys[0] <= queries[-1]]
    rows = []
    for n, (queries, keys) in enumerate(tiles, start=1):
        states = _fold_tiles(tiles[:n])
        name = f"queries {queries[0]}–{queries[-1]}, keys {keys[0]}–{keys[-1]}"
        for t in queries:
            output = states[t].output(t)
            texts = [*states[t].number_texts(), "–" if output is None else _vector(output)]
            rows.append((name, f"{t} {_WORDS[t]}", *texts))
    return rows
