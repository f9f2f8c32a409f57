"""The softmax on a bench: three products of a query with keys, and their weights."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.elements.maps import table
from tutorial_lib.elements.markup import (
    HIDDEN,
    Element,
    ask,
    band,
    button_row,
    fold_numbers,
    inline,
    text_field,
    wrap,
)
from tutorial_lib.example import running_example
from tutorial_lib.gradients import softmax_backward
from tutorial_lib.projection import project_heads

_EDGE = 7  # where the picture of a bar ends, above and below
_MARKS = {1: "1", 2: "2 = √d<sub>k</sub>", 4: "4", 8: "8", 16: "16"}  # along the slider
_QUESTION = "Add 5 to all three: whose weight grows?"
_SLOPE_QUESTION = "Lift and lower *dogs*: at which weight is its own slope largest?"
_TASK = "Find the divisor at which *dogs* gets 16/21 of the weight. "
_SLOPE = (
    "The slopes are those of all weights in the score of the bar with a frame: one press chooses a "
    "bar, the next ones move it. The dot leaves a trail. "
)
_CURVE = "The dot stands above a weight, as high as the slope of that weight in its own score. "
_HOW_TO = (
    "Drag a bar (by touch: tap it first), or write a number such as "
    "3\N{NO-BREAK SPACE}ln\N{NO-BREAK SPACE}2, also one beyond the picture. Arrow keys choose a "
    "bar and move it by ln\N{NO-BREAK SPACE}2, which doubles an exponential where nothing is "
    "divided."
)
_LEGEND = (
    "{}The entropy measures how evenly the weight is spread over the keys. It is 0 bits if one key "
    "has all of it."
)
_HOW = "{}Three equal weights have an entropy of 1.585 bits."


@dataclass(frozen=True)
class _Row:
    """A query's products with its keys, in units of ln 2, and what divides them."""

    word: str
    words: tuple
    products: tuple
    divide: int
    slope: bool

    @property
    def scores(self):
        return np.log(2) * np.array(self.products) / self.divide

    @property
    def weights(self):
        return softmax(self.scores)

    @property
    def slopes(self):
        """The slopes of all weights in the first score, which are those of its weight in all."""
        return softmax_backward(self.weights, np.eye(len(self.words))[0])

    @property
    def title(self):
        return f"q · k of <em>{self.word}</em> with each word"

    def names(self):
        return ("score", "e to the score", "weight", *[f"slope by {self.words[0]}"] * self.slope)

    def lines(self):
        """List of every key its score, its exponential, its weight and, if asked for, the slope."""
        scores = [_units(product / self.divide) for product in self.products]
        columns = [map(_simple, np.exp(self.scores)), map(_simple, self.weights)]
        columns += [map(_simple, self.slopes)] * self.slope
        return list(zip(scores, *columns, strict=True))

    def sums(self):
        entropy = -(self.weights * np.log2(self.weights)).sum()
        return f"{self.weights.max():.4f}", f"{entropy:.4f}"

    def told(self):
        largest, entropy = self.sums()
        summed = f"largest weight {largest}, entropy {entropy} bits"
        return f"q · k is divided by {self.divide}: {summed}."


def softmax_bench(*, slope=False):
    """Show a softmax of three scores: what is divided, exponentiated and normalised.

    The numbers are those of the last word of the running example, in head 0.

    Parameters
    ----------
    slope : bool, show the slopes of the weights in a chosen score too
    """
    row = _row_of_example(slope)
    given = json.dumps(
        {"words": row.words, "products": row.products, "divide": row.divide, "slope": slope},
        separators=(",", ":"),
    )
    right = "\n".join([_divisor(row), _shown(row), _stack(row), _curve(row) * slope])
    body = [
        ask(_SLOPE_QUESTION if slope else _QUESTION),
        band(_HOW_TO),
        f'<div class="tl-rig" data-given="{escape(given)}">',
        f"<figure>{_bars(row)}</figure>",
        f"<div>{right}</div></div>",
        button_row(["Add 5 to all", "Subtract the largest score", "Reset"]),
        f'<p class="tl-legend">{inline(_LEGEND.format(_SLOPE if slope else _TASK))}</p>',
        _numbers(row),
    ]
    lines = [", ".join(line) for line in _rows(row)]
    text = "\n   ".join([f"Softmax bench: {row.told()}", *lines])
    return Element(wrap("bench", "tl-bench", "Softmax bench", body), text)


def _row_of_example(slope):
    example = running_example()
    W_Q, W_K = example.params.W_Q, example.params.W_K
    q, K = project_heads(example.X[-1:], W_Q)[0, 0], project_heads(example.X, W_K)[0]
    products = tuple(np.round(K @ q / np.log(2)).astype(int).tolist())
    root = math.isqrt(example.params.d_k)
    return _Row(example.tokens[-1], example.tokens, products, root, slope)


def _simple(number):
    """Write a number of the example, which is a fraction."""
    return str(Fraction(number).limit_denominator(1000)).replace("-", "−")


def _units(count):
    """Write so many times ln 2."""
    if count in (0, 1, -1):
        return ("0", "ln 2", "−ln 2")[int(count)]
    return f"{count:g} ln 2".replace("-", "−")


def _bars(row):
    """Draw a bar for each product, up or down from 0, with what moves it."""
    axis = "".join(f"<span>{n}</span>" for n in (_EDGE, 0, f"−{_EDGE}"))
    chosen = [row.slope and i == 0 for i in range(len(row.words))]
    bars = "".join(map(_bar, row.words, row.products, chosen))
    title = f'<p class="tl-title">{row.title}</p>'
    return f'{title}<div class="tl-bars"><div class="tl-axis">{axis}</div>{bars}</div>'


def _bar(word, count, chosen):
    height = 50 * abs(count) * np.log(2) / _EDGE
    top = 50 - height * (count > 0)
    bar = f'<i style="top:{top:.2f}%;height:{height:.2f}%"></i>'
    marks = " data-minus" * (count < 0) + " data-by" * chosen
    lane = f'<div class="tl-lane"{marks}>{bar}</div>'
    label = f"q · k of {word}, as a number"
    hide = f'<label><input type="checkbox" aria-label="hide {word}">hide</label>'
    served = f'<div class="tl-lists" {HIDDEN}>{text_field(label, _units(count))}{hide}</div>'
    return f"<div><b>{word}</b>{lane}<span>{_units(count)}</span>{served}</div>"


def _divisor(row):
    """Draw what divides the products: a slider by powers of 2, and a field."""
    marks = "".join(
        f'<span style="left:{25 * math.log2(n):g}%">{mark}</span>' for n, mark in _MARKS.items()
    )
    slider = (
        '<input type="range" aria-label="divide by" min="0" max="4" step="0.05" '
        f'value="{math.log2(row.divide):g}">'
    )
    field = text_field("divide by, as a number", row.divide)
    return (
        f'<div class="tl-lists" {HIDDEN}><div class="tl-divide"><span>divide by</span>'
        f'<div>{slider}<p aria-hidden="true">{marks}</p></div>{field}</div></div>'
    )


def _shown(row):
    """Draw each product, its exponential beside the largest, and its weight."""
    exponentials = np.exp(row.scores)
    lines = []
    for word, (score, exponential, *rest), part in zip(
        row.words, row.lines(), exponentials / exponentials.max(), strict=True
    ):
        bar = f'<span>{exponential}</span><i style="width:{100 * part:.2f}%"></i>'
        lines.append((word, score, bar, *rest))
    return table(("key", *row.names()), lines)


def _stack(row):
    """Draw the weights side by side, 1 together, and the two numbers that sum them up."""
    parts = []
    for word, weight in zip(row.words, row.weights, strict=True):
        small = "" if weight > 0.13 else " data-small"
        parts.append(f'<span style="width:{100 * weight:.2f}%"{small}>{word}</span>')
    largest, entropy = (f"<b>{number}</b>" for number in row.sums())
    return (
        f'<div class="tl-stack" aria-hidden="true">{"".join(parts)}</div>'
        f'<p class="tl-two">largest weight {largest}, entropy {entropy} bits</p>'
    )


def _curve(row):
    """Draw the slope of a weight in its own score over the weight, a dot for the first word."""
    weight = row.weights[0]
    x, y = f"{160 * weight:.2f}", f"{-240 * weight * (1 - weight):.2f}"
    names = (("start", 166, 4, "weight"), ("middle", 80, 15, "1/2"), ("middle", 160, 15, "1"))
    names += (("end", -6, -56, "1/4"), ("end", -6, 4, "0"), ("start", -30, -74, "its own slope"))
    texts = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
        for anchor, x, y, text in names
    )
    said = 'role="img" aria-label="The slope of a weight in its own score, over the weight"'
    return (
        f'<svg class="tl-curve" viewBox="-32 -90 240 112" {said}>{texts}'
        '<path d="M0 0h160M0-60h-4M80 0v4M160 0v4"/>'
        '<path data-part="curve" d="M0 0Q80-120 160 0"/>'
        f'<path data-part="drop" d="M{x} 0V{y}H0"/><path data-part="trail" d="M{x} {y}h0"/>'
        f'<circle r="5" transform="translate({x} {y})"/></svg>'
    )


def _rows(row):
    return [
        (word, _units(product), *line)
        for word, product, line in zip(row.words, row.products, row.lines(), strict=True)
    ]


def _numbers(row):
    shown = table(("key", "q · k", *row.names()), _rows(row))
    how = inline(_HOW.format(_CURVE if row.slope else ""))
    return fold_numbers(f"<p>{row.told()}</p>", shown, how=how)
