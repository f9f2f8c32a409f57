"""Figures carry the numbers they draw, are the same bytes everywhere, and fit into any page."""

import os
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from tests.library.figures.drawing import (
    ARRAYLESS,
    ARRAYS,
    TOKENS,
    WIDE_FIGURES,
    digest,
    draw,
    figure_of,
    ramp,
)
from tests.library.figures.reading import SVG, parsed_svg, pictures, stored_text, texts, words
from tests.sampling import every
from tutorial_lib import figures
from tutorial_lib.figures import ink


@pytest.fixture(params=ARRAYS)
def kind(request):
    """The name of a plotting function."""
    return request.param


@pytest.fixture(params=[*ARRAYS, *ARRAYLESS])
def figure(request):
    """A figure, of an array or not."""
    return figure_of(request.param)


# What a figure carries.


def test_page_and_text_carry_every_number(kind):
    mime_bundle = figure_of(kind)._repr_mimebundle_()
    for number in ARRAYS[kind].ravel():
        assert re.search(rf"(?<![-\d.]){number:.4f}\b", mime_bundle["text/plain"])
        assert f"<td>{number:.4f}</td>" in mime_bundle["text/html"].partition("<details>")[2]


def test_a_change_below_the_rounding_changes_nothing_and_input_is_left_alone(kind):
    array = ARRAYS[kind] + 2e-6
    array.setflags(write=False)
    assert stored_text(draw(kind, array)) == stored_text(figure_of(kind))


def test_colours_are_those_of_the_rounded_numbers_too():
    exact, near = np.array([[[0.125, 0.875]], [[0.12503, 0.87497]]])  # half-way between two colours
    tokens = {"tokens": "a", "key_tokens": "ab", "caption": ""}
    assert figures.attention_maps(exact, **tokens).svg == figures.attention_maps(near, **tokens).svg


def test_a_number_on_a_rounding_boundary_is_refused_when_outputs_are_compared(monkeypatch):
    weights = np.array([[0.12345, 0.87655]])
    monkeypatch.setenv("TUTORIAL_LIB_STRICT", "1")
    with pytest.raises(ValueError, match="rounding boundary"):
        figures.attention_maps(weights, ["a"], key_tokens=["a", "b"], caption="")


def test_caption_and_words_for_the_picture_stand_in_the_page(figure):
    page_html = figure.html()
    assert "Where does &lt;BOS&gt; look?</figcaption>" in page_html
    alt = re.search(r'<div class="ahh-panels[^>]* role="img" aria-label="([^"]+)"', page_html)[1]
    assert len(alt) > 40


# The same bytes everywhere, and no trace elsewhere.


def test_another_process_writes_the_same_bytes_and_never_loads_pyplot_with_its_backend():
    script = (
        "import sys\nfrom tests.library.figures.drawing import digest\n"
        "print('matplotlib.pyplot' in sys.modules, digest())"
    )
    path = f"{Path(__file__).resolve().parents[3]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    variables = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "error", "-c", script]
    process = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["False", digest()]


def test_the_settings_of_the_caller_are_neither_used_nor_changed(kind):
    rc_settings = {"font.size": 30, "text.usetex": True, "axes.grid": True, "svg.fonttype": "path"}
    with matplotlib.rc_context(rc_settings):
        previous_settings = dict(matplotlib.rcParams)
        assert stored_text(draw(kind, ARRAYS[kind])) == stored_text(figure_of(kind))
        assert dict(matplotlib.rcParams) == previous_settings
    assert pyplot.get_fignums() == []


# Pictures that fit into any page.


def test_pictures_are_vectors_with_nothing_that_could_clash_with_the_page(figure):
    for element in parsed_svg(figure).iter():
        assert element.tag.removeprefix(SVG) in {"div", "svg", "path", "text"}
        assert set(element.attrib) <= {"class", "style", "viewBox", "d", "x", "y", "transform"}
    assert "url(" not in figure.svg
    assert "font-family:inherit" in figure.svg
    assert " id=" not in figure.html()
    rules = re.findall(r"<style(.*?)</style>", figure.html())
    assert rules == [">style+.ahh-fallback{display:none}"]  # of this class alone
    assert not set(re.findall(r"#[0-9a-f]{6}\b", figure.svg)) & set(ink.CSS_COLOURS)


def test_texts_have_the_colour_of_the_page_of_their_cell_or_of_their_head(figure):
    text_fills = {re.sub(r".*\bfill:", "", text.get("style")) for text in texts(figure)}
    assert "currentColor" in text_fills
    assert all("currentColor" in fill or re.search(r"#(000|fff)\b", fill) for fill in text_fills)


def test_names_are_shown_as_they_are(kind):
    figure = figure_of(kind)
    if kind != "line_chart":
        assert {*words(figure)} >= set(TOKENS)
        assert '<th scope="row">&lt;BOS&gt;</th>' in figure.html()
        assert "tex2jax_ignore" in figure.html()  # or MathJax takes $bark$ for a formula
    assert "<BOS>" not in figure.html()
    assert "<error>" not in figure.html()


def test_names_of_more_than_twenty_signs_are_cut_in_the_picture_alone_and_any_sign_is_a_name():
    names = ["n" * 20, "n" * 21, "\n", "犬"]
    figure = figures.attention_maps(np.eye(4), names, caption="")
    assert {"n" * 20, "n" * 19 + "…", "\\n", "犬"} < {*words(figure)}
    for text in (figure.text(), figure.html()):
        assert names[1] in text


def test_every_name_has_room_in_its_picture(figure):
    for picture in pictures(figure):
        _, _, width, height = map(float, picture.get("viewBox").split())
        for text in (t for t in texts(picture) if not t.get("transform")):
            x, y = float(text.get("x")), float(text.get("y"))
            text_width = 5 * len(text.text)
            anchor = re.search(r"text-anchor:(\w+)", text.get("style"))
            text_start = x - text_width * {"middle": 0.5, "end": 1, None: 0}[anchor and anchor[1]]
            assert text_start > -1
            assert text_start + text_width < width + 1
            assert 8 < y < height


def test_pictures_shrink_to_the_page_and_no_further_than_they_are_legible():
    narrow_figure, wide = figure_of("attention_maps"), figure_of("many columns")
    assert not re.search(r'role="img"[^>]* tabindex="0"', narrow_figure.html())
    assert "ahh-wide" not in narrow_figure.svg
    assert '<div class="ahh-grid ahh-wide"' in wide.svg
    assert re.search(r'role="img"[^>]* tabindex="0"', wide.html())  # it scrolls, by keyboard too


def width_of(picture):
    """The width in pixels that a picture is drawn for."""
    return float(picture.get("viewBox").split()[2])


def text_sizes(figure, width_px):
    """The size in pixels of the texts of each grid of pictures that may take a column's width."""
    for grid in ElementTree.fromstring(f"<div>{figure.svg}</div>").iterfind("div"):
        minimum_width = int(re.search(r"minmax\(max\((\d+)px", grid.get("style"))[1])
        widths = [list(map(width_of, pictures(grid_item))) for grid_item in grid]
        desk_width, phone_width = (max(width[index] for width in widths) for index in (0, -1))
        room = desk_width if width_px > desk_width * 12 / 14 or len(widths[0]) == 1 else phone_width
        yield 14 * min(1, max(width_px, minimum_width) / room)


@pytest.mark.parametrize("width_px", [327, 257])
@pytest.mark.parametrize("name", every(3, [*ARRAYS, *WIDE_FIGURES, *ARRAYLESS]))
def test_no_text_is_smaller_than_11_pixels_on_a_phone(name, width_px):
    figure = figure_of(name)
    assert min(text_sizes(figure, width_px)) >= 11
    assert "font-size" not in figure.svg.replace("font-family:inherit;font-size:14px", "")


@pytest.mark.parametrize("name", [*ARRAYS, *ARRAYLESS])
def test_figures_fill_a_desk_s_column_and_do_not_exceed_it(name):
    figure = figure_of(name)
    assert min(text_sizes(figure, 708)) >= 13
    for grid in ElementTree.fromstring(f"<div>{figure.svg}</div>").iterfind("div"):
        assert max(map(width_of, pictures(grid))) <= 708


def test_what_is_drawn_for_a_phone_shows_where_the_other_would_have_texts_of_less_than_12_pixels():
    figure = figure_of("line_chart")
    (wide,), (narrow_picture,) = (pictures(figure, phone=phone) for phone in (False, True))
    width_limit = re.search(r"width:clamp\(0px,\(100% - (\d+)px \+ 0.01px\)", wide.get("style"))[1]
    assert f"width:clamp(0px,({width_limit}px - 100%)*9999,100%)" in narrow_picture.get("style")
    assert 12 <= 14 * int(width_limit) / width_of(wide) < 12.1
    for phone in (False, True):
        assert {*words(figure, phone=phone)} >= {"d_k = 1", "step"}


def test_panels_of_a_figure_have_one_scale_and_shrink_no_further_than_13_pixels_beside_each_other():
    figure = figures.signed_maps({"X": np.eye(2), "wider": ramp(2, 6)}, caption="")
    square, matrix, _ = pictures(figure)
    percents = [float(re.search(r"([\d.]+)%[;)]", svg.get("style"))[1]) for svg in (square, matrix)]
    assert percents == [pytest.approx(100 * width_of(square) / width_of(matrix), rel=1e-3), 100]
    width_px = float(re.search(r"min\(100%,(\d+)px", figure.svg)[1])
    assert 14 * width_px / width_of(matrix) >= 13


def test_where_svg_is_stripped_images_on_white_are_left_and_no_loose_letters(figure):
    html = re.search(r'<div class="ahh-panels.*</div>(?=<figcaption)', figure.html())[0]
    without_svg = ElementTree.fromstring(re.sub(r"</?(svg|path|text)\b[^>]*>", "", html))
    assert "font-size:0" in without_svg.get("style")
    sources = [image.get("src").partition("base64,")[2] for image in without_svg.iter("img")]
    images = [ElementTree.fromstring(b64decode(source)) for source in sources]
    assert [text.text for image in images for text in image.iter(f"{SVG}text")] == words(figure)
    for image, picture in zip(images, pictures(figure), strict=True):
        assert image.get("viewBox") == picture.get("viewBox")  # of that for a desk
        assert "background:#fff" in image.get("style")
        styles = "".join(node.get("style", "") for node in image.iter())
        assert not re.search("light-dark|color-mix|inherit", styles)


@pytest.mark.long
def test_a_gallery_of_six_heads_and_a_matrix_with_its_numbers_are_light():
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=(6, 12))
    gallery_figure = figures.attention_maps(weights, [f"tok{i}" for i in range(12)], caption="")
    assert len(gallery_figure.svg) < 110_000
    matrix_figure = figures.signed_maps({"W": np.arange(3 * 16).reshape(3, 16)}, caption="")
    assert len(matrix_figure.svg) < 25_000  # drawn for a phone, too
