"""The softmax bench as text: the example's row of bark in head 0."""

from tutorial_lib.elements.exhibits import softmax_bench


def test_text_says_the_state():
    assert softmax_bench().text == (
        "Softmax bench: q · k is divided by 2: largest weight 0.5714, entropy 1.3788 bits.\n"
        "   dogs, 2 ln 2, ln 2, 2, 4/7\n"
        "   that, −2 ln 2, −ln 2, 1/2, 1/7\n"
        "   bark, 0, 0, 1, 2/7"
    )
    assert "\n   dogs, 2 ln 2, ln 2, 2, 4/7, 12/49\n" in softmax_bench(slope=True).text
