"""The softmax bench as bytes: without a script it is the example's row of bark in head 0."""

import re

import numpy as np
import pytest

from tutorial_lib import running_example, trace
from tutorial_lib.elements.exhibits import softmax_bench
from tutorial_lib.gradients import softmax_backward

ROWS = re.compile(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>')


def tables(html):
    """The rows of each table, without marks."""
    return [
        [
            [word, *re.findall(r"<td>(.*?)</td>", re.sub(r"</?(span|i)[^>]*>", "", cells))]
            for word, cells in ROWS.findall(table)
        ]
        for table in html.split("<table")[1:]
    ]


def value(text):
    """The number that a text of the example stands for."""
    text = re.sub("^(-?)(?=ln)", r"\g<1>1 ", text.replace("−", "-"))
    number, _, unit = text.partition(" ")
    top, _, bottom = number.partition("/")
    return float(top) / float(bottom or 1) * (np.log(2) if unit else 1)


@pytest.mark.parametrize("slope", [False, True])
def test_form_without_a_script_is_the_row_of_bark_in_head_0(slope):
    example = running_example()
    layer = trace(example.X, example.params, mask=example.mask)
    divide, scores = np.sqrt(example.params.d_k), layer.scores[0, 2]
    exponentials = np.exp(scores)
    weights = exponentials / exponentials.sum()
    np.testing.assert_allclose(weights, layer.weights[0, 2], rtol=1e-12)
    columns = [scores, exponentials, weights]
    columns += [softmax_backward(weights, np.eye(3)[0])] * slope
    shown, whole = tables(softmax_bench(slope=slope).html)
    for table, expected in ((shown, columns), (whole, [divide * scores, *columns])):
        assert [row[0] for row in table] == list(example.tokens)
        found = [[value(text) for text in row[1:]] for row in table]
        np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12, atol=1e-12)


def test_text_says_the_state():
    assert softmax_bench().text == (
        "Softmax bench: q · k is divided by 2: largest weight 0.5714, entropy 1.3788 bits.\n"
        "   dogs, 2 ln 2, ln 2, 2, 4/7\n"
        "   that, −2 ln 2, −ln 2, 1/2, 1/7\n"
        "   bark, 0, 0, 1, 2/7"
    )
    assert "\n   dogs, 2 ln 2, ln 2, 2, 4/7, 12/49\n" in softmax_bench(slope=True).text
