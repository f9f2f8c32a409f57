"""Ask the model in Chromium: its numbers are the library's, by any means, and nothing is dead."""

import gzip
import json
import re
from functools import cache

import numpy as np
import pytest

from tests.site.browsing import SET
from tutorial_lib import Params
from tutorial_lib.attention import softmax
from tutorial_lib.elements.exhibits import ask_model
from tutorial_lib.elements.sources import FOLDER
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.grammar import ID, WORDS, sample_documents
from tutorial_lib.models.head_scores import logit_terms, run_with
from tutorial_lib.models.language import WORDS_HINT, encode, in_eight_bits
from tutorial_lib.records import checkpoint

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF"
QUESTION = "At *that*: which head looks at *dogs*?"
HEADS = [f"{layer}.{head}" for layer in range(2) for head in range(4)]
BEGINS = "the dogs that the cats see"
FOLDED_IN = "#deeper-ask-the-model-and-layer-1-on-one-sentence"
# The forward pass as its file holds it, on the weights that stand in the page.
ANSWER = """(asked) => {{
  {source}
  const [packed] = Object.values(globalThis.tlModels);
  const model = unpack(packed);
  const answers = asked.map(({{ ids, silenced, t }}) => {{
    const made = forward(model, ids, silenced);
    const parts = terms(model, made, t);
    const weights = made.heads.flat().map(({{ weights }}) => [...weights[t]]);
    return {{ weights, parts: parts.map((part) => [...part]), chances: [...chances(parts)] }};
  }});
  return JSON.stringify(answers);  // 100,000 numbers: as text they are here sooner
}}"""
TIME = """() => {{
  {source}
  const [packed] = Object.values(globalThis.tlModels);
  const model = unpack(packed);
  const ids = Array.from({{ length: 64 }}, (_, i) => (i * 37) % 100);
  const row = Float64Array.from({{ length: 64 }}, (_, i) => i);
  const reference = () => {{
    let sum = 0;
    for (let i = 0; i < 3e6; i++) sum += row[i & 63] * row[(i + 1) & 63];
    return sum;
  }};
  const timed = (work) => {{
    const begin = performance.now();
    work();
    return performance.now() - begin;
  }};
  const pairs = Array.from({{ length: 15 }}, () =>
    [reference, () => terms(model, forward(model, ids), 63)].map(timed));
  return [0, 1].map((i) => Math.min(...pairs.map((pair) => pair[i])));
}}"""
READS = """([texts, given]) => {{
  {source}
  return texts.map((text) => read(text, given));
}}"""
SOURCE = (FOLDER / "exhibits/model.js").read_text(encoding="utf-8").replace("export ", "")
TYPED = (FOLDER / "exhibits/ask/typed.js").read_text(encoding="utf-8").replace("export ", "")
# What the exhibit shows: the sentence, the chosen position, the next words, the row of each term.
READ = """(ask) => {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent.replace(/\u00a0/g, " "));
  const tables = [...ask.querySelectorAll("tbody")].map((body) => [...body.rows].map(texts));
  const [rows, next] = [tables.pop(), tables.flat()];
  const cells = [...ask.querySelectorAll(".tl-word")];
  return {
    sentence: cells.map((cell) => cell.firstChild.textContent),
    query: cells.findIndex((cell) => cell.ariaChecked == "true"),
    adds: ask.querySelector(".tl-paths th:nth-child(3)").textContent,
    next, rows,
  };
}"""


@cache
def known_text():
    """The model of the known text, as it is committed."""
    return TinyModel.of(checkpoint("known_text"))


@cache
def rounded():
    """The same in 8 bits."""
    return in_eight_bits(known_text())


@cache
def element():
    """The exhibit of that model, drawn once."""
    return ask_model(known_text(), WORDS, BEGINS, question=QUESTION).html


def without(model, silenced):
    """The model with zeros in the rows of W_O of each silenced head."""
    layers = []
    for layer, params in enumerate(model.layers):
        W_O = np.array(np.split(params.W_O, 4))
        W_O[[head for head in range(4) if f"{layer}.{head}" in silenced]] = 0
        layers.append(Params(params.W_Q, params.W_K, params.W_V, np.concatenate(W_O)))
    return TinyModel(model.E, model.P, tuple(layers), model.U)


def sentences(count):
    """Documents of the text and words in any order, of all lengths; in half, heads are silenced."""
    rng = np.random.default_rng(20)
    documents = sample_documents(rng, count).ids
    for i, document in enumerate(documents):
        length = 64 if i == 0 else int(rng.integers(1, 65))
        ids = document[:length] if i % 3 else np.append(0, rng.integers(1, 100, length - 1))
        silenced = [head for head in HEADS if i % 2 and rng.random() < 0.3]
        yield {"ids": ids.tolist(), "silenced": silenced, "t": int(rng.integers(0, length))}


def library(ids, silenced, t):
    """The weights at a position, what each term adds to each word, and the chances."""
    model = without(rounded(), silenced)
    logits, records = run(model, np.array(ids))
    weights = np.concatenate([record.weights[:, t, : t + 1] for record in records])
    return weights, np.array(logit_terms(model, np.array(ids)))[:, t], softmax(logits[t])


@pytest.fixture
def shown(show):
    """The exhibit on a page of its own."""
    return show(element()).locator("tl-ask")


def said(shown):
    """What is spoken and shown."""
    return shown.locator("[aria-live]").text_content()


def agrees(shown, sentence, *, query=None, silenced=(), word=None, minus=None):
    """Require that all that is shown is the library's, to what three or two decimals can say."""
    seen = shown.evaluate(READ)
    words = ["<bos>", *sentence.split()]
    t = len(words) - 1 if query is None else query
    weights, parts, chances = library([ID[w] for w in words], silenced, t)
    assert (seen["sentence"], seen["query"]) == (words, t)
    for name, _, chance in seen["next"]:
        number = 0 if chance == "< 0.001" else float(chance)
        assert number == pytest.approx(chances[ID[name]], abs=1e-3)
    asked = [name for name in (word, minus) if name]
    assert [name for name, *_ in seen["next"][: len(asked)]] == asked
    others = np.delete(chances, [ID[name] for name in asked])
    assert float(seen["next"][len(asked)][2]) == pytest.approx(others.max(), abs=1e-3)
    word = word or WORDS[chances.argmax()]
    added = parts[:, ID[word]] - (parts[:, ID[minus]] if minus else 0)
    assert seen["adds"] == f"adds to “{word}”" + (f" − “{minus}”" if minus else "")
    found = [float(row[2].replace("−", "-")) for row in seen["rows"]]
    np.testing.assert_allclose(found, [*added, added.sum()], rtol=0, atol=0.006)
    names = [f"{w} ({i})" if words.count(w) > 1 else w for i, w in enumerate(words)]
    for head, row, text in zip(HEADS, weights, [row[1] for row in seen["rows"][1:-1]], strict=True):
        if head in silenced:
            assert text == "silenced"
            continue
        pairs = [pair.rpartition(" ") for pair in text.split(", ")]
        top = np.sort(row)[::-1][:2]
        np.testing.assert_allclose([float(p[2]) for p in pairs], top[top > 5e-4], atol=1e-3)
        for name, _, weight in pairs:
            assert float(weight) == pytest.approx(row[names.index(name)], abs=1e-3)


def test_a_hundred_sentences_have_the_librarys_weights_paths_and_chances(show):
    page = show(element())
    asked = list(sentences(100))
    answers = json.loads(page.evaluate(ANSWER.format(source=SOURCE), asked))
    assert len(answers) == 100
    assert sum(bool(one["silenced"]) for one in asked) > 30
    for one, answer in zip(asked, answers, strict=True):
        weights, parts, chances = library(**one)
        for name, right in (("weights", weights), ("parts", parts), ("chances", chances)):
            np.testing.assert_allclose(answer[name], right, rtol=0, atol=1e-3, err_msg=str(one))


def test_a_silenced_head_is_one_whose_output_is_zero():
    model, ids = rounded(), np.array([ID[w] for w in BEGINS.split()])
    for i, head in enumerate(HEADS):
        logits = run_with(model, ids, {(i // 4, i % 4): np.zeros(16)})
        np.testing.assert_allclose(logits, run(without(model, [head]), ids)[0], atol=1e-9)


def test_a_pass_of_64_words_is_a_moment_of_work(show):
    reference, quickest = show(element()).evaluate(TIME.format(source=SOURCE))
    print(f"a pass of 64 words {quickest:.1f} ms, three million products {reference:.1f} ms")
    assert quickest < 8 * reference  # about twice; both are as slow as the machine is busy


STRANGE = [
    *("", "  ", "the dog " * 35, "the dgos", "The dogs", "elephant", "<bos> the", "bark."),
    *("dogs,that", "the(dog)", "x", "zz", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", "barking", "thx"),
    *("Anna's", "éléphant", "[often]", "himselves", "1 2", "(never]", "dog.cat", "the é"),
]


def test_sentence_is_read_and_refused_as_encode_does(show):
    page = show(element())
    given = {"words": WORDS, "positions": 64, "kinds": WORDS_HINT, "example": "the dogs that bark"}
    good = ["the dogs that bark", " dogs\tdogs  ( ", "the " * 63]
    found = page.evaluate(READS.format(source=TYPED), [[*good, *STRANGE], given])
    assert found[:3] == [encode(text).tolist() for text in good]
    for text, words in zip(STRANGE, found[3:], strict=True):
        with pytest.raises(ValueError, match=r"^" + re.escape(words) + "$"):
            encode(text)


def test_question_stays_and_what_begins_is_the_librarys(shown):
    question = shown.locator(".tl-ask")
    assert question.is_visible()
    agrees(shown, BEGINS)
    shown.locator(".tl-word").nth(3).click()
    assert question.is_visible()
    assert said(shown).startswith("Next after “that”: “the” 0.")
    agrees(shown, BEGINS, query=3)
    drawn = shown.locator(".tl-sentence path")
    assert drawn.count() > 8
    assert shown.locator("tr[data-head]").nth(6).hover() is None
    assert 1 <= drawn.count() <= 5  # of one head


def test_words_are_typed_and_pressed_and_removed(shown):
    field = shown.get_by_role("textbox")
    field.fill("the dog that")
    field.press("Enter")
    agrees(shown, "the dog that")
    shown.locator("summary").first.click()
    shown.get_by_role("button", name="barks", exact=True).click()
    agrees(shown, "the dog that barks")
    shown.locator(".tl-word").nth(1).click()
    shown.get_by_role("button", name="mice", exact=True).click()
    agrees(shown, "the mice dog that barks", query=2)
    shown.get_by_role("button", name="Remove the word").click()
    agrees(shown, "the dog that barks", query=1)
    field.fill("the dgos")
    field.press("Enter")
    assert said(shown).startswith("'dgos' is no word of this text; near it: dog, dogs.")
    assert said(shown).endswith("Nothing has changed.")
    assert field.get_attribute("aria-invalid") == "true"
    agrees(shown, "the dog that barks", query=1)
    shown.locator(".tl-word").nth(0).click()
    shown.get_by_role("button", name="Remove the word").click()
    assert said(shown) == "“<bos>” is put in front by itself. Nothing has changed."
    shown.get_by_role("button", name="Reset").click()
    agrees(shown, BEGINS)


def test_a_head_is_silenced_and_the_probabilities_follow(shown):
    shown.locator(".tl-word").nth(3).click()
    switch = shown.get_by_role("button", name="silence head 1.2")
    switch.click()
    assert switch.get_attribute("aria-pressed") == "true"
    assert said(shown).startswith("Head 1.2 is silenced: “the” goes from 0.")
    agrees(shown, BEGINS, query=3, silenced=["1.2"])
    shown.get_by_role("button", name="silence head 0.0").click()
    agrees(shown, BEGINS, query=3, silenced=["1.2", "0.0"])
    word, minus = shown.locator("select").all()
    word.select_option("bark")
    minus.select_option("barks")
    agrees(shown, BEGINS, query=3, silenced=["1.2", "0.0"], word="bark", minus="barks")
    shown.get_by_role("button", name="Silence none").click()
    agrees(shown, BEGINS, query=3, word="bark", minus="barks")


def test_two_words_are_split_and_what_adds_most_is_said(show):
    html = ask_model(known_text(), WORDS, BEGINS, question="?", split=("bark", "barks")).html
    shown = show(html).locator("tl-ask")
    agrees(shown, BEGINS, word="bark", minus="barks")
    link = shown.get_by_role("link", name="Link to this sentence")
    assert link.get_attribute("href") == "#ask=0"
    assert shown.locator("tr[data-asked]:visible").count() == 2
    other = shown.locator("th", has_text="[")
    assert not other.is_visible()
    shown.get_by_text("Other next words").click()
    assert other.is_visible()
    shown.locator("select").first.select_option("sleep")
    assert re.fullmatch(
        r"Head 1\.2 adds most to “sleep” − “barks”: \+\d\.\d\d of \+\d\.\d\d\.", said(shown)
    )
    off = "(select) => [...select.options].filter((o) => o.disabled).map((o) => o.value)"
    assert [menu.evaluate(off) for menu in shown.locator("select").all()] == [["barks"], ["sleep"]]
    bar = shown.locator(".tl-paths rect").first
    width = bar.get_attribute("width")
    shown.get_by_role("button", name="silence head 1.2").click()
    assert bar.get_attribute("width") == width  # though the largest is gone
    assert said(shown).startswith("Head 1.2 is silenced: “sleep” − “barks” goes from +")
    for menu in shown.locator("select").all():
        menu.select_option("")
    agrees(shown, BEGINS, silenced=["1.2"])
    shown.page.evaluate(SET, link.get_attribute("href").replace("1.2", "1.1"))
    shown.page.get_by_text("Silenced: 1.1. Next after “see”").wait_for()
    agrees(shown, BEGINS, silenced=["1.1"])


def test_a_word_split_against_itself_has_bars_of_no_width(shown):
    shown.page.evaluate(SET, "#ask=0&word=bark&minus=bark")
    shown.page.get_by_text("Next after “see”").wait_for()
    widths = "(all) => all.map((rect) => rect.getAttribute('width'))"
    assert set(shown.locator(".tl-paths rect").evaluate_all(widths)) == {"0"}


def test_the_chosen_word_is_announced_too_and_the_only_word_stays(shown):
    shown.locator(".tl-word").nth(6).click()
    assert said(shown).startswith("Next after “see”: ")
    shown.locator(".tl-word").nth(4).click()
    assert said(shown).startswith("Next after “the”, position 4: ")
    assert shown.get_by_role("radio", name="the, position 1").count() == 1
    field = shown.get_by_role("textbox")
    for text, ending in (("", "such as “the dogs that bark”."), ("Anna's", "“Anna ' s”.")):
        field.fill(text)
        field.press("Enter")
        assert said(shown).endswith(f"{ending} Nothing has changed.") or text
        assert field.get_attribute("aria-describedby") == shown.locator(
            "[aria-live]"
        ).get_attribute("id")
    field.fill("dogs")
    field.press("Enter")
    assert field.get_attribute("aria-describedby") is None
    shown.get_by_role("button", name="Remove the word").click()
    assert said(shown) == "It is the only word. Nothing has changed."
    agrees(shown, "dogs")


def test_keys_and_fingers_ask_for_the_arcs_of_one_head(shown):
    drawn = shown.locator(".tl-sentence path")
    every = drawn.count()
    shown.locator(".tl-paths tbody th").nth(1).focus()
    shown.page.keyboard.press("ArrowDown")
    heads = drawn.evaluate_all("(paths) => [...new Set(paths.map((p) => p.dataset.head))]")
    assert heads == ["1"]
    assert 0 < drawn.count() < every
    shown.page.keyboard.press("Tab")
    shown.locator(".tl-word").nth(6).focus()
    assert drawn.count() == every


def test_what_is_said_is_in_sight_of_what_is_pressed(open_page):
    options = {"has_touch": True, "is_mobile": True}
    page = open_page(f"notebooks/20_scoring_heads.html{FOLDED_IN}", width=390, **options)
    shown, bar = page.locator("tl-ask"), page.locator(".bd-header-article").bounding_box()
    for head in ("0.0", "1.3"):
        shown.get_by_role("button", name=f"silence head {head}").tap()
        box = shown.locator(".tl-said").bounding_box()
        assert bar["height"] <= box["y"] < 900 - box["height"], head


@pytest.mark.long
def test_worked_by_keys_alone(shown):
    page = shown.page
    for key in ("Tab", "Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    agrees(shown, BEGINS, query=2)
    page.keyboard.press("Delete")
    agrees(shown, BEGINS.replace("dogs ", "", 1), query=1)
    assert page.evaluate("() => document.activeElement.textContent") == "the1"
    for key in ("Tab", "ArrowRight", "Enter"):  # the first switch, the second
        page.keyboard.press(key)
    agrees(shown, BEGINS.replace("dogs ", "", 1), query=1, silenced=["0.1"])
    page.keyboard.press("Enter")
    for key in ("Tab", "Tab", "Enter", "Tab", "Tab", "ArrowRight", "Enter"):
        page.keyboard.press(key)  # the field, the fold, its box, its first chip, its second
    assert shown.evaluate(READ)["sentence"][:3] == ["<bos>", "the", "the"]


@pytest.mark.long
def test_letters_need_no_blanks(show):
    model = TinyModel.of(checkpoint("copying"))
    html = ask_model(model, LETTERS, "headshe", question="Where?").html
    shown = show(html).locator("tl-ask")
    shown.get_by_role("textbox").fill("ab cabca")
    shown.get_by_role("textbox").press("Enter")
    seen = shown.evaluate(READ)
    assert ("".join(seen["sentence"]), seen["next"][0][0]) == ("abcabca", "b")


@pytest.mark.long
def test_without_its_weights_it_stays_as_python_drew_it(show):
    bare = re.sub(r"<script data-model.*?</script>", "", element(), flags=re.S)
    shown = show(bare).locator("tl-ask")
    assert shown.locator(":is(button, input, select):visible").count() == 0
    assert shown.locator(".tl-how:visible").count() == 0
    assert shown.get_by_text("head 1.2", exact=True).is_visible()


@pytest.mark.parametrize("width", [360, 500, 660])
def test_what_a_head_looks_at_has_room(show, width):
    seen = show(element(), width=width).locator("tl-ask .tl-paths tbody tr > :nth-child(2)")
    assert min(seen.evaluate_all("(all) => all.map((cell) => cell.offsetWidth)")) > 100


@pytest.mark.parametrize("width", [320, 1440])
def test_the_longest_word_takes_one_line_among_the_next_ones(show, width):
    anywhere = "<style>body { overflow-wrap: anywhere }</style>"  # as on the site
    row = show(element(), head=anywhere, width=width).locator("tl-ask tbody tr").first
    height = row.bounding_box()["height"]
    row.locator("th").evaluate("(th, word) => { th.textContent = word; }", max(WORDS, key=len))
    assert row.bounding_box()["height"] == height
    reaches = """(th) => {
      const words = document.createRange();
      words.selectNodeContents(th);
      return words.getBoundingClientRect().right <= th.getBoundingClientRect().right;
    }"""
    assert row.locator("th").evaluate(reaches)


def test_site_has_the_weights_that_an_exhibit_names_as_a_script(site_dir):
    asking = set()
    for path in site_dir.glob("notebooks/*.html"):
        page = path.read_text(encoding="utf-8")
        names = re.findall(r'<template data-model="\.\./_static/model-(\w+)\.js">', page)
        assert "tlModels" not in page
        assert len(names) == len(set(names)) == len(set(re.findall(r'id="tl-ask-(\w+)"', page)))
        asking |= {path.stem} if names else set()
        for name in names:
            script = (site_dir / f"_static/model-{name}.js").read_bytes()
            assert len(gzip.compress(script)) <= 60_000
    assert asking == {"08_gradients", "20_scoring_heads"}


def test_chapter_08_from_disk_shows_the_letter_after_the_earlier_copy(open_page):
    page = open_page("notebooks/08_gradients.html#ask=0&query=8", from_disk=True)
    page.get_by_text("Next after “d”, position 8: “s” 0.").or_(
        page.get_by_text("“s” 1.")
    ).first.wait_for()
    looks = [row[1] for row in page.locator("tl-ask").evaluate(READ)["rows"][3:5]]
    assert [text.rpartition(" ")[0] for text in looks] == ["s (4)", "s (4)"]
    assert page.problems == []
