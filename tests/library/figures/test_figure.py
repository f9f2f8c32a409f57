"""Figures carry the numbers they draw, are the same bytes everywhere, and fit into any page."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from tests.library.figures.drawing import (
    ARRAYS,
    OTHERS,
    SVG,
    TOKENS,
    diagram,
    digest,
    draw,
    drawn,
    parsed,
    ramp,
    shown,
    texts,
)
from tests.sampling import every
from tutorial_lib import figures
from tutorial_lib.figures import Block, ink


@pytest.fixture(params=ARRAYS)
def kind(request):
    """The name of a plotting function."""
    return request.param


@pytest.fixture
def figure(kind):
    """A figure of that kind."""
    return drawn(kind)


@pytest.fixture
def array(kind):
    """Its numbers."""
    return ARRAYS[kind].copy()


@functools.cache
def named(name):
    """A figure of any kind, drawn once."""
    return drawn(name) if name in ARRAYS else (OTHERS | WIDE)[name]()


@pytest.fixture(params=[*ARRAYS, *OTHERS])
def any_figure(request):
    """A figure, of an array or not."""
    return named(request.param)


# What a figure carries.


def test_page_and_text_carry_every_number(figure, array):
    bundle = figure._repr_mimebundle_()
    for number in array.ravel():
        assert re.search(rf"(?<![-\d.]){number:.4f}\b", bundle["text/plain"])
        assert f"<td>{number:.4f}</td>" in bundle["text/html"].partition("<details>")[2]


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.long
def test_a_change_of_1e_4_changes_the_text_and_the_page(kind, figure, array, place):
    array.ravel()[place] += 1e-4
    before, after = figure._repr_mimebundle_(), draw(kind, array)._repr_mimebundle_()
    assert after["text/plain"] != before["text/plain"]
    assert after["text/html"] != before["text/html"]


def test_a_change_below_the_rounding_changes_nothing_and_input_is_left_alone(kind, figure, array):
    array += 2e-6
    array.setflags(write=False)
    assert shown(draw(kind, array)) == shown(figure)


def test_colours_are_those_of_the_rounded_numbers_too():
    exact, near = ([[0.125, 0.875]], [[0.12503, 0.87497]])  # half-way between two colours
    svgs = {
        figures.attention_maps(np.array(w), "a", key_tokens="ab", caption="").svg
        for w in (exact, near)
    }
    assert len(svgs) == 1


def test_a_number_on_a_rounding_boundary_is_refused_when_outputs_are_compared(monkeypatch):
    weights = np.array([[0.12345, 0.87655]])
    monkeypatch.setenv("TUTORIAL_LIB_STRICT", "1")
    with pytest.raises(ValueError, match="rounding boundary"):
        figures.attention_maps(weights, ["a"], key_tokens=["a", "b"], caption="")


def test_caption_and_words_for_the_picture_stand_in_the_page(figure):
    page = figure.html()
    assert "Where does &lt;BOS&gt; look?</figcaption>" in page
    alt = re.search(r'<div class="ahh-panels[^>]* role="img" aria-label="([^"]+)"', page)[1]
    assert len(alt) > 40


def test_given_words_for_the_picture_replace_the_automatic_ones():
    given = 'A "diagonal" & <nothing> else'
    page = figures.bar_panels({"s": np.eye(2)[0]}, "ab", caption="", alt=given).html()
    assert 'aria-label="A &quot;diagonal&quot; &amp; &lt;nothing&gt; else"' in page


def test_automatic_words_name_the_largest_weight_of_each_head():
    weights = np.array([[[1, 0], [0.25, 0.75]], [[0.5, 0.5], [0.125, 0.875]]])
    alt = figures.attention_maps(weights, ["dogs", "bark"], caption="").alt
    assert "head 0: largest weight 1.000, from dogs to dogs." in alt
    assert "head 1: largest weight 0.875, from bark to bark." in alt


# The same bytes everywhere, and no trace elsewhere.


@pytest.fixture(scope="module")
def other_process():
    """What another process, with other hashes, prints about figures of its own."""
    code = (
        "import sys, tutorial_lib.figures\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
        "print(__import__('tests.library.figures.drawing', fromlist=['digest']).digest())"
    )
    path = os.pathsep.join(
        [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    )
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_another_process_writes_the_same_bytes(other_process):
    assert other_process[1] == digest()


def test_pyplot_with_its_backend_is_never_loaded(other_process):
    assert other_process[0] == "False"


def test_the_settings_of_the_caller_are_neither_used_nor_changed(kind, figure, array):
    theirs = {"font.size": 30, "text.usetex": True, "axes.grid": True, "svg.fonttype": "path"}
    with matplotlib.rc_context(theirs):
        before = dict(matplotlib.rcParams)
        assert shown(draw(kind, array)) == shown(figure)
        assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


# Pictures that fit into any page.


def test_pictures_are_vectors_with_nothing_that_could_clash_with_the_page(any_figure):
    for element in parsed(any_figure).iter():
        assert element.tag.removeprefix(SVG) in {"div", "svg", "path", "text"}
        assert set(element.attrib) <= {"class", "style", "viewBox", "d", "x", "y", "transform"}
    assert "url(" not in any_figure.svg
    assert "font-family:inherit" in any_figure.svg
    assert " id=" not in any_figure.html()
    assert "<style" not in any_figure.html()


def test_no_stand_in_for_a_colour_is_left(any_figure):
    assert not set(re.findall(r"#[0-9a-f]{6}\b", any_figure.svg)) & set(ink.STAND_INS)


def test_texts_have_the_colour_of_the_page_of_their_cell_or_of_their_head(figure):
    fills = {re.sub(r".*\bfill:", "", text.get("style")) for text in texts(figure)}
    assert "currentColor" in fills
    assert all("currentColor" in f or re.search(r"#(000|fff)\b", f) for f in fills)


def test_names_are_shown_as_they_are(kind, figure):
    shown = {text.text for text in texts(figure)}
    if kind != "line_chart":
        assert shown >= set(TOKENS)
        assert '<th scope="row">&lt;BOS&gt;</th>' in figure.html()
        assert "tex2jax_ignore" in figure.html()  # or MathJax takes $bark$ for a formula
    assert "<BOS>" not in figure.html()
    assert "<error>" not in figure.html()


def test_long_names_are_cut_in_the_picture_alone():
    figure = figures.attention_maps(np.eye(2), ["antidisestablishmentarianism", "a"], caption="")
    assert {"antidisestablishmen…"} < {text.text for text in texts(figure)}
    assert "antidisestablishmentarianism" in figure.text()
    assert "antidisestablishmentarianism" in figure.html()


@pytest.mark.parametrize(("length", "shown"), [(20, "n" * 20), (21, "n" * 19 + "…")])
def test_names_of_twenty_signs_are_whole_and_longer_ones_cut_to_twenty(length, shown):
    figure = figures.attention_maps(np.eye(2), ["n" * length, "a"], caption="")
    assert shown in {text.text for text in texts(figure)}


def test_line_breaks_and_signs_without_a_glyph_are_names_too():
    figure = figures.attention_maps(np.eye(2), ["\n", "犬"], caption="")
    assert {"\\n", "犬"} < {text.text for text in texts(figure)}


def test_every_name_has_room_in_its_picture(any_figure):
    for picture in parsed(any_figure).iter(f"{SVG}svg"):
        _, _, width, height = map(float, picture.get("viewBox").split())
        for text in picture.iter(f"{SVG}text"):
            if text.get("transform"):
                continue
            x, y = float(text.get("x")), float(text.get("y"))
            length = 5 * len(text.text)
            anchor = re.search(r"text-anchor:(\w+)", text.get("style"))
            left = x - length * {"middle": 0.5, "end": 1, None: 0}[anchor and anchor[1]]
            assert left > -1
            assert left + length < width + 1
            assert 8 < y < height


def test_pictures_shrink_to_the_page_and_no_further_than_they_are_legible():
    narrow = figures.attention_maps(np.eye(3), "abc", caption="")
    assert re.search(r"minmax\(max\(\d+px,min\(100%,\d+px\)\),1fr\)", narrow.svg)
    assert "tabindex" not in narrow.html().partition("<fig")[0]
    wide = figures.signed_maps({"W": np.ones((2, 18), dtype=int)}, caption="")
    assert "ahh-wide" not in narrow.svg
    assert '<div class="ahh-grid ahh-wide"' in wide.svg
    assert re.search(r'role="img"[^>]* tabindex="0"', wide.html())  # it scrolls, by keyboard too


WIDE = {
    "eight words": lambda: figures.attention_maps(np.full((8, 8), 0.0625), range(8), caption=""),
    "many columns": lambda: figures.signed_maps({"W": np.ones((2, 18), dtype=int)}, caption=""),
    "many bars": lambda: figures.bar_panels({"s": np.arange(9)}, range(9), caption=""),
    "long row": lambda: diagram({n: Block(1.5 * n, 0, str(n)) for n in range(6)}),
    "seventeen words": lambda: figures.arcs(range(900, 917), {"far": [(16, 0)]}, caption=""),
    "two layers of four heads": lambda: figures.task_maps(
        {f"layer {n}": np.full((4, 10), 0.25) for n in range(2)},
        np.full(10, 0.5),
        heads=["1.0", "1.1", "1.2", "1.3"],
        tasks=["across a clause"] * 10,
        caption="",
    ),
    "three seeds": lambda: figures.task_maps(
        {f"seed {n}": np.full((8, 10), 0.25) for n in range(3)},
        np.full(10, 0.5),
        heads=[f"{n // 4}.{n % 4}" for n in range(8)],
        tasks=["across a clause"] * 10,
        caption="",
    ),
    "five arrays": lambda: figures.tensor_network({"Y": ("ab,bc,cd,de->ae", "ABCD")}, caption=""),
}


def sizes(figure, column):
    """The size in pixels of the texts of each grid of pictures that may take a column's width."""
    found = []
    for grid in ElementTree.fromstring(f"<div>{figure.svg}</div>").iterfind("div"):
        least = int(re.search(r"minmax\(max\((\d+)px", grid.get("style"))[1])
        widths = [
            [float(svg.get("viewBox").split()[2]) for svg in item.iter(f"{SVG}svg")]
            for item in grid
        ]
        desk, phone = (max(width[place] for width in widths) for place in (0, -1))
        drawn_for = desk if column > desk * 12 / 14 or len(widths[0]) == 1 else phone
        found.append(14 * min(1, max(column, least) / drawn_for))
    return found


@pytest.mark.parametrize("column", [327, 257])
@pytest.mark.parametrize("name", every(3, [*ARRAYS, *WIDE, *OTHERS]))
def test_no_text_is_smaller_than_11_pixels_on_a_phone(name, column):
    figure = named(name)
    assert min(sizes(figure, column)) >= 11
    assert "font-size" not in figure.svg.replace("font-family:inherit;font-size:14px", "")


@pytest.mark.parametrize("name", [*ARRAYS, *OTHERS])
def test_figures_fill_a_desk_s_column_and_do_not_exceed_it(name):
    figure = named(name)
    assert min(sizes(figure, 708)) >= 13
    for grid in ElementTree.fromstring(f"<div>{figure.svg}</div>").iterfind("div"):
        widths = [int(svg.get("viewBox").split()[2]) for svg in grid.iter(f"{SVG}svg")]
        assert max(widths) <= 708


def test_what_is_drawn_for_a_phone_shows_where_the_other_would_have_texts_of_less_than_12_pixels():
    figure = drawn("line_chart")
    desk, phone = parsed(figure), parsed(figure, phone=True)
    (wide,), (narrow,) = (list(picture.iter(f"{SVG}svg")) for picture in (desk, phone))
    limit = re.search(r"width:clamp\(0px,\(100% - (\d+)px \+ 0.01px\)", wide.get("style"))[1]
    assert f"width:clamp(0px,({limit}px - 100%)*9999,100%)" in narrow.get("style")
    width = float(wide.get("viewBox").split()[2])
    assert 12 <= 14 * int(limit) / width < 12.1
    assert {t.text for t in texts(figure)} >= {"d_k = 1", "step"}
    assert {t.text for t in texts(figure, phone=True)} >= {"d_k = 1", "step"}


def test_panels_of_a_figure_have_one_scale_and_shrink_no_further_than_13_pixels_beside_each_other():
    pair = {"X": np.eye(2), "a wider one": ramp(2, 6)}
    figure = figures.signed_maps(pair, caption="")
    first, second, _ = parsed(figure).iter(f"{SVG}svg")
    widths = [float(svg.get("viewBox").split()[2]) for svg in (first, second)]
    shares = [float(re.search(r"([\d.]+)%[;)]", svg.get("style"))[1]) for svg in (first, second)]
    assert shares[1] == 100
    assert shares[0] == pytest.approx(100 * widths[0] / widths[1], rel=1e-3)
    column = float(re.search(r"min\(100%,(\d+)px", figure.svg)[1])
    assert 14 * column / widths[1] >= 13


def test_without_trust_jupyter_shows_a_sentence_instead_of_loose_letters():
    page = figures.attention_maps(np.eye(2), ["dogs", "bark"], caption="").html()
    panels = re.search(r'<div class="ahh-panels.*</div>(?=<figcaption)', page)[0]
    left = ElementTree.fromstring(re.sub(r"</?(svg|path|text|desc)\b[^>]*>", "", panels))
    assert "font-size:0" in left.get("style")
    assert [span.text[:26] for span in left.iter("span")] == ["Jupyter hides this picture"]


@pytest.mark.long
def test_a_gallery_of_six_heads_and_a_matrix_with_its_numbers_are_light():
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=(6, 12))
    gallery = figures.attention_maps(weights, [f"tok{i}" for i in range(12)], caption="")
    assert len(gallery.svg) < 110_000
    matrix = figures.signed_maps({"W": np.arange(3 * 16).reshape(3, 16)}, caption="")
    assert len(matrix.svg) < 25_000  # drawn for a phone, too
