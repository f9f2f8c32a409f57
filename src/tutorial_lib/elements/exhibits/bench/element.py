"""The softmax on a bench: three products of a query with keys, and their weights."""

import math
import re
from dataclasses import dataclass

import numpy as np

from tutorial_lib.elements.exhibits.arrays import entry_text, four_places
from tutorial_lib.elements.markup import (
    HIDDEN,
    button_row,
    exhibit,
    fold_numbers,
    given,
    inline,
    slider,
    text_field,
)
from tutorial_lib.elements.tables import table
from tutorial_lib.example import running_example
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
class _BenchState:
    """A query's products with its keys, and what becomes of them.

    Parameters
    ----------
    hidden : list of booleans, the keys that are hidden
    away : whether the largest score is subtracted before the exponential
    by : the number of the key in whose score the slopes are
    slope : whether there are slopes
    """

    word: str
    words: tuple
    products: np.ndarray
    divide: float
    hidden: list
    away: bool
    by: int
    slope: bool

    @property
    def scores(self):
        return np.where(self.hidden, -np.inf, self.products / self.divide)

    @property
    def largest_score(self):
        """The score that is subtracted from all."""
        return self.scores.max() if self.away and not all(self.hidden) else 0

    def softmax_parts(self):
        """Return the exponentials, the weights, and the slopes of all weights in one score.

        As a float64 has them, so that inf / inf is nan.
        """
        with np.errstate(all="ignore"):
            exponentials = np.exp(self.scores - self.largest_score)
            weights = exponentials / (exponentials.sum() if not all(self.hidden) else 1)
            slopes = weights * (np.eye(len(weights))[self.by] - weights[self.by])
        return exponentials, weights, slopes

    @property
    def title(self):
        return f"q · k of <em>{self.word}</em> with each word"

    def column_headers(self):
        less = f" less {_in_ln_2(self.largest_score)}" * self.away
        names = ("score", f"e to the score{less}", "weight")
        return (*names, *[f"slope by {self.words[self.by]}"] * self.slope)

    def cells_by_key(self):
        """List of every key its score, its exponential, its weight and, if asked for, the slope."""
        exponentials, weights, slopes = self.softmax_parts()
        scores = ["−∞" if score == -np.inf else _in_ln_2(score) for score in self.scores]
        columns = [map(_exponential_text, exponentials), map(_weight_text, weights)]
        columns += [map(_weight_text, slopes)] * self.slope
        return list(zip(scores, *columns, strict=True))

    def largest_weight_and_entropy(self):
        weights = self.softmax_parts()[1]
        entropy = -(weights * np.log2(np.where(weights == 0, 1, weights))).sum()
        return _four_decimals(weights.max()), _four_decimals(entropy)

    def summary_text(self):
        largest, entropy = self.largest_weight_and_entropy()
        summed = f"largest weight {largest}, entropy {entropy} bits"
        return f"q · k is divided by {_six_digits(self.divide)}: {summed}."


def softmax_bench(*, slope=False):
    """Show a softmax of three scores: what is divided, exponentiated and normalised.

    The numbers are those of the last word of the running example, in head 0.

    Parameters
    ----------
    slope : bool, show the slopes of the weights in a chosen score too
    """
    return draw_bench(slope=slope)


def draw_bench(*, slope=False, hide="", largest="", by="", **state):
    """Draw the bench in a state, whose parts are called as a link calls them."""
    word, words, counts, root = _example_products()
    first = dict(zip(words, np.log(2) * np.array(counts), strict=True)) | {"divide": root}
    state = first | state
    products = np.array([state[word] for word in words])
    hidden = [word in hide.split() for word in words]
    chosen = words.index(by) if by else 0
    away = largest == "away"
    row = _BenchState(word, words, products, state["divide"], hidden, away, chosen, slope)
    begins = {"words": words, "products": counts, "divide": root, "slope": slope}
    right = "\n".join([_divisor(row), _softmax_table(row), _weight_stack(row), _curve(row) * slope])
    subtract = "Subtract the largest score"
    parts = [
        f'<div class="tl-rig" {given(begins)}>',
        f"<figure>{_product_bars(row)}</figure>",
        f"<div>{right}</div></div>",
        button_row(["Add 5 to all", subtract, "Reset"], [subtract] * away),
        f'<p class="tl-legend">{inline(_LEGEND.format(_SLOPE if slope else _TASK))}</p>',
        _numbers_fold(row),
    ]
    lines = [", ".join(line) for line in _table_rows(row)]
    text = "\n   ".join([f"Softmax bench: {row.summary_text()}", *lines])
    asked = _SLOPE_QUESTION if slope else _QUESTION
    return exhibit("bench", "Softmax bench", asked, _HOW_TO, *parts, text=text)


def _example_products():
    """Return the last word, all words, its products in units of ln 2, and the root of d_k."""
    example = running_example()
    W_Q, W_K = example.params.W_Q, example.params.W_K
    q, K = project_heads(example.X[-1:], W_Q)[0, 0], project_heads(example.X, W_K)[0]
    counts = np.round(K @ q / np.log(2)).astype(int).tolist()
    return example.tokens[-1], example.tokens, counts, math.isqrt(example.params.d_k)


def _four_decimals(number):
    return "nan" if np.isnan(number) else four_places(number)


def _six_digits(number):
    return f"{float(f'{number:.6g}'):.12f}".rstrip("0").rstrip(".").replace("-", "−")


def _in_ln_2(number):
    """Write a number as so many times ln 2, if these are quarters."""
    times = round(4 * number / np.log(2)) / 4
    if not times or abs(number - times * np.log(2)) >= 1e-12 * max(1, abs(number)):
        return _six_digits(number)
    return re.sub("^(-?)1 ", r"\1", f"{times:g} ln 2").replace("-", "−")


def _fraction_text(number):
    """Write a number as a fraction; what is only near 0 or near 1 is none, and gives nothing."""
    text = entry_text("", number) if np.isfinite(number) else ""
    whole = text.lstrip("−").isdigit()
    exact = whole and (int(text.lstrip("−")) > 1 or number == int(text))
    return text if "/" in text or exact else ""


def _weight_text(number):
    return _fraction_text(number) or _four_decimals(number)


def _exponential_text(number):
    if number == np.inf:
        return "inf"
    far = number < 1e-3 or number >= 1e5
    short = re.sub(r"e([+-])0", r"e\1", f"{number:.2e}").replace("-", "−", 1)
    return _fraction_text(number) or (short if far else _four_decimals(number))


def _product_bars(bench):
    """Draw a bar for each product, up or down from 0, with what moves it."""
    axis = "".join(f"<span>{n}</span>" for n in (_EDGE, 0, f"−{_EDGE}"))
    chosen = [bench.slope and i == bench.by for i in range(len(bench.words))]
    bars = "".join(map(_product_bar, bench.words, bench.products.tolist(), bench.hidden, chosen))
    title = f'<p class="tl-title">{bench.title}</p>'
    return f'{title}<div class="tl-bars"><div class="tl-axis">{axis}</div>{bars}</div>'


def _product_bar(word, product, hidden, chosen):
    end = min(max(product, -_EDGE), _EDGE)
    height = 50 * abs(end) / _EDGE
    top = 50 - height * (end > 0)
    bar = f'<i style="top:{top:.2f}%;height:{height:.2f}%"></i>'
    marks = " data-minus" * (end < 0) + " data-beyond" * (end != product)
    marks += " data-hidden" * hidden + " data-by" * chosen
    number = _in_ln_2(product)
    lane = f'<div class="tl-lane"{marks}>{bar}</div>'
    label = f"q · k of {word}, as a number"
    marks = f'aria-label="hide {word}"{" checked" * hidden}'
    hide = f'<label><input type="checkbox" {marks}>hide</label>'
    served = f'<div class="tl-lists" {HIDDEN}>{text_field(label, number)}{hide}</div>'
    return f"<div><b>{word}</b>{lane}<span>{number}</span>{served}</div>"


def _divisor(bench):
    """Draw what divides the products: a slider by powers of 2, and a field."""
    marks = "".join(
        f'<span style="left:{25 * math.log2(n):g}%">{mark}</span>' for n, mark in _MARKS.items()
    )
    control = slider("divide by", f"{math.log2(bench.divide):g}", 4, step=0.05)
    field = text_field("divide by, as a number", _six_digits(bench.divide))
    return (
        f'<div class="tl-lists" {HIDDEN}><div class="tl-divide"><span>divide by</span>'
        f'<div>{control}<p aria-hidden="true">{marks}</p></div>{field}</div></div>'
    )


def _softmax_table(bench):
    """Draw each product, its exponential beside the largest, and its weight."""
    exponentials = bench.softmax_parts()[0]
    with np.errstate(all="ignore"):
        parts = np.nan_to_num(exponentials / exponentials.max())
    lines = []
    for word, (score, exponential, *rest), part in zip(
        bench.words, bench.cells_by_key(), parts, strict=True
    ):
        bar = f'<span>{exponential}</span><i style="width:{100 * part:.2f}%"></i>'
        lines.append((word, score, bar, *rest))
    return table(("key", *bench.column_headers()), lines)


def _weight_stack(bench):
    """Draw the weights side by side, 1 together, and the two numbers that sum them up."""
    parts = []
    for word, weight in zip(bench.words, np.nan_to_num(bench.softmax_parts()[1]), strict=True):
        small = "" if weight > 0.13 else " data-small"
        parts.append(f'<span style="width:{100 * weight:.2f}%"{small}>{word}</span>')
    largest, entropy = (f"<b>{number}</b>" for number in bench.largest_weight_and_entropy())
    return (
        f'<div class="tl-stack" aria-hidden="true">{"".join(parts)}</div>'
        f'<p class="tl-two">largest weight {largest}, entropy {entropy} bits</p>'
    )


def _curve(bench):
    """Draw the slope of a weight in its own score over the weight, a dot for the first word."""
    weight = bench.softmax_parts()[1][bench.by]
    seen = not np.isnan(weight)
    x, y = (f"{160 * weight:.2f}", f"{-240 * weight * (1 - weight):.2f}") if seen else ("0", "0")
    trail = f"M{x} {y}h0" * seen
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
        f'<path data-part="drop" d="M{x} 0V{y}H0"/><path data-part="trail" d="{trail}"/>'
        f'<circle r="5" transform="translate({x} {y})"/></svg>'
    )


def _table_rows(bench):
    return [
        (word, _in_ln_2(x), *line)
        for word, x, line in zip(bench.words, bench.products, bench.cells_by_key(), strict=True)
    ]


def _numbers_fold(bench):
    shown = table(("key", "q · k", *bench.column_headers()), _table_rows(bench))
    how = inline(_HOW.format(_CURVE if bench.slope else ""))
    return fold_numbers(f"<p>{bench.summary_text()}</p>", shown, how=how)
