"""The softmax bench as text: the example's row of bark in head 0, and the library's numbers."""

from fractions import Fraction

import numpy as np
import pytest

from tutorial_lib import attention_weights
from tutorial_lib.elements.exhibits import softmax_bench
from tutorial_lib.elements.exhibits.bench.element import draw_bench
from tutorial_lib.gradients import softmax_backward

WORDS = ("dogs", "that", "bark")


@pytest.mark.parametrize("largest", ["", "away"])
def test_weights_and_slopes_are_the_librarys(largest):
    rng = np.random.default_rng(3)
    for i in range(40):
        products, divide = rng.uniform(-30, 30, 3), rng.uniform(1, 16)
        hidden = rng.random(3) < 0.25
        state = dict(zip(WORDS, products.tolist(), strict=True)) | {"divide": divide}
        hide = " ".join(word for word, out in zip(WORDS, hidden, strict=True) if out)
        text = draw_bench(slope=True, hide=hide, largest=largest, by=WORDS[i % 3], **state).text
        rows = [line.split(", ")[-2:] for line in text.splitlines()[1:]]
        weights = attention_weights(products[None] / divide, mask=~hidden[None])[0]
        slopes = softmax_backward(weights, np.eye(3)[i % 3])
        shown = [[float(Fraction(one.replace("−", "-"))) for one in row] for row in rows]
        np.testing.assert_allclose(shown, np.stack([weights, slopes], axis=1), atol=0.51e-4)


def test_text_says_the_state():
    assert softmax_bench().text == (
        "Softmax bench: q · k is divided by 2: largest weight 0.5714, entropy 1.3788 bits.\n"
        "   dogs, 2 ln 2, ln 2, 2, 4/7\n"
        "   that, −2 ln 2, −ln 2, 1/2, 1/7\n"
        "   bark, 0, 0, 1, 2/7"
    )
    assert "\n   dogs, 2 ln 2, ln 2, 2, 4/7, 12/49\n" in softmax_bench(slope=True).text
