"""The built pages in Chromium: quiet, legible in both modes, on a phone, to a screen reader."""

from base64 import b64decode
from pathlib import Path

import pytest

from tests.site.arrival import arrive, beyond_budget, closer_looks
from tests.site.browsing import CONTRAST, KINDS, OPEN_ALL, START_EXHIBITS, quiet

LUMINANCE = """(element) => {
  const [r, g, b] = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}"""
OPAQUE_OUTPUTS = """() => [...document.querySelectorAll('.cell_output .text_html')]
  .filter((e) => getComputedStyle(e).backgroundColor !== 'rgba(0, 0, 0, 0)').length"""
FAINT = (
    f"() => {{{CONTRAST}"
    + """
  // The papers below a text: an opaque one, and the tints that lie on it.
  const grounds = (e) => {
    const css = getComputedStyle(e).backgroundColor;
    if (css == "rgba(0, 0, 0, 0)" && e.parentElement) return grounds(e.parentElement);
    return /rgba|\\//.test(css) && e.parentElement ? [...grounds(e.parentElement), css] : [css];
  };
  const found = {read: 0, faint: {}};
  for (const e of document.querySelectorAll('body *:not(svg *, math *, script, style)')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(e);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const papers = grounds(e);
    const ratio = contrast(light(...papers, style.color), light(...papers));
    found.read += 1;
    if (ratio < needed) found.faint[`${e.className}: ${style.color} on ${papers}`] = ratio;
  }
  return found;
}"""
)
SCROLLING = """() => [...document.querySelectorAll('span.math')]
  .filter((e) => e.offsetHeight > e.clientHeight || e.scrollWidth > e.clientWidth + 2)
  .map((e) => e.textContent)"""
TORN = """() => [...document.querySelectorAll('span.math')].filter((e) => {
  let next = e.nextSibling || e.parentElement.nextSibling;
  while (next?.nodeType === 8) next = next.nextSibling;
  if (next?.nodeType !== 3 || !/^[.,:;?!)]/.test(next.data)) return false;
  const sign = document.createRange();
  sign.setStart(next, 0);
  sign.setEnd(next, 1);
  return sign.getBoundingClientRect().left < e.getBoundingClientRect().right - 1;
}).map((e) => e.textContent)"""
OPERATE = """() => {
  const say = (e, type) => e.dispatchEvent(new Event(type, {bubbles: true}));
  const use = (e) => {
    // A form would fetch Python from another host.
    if (!e.checkVisibility({visibilityProperty: true}) || e.matches(".tl-python button")) return;
    if (e.matches("[type=radio], [type=checkbox], button, summary, td")) e.click();
    else if (e.matches("select")) e.selectedIndex = e.options.length - 1;
    else e.value = e.max || (e.type == "number" ? 1 : "1/2");
    say(e, "input");
    say(e, "change");
  };
  const back = /^(Take out|Undo|Reset)/;
  for (const element of document.querySelectorAll(".tl")) {
    [...element.querySelectorAll("input, select, button, [aria-readonly=true] td[tabindex='0']")]
      .filter((e) => !back.test(e.ariaLabel ?? e.textContent.trim())).forEach(use);
  }
  return [...document.querySelectorAll(".tl")].filter((element) =>
    ![...element.querySelectorAll("[aria-live]")].some((region) => region.textContent.trim())
  ).map((element) => element.id);
}"""
# Boxes that scroll sideways without a shade in the colour of their own paper, or with something
# opaque before it. A text that is kept for readers who listen scrolls in a box of one pixel.
UNSIGNED = """() => {
  const clear = /^rgba\\(.*, 0\\)$/;
  const paper = (e) => {
    const css = getComputedStyle(e).backgroundColor;
    return clear.test(css) ? paper(e.parentElement) : css;
  };
  const scrolls = (e) => {
    const {overflowX} = getComputedStyle(e);
    return overflowX != "visible" && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1;
  };
  const signed = (e) => {
    const {backgroundAttachment, backgroundImage} = getComputedStyle(e);
    const covers = ["right", "left"].map((side) => `(to ${side}, ${paper(e)} `);
    return backgroundAttachment == "local, local, scroll, scroll"
      && covers.every((cover) => backgroundImage.includes(cover));
  };
  const hides = (e, inner) => !clear.test(getComputedStyle(inner).backgroundColor)
    && !/\\/|rgba/.test(getComputedStyle(inner).backgroundColor)
    && inner.clientWidth > e.clientWidth;
  const found = {boxes: 0, unsigned: []};
  for (const e of document.querySelectorAll("body *:not(svg *, math *, input)")) {
    if (!e.checkVisibility() || !scrolls(e)) continue;
    found.boxes += 1;
    const hidden = [...e.querySelectorAll("*:not(svg *)")].some((inner) => hides(e, inner));
    if (!signed(e) || hidden) found.unsigned.push(`${e.tagName}.${e.className} ${paper(e)}: ` +
      e.textContent.trim().slice(0, 40));
  }
  return found;
}"""
# Vectors and pieces of code in a table that begin on one line and end on another.
BROKEN = r"""() => {
  const bottoms = (range) => [...range.getClientRects()].map(({bottom}) => Math.round(bottom));
  const vectors = /\((?:[−+-]?[\d½./]+, )+[−+-]?[\d½./]+\)/g;
  const found = {seen: 0, broken: []};
  const look = (range) => {
    found.seen += 1;
    if (new Set(bottoms(range)).size > 1) found.broken.push(range.toString());
  };
  for (const cell of document.querySelectorAll("article table.table :is(td, th)")) {
    if (!cell.checkVisibility()) continue;
    for (const code of cell.querySelectorAll("code")) {
      const range = document.createRange();
      range.selectNodeContents(code);
      look(range);
    }
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode()); ) {
      for (const {0: vector, index} of node.data.matchAll(vectors)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + vector.length);
        look(range);
      }
    }
  }
  return found;
}"""
WIDER = """() => [...document.querySelectorAll('body *')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + '.' + e.className).slice(0, 8)"""
# The theme makes a stop of every box that scrolls, a moment after the page has changed.
STOPS_ARE_SET = """() => [...document.querySelectorAll('pre, .pst-scrollable-table-container')]
  .every((e) => e.scrollWidth <= e.clientWidth || e.tabIndex >= 0)"""
PAPER = 658  # pixels of A4 between the margins
BEYOND_PAPER = """() => [...document.querySelectorAll('.bd-article *')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.visually-hidden'))
  .filter((e) => e.closest('svg')?.getBoundingClientRect().width !== 0)  // is drawn
  .map((e) => `${e.tagName}.${e.className}`).slice(0, 8)"""
WRAPPED = "all => all.map((e) => getComputedStyle(e).whiteSpace == 'pre-wrap')"
KEPT_WHOLE = "all => all.map((e) => getComputedStyle(e).breakInside == 'avoid')"
SCREENSHOTS = Path(__file__).resolve().parents[2] / "_build" / "screenshots"
CODE = "notebooks/03_attention_weights.html"
# What a phone shows otherwise is the frame, which all pages share, and wide tables.
SEEN_ON_A_PHONE = KINDS[1]
TALLEST = 16_000  # pixels of a picture; Chromium repeats itself beyond 16384


def violations(axe, page, context=None, *, contrast=False) -> list[str]:
    """Return what axe-core finds in all or a part, the rule and the elements, and faint texts.

    Four fifths of axe's time is its rule of contrast: FAINT measures each text in its place, and
    only tests that are `long` ask axe, too.
    """
    faint = page.evaluate(FAINT)
    assert faint["read"], "the page has no text"
    options = {"preload": False, "resultTypes": ["violations"]}
    options["rules"] = {"color-contrast": {"enabled": contrast}}
    found = axe.run(page, context, options).response
    assert found["passes"], "axe has seen nothing"
    return [
        *(f"{text}: {ratio:.2f}" for text, ratio in faint["faint"].items()),
        *(
            f"{v['id']}: {[n['target'] for n in v['nodes'][:4]]} of {len(v['nodes'])}"
            for v in found["violations"]
        ),
    ]


def look(page, *, width=1280, dark=False, unfolded=True):
    """Bring a shared page into a known state: its width, its mode, everything unfolded."""
    mode = "dark" if dark else "light"
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=mode, reduced_motion="reduce")
    page.wait_for_function(f"() => document.documentElement.dataset.theme === '{mode}'")
    if unfolded:
        page.evaluate(OPEN_ALL)


def operate(page) -> list[str]:
    """Use every element of a shared page, once; return the ids of those that stayed silent."""
    if not hasattr(page, "silent"):
        page.silent = page.evaluate(OPERATE)
    return page.silent


@pytest.fixture(scope="module")
def visited(browser, visit, page_name):
    """One page of the site, opened once for all tests that look at it."""
    with quiet(arrive(browser, visit, page_name, 1280)) as page:
        page.evaluate(START_EXHIBITS)
        yield page


def test_page_arrives_within_its_budget(visited, page_name, browser, visit):
    closer = closer_looks(browser, visit, page_name, 1280)
    assert visited.arrival["weight"] > 30_000
    assert beyond_budget(visited.arrival, *closer) == []


@pytest.mark.picture
@pytest.mark.parametrize("width", [1440, 320])
def test_picture_of_the_page_is_kept(visited, page_name, width):
    look(visited, width=width, unfolded=False)
    bars = visited.add_style_tag(content="html { scrollbar-width: none; scrollbar-gutter: auto }")
    height = visited.evaluate("() => document.documentElement.scrollHeight")
    stem = page_name.removesuffix(".html").replace("/", "-")
    (SCREENSHOTS / str(width)).mkdir(parents=True, exist_ok=True)
    scale = min(1, 720 / width)  # a wide page at half its size, in half the time
    tall = int(TALLEST / scale)
    strips = [(y, min(tall, height - y)) for y in range(0, height, tall)]
    pictures = [photograph(visited, *strip, width, scale) for strip in strips]
    for i, picture in enumerate(pictures, start=1):
        (SCREENSHOTS / str(width) / f"{stem}-{i}.jpg").write_bytes(picture)
    assert len(pictures[0]) > 5_000
    bars.evaluate("(style) => style.remove()")


def photograph(page, top, height, width, scale) -> bytes:
    """Return a JPEG of a strip of the page."""
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": scale}
    settings = {"format": "jpeg", "quality": 60, "captureBeyondViewport": True, "clip": clip}
    shot = page.context.new_cdp_session(page).send("Page.captureScreenshot", settings)
    return b64decode(shot["data"])


def test_page_does_not_scroll_sideways_at_320_pixels(visited):
    look(visited, width=320)
    width = visited.evaluate("() => document.documentElement.scrollWidth")
    assert width <= 320, visited.evaluate(WIDER)


@pytest.mark.parametrize("percent", [150, 200])
def test_larger_text_does_not_scroll_a_phone_sideways(visited, percent):
    look(visited, width=390)
    set_size = "size => { document.documentElement.style.fontSize = size; }"
    visited.evaluate(set_size, f"{percent}%")
    width = visited.evaluate("() => document.documentElement.scrollWidth")
    wider = visited.evaluate(WIDER)
    visited.evaluate(set_size, "")
    assert width <= 390, wider


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True)])
def test_what_scrolls_shows_that_it_goes_on(visited, width, dark, page_name):
    look(visited, width=width, dark=dark)
    found = visited.evaluate(UNSIGNED)
    assert found["unsigned"] == []
    assert found["boxes"] > 4 or "notebooks/" not in page_name


@pytest.mark.parametrize("width", [320, 390])
def test_no_vector_and_no_code_is_broken_in_a_table(visited, width, page_name):
    look(visited, width=width)
    found = visited.evaluate(BROKEN)
    assert found["broken"] == []
    assert found["seen"] > 5 or "12_flash" not in page_name


@pytest.mark.parametrize("width", [390, 1280], ids=["phone", "wide"])
def test_no_line_begins_with_the_full_stop_behind_a_formula(visited, width):
    look(visited, width=width)
    assert visited.evaluate(TORN) == []


def test_no_formula_in_a_line_scrolls(visited):
    look(visited)
    assert visited.evaluate(SCROLLING) == []


def test_every_element_answers_and_the_page_stays_quiet(visited):
    look(visited)
    visited.mouse.wheel(0, 20_000)
    for late in visited.locator("[data-bare]").all():  # whose model comes with the reader
        late.scroll_into_view_if_needed()
    visited.locator("[data-bare]").first.wait_for(state="detached")
    assert operate(visited) == []
    visited.wait_for_timeout(100)
    assert visited.problems == [], "an error, a breach of the policy or a request elsewhere"


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_page_follows_the_mode_of_the_system_and_every_text_is_legible(visited, dark):
    look(visited, dark=dark)
    operate(visited)
    luminance = visited.locator("body").evaluate(LUMINANCE)
    assert luminance < 0.15 if dark else luminance > 0.85
    assert visited.evaluate(OPAQUE_OUTPUTS) == 0, "an output lies on a card of its own"
    found = visited.evaluate(FAINT)
    assert found["read"] > 10
    assert found["faint"] == {}


def test_nothing_of_a_page_reaches_beyond_the_paper(visited):
    look(visited, width=PAPER)  # late: Chromium is slower on a page that it has set for print
    visited.emulate_media(media="print")
    visited.evaluate("dispatchEvent(new Event('beforeprint'))")  # which a real printer sends
    found = visited.evaluate(BEYOND_PAPER)
    code = visited.locator("pre:visible").evaluate_all(WRAPPED)
    pictures = visited.locator(".ahh-panels").evaluate_all(KEPT_WHOLE)
    visited.emulate_media(media="screen")
    assert found == []
    assert all(code)
    assert all(pictures)


def test_axe_finds_nothing_once_every_element_is_used(visited, axe, page_name):
    look(visited)
    operate(visited)
    visited.wait_for_function(STOPS_ARE_SET)
    assert violations(axe, visited) == []
    if page_name == SEEN_ON_A_PHONE:
        look(visited, width=390, dark=True)
        visited.wait_for_function(STOPS_ARE_SET)
        assert violations(axe, visited) == []


@pytest.mark.long
def test_axe_finds_nothing_on_a_phone_in_a_page_with_each_sort_of_element(open_page, axe):
    page = open_page(KINDS[2], width=390, dark=True)
    look(page, width=390, dark=True)
    operate(page)
    page.wait_for_function(STOPS_ARE_SET)
    assert violations(axe, page) == []


@pytest.mark.long
def test_axe_finds_nothing_faint_in_the_dark_either(visited, axe):
    look(visited, dark=True)
    operate(visited)
    assert violations(axe, visited, contrast=True) == []


def test_icon_of_a_search_field_leaves_its_text_free(open_page):
    page = open_page("search.html")
    free = """() => [...document.querySelectorAll('main .bd-search')]
      .map((form) => [form.querySelector('i'), form.querySelector('input')])
      .map(([icon, field]) => icon.getBoundingClientRect().right
        <= field.getBoundingClientRect().left + parseFloat(getComputedStyle(field).paddingLeft))"""
    assert page.evaluate(free) == [True]


def test_root_of_the_site_leads_to_the_first_page(page, site_url):
    page.goto(site_url)
    page.wait_for_url("**/book/intro.html")
    assert page.locator("article h1").is_visible()


def test_missing_page_is_dressed_like_the_others_and_leads_back(open_page, site_url):
    page = open_page("no/such/page.html")
    own = [problem for problem in page.problems if "no/such/page" not in problem]
    assert [problem for problem in own if "status of 404" not in problem] == []
    assert page.locator("article h1").is_visible()
    page.problems.clear()
    page.get_by_role("link", name="the first page").click()
    page.wait_for_url(site_url + "book/intro.html")
