"""The addresses below a section: ids, numbers, arrival, and links to states."""

import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import parse_qsl, urljoin, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from book._ext.content.addresses import BOOK, EXERCISE
from tests.chapters.pages import written
from tests.sampling import long
from tests.site.browsing import DOCUMENTS, PHONE, PUBLIC_URL, SITE, quiet
from tools import chapters
from tools.print_book import PDF
from tutorial_lib import Params, embed, running_example, trace

pytestmark = pytest.mark.usefixtures("site_dir")
CHAPTER = "notebooks/03_attention_weights.html"
KINDS = ("exercise", "prediction", "figure", "table", "quiz")
OURS = rf"({'|'.join(KINDS)})-(\d+)"
SELF = r'<a class="book-number[^"]*" href="#([\w-]+)"[^>]*>([^<]*)</a>'
STATE = r'href="([^"]*#[a-z]+=\d[^"]*)"'
# The ids of the figures of an output when all of them are drawn again.
DRAW_AGAIN = """async (figure) => {
  const output = figure.closest(".cell_output");
  const figures = [...output.querySelectorAll("figure")];
  output.innerHTML = figures.map(({ children }) => {
    const caption = children.length ? "<figcaption>One point more</figcaption>" : "";
    return `<figure>${caption}</figure>`;
  }).join("");
  await new Promise((resolve) => setTimeout(resolve));
  return [...output.querySelectorAll("figure")].map(({ id }) => id);
}"""
SEEN = """(aim) => {
  const { top, bottom, height } = aim.getBoundingClientRect();
  const header = document.querySelector(".bd-header-article").getBoundingClientRect();
  return aim.checkVisibility() && height > 0 && top >= header.bottom - 1 && top < innerHeight;
}"""
TINTED = """(aim) => [aim, ...aim.children].some((e) => {
  const { backgroundColor, boxShadow } = getComputedStyle(e);
  return backgroundColor != "rgba(0, 0, 0, 0)" && boxShadow != "none";
})"""
# What a finger presses beside the link itself: a point so far from its middle.
PRESSED = """(link, [x, y]) => {
  link.scrollIntoView({ block: "center" });
  const { left, top, width, height } = link.getBoundingClientRect();
  const found = document.elementFromPoint(left + width / 2 + x, top + height / 2 + y);
  return found == link;
}"""


def text_of(name):
    """The text of a built page."""
    return (SITE / name).read_text(encoding="utf-8")


def count(name, kind):
    """How many of a kind a notebook has, read from its cells."""
    cells = written(name).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    shown = [
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in cells
        for output in cell.get("outputs", [])
    ]
    counts = {
        "exercise": len(re.findall(rf"^\*\*{EXERCISE}", "\n".join(texts), re.M)),
        "prediction": sum("<tl-predict-" in html for html in shown),
        "figure": sum(html.count('class="ahh-figure"') for html in shown),
        "table": sum(len(re.findall(r"^\|[-:| ]+\|$", text, re.M)) for text in texts),
        "quiz": sum(html.count("<fieldset>") for html in shown if "<tl-quiz" in html),
    }
    return counts[kind]


def test_no_id_stands_twice_on_a_page(page_name):
    ids = re.findall(r'<[^>]*?\sid="([^"]*)"', text_of(page_name))
    assert sorted({i for i in ids if ids.count(i) > 1}) == []


@pytest.mark.parametrize("sort", KINDS)
def test_everything_of_a_sort_has_its_number_in_order(notebook, sort):
    text = text_of(f"notebooks/{notebook}.html")
    found = [int(n) for k, n in re.findall(rf'\sid="{OURS}"', text) if k == sort]
    assert found == list(range(1, count(notebook, sort) + 1))


def test_table_of_the_text_is_headed_by_its_number_alone(notebook):
    captions = re.findall(r"<caption>(.*?)</caption>", text_of(f"notebooks/{notebook}.html"))
    numbered = [caption for caption in captions if re.search(SELF, caption)]
    assert len(numbered) == count(notebook, "table")
    for caption in numbered:
        assert re.sub("<[^>]+>", "", caption) == re.search(SELF, caption)[2]


def test_every_number_is_shown_and_links_to_itself(notebook):
    text = text_of(f"notebooks/{notebook}.html")
    links = re.findall(SELF, text)
    assert [address for address, _ in links] == [
        f"{kind}-{n}" for kind, n in re.findall(rf'\sid="{OURS}"', text)
    ]
    number = chapters.page(notebook).number
    chapter = f"{number}." if number else ""
    for address, shown in links:
        kind, n = address.split("-")
        said = {"figure": f"Figure {chapter}{n}", "table": f"Table {chapter}{n}", "quiz": n}
        assert shown == said.get(kind, f"{kind.capitalize()} {n}")


@pytest.fixture(scope="module")
def reader(visit):
    """Chapter 03, in turn for each of the tests below."""
    with quiet(visit(CHAPTER)) as page:
        yield page


def test_link_of_a_heading_is_seen_and_followed_by_the_keyboard(reader):
    link = reader.locator("#goal > h2 > a.headerlink")
    reader.keyboard.press("Tab")  # from now on the focus is shown
    link.focus()
    reader.wait_for_function(
        "link => getComputedStyle(link).opacity == 1", arg=link.element_handle()
    )
    reader.keyboard.press("Enter")
    assert reader.url.endswith("#goal")


def test_link_of_a_heading_is_seen_on_a_phone_after_a_tap_on_the_heading(open_page):
    page = open_page(CHAPTER, **PHONE)
    heading, opacity = page.locator("#goal > h2"), "getComputedStyle(h.lastElementChild).opacity"
    assert heading.evaluate(f"(h) => {opacity}") == "0"
    # Read within the tap: behind it the headless shell moves a pointer of its own to the corner.
    heading.evaluate(f"(h) => h.addEventListener('click', () => {{ h.dataset.seen = {opacity} }})")
    heading.tap(position={"x": 10, "y": 30})
    expect(heading).to_have_attribute("data-seen", "1")


def test_without_scripts_a_number_is_a_link_and_its_target_is_tinted(open_page):
    page = open_page(CHAPTER, java_script_enabled=False)
    page.locator("a.book-number[href='#exercise-2']").click()
    assert page.url.endswith("#exercise-2")
    page.wait_for_selector("#exercise-2:target")


ADDRESSES = ["exercise-2", "prediction-2", "figure-2", "table-1", "quiz-5", "look"]


@pytest.fixture(scope="module", params=[False, *long(True)], ids=["light", "dark"])
def arriving(request, visit):
    """A chapter that is arrived at by its addresses, on a phone."""
    with quiet(
        visit(CHAPTER, width=390, dark=request.param, has_touch=True, is_mobile=True)
    ) as page:
        yield page


@pytest.mark.parametrize("address", ADDRESSES)
def test_target_of_an_address_is_seen_below_the_header_and_tinted(arriving, address):
    arriving.evaluate("(id) => { location.hash = id; }", address)
    aim = arriving.locator(f"[id='{address}']")
    arriving.wait_for_timeout(100)
    assert aim.evaluate(SEEN)
    assert aim.evaluate(TINTED)


@pytest.mark.long
def test_contrast_holds_on_the_tint(arriving):
    for address in ADDRESSES:
        arriving.evaluate("(id) => { location.hash = id; }", address)
        options = {"runOnly": ["color-contrast", "link-in-text-block", "target-size"]}
        found = Axe().run(arriving, context=f"[id='{address}']", options=options)
        assert [v["id"] for v in found.response["violations"]] == [], address


LINKS = ["#table-1", "#idea", *long("#exercise-2", "#prediction-1", "#figure-1", "#quiz-2")]


@pytest.mark.parametrize("link", LINKS)
def test_finger_finds_a_number_44_pixels_high_and_wide(arriving, link):
    number = arriving.locator(f"article a[href='{link}']:is(.book-number, .headerlink)")
    edges = number.evaluate(
        """(link) => {
          const { width, height } = link.getBoundingClientRect();
          const room = getComputedStyle(link, "::after");
          return [Math.max(width, parseFloat(room.width)), parseFloat(room.height)];
        }"""
    )
    assert min(edges) >= 44
    reached = [number.evaluate(PRESSED, [0, y]) for y in range(-40, 41, 2)]
    assert 2 * sum(reached) >= 42


def test_address_of_a_figure_in_a_closed_output_opens_it(open_page):
    place = "notebooks/08_gradients.html"
    inside = r'<details class="[^"]*below-input.*?<figure id="(figure-\d)"'
    folded = re.findall(inside, text_of(place), re.S)
    page = open_page(f"{place}#{folded[0]}")
    assert page.locator(f"#{folded[0]}").evaluate(SEEN)


def test_script_opens_folds_where_the_browser_does_not(reader):
    reader.evaluate(
        """() => {
          const hint = document.querySelector("details:not(.hide, .book-steps) p");
          hint.id = "hint";
          history.pushState(null, "", "#hint");  // leads nowhere by itself
          dispatchEvent(new HashChangeEvent("hashchange"));
        }"""
    )
    assert reader.locator("#hint").evaluate(SEEN)


def test_figure_that_is_drawn_again_keeps_its_number(reader):
    found = reader.locator("#figure-1").evaluate(
        """async (figure) => {
          const output = figure.closest(".cell_output");
          const before = output.textContent;
          const caption = "<figcaption>One point more</figcaption>";
          output.innerHTML = `<div><figure class="ahh-figure">${caption}</figure></div>`;
          await new Promise((resolve) => setTimeout(resolve));
          const again = document.getElementById("figure-1");
          return [output.contains(again), again.querySelector("figcaption").textContent];
        }"""
    )
    assert found == [True, "Figure 3.1 One point more"]


def test_figure_of_the_reader_without_a_caption_is_let_be(reader):
    plain = "(figure) => figure.before(document.createElement('figure'))"
    reader.locator("#figure-1").evaluate(plain)
    assert reader.locator("#figure-1").evaluate(DRAW_AGAIN) == ["", "figure-1"]


def test_malformed_address_leaves_the_script_at_work(open_page):
    page = open_page(f"{CHAPTER}#%")
    assert page.locator("#figure-1").evaluate(DRAW_AGAIN) == ["figure-1"], "the last of the script"


def test_on_paper_numbers_stand_and_nothing_is_tinted(reader):
    reader.evaluate("() => { location.hash = 'exercise-2'; }")
    reader.emulate_media(media="print")
    assert reader.locator("#figure-1 a.book-number").is_visible()
    assert not reader.locator("#exercise-2").evaluate(TINTED)
    assert not reader.locator(".book-setup").is_visible()
    reader.emulate_media(media="screen")


# Links to states.


def states():
    """Every link of the book to a state: (page that links, page that shows, fragment)."""
    found = []
    for document in DOCUMENTS:
        page = f"{document}.html"
        for link in re.findall(STATE, text_of(page)):
            url = urlsplit(urljoin(page, unescape(link)))
            found.append((page, url.path, url.fragment))
    return found


def numbers(fragment):
    """What a state sets, apart from which exhibit it is."""
    return dict(parse_qsl(fragment)[1:])


def test_five_chapters_and_more_lead_to_states():
    assert len({page for page, _, _ in states()}) >= 5


@pytest.mark.parametrize("start", [0, *long(1, 2, 3)])
def test_every_link_to_a_state_is_accepted_whole_and_differs_from_the_example(open_page, start):
    for place in sorted({place for _, place, _ in states()})[start::4]:
        browser = open_page(place)
        for page, fragment in [(page, to) for page, there, to in states() if there == place]:
            kind, which = parse_qsl(fragment)[0]
            browser.evaluate("(hash) => { location.hash = hash; }", fragment)
            exhibit = browser.locator(f"tl-{kind}").nth(int(which))
            own = exhibit.locator(f"a[href^='#{kind}=']")
            browser.wait_for_timeout(50)
            carried = numbers(own.get_attribute("href").removeprefix("#"))
            assert carried == numbers(fragment), f"{page}: {fragment}"
            assert carried, f"{page} leads to the example itself"
        assert browser.problems == []


EXAMPLE = running_example()
UNIT = 2 * np.log(2)  # in which the playground shows W_Q


def layer(fragment=""):
    """The trace of the playground's layer in a state, by the library."""
    params = EXAMPLE.params
    arrays = {"X": EXAMPLE.X[None], "W_Q": params.W_Q / UNIT, "W_K": params.W_K}
    arrays |= {"W_V": params.W_V, "W_O": params.W_O[None], "mask": EXAMPLE.mask[None] * 1.0}
    arrays = {name: array.copy() for name, array in arrays.items()} | {
        "scale": np.full((1, 1, 1), 2.0)
    }
    for key, value in numbers(fragment).items():
        name, *place = key.split(".")
        arrays[name][tuple(map(int, place))] = float(value)
    a = SimpleNamespace(**arrays)
    W_Q = a.W_Q * UNIT * 2 / a.scale.item()  # the library divides by 2
    return trace(a.X[0], Params(W_Q, a.W_K, a.W_V, a.W_O[0]), mask=a.mask[0] == 1)


def equal(a, b):
    """Whether two arrays are the same but for rounding."""
    return np.allclose(a, b, rtol=1e-12, atol=1e-12)


def doubles_bark(was, now):
    pairs = [(was.Q, now.Q), (was.K, now.K), (was.V, now.V)]
    return all(equal(b[:, 2], 2 * a[:, 2]) and equal(b[:, :2], a[:, :2]) for a, b in pairs)


def hides_nothing(was, now):
    powers = np.exp(was.scores)
    return equal(now.weights, powers / powers.sum(axis=-1, keepdims=True))


def hides_dogs(was, now):
    return equal(now.weights[:, 0], 0) and equal(now.weights[:, :, 0], 0)


def has_no_root(was, now):
    return equal(now.scores, was.Q @ np.swapaxes(was.K, -1, -2))


def leaves_head_1(was, now):
    arrays = [(was.Q, now.Q), (was.weights, now.weights), (was.heads, now.heads)]
    return all(equal(a[1], b[1]) and not equal(a[0], b[0]) for a, b in arrays)


def drops_column_0(was, now):
    return equal(now.Y, was.concat[:, 1:] @ was.params.W_O[1:])


def moves_no_row_before(was, now):
    moved = ~np.isclose(was.Y, now.Y).all(axis=-1)
    return moved.tolist() == [False, True, True]


def has_cats_for_dogs(was, now):
    ids = EXAMPLE.vocabulary.ids(("cats", *EXAMPLE.tokens[1:]))
    return equal(now.X, embed(ids, EXAMPLE.E, EXAMPLE.P))


CLAIMS = {  # in the order of their links
    "book/one_evening": [has_cats_for_dogs],
    "notebooks/05_concatenation": [drops_column_0],
    "notebooks/06_output_projection": [
        moves_no_row_before,
        doubles_bark,
        hides_nothing,
        hides_dogs,
        has_no_root,
        leaves_head_1,
    ],
}


def test_every_page_that_leads_to_a_state_of_the_playground_has_its_claims():
    linking = {page for page, _, fragment in states() if fragment.startswith("playground=")}
    assert linking == {f"{name}.html" for name in CLAIMS}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_state_of_the_playground_shows_what_its_sentence_says(name):
    links = [f for page, _, f in states() if page == f"{name}.html"]
    links = [fragment for fragment in links if fragment.startswith("playground=")]
    for claim, fragment in zip(CLAIMS[name], links, strict=True):
        assert claim(layer(), layer(fragment)), claim.__name__
        assert not claim(layer(), layer()), f"{claim.__name__} holds of the example too"


# What else has an address.


def test_sitemap_lists_every_page_of_the_book_by_its_public_address():
    space = {"": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    root = ElementTree.parse(SITE / "sitemap.xml").getroot()
    found = [place.text for place in root.findall("url/loc", space)]
    assert sorted(found) == sorted(f"{PUBLIC_URL}{document}.html" for document in DOCUMENTS)


def test_every_page_of_the_book_leads_to_its_pdf_at_the_public_address():
    assert PDF == SITE / BOOK, "where `make pdf` puts it, to be published with the site"
    for document in DOCUMENTS:
        assert f'href="{PUBLIC_URL}{BOOK}"' in text_of(f"{document}.html"), document
