"""The byte calculator in Chromium: its numbers are the library's, by any means."""

import re
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.sampling import long
from tests.site.browsing import PHONE, SET, field, said, write
from tests.site.showing import assert_shows
from tests.site.states import bytes_state
from tutorial_lib.counting import model_cache_bytes
from tutorial_lib.elements.exhibits import byte_calculator
from tutorial_lib.elements.exhibits.bytes.element import draw_calculator
from tutorial_lib.records import facts

PATTERNED = [m for m in facts("models")["models"] if m.get("pattern", ["both"]) != ["both"]]
MODELS = {model["name"]: model for model in PATTERNED}
FIRST = {"model": "Llama 2 7B", "tokens": 4096, "users": 1, "bits": 16, "weights": 16}
OWN = {"layers": 32, "heads": 32, "d_k": 128, "d_v": 128, "billions": 7}


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


def numbers(text):
    """The numbers of a text, in their order."""
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", text)]


@pytest.fixture
def calculator(show):
    """The calculator on a page of its own."""
    return show(byte_calculator().html).locator("tl-bytes")


def agrees(calculator, state):
    """Compare all that is shown with Python's."""
    assert_shows(calculator, draw_calculator(**state))


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
def test_every_sentence_is_true_in_random_states(calculator, count):
    rng = np.random.default_rng(19)
    for state in (bytes_state(rng) for _ in range(count)):
        calculator.page.evaluate(SET, f"#bytes=0&{urlencode(state)}")
        begins = f"of {state['users']:,} user{'s' * (state['users'] > 1)} at {state['tokens']:,} "
        calculator.page.get_by_text(
            f"The numbers of the link are here. The cache {begins}"
        ).wait_for()
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


def test_a_state_that_cannot_be_counted_is_refused_in_words_and_stays(calculator):
    field(calculator, "model").select_option("my own")
    write(calculator, "billions of parameters", "0")
    assert said(calculator) == (
        "“0” cannot be; expected a number from 0.001 to 100,000. Nothing has changed."
    )
    write(calculator, "width of a key", "1e4")
    state = FIRST | {"model": "my own", "d_k": 10_000}
    agrees(calculator, state)
    assert calculator.locator("[aria-invalid]").count() == 0
    write(calculator, "layers", "1000")
    write(calculator, "KV heads", "1000")
    write(calculator, "tokens", "1M")
    assert said(calculator) == (
        "That is more bytes than can be counted; expected fewer. Nothing has changed."
    )
    assert field(calculator, "tokens").get_attribute("aria-invalid") == "true"
    write(calculator, "tokens", "4096")
    agrees(calculator, state | {"layers": 1000, "heads": 1000})


@pytest.mark.long
def test_worked_by_touch(show):
    page = show(byte_calculator().html, **PHONE)
    calculator = page.locator("tl-bytes")
    slider = calculator.get_by_label("users, by powers of 2")
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert field(calculator, "users").input_value() == "32"
    agrees(calculator, FIRST | {"users": 32})
