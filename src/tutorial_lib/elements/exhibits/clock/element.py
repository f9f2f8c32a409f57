"""RoPE as two hands of a clock: pairs of a query and a key, rotated by their positions."""

from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import attention_scores
from tutorial_lib.elements.exhibits.arrays import four_places
from tutorial_lib.elements.markup import (
    HIDDEN,
    button_row,
    exhibit,
    fold_numbers,
    given,
    slider,
    text_field,
)
from tutorial_lib.elements.tables import table
from tutorial_lib.variants.positions import rope_frequencies, rotate

# Four pairs of length 1, so that a product is the cosine of the angle between two hands.
_QUERY = np.array([1, 0, 1, 0, 1, 0, 0, 1.0])
_KEY = np.array([1, 0, 0.8, 0.6, 1, 0, 0.6, 0.8])
_FREQUENCIES = np.round(rope_frequencies(len(_QUERY)), 12)  # the same bytes on every machine
_NEAR, _DISTANCES = 40, range(13)  # the last position of a slider; the distances of the table
_BOTH = "Move both together"
_QUESTION = "At which distance up to 40 is the score largest? And what if both move on?"
_HOW_TO = (
    "Drag a hand or a slider, or write a number, also one beyond the slider; a frequency may be "
    "written as π/2. Arrow keys choose a pair."
)
_LEGEND = (
    "A pair of entries is a hand: the first points up, the second to the right. A hand is rotated "
    "by its position times its frequency θ. The thick line is the key's hand projected onto the "
    "query's: the product of the pair."
)


@dataclass(frozen=True)
class _ClockState:
    """The query at position m, the key at position n, and the pair that is chosen.

    Parameters
    ----------
    frequencies : one for each pair, in radians
    together : whether a press moves both
    """

    m: int = 9
    n: int = 4
    pair: int = 0
    frequencies: tuple = tuple(_FREQUENCIES.tolist())
    together: bool = False

    def hands(self):
        """Return the pairs of the query and of the key: (2, pairs, 2)."""
        return np.concatenate(list(self._rotate_both(self.m, self.n))).reshape(2, -1, 2)

    def products(self):
        return self.hands().prod(axis=0).sum(axis=-1)

    def score(self, m, n):
        return attention_scores(*self._rotate_both(m, n)).item()

    def summary_text(self):
        """Say where both are, and the score."""
        distance = f"{self.m - self.n}".replace("-", "−")
        score = four_places(self.score(self.m, self.n))
        return f"query at {self.m}, key at {self.n}, distance {distance}: the score is {score}."

    def _rotate_both(self, *positions):
        frequencies = np.array(self.frequencies)
        for vector, position in zip((_QUERY, _KEY), positions, strict=True):
            yield rotate(vector[None], np.array([position]), frequencies)


def rotation_clock():
    """Show a query and a key as hands that are rotated by their positions, pair by pair.

    The reader moves the positions and changes the frequencies; the score is the sum over the pairs.
    """
    return draw_clock()


def draw_clock(**state):
    """Draw the clock in a state, whose parts are called as a link calls them."""
    frequencies = [state.pop(f"frequency.{i}", by) for i, by in enumerate(_ClockState.frequencies)]
    clock, first = _ClockState(**state, frequencies=tuple(frequencies)), _ClockState()
    named = {f"frequency.{i}": by for i, by in enumerate(first.frequencies)}
    begins = {
        "Q": _QUERY.reshape(-1, 2).tolist(),
        "K": _KEY.reshape(-1, 2).tolist(),
        "first": {"m": first.m, "n": first.n, "pair": first.pair} | named,
    }
    pairs = "".join(_pair_html(clock, i) for i in range(len(frequencies)))
    parts = [
        f'<div class="tl-clocks" {given(begins)}>',
        f'<div class="tl-face">{_face_svg(clock, clock.pair, letters=True)}</div>',
        f'<div><div class="tl-pairs">{pairs}</div>\n{_score(clock)}\n{_controls(clock)}</div>',
        "</div>",
        button_row([_BOTH, "Reset"], pressed=[_BOTH] * clock.together),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers_fold(clock),
    ]
    text = "\n".join(f"   {', '.join(row)}" for row in _table_rows(clock))
    text = f"Clock: {clock.summary_text()}\n{text}"
    return exhibit("clock", "Clock", _QUESTION, _HOW_TO, *parts, text=text)


def _face_svg(clock, i, *, letters=False):
    """Draw the hands of a pair: the first entry up, the second to the right."""
    query, key = clock.hands()[:, i]
    cast = (query @ key) * query
    ends = {"drop": (key, cast), "cast": (0 * cast, cast), "k": (0 * key, key), "q": (0, query)}
    lines = "".join(_line_svg(part, *at) for part, at in ends.items())
    texts = [_letter_svg("q", 114 * query), _letter_svg("k", 131 * key)] * letters
    said = f'role="img" aria-label="The hands of pair {i}"' if letters else 'aria-hidden="true"'
    box = "-140 -140 280 280" if letters else "-112 -112 224 224"
    dial = '<circle r="100"/><path d="M0-100v9"/>'
    return f'<svg viewBox="{box}" {said}>{dial}{lines}{"".join(texts)}</svg>'


def _line_svg(part, start, end):
    (up1, right1), (up2, right2) = (np.broadcast_to(at, 2) for at in (start, end))
    ends = {"x1": right1, "y1": -up1, "x2": right2, "y2": -up2}
    drawn = " ".join(f'{name}="{_round(100 * at)}"' for name, at in ends.items())
    return f'<line data-part="{part}" {drawn}/>'


def _letter_svg(letter, position):
    up, right = position
    return f'<text data-letter="{letter}" x="{_round(right)}" y="{_round(-up)}">{letter}</text>'


def _round(number):
    """Round to hundredths, with no 0 below 0."""
    return f"{round(number, 2) + 0:g}"


def _pair_html(clock, i):
    product, frequency = four_places(clock.products()[i]), f"{clock.frequencies[i]:.6g}"
    words = f"pair {i}<br>θ <span>{frequency}</span><br><b>{product}</b>"
    return f'<div class="tl-pair">{_face_svg(clock, i)}<p>{words}</p></div>'


def _score(clock):
    total, score = clock.products().sum(), clock.score(clock.m, clock.n)
    words = f"sum {four_places(total)}, ÷ √{len(_QUERY)}: score <b>{four_places(score)}</b>"
    bar = f'<rect x="{_round(25 * min(total, 0))}" width="{_round(25 * abs(total))}" height="8"/>'
    svg = f'<svg viewBox="-101 -2 202 12" aria-hidden="true">{bar}<path d="M0-2v12"/></svg>'
    return f'<div class="tl-total"><p>{words}</p>{svg}</div>'


def _controls(clock):
    """Draw a slider and a field for each position, and a field for the frequency of a pair."""
    rows = []
    for what, position in (("query", clock.m), ("key", clock.n)):
        label = f"position of the {what}"
        field = text_field(f"{label}, as a number", position)
        rows.append(f"<span>{what} at</span>{slider(label, position, _NEAR)}{field}")
    field = text_field("frequency of the pair", f"{clock.frequencies[clock.pair]:.6g}")
    rows.append(f"<span>frequency of pair {clock.pair}, in radians</span>{field}")
    lines = "".join(f'<div class="tl-move">{row}</div>' for row in rows)
    return f'<div class="tl-lists" {HIDDEN}>{lines}</div>'


def _table_rows(clock):
    """List of every pair its name, its hands and their product."""
    hands = [["({}, {})".format(*map(four_places, hand)) for hand in one] for one in clock.hands()]
    names = [f"pair {i}, frequency {by:.6g}" for i, by in enumerate(clock.frequencies)]
    return list(zip(names, *hands, map(four_places, clock.products()), strict=True))


def _numbers_fold(clock):
    scores = [(str(distance), four_places(clock.score(distance, 0))) for distance in _DISTANCES]
    names = ("pair", "query", "key", "product")
    tables = [table(names, _table_rows(clock)), table(("distance", "score"), scores)]
    state = f"<p>{clock.summary_text().capitalize()}</p>"
    return fold_numbers(state, *tables)
