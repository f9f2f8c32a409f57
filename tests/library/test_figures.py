"""Figures carry the numbers they draw, are the same bytes everywhere, and fit into any page."""

import functools
import hashlib
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
from matplotlib.colors import to_rgb

from tutorial_lib import figures
from tutorial_lib.errors import ShapeError
from tutorial_lib.figures import Block, Diagram, ink

H, T, S = 2, 3, 4
TOKENS = ["<BOS>", "dogs", "$bark$"]
KEYS = ["les", "chiens", "qui", "aboient"]
SVG = "{http://www.w3.org/2000/svg}"


def ramp(*shape):
    """Numbers from 0.05 to 0.95, all different, with 4 decimals none of which is 0."""
    return np.linspace(0.05, 0.95, np.prod(shape)).round(3).reshape(shape) + 4e-4


ARRAYS = {
    "attention_maps": ramp(H, T, S),
    "signed_maps": ramp(T, S) - 0.5,
    "split_diagram": ramp(T, 6) - 0.5,
    "line_chart": ramp(H, T),
    "planes": ramp(T, 2) - 0.5,
    "sum_over_heads": ramp(H, T, 2) - 0.5,
    "bar_chart": ramp(T, H),
    "bar_panels": ramp(T, H) - 0.5,
    "block_diagram": ramp(T) - 0.5,
}
CHAINS = {
    "scores": ("tm,hmd,hnd,sn->hts", ["X", "W_Q", "W_K", "X"]),
    "Y": ("hts,sm,hmv,hvn->tn", ["weights", "X", "W_V", "W_O"]),
}
OUT = np.array([[1, 0, -1, 2], [0, 3, 0, 1], [2, 0, 0, -1], [0, -1, 1, 0]])  # (H*d_v, d_model)


def draw(kind, array):
    """The figure of each kind for one array."""
    caption = "Where does <BOS> look?"
    if kind == "attention_maps":
        return figures.attention_maps(array, TOKENS, key_tokens=KEYS, caption=caption)
    if kind == "signed_maps":
        return figures.signed_maps({"head 1": array}, rows=TOKENS, columns=KEYS, caption=caption)
    if kind == "split_diagram":
        return figures.split_diagram(array, H, caption=caption)
    if kind == "planes":
        arrows = dict(zip(TOKENS, array, strict=True))
        return figures.planes({"head 0": arrows}, caption=caption)
    if kind == "sum_over_heads":
        return figures.sum_over_heads(array, OUT, TOKENS, caption=caption)
    if kind == "bar_chart":
        return figures.bar_chart(array, TOKENS, ["loop", "<error>"], label="ms", caption=caption)
    if kind == "bar_panels":
        panels = dict(zip(("head 1", "<error>"), array.T, strict=True))
        return figures.bar_panels(panels, TOKENS, caption=caption)
    if kind == "block_diagram":
        named = enumerate(zip(TOKENS, array, strict=True))
        blocks = {token: Block(2 * t, 0, f"{y:.4f}") for t, (token, y) in named}
        blocks |= {f"name {t}": Block(2 * t, 1.2, token) for t, token in enumerate(TOKENS)}
        arrows = [("<BOS>", "dogs", "<i>"), ("$bark$", "<BOS>")]
        alt = "Three blocks in a row, the first with an arrow to the second."
        return figures.block_diagram({"head 1": Diagram(blocks, arrows)}, caption=caption, alt=alt)
    series = {f"d_k = {4**h}": y for h, y in enumerate(array)}
    return figures.line_chart(np.arange(T), series, labels=("step", "<error>"), caption=caption)


@functools.cache
def drawn(kind):
    """The figure of each kind for its own array, drawn once."""
    return draw(kind, ARRAYS[kind])


@functools.cache
def network():
    """A layer as a tensor network, drawn once."""
    return figures.tensor_network(CHAINS, between="softmax over s", caption="Which ends are open?")


def shown(figure):
    """All that a notebook stores of a figure, as one string."""
    bundle = figure._repr_mimebundle_()
    return bundle["text/plain"] + bundle["text/html"]


def digest():
    """A fingerprint of one figure of each kind."""
    every = [*map(drawn, ARRAYS), network()]
    return hashlib.sha256("".join(map(shown, every)).encode()).hexdigest()


def parsed(figure):
    """The pictures of a figure as elements."""
    return ElementTree.fromstring(f"<div>{figure.svg}</div>")


def texts(figure):
    """The text elements of a figure."""
    return list(parsed(figure).iter(f"{SVG}text"))


def luminance(colour):
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (
        0.2126,
        0.7152,
        0.0722,
    )


def contrast(one, other):
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_both_pages(colour):
    """A colour as it is on light and on dark pages."""
    css = ink.STAND_INS.get(colour, (colour,))[-1]
    return re.findall(r"#[0-9a-f]+", css.removeprefix("light-dark")) * (1 + ("(" not in css))


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


# What a figure carries.


def test_page_and_text_carry_every_number(figure, array):
    bundle = figure._repr_mimebundle_()
    for number in array.ravel():
        assert re.search(rf"(?<![-\d.]){number:.4f}\b", bundle["text/plain"])
        assert f"<td>{number:.4f}</td>" in bundle["text/html"].partition("<details>")[2]


@pytest.mark.parametrize("place", [0, -1])
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
    page = figures.attention_maps(np.eye(2), "ab", caption="", alt=given).html()
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
        "print(__import__('tests.library.test_figures', fromlist=['digest']).digest())"
    )
    path = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
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


def test_pictures_are_vectors_with_nothing_that_could_clash_with_the_page(figure):
    for element in parsed(figure).iter():
        assert element.tag.removeprefix(SVG) in {"div", "svg", "path", "text"}
        assert set(element.attrib) <= {"class", "style", "viewBox", "d", "x", "y", "transform"}
    assert "url(" not in figure.svg
    assert "font-family:inherit" in figure.svg
    assert " id=" not in figure.html()
    assert "<style" not in figure.html()


def test_no_stand_in_for_a_colour_is_left(figure):
    assert not set(re.findall(r"#[0-9a-f]{6}\b", figure.svg)) & set(ink.STAND_INS)


def test_texts_have_the_colour_of_the_page_of_their_cell_or_of_their_head(figure):
    fills = {re.sub(r".*\bfill:", "", text.get("style")) for text in texts(figure)}
    assert "currentColor" in fills
    assert all("currentColor" in f or re.search(r"#(000|fff)\b", f) for f in fills)


def test_names_are_shown_as_they_are(kind, figure):
    shown = {text.text for text in texts(figure)}
    if kind != "split_diagram" and kind != "line_chart":
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


def test_line_breaks_and_signs_without_a_glyph_are_names_too():
    figure = figures.attention_maps(np.eye(2), ["\n", "犬"], caption="")
    assert {"\\n", "犬"} < {text.text for text in texts(figure)}


def test_every_name_has_room_in_its_picture(figure):
    for picture in parsed(figure).iter(f"{SVG}svg"):
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
    assert "minmax(min(100%," in narrow.svg
    assert "tabindex" not in narrow.html().partition("<fig")[0]
    wide = figures.split_diagram(np.ones((2, 24), dtype=int), 2, caption="")
    assert re.search(r'<div class="ahh-grid ahh-wide"[^>]*minmax\(\d+px', wide.svg)
    assert re.search(r'role="img"[^>]* tabindex="0"', wide.html())  # it scrolls, by keyboard too


WIDE = {
    "eight words": lambda: figures.attention_maps(np.full((8, 8), 0.0625), range(8), caption=""),
    "many columns": lambda: figures.split_diagram(np.ones((2, 24), dtype=int), 2, caption=""),
    "two heads": lambda: figures.sum_over_heads(ramp(2, 3, 4), np.eye(8), TOKENS, caption=""),
    "ten features": lambda: figures.sum_over_heads(ramp(2, 3, 2), OUT, TOKENS, caption=""),
    "many bars": lambda: figures.bar_panels({"s": np.arange(9)}, range(9), caption=""),
    "long row": lambda: diagram({n: Block(1.5 * n, 0, str(n)) for n in range(6)}),
    "five arrays": lambda: figures.tensor_network({"Y": ("ab,bc,cd,de->ae", "ABCD")}, caption=""),
}


def sizes_on_a_phone(figure):
    """The size of every text in pixels where the picture may take 350: it shrinks or scrolls."""
    found = []
    for part in re.findall(r"<div.*?</div>|<svg.*?</svg>", figure.svg):
        least = re.search(r"minmax\((?:min\(100%,)?(\d+)px", part)
        for picture in ElementTree.fromstring(f"<div>{part}</div>").iter(f"{SVG}svg"):
            width = float(picture.get("viewBox").split()[2])
            column = max(350, float(least[1])) if least and "ahh-wide" in part else 350
            sizes = [
                re.search(r"font-size:([\d.]+)px", t.get("style"))
                for t in picture.iter(f"{SVG}text")
            ]
            found += [float(size[1]) * min(1, column / width) for size in sizes]
    return found


@pytest.mark.parametrize("name", [*ARRAYS, *WIDE, "network"])
def test_no_text_is_smaller_than_9_pixels_on_a_phone(name):
    figure = network() if name == "network" else WIDE[name]() if name in WIDE else drawn(name)
    assert min(sizes_on_a_phone(figure)) >= 9


def test_columns_on_a_desk_shrink_no_further_either():
    picture = figures.attention_maps(ramp(2, 4, 4), "abcd", caption="")
    width = float(re.search(r"max-width:(\d+)px;height", picture.svg)[1])
    column = float(re.search(r"minmax\(min\(100%,(\d+)px", picture.svg)[1])
    assert 11 * column / width >= 9


def test_without_trust_jupyter_shows_a_sentence_instead_of_loose_letters():
    page = figures.attention_maps(np.eye(2), ["dogs", "bark"], caption="").html()
    panels = re.search(r'<div class="ahh-panels.*</div>(?=<figcaption)', page)[0]
    left = ElementTree.fromstring(re.sub(r"</?(svg|path|text|desc)\b[^>]*>", "", panels))
    assert "font-size:0" in left.get("style")
    assert [span.text[:26] for span in left.iter("span")] == ["Jupyter hides this picture"]


def test_a_gallery_of_six_heads_and_a_diagram_are_light():
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=(6, 12))
    gallery = figures.attention_maps(weights, [f"tok{i}" for i in range(12)], caption="")
    assert len(gallery.svg) < 110_000
    array = np.arange(3 * 16).reshape(3, 16)
    assert len(figures.split_diagram(array, 4, caption="").svg) < 20_000


# Colours.


@pytest.mark.parametrize("scale", [ink.SEQUENTIAL, ink.DIVERGING, ink.HEADS])
def test_numbers_are_legible_on_every_cell_of_light_and_dark_pages(scale):
    for cell, text in zip(scale.cells, scale.texts, strict=True):
        for background, foreground in zip(on_both_pages(cell), on_both_pages(text), strict=True):
            assert contrast(background, foreground) >= 4.5


def test_larger_weights_stand_out_more_on_light_and_dark_pages():
    light, dark = zip(*map(on_both_pages, ink.SEQUENTIAL.cells), strict=True)
    assert (np.diff([luminance(colour) for colour in light]) < 0).all()
    assert (np.diff([luminance(colour) for colour in dark]) > 0).all()


@pytest.mark.parametrize(("page", "words"), [("#ffffff", "#222832"), ("#121212", "#ced6dd")])
def test_colours_of_heads_are_legible_titles_on_light_and_dark_pages(page, words):
    for code in ink.HEAD_INKS:
        colour, share = re.search(r"(#\w+) (\d+)%,currentColor", ink.STAND_INS[code][-1]).groups()
        mixed = np.average(
            [to_rgb(colour), to_rgb(words)], axis=0, weights=[int(share), 100 - int(share)]
        )
        assert contrast(mixed, page) >= 4.5


def test_a_head_keeps_its_number_and_its_colour():
    weights = np.full((6, 1, 1), 1.0)
    titles = [
        t for t in texts(figures.attention_maps(weights, ["a"], caption="")) if "head" in t.text
    ]
    assert [title.text for title in titles] == [f"head {h}" for h in range(6)]
    for h, title in enumerate(titles):
        assert figures.HEAD_COLOURS[h % 4] in title.get("style")
    alone = texts(figures.signed_maps({"head 2": np.eye(2)}, caption=""))
    assert any(t.text == "head 2" and figures.HEAD_COLOURS[2] in t.get("style") for t in alone)


# Attention maps.


def cell_colours(figure):
    """The colours on light pages of the cells of each picture, row by row."""
    pictures = []
    for picture in parsed(figure).iter(f"{SVG}svg"):
        colours = {}
        for path in picture.iter(f"{SVG}path"):
            for x, y in re.findall(r"M(\S+) (\S+?)H", path.get("d")):
                colours[float(y), float(x)] = re.search(r"fill:(#\w+)", path.get("style"))[1]
        pictures.append([colours[place] for place in sorted(colours)])
    return pictures


def test_queries_run_down_and_keys_across():
    figure = figures.attention_maps(ramp(T, S), TOKENS, key_tokens=KEYS, caption="")
    place = {
        t.text: (float(t.get("x")), float(t.get("y")), t.get("transform")) for t in texts(figure)
    }
    assert np.all(np.diff([place[token][1] for token in TOKENS]) > 0)
    assert np.all(np.diff([place[key][0] for key in KEYS]) > 0)
    assert place["query"][2].startswith("rotate(-90")
    assert place["key"][1] > place["qui"][1]
    assert place["query"][0] < place["dogs"][0]


def test_colours_of_weights_run_from_0_to_1_whatever_the_largest_is():
    weights = np.array([[0.0, 0.25], [0.5, 0.25]])
    cells, _ = cell_colours(figures.attention_maps(weights, ["a", "b"], caption=""))
    expected = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in (0, 25, 50, 25)]
    assert cells == expected


def test_all_heads_share_one_colour_bar():
    labels = [t.text for t in texts(figures.attention_maps(ramp(H, T, T), TOKENS, caption=""))]
    assert labels.count("weight") == 1
    assert labels[-4:] == ["0", "0.5", "1", "weight"]


@pytest.mark.parametrize(("size", "written"), [(8, True), (9, False)])
def test_small_maps_have_their_weights_written_into_the_cells(size, written):
    figure = figures.attention_maps(np.full((size, size), 0.375), range(size), caption="")
    assert [t.text for t in texts(figure)].count("0.375") == written * size * size


def test_a_sole_head_may_come_without_its_axis():
    figure = figures.attention_maps(np.eye(2), ["a", "b"], caption="Look.")
    assert figure.text() == "Look.\nweights   (2, 2)\n   a  b\na  1  0\nb  0  1"


# Signed maps and the split.


def test_colours_of_signed_numbers_are_symmetric_about_0_and_mean_the_same_in_all_panels():
    arrays = {"small": np.array([[-1.0, 0.0, 1.0]]), "large": np.array([[-1.0, 0.0, 2.0]])}
    small, large, _ = cell_colours(figures.signed_maps(arrays, caption=""))
    colours = [ink.STAND_INS[ink.DIVERGING.cells[level]][0] for level in range(101)]
    assert small == [colours[25], colours[50], colours[75]]
    assert large == [colours[25], colours[50], colours[100]]


def keys(figure):
    """The texts of the key to the colours, the last picture."""
    *_, key = parsed(figure).iter(f"{SVG}svg")
    return [text.text for text in key.iter(f"{SVG}text")]


def test_colours_of_numbers_none_of_which_is_negative_run_from_0_to_the_largest_of_all_panels():
    arrays = {"small": np.array([[0, 1]]), "large": np.array([[2.0, 4.0]])}
    figure = figures.signed_maps(arrays, caption="")
    small, large, _ = cell_colours(figure)
    colours = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in range(101)]
    assert small == [colours[0], colours[25]]
    assert large == [colours[50], colours[100]]
    assert keys(figure) == ["0", "2", "4", "value"]
    signed = figures.signed_maps(arrays | {"one": np.array([[-1e-3]])}, caption="")
    assert keys(signed) == ["−4", "0", "4", "value"]
    assert "signed" not in figure.alt
    assert "signed" in signed.alt


def test_booleans_are_seen_or_hidden():
    mask = np.tri(3, dtype=bool)
    figure = figures.signed_maps({"mask": mask}, caption="")
    cells, key = cell_colours(figure)
    hidden, seen = (ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in (0, 100))
    assert cells == [seen if cell else hidden for cell in mask.ravel()]
    assert key == [hidden, seen]
    assert keys(figure) == ["hidden ·", "seen ✓"]
    assert figure.tables[0].cells.tolist() == [["✓", "·", "·"], ["✓", "✓", "·"], ["✓", "✓", "✓"]]
    assert figure.alt == "Grid of cells. mask: 3 rows, 3 columns, 6 of 9 seen."


def test_booleans_beside_numbers_are_1_and_0_on_their_scale():
    arrays = {"mask": np.array([[True, False]]), "weights": np.array([[0.5, 0.25]])}
    figure = figures.signed_maps(arrays, caption="")
    mask, weights, _ = cell_colours(figure)
    colours = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in range(101)]
    assert mask == [colours[100], colours[0]]
    assert weights == [colours[50], colours[25]]
    assert keys(figure) == ["0", "0.5", "1", "value"]


def test_an_array_of_zeros_can_be_drawn():
    assert "0" in figures.signed_maps({"P": np.zeros((2, 3))}, caption="").text()


def test_axes_of_signed_maps_may_be_named_for_all_or_one_by_one():
    pair = {"X": np.eye(2), "scores": np.eye(3)}
    rows = {"X": ["a", "b"], "scores": ("query", ["a", "b", "c"])}
    figure = figures.signed_maps(
        pair, rows=rows, columns={"scores": ("key", ["a", "b", "c"])}, caption=""
    )
    labels = [t.text for t in texts(figure)]
    assert labels.count("query") == labels.count("key") == 1
    assert figure.tables[0].columns == ["0", "1"]
    assert figure.tables[1].columns == ["a", "b", "c"]


def test_the_split_gives_each_head_its_columns_and_its_colour():
    array = np.arange(12).reshape(2, 6)
    figure = figures.split_diagram(array, 2, caption="")
    wide, *heads = figure.tables
    assert wide.cells.tolist() == array.astype(str).tolist()
    for h, head in enumerate(heads):
        assert head.cells.tolist() == array[:, 3 * h : 3 * h + 3].astype(str).tolist()
    assert {"head 0 (2, 3)", "head 1 (2, 3)", "one wide array (2, 6)"} < {
        t.text for t in texts(figure)
    }
    paths = [p.get("style") for p in parsed(figure).iter(f"{SVG}path")]
    assert paths == [f"fill:{figures.HEAD_COLOURS[h]}" for h in (0, 1, 0, 1)]


# The sum over heads.


def titled(figure):
    """The tables of a figure as arrays of numbers, by title."""
    return {table.title: table.cells.astype(float) for table in figure.tables}


def test_parts_of_the_heads_are_their_columns_of_concat_times_their_rows_of_w_o():
    numbers = titled(drawn("sum_over_heads"))
    concat = numbers["concat"]
    np.testing.assert_allclose(numbers["part of head 0"], concat[:, :2] @ OUT[:2], atol=1e-9)
    np.testing.assert_allclose(numbers["part of head 1"], concat[:, 2:] @ OUT[2:], atol=1e-9)
    np.testing.assert_allclose(numbers["Y"], concat @ OUT, atol=1e-9)
    np.testing.assert_array_equal(numbers["W_O"], OUT)


def test_each_head_frames_its_columns_its_rows_and_its_part_in_its_colour():
    paths = list(parsed(drawn("sum_over_heads")).iter(f"{SVG}path"))
    for h in range(H):
        frames = [p for p in paths if f"stroke:{figures.HEAD_COLOURS[h]}" in p.get("style")]
        assert len(frames) == 5  # in concat and W_O, and its own line: head, rows, part
    titles = {t.text: t.get("style") for t in texts(drawn("sum_over_heads"))}
    for title in ("head 1", "rows 2 to 3", "part of head 1"):
        assert figures.HEAD_COLOURS[1] in titles[title]


def test_each_line_of_the_sum_stands_below_what_it_repeats():
    place = {t.text: (float(t.get("x")), float(t.get("y"))) for t in texts(drawn("sum_over_heads"))}
    columns = (("concat", "head 0"), ("W_O", "rows 0 to 1", "rows 2 to 3"))
    for names in (*columns, ("Y", "part of head 0", "part of head 1")):
        assert len({place[name][0] for name in names}) == 1
        assert np.all(np.diff([place[name][1] for name in names]) > 0)
    assert place["head 1"][0] > place["head 0"][0]  # below its own columns of concat


def test_the_sum_of_two_heads_fits_a_phone_and_a_larger_one_leaves_its_names_to_the_table():
    heads, W_O = ramp(2, 3, 4), np.eye(8)
    figure = figures.sum_over_heads(heads, W_O, TOKENS, caption="")
    assert "ahh-wide" not in figure.svg
    larger = figures.sum_over_heads(ramp(2, 3, 8), np.eye(16), TOKENS, caption="")
    assert "ahh-wide" not in larger.svg
    assert not {t.text for t in texts(larger)} & set(TOKENS)
    assert TOKENS[1] in larger.text()


def test_every_matrix_of_the_sum_has_a_place_of_its_own_and_all_share_one_scale():
    heads, W_O = np.array([[[1.0]]]), np.array([[-2.0, 1.0]])
    picture, _ = cell_colours(figures.sum_over_heads(heads, W_O, ["a"], caption=""))
    colours = [ink.STAND_INS[ink.DIVERGING.cells[level]][0] for level in range(101)]
    line = [colours[75], colours[0], colours[75], colours[0], colours[75]]  # 1 @ -2 1 = -2 1
    assert picture == line + line


def test_features_are_numbered_below_y_and_below_each_part():
    picture = next(parsed(drawn("sum_over_heads")).iter(f"{SVG}svg"))
    labels = [t.text for t in picture.iter(f"{SVG}text")]
    assert [labels.count(str(feature)) for feature in range(5)] == [3, 3, 3, 3, 0]


def test_features_of_two_digits_have_two_cells():
    figure = figures.sum_over_heads(ramp(2, 3, 1), np.ones((2, 12)), TOKENS, caption="")
    labels = [t.text for t in texts(figure)]
    assert [labels.count(str(feature)) for feature in (1, 2, 9, 10, 11)] == [0, 3, 0, 3, 0]


def test_the_signs_of_the_sum():
    signs = [t.text for t in texts(drawn("sum_over_heads")) if t.text in "@=+"]
    assert sorted(signs) == ["+", *"===", *"@@@"]


# Curves.


def coloured(figure, *, marks):
    """The paths in a head's colour: the markers and arrowheads, or the lines."""
    paths = [p for p in parsed(figure).iter(f"{SVG}path") if "color-mix" in p.get("style")]
    return [path for path in paths if ("transform" in path.attrib) == marks]


def test_curves_differ_in_black_and_white_too():
    series = {f"curve {n}": np.arange(3) + n for n in range(8)}
    figure = figures.line_chart(np.arange(3), series, labels=("x", "y"), caption="")
    assert len({marker.get("d") for marker in coloured(figure, marks=True)}) == 8
    dashes = [line.get("style") for line in coloured(figure, marks=False)]
    assert len({re.search(r"stroke-dasharray:([^;]+)|$", dash)[1] for dash in dashes}) == 4


def test_the_legend_stands_above_the_curves():
    series = {"low": np.array([0.0, 1.0]), "high": np.array([5.0, 9.0])}
    figure = figures.line_chart(np.array([0, 1]), series, labels=("x", "y"), caption="")
    legend = max(float(t.get("y")) for t in texts(figure) if t.text in series)
    curves = coloured(figure, marks=False)[:2]  # before the lines of the legend
    assert legend < min(float(y) for c in curves for y in re.findall(r" ([\d.]+)", c.get("d")))


def test_places_of_few_points_are_marked_and_logarithms_have_powers():
    x = np.array([4, 16, 64, 512])
    series = {"error": np.array([2e-9, 3e-7, 1e-5, 0.25])}
    figure = figures.line_chart(x, series, labels=("d_k", "error"), log=("x", "y"), caption="")
    labels = [t.text for t in texts(figure)]
    assert {"4", "16", "64", "512", "10⁻⁸"} < set(labels)
    assert "2.000e-09" in figure.text()
    assert "3.000e-07" in figure.text()
    assert "0.25" in figure.text()


@pytest.mark.parametrize(
    ("y", "written", "unwritten"),
    [
        ([2e9, 1e8, 3e5, 2e4], {"10⁹", "10⁸", "10⁷", "10⁶", "10⁵"}, {"1000000", "100000"}),
        ([1e-5, 1e-3, 0.1, 1], {"10⁻⁵", "10⁻³", "10⁻¹", "10⁰"}, {"0.1", "0.001", "1"}),
        ([1, 10, 1000, 100], {"1", "10", "100", "1000"}, {"10³"}),
    ],
)
def test_ticks_of_a_logarithmic_axis_have_one_notation(y, written, unwritten):
    series = {"bytes": np.array(y)}
    figure = figures.line_chart(np.arange(4) * 3, series, labels=("T", ""), log=("y",), caption="")
    labels = {t.text for t in texts(figure)}
    assert written < labels
    assert not labels & unwritten


def test_ticks_of_an_even_axis_have_one_notation_too():
    series = {"loss": np.array([0, 0.0002, 0.0012])}
    figure = figures.line_chart(np.arange(3), series, labels=("step", ""), caption="")
    labels = {t.text for t in texts(figure)}
    assert {"0", "0.0002", "0.001"} < labels
    assert not any("10⁻" in label for label in labels)


def test_a_chart_may_have_one_point_or_one_value():
    figures.line_chart(np.array([3]), {"y": np.array([0.0])}, labels=("x", "y"), caption="")
    figures.line_chart(np.arange(3), {"y": np.ones(3)}, labels=("x", "y"), log=("y",), caption="")


# Bars.


def lengths(figure):
    """The right ends of the bars, from left in the picture, bar after bar."""
    ends = [[float(x) for x in re.findall(r"[MLH]([\d.]+)", p.get("d"))] for p in bars(figure)]
    return [max(x) - min(x) for x in ends]


def bars(figure):
    """The bars in the order of columns, without those of the key."""
    paths = [p for p in parsed(figure).iter(f"{SVG}path") if "color-mix" in p.get("style")]
    return paths[: figure.tables[0].cells.size]


def test_bars_are_as_long_as_their_numbers():
    values = np.array([[1.0, 4.0], [2.0, 0.5], [0.0, 3.0]])
    figure = figures.bar_chart(values, "abc", ["x", "y"], label="ms", caption="")
    found = np.array(lengths(figure)).reshape(2, 3).T
    np.testing.assert_allclose(found / found.max(), values / 4, atol=0.01)


def test_bars_of_a_group_differ_in_black_and_white_too():
    figure = figures.bar_chart(np.ones((1, 3)), "a", "xyz", label="ms", caption="")
    fills = [re.search("fill:none|fill-opacity|$", bar.get("style"))[0] for bar in bars(figure)]
    assert fills == ["", "fill:none", "fill-opacity"]


def test_one_bar_in_each_group_needs_no_key():
    one = figures.bar_chart(np.ones((2, 1)), "ab", ["only"], label="ms", caption="")
    assert "only" not in {text.text for text in texts(one)}
    assert "only" in one.text()


def test_words_for_bars_name_the_longest():
    values = np.array([[1.0, 4.0], [2.0, 0.5]])
    alt = figures.bar_chart(values, ["mask", "mix"], ["x", "y"], label="ms", caption="").alt
    assert alt == "Bar chart of ms. x: longest for mix, 2.0. y: longest for mask, 4.0."


# Panels of bars.

PENCIL = {"score s": np.array([1, -1, 0]), "share": np.array([4, 1, 2]) / 7}


def upright(figure):
    """The top and the bottom of each bar, panel after panel."""
    spans = []
    for picture in parsed(figure).iter(f"{SVG}svg"):
        boxes = [p for p in picture.iter(f"{SVG}path") if "fill-opacity" in p.get("style")]
        ys = [[float(y) for y in re.findall(r"[ V]([\d.]+)", p.get("d"))] for p in boxes]
        spans.append([(min(y), max(y)) for y in ys])
    return np.array(spans)


def test_bars_rise_and_fall_from_0_as_far_as_their_numbers_on_a_scale_of_each_panel():
    spans = upright(figures.bar_panels(PENCIL, TOKENS, caption=""))
    heights = spans[..., 1] - spans[..., 0]
    np.testing.assert_allclose(heights[0] / heights[0].max(), [1, 1, 0], atol=0.02)
    np.testing.assert_allclose(heights[1] / heights[1].max(), [1, 0.25, 0.5], atol=0.02)
    (rising, falling, none), shares = spans
    assert rising[1] == falling[0] == none[0] == none[1]  # they meet at 0
    assert len(set(shares[:, 1])) == 1
    assert heights[0].max() > 40
    assert 80 < heights[1].max() < 120  # a scale of its own, from 0, and inside the panel


def test_the_number_of_a_bar_stands_beyond_its_end():
    figure = figures.bar_panels({"s": np.array([2, -3])}, "ab", caption="")
    (rising, falling) = upright(figure)[0]
    place = {t.text: float(t.get("y")) for t in texts(figure)}
    assert place["s"] < place["2"] < rising[0]
    assert falling[1] < place["−3"] < place["a"] == place["b"]


def test_fractions_are_written_as_show_fractions_writes_them():
    figure = figures.bar_panels(PENCIL, TOKENS, fractions=True, caption="")
    assert figure.tables[0].cells.tolist() == [["1", "4/7"], ["-1", "1/7"], ["0", "2/7"]]
    assert {"4/7", "1/7", "2/7", "−1"} < {t.text for t in texts(figure)}
    assert figure.alt == (
        "Bars. score s: <BOS> 1, dogs -1, $bark$ 0. share: <BOS> 4/7, dogs 1/7, $bark$ 2/7."
    )
    decimals = figures.bar_panels(PENCIL, TOKENS, caption="")
    assert {"0.5714", "−1"} < {t.text for t in texts(decimals)}


def test_a_panel_of_a_head_has_its_colour_and_others_the_page_s():
    figure = figures.bar_panels({"head 2": np.ones(2), "share": np.ones(2)}, "ab", caption="")
    styles = [
        p.get("style") for p in parsed(figure).iter(f"{SVG}path") if "fill-" in p.get("style")
    ]
    assert [figures.HEAD_COLOURS[2] in style for style in styles] == [True, True, False, False]
    assert [style.count("fill:currentColor") for style in styles] == [0, 0, 1, 1]
    assert "head 2" in figure.text()


def test_bars_of_zeros_and_long_names_can_be_drawn():
    figure = figures.bar_panels(
        {"s": np.zeros(2)}, ["antidisestablishmentarianism", ""], caption=""
    )
    named = next(t for t in texts(figure) if t.text == "antidisestablishmen…")
    assert "rotate(-45" in named.get("transform")
    assert [t.text for t in texts(figure)].count("0") == 2


# Block diagrams.


def diagram(blocks, *arrows, **options):
    """A diagram of one panel."""
    options = {"caption": "", "alt": "Blocks."} | options
    return figures.block_diagram({"map": Diagram(blocks, arrows)}, **options)


def points_of(path):
    """The points of a path."""
    return np.array(re.findall(r"([-\d.]+) ([-\d.]+)", path.get("d")), dtype=float)


def is_block(path):
    """Whether a path is closed and has four corners; a head has three."""
    return path.get("d").endswith("z") and len(points_of(path)) > 3


def blocks_of(figure):
    """The paths of the blocks, in the order in which they are given."""
    return list(filter(is_block, parsed(figure).iter(f"{SVG}path")))


def frames(figure):
    """The left, top, right and bottom edge of each block."""
    points = [points_of(path) for path in blocks_of(figure)]
    return np.array([[*corners.min(axis=0), *corners.max(axis=0)] for corners in points])


def lines_and_heads(figure):
    """The points of each arrow's line, and of its head."""
    points = [points_of(p) for p in parsed(figure).iter(f"{SVG}path") if not is_block(p)]
    return list(zip(points[::2], points[1::2], strict=True))


PAIR = {"a": Block(0, 0, "a"), "b": Block(2, 0, "b", width=0.5, height=2)}


def test_blocks_stand_where_their_units_say():
    figure = diagram(PAIR | {"c": Block(-1, 3, "c")}, unit=(60, 40))
    a, b, c = frames(figure)
    np.testing.assert_allclose(b[:2] - a[:2], (120, 0), atol=0.2)
    np.testing.assert_allclose(c[:2] - a[:2], (-60, 120), atol=0.2)
    np.testing.assert_allclose(a[2:] - a[:2], (57, 37), atol=0.2)  # neighbours stay apart
    np.testing.assert_allclose(b[2:] - b[:2], (27, 77), atol=0.2)


def test_the_lines_of_a_text_stand_in_the_middle_of_their_block():
    figure = diagram({"dY": Block(0, 0, "dY\n(3, 4)"), "dX": Block(2, 1, "dX")})
    first, second = frames(figure)
    place = {t.text: (float(t.get("x")), float(t.get("y"))) for t in texts(figure)}
    assert {"dY", "(3, 4)", "dX", "map"} == set(place)
    assert place["dY"][0] == place["(3, 4)"][0] == pytest.approx(first[[0, 2]].mean(), abs=0.2)
    assert first[1] < place["dY"][1] < place["(3, 4)"][1] < first[3]
    assert second[1] < place["dX"][1] < second[3]


@pytest.mark.parametrize(
    ("to", "start", "end"),
    [
        ((2, 0), (1, 0.5), (2, 0.5)),
        ((-2, 0), (0, 0.5), (-1, 0.5)),
        ((0, 2), (0.5, 1), (0.5, 2)),
        ((0, -3), (0.5, 0), (0.5, -2)),
        ((2, 0.5), (1, 0.75), (2, 0.75)),  # in the middle of what both have in common
        ((2, 2), (1, 0.82), (2, 2.18)),  # not quite from corner to corner
        ((2, -2), (1, 0.18), (2, -1.18)),
        ((1.2, 3), (0.82, 1), (1.38, 3)),
        ((2, 1), (1, 0.82), (2, 1.18)),
    ],
)
def test_an_arrow_takes_the_shortest_way_from_edge_to_edge(to, start, end):
    figure = diagram({"a": Block(0, 0, "a"), "b": Block(*to, "b")}, ("a", "b"), unit=(50, 50))
    ((line, head),) = lines_and_heads(figure)
    corner = frames(figure)[0][:2] - 1.5
    np.testing.assert_allclose((line[0] - corner) / 50, start, atol=0.03)
    tip = head[np.argmin(np.linalg.norm(head - (np.array(end) * 50 + corner), axis=1))]
    np.testing.assert_allclose((tip - corner) / 50, end, atol=0.06)
    assert np.ptp(head, axis=0).max() > 6, "the head is large enough to see"


def test_an_arrow_from_corner_to_corner_leaves_by_the_edge_that_is_free():
    blocks = {"a": Block(0, 0, "a"), "b": Block(2, 2, "b")}
    ((right, _),) = lines_and_heads(diagram(blocks, ("a", "b"), unit=(50, 50)))
    ((down, _),) = lines_and_heads(diagram(blocks | {"c": Block(1, 0)}, ("a", "b"), unit=(50, 50)))
    left, top, *_ = frames(diagram(blocks, unit=(50, 50)))[0] - 1.5
    np.testing.assert_allclose(right[0], (left + 50, top + 41), atol=0.2)
    np.testing.assert_allclose(down[0], (left + 41, top + 50), atol=0.2)


def test_an_arrow_and_the_arrow_back_lie_beside_each_other():
    figure = diagram(PAIR, ("a", "b", "to"), ("b", "a", "back"))
    (to, _), (back, _) = lines_and_heads(figure)
    assert to[0][1] < back[0][1] - 8
    place = {t.text: float(t.get("y")) for t in texts(figure)}
    assert place["to"] < to[0][1] < back[0][1] < place["back"]


def test_an_arrow_walks_around_the_blocks_between():
    row = {name: Block(2 * n, 0, name) for n, name in enumerate("abc")}
    column = {name: Block(0, 2 * n, name) for n, name in enumerate("abc")}
    ((below, _),) = lines_and_heads(diagram(row, ("c", "a", "again")))
    assert len(below) == 4
    assert below[1][1] == below[2][1] > frames(diagram(row))[:, 3].max() + 10
    ((beside, _),) = lines_and_heads(diagram(column, ("a", "c")))
    assert len(beside) == 4
    assert beside[1][0] == beside[2][0] > frames(diagram(column))[:, 2].max() + 10
    floor = {f"below {name}": Block(2 * n, 1.2, name) for n, name in enumerate("abc")}
    figure = diagram(row | floor, ("c", "a", "again"))
    ((above, _),) = lines_and_heads(figure)
    assert above[1][1] == above[2][1] < frames(figure)[:, 1].min() - 10
    place = {t.text: float(t.get("y")) for t in texts(figure)}
    assert place["again"] < above[1][1]
    ((straight, _),) = lines_and_heads(diagram(row, ("c", "b")))
    assert len(straight) == 2


def test_heads_tints_and_dashes_of_blocks():
    blocks = {
        "plain": Block(0, 0, "plain"),
        "own": Block(1, 0, "own", head=5),
        "tint": Block(2, 0, "tint", shade=0.25),
        "both": Block(3, 0, "both", head=1, shade=1),
        "later": Block(4, 0, "later", head=1, dashed=True),
    }
    figure = diagram(blocks)
    styles = [path.get("style") for path in blocks_of(figure)]
    plain, own, tint, both, later = styles
    assert "fill:none" in plain
    assert "stroke:currentColor" in plain
    assert f"fill:{figures.HEAD_COLOURS[1]}" in own
    assert f"fill:{ink.STAND_INS[ink.SEQUENTIAL.cells[25]][0]}" in tint
    assert f"fill:{ink.STAND_INS[ink.SEQUENTIAL.cells[100]][0]}" in both
    assert f"stroke:{figures.HEAD_COLOURS[1]}" in both
    assert "fill:none" in later
    assert ["dasharray" in style for style in styles] == [False] * 4 + [True]
    fills = {t.text: re.sub(r".*\bfill:", "", t.get("style")) for t in texts(figure)}
    assert fills["own"] == "#fff"
    assert "#000" in fills["tint"]
    assert figures.HEAD_COLOURS[1] in {t.text: t.get("style") for t in texts(figure)}["later"]


def test_tables_of_a_diagram_say_texts_tints_and_arrows():
    blocks = {"Q": Block(0, 0, "Q of\nbark", shade=0.25), "K": Block(2, 0), "S": Block(4, 0, "S")}
    table = diagram(blocks, ("Q", "K", "@"), ("Q", "S"), ("K", "S")).tables[0]
    assert table.columns == ["text", "tint", "arrows to"]
    assert table.rows == ["Q", "K", "S"]
    assert table.cells.tolist() == [["Q of bark", "0.25", "K (@), S"], ["", "", "S"], ["S", "", ""]]
    assert diagram(PAIR).tables[0].columns == ["text"]


def test_panels_of_a_diagram_stand_side_by_side_each_with_its_table():
    panels = {"step 0": Diagram(PAIR), "step 1": Diagram(PAIR, [("a", "b")])}
    figure = figures.block_diagram(panels, caption="", alt="Two steps.")
    assert len(list(parsed(figure).iter(f"{SVG}svg"))) == 2
    assert [table.title for table in figure.tables] == ["step 0", "step 1"]
    assert figure.alt == "Two steps."


def test_texts_of_a_diagram_are_large_enough():
    sizes = [
        re.search(r"font-size:([\d.]+)px", t.get("style"))[1] for t in texts(drawn("block_diagram"))
    ]
    assert min(map(float, sizes)) >= 11


# Planes.


def test_arrows_of_queries_and_keys_differ_in_line_and_head():
    arrows = {"query a": (1, 0.5), "query b": (-1, 1), "key a": (0.5, -1), "key b": (1, 1)}
    figure = figures.planes({"head 0": arrows}, caption="")
    lines, heads = coloured(figure, marks=False), coloured(figure, marks=True)
    assert ["dasharray" in line.get("style") for line in lines] == [False, False, True, True]
    assert ["fill-opacity:0" in head.get("style") for head in heads] == [False, False, True, True]


def test_arrows_end_where_the_numbers_say_on_one_scale_for_both_axes_and_all_panels():
    panels = {
        "head 0": {"query": (1, 1), "key": (2, -1)},
        "head 1": {"query": (0, 1), "key": (-1, 2)},
    }
    figure = figures.planes(panels, caption="")
    across, *_ = [p for p in parsed(figure).iter(f"{SVG}path") if "opacity:0.6" in p.get("style")]
    left, right, _ = map(float, re.search(r"M(\S+) (\S+)L(\S+) ", across.get("d")).group(1, 3, 2))
    unit = (right - left) / (2 + 1 + 2 * 0.15 * 3)  # from -1 to 2, and room on either side
    heads = [re.findall(r"[-\d.]+", p.get("transform")) for p in coloured(figure, marks=True)]
    for panel, places in zip(panels.values(), (heads[:2], heads[2:]), strict=True):
        query, key = (np.array(place, dtype=float) for place in places)
        given = np.subtract(panel["key"], panel["query"]) * (1, -1)  # pixels count downwards
        apart = (key - query) / unit
        np.testing.assert_allclose(apart, given, atol=5 / unit)  # a query's head is drawn behind


def test_labels_of_arrows_do_not_overlap():
    rng = np.random.default_rng(5)
    for _ in range(5):
        arrows = {f"{side} {t}": rng.normal(size=2) for side in ("query", "key") for t in "abcd"}
        figure = figures.planes({"head 0": arrows}, caption="")
        boxes = [
            (float(t.get("x")), float(t.get("y")), 7 * len(t.text))
            for t in texts(figure)
            if t.text in arrows
        ]
        for i, (x, y, width) in enumerate(boxes):
            for other_x, other_y, other_width in boxes[:i]:
                assert abs(x - other_x) > (width + other_width) / 2 or abs(y - other_y) > 12


def test_an_arrow_may_have_no_length():
    assert "0" in figures.planes({"head 0": {"query a": (0, 0)}}, caption="").text()


# Errors say what was given, what was expected, how to mend it.

EYE = np.eye(3)
X3 = np.arange(3)


def test_a_network_says_of_every_index_which_arrays_have_it_and_whether_it_is_open():
    scores, layer = network().tables
    assert scores.rows == list("tmhdns")
    assert scores.columns == ["X", "W_Q", "W_K", "X", "scores"]
    assert dict(zip(scores.rows, scores.cells.tolist(), strict=True)) == {
        "t": ["●", "", "", "", "open"],
        "m": ["●", "●", "", "", "summed"],
        "h": ["", "●", "●", "", "open"],
        "d": ["", "●", "●", "", "summed"],
        "n": ["", "", "●", "●", "summed"],
        "s": ["", "", "", "●", "open"],
    }
    assert [row[-1] for row in layer.cells] == [
        "summed",
        "open",
        "summed",
        "summed",
        "summed",
        "open",
    ]
    assert "Summed over: m, d, n. Open: t, h, s. Then softmax over s. Y: " in network().alt


def test_an_index_is_written_once_where_its_line_runs():
    places = {}
    for text in texts(network()):
        places.setdefault(text.text, []).append((float(text.get("x")), float(text.get("y"))))
    assert set(places) == {
        *("scores", "Y", "X", "W_Q", "W_K", "weights", "W_V", "W_O"),
        *("t", "m", "h", "d", "n", "s", "v", "h, summed", "softmax over s"),
    }
    assert len(places["X"]) == 3
    assert len(places["h"]) == 1, "open below the scores, summed below Y"
    between_boxes = places["m"][0]
    assert places["X"][0][0] < between_boxes[0] < places["W_Q"][0][0]
    assert places["W_Q"][0][0] < places["h"][0][0] < places["W_K"][0][0]
    assert places["h"][0][1] < places["softmax over s"][0][1] < places["weights"][0][1]


def test_a_network_fits_any_page():
    picture = network()
    test_pictures_are_vectors_with_nothing_that_could_clash_with_the_page(picture)
    test_no_stand_in_for_a_colour_is_left(picture)
    test_texts_have_the_colour_of_the_page_of_their_cell_or_of_their_head(picture)
    test_every_name_has_room_in_its_picture(picture)
    assert "ahh-wide" not in picture.svg
    assert len(picture.html()) < 20_000


def test_a_chain_of_one_array_and_a_chain_without_open_ends_can_be_drawn():
    figure = figures.tensor_network({"trace": ("ii->", ["A"]), "sum": ("i->", ["a"])}, caption="")
    assert figure.alt == (
        "Tensor network. trace: A in a row. Summed over: i. Open: nothing. "
        "sum: a in a row. Summed over: i. Open: nothing."
    )


def with_entry(value):
    """A 3 by 3 array with one other entry."""
    array = np.full((3, 3), 0.25)
    array[1, 2] = value
    return array


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (
            ShapeError,
            ["(3, 3)", "2 names", "one for each", "key_tokens"],
            lambda: figures.attention_maps(EYE, ["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["(2, 3)", "2 for the keys", "one for each", "key_tokens"],
            lambda: figures.attention_maps(np.ones((2, 3)), ["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["(1, 1, 3, 3)", "(H, T, S)", "Drop an axis"],
            lambda: figures.attention_maps(EYE[None, None], "abc", caption=""),
        ),
        (
            ShapeError,
            ["empty", "at least one", "filtered"],
            lambda: figures.attention_maps(np.zeros((0, 3)), [], caption=""),
        ),
        (
            TypeError,
            ["list", "NumPy array", "asarray"],
            lambda: figures.attention_maps([[1.0]], ["a"], caption=""),
        ),
        (
            ValueError,
            ["nan at position (1, 2)", "finite", "isfinite"],
            lambda: figures.attention_maps(with_entry(np.nan), "abc", caption=""),
        ),
        (
            ValueError,
            ["1.25 at position (1, 2)", "0 to 1", "signed_maps"],
            lambda: figures.attention_maps(with_entry(1.25), "abc", caption=""),
        ),
        (
            ValueError,
            ["-0.25 at position (1, 2)", "0 to 1", "signed_maps"],
            lambda: figures.attention_maps(with_entry(-0.25), "abc", caption=""),
        ),
        (
            ShapeError,
            ["'X' has 3 rows", "2 names", "one name", "pass 3"],
            lambda: figures.signed_maps({"X": EYE}, rows=["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["'X' has 3 columns", "4 names", "one name", "pass 3"],
            lambda: figures.signed_maps({"X": EYE}, columns="abcd", caption=""),
        ),
        (
            ValueError,
            ["X is nan at position (1, 2)", "finite", "isfinite"],
            lambda: figures.signed_maps({"X": with_entry(np.nan)}, caption=""),
        ),
        (
            ValueError,
            ["arrays is {}", "at least one", "Give each a name"],
            lambda: figures.signed_maps({}, caption=""),
        ),
        (
            ShapeError,
            ["=3", "n_heads=2", "[1, 3]"],
            lambda: figures.split_diagram(EYE, 2, caption=""),
        ),
        (
            ShapeError,
            ["'y' has 2 points", "x has 3", "one for each", "same length"],
            lambda: figures.line_chart(X3, {"y": X3[:2]}, labels=("x", "y"), caption=""),
        ),
        (
            ValueError,
            ["'y' is 0", "position 0", "positive", "log="],
            lambda: figures.line_chart(X3, {"y": X3}, labels="xy", log=("y",), caption=""),
        ),
        (
            ValueError,
            ["series is []", "dict", "Give each a name"],
            lambda: figures.line_chart(X3, [], labels=("x", "y"), caption=""),
        ),
        (
            ValueError,
            ["y is nan at position (2,)", "finite", "isfinite"],
            lambda: figures.line_chart(
                X3, {"y": X3 + np.array([0, 0, np.nan])}, labels="xy", caption=""
            ),
        ),
        (
            ShapeError,
            ["values has shape (3, 3)", "2 names of columns", "expected one for each", "Pass 3"],
            lambda: figures.bar_chart(EYE, "abc", "xy", label="", caption=""),
        ),
        (
            ShapeError,
            ["values has shape (3,)", "(rows, columns)"],
            lambda: figures.bar_chart(X3, "abc", "x", label="", caption=""),
        ),
        (
            ValueError,
            ["values has -1", "no number below 0", "signed_maps"],
            lambda: figures.bar_chart(-EYE, "abc", "xyz", label="", caption=""),
        ),
        (
            ValueError,
            ["values is inf at position (1, 2)", "finite", "isfinite"],
            lambda: figures.bar_chart(with_entry(np.inf), "abc", "xyz", label="", caption=""),
        ),
        (
            ShapeError,
            ["'s' has 3 entries", "2 names", "one for each bar", "pass 3 names"],
            lambda: figures.bar_panels({"s": X3}, "ab", caption=""),
        ),
        (
            ShapeError,
            ["s has shape (3, 3)", "expected (names)", "Drop an axis"],
            lambda: figures.bar_panels({"s": EYE}, "abc", caption=""),
        ),
        (
            ValueError,
            ["s is inf at position (1,)", "finite", "isfinite"],
            lambda: figures.bar_panels({"s": np.array([0, np.inf])}, "ab", caption=""),
        ),
        (
            ValueError,
            ["0.7853981633974483 is no fraction", "up to 1000", "decimals"],
            lambda: figures.bar_panels(
                {"s": np.array([np.pi / 4])}, "a", fractions=True, caption=""
            ),
        ),
        (
            ValueError,
            ["panels is {}", "at least one", "Give each a name"],
            lambda: figures.bar_panels({}, "ab", caption=""),
        ),
        (
            TypeError,
            ["s is a list", "NumPy array", "asarray"],
            lambda: figures.bar_panels({"s": [1, 2]}, "ab", caption=""),
        ),
        (
            ValueError,
            ["alt is ' '", "picture in words", "which block leads"],
            lambda: diagram(PAIR, alt=" "),
        ),
        (
            ValueError,
            ["panels is {}", "at least one", "Give each a name"],
            lambda: figures.block_diagram({}, caption="", alt="Nothing."),
        ),
        (
            ValueError,
            ["blocks of 'map' is {}", "at least one", "Give each a name"],
            lambda: diagram({}),
        ),
        (
            TypeError,
            ["'map' is a dict", "expected a Diagram", "Diagram({"],
            lambda: figures.block_diagram({"map": PAIR}, caption="", alt="A pair."),
        ),
        (
            TypeError,
            ["block 'a' of 'map' is a tuple", "expected a Block", "Block(0, 0, 'Q')"],
            lambda: diagram({"a": (0, 0, "a")}),
        ),
        (
            TypeError,
            ["block 'a' of 'map' has x, y, width, height ('a', 0, 1, 1)", "four numbers", "name"],
            lambda: diagram({"a": Block("a", 0, "Q")}),
        ),
        (
            TypeError,
            ["block 'a' of 'map' has shade='x'", "a number from 0 to 1", "Give one"],
            lambda: diagram({"a": Block(0, 0, shade="x")}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has x, y, width, height (0, nan, 1, 1)", "finite", "in units"],
            lambda: diagram({"a": Block(0, np.nan)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map'", "(0, 0, 0, 1)", "lengths above 0"],
            lambda: diagram({"a": Block(0, 0, width=0)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has shade=1.5", "expected 0 to 1", "Divide by the largest"],
            lambda: diagram({"a": Block(0, 0, shade=1.5)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has shade=nan", "expected 0 to 1"],
            lambda: diagram({"a": Block(0, 0, shade=np.nan)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has head=-1", "number of a head", "0, 1, 2"],
            lambda: diagram({"a": Block(0, 0, head=-1)}),
        ),
        (
            ValueError,
            ["'a' and 'c' of 'map'", "on top of each other", "a place for each", "Move one"],
            lambda: diagram(PAIR | {"c": Block(0.5, 0.5)}),
        ),
        (
            ValueError,
            ["arrow ('a', 'z')", "no block 'z'", "['a', 'b']", "Correct the name"],
            lambda: diagram(PAIR, ("a", "z")),
        ),
        (
            ShapeError,
            ["arrow ('a',)", "two names", "('Q', 'scores')"],
            lambda: diagram(PAIR, ("a",)),
        ),
        (
            ShapeError,
            ["arrow 'ab'", "two names", "('Q', 'scores')"],
            lambda: diagram(PAIR, "ab"),
        ),
        (
            ValueError,
            ["arrow ('a', 'c') without room", "14 pixels", "Move them apart"],
            lambda: diagram({"a": Block(0, 0), "c": Block(1.1, 0)}, ("a", "c")),
        ),
        (
            ValueError,
            ["text of block 'a' of 'map'", "has 72 by 34", "room", "Break its lines"],
            lambda: diagram({"a": Block(0, 0, "a long text for it")}),
        ),
        (
            ValueError,
            ["text of block 'a' of 'map'", "has 72 by 34", "room", "Break its lines"],
            lambda: diagram({"a": Block(0, 0, "one\ntwo\nthree")}),
        ),
        (
            ValueError,
            ["label 'keys and values' of 'map'", "on block 'a'", "Move the blocks apart"],
            lambda: diagram(PAIR, ("a", "b", "keys and values")),
        ),
        (
            ShapeError,
            ["unit has shape ()", "two lengths", "(72, 34)"],
            lambda: diagram(PAIR, unit=72),
        ),
        (
            ValueError,
            ["unit is (72, 0)", "above 0", "(72, 34)"],
            lambda: diagram(PAIR, unit=(72, 0)),
        ),
        (
            ShapeError,
            ["arrow 'q a' of 'head 0'", "(3,)", "two numbers", "vector[:2]"],
            lambda: figures.planes({"head 0": {"q a": (1, 2, 3)}}, caption=""),
        ),
        (
            ValueError,
            ["head 0 is nan", "finite", "isfinite"],
            lambda: figures.planes({"head 0": {"q a": (1, np.nan)}}, caption=""),
        ),
        (
            ValueError,
            ["head 0 is {}", "at least one", "Give each a name"],
            lambda: figures.planes({"head 0": {}}, caption=""),
        ),
        (
            ShapeError,
            ["heads has shape (3, 3)", "(H, T, d_v)", "heads[None]"],
            lambda: figures.sum_over_heads(EYE, EYE, "abc", caption=""),
        ),
        (
            ShapeError,
            ["W_O has shape (3, 3)", "H*d_v=6", "Make the two agree"],
            lambda: figures.sum_over_heads(ramp(2, 3, 3), EYE, "abc", caption=""),
        ),
        (
            ShapeError,
            ["3 tokens", "2 names", "expected one for each", "Pass 3 names"],
            lambda: figures.sum_over_heads(EYE[None], EYE, "ab", caption=""),
        ),
        (
            ValueError,
            ["W_O is nan at position (1, 2)", "finite", "isfinite"],
            lambda: figures.sum_over_heads(EYE[None], with_entry(np.nan), "abc", caption=""),
        ),
        (
            ValueError,
            ["heads is nan at position (0, 1, 2)", "finite", "isfinite"],
            lambda: figures.sum_over_heads(with_entry(np.nan)[None], EYE, "abc", caption=""),
        ),
        (
            ValueError,
            ["'Y' has subscripts 'ij,jk'", "expected letters", "'htd,hsd->hts'"],
            lambda: figures.tensor_network({"Y": ("ij,jk", ["A", "B"])}, caption=""),
        ),
        (
            ValueError,
            ["'Y' has x in its result, 'ix'", "expected letters of 'ij,jk'"],
            lambda: figures.tensor_network({"Y": ("ij,jk->ix", ["A", "B"])}, caption=""),
        ),
        (
            ValueError,
            ["'Y' has 1 names for 2 operands", "one for each"],
            lambda: figures.tensor_network({"Y": ("ij,jk->ik", ["A"])}, caption=""),
        ),
        (
            ValueError,
            ["chains is {}", "at least one", "Give each a name"],
            lambda: figures.tensor_network({}, caption=""),
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(error, parts, call):
    with pytest.raises(error) as raised:
        call()
    for part in parts:
        assert part in str(raised.value)
