"""The search: the right section among the first, alike in the dialogue, on its page and from disk.

`queries.yml` says which sections answer a query. One page of each kind is asked them all.
"""

import gzip
import json
import re
from collections import Counter
from functools import cache
from urllib.parse import unquote

import pytest
import yaml
from bs4 import BeautifulSoup, SoupStrainer

from book._ext.content import search
from book._ext.content.search import READERS, SENTENCES
from tests.sampling import every, long
from tests.site.browsing import PARAMETERS, ROOT, quiet
from tests.site.test_deeper import IN_VIEW

GROUPS = yaml.safe_load((ROOT / "tests" / "site" / "queries.yml").read_text(encoding="utf-8"))
QUERIES = [query for group in GROUPS.values() for query in group]
SCRIPT = "_static/search.js"
MOST_KB = 86
CHAPTER = "notebooks/03_attention_weights.html"
SECTION = "round-2-softmax-positive-numbers-that-sum-to-1"
AT_REST = (
    "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true), 50)))"
)
# Answers, hints, solutions, outputs that wait for a prediction.
FOLDED = "article details:not(.book-deeper)"
# What is found for each query, typed into a field and read from its list: for each hit its address
# and, where they are waited for, its excerpt.
ASK = """async ([field, list, queries, excerpts]) => {
  const input = document.querySelector(field);
  const found = [];
  for (const query of queries) {
    input.value = query;
    input.dispatchEvent(new Event("input", {bubbles: true}));
    const hits = [...document.querySelectorAll(`${list} a.search-hit`)];
    const shown = () => hits.map((hit) => hit.querySelector(".search-excerpt")?.textContent ?? "");
    for (let i = 0; excerpts && i < 60 && shown().includes(""); i++) {
      await new Promise((done) => setTimeout(done, 10 * i));
    }
    const place = (href) => href.replace(/#?:~:.*|#$/, "").split("/").slice(-2).join("/");
    found.push(hits.map(({href}, i) => [place(href), shown()[i]]));
  }
  return found;
}"""
DIALOGUE = ("#pst-search-dialog input", "#search-hits")
OWN_PAGE = ("main .bd-search input", "#search-results")
HREFS = "(all) => all.map((link) => link.href)"
REQUESTS = """() => performance.getEntriesByType("resource")
  .filter(({name}) => name.includes("search.js")).length"""


def ask(page, place, *queries):
    """Return what is found for each query: places such as book/glossary.html#term-mask."""
    found = page.evaluate(ASK, [*place, list(queries), False])
    return [[hit for hit, _ in hits] for hits in found]


@cache
def text_of(path):
    """The text of a built page, as a reader sees it."""
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    return " ".join(soup.select_one("article").get_text().split())


def opened(page):
    """Open the dialogue of a page and wait for the search behind it."""
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog .search-said").wait_for()
    return page


@pytest.fixture(scope="module")
def searching(visit):
    """The page that searches."""
    with quiet(visit("search.html")) as page:
        page.locator("main .search-said").wait_for()
        yield page


@pytest.fixture(scope="module")
def answers(searching):
    """What the page finds for each of the QUERIES: places and excerpts."""
    queries = [query["query"] for query in QUERIES]
    found = searching.evaluate(ASK, [*OWN_PAGE, queries, True])
    return dict(zip(queries, found, strict=True))


@pytest.fixture(scope="module")
def dialogue(visit):
    """The dialogue over a chapter, opened from disk."""
    with quiet(opened(visit(CHAPTER, from_disk=True))) as page:
        yield page


@pytest.mark.parametrize("group", GROUPS)
def test_right_section_is_among_the_first_three_and_first_for_a_standard_term(answers, group):
    queries, standard = GROUPS[group], group == "in_standard_terms"
    most = 1 if standard else 3
    firsts = {q["query"]: [hit for hit, _ in answers[q["query"]][:most]] for q in queries}
    missed = {
        query["query"]: firsts[query["query"]]
        for query in queries
        if not set(firsts[query["query"]]) & set(query["right"])
    }
    assert len(queries) >= 20
    assert len(missed) <= (0 if standard else len(queries) // 20), json.dumps(missed, indent=1)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("65,504", "11_gpu.html#round-3-precision-which-digits-to-believe"),
        ("65504", "11_gpu.html#round-3-precision-which-digits-to-believe"),
        ("equivaraint", "glossary.html#term-equivariant"),
        ("softmaax gradeint", "08_gradients.html#round-1-backward-through-the-softmax"),
        ("Megatron-LM", "13_tensor_parallelism.html#idea"),  # said by a paper that it cites
        (
            "cross-attention",
            "06_output_projection.html#round-2-self-attention-and-cross-attention-the-whole-layer",
        ),  # in bold
        (
            "layer's weights don't sum to 1",
            "09_pytorch.html#myth-and-measurement",
        ),  # a myth's claim
        ("torch.nn.functional.scaled_dot_product_attention", "#round-4-weighted-sum-of-the-values"),
        ("does it work offline", "running.html#without-a-network"),
    ],
)
def test_section_that_says_it_otherwise_is_among_the_first_three(searching, query, place):
    [hits] = ask(searching, OWN_PAGE, query)
    assert any(hit.endswith(place) for hit in hits[:3]), hits[:5]


@pytest.mark.long
def test_every_word_that_readers_say_for_another_finds_something(searching):
    words = [word for line in READERS["synonyms"] for word in line]
    found = dict(zip(words, ask(searching, OWN_PAGE, *words), strict=True))
    assert [word for word, hits in found.items() if not hits] == []


def test_hit_says_in_which_section_of_which_chapter_it_stands_and_marks_the_words(searching):
    for query, crumbs in (("a score for every pair", "Build"), ("log-softmax", "Exercises")):
        searching.fill(OWN_PAGE[0], query)
        hits = searching.locator("a.search-hit")
        assert f"Chapter 3 · Scores, softmax, one head · {crumbs}" in hits.first.inner_text()
        for hit in hits.all():
            hit.locator("mark").first.wait_for()


def test_words_that_stand_together_as_asked_come_before_scattered_ones(searching):
    found = ask(searching, OWN_PAGE, "entropy of the text", "rank of a matrix")
    firsts = [hits[0].partition("#")[2] for hits in found]
    assert firsts == ["term-entropy-of-the-text", "term-rank-of-a-matrix"]


def test_every_hit_and_every_answer_of_a_query_is_an_id_that_its_page_has(answers, site_dir):
    places = {hit for hits in answers.values() for hit, _ in hits}
    assert len(places) > 200
    pages = {}
    for place in places | {right for query in QUERIES for right in query["right"]}:
        name, _, section = place.partition("#")
        path = site_dir / (name if "/" in name else f"book/{name}")
        if path not in pages:
            pages[path] = set(re.findall(r' id="([^"]+)"', path.read_text(encoding="utf-8")))
        assert not section or section in pages[path], place


def test_dialogue_from_disk_and_the_page_find_the_same(answers, dialogue):
    for query, first in zip(answers, ask(dialogue, DIALOGUE, *answers), strict=True):
        assert first, query
        readers = [hit for hit in first if "/teaching" not in hit]
        assert readers == [hit for hit, _ in answers[query][: len(readers)]], query


@pytest.mark.parametrize(
    ("spellings", "place"),
    [
        (("W_O", "w_o", "W^O", "WO"), "06_output_projection.html#idea"),
        (("√d_k", "sqrt(d_k)", "sqrt d_k"), "03_attention_weights.html"),
        (("project_heads", "project heads"), "02_queries_keys_values.html"),
        (("QKᵀ", "QK^T", "Q K.T", "QK.T"), "03_attention_weights.html"),
        (("½", "1/2", "1 ÷ 2"), ""),
        (("masks", "masked", "MASK"), "10_masks.html"),
    ],
)
def test_spellings_of_one_thing_find_it(searching, spellings, place):
    found = ask(searching, OWN_PAGE, *spellings)
    for spelling, hits in zip(spellings, found, strict=True):
        assert any(place in hit for hit in hits[:5]), (spelling, hits[:5])


def test_instructors_pages_come_last_under_their_name(searching):
    for hits in ask(searching, OWN_PAGE, "mask", "exercise", "lesson plan", "softmax"):
        last = ["/teaching" in hit or hit.startswith("book/teaching") for hit in hits]
        assert last == sorted(last)
        assert any(last)
    assert searching.locator(".search-last").count() == 1
    said = "e => getComputedStyle(e, '::before').content"
    assert "For instructors" in searching.locator(".search-last").evaluate(said)


def test_every_hit_has_an_excerpt_and_hardly_one_is_a_question(answers):
    excerpts = [excerpt for hits in answers.values() for _, excerpt in hits]
    assert all(excerpts)
    assert sum(excerpt.endswith("?") for excerpt in excerpts) < len(excerpts) / 100


def test_a_hit_stands_without_the_sentences_of_its_page(open_fresh):
    page = open_fresh(None)
    page.route("**/sentences/*", lambda route: route.abort())
    page.goto("search.html?q=causal mask pytorch")
    hits = page.locator("a.search-hit")
    hits.first.wait_for()
    page.wait_for_function(AT_REST)
    assert hits.count() > 5
    assert page.locator(".search-excerpt").count() == 0
    assert hits.locator("mark").count() >= 5
    page.problems.clear()


@pytest.mark.parametrize("from_disk", [False, *long(True)])
def test_hit_opens_at_the_sentence_that_it_quotes(open_page, from_disk):
    page = open_page("search.html?q=softmax overflow", from_disk=from_disk)
    link = page.locator(f"a.search-hit[href*='#{SECTION}']")
    excerpt = link.locator(".search-excerpt").inner_text().strip("… ")[:30]
    link.click()
    page.wait_for_url(f"**/03_attention_weights.html#{SECTION}**")
    sentence = page.locator(f"#{SECTION} p").filter(has_text=excerpt)
    page.wait_for_function(IN_VIEW, arg=sentence.element_handle())


def test_most_excerpts_have_words_that_a_browser_can_find(searching, site_dir, answers):
    queries = [*answers][::24]
    lost = []
    for query in queries:
        ask(searching, OWN_PAGE, query)
        searching.wait_for_function(
            "() => [...document.querySelectorAll('a.search-hit')].every((hit) => "
            "hit.querySelector('.search-excerpt'))"
        )
        for address in searching.locator("a.search-hit").evaluate_all(HREFS):
            page, _, words = address.partition(":~:text=")
            path = site_dir / page.partition("#")[0].rpartition("/attention-head-by-head/")[2]
            lost += [] if unquote(words) in text_of(path) and words else [address]
    assert len(lost) < len(queries), lost


@pytest.mark.long
def test_hit_on_the_open_page_leaves_what_was_done_there(open_page):
    page = open_page(CHAPTER)
    page.locator(".tl-quiz input").first.check()
    opened(page).keyboard.type("positive numbers that sum to 1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**#{SECTION}**")
    assert page.locator("#pst-search-dialog").is_hidden()
    assert page.locator(".tl-quiz input").first.is_checked()


def test_dialogue_is_steered_by_keys_and_says_what_is_chosen(open_page):
    page = opened(open_page("book/intro.html"))
    field = page.get_by_role("combobox", name="Search this book")
    page.keyboard.type("mask")
    options = page.get_by_role("option")
    assert field.get_attribute("aria-expanded") == "true"
    assert field.get_attribute("aria-activedescendant") is None
    for key, chosen in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", None)]:
        page.keyboard.press(key)
        selected = [option.get_attribute("aria-selected") for option in options.all()]
        assert selected.count("true") == (chosen is not None)
        if chosen is not None:
            assert selected[chosen] == "true"
            named = field.get_attribute("aria-activedescendant")
            assert named == options.nth(chosen).get_attribute("id")
    assert re.search(r"\d+ places found", page.locator("dialog [role=status]").inner_text())
    address = options.nth(0).get_attribute("href").partition(":~:")[0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}**")
    page.go_back()
    opened(page).keyboard.type("mask")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=mask")
    page.locator("#search-results a").first.wait_for()


@pytest.mark.long
def test_dialogue_works_by_touch_on_a_phone(open_page):
    page = open_page(CHAPTER, width=320, has_touch=True, is_mobile=True)
    page.locator(".search-button").tap()
    page.locator("#pst-search-dialog input").fill("softmaxx")
    page.get_by_role("button", name="softmax").tap()
    page.get_by_role("option").first.tap()
    page.locator("#pst-search-dialog").wait_for(state="hidden")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "Type a word"),
        ("   ", "Type a word"),
        ("?!…", "There is no word"),
        ("what is the", "These words stand on every page"),
        ("zzyzx qqfoo", "Nothing is found for “zzyzx qqfoo”"),
        ("q" * 10_000, "Nothing is found for “qqqq"),
        ("<img src=x onerror=alert(1)>", "Nothing is found|places found"),
        ("attention " * 1_000, "places found"),
        ("__proto__ constructor toString", "Nothing is found|places? found"),
    ],
)
def test_any_query_is_answered_in_plain_words(searching, query, said):
    ask(searching, OWN_PAGE, query)
    words = searching.locator("main .search-said").inner_text()
    assert re.search(said, words)
    assert len(words) < 200
    assert searching.locator("main img").count() == 0
    assert searching.evaluate("() => document.documentElement.scrollWidth") <= 1280


def test_word_with_a_slip_is_offered_in_its_right_spelling(searching):
    for slip, right in [("sofmax", "softmax"), ("atention", "attention"), ("gradeint", "gradient")]:
        ask(searching, OWN_PAGE, slip)
        button = searching.locator(".search-tips button").first
        assert button.inner_text().lower().startswith(right)
        button.click()
        assert searching.locator("a.search-hit").count() >= 3
        assert right in searching.url


def test_nothing_found_leads_to_glossary_and_index(searching):
    ask(searching, OWN_PAGE, "zzyzx")
    names = searching.locator(".search-tips a").all_inner_texts()
    assert names == ["The glossary", "The index"]


def test_address_of_a_search_can_be_shared(searching, site_url):
    ask(searching, OWN_PAGE, "4/7 √")
    assert searching.url.endswith("search.html?q=4%2F7+%E2%88%9A")
    hits = searching.locator("a.search-hit").all_inner_texts()
    searching.reload()
    searching.locator("a.search-hit").first.wait_for()
    assert searching.locator(OWN_PAGE[0]).input_value() == "4/7 √"
    assert searching.locator("a.search-hit").all_inner_texts() == hits


@pytest.mark.parametrize("name", every(4, PARAMETERS["chapter"]))
def test_answers_are_not_among_the_sentences(site_dir, name):
    page = (site_dir / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser", parse_only=SoupStrainer("article"))
    for reading in soup.select(".book-reading"):
        reading.parent.insert_after(reading.extract())  # text, which may be looked for
    hidden = [folded.extract().get_text() for folded in soup.select(FOLDED)]
    lines = {" ".join(s.split()) for text in hidden for s in re.split(r"(?<=[.?!]) |\n", text)}
    shown = "".join(soup.select_one("article").get_text().split())
    answers = {line for line in lines if len(line) > 30 and line.replace(" ", "") not in shown}
    script = site_dir / "_static" / SENTENCES / f"{name}.js"
    source = script.read_text(encoding="utf-8").rstrip()
    _, texts = json.loads(source.removeprefix("readSentences(...").removesuffix(");"))
    sentences = "\n".join(text for entry in texts for text in entry)
    assert len(answers) > 10
    assert len(sentences) > 3000
    assert [answer for answer in answers if answer in sentences] == []


def test_index_and_script_are_light_and_come_on_use_alone(site_dir, open_fresh):
    weight = len(gzip.compress((site_dir / SCRIPT).read_bytes()))
    assert weight <= MOST_KB * 1000
    page = open_fresh(CHAPTER)
    assert page.evaluate(REQUESTS) == 0
    opened(page)
    assert page.evaluate(REQUESTS) == 1
    page.keyboard.press("Escape")
    opened(page)
    assert page.evaluate(REQUESTS) == 1


def test_words_that_tell_least_go_first(monkeypatch):
    entries = [{"texts": [text]} for text in ("a head of gold", "a head", "a head of tin")]
    gold, tin = Counter(gold=1, head=1, arr=1), Counter(head=1, tin=4)  # arr is a name in code
    for most, words in (
        (1, "tin"),
        (2, "tin gold"),
        (5, "tin gold head"),
        (6, "tin gold head arr"),
    ):
        monkeypatch.setattr(search, "MOST_WORDS", most)
        thinned = search.keep_telling_words(entries, [gold, Counter(head=1), tin])
        assert {word for found in thinned for word in found} == set(words.split())
        assert thinned[2]["tin"] == 4


def test_nothing_is_left_of_the_search_of_sphinx(site_dir):
    names = ("searchindex", "searchtools", "language_data", "sphinx_highlight")
    assert [p.name for p in site_dir.rglob("*.js") if p.stem in names] == []
    for path in site_dir.glob("*/*.html"):
        assert not re.search("|".join(names), path.read_text(encoding="utf-8")), path


def test_without_a_script_the_page_leads_to_glossary_and_index(open_page):
    page = open_page("search.html", java_script_enabled=False)
    said = page.locator("main noscript")
    assert "needs JavaScript" in said.inner_text()
    links = said.get_by_role("link").evaluate_all("all => all.map((e) => e.pathname)")
    assert [link.rpartition("/")[2] for link in links] == ["glossary.html", "genindex.html"]
