"""The byte calculator in Chromium: its numbers are the library's, by any means."""

import math
import re
from urllib.parse import urlencode

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.sampling import long
from tests.site.browsing import LOOKS, PHONE, SET, said
from tools.chapters import pages
from tutorial_lib.counting import cache_entries, model_cache_bytes
from tutorial_lib.elements.exhibits import byte_calculator
from tutorial_lib.records import facts

PATTERNED = [m for m in facts("models")["models"] if m.get("pattern", ["both"]) != ["both"]]
MODELS = {model["name"]: model for model in PATTERNED}
FIRST = {"model": "Llama 2 7B", "tokens": 4096, "users": 1, "bits": 16, "weights": 16}
OWN = {"layers": 32, "heads": 32, "d_k": 128, "d_v": 128, "billions": 7}
# What is drawn, in percent from the left and from the top.
DRAWN = """(b) => ({
  points: b.querySelector("polyline").getAttribute("points").split(" ").map(
    (p) => p.split(",").map(Number)),
  weights: Number(b.querySelector(".tl-weigh").getAttribute("d").match(/M0 (.*)H/)[1]),
  named: parseFloat(b.querySelector(".tl-weighed").style.top),
  dot: ["left", "top"].map((side) => parseFloat(b.querySelector(".tl-dot").style[side])),
})"""
ALL = "(b) => [b.querySelector('.tl-plot').outerHTML, b.querySelector('.tl-sums').outerHTML]"


def random_states(count):
    """States of published models and of models of one's own."""
    rng = np.random.default_rng(19)
    found = []
    for i in range(count):
        state = FIRST | {
            "model": [*MODELS, "my own"][rng.integers(len(MODELS) + 1)],
            "tokens": int(2 ** rng.uniform(0, 20)),
            "users": int(2 ** rng.uniform(0, 10)),
            "bits": int(rng.choice([32, 16, 8, 4])),
            "weights": int(rng.choice([32, 16, 8, 4])),
        }
        if i % 5 == 0:
            sizes = dict(zip(OWN, rng.integers(1, 200, 5).tolist(), strict=True))
            state |= {"model": "my own", **sizes}
        found.append(state)
    return found


def model_of(state):
    """The model of a state, as the library reads it."""
    if state["model"] != "my own":
        return MODELS[state["model"]]
    sizes = OWN | {name: state[name] for name in OWN if name in state}
    widths = {name: sizes[name] for name in ("layers", "d_k", "d_v")}
    parameters = 1e9 * sizes["billions"]
    return {**widths, "kv_heads": sizes["heads"], "pattern": ["full"], "parameters": parameters}


def library(state, tokens=None):
    """Bytes of the cache and of the weights."""
    model, itemsize = model_of(state), state["bits"] / 8
    cache = model_cache_bytes(model, tokens or state["tokens"], itemsize=itemsize)
    return cache * state["users"], model["parameters"] * state["weights"] / 8


def address(state):
    """The link to a state, written from its description and not by the script."""
    own = state["model"] == "my own"
    first = FIRST | (OWN if own else {})
    pairs = {name: value for name, value in state.items() if first.get(name) != value}
    return f"#{urlencode({'bytes': 0} | pairs)}"


def numbers(text):
    """The numbers of a text, in their order."""
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", text)]


def sums(calculator):
    """What stands in the table below the picture."""
    return calculator.locator(".tl-sums td").all_text_contents()


def field(calculator, name):
    """A field or a list by what a reader hears."""
    return calculator.get_by_label(name, exact=True)


def write(calculator, name, text):
    """Write into a field, and leave it by Enter."""
    field(calculator, name).fill(text)
    field(calculator, name).press("Enter")


@pytest.fixture
def calculator(show):
    """The calculator on a page of its own."""
    return show(byte_calculator().html).locator("tl-bytes")


def agrees(calculator, state):
    """Compare the sums, the picture and the sentence with the library."""
    cache, weights = library(state)
    cached = [number * state["bits"] / 8 for number in cache_entries(model_of(state))]
    each, shown_cache, shown_weights = sums(calculator)
    of_each = [part for part in numbers(each) if part != model_of(state).get("window")]
    assert of_each == [number for number in cached if number]
    for shown, wanted in ((shown_cache, cache), (shown_weights, weights)):
        exact, short = numbers(shown)
        assert abs(exact - wanted) <= 0.051, state
        power = ("bytes", "kB", "MB", "GB", "TB", "PB").index(shown.split("\N{NO-BREAK SPACE}")[1])
        assert abs(short * 1000**power / wanted - 1) <= 0.0051, state
    pictured(calculator, state, cache, weights)


def pictured(calculator, state, cache, weights):
    """Compare the picture with the library."""
    drawn = calculator.evaluate(DRAWN)
    for left, top in drawn["points"]:
        tokens = 2 ** (left / 5)
        if tokens == int(tokens):
            assert abs(top - high(library(state, int(tokens))[0])) <= 0.011, (state, tokens)
    assert abs(drawn["weights"] - high(weights)) <= 0.011
    assert drawn["named"] == drawn["weights"]
    assert abs(drawn["dot"][0] - 5 * math.log2(state["tokens"])) <= 0.011
    assert abs(drawn["dot"][1] - high(cache)) <= 0.011


def high(number):
    """How far from the top a number of bytes is drawn, between a kB and ten PB, in percent."""
    return 100 * (16 - min(max(math.log10(number), 3), 16)) / 13


def tells(calculator, state):
    """Compare what is said with the library: how many times the weights, and, asked, from where."""
    cache, weights = library(state)
    sentence = said(calculator)
    times = numbers(sentence.split(" × ")[0])[-1]
    assert abs(times * weights / cache - 1) <= 0.0051, sentence
    assert "outgrows" not in sentence
    calculator.get_by_role("button", name="Show me").click()
    sentence = said(calculator)
    if "never outgrows the weights" in sentence:
        assert library(state, 2**40)[0] <= weights
        return
    crossing = int(numbers(sentence.split("outgrows the weights at ")[1])[0])
    assert library(state, crossing)[0] > weights, sentence
    assert crossing <= 1 or library(state, crossing - 1)[0] <= weights, sentence


@pytest.mark.parametrize("count", [5, *long(60)])
def test_every_number_is_the_librarys_in_random_states(calculator, count):
    for state in random_states(count):
        calculator.page.evaluate(SET, address(state))
        begins = f"of {state['users']:,} user{'s' * (state['users'] > 1)} at {state['tokens']:,} "
        calculator.page.get_by_text(
            f"The numbers of the link are here. The cache {begins}"
        ).wait_for()
        agrees(calculator, state)
        tells(calculator, state)


def test_answer_is_told_only_to_a_reader_who_asks_for_it(calculator):
    question = calculator.get_by_text("From which length on is the cache larger than the weights?")
    assert question.is_visible()
    assert calculator.locator("[aria-live]").text_content() == ""
    write(calculator, "tokens", "32k")
    assert question.is_visible()
    assert said(calculator) == (
        "The cache of 1 user at 32,768 tokens is 17.2\N{NO-BREAK SPACE}GB, 1.27 × the weights."
    )
    ask = calculator.get_by_role("button", name="Show me")
    ask.click()
    assert said(calculator) == "The cache of 1 user outgrows the weights at 25,706 tokens."
    write(calculator, "users", "8")
    assert said(calculator).startswith("The cache of 8 users at 32,768 tokens is 137")
    assert "outgrows" not in said(calculator)
    agrees(calculator, FIRST | {"tokens": 32768, "users": 8})
    ask.click()
    assert said(calculator) == "The cache of 8 users outgrows the weights at 3,214 tokens each."
    calculator.get_by_role("button", name="Reset").click()
    assert "outgrows" not in said(calculator)


@pytest.mark.long
def test_every_model_is_chosen_from_the_list(calculator):
    for name, model in MODELS.items():
        field(calculator, "model").select_option(name)
        state = FIRST | {"model": name}
        if name != FIRST["model"]:
            agrees(calculator, state)
            tells(calculator, state)
        learned = model["positions"]["kind"] == "learned"
        assert said(calculator).endswith("positions only.") == learned, name


def test_worked_by_keys_alone(calculator):
    page = calculator.page
    page.keyboard.press("Tab")
    order = []
    for _ in range(9):
        order.append(page.evaluate("() => document.activeElement.ariaLabel || 'other'"))
        page.keyboard.press("Tab")
    assert order[:5] == [
        "model",
        "tokens, by powers of 2",
        "tokens",
        "users, by powers of 2",
        "users",
    ]
    slider = calculator.get_by_label("tokens, by powers of 2")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert field(calculator, "tokens").input_value() == "8,192"
    assert slider.evaluate("(s) => s.ariaValueText") == "8,192 tokens"
    page.keyboard.press("End")
    agrees(calculator, FIRST | {"tokens": 2**20})
    field(calculator, "users").fill("12")
    field(calculator, "users").press("Escape")
    assert field(calculator, "users").input_value() == "1"
    calculator.get_by_role("button", name="Reset").press("Enter")
    assert said(calculator).startswith("One user of Llama 2 7B is back. ")
    agrees(calculator, FIRST)


@pytest.mark.long
def test_model_of_ones_own_is_counted(calculator):
    assert not field(calculator, "KV heads").is_visible()
    field(calculator, "model").select_option("my own")
    agrees(calculator, FIRST | {"model": "my own"})
    write(calculator, "KV heads", "8")
    write(calculator, "width of a value", "64")
    write(calculator, "billions of parameters", ".5")
    state = FIRST | {"model": "my own", "heads": 8, "d_v": 64, "billions": 0.5}
    agrees(calculator, state)
    link = calculator.get_by_role("link").get_attribute("href")
    assert link == "#bytes=0&model=my+own&heads=8&d_v=64&billions=0.5"
    field(calculator, "model").select_option("DeepSeek-V3")
    assert not field(calculator, "KV heads").is_visible()
    agrees(calculator, FIRST | {"model": "DeepSeek-V3"})
    assert calculator.get_by_role("link").get_attribute("href") == "#bytes=0&model=DeepSeek-V3"


REFUSED = {
    ("tokens", "many"): "tokens is “many”, which is no number; expected a whole number from 1 to",
    ("tokens", ""): "tokens is “”, which is no number; expected a whole number from 1 to",
    ("tokens", "-5"): "tokens is “-5”, which is no number; expected a whole number from 1 to",
    ("tokens", "0"): "tokens is 0; expected a whole number from 1 to 1,048,576.",
    ("tokens", "2M"): "tokens is 2M; expected a whole number from 1 to 1,048,576.",
    ("users", "1.5"): "users is 1.5; expected a whole number from 1 to 1,024.",
    ("users", "1e400"): "users is 1e400; expected a whole number from 1 to 1,024.",
    ("billions of parameters", "0"): "billions of parameters is 0; expected a number from 0.001 to",
    ("width of a key", "1e4"): None,
}


def test_what_is_no_number_is_refused_in_words_and_the_state_stays(calculator):
    field(calculator, "model").select_option("my own")
    state = FIRST | {"model": "my own"}
    for (name, text), words in REFUSED.items():
        write(calculator, name, text)
        if words:
            assert said(calculator).startswith(words)
            assert said(calculator).endswith(" Nothing has changed.")
            assert field(calculator, name).get_attribute("aria-invalid") == "true"
            agrees(calculator, state)
    state["d_k"] = 10_000
    agrees(calculator, state)
    assert calculator.locator("[aria-invalid]").count() == 0
    write(calculator, "layers", "1000")
    write(calculator, "KV heads", "1000")
    write(calculator, "tokens", "1M")
    assert said(calculator) == (
        "That is more bytes than can be counted; expected fewer. Nothing has changed."
    )
    agrees(calculator, state | {"layers": 1000, "heads": 1000})


STRANGE = {
    "bytes=5": "“5” is no bytes of this page; expected 0.",
    "bytes=0&model=GPT-9": "model is “GPT-9”; expected GPT-2 small, ",
    "bytes=0&tokens=two": "tokens is “two”, which is no number; expected a whole number from 1 to",
    "bytes=0&users=7&tokens=": "tokens is “”, which is no number; expected a whole number",
    "bytes=0&bits=12": "bits per cached entry is “12”; expected 32, 16, 8, 4.",
    "bytes=0&T=12": "“T” cannot be set; expected one of model, tokens, users, bits, weights",
}


def test_link_that_cannot_be_says_what_was_expected_and_changes_nothing(calculator):
    write(calculator, "users", "3")
    before = calculator.evaluate(ALL)
    for strange, words in STRANGE.items():
        calculator.page.evaluate(SET, f"#{strange}")
        calculator.page.get_by_text(f"The link does not fit: {words}").wait_for()
        assert said(calculator).endswith(" Nothing has changed.")
        assert calculator.evaluate(ALL) == before, strange
        assert calculator.get_by_role("link").get_attribute("href") == "#bytes=0&users=3"


@pytest.mark.long
def test_page_is_told_of_changes_and_puts_them_back_in_silence(calculator):
    page = calculator.page
    page.evaluate("() => { told = []; addEventListener('tl-work', (e) => told.push(e.detail)); }")
    write(calculator, "users", "8")
    told = page.evaluate("() => told")
    assert told == [{"state": "users=8", "done": 0, "of": 0}]
    calculator.get_by_role("button", name="Reset").click()
    words = said(calculator)
    recalled = "(b, state) => b.recall(state)"
    for nonsense in (None, 7, {}, "users=none", "model=Z", "cell=X.0.0.0"):
        assert calculator.evaluate(recalled, nonsense) is False
        agrees(calculator, FIRST)
    assert calculator.evaluate(recalled, told[0]["state"]) is True
    agrees(calculator, FIRST | {"users": 8})
    assert said(calculator) == words
    assert len(page.evaluate("() => told")) == 2


@pytest.mark.long
def test_script_finds_the_picture_and_the_sums_as_they_stand_without_it(show, calculator):
    awake = calculator.evaluate(ALL)
    page = show(byte_calculator().html, java_script_enabled=False)
    static = page.locator("tl-bytes")
    assert static.evaluate(ALL) == awake
    assert static.locator("select:visible, input:visible, button:visible").count() == 0
    static.locator("summary").click()
    assert static.get_by_role("row", name="DeepSeek-V3").get_by_text("70,272 bytes").is_visible()


@pytest.mark.long
def test_worked_by_touch_and_its_targets_are_large(show):
    page = show(byte_calculator().html, **PHONE)
    calculator = page.locator("tl-bytes")
    slider = calculator.get_by_label("users, by powers of 2")
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert field(calculator, "users").input_value() == "32"
    agrees(calculator, FIRST | {"users": 32})
    sizes = "(all) => Math.min(...all.map((e) => e.offsetHeight))"
    assert calculator.locator("button, select, input:visible").evaluate_all(sizes) >= 44


@pytest.mark.parametrize(("appearance", "width"), LOOKS)
def test_nothing_sticks_out_and_axe_finds_nothing(show, appearance, width):
    page = show(byte_calculator().html, mode=appearance, width=width)
    calculator = page.locator("tl-bytes")
    for _ in range(2):
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        found = Axe().run(page).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"][:3]]) for v in found] == []
        field(calculator, "model").select_option("my own")
        write(calculator, "KV heads", "none")
        calculator.locator("summary").click()
    texts = calculator.locator(":is(span, b, i, th, td, p):visible")
    smallest = "(all) => Math.min(...all.map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    assert texts.evaluate_all(smallest) >= 11


@pytest.mark.long
def test_no_link_where_the_address_is_not_the_pages_own(show):
    page = show('<div class="jp-Notebook">', byte_calculator().html, "</div>")
    assert page.get_by_role("link").count() == 0
    assert page.locator("tl-bytes[data-lm-suppress-shortcuts]").count() == 1


def home():
    """The page that shows the calculator."""
    names = [page.name for page in pages() if "byte_calculator()" in page.path.read_text()]
    assert names, "No chapter shows byte_calculator()."
    return f"notebooks/{names[0]}.html"


def test_chapter_shows_it_follows_a_link_and_keeps_what_was_chosen(open_page):
    page = open_page(f"{home()}{address(FIRST | {'tokens': 32768, 'users': 8})}")
    calculator = page.locator("tl-bytes")
    page.get_by_text("The cache of 8 users at 32,768 tokens is 137").wait_for()
    agrees(calculator, FIRST | {"tokens": 32768, "users": 8})
    write(calculator, "users", "16")
    page.evaluate("() => history.replaceState(null, '', location.pathname)")
    page.reload()
    calculator.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('[data-key=users]').value == '16'")
    agrees(calculator, FIRST | {"tokens": 32768, "users": 16})
    assert page.problems == []
