"""The plane as bytes: the values at its corners, and dot products alone without the weights."""

import re

from tutorial_lib import project_heads, running_example
from tutorial_lib.elements.exhibits import query_plane
from tutorial_lib.elements.sources import script

HTML = query_plane().html


def written(*numbers):
    """Numbers as the exhibit writes them."""
    return [f"{number:.4f}".replace("-", "−") for number in numbers]


def running_example_keys():
    """The first two entries of each key of head 0."""
    example = running_example()
    return project_heads(example.X, example.params.W_K)[0][:, :2]


def test_corners_are_the_values_of_head_0():
    example = running_example()
    values = project_heads(example.X, example.params.W_V)[0][:, :2]
    for word, value in zip(example.tokens, values, strict=True):
        assert ">{} ({:g}, {:g})</text>".format(word, *value) in HTML


def test_second_head_is_not_drawn_before_it_is_switched_on():
    hidden = re.findall(r'data-head="(\d)" style="display:none"', HTML)
    assert hidden == ["1", "1"]


def test_without_weights_it_holds_the_dot_products_and_nothing_that_follows_from_them():
    plane = query_plane(weights=False)
    form = plane.html.replace(script("plane"), "").split("</style>")[1]
    assert not re.search("weight|output|softmax|triangle|Second head|tl-mix", form)
    products = running_example_keys() @ [1, 0]
    cells = re.findall(r'<th scope="row">\w+</th><td>\(.*?\)</td><td>(\S+?)</td></tr>', form)
    assert cells == written(*products)
    bars = re.findall(r'<i style="--share:(\S+)"></i><span>(.*?)</span>', form)
    assert [float(share) * 8 for share, _ in bars] == [*products]
    assert [text for _, text in bars] == cells
    assert plane.text.splitlines()[1:] == [
        "Head 0: angle 0°, length 1, query (1.0000, 0.0000).",
        "   dogs: (2, 0), 2.0000",
        "   that: (−1, 1), −1.0000",
        "   bark: (0, 2), 0.0000",
    ]
