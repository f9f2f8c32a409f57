"""Quiz, prediction and Parsons problem in Chromium: by mouse, keys, touch, and with no script."""

import re

import pytest

from tests.chapters.pages import kind_of
from tests.elements.sample_bank import CHAPTER, sample_bank
from tests.site.browsing import CONTRAST, PHONE, RECALL, draw_finger, focused, quiet
from tutorial_lib import records
from tutorial_lib.elements.parsons.element import draw_parsons, shuffled
from tutorial_lib.elements.prediction.element import draw_prediction
from tutorial_lib.elements.quiz.element import draw_quiz

FAINTEST_BORDER = f"""() => {{{CONTRAST}
  const paper = getComputedStyle(document.body).backgroundColor;
  const controls = [...document.querySelectorAll(".tl button, .tl [type=text]")];
  const borders = controls.map((e) => getComputedStyle(e).borderTopColor);
  return Math.min(...borders.map((border) => contrast(light(paper, border), light(paper))));
}}"""
ANSWER_ALL = """() => [...document.querySelectorAll("tl-quiz fieldset")].map((question) => {
  question.querySelector("[type=radio]").click();
  question.querySelector("button").click();
  return [...question.querySelectorAll("[aria-live]")].map((e) => e.textContent).join("").trim();
})"""
OUTPUT = '<details class="hide below-input"><summary>Show</summary><pre>output {}</pre></details>'
INPUT = '<details class="hide above-input"><summary>Show</summary><pre>source</pre></details>'


def bank_html(name, bank=None):
    """The HTML of one element of the sample bank: "quiz", "parsons", or a prediction's number."""
    bank = bank or sample_bank()
    if isinstance(name, int):
        return draw_prediction(bank, CHAPTER, name).html
    return {"quiz": draw_quiz, "parsons": draw_parsons}[name](bank, CHAPTER).html


def everything():
    """All elements of the sample bank as a page has them, each prediction with its output."""
    pieces = [INPUT]
    for i in (1, 2, 3):
        pieces += [bank_html(i), OUTPUT.format(i)]
    return [*pieces, bank_html("parsons"), bank_html("quiz")]


def opened(page):
    """Which hidden parts of the page are open."""
    return page.locator("details.hide").evaluate_all("all => all.map(d => d.open)")


def told(box):
    """What the live regions of an element say, those that say something."""
    return [text.strip() for text in box.locator("[aria-live]").all_inner_texts() if text.strip()]


def test_reason_stands_beside_the_chosen_option_alone(show):
    question = show(bank_html("quiz")).locator("fieldset").nth(1)
    question.get_by_label("row 0 of X").check()
    question.get_by_role("button", name="Check").click()
    [reason] = told(question)
    assert reason == "✗ Not this one. W_Q is learned and knows no token. From chapter 02."
    beside = question.locator("div", has=question.page.get_by_label("row 0 of X"))
    assert reason in beside.locator("[aria-live=polite]").inner_text()
    question.get_by_label("one head's matrix").check()
    question.get_by_role("button", name="Check").click()
    assert told(question) == ["✓ Right. The head axis comes first in W_Q. From chapter 02."]


def test_score_counts_first_tries(show):
    page = show(bank_html("quiz"))
    rights = [0, 2, 0, 1, 2]
    for i, right in enumerate(rights):
        question = page.locator("fieldset").nth(i)
        for pick in [right] if i != 1 else [0, right]:
            question.get_by_role("radio").nth(pick).check()
            question.get_by_role("button").click()
        score = page.locator("tl-quiz > p").inner_text()
        said = f"{i + 1} of 5 answered." if i < 4 else "4 of 5 right at the first try. Read again: "
        assert score.startswith(said)


def test_question_without_a_choice_asks_for_one(show):
    page = show(bank_html("quiz"))
    page.get_by_role("button", name="Check").first.click()
    assert told(page.locator("tl-quiz")) == ["Choose an answer first."]
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Check").first.click()
    assert told(page.locator("fieldset").first) == ["✓ Right. Each query shares out its attention."]


def test_quiz_by_keys(show):
    page = show(bank_html("quiz"))
    for key in ("Tab", "Space", "ArrowDown"):
        page.keyboard.press(key)
    assert told(page.locator("tl-quiz")) == []  # an arrow chooses; it does not answer
    page.keyboard.press("Tab")
    assert focused(page) == "Check"
    page.keyboard.press("Enter")
    assert told(page.locator("fieldset").first) == ["✗ Not this one. Then columns would sum to 1."]
    assert focused(page) == "Check"


def test_commitment_opens_the_next_output_and_no_other(show):
    page = show(*everything())
    choice = page.locator(".tl-predict").nth(0)
    choice.get_by_role("radio").nth(0).check()
    assert opened(page) == [False] * 4
    choice.get_by_role("button", name="Commit").click()
    assert opened(page) == [False, True, False, False]
    assert told(choice) == [
        "✗ Not this one. That is the table of one head; the head axis stays in front.",
        "The output below is open.",
    ]


def test_show_me_opens_the_output_without_a_commitment(show):
    page = show(*everything())
    for i in (1, 0):
        page.locator(".tl-predict").nth(i).get_by_role("button", name="Show me").click()
        assert told(page.locator(".tl-predict").nth(i)) == ["The output below is open."]
    assert opened(page) == [False, True, True, False]


def test_prediction_never_opens_what_belongs_to_another(show):
    page = show(bank_html(1), bank_html(2), OUTPUT.format(2))
    page.get_by_role("button", name="Show me").first.click()
    assert opened(page) == [False]
    assert told(page.locator(".tl-predict").first) == ["Now run the next cell."]


def test_prediction_opens_all_outputs_of_its_answer_and_none_behind_a_heading(show):
    page = show(bank_html(1), OUTPUT.format(1), OUTPUT.format(2), "<h3>Next</h3>", OUTPUT.format(3))
    page.get_by_role("button", name="Show me").click()
    assert opened(page) == [True, True, False]


def test_prediction_opens_a_closed_output_of_jupyterlab(show):
    placeholder = (
        '<div class="jp-OutputPlaceholder">'
        '<div class="jp-Placeholder-content" onclick="this.dataset.clicked = 1">'
        '<span class="jp-PlaceholderText">the answer</span> •••</div></div>'
    )
    page = show('<div class="jp-Notebook">', bank_html(1), placeholder, "</div>")
    assert not page.get_by_text("the answer").is_visible()
    page.get_by_role("button", name="Show me").click()
    assert page.locator(".jp-Placeholder-content[data-clicked]").count() == 1


SHARE, COUNT = 2, 3
NUMBERS = {
    "a fraction": (SHARE, "4/7", "✓ Right. 2 of 2 + ½ + 1."),
    "spaces": (SHARE, " 4 / 7 ", "✓ Right. 2 of 2 + ½ + 1."),
    "a fraction slash": (SHARE, "4⁄7", "✓ Right. 2 of 2 + ½ + 1."),
    "an equal fraction": (SHARE, "8/14", "✓ Right. 2 of 2 + ½ + 1."),
    "a decimal": (SHARE, "0.571", "✓ Right. 2 of 2 + ½ + 1."),
    "a decimal comma": (SHARE, "0,571", "✓ Right. 2 of 2 + ½ + 1."),
    "no leading zero": (SHARE, ".57", "✓ Right. 2 of 2 + ½ + 1."),
    "too rough": (SHARE, "0.5", "✗ It is 4/7. 2 of 2 + ½ + 1."),
    "a known slip": (SHARE, "0,665", "✗ Not this one. You raised e instead of 2."),
    "a minus sign": (SHARE, "−0.571", "✗ It is 4/7. 2 of 2 + ½ + 1."),
    "per cent": (SHARE, "57%", "✓ Right. 2 of 2 + ½ + 1."),
    "per cent behind a space": (SHARE, "57,1 %", "✓ Right. 2 of 2 + ½ + 1."),
    "a power of ten": (SHARE, "5.7e-1", "✓ Right. 2 of 2 + ½ + 1."),
    "a power of ten with a minus sign": (SHARE, "57E−2", "✓ Right. 2 of 2 + ½ + 1."),
    "a division sign": (SHARE, "4÷7", "✓ Right. 2 of 2 + ½ + 1."),
    "one character": (SHARE, "½", "✗ It is 4/7. 2 of 2 + ½ + 1."),
    "two decimals are no thousands": (COUNT, "30,72", "✗ It is 3072. 4 heads of 3 matrices."),
    "thousands": (COUNT, "3072", "✓ Right. 4 heads of 3 matrices."),
    "a comma in thousands": (COUNT, "3,072", "✓ Right. 4 heads of 3 matrices."),
    "a space in thousands": (COUNT, "3 072", "✓ Right. 4 heads of 3 matrices."),
    "thousands as a power of ten": (COUNT, "3.072e3", "✓ Right. 4 heads of 3 matrices."),
    "a whole number and a fraction": (COUNT, "3071 2/2", "✓ Right. 4 heads of 3 matrices."),
    "a known slip in thousands": (COUNT, "768", "✗ Not this one. That is one head's share."),
}


def test_number_is_read_as_people_write_it(show):
    page = show(bank_html(SHARE), OUTPUT.format(1), bank_html(COUNT))
    answers = {}
    for name, (number, typed, _) in NUMBERS.items():
        box = page.locator(".tl-predict").nth(number - SHARE)
        box.get_by_role("textbox").fill("")
        box.get_by_role("textbox").focus()
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        answers[name] = told(box)[0]
    expected = {name: answer for name, (*_, answer) in NUMBERS.items()}
    assert answers == expected
    assert opened(page) == [True]


def test_what_is_no_number_is_kept_and_commits_to_nothing(show):
    page = show(bank_html(SHARE), OUTPUT.format(1))
    field = page.get_by_role("textbox")
    commit = page.get_by_role("button", name="Commit")
    refused = ("", " ", "four", "4/", "/7", "4/0", "%", "57%%", "12abc", "1e", "1e400", "∞", "10²")
    for typed in (*refused, "1/2/3", "1.2.3", "."):
        field.fill(typed)
        commit.click()
        said = told(page.locator(".tl-predict"))
        assert said == ["Please write a number, such as 12, 0.25 or 1/4."], typed
        assert field.input_value() == typed
        assert field.get_attribute("aria-invalid") == "true"
    assert opened(page) == [False]
    field.fill("4/7")
    commit.click()
    assert field.get_attribute("aria-invalid") == "false"
    assert opened(page) == [True]


def lines(page, which):
    """The lines in the list to choose from ("ul") or in the reader's program ("ol")."""
    return page.locator(f"tl-parsons {which} code").all_inner_texts()


def take(page, *wanted):
    """Add lines to the program."""
    for line in wanted:
        page.get_by_role("button", name=f"Add: {line.strip()}", exact=True).click()


def check(page):
    """Press the button, read the verdict."""
    page.locator("tl-parsons").get_by_role("button", name="Check").click()
    return told(page.locator("tl-parsons"))[0]


PROBLEM = sample_bank()["parsons"]
SOLUTION = PROBLEM["lines"]
BUG = PROBLEM["distractors"][0]["line"]


def test_first_line_out_of_place_is_named(show):
    page = show(bank_html("parsons"))
    take(page, SOLUTION[0], SOLUTION[2], SOLUTION[1])
    assert check(page) == "✗ Not yet. Line 2 is the first out of place. 1 line is missing."
    assert page.locator("[data-wrong] code").all_inner_texts() == [SOLUTION[2]]
    frames = page.locator("ol li").evaluate_all("a => a.map(e => getComputedStyle(e).borderWidth)")
    assert frames == ["1px", "2px", "1px"]
    page.get_by_role("button", name=f"Move up: {SOLUTION[1].strip()}").click()
    assert page.locator("[data-wrong]").count() == 0
    page.locator("tl-parsons").evaluate(
        RECALL, {"program": SOLUTION[1:3], "pool": [], "checked": 1}
    )
    assert page.locator("[data-wrong]").count() == 1
    page.locator("tl-parsons").evaluate(RECALL, {"program": SOLUTION[:3], "pool": []})
    assert page.locator("[data-wrong]").count() == 0
    take(page, SOLUTION[3])
    assert check(page) == "✓ Right. Every line is in its place."


def test_parsons_by_keys_alone(show):
    page = show(bank_html("parsons"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert focused(page).startswith("Add: ")  # the next line
    for _ in range(5):
        page.keyboard.press("Enter")
    assert lines(page, "ul") == []
    assert focused(page).startswith("Move up: ")  # of the last, as none is left beside it
    for place, line in enumerate(SOLUTION):
        up = page.get_by_role("button", name=f"Move up: {line.strip()}", exact=True)
        up.focus()
        for _ in range(lines(page, "ol").index(line) - place):
            page.keyboard.press("Enter")
            assert focused(page) == f"Move up: {line.strip()}"
        assert f"Line {place + 1} of 6" in told(page.locator("tl-parsons")) or place == 0
    for bug in PROBLEM["distractors"]:
        page.get_by_role("button", name=f"Take out: {bug['line'].strip()}", exact=True).focus()
        page.keyboard.press("Space")
        assert focused(page) == f"Add: {bug['line'].strip()}"
        assert told(page.locator("tl-parsons")) == ["Taken out"]
    assert lines(page, "ol") == SOLUTION
    page.get_by_role("button", name="Check").focus()
    page.keyboard.press("Enter")
    assert told(page.locator("tl-parsons"))[0] == "✓ Right. Every line is in its place."


def test_line_moves_down_but_the_first_not_up_and_the_last_not_down(show):
    page = show(bank_html("parsons"))
    take(page, *SOLUTION)
    page.get_by_role("button", name="Move up:").first.click()
    page.get_by_role("button", name="Move down:").last.click()
    assert lines(page, "ol") == SOLUTION
    page.get_by_role("button", name="Move down:").first.click()
    assert lines(page, "ol") == [SOLUTION[1], SOLUTION[0], *SOLUTION[2:]]


def test_parsons_by_touch(show):
    page = show(bank_html("parsons"), **PHONE)
    assert lines(page, "ul") == [line for line, *_ in shuffled(PROBLEM)]
    for line in SOLUTION:  # a tap anywhere on the line
        page.locator("tl-parsons ul code", has_text=re.compile(f"^{re.escape(line)}$")).tap()
    page.locator("tl-parsons ol code").first.tap()
    assert lines(page, "ol") == SOLUTION, "what is in the program stays in its place"
    page.get_by_role("button", name="Check").tap()
    assert told(page.locator("tl-parsons"))[0] == "✓ Right. Every line is in its place."


def middle(locator):
    """The middle of what a locator finds, on the screen."""
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def grip(page, line):
    """The handle of a line."""
    code = page.locator("code", has_text=re.compile(f"^{re.escape(line)}$"))
    return page.locator("tl-parsons li", has=code).locator(".tl-grip")


def drag(page, line, x, y):
    """Take a line by its handle and hold it over a place."""
    page.mouse.move(*middle(grip(page, line)))
    page.mouse.down()
    page.mouse.move(x, y, steps=4)


def edge(page, which, number, *, below=False):
    """A place at the upper or the lower half of a line in a list."""
    box = page.locator(f"tl-parsons {which} li").nth(number).bounding_box()
    return box["x"] + 40, box["y"] + box["height"] * (0.8 if below else 0.2)


def test_line_is_dragged_to_the_place_that_a_bar_shows(show):
    page = show(bank_html("parsons"))
    bar = page.locator(".tl-drop")
    take(page, SOLUTION[0], SOLUTION[2])
    check(page)
    drag(page, SOLUTION[1], *edge(page, "ol", 1))
    assert bar.is_visible()
    assert abs(middle(bar)[1] - edge(page, "ol", 1)[1]) < 16
    assert lines(page, "ol") == [SOLUTION[0], SOLUTION[2]], "before it is dropped"
    page.mouse.up()
    assert not bar.is_visible()
    assert lines(page, "ol") == SOLUTION[:3]
    assert told(page.locator("tl-parsons")) == ["Line 2 of 3"], "the verdict is gone"
    drag(page, SOLUTION[3], *edge(page, "ol", 2, below=True))
    page.mouse.up()
    assert check(page) == "✓ Right. Every line is in its place."
    drag(page, SOLUTION[3], *edge(page, "ol", 0))
    page.mouse.up()
    assert lines(page, "ol") == [SOLUTION[3], *SOLUTION[:3]]
    drag(page, SOLUTION[3], *edge(page, "ol", 1, below=True))
    page.mouse.up()
    assert lines(page, "ol") == [SOLUTION[0], SOLUTION[3], *SOLUTION[1:3]]
    drag(page, SOLUTION[0], *edge(page, "ul", 0))
    page.mouse.up()
    assert lines(page, "ul")[0] == SOLUTION[0]
    assert told(page.locator("tl-parsons"))[-1] == "Taken out"


def test_page_scrolls_towards_the_edge_at_which_a_line_is_held(show):
    page = show(bank_html("parsons"), '<div style="height: 2000px"></div>')
    page.evaluate("() => scrollTo(0, 100)")
    drag(page, SOLUTION[0], 300, 20)
    above = page.evaluate("() => scrollY")
    page.mouse.move(300, 880)
    assert above < 100
    assert page.evaluate("() => scrollY") > above
    page.mouse.up()


@pytest.mark.long
def test_line_is_dragged_into_an_empty_program(show):
    page = show(bank_html("parsons"))
    drag(page, SOLUTION[0], *middle(page.locator("tl-parsons ol")))
    page.mouse.up()
    assert lines(page, "ol") == SOLUTION[:1]


def test_line_dropped_outside_or_where_it_was_changes_nothing(show):
    page = show(bank_html("parsons"))
    take(page, *SOLUTION[:2])
    verdict = check(page)
    page.evaluate("() => document.addEventListener('tl-work', () => { window.moved = true; })")
    before = lines(page, "ul"), lines(page, "ol")
    last = page.locator("tl-parsons").bounding_box()
    outside = 790, last["y"] + last["height"] + 90
    for line, place in ((0, outside), (1, edge(page, "ol", 1, below=True))):
        drag(page, SOLUTION[line], *place)
        page.mouse.up()
        assert (lines(page, "ul"), lines(page, "ol")) == before
        assert page.locator("[data-dragged], [data-dragging], .tl-drop:visible").count() == 0
    page.mouse.move(*edge(page, "ol", 0))  # no button is down
    assert not page.locator(".tl-drop").is_visible()
    assert told(page.locator("tl-parsons"))[0] == verdict
    assert page.evaluate("() => window.moved") is None


def test_finger_drags_a_line_by_its_handle_and_scrolls_beside_it(show):
    page = show(bank_html("parsons"), '<div style="height: 2000px"></div>', **PHONE)
    take(page, SOLUTION[0], SOLUTION[2])
    page.evaluate("() => scrollTo(0, 0)")
    draw_finger(page, middle(grip(page, SOLUTION[1])), edge(page, "ol", 1))
    assert lines(page, "ol") == SOLUTION[:3]
    before = lines(page, "ul"), lines(page, "ol")
    code = page.locator("tl-parsons ol code").first
    x, y = middle(code)
    draw_finger(page, (x, y), (x, y - 250))
    page.wait_for_function("() => scrollY > 100")
    assert (lines(page, "ul"), lines(page, "ol")) == before
    page.evaluate("() => scrollTo(0, 0)")
    draw_finger(page, middle(grip(page, SOLUTION[3])), edge(page, "ol", 1), then="touchCancel")
    assert (lines(page, "ul"), lines(page, "ol")) == before
    assert page.locator("[data-dragged], [data-dragging], .tl-drop:visible").count() == 0


def test_every_element_of_a_page_wakes_though_scripts_repeat(show):
    page = show(*everything(), *everything())
    assert page.locator("script").count() == 10
    assert page.locator(".tl-row:visible").count() == 18
    assert page.locator(".tl details:visible").count() == 0
    assert page.locator("tl-parsons li").count() == 12


def test_element_that_connects_before_its_children_are_read_wakes_too(show):
    html = "".join(everything())
    scripts = re.findall(r"<script>.*?</script>", html, re.S)
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    page = show(body, head="".join(scripts))  # as when a build folds them into one file
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Commit").first.click()
    assert opened(page) == [False, True, False, False]
    assert page.locator("tl-parsons li").count() == 6


def test_element_that_moves_on_the_page_keeps_what_was_done(show):
    page = show(bank_html("parsons"))
    take(page, SOLUTION[0])
    page.locator("tl-parsons").evaluate("e => e.parentNode.prepend(e)")
    assert lines(page, "ol") == [SOLUTION[0]]
    assert len(lines(page, "ul")) == 5
    take(page, *SOLUTION[1:])
    assert check(page) == "✓ Right. Every line is in its place."


def test_page_without_scripts_asks_and_answers(show):
    page = show(*everything(), java_script_enabled=False)
    assert page.locator("button:visible").count() == 0
    assert page.get_by_text("Your program").count() == 1
    assert not page.get_by_text("Your program").is_visible()
    assert page.get_by_role("radio").count() == 18
    reason = page.get_by_text("The division does that.")
    assert not reason.is_visible()
    page.locator("tl-quiz summary").nth(3).click()
    assert reason.is_visible()
    page.locator("tl-parsons summary").click()
    assert page.locator("tl-parsons pre").nth(1).inner_text() == "\n".join(SOLUTION)


def test_borders_of_controls_stand_out_in_each_mode(show, mode):
    assert show(*everything(), mode=mode).evaluate(FAINTEST_BORDER) >= 3


def test_focus_is_visible(show):
    page = show(*everything())
    for control in page.locator(".tl button:visible, .tl input:visible").all():
        control.focus()
        page.keyboard.press("Shift")  # focus by keys, not by a click
        width = control.evaluate("e => getComputedStyle(e).outlineWidth")
        assert width == "3px"


@pytest.fixture(scope="module")
def shared(visit, notebook):
    """One page, in turn for each of the tests below."""
    with quiet(visit(f"notebooks/{notebook}.html")) as page:
        yield page


def test_outputs_to_be_predicted_are_closed_and_open_by_keyboard(shared, notebook):
    hidden = shared.locator("div.cell.tag_hide-output > details")
    assert not any(opened(shared))
    for details in hidden.all()[:1]:
        details.locator("summary").first.focus()
        for shown in (True, False):
            shared.keyboard.press("Enter")
            assert details.locator(".cell_output").first.is_visible() == shown


def test_each_prediction_of_a_page_opens_the_output_of_its_cell(shared, notebook):
    boxes = shared.locator(".tl-predict")
    assert boxes.count() == len(records.question_bank(notebook)["predictions"])
    before = opened(shared)
    for i, box in enumerate(boxes.all(), start=1):
        asked = shared.locator("div.cell").filter(has=shared.locator(f"[id$=-prediction-{i}]"))
        cell = asked.locator("xpath=following-sibling::div[1]")
        assert cell.locator("details.below-input:not([open])").count() == 1
        box.get_by_role("button", name="Show me").click()
        assert cell.locator("details.below-input[open]").count() == 1
    answers = shared.locator("details.below-input").count()
    assert answers >= boxes.count()
    assert sum(opened(shared)) == sum(before) + answers


def test_each_question_of_a_page_answers(shared, notebook):
    answers = shared.evaluate(ANSWER_ALL)
    assert len(answers) == kind_of(notebook).questions
    for reason in answers:
        assert re.match(r"(✓ Right|✗ Not this one)\. \w", reason)


def test_right_order_of_a_pages_own_problem_is_accepted(shared, notebook):
    problems = shared.locator("tl-parsons")
    assert problems.count() == kind_of(notebook).puzzles
    for problem in problems.all():
        take(shared, *problem.locator("details pre").text_content().split("\n"))
        assert check(shared) == "✓ Right. Every line is in its place."
