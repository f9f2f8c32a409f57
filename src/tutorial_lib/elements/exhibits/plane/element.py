"""The plane of queries and keys: a query to turn, and its output in the triangle of the values."""

from dataclasses import replace
from math import cos, hypot, radians, sin

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights
from tutorial_lib.elements.exhibits.arrays import four_places
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    button_row,
    exhibit,
    fold_numbers,
    given,
    text_field,
)
from tutorial_lib.elements.tables import table
from tutorial_lib.example import running_example
from tutorial_lib.multihead import project_heads

_COLUMNS = ([0, 1], [0, 2])  # of four, those of the keys of head 0 and of head 1
# As it begins: how many heads, whose query is drawn, and of each its angle in degrees and length.
_FIRST = {"heads": 1, "head": 0, "angle": 0, "length": 1, "angle.1": 110, "length.1": 2}
_LONGEST = 4
_FIELDS = (("angle", "angle of the query, in degrees", "°"), ("length", "length of the query", ""))
_UNIT, _SIDE = 25, 120  # pixels of a length of 1 in the plane, and of the triangle's square
_UTMOST = 8  # of the dot products, and of those below 0
_QUESTION = (
    "Turn the query and make it longer, until its output comes close to an edge of the triangle. "
    "Can it reach the edge, or leave the triangle?"
)
_ASKED_OF_PRODUCTS = (
    "Turn the query q until *that* fits it best, and then make it longer. "
    "Which changes the word that fits best, turning q or making it longer?"
)
_DRAG = "Drag the query q (by touch: tap it first), or turn and lengthen it by the arrow keys."
_HOW_TO = (
    f"{_DRAG} A dot on the line of q is a key's shadow: from the middle to the dot, times the "
    "length of q, is their dot product: the larger, the larger the weight. The output is the sum "
    "of the values, each times its weight."
)
_HOW = (
    "A score is the dot product over √2, the root of the width. A weight is <i>e</i> to the score, "
    "over the sum of three such exponentials; chapter 03 builds both. A second head has keys of "
    "its own, and here the same values, so that one triangle holds both outputs. With Shift the "
    "arrow keys take smaller steps."
)
_HOW_PRODUCTS = (
    "The column q · k holds the dot products: first entry times first entry, plus second times "
    "second. A dot on the line of q is a key's shadow. Its distance from the middle, times the "
    "length of q, is the dot product too, and a dot behind q makes it negative. With Shift "
    "the arrow keys take smaller steps."
)


def query_plane(*, weights=True):
    """Show keys of the running example in two dimensions, and a query that is the reader's own.

    Introduced in chapter 02. The reader turns and lengthens the query; scores, weights and the
    output follow. A second head can be switched on. Without `weights` there is one head and
    nothing but the dot products, for a reader who does not know the softmax yet.
    """
    return draw_plane(weights=weights)


def draw_plane(*, weights=True, **state):
    """Draw the plane in a state, whose parts are called as a link calls them."""
    state = _FIRST | state
    heads = _head_records(state)[: 2 if weights else 1]
    rows = [row if weights else row[:3] for row in heads[0]["rows"]]
    shown = "".join(map(_weight_bars, heads)) if weights else _product_bars(heads[0])
    mixed = f"\n{_triangle_svg(heads)}" if weights else ""
    more = f' data-heads="{state["heads"]}"' * weights
    second = "Second head"
    asked, how = (_QUESTION, _HOW_TO) if weights else (_ASKED_OF_PRODUCTS, _DRAG)
    parts = [
        f'<div class="tl-sheet" {_script_data_attribute(len(heads))}>',
        f"<div>{_plane_svg(heads[state['head']])}\n{_query_fields(heads[state['head']])}</div>",
        f'<div><div class="tl-askers"{more}>{shown}</div>{mixed}</div>',
        "</div>",
        button_row([second, "Reset"] if weights else ["Reset"], [second] * (state["heads"] - 1)),
        _numbers_fold(heads, weights),
    ]
    lines = [f"   {word}: {', '.join(rest)}" for word, *rest in rows]
    title = "Plane of queries and keys"
    text = "\n".join([title, _head_summary(heads[0], weights), *lines])
    plane = exhibit("plane", title, asked, how, *parts, text=text)
    if weights:
        return plane
    bare = plane.html.replace('class="tl tl-plane"', 'class="tl tl-plane tl-bare"', 1)
    return replace(plane, html=bare)


def _example_keys_and_values():
    """Return words, two columns of the keys of each head, and two of the values of head 0."""
    example = running_example()
    K = project_heads(example.X, example.params.W_K)
    V = project_heads(example.X, example.params.W_V)
    keys = [K[h][:, columns] for h, columns in enumerate(_COLUMNS)]
    return example.tokens, keys, V[0][:, :2]


def _script_data_attribute(n_heads):
    words, keys, values = _example_keys_and_values()
    arrays = {"keys": [one.tolist() for one in keys[:n_heads]], "values": values.tolist()}
    return given({"words": words, **arrays, "first": _FIRST})


def _head_records(state):
    """List of each head all that is drawn and written of it."""
    words, keys, values = _example_keys_and_values()
    found = []
    for h, part in enumerate(("", ".1")):
        angle, length = state[f"angle{part}"], state[f"length{part}"]
        way = np.array([cos(radians(angle)), sin(radians(angle))])
        query = length * way
        scores = attention_scores(query[None], keys[h])  # (1, S)
        weights = attention_weights(scores)
        output = (weights @ values)[0]
        columns = zip(keys[h] @ query, scores[0], weights[0], strict=True)
        rows = [
            (word, _whole(key), *map(four_places, numbers))
            for word, key, numbers in zip(words, keys[h], columns, strict=True)
        ]
        drawn = {"query": query, "way": way, "keys": keys[h], "values": values, "words": words}
        found.append(drawn | {"h": h, "rows": rows, "weights": weights[0], "output": output})
        found[-1] |= {"angle": angle, "length": length, "off": h >= state["heads"]}
    return found


def _head_summary(head, weights):
    """Say in a line where the query of a head is, and its output."""
    angle, length = (f"{head[name]:.10g}".replace("-", "−") for name in ("angle", "length"))
    where = f"angle {angle}°, length {length}, query {_vector(head['query'])}"
    output = f", output {_vector(head['output'])}" if weights else ""
    return f"Head {head['h']}: {where}{output}."


def _vector(numbers):
    return f"({', '.join(map(four_places, numbers))})"


def _whole(numbers):
    return "({})".format(", ".join(f"{number:g}".replace("-", "−") for number in numbers))


def _xy(x, y):
    """Write a place in pixels, with no 0 below 0."""
    return f"{round(x, 2) + 0:g} {round(y, 2) + 0:g}"


def _line(start, end, attributes=""):
    ends = zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True)
    drawn = " ".join(f'{name}="{round(float(at), 2) + 0:g}"' for name, at in ends)
    return f"<line {attributes}{drawn}/>"


def _to_pixels(vector):
    return _UNIT * vector[0], -_UNIT * vector[1]


def _triangle_to_pixels(value):
    return _SIDE * value[0], _SIDE * (1 - value[1])


def _plane_svg(head):
    """Draw the query on its line, its keys, and what they cast on that line."""
    query, way = head["query"], head["way"]
    line = _line(_to_pixels(-_LONGEST * way), _to_pixels(_LONGEST * way), 'data-part="way" ')
    keys = "".join(map(_key_svg, head["words"], head["keys"], [way] * len(head["keys"])))
    x, y = _to_pixels(query)
    arrow = _line((0, 0), (x, y), 'data-part="q" ')
    hidden = f" {HIDDEN}" * (head["length"] == 0)
    tip = f'transform="translate({_xy(x, y)}) rotate({-head["angle"]:.10g})"{hidden}'
    name = f'transform="translate({_xy(x - 11 * way[1], y - 11 * way[0])})"'
    rim = '<path d="M-100 0h200M0-100v200"/><circle r="100"/>'
    said = f'data-head="{head["h"]}" role="img" aria-label="A query and its keys"'
    return (
        f'<div class="tl-arrows"><svg viewBox="-112 -112 224 224" {said}>{rim}{line}'
        f'{keys}{arrow}<path data-part="tip" d="M1 0l-10-5v10z" {tip}/>'
        f'<text data-part="name" {name}>q</text></svg></div>'
    )


def _key_svg(word, key, query_direction):
    end, foot = _to_pixels(key), _to_pixels((key @ query_direction) * query_direction)
    x, y = _to_pixels(key * (1 + 9 / (_UNIT * hypot(*key))))
    beside = x + (0 if key[0] else 6), y + (0 if key[1] else 11)  # the axes
    lines = _line(end, foot, 'data-part="drop" ') + _line((0, 0), end)
    circles = "".join(
        f'<circle {more}r="{r}" transform="translate({_xy(*at)})"/>'
        for more, r, at in (("", 3.5, end), ('data-part="foot" ', 2.8, foot))
    )
    text = f'<text transform="translate({_xy(*beside)})">{word}</text>'
    return f'<g data-side="{np.sign(key[0]) or 1:g}">{lines}{circles}{text}</g>'


def _query_fields(head):
    cells = [
        f"<label>{name}{text_field(label, f'{head[name]:.10g}', f' {KEYS}')}{unit}</label>"
        for name, label, unit in _FIELDS
    ]
    return f'<div class="tl-lists tl-polar" {HIDDEN}><div>{"".join(cells)}</div></div>'


def _hidden_attribute(head):
    """Hide what belongs to the second head until it is switched on."""
    return f" {HIDDEN}" * head["off"]


def _weight_bars(head):
    """Draw the weights of a head as bars."""
    bars = _bars_html(head["words"], head["weights"], head["weights"])
    opening = f'<div class="tl-asker" data-head="{head["h"]}"{_hidden_attribute(head)}>'
    return f"{opening}<b>head {head['h']}, weights</b><div>{bars}</div></div>"


def _product_bars(head):
    """Draw the dot products of a query and its keys as bars, which begin in the middle."""
    products = head["keys"] @ head["query"]
    bars = _bars_html(head["words"], products / _UTMOST, products)
    opening = '<div class="tl-asker tl-products" data-head="0">'
    return f"{opening}<b>dot products with q</b><div>{bars}</div></div>"


def _bars_html(words, fractions, numbers):
    return "".join(
        f'<span>{word}</span><i style="--share:{share:.4f}"></i><span>{four_places(number)}</span>'
        for word, share, number in zip(words, fractions, numbers, strict=True)
    )


def _triangle_svg(heads):
    """Draw the values as corners, and in them the output of each head, held by its weights."""
    words, values = heads[0]["words"], heads[0]["values"]
    edges = " ".join(_xy(*_triangle_to_pixels(value)).replace(" ", ",") for value in values)
    names = "".join(
        f'<text data-side="{1 - 2 * value[0]:g}" transform="translate({_xy(*_corner(value))})">'
        f"{word} {_whole(value)}</text>"
        for word, value in zip(words, values, strict=True)
    )
    outputs = [f"head {head['h']} {_vector(head['output'])}" for head in heads if not head["off"]]
    said = f"Triangle of the values. Output of {', of '.join(outputs)}"
    box = 'viewBox="-14 -26 148 170" role="img"'
    marks = "".join(map(_output_mark_svg, heads))
    return (
        f'<svg class="tl-mix" {box} aria-label="{said}"><polygon points="{edges}"/>'
        f'<text data-side="1" x="-12" y="94">output</text>{names}{marks}</svg>'
    )


def _corner(value):
    """Where the name of a value stands: outside the square, over or under its corner."""
    x, y = _triangle_to_pixels(value)
    return x + (12 if value[0] else -12), y + (17 if y else -13)


def _output_mark_svg(head):
    end = _triangle_to_pixels(head["output"])
    strings = "".join(
        _line(_triangle_to_pixels(value), end, f'stroke-width="{8 * weight:.2f}" ')
        for value, weight in zip(head["values"], head["weights"], strict=True)
    )
    shape = '<rect x="-5" y="-5" width="10" height="10"/>' if head["h"] else '<circle r="6"/>'
    point = f'<g data-part="output" transform="translate({_xy(*end)})">{shape}</g>'
    text = f'<text x="-12" y="{108 + 14 * head["h"]}">{_vector(head["output"])}</text>'
    return f'<g data-head="{head["h"]}"{_hidden_attribute(head)}>{strings}{point}{text}</g>'


def _numbers_fold(heads, weights):
    parts, count = [], 5 if weights else 3
    for head in heads:
        names = ("word", "key", "q · k", "score", "weight")[:count]
        rows = [row[:count] for row in head["rows"]]
        shown = f"<p>{_head_summary(head, weights)}</p>\n{table(names, rows)}"
        parts.append(f"<div{_hidden_attribute(head)}>{shown}</div>")
    return fold_numbers(*parts, how=_HOW if weights else _HOW_PRODUCTS)
