"""The gallery in Chromium: by mouse, keys, touch, with no script, and on its pages."""

import re
from io import BytesIO

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from matplotlib.image import imread

from tests.site.arrival import do_references, largest_task, recorded
from tests.site.browsing import MODES, PHONE
from tests.site.test_exhibits import LETTERS as LETTERS_IN_PIXELS
from tools.chapters import pages
from tutorial_lib import causal_mask, softmax
from tutorial_lib.elements import gallery, quiz
from tutorial_lib.elements.exhibits import (
    fold_tiles,
    heads_sum,
    mask_drawing,
    memory_strip,
    paint_mask,
    playground,
    query_plane,
    rotation_clock,
    softmax_bench,
)
from tutorial_lib.elements.sources import KINDS, style
from tutorial_lib.figures import HEAD_COLOURS

LETTERS = list("headshead")
COLOUR = """(element) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  canvas.fillStyle = getComputedStyle(element).color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def random_weights(heads, length, *, causal=True):
    """Weights of a softmax over random scores."""
    scores = 3 * np.random.default_rng(0).standard_normal((heads, length, length))
    return softmax(np.where(np.tri(length) > 0, scores, -np.inf) if causal else scores)


def drawn(weights, tokens=LETTERS, **options):
    """A gallery of any weights, whose last head scores highest."""
    answers = [(h, "why") for h in range(len(weights))]
    return gallery(weights, tokens, "Which?", answers, **options).html


def gallery_html():
    """Three heads, of which head 1 scores highest."""
    answers = [(0.25, "of the first"), (0.75, "of the *second*"), (0.5, "of the third")]
    weights = random_weights(3, 9)
    return gallery(weights, LETTERS, "Which head?", answers, mask=causal_mask(9)).html


def told(page):
    """What the only element says, of its two live regions the one that is seen."""
    return page.locator("[aria-live]").first.inner_text()


def point(page, query, key, head=0):
    """Where a cell of a map is on the screen; -1 is left of the map, 9 of nine is below it."""
    ctm = """(cells, [t, s]) => {
      const side = Number(cells.dataset.side);
      const place = new DOMPoint((s + 0.5) * side, (t + 0.5) * side);
      const {x, y} = place.matrixTransform(cells.getScreenCTM());
      return [x, y];
    }"""
    page.locator("svg").nth(head).scroll_into_view_if_needed()
    return page.locator("svg > [data-side]").nth(head).evaluate(ctm, [query, key])


def radio(page, head):
    """The button that picks a head of a gallery."""
    return page.get_by_role("radio", name=f"head {head} ")


def shapes(page, head=0):
    """The tint of each cell (query, key) of a map of a page, 11 for a dot alone."""
    cells = {}
    svg = page.locator("svg").nth(head)
    paths = svg.locator("[data-head] > path").all() + svg.locator(".tl-dots > path").all()
    for tint, path in enumerate(paths):
        for piece in re.findall("M[^M]+", path.get_attribute("d")):
            x, y, *rest = map(float, re.findall(r"-?[\d.]+", piece))
            end = rest[0] + 0.49 if "H" in piece else x + rest[0]
            for s in range(int(x), round(end)):
                cells[int(y), s] = tint
    return cells


@pytest.mark.parametrize(("heads", "length"), [(3, 9), (1, 30)])
def test_map_shows_every_weight_in_tenths_and_a_dot_for_what_is_hidden(show, heads, length):
    weights = random_weights(heads, length)
    page = show(drawn(weights, [LETTERS[t % 9] for t in range(length)], mask=causal_mask(length)))
    for h in range(heads):
        found = shapes(page, h)
        assert len(found) == length**2
        for (t, s), tint in found.items():
            assert tint == (11 if s > t else np.floor(10 * np.round(weights[h, t, s], 3) + 0.5))
    paths = page.locator("g > path").evaluate_all("all => all.map(e => e.getAttribute('d'))")
    cells = heads * length * (length + 1) // 2
    joined = "".join(paths).count("z") < cells
    assert joined == (length == 30), "gaps part the cells of a small map"


def inked(page, query, key):
    """The share of a cell's pixels, without its numbers, that are not of the page's paper."""
    page.add_style_tag(content=".tl-weights text, .tl-frames { display: none; }")
    (x, y), (right, below) = point(page, query, key), point(page, query + 1, key + 1)
    width, height = right - x, below - y
    clip = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height}
    pixels = imread(BytesIO(page.screenshot(clip=clip)))[..., :3]
    return (abs(pixels - 1).max(axis=-1) > 0.02).mean()


def test_hidden_key_is_a_dot_and_a_weight_of_0_is_a_cell_with_its_number(show):
    weights = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    page = show(drawn(weights, ["a", "b"]))
    assert page.locator(".tl-dots path").get_attribute("d") == ""
    assert page.locator("g[data-numbers] > text").all_text_contents() == ["1", "0", "1/2", "1/2"]
    assert shapes(page)[0, 1] == 0
    assert inked(page, 0, 1) > 0.8
    page = show(drawn(weights, ["a", "b"], mask=causal_mask(2)))
    assert page.locator("g[data-numbers] > text").all_text_contents() == ["1", "1/2", "1/2"]
    assert shapes(page)[0, 1] == 11
    assert 0.005 < inked(page, 0, 1) < 0.06


def marked(page, head=0):
    """The query whose row of a map is framed, and the key whose column is."""
    row, column = page.locator(".tl-frames").nth(head).locator("rect").all()[:2]
    places = [(row, "y"), (column, "x")]
    return tuple(int(r.get_attribute(at)) if r.is_visible() else None for r, at in places)


def test_click_on_a_cell_a_row_and_a_column_chooses_what_it_is(show):
    page = show(gallery_html())
    for place, frame in (
        ((4, 1), (4, 1)),
        ((6, -1), (6, None)),
        ((9, 2), (6, 2)),
        ((9, -1), (6, 2)),  # the corner is no row and no column
    ):
        page.mouse.click(*point(page, *place))
        assert marked(page) == frame, place


# Pressed on the map one after the other, and what is framed then.
ARROWS = {
    "ArrowUp": (0, 0),
    "Escape": (0, None),
    "ArrowDown ArrowDown": (2, None),
    "ArrowRight": (2, 0),
    "ArrowRight ArrowDown": (3, 1),
    "End ArrowRight": (3, 8),
    "ArrowLeft": (3, 7),
    "Home": (3, 0),
    "Escape ArrowDown": (4, None),
}


def test_map_by_keys_alone(show):
    page = show(gallery_html())
    page.locator("input").first.focus()
    page.keyboard.press("Tab")
    assert page.locator("svg").first.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    for keys, place in ARROWS.items():
        for key in keys.split():
            page.keyboard.press(key)
        assert marked(page) == place, keys


def test_heads_are_drawn_in_their_colours(show):
    page = show(drawn(random_weights(5, 9)))
    ink = [int(MODES["light"][0][i : i + 2], 16) for i in (1, 3, 5)]
    for h in range(5):
        wanted = [int(HEAD_COLOURS[h % 4][i : i + 2], 16) for i in (1, 3, 5)]
        mixed = [0.6 * a + 0.4 * b for a, b in zip(wanted, ink, strict=True)]
        box = page.locator(".tl-heads > div").nth(h)
        found = [box.locator(place).first.evaluate(COLOUR) for place in ("g[data-head] path", "b")]
        np.testing.assert_allclose(found, [mixed] * 2, atol=1.5)


def contrast(*colours):
    """The contrast of two colours, as WCAG reckons it."""
    linear = np.array(
        [
            [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
            for rgb in np.array(colours) / 255
        ]
    )
    dark, light = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.long
def test_numbers_in_a_map_stand_out_from_every_tint(show, mode):
    tenths = np.arange(6) / 10
    rows = np.zeros((4, 6, 6))
    rows[..., 0], rows[..., 1] = tenths, 1 - tenths
    page = show(drawn(rows, range(6)), mode=mode)
    paper = page.locator("body").evaluate(COLOUR.replace(".color", ".backgroundColor"))
    fill = COLOUR.replace(".color", ".fill")
    for h in range(4):
        svg = page.locator("svg").nth(h)
        *tint, alpha = svg.locator("g[data-head]").evaluate(COLOUR.replace(".slice(0, 3)", ""))
        inks = svg.locator("g[data-numbers] > text").evaluate_all(f"all => all.map({fill})")
        assert len(inks) == 36
        for share, ink in zip(rows[h].ravel(), inks, strict=True):
            opacity = alpha / 255 * (0.1 + 0.9 * share)
            behind = opacity * np.array(tint) + (1 - opacity) * np.array(paper)
            assert contrast(ink, behind) >= 4.4


@pytest.mark.long
def test_pointer_shows_the_cell_that_it_would_choose(show):
    page = show(gallery_html())
    svg, hover = page.locator("svg").first, page.locator(".tl-frames rect").nth(3)
    assert svg.evaluate("e => getComputedStyle(e).cursor") == "pointer"
    assert not hover.is_visible()
    page.mouse.move(*point(page, 5, 3))
    assert [hover.get_attribute(name) for name in ("x", "y", "width")] == ["3", "5", "1"]
    page.mouse.move(*point(page, 5, -1))
    assert [hover.get_attribute(name) for name in ("x", "y", "width")] == ["0", "5", "9"]
    page.mouse.move(0, 0)
    assert not hover.is_visible()


def follow(page, address):
    """Go to an address of the page that is open."""
    page.evaluate("hash => { location.hash = hash; }", address)
    page.wait_for_function("() => document.querySelector('[aria-live]').textContent")


def linked(page):
    """Where the link of the only element leads."""
    return page.get_by_role("link").get_attribute("href")


BAD_LINKS = {
    "head=3": "head is “3”; expected 0 to 2.",
    "head=1&query=9": "query is “9”; expected 0 to 8.",
    "key=-1": "key is “-1”; expected 0 to 8.",
    "key=": "key is “”; expected 0 to 8.",
    "key=1e0": "key is “1e0”; expected 0 to 8.",
    "row=<b>1": "“row” cannot be set; expected one of head, query, key, tried, open.",
    "toString=1": "“toString” cannot be set; expected one of head, query, key, tried, open.",
}


def test_bad_link_says_what_was_expected_and_changes_nothing(show):
    page = show(gallery_html())
    radio(page, 2).check()
    page.mouse.click(*point(page, 6, 2))
    before = linked(page)
    for state, words in BAD_LINKS.items():
        follow(page, f"#gallery=0&{state}")
        page.wait_for_function("words => document.body.innerText.includes(words)", arg=words)
        assert told(page) == f"The link does not fit: {words} Nothing has changed."
        assert (linked(page), marked(page)) == (before, (6, 2))


WORK = """() => {
  window.work = [];
  document.addEventListener("tl-work", ({ detail }) => work.push(detail));
}"""


def reasons(page):
    """What stands below the heads of a gallery, without what is said of a cell."""
    return [text for text in page.locator(".tl-heads p:last-child").all_inner_texts() if text]


ALL_REASONS = ["0.25 of the first", "✓ 0.75 of the second", "0.50 of the third"]


TRY_AGAIN = "✗ Not head 2. Another scores higher: choose again."


@pytest.mark.parametrize(
    ("head", "verdict"),
    [(1, "✓ Right. Head 1 scores highest."), (0, "✗ Not head 0. Head 1 scores highest.")],
)
def test_second_commitment_or_a_right_one_brings_every_score_and_its_reason(show, head, verdict):
    page = show(gallery_html())
    radio(page, 2).check()
    assert reasons(page) == []
    page.get_by_role("button", name="Commit").click()
    assert (told(page), reasons(page)) == (TRY_AGAIN, ALL_REASONS[2:])
    radio(page, head).check()
    assert (told(page), reasons(page)) == (TRY_AGAIN, ALL_REASONS[2:])
    page.get_by_role("button", name="Commit").click()
    assert (told(page), reasons(page)) == (verdict, ALL_REASONS)


def test_gallery_asks_for_a_choice_and_shows_without_one(show):
    page = show(gallery_html())
    page.get_by_role("button", name="Commit").click()
    assert (told(page), reasons(page)) == ("Choose a head first.", [])
    page.get_by_role("button", name="Show me").click()
    assert (told(page), reasons(page)) == ("Head 1 scores highest.", ALL_REASONS)


def test_four_heads_of_a_gallery_stand_two_by_two_and_three_in_a_line(show):
    answers = [(h, "why") for h in range(4)]
    page = show(gallery(random_weights(4, 9), LETTERS, "?", answers).html, gallery_html())
    tops = [
        [round(box.bounding_box()["y"]) for box in one.locator(".tl-heads > div").all()]
        for one in page.locator("tl-gallery").all()
    ]
    assert tops[0][0] == tops[0][1] < tops[0][2] == tops[0][3]
    assert len(tops[1]) == 3
    assert len(set(tops[1])) == 1


def test_gallery_by_keys_alone(show):
    page = show(gallery_html())
    for key in ("Tab", "Space", "ArrowDown", *["Tab"] * 3, "Enter"):  # by two maps
        page.keyboard.press(key)
    assert told(page) == "✓ Right. Head 1 scores highest."


def test_cell_of_a_gallery_is_framed_and_told_in_every_head(show):
    page = show(gallery_html())
    lines = page.locator(".tl-heads svg + p")
    page.locator("svg").nth(1).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    weights = np.round(random_weights(3, 9), 3)[:, 2, 1]
    assert lines.all_inner_texts() == [f"a (2) gives e (1) {weight:.3f}" for weight in weights]
    assert [marked(page, h) for h in range(3)] == [(2, 1)] * 3
    said = page.locator(".tl-news").inner_text()
    assert said.startswith(f"head 0: a (2) gives e (1) {weights[0]:.3f}. head 1: a (2) gives e")
    page.mouse.click(*point(page, 3, 6, head=2))
    assert lines.all_inner_texts() == ["d (3) may not attend to e (6)"] * 3


def test_looking_at_a_map_of_a_gallery_answers_nothing(show):
    page = show(gallery_html())
    page.mouse.click(*point(page, 3, 1, head=2))
    page.locator("svg").nth(1).focus()
    for key in ("ArrowRight", "Enter", "Space"):
        page.keyboard.press(key)
    assert [radio(page, head).is_checked() for head in range(3)] == [False] * 3
    page.get_by_role("button", name="Commit").click()
    assert (told(page), reasons(page)) == ("Choose a head first.", [])
    radio(page, 1).check()
    page.mouse.click(*point(page, 3, 1, head=2))
    assert radio(page, 1).is_checked()


def test_the_word_that_decides_has_a_ring_and_is_told(show):
    target = np.array([-1, 0, 1, -1, 2, -1, 6, -1, 3])
    answers = [(h / 4, "of one") for h in range(3)]
    mask = causal_mask(9)
    page = show(gallery(random_weights(3, 9), LETTERS, "?", answers, mask=mask, target=target).html)
    for head in range(3):
        ring = page.locator("svg").nth(head).locator("[fill=none] path").last
        assert ring.evaluate("path => getComputedStyle(path).strokeWidth") == "1.5px"
        box = ring.bounding_box()
        low, high = point(page, 1, 0, head), point(page, 8, 6, head)
        assert box["y"] < low[1] < high[1] < box["y"] + box["height"]
        assert box["x"] < low[0] < high[0] < box["x"] + box["width"]
    page.mouse.click(*point(page, 6, 6))
    notes = [box.locator("p").first.inner_text() for box in page.locator(".tl-heads > div").all()]
    assert all(re.fullmatch(r".* gives .* 0\.\d{3}, the target", n) for n in notes)
    assert page.locator("[aria-live]").nth(1).inner_text().count(", the target.") == 3
    page.mouse.click(*point(page, 6, 2))
    assert "decides" not in page.locator("[aria-live]").nth(1).inner_text()
    page.mouse.click(*point(page, 3, 3))
    assert "decides" not in page.locator("[aria-live]").nth(1).inner_text()


def test_gallery_tells_what_was_done_takes_it_back_and_has_a_link(show):
    page = show(gallery_html())
    page.evaluate(WORK)
    radio(page, 2).check()
    page.mouse.click(*point(page, 3, 1, head=2))
    page.get_by_role("button", name="Commit").click()
    assert [work["state"] for work in page.evaluate("() => work")] == [
        "head=2",
        "head=2&query=3&key=1",
        "head=2&query=3&key=1&tried=2",
    ]
    assert linked(page) == "#gallery=0&head=2&query=3&key=1&tried=2"
    page = show(gallery_html())
    page.evaluate(WORK)
    recall = "state => document.querySelector('tl-gallery').recall(state)"
    for nonsense in ("head=3", "open=3", "open=yes", 2, None, {"head": 1}, ["head=1"]):
        assert page.evaluate(recall, nonsense) is False
        assert reasons(page) == []
    assert page.evaluate(recall, "head=2&query=3&key=1&open=2") is True
    assert (told(page), reasons(page)) == ("✗ Not head 2. Head 1 scores highest.", ALL_REASONS)
    assert radio(page, 2).is_checked()
    assert [marked(page, h) for h in range(3)] == [(3, 1)] * 3
    assert page.evaluate("() => work") == []
    assert page.evaluate("() => document.activeElement.localName") == "body"
    follow(page, "#gallery=0&head=1&query=4&key=0")
    assert radio(page, 1).is_checked()
    assert marked(page) == (4, 0)


@pytest.mark.long
def test_head_picked_after_the_scores_is_not_judged_until_committed(show):
    page = show(gallery_html())
    page.get_by_role("button", name="Show me").click()
    radio(page, 1).check()
    assert (told(page), reasons(page)) == ("Head 1 scores highest.", ALL_REASONS)
    page.get_by_role("button", name="Commit").click()
    assert told(page) == "✓ Right. Head 1 scores highest."


def test_gallery_by_touch_looks_on_the_map_and_answers_by_the_name(show):
    page = show(gallery_html(), **PHONE)
    page.touchscreen.tap(*point(page, 3, 1, head=1))
    assert page.locator(".tl-heads svg + p").first.inner_text().startswith("d (3) gives e (1) 0.")
    page.locator(".tl-heads label").nth(2).tap()
    page.get_by_role("button", name="Commit").tap()
    assert told(page) == TRY_AGAIN


def test_copies_on_one_page_do_not_disturb_each_other(show):
    page = show(gallery_html(), gallery_html())
    galleries = page.locator("tl-gallery")
    for i, head in enumerate((1, 2)):
        radio(galleries.nth(i), head).check()
    for i in (0, 1):
        galleries.nth(i).get_by_role("button", name="Commit").click()
    assert galleries.nth(0).locator("[aria-live]").first.inner_text().startswith("✓ Right.")
    assert galleries.nth(1).locator("[aria-live]").first.inner_text().startswith("✗ Not head 2.")


def test_figures_wake_though_their_script_comes_first(show):
    html = gallery_html()
    scripts = re.findall(r"<script>.*?</script>", html, re.S)
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    page = show(body, head="".join(scripts))
    assert page.locator("g path").count() == 3 * 12


def test_page_without_scripts_reads(show):
    page = show(gallery_html(), java_script_enabled=False)
    assert page.locator("input:visible, svg:visible, button:visible").count() == 0
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.get_by_role("row", name="0 h (0) h (0) 1.000").is_visible()
    assert page.get_by_text("Which head?").is_visible()
    assert page.locator("dd").nth(1).inner_text() == ALL_REASONS[1]


def operate(page):
    """Bring every message and state onto a page."""
    radio(page, 2).check()
    page.get_by_role("button", name="Commit").click()
    page.locator("summary:visible").evaluate_all("all => all.forEach(e => e.click())")
    page.mouse.click(*point(page, 4, 2))


def test_nothing_sticks_out_is_too_small_or_found_by_axe_after_use(show, mode):
    width = {"light": 320, "dark": 800, "light notebook": 800, "dark notebook": 320}[mode]
    names = [letter * 9 for letter in LETTERS]
    page = show(drawn(random_weights(4, 9), names, mask=causal_mask(9)), width=width, mode=mode)
    operate(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in found] == []
    assert min(page.locator("svg text:visible").evaluate_all(LETTERS_IN_PIXELS)) >= 11
    for control in page.locator("button:visible").all():
        assert control.bounding_box()["height"] >= 24


def test_map_and_names_follow_the_colour_of_the_page(show):
    light, dark = (
        show(gallery_html(), mode=mode).locator("g[data-head]").first.evaluate(COLOUR)
        for mode in ("light", "dark")
    )
    assert sum(dark) > sum(light) + 100


ALONE = {
    "gallery": gallery_html,
    "playground": lambda: playground().html,
    "bench": lambda: softmax_bench(slope=True).html,
    "clock": lambda: rotation_clock().html,
    "drawing": lambda: mask_drawing().html,
    "strip": lambda: memory_strip().html,
    "plane": lambda: query_plane().html,
    "products": lambda: query_plane(weights=False).html,
    "paint": lambda: paint_mask().html,
    "tiles": lambda: fold_tiles().html,
    "sum": lambda: heads_sum().html,
    "quiz": lambda: quiz("04_multi_head_attention").html,
}
DRAWN = "parsons", "quiz", "gallery", "sum"  # the others are as many alike
CHANGES = """(sheet) => {
  const elements = [...document.querySelectorAll(".tl, .tl *")];
  const look = () => elements.map((element) => {
    const style = getComputedStyle(element);
    return [...style].map((name) => `${name}: ${style.getPropertyValue(name)}`);
  });
  const [before, style] = [look(), document.createElement("style")];
  style.textContent = sheet;
  const found = [];
  for (const put of ["prepend", "append"]) {
    document.body[put](style);
    look().forEach((now, i) => now.forEach((line, j) => {
      if (line != before[i][j]) found.push(`${elements[i].tagName} ${line}, ${before[i][j]} alone`);
    }));
  }
  return {elements: elements.length, found: [...new Set(found)].slice(0, 20)};
}"""


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(html, id=name, marks=[pytest.mark.long] * (name not in DRAWN))
        for name, html in ALONE.items()
    ],
)
def test_style_sheet_of_all_elements_draws_each_as_its_own_does(show, html):
    changes = show(html()).evaluate(CHANGES, style(*KINDS))
    assert changes["elements"] > 20
    assert changes["found"] == []


def work_of_operating(page, browser):
    """The most work in one go, in references, while queries and keys of a gallery change."""
    with recorded(browser) as events:
        page.locator("svg").first.focus()
        for key in ["ArrowDown", "ArrowRight"] * 15:
            page.keyboard.press(key)
        assert marked(page) == (14, 15)
        do_references(page)
    return largest_task(events)


@pytest.mark.long
@pytest.mark.parametrize("causal", [False, True], ids=["all keys", "causal"])
def test_largest_array_is_operated_without_a_stutter(show, browser, causal):
    weights = random_weights(16, 64, causal=causal)
    mask = causal_mask(64) if causal else None
    page = show(drawn(weights, [f"token{t}" for t in range(64)], mask=mask))
    work = (work_of_operating(page, browser) for _ in range(3))  # one may collect the garbage
    assert any(most <= 1.25 for most in work)


FIGURES = [p.name for p in pages() if "<tl-gallery" in p.path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_a_chapter_answer(open_page, name):
    page = open_page(f"notebooks/{name}.html", width=320, dark=True)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    element = page.locator("tl-gallery")
    assert element.locator("g path").count() >= 12
    element.get_by_role("radio").first.check()
    element.get_by_role("button", name="Commit").click()
    assert "head" in element.locator("[aria-live]").first.inner_text().lower()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    assert page.problems == []
