"""What every exhibit is as bytes: the same each time, well formed, light without its script."""

import gzip

import pytest

from tests.elements.test_elements import Tree
from tutorial_lib.elements import exhibits
from tutorial_lib.elements.sources import script

MATHS = ("tex2jax", "mathjax")  # what the site's formulas leave alone
LIGHT = {  # the most bytes of a form without its script, and of the same compressed
    "byte_calculator()": (18_000, 5200),
    "fold_tiles()": (16_600, 4300),
    "head_maps()": (101_000, 31_000),
    "heads_sum()": (18_500, 4400),
    "live_map()": (30_000, 6000),
    "mask_drawing()": (18_500, 4300),
    "memory_strip('concat')": (16_600, 4200),
    "memory_strip('heads')": (16_600, 4200),
    "paint_mask()": (25_000, 6500),
    "playground()": (38_400, 6400),
    "query_plane()": (15_200, 4450),
    "query_plane(weights=False)": (15_200, 4450),
    "rotation_clock()": (14_100, 3900),
    "softmax_bench()": (16_000, 4400),
    "softmax_bench(slope=True)": (16_000, 4400),
}
TEXTS = [
    ("byte_calculator()", "DeepSeek-V3: 70,272 bytes"),
    ("fold_tiles()", "query 2 bark: 1; 7/4; (3/2, 3/4, 1, 1/4); (6/7, 3/7, 4/7, 1/7)"),
    (
        "heads_sum()",
        "head 1: −8/13, 0, −8/13, −8/13, 4/13, 4/13, 1/13, 9/13\n"
        "   Y: −69/91, 4/7, 22/91, −69/91, 106/91, −76/91",
    ),
    ("live_map()", "Y, bark: −69/91, 4/7, 22/91, −69/91, 106/91, −76/91, −71/91, 115/91"),
    ("mask_drawing()", "Mask on 16 tokens, window of 4: 58 of 136 pairs"),
    ("paint_mask()", "bark: dogs, that, bark; depends on dogs, that, bark"),
    ("playground()", "project out: Y = concat W_O"),
    ("query_plane()", "dogs: (2, 0), 2.0000, 1.4142, 0.7337"),
    ("query_plane()", "Head 0: angle 0°, length 1, query (1.0000, 0.0000), output"),
    ("rotation_clock()", "Clock: query at 9, key at 4, distance 5: the score is 1.0851."),
]


@pytest.mark.parametrize("call", LIGHT)
def test_an_exhibit_is_the_same_every_time_light_and_well_formed(call):
    element = eval(call, vars(exhibits))
    assert eval(call, vars(exhibits)) == element
    tree = Tree(element.html)
    assert (tree.open, tree.faults) == ([], [])
    classes = " ".join(attrs.get("class", "") for _, attrs in tree.tags).split()
    assert all(name == "tl" or name.startswith(("tl-", *MATHS)) for name in classes)
    assert sum("aria-live" in attrs for _, attrs in tree.tags) == 1
    kind = next(tag for tag, _ in tree.tags if tag.startswith("tl-")).removeprefix("tl-")
    form = element.html.replace(script(kind), "").encode()
    assert len(form) <= LIGHT[call][0]
    assert len(gzip.compress(form)) <= LIGHT[call][1]


@pytest.mark.parametrize(("call", "words"), TEXTS)
def test_the_text_of_an_exhibit_says_what_it_shows(call, words):
    assert words in eval(call, vars(exhibits)).text
