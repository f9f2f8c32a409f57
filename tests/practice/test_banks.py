"""What every bank keeps to: counts, sources, options that give nothing away, its own page."""

import ast
import json
import re
from collections import Counter
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise

import pytest

from tests.chapters.anatomy import headings
from tests.chapters.pages import NAMES, QUESTIONS_A_CHAPTER, advises, kind_of, listed, written
from tests.elements.sample_bank import CHAPTER, REVIEW, sample_bank, sample_review
from tests.practice.rooms import ROOMS
from tools.chapters import page, pages, section_of
from tutorial_lib import records
from tutorial_lib.elements.banks import check_bank

BANKS = {name: records.question_bank(name) for name in ROOMS}
REVIEWS = [page.name for page in pages() if page.closes]
SHOWN = ("prediction", "parsons", "quiz")
AT_ONE_PLACE, LONGEST = 0.4, 0.6  # the largest shares of right options
ALIKE = 0.8  # two questions as similar as that are one


def texts(value):
    """Every text of a bank that a reader sees."""
    if isinstance(value, dict):
        hidden = ("from", "computed", "line", "lines", "answer", "value")
        return [t for key, v in value.items() if key not in hidden for t in texts(v)]
    if isinstance(value, list):
        return [t for entry in value for t in texts(entry)]
    return [value] if isinstance(value, str) else []


def complaints(bank, chapter):
    """Every rule of the book that a bank breaks; or the first fault of its form."""
    try:
        check_bank(bank, chapter)
    except ValueError as error:
        return [f"correct its form: {error}"]
    from_where = review_sources if chapter in REVIEWS else sources
    return [
        *count(bank, kind_of(chapter)),
        *from_where(bank, chapter),
        *giveaways(bank),
        *wording(bank),
    ]


def count(bank, kind):
    """As many elements as a page of the kind has; three to five options, two bugs."""
    puzzles = [bank["parsons"]] if bank["parsons"] else []
    for what, entries, wanted in [
        ('"predictions"', bank["predictions"], kind.predictions),
        ('"quiz"', bank["quiz"], kind.questions),
        ('"parsons"', puzzles, kind.puzzles),
    ]:
        surplus = 0 if wanted is None else len(entries) - wanted
        if surplus:
            edit = "remove" if surplus > 0 else "add"
            yield f"{what} has {len(entries)}, such a page has {wanted}: {edit} {abs(surplus)}"
    for question in [*bank["predictions"], *bank["quiz"]]:
        if not 3 <= len(question.get("options", [1, 2, 3])) <= 5:
            yield f"write three to five options, not {len(question['options'])}{of(question)}"
        if not question.get("near", ["one"]):
            yield f'write a wrong number and its reason into "near"{of(question)}'
    if bank["parsons"] and len(bank["parsons"]["distractors"]) < 2:
        yield 'write a second line with a bug into "distractors" of the puzzle'


def of(question):
    """The end of a sentence that says which question is meant."""
    return f", in: {question['question']}"


def sources(bank, chapter):
    """Two questions from earlier chapters, where there are any."""
    named = [question["from"] for question in bank["quiz"] if question["from"]]
    earlier = NAMES[: NAMES.index(chapter)]
    if len(named) != (2 if earlier else 0):
        asked = 2 if earlier else 0
        yield f'let {asked} questions, not {len(named)}, name an earlier chapter in "from"'
    yield from later(named, earlier)


def later(named, earlier):
    """The sources of questions that no reader of the page has met."""
    for name in named:
        if name not in earlier:
            yield f'{name} is no earlier chapter: change "from", or exchange the question'


def review_sources(bank, review):
    """Two questions from each chapter that the review closes, some back, in a mixed order."""
    named, closed = [question["from"] for question in bank["quiz"]], page(review).closes
    own = [name for name in named if name in closed]
    if Counter(own) != Counter(dict.fromkeys(closed, QUESTIONS_A_CHAPTER)):
        counts, wanted = dict(Counter(own)), QUESTIONS_A_CHAPTER
        yield f"exchange some questions: they are from {counts}, not {wanted} from each chapter"
    yield from later(named, [*NAMES[: NAMES.index(closed[0])], *closed])
    if any(one == following for one, following in pairwise(named)):
        yield f"two neighbours are from one chapter: change the order of {named}"


def repeats(bank, others):
    """Name the questions of a bank that another bank asks too, or nearly."""
    for question in bank["quiz"]:
        for other in others:
            if are_alike(question, other):
                yield f"ask something else than another page does{of(question)}"


def are_alike(one, other):
    """Whether two questions nearly say the same: their texts, or their options."""
    texts = [
        (q["question"], " ".join(sorted(o["text"] for o in q["options"]))) for q in (one, other)
    ]
    return any(
        matcher.real_quick_ratio() >= ALIKE  # each of the three is at least the next one
        and matcher.quick_ratio() >= ALIKE
        and matcher.ratio() >= ALIKE
        for matcher in (SequenceMatcher(None, *pair) for pair in zip(*texts, strict=True))
    )


def lost(questions, titles):
    """Name the questions whose heading to read again is none of the titles of its page."""
    for bank, question in questions:
        if question["read"] not in titles:
            where = f"the bank of {bank}{of(question)}"
            yield f'"read": {question["read"]!r} is no heading of its page: correct it in {where}'


def giveaways(bank):
    """The right option is not found by its place or its length."""
    rights = []
    for question in bank["quiz"]:
        lengths = [len(option["text"]) for option in question["options"]]
        right = [option["correct"] for option in question["options"]].index(True)
        rest = lengths[:right] + lengths[right + 1 :]
        rights.append((right, lengths[right] > max(rest), lengths[right] < min(rest)))
    places, longest, shortest = zip(*rights, strict=True)
    if max(Counter(places).values()) > AT_ONE_PLACE * len(rights):
        yield f"the right option is too often at one place, {places}: move some, from 0"
    if max(sum(longest), sum(shortest)) > LONGEST * len(rights):
        told = "the right option is too often the longest or the shortest"
        yield f"{told}: change the length of some other option"


def wording(bank):
    """Reasons that say something, each its own, in the only markup there is."""
    for question in [*bank["predictions"], *bank["quiz"]]:
        whys = [r["why"] for r in [*question.get("options", []), *question.get("near", [])]]
        if len(set(whys)) < len(whys):
            yield f"write one reason for each option, not one for two{of(question)}"
    for text in texts(bank):
        if (
            re.search(r"\*\*|\$|\]\((http|#|\.)|</?(a|b|br|i|em|code|sub|sup)\b|\\", text)
            or text.count("`") % 2
        ):
            yield f"write no markup other than `code` and *emphasis*, in: {text}"
        if re.search(r"\b(simply|just|obviously|of course)\b", text, re.I):
            yield f"leave out a word that we do not use, in: {text}"
    whys = [entry["why"] for entry in every(bank) if "why" in entry]
    yield from (
        f"write a reason in place of one that explains nothing: {why}"
        for why in whys
        if len(why) < 15
    )


def every(value):
    """Every object of a bank, however deep."""
    if isinstance(value, dict):
        yield value
    for entry in value.values() if isinstance(value, dict) else value:
        if isinstance(entry, (dict, list)):
            yield from every(entry)


def calls(notebook):
    """Each cell that shows an element: its place, the function, its arguments, the cell."""
    for i, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or not re.search(rf"\b({'|'.join(SHOWN)})\(", source):
            continue
        expression = ast.parse(source).body[-1].value
        yield i, expression.func.id, [argument.value for argument in expression.args], cell


def display_complaints(notebook, chapter):
    """Every way in which a chapter does not show exactly its own elements."""
    found = list(calls(notebook))
    shown = Counter((name, *arguments) for _, name, arguments, _ in found)
    kind = kind_of(chapter)
    wanted = [("prediction", chapter, n + 1) for n in range(len(BANKS[chapter]["predictions"]))]
    wanted += [("parsons", chapter)] * kind.puzzles + [("quiz", chapter)]
    for edit, left in [("add", Counter(wanted) - shown), ("remove", shown - Counter(wanted))]:
        for name, *arguments in left.elements():
            yield f"{edit} a cell with {name}({json.dumps(arguments)[1:-1]})"
    order = [arguments[1] for _, name, arguments, _ in found if name == "prediction"]
    if order != sorted(order):
        yield f"order the predictions by their numbers, not {order}"
    for i, name, _, cell in found:
        if "\n" in "".join(cell["source"]).strip():
            yield f"leave nothing in cell {i} but the line that shows the element"
        if "remove-input" not in cell["metadata"].get("tags", []):
            yield f"give cell {i} the tag remove-input, or its call is visible on the page"
        after = notebook["cells"][i + 1]["metadata"]
        closed = "hide-output" in after.get("tags", []) and after.get("jupyter", {}).get(
            "outputs_hidden"
        )
        if name == "prediction" and not closed:
            yield f"give cell {i + 1} the tag hide-output, or it gives the prediction away"


@pytest.mark.parametrize("chapter", BANKS)
def test_bank_keeps_the_rules(chapter):
    told = complaints(BANKS[chapter], chapter)
    assert not told, f"in the bank of {chapter}:{listed(told, chapter)}"


@pytest.mark.parametrize("chapter", NAMES)
def test_chapter_shows_exactly_its_own_elements(chapter):
    told = list(display_complaints(written(chapter), chapter))
    assert not told, listed(told, chapter)


@pytest.mark.parametrize("chapter", NAMES)
def test_no_review_asks_what_another_page_asks(chapter):
    reviews = [q for page in REVIEWS if page != chapter for q in BANKS[page]["quiz"]]
    told = list(repeats(BANKS[chapter], reviews))
    assert not told, f"in the bank of {chapter}, or of the review:{listed(told, chapter)}"


@pytest.mark.parametrize("chapter", NAMES)
def test_what_is_to_be_read_again_is_a_heading_of_its_page(chapter):
    asked = [(name, q) for name, bank in BANKS.items() for q in bank["quiz"]]
    here = [(name, q) for name, q in asked if (q["from"] or name) == chapter]
    told = list(lost(here, titles(chapter)))
    for name, question in asked:  # those of its own bank about other pages
        if name == chapter and question["from"]:
            told += lost([(name, question)], titles(question["from"]))
    assert not told, listed(told, chapter)


@cache
def titles(chapter):
    """The headings of a page that a link leads to."""
    texts = [cell.source for cell in written(chapter).cells if cell.cell_type == "markdown"]
    return {section_of(title) for t in texts for level, title in headings(t) if level in (2, 3)}


def test_right_option_is_not_the_longest_in_half_of_all_questions():
    questions = [question for bank in BANKS.values() for question in bank["quiz"]]
    longest = [max(q["options"], key=lambda o: len(o["text"]))["correct"] for q in questions]
    most = len(longest) // 2
    assert sum(longest) <= most, (
        f"in {sum(longest)} of {len(longest)} questions of all banks the right option is the "
        f"longest, in {most} it may be: shorten it, or write a longer wrong one, in the new ones"
    )


def test_sample_banks_keep_the_rules():
    assert complaints(sample_bank(), CHAPTER) == []
    assert complaints(sample_review(), REVIEW) == []


def shuffle_right_first(bank):
    for question in bank["quiz"]:
        question["options"].sort(key=lambda option: not option["correct"])


def make_right_longest(bank):
    for question in bank["quiz"]:
        for given in question["options"]:
            given["text"] += ", and so on, and so on" * given["correct"]


BROKEN = [
    (lambda b: b["quiz"][0].update(form="a"), "correct its form: bank"),
    (lambda b: b["quiz"].pop(0), "has 4, such a page has 5: add 1"),
    (lambda b: b["quiz"][0]["options"].pop(), "three to five options, not 2"),
    (lambda b: b["quiz"][1].update({"from": CHAPTER}), "no earlier chapter"),
    (shuffle_right_first, "at one place"),
    (make_right_longest, "the longest or the shortest"),
    (lambda b: b["quiz"][0].update(question="What is $d_k$?"), "no markup other"),
    (lambda b: b["predictions"][1].update(why="No."), "one that explains nothing"),
]
REVIEW_BROKEN = [
    (lambda b: b["quiz"][0].update({"from": None}), "2 from each"),
    (lambda b: b["quiz"].sort(key=lambda question: question["from"]), "two neighbours"),
]
ALL_BROKEN = [(sample_bank, CHAPTER, *row) for row in BROKEN]
ALL_BROKEN += [(sample_review, REVIEW, *row) for row in REVIEW_BROKEN]


@pytest.mark.parametrize(("sample", "page", "change", "complaint"), ALL_BROKEN)
def test_broken_rule_is_told(sample, page, change, complaint):
    bank = sample()
    change(bank)
    found = complaints(bank, page)
    assert any(complaint in told for told in found), found
    assert all(map(advises, found)), found


def test_a_question_asked_again_is_told_even_in_other_words():
    asked, bank = sample_bank()["quiz"], sample_bank()
    bank["quiz"] = [{**asked[0], "question": "What sums to 1?"}]
    assert len(list(repeats(bank, asked))) == 1
    bank["quiz"] = [{**asked[0], "question": "Which is longer?", "options": asked[1]["options"]}]
    assert list(repeats(bank, asked[:1])) == []


def test_element_that_is_shown_wrongly_is_told():
    notebook = json.loads(page(CHAPTER).path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    assert list(display_complaints(notebook, CHAPTER)) == []
    at = next(i for i, name, *_ in calls(notebook) if name == "prediction")
    cells[at]["metadata"].clear()
    cells[at + 1]["metadata"].update(tags=[])
    cells.pop(max(i for i, *_ in calls(notebook)))
    told = "\n".join(display_complaints(notebook, CHAPTER))
    for complaint in (
        "add a cell with quiz(",
        "is visible on the page",
        "gives the prediction away",
    ):
        assert complaint in told
