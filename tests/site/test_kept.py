"""What a reader does is kept by page, comes back, is counted in the contents, and is forgotten."""

import gzip
import json
import re

import pytest

from tests.practice.rooms import ROOMS
from tests.sampling import long
from tests.site.browsing import START_EXHIBITS, STORES, quiet
from tools.chapters import section_of
from tutorial_lib import records
from tutorial_lib.elements.choice import read_again

FIRST, NEXT = "notebooks/03_attention_weights.html", "notebooks/04_multi_head_attention.html"
RIGHT = """() => {
  for (const box of document.querySelectorAll("tl-quiz fieldset, tl-predict-choice fieldset")) {
    const reasons = [...box.querySelectorAll("dd")];
    const right = reasons.findIndex((reason) => reason.querySelector(".tl-right"));
    box.querySelectorAll("input")[right].click();
    box.querySelector("button").click();
  }
  for (const box of document.querySelectorAll("tl-predict-number")) {
    box.querySelector("input").value = box.querySelector("dt").textContent;
    box.querySelector("button").click();
  }
  for (const box of document.querySelectorAll("tl-parsons")) {
    for (const line of box.querySelector("details pre").textContent.split("\\n")) {
      const codes = [...box.querySelectorAll("ul code")];
      codes.find((code) => code.textContent == line).click();
    }
    box.querySelector(".tl-row button").click();
  }
}"""
# What a reader sees of the work: the text of elements, what is picked, typed and open.
SEEN = """() => ({
  texts: [...document.querySelectorAll(".tl :not(.tl-news)")].filter((e) => !e.children.length)
    .map((e) => e.textContent),
  picked: [...document.querySelectorAll(".tl input")]
    .map((e) => e.type == "radio" ? e.checked : e.value),
  open: [...document.querySelectorAll("article details")].map((e) => e.open),
})"""
RECORD = """() => {
  const key = Object.keys(localStorage).find((name) => name.startsWith("kept:"));
  const record = JSON.parse(localStorage[key]);
  ((r) => {})(record);
  localStorage[key] = JSON.stringify(record);
  return record;
}"""
BACK_FROM_CACHE = "() => dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"


def commit(page, number, pick):
    """Commit to an option of a prediction."""
    box = page.locator(".tl-predict").nth(number - 1)
    box.get_by_role("radio").nth(pick).check()
    box.get_by_role("button", name="Commit").click()


def answer(page, *picks):
    """Answer the questions of the quiz, in order."""
    for box, pick in zip(page.locator("tl-quiz fieldset").all(), picks, strict=False):
        box.get_by_role("radio").nth(pick).check()
        box.get_by_role("button").click()


def work(page):
    """Do something of each kind."""
    commit(page, 1, 1)
    page.locator(".tl-predict").nth(1).get_by_role("radio").nth(2).check()  # without committing
    page.locator(".tl-predict").nth(2).get_by_role("textbox").fill("4/5")
    page.locator(".tl-predict").nth(2).get_by_role("button", name="Commit").click()
    answer(page, 0, 0, 2, 1)
    answer(page, 2)
    page.locator("tl-parsons ul .tl-add").nth(2).click()
    page.locator("tl-parsons ul .tl-add").nth(4).click()
    page.locator("tl-parsons").get_by_role("button", name="Check").click()


def words(page, path):
    """What the contents say of a page: to the eye, and to a screen reader."""
    link = page.locator(f".bd-links a[href$='{path.rpartition('/')[2]}']")
    mark = link.locator(".book-done")
    if not mark.count():
        return None
    spoken = link.locator(".visually-hidden").text_content()
    assert spoken == f" ({mark.get_attribute('title')})"
    return mark.text_content(), mark.get_attribute("title")


@pytest.fixture
def kept(open_fresh):
    """The page after some work: the page, what is seen of it, and the browser's state."""
    page = open_fresh(FIRST)
    work(page)
    return page, page.evaluate(SEEN), page.context.storage_state()


def test_what_was_done_yesterday_is_there_today_until_it_is_forgotten(kept, open_fresh):
    _, before, stored = kept
    page = open_fresh(FIRST, storage_state=stored)
    assert page.evaluate(SEEN) == before
    assert sum(before["open"]) == 2  # what predictions have opened
    assert page.locator("tl-quiz > p").inner_text() == "4 of 5 answered."
    assert page.evaluate("() => document.activeElement == document.body")
    said = ("6/9", "2 of 3 predictions, quiz 4 of 5, lines not yet in order")
    assert words(page, "#") == said
    page.locator("a.right-next").click()
    page.wait_for_url(f"**/{NEXT}")
    page.wait_for_load_state("load")
    assert words(page, FIRST) == said
    page.go_back()
    page.wait_for_load_state("load")
    assert page.evaluate(SEEN) == before
    page.locator(".tl [aria-live=off]").first.wait_for(state="detached", timeout=10_000)
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.get_by_role("button", name="Forget what I did on this page").click()
    assert words(page, "#") is None


@pytest.mark.long
def test_nothing_is_spoken_while_work_is_put_back(kept):
    page, *_ = kept
    page.add_init_script(
        """addEventListener("DOMContentLoaded", () => {
          window.spoken = [];
          const regions = (all) => all.map(({target}) => target.closest?.("[aria-live]"));
          new MutationObserver((all) => {
            spoken.push(...regions(all).filter((region) => region?.ariaLive == "polite"));
          }).observe(document.querySelector("article"), {childList: true, subtree: true});
        })"""
    )
    page.clock.install()
    page.reload()
    assert page.locator(".tl [aria-live]", has_text="Not this one").count() > 0
    assert page.evaluate("() => spoken.map((e) => e.outerHTML)") == []
    page.clock.run_for(700)
    page.evaluate("() => document.body.dispatchEvent(new Event('tl-shown', {bubbles: true}))")
    page.clock.run_for(700)
    assert page.locator(".tl-predict [aria-live=off]").count() > 0
    page.clock.run_for(700)
    assert page.locator(".tl [aria-live=off]").count() == 0
    page.problems.clear()  # the event that is made here has no detail


ADDRESS = "#map=0&X.0.0.0=5"


@pytest.mark.long
def test_what_a_reader_made_of_the_live_map_is_kept(open_fresh, site_url):
    page = open_fresh(f"{FIRST}{ADDRESS}")  # the map has changed, and opened its fold, by now
    live = page.locator("tl-map")
    page.wait_for_timeout(100)
    page.goto(f"{site_url}{NEXT}")
    page.goto(f"{site_url}{FIRST}")
    first = live.get_by_role("gridcell", name="X, dogs, 0")
    page.locator(".book-steps > summary").click()
    assert "X, dogs, 0: 5" not in first.get_attribute("aria-label")  # an address is no work
    first.click()
    live.get_by_role("button", name="+ 1").click()
    before, label = live.locator("table").all_inner_texts(), first.get_attribute("aria-label")
    page.reload()
    page.locator(".book-steps > summary").click()
    live.get_by_role("gridcell", name=label).wait_for()
    assert live.locator("table").all_inner_texts() == before
    assert words(page, "#") is None
    assert page.evaluate(RECORD)["last"] == live.get_attribute("id")
    page.goto(f"{site_url}{NEXT}")
    page.goto(f"{site_url}{FIRST}{ADDRESS}")
    assert first.is_visible()
    assert "X, dogs, 0: 5" in first.get_attribute("aria-label")


def test_saving_reads_no_other_page(open_fresh):
    page = open_fresh(FIRST)
    page.evaluate(
        """() => {
          window.read = [];
          const get = Storage.prototype.getItem;
          Storage.prototype.getItem = function (key) {
            read.push(key);
            return get.call(this, key);
          };
        }"""
    )
    answer(page, 2)
    assert {key.rpartition("/notebooks/")[2] for key in page.evaluate("() => read")} == {
        FIRST.rpartition("/")[2]
    }
    assert words(page, "#")[0] == "1/9"


SPOILT = {
    "no JSON": "{",
    "nothing": "",
    "null": "null",
    "a number": "7",
    "a text": '"kept"',
    "a list": "[1,2]",
    "an empty record": "{}",
    "another version": '{"version": 2, "parts": 3}',
    "lists all through": '{"version": 1, "at": [], "read": [], "work": [], "parts": [1]}',
    "texts all through": '{"version": 1, "at": "", "read": "", "work": "", "parts": "x"}',
    "null all through": '{"version": 1, "at": null, "work": null, "parts": null, "last": null}',
    "numbers out of range": '{"version": 1, "at": 1e400, "work": {"quiz": [-1, 1e99]}}',
    "work of other forms": '{"version": 1, "work": {"predict": {"0": 1}, "quiz": "5/5"}}',
    "more done than there is": '{"version": 1, "at": 1, "work": {"quiz": [9, 5]}, "parts": {}}',
    "a prototype": '{"version": 1, "parts": {"__proto__": {"state": 1}, "constructor": 2}}',
}
# Written over every part of a record of real work, at each depth.
DEEP = ["null", "[]", "{}", "7", '"x"', "true", "[[[]]]", '{"state": {"picked": 1, "text": {}}}']
SPOIL = {
    **{f"each part is {value}": f"for (const k in r.parts) r.parts[k] = {value}" for value in DEEP},
    **{
        f"all in a state is {value}": "for (const {state} of Object.values(r.parts)) "
        f"for (const k in Object(state)) state[k] = {value}"
        for value in DEEP
    },
}


SAMPLED = ["lists all through", "each part is null"]


@pytest.fixture(scope="module")
def worked(visit):
    """A page with some work, in turn for each of the tests below: the page, its key, its record."""
    with quiet(visit(FIRST)) as page:
        work(page)
        page.record = page.evaluate(RECORD)
        key = "() => Object.keys(localStorage).find((name) => name.startsWith('kept:'))"
        page.key = page.evaluate(key)
        yield page


@pytest.mark.parametrize(
    "name", [*SAMPLED, *long(*(n for n in {**SPOILT, **SPOIL} if n not in SAMPLED))]
)
def test_page_works_whatever_its_record_holds(worked, name):
    page = worked
    text = SPOILT.get(name, json.dumps(page.record))
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [page.key, text])
    if name in SPOIL:
        page.evaluate(RECORD.replace("(r) => {}", f"(r) => {{ {SPOIL[name]} }}"))
    page.reload()
    answer(page, 2)
    assert "✓ Right." in page.locator("tl-quiz fieldset").first.inner_text()
    assert words(page, "#")[1].startswith(("0 of", "1 of", "2 of", "3 of"))
    page.evaluate(BACK_FROM_CACHE)


@pytest.mark.parametrize("store", ["refused", *long("full")])
def test_page_that_cannot_store_works_says_so_and_can_be_begun_anew(open_fresh, site_url, store):
    page = open_fresh("book/intro.html")
    page.goto(site_url + FIRST)
    answer(page, 2)
    page.add_init_script(STORES[store])
    page.reload()
    before = 0 if store == "refused" else 1  # what was kept before is read
    assert page.locator("tl-quiz .tl-right:visible").count() == before
    answer(page, 2, 0)
    assert "lasts until you leave the page" in page.locator(".book-kept").inner_text()
    page.get_by_role("checkbox", name="I have read this page").check()
    assert words(page, "#")[0] == "2/9"
    assert words(page, "#")[1].endswith(", read")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget what I did on this page").click()
    page.wait_for_function("() => !document.querySelector('.book-done')")
    assert page.locator("tl-quiz .tl-right:visible").count() == 0


@pytest.mark.long
def test_store_that_fills_up_later_loses_nothing_once_it_has_room_again(open_fresh):
    page = open_fresh(FIRST)
    page.evaluate(f"() => {{ {STORES['full']} }}")
    answer(page, 2)
    assert "lasts until you leave the page" in page.locator(".book-kept").inner_text()
    page.evaluate("() => localStorage.clear()")
    commit(page, 1, 2)
    page.reload()
    assert words(page, "#")[1].startswith("1 of 3 predictions, quiz 1 of 5")
    page.problems.clear()  # the theme cannot store where the page is scrolled to


@pytest.mark.long
def test_two_tabs_write_side_by_side_and_see_each_other(open_fresh, site_url):
    one = open_fresh(FIRST)
    other = one.context.new_page()
    other.goto(site_url + FIRST)
    commit(one, 1, 2)
    answer(other, 2)
    commit(one, 2, 0)
    other.locator(".tl-predict").nth(1).locator(".tl-right, .tl-wrong").first.wait_for()
    for tab in (one, other):
        tab.wait_for_function("() => document.querySelector('.book-done')?.textContent == '3/9'")
    other.evaluate(START_EXHIBITS)
    assert one.evaluate(SEEN) == other.evaluate(SEEN)
    commit(other, 2, 1)
    answer(one, 2, 0)
    one.reload()
    assert words(one, "#")[0] == "4/9"
    second = one.locator(".tl-predict").nth(1)
    assert second.get_by_role("radio").nth(1).is_checked()  # the last to write this element


def serve_edited(page, *edits):
    """Serve the page of the chapter as another edition of it."""

    def answer_edited(route):
        text = route.fetch().text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        route.fulfill(body=text, headers={"Content-Type": "text/html"})

    page.route(f"**/{FIRST}", answer_edited)


@pytest.mark.long
def test_changed_chapter_keeps_the_answers_to_what_it_still_asks_and_opens_no_other_output(kept):
    page, *_ = kept
    serve_edited(
        page,
        ('prediction">Prediction 1<', 'prediction">Prediction 4<'),  # one more before it
        ("You add 5 to every score", "You add 6 to every score"),  # another question
        ("Which weight does <em>dogs</em> get?", "Which weight does <em>bark</em> get?"),
        ('<span class="line in-0">products ', '<span class="line in-0">other '),  # in cells
        ('<span class="line in-0">visible ', '<span class="line in-0">other '),  # of opened outputs
        ("<span>T, the queries, so that each key is used up once</span>", "<span>new</span>"),
        ("head = weights @ V", "head = weights @ V[0]"),
    )
    page.reload()
    asked = page.locator("tl-quiz fieldset")
    said = [box.locator(".tl-right:visible, .tl-wrong:visible").count() for box in asked.all()]
    assert said == [1, 0, 1, 1, 0]
    assert asked.nth(1).get_by_role("radio", checked=True).count() == 0
    number = page.locator("tl-predict-number")
    assert number.get_by_role("textbox").input_value() == ""
    assert page.locator(".tl-predict").first.locator(".tl-wrong:visible").count() == 1
    assert not any(page.evaluate(SEEN)["open"])
    assert words(page, "#") == ("4/9", "1 of 3 predictions, quiz 3 of 5, lines not yet in order")
    texts = page.locator("tl-parsons li > code").all_inner_texts()
    assert "head = weights @ V[0]" in texts
    assert len(texts) == 8


@pytest.mark.long
def test_page_is_done_when_all_its_questions_are(open_fresh):
    page = open_fresh(FIRST)
    page.evaluate(RIGHT)
    said = "3 of 3 predictions, quiz 5 of 5, lines in order"
    assert words(page, "#") == ("✓", said)
    page.get_by_role("checkbox", name="I have read this page").check()
    assert words(page, "#") == ("✓", f"{said}, read")
    page.locator("tl-parsons ol .tl-out").first.click()
    page.reload()
    assert words(page, "#") == ("✓", f"{said}, read")  # what was solved stays so


def start(page, site_url):
    """What the first page offers: its words, and where they lead."""
    page.goto(f"{site_url}book/intro.html")
    link = page.locator("a.book-start[href*='notebooks/']")
    return link.inner_text(), link.evaluate("e => e.href").removeprefix(site_url)


@pytest.mark.long
def test_first_page_leads_on_from_the_last_work(page, site_url):
    assert start(page, site_url) == ("Chapter 1", "notebooks/01_embeddings.html")
    page.goto(site_url + FIRST)
    answer(page, 1)
    expected = ("Continue with 3", f"{FIRST}#tl-03_attention_weights-quiz")
    assert start(page, site_url) == expected
    assert "Scores, softmax, one head" in page.locator("a.book-start").first.get_attribute("title")
    page.goto(site_url + FIRST)
    page.evaluate(RIGHT)
    assert start(page, site_url) == ("Continue with 4", NEXT)


@pytest.mark.long
def test_first_page_keeps_its_work_and_never_leads_to_itself(page, site_url):
    first = ("Chapter 1", "notebooks/01_embeddings.html")
    page.get_by_role("gridcell", name="X, dogs, 0").first.click()
    page.get_by_role("button", name="+ 1").click()
    before = page.locator("tl-map table").all_inner_texts()
    assert start(page, site_url) == first
    assert page.locator("tl-map table").all_inner_texts() == before
    assert words(page, "#") is None
    commit(page, 1, 1)
    assert words(page, "#") == ("✓", "1 of 1 prediction")
    assert start(page, site_url) == first
    assert page.locator(".tl-predict .tl-right:visible").count() == 1
    page.goto(site_url + FIRST)
    answer(page, 1)
    page.goto(f"{site_url}book/intro.html")
    page.get_by_role("button", name="+ 1").click()
    page.get_by_role("checkbox", name="I have read this page").check()
    assert words(page, "#") == ("✓", "1 of 1 prediction, read")
    assert start(page, site_url)[0] == "Continue with 3"


@pytest.mark.long
def test_page_is_forgotten_by_keys_and_the_book_is_not(kept, site_url, browser):
    page, before, _ = kept
    new = browser.new_context().new_page()
    new.goto(site_url + FIRST)
    picked = new.evaluate(SEEN)["picked"]  # exhibits begin with numbers in their fields
    new.context.close()
    page.goto(site_url + NEXT)
    page.get_by_role("checkbox", name="I have read this page").check()
    page.goto(site_url + FIRST)
    page.evaluate(START_EXHIBITS)
    page.get_by_role("button", name="Forget what I did on this page").focus()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.keyboard.press("Enter")
    assert page.evaluate(SEEN) == before
    page.on("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.keyboard.press("Enter")
    seen = page.evaluate(SEEN)
    assert not any(seen["open"])
    assert seen["picked"] == picked != before["picked"]
    assert words(page, "#") is None
    assert words(page, NEXT) == ("read", "read")
    with page.expect_navigation():
        page.get_by_role("button", name="Forget what I did in the whole book").click()
    assert words(page, NEXT) is None
    assert page.evaluate("() => Object.keys(localStorage).filter((k) => /kept/.test(k))") == []


@pytest.mark.long
def test_page_that_is_forgotten_in_another_tab_is_new_also_if_a_cell_waits_to_be_kept(kept):
    page, *_ = kept
    page.evaluate("() => document.querySelector('div.cell:has(pre)').recall({text: 'mine'})")
    with page.expect_navigation():
        page.evaluate(
            """() => {
              document.querySelector(".tl-edit textarea").value = "not yet kept";
              document.querySelector(".tl-edit textarea").dispatchEvent(new Event("input"));
              localStorage.clear();
              dispatchEvent(new StorageEvent("storage", {key: null}));
            }"""
        )
    assert not any(page.evaluate(SEEN)["open"])
    assert page.locator(".tl-edit").count() == 0
    assert page.evaluate("() => Object.keys(localStorage).filter((k) => /kept/.test(k))") == []


def test_script_stays_small_and_comes_with_every_page_of_the_book(site_dir, page_name):
    page = (site_dir / page_name).read_text(encoding="utf-8")
    assert re.search(r'<script defer="defer" src="[^"]*_static/kept\.js', page)
    script = site_dir / "_static" / "kept.js"
    assert len(gzip.compress(script.read_bytes())) <= 5_000


def test_what_is_to_be_read_again_is_on_its_page(site_dir):
    questions = [(name, q) for name in ROOMS for q in records.question_bank(name)["quiz"]]
    assert len(questions) > 80
    for name, question in questions:
        page, anchor = re.search(r'href="(.*?)#(.+?)"', read_again(question)).groups()
        assert page in ("", f"{question['from']}.ipynb")
        html = site_dir / "notebooks" / f"{question['from'] or name}.html"
        heading = re.search(
            rf'<section id="{anchor}">\n<h[23]>(.*?)<', html.read_text(encoding="utf-8")
        )
        assert section_of(heading[1]) == question["read"]
