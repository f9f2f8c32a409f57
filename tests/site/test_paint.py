"""The mask to paint in Chromium: weights and changes are the library's, by any means."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from tests.elements.test_paint import EXAMPLE, FOUR, TOKENS, X, changes, library, mask_of, unpacked
from tests.sampling import long
from tests.site.arrival import BUDGETS, do_references, largest_task, recorded
from tests.site.browsing import PHONE, SET, cell, middle, said, swipe
from tools.chapters import pages
from tutorial_lib import causal_mask, trace
from tutorial_lib.elements.exhibits import paint_mask

CHOICES = ("look", "hide"), ("bottom-right", "top-left"), ("zeros", "nan")
KINDS = ["causal", "padded", "packed", "window"]
FIRST = {"mask": causal_mask(5), "reads": "look", "align": "bottom-right", "masked": "zeros"}
# What each state shows, of all in one text: the four grids, the table, the lines, the buttons.
READ = """(paint, states) => JSON.stringify(states.map((state) => {
  const accepted = state == null || paint.recall(state);
  const seen = (row) => !row.hidden;
  const rows = (table) => [...table.tBodies[0].rows].filter(seen).map((row) => [...row.cells]);
  const [mask, changes, ...weights] = [...paint.querySelectorAll(".tl-mask")].map((table) =>
    rows(table).map((row) => row.slice(1)));
  const texts = (grid) => grid.map((row) => row.map((cell) => cell.textContent));
  const marks = (grid, mark) => grid.map((row) => row.map((cell) => mark in cell.dataset));
  const pressed = (button) => button.ariaPressed == "true" ? [button.textContent] : [];
  return {
    accepted,
    mask: marks(mask, "on"),
    words: texts(mask),
    heard: mask.map((row) => row.map((cell) => cell.ariaLabel)),
    changes: texts(changes),
    leaks: marks(changes, "leak"),
    weights: weights.map(texts),
    tints: weights.map((grid) => grid.map((row) => row.map(
      (cell) => parseInt(cell.style.getPropertyValue("--n"))))),
    table: rows(paint.querySelector(".tl-numbers table")).map(
      (row) => row.map((cell) => cell.textContent)),
    code: [...paint.querySelectorAll("code")].map((code) => code.textContent),
    kinds: [...paint.querySelectorAll(".tl-row button")].slice(0, 4).flatMap(pressed),
    four: [...paint.querySelectorAll(".tl-gave")].map((cell) => cell.ariaPressed == "true"),
  };
}))"""


def packed(mask):
    """Write a mask as two digits of base 16 for each row."""
    return "".join(f"{int(''.join('01'[one] for one in row), 2):02x}" for row in mask * 1)


def state_of(mask, reads="look", align="bottom-right", masked="zeros"):
    """The state of an address, written from its description and not by the script."""
    return f"mask={packed(mask)}&true={reads}&align={align}&queries={len(mask)}&masked={masked}"


def random_states(count):
    """Masks of few and of many pairs, in both readings, sizes and alignments, with masked rows."""
    rng = np.random.default_rng(10)
    found = []
    for i in range(count):
        looks = rng.random((5 if i % 3 else 3, 5)) < rng.choice([0.1, 0.3, 0.5, 0.7, 0.9])
        looks[rng.random(len(looks)) < 0.2] = False
        reads, align, masked = (two[rng.integers(2)] for two in CHOICES)
        mask = looks ^ (reads == "hide")
        found.append({"mask": mask, "reads": reads, "align": align, "masked": masked})
    return found


def shown(paint, *states):
    """What is shown in each of some states, or now."""
    return json.loads(paint.evaluate(READ, list(states) or [None]))


def agrees(found, mask, reads="look", align="bottom-right", masked="zeros"):
    """Compare all that is shown with the library."""
    looks = mask ^ (reads == "hide")
    blind = ~looks.any(axis=1) & (masked == "nan")
    weights, changed = library(looks)[0], changes(looks)
    weights[:, blind], changed[blind] = np.nan, np.nan
    T, S = mask.shape
    tokens, later = TOKENS[:S][-T:], np.triu(np.ones((S, S), dtype=bool), k=1)[-T:]
    np.testing.assert_array_equal(found["mask"], mask)
    assert found["words"] == [["True" if on else "" for on in row] for row in mask]
    verbs = np.where(looks, "may look", "may not look")
    assert found["heard"] == [
        [f"{t} at {s}: {on}, {verb}" for s, on, verb in zip(TOKENS[:S], row, verbs[i], strict=True)]
        for i, (t, row) in enumerate(zip(tokens, mask, strict=True))
    ]
    np.testing.assert_array_equal(found["leaks"], later & (changed > 1e-9))
    assert found["changes"] == [
        [decimals(by) if not by <= 1e-9 else "·" for by in row] for row in changed
    ]
    # The three words alone have their weights in the table only.
    for head, texts, tints in zip(weights, found["weights"], found["tints"], strict=S == 5):
        for pair in np.ndindex(mask.shape):
            text, weight = texts[pair[0]][pair[1]], head[pair]
            assert near(text, weight, looks[pair]), (text, weight)
            assert abs(tints[pair[0]][pair[1]] - 100 * np.nan_to_num(weight)) <= 0.5001
    for t, row in enumerate(found["table"]):
        assert row[:2] == [tokens[t], listed(looks[t])]
        assert row[4] == listed(~(changed[t] <= 1e-9))
        for texts, head in zip(row[2:4], weights, strict=True):
            exact = [value(text) for text in texts.split(", ")]
            np.testing.assert_allclose(exact, head[t], rtol=0, atol=1e-12)


def listed(chosen):
    """The names of some tokens."""
    return ", ".join(np.array(TOKENS[: len(chosen)])[chosen]) or "nothing"


def value(text):
    """The number that a table shows: a fraction, or NaN."""
    return np.nan if text == "NaN" else float(Fraction(text))


def decimals(number):
    """A number with two decimals."""
    return "NaN" if np.isnan(number) else f"{number:.2f}"


def near(text, weight, look):
    """Whether a cell shows a weight: as a fraction, or with two decimals if that is long."""
    if np.isnan(weight) or not look:
        return text == ("NaN" if np.isnan(weight) else "·")
    return abs(Fraction(text) - weight) <= (0.005 + 1e-9 if "." in text else 1e-12)


@pytest.fixture
def paint(show):
    """The mask on a page of its own."""
    return show(paint_mask().html).locator("tl-paint")


def press(paint, name):
    """Press a button by its name."""
    paint.get_by_role("button", name=name, exact=True).click()


@pytest.mark.parametrize("count", [8, *long(60)])
def test_every_number_is_the_librarys_in_random_states(paint, count):
    states = random_states(count)
    shows = shown(paint, *(state_of(**state) for state in states))
    for state, found in zip(states, shows, strict=True):
        assert found["accepted"] is True
        agrees(found, **state)
    assert said(paint) == ""
    assert any("NaN" in row for found in shows for row in found["changes"])


NAMED = [
    (kind, reads, align, T)
    for kind in KINDS
    for reads in ("look", "hide")
    for align in ("bottom-right", "top-left")
    for T in (5, 3)
]
LINKED = [f"make={k}&true={r}&align={a}&queries={T}" for k, r, a, T in NAMED]


@pytest.mark.parametrize(
    ("index", "name", "short"),
    [(0, "numpy", "np"), *long((1, "torch", "torch"))],
)
def test_line_of_code_makes_each_named_mask_and_random_ones(paint, index, name, short):
    module = pytest.importorskip(name)
    random = random_states(60)
    arrays = [mask_of(kind, T, align) ^ (reads == "hide") for kind, reads, align, T in NAMED]
    arrays += [state["mask"] for state in random]
    links = LINKED + [state_of(**state) for state in random]
    for mask, found in zip(arrays, shown(paint, *links), strict=True):
        np.testing.assert_array_equal(found["mask"], mask)
        line = found["code"][index].removeprefix("mask = ")
        made = eval(line, {short: module})
        assert str(made.dtype).endswith("bool")
        np.testing.assert_array_equal(np.asarray(made), mask)


@pytest.mark.long
def test_mask_with_a_name_is_shown_as_one_and_written_by_it(paint):
    for (kind, reads, align, T), found in zip(NAMED, shown(paint, *LINKED), strict=True):
        agrees(found, mask=mask_of(kind, T, align) ^ (reads == "hide"), reads=reads)
        assert kind.capitalize() in found["kinds"]
        assert not any("[[" in line for line in found["code"])  # by its name, not by its numbers


@pytest.mark.long
def test_fully_masked_rows_are_nan_as_by_pytorchs_own_steps(paint):
    torch = pytest.importorskip("torch")
    mask = causal_mask(5) & (np.arange(5) >= 2)
    [found] = shown(paint, state_of(mask, masked="nan"))
    agrees(found, mask, masked="nan")
    scores = torch.from_numpy(trace(X, EXAMPLE.params).scores)
    own = scores.masked_fill(~torch.from_numpy(mask), -torch.inf).softmax(dim=-1).numpy()
    for texts, head in zip(found["weights"], own, strict=True):
        np.testing.assert_array_equal(np.array(texts) == "NaN", np.isnan(head))
    assert np.isnan(own).any()


def test_question_stays_and_one_of_the_four_masks_leaks(paint):
    question = paint.get_by_text("Which of these four masks leaks?")
    paint.page.mouse.move(*middle(paint, 3, 1))
    assert question.is_visible()
    assert said(paint) == ""
    verdicts = []
    for i, (digits, reads, _) in enumerate(FOUR):
        paint.locator(".tl-gave").nth(i).click()
        [found] = shown(paint)
        agrees(found, unpacked(digits), reads)
        assert found["four"] == [i == j for j in range(4)]
        assert said(paint).startswith(f"Mask {'ABCD'[i]}, ")
        verdicts.append("It leaks, in 10 pairs: “dogs” changes by" in said(paint))
        assert verdicts[-1] != ("No leak: no output depends" in said(paint))
    assert verdicts == [False, False, True, False]
    assert question.is_visible()


def test_three_words_have_one_task_and_nothing_to_choose(show):
    paint = show(paint_mask("Tap a cell of *the mask*.").html).locator("tl-paint")
    assert paint.locator(".tl-ask").inner_text() == "Tap a cell of the mask."
    assert paint.get_by_role("button").all_inner_texts() == ["Reset"]
    agrees(shown(paint)[0], causal_mask(3))
    cell(paint, 0, 1).click()
    mask = causal_mask(3)
    mask[0, 1] = True
    agrees(shown(paint)[0], mask)
    assert said(paint).startswith("True: dogs may look at that. It leaks, in 1 pair: “dogs”")
    link = paint.get_by_role("link", name="Link to this mask")
    assert link.get_attribute("href") == "#paint=0&mask=667"
    press(paint, "Reset")
    agrees(shown(paint, "mask=667")[0], mask)
    paint.page.evaluate(SET, "#paint=0&mask=12")
    paint.page.get_by_text("mask is “12”; expected 3 digits, 0 to 7 for each query.").wait_for()


@pytest.mark.long
def test_same_array_read_the_other_way_and_alignments_sizes_and_masked_rows(paint):
    press(paint, "True means look")
    [found] = shown(paint)
    agrees(found, causal_mask(5), "hide")
    assert said(paint).startswith("The same array, and now True means hide. It leaks, in 10 pairs")
    assert said(paint).endswith("“sleep” is fully masked: zeros.")
    press(paint, "masked rows: zeros")
    agrees(shown(paint)[0], causal_mask(5), "hide", masked="nan")
    assert said(paint).endswith("“sleep” is fully masked: NaN.")
    press(paint, "Reset")
    agrees(shown(paint)[0], causal_mask(5))
    press(paint, "align bottom-right")
    assert "both alignments are one" in said(paint)
    press(paint, "5 queries")
    agrees(shown(paint)[0], mask_of("causal", 3, "top-left"))
    assert said(paint).endswith("“bark”, “cats” and “sleep” do not see themselves.")
    press(paint, "align top-left")
    agrees(shown(paint)[0], causal_mask(3, 5))
    press(paint, "Window")
    agrees(shown(paint)[0], mask_of("window", 3, "bottom-right"))
    cell(paint, 2, 4).click()  # a painted mask keeps its cells
    press(paint, "align bottom-right")
    mask = mask_of("window", 3, "bottom-right")
    mask[0, 4] = True
    agrees(shown(paint)[0], mask)
    assert "a painted mask keeps its cells" in said(paint)


def test_click_stroke_and_keys_paint_and_a_cell_tells_its_numbers(paint):
    page, mask = paint.page, causal_mask(5)
    cell(paint, 2, 4).click()
    mask[2, 4] = True
    agrees(shown(paint)[0], mask)
    by = changes(mask)[2, 4]
    change = f"“bark” changes by {by:.2f} when a later token, “sleep”, is replaced."
    leak = f"It leaks, in 1 pair: {change}"
    assert said(paint) == f"True: bark may look at sleep. {leak}"
    page.mouse.move(*middle(paint, 4, 0))
    page.mouse.down()
    page.mouse.move(*middle(paint, 4, 4))  # begun on a full pair, a stroke takes away
    page.mouse.up()
    mask[4] = False
    agrees(shown(paint)[0], mask)
    cell(paint, 2, 4).focus()
    page.keyboard.press("Space")
    mask[2, 4] = False
    agrees(shown(paint)[0], mask)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    weights, by = library(mask)[0][:, 2, 2], changes(mask)[2, 2]
    texts = " and ".join(str(Fraction(w).limit_denominator(99)) for w in weights)
    assert said(paint) == (
        f"bark at bark: True, may look; weights {texts}; the output of bark changes by {by:.2f} "
        "when bark is replaced."
    )


def test_worked_by_keys_only(paint):
    keyboard = paint.page.keyboard
    for key in ("Tab", "ArrowRight", "ArrowRight", "Enter"):
        keyboard.press(key)
    agrees(shown(paint)[0], causal_mask(5), "hide")
    for key in ("ArrowRight", "Space", *["Tab"] * 11):
        keyboard.press(key)
    label = paint.page.evaluate("() => document.activeElement.ariaLabel")
    assert label == "bark at dogs: True, may look"  # the first row that is shown
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    mask = causal_mask(3, 5)
    mask[0, 0] = False
    agrees(shown(paint)[0], mask)


@pytest.mark.long
def test_lines_are_copied_and_where_that_is_refused_selected(paint):
    page = paint.page
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { kept = text; }; }")
    paint.get_by_role("button", name="Copy").first.click()
    page.get_by_text("The line is copied.").wait_for()
    assert page.evaluate("() => kept") == "mask = np.tri(5, dtype=bool)"
    page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error(); }; }")
    paint.get_by_role("button", name="Copy").last.click()
    page.get_by_text("The line is selected: copy it.").wait_for()
    line = "mask = torch.ones(5, 5, dtype=torch.bool).tril()"
    assert page.evaluate("() => `${getSelection()}`") == line


@pytest.mark.long
def test_finger_taps_and_paints_sideways_and_scrolls_up_and_down(show):
    space = '<div style="height: 1200px"></div>'
    page = show(paint_mask().html, space, **PHONE)
    paint = page.locator("tl-paint")
    cell(paint, 1, 3).scroll_into_view_if_needed()
    cell(paint, 1, 3).tap()
    mask = causal_mask(5)
    mask[1, 3] = True
    agrees(shown(paint)[0], mask)
    top = page.evaluate("() => scrollY")
    swipe(paint, (0, 1), (0, 4))
    mask[0, 1:] = True
    agrees(shown(paint)[0], mask)
    assert page.evaluate("() => scrollY") == top
    swipe(paint, (4, 0), (0, 0))
    page.wait_for_function(f"() => scrollY > {top} + 50")
    agrees(shown(paint)[0], mask)
    sizes = "(all) => Math.min(...all.map((e) => Math.min(e.offsetWidth, e.offsetHeight)))"
    targets = "button:visible, .tl-gave, [role=grid] tbody td"
    assert paint.locator(targets).evaluate_all(sizes) >= 44


@pytest.mark.long
def test_answers_at_once(paint, browser):
    page = paint.page
    with recorded(browser) as events:
        for i in range(4):
            paint.locator(".tl-gave").nth(i).click()
        press(paint, "Packed")
        page.mouse.move(*middle(paint, 2, 0))
        page.mouse.down()
        for t in (2, 3, 4):
            page.mouse.move(*middle(paint, t, 4 - t % 2 * 4))
        page.mouse.up()
        do_references(page)
    assert largest_task(events) <= BUDGETS["answer"]


SHOWING = [page for page in pages() if "paint_mask()" in page.path.read_text(encoding="utf-8")]
CLAIMS = {  # what the sentence around a link says of what may be looked at
    "attends only to later tokens": lambda looks: (looks == np.triu(np.ones((5, 5)), k=1)).all(),
    "two `<pad>` tokens before three real ones": lambda looks: (
        not looks[:2].any() and looks[2:].any(axis=1).all()
    ),
}


def test_mask_of_a_link_in_the_chapter_is_what_its_sentence_says(paint):
    source = "".join(page.path.read_text(encoding="utf-8") for page in SHOWING)
    links = dict(re.findall(r"\[([^][]+)\]\(#paint=0&([^)]+)\)", source))
    assert set(links) == set(CLAIMS)
    for words, state in links.items():
        [found] = shown(paint, state)
        looks = np.array(found["mask"]) ^ ("true=hide" in state)
        assert found["accepted"] is True
        assert CLAIMS[words](looks), words
