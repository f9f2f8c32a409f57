"""Every number of a text is proved: by an equality, by what a comment names, or by an output."""

import json
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_notebook

from tests.chapters import named
from tests.chapters.equalities import false_equalities
from tests.chapters.named import (
    NAMESPACE,
    VALUES,
    module_of,
    values_of,
)
from tests.chapters.pages import NAMES, code_cells, listed, written
from tests.chapters.planted import code, stdout, text
from tests.chapters.prose_numbers import (
    COMMENT,
    Passage,
    chapter_passages,
    faults,
)
from tests.practice.rooms import ROOMS
from tools.chapters import ROOT
from tutorial_lib import records

PAGES = sorted((ROOT / "book").glob("*.md"))
ANSWERS = ROOT / "tests/practice/answers"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_a_chapter_are_proved(name):
    found = [fault for each in chapter_passages(name, written(name)) for fault in faults(each)]
    assert not found, listed(found, name)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_numbers_of_a_page_are_proved(path):
    said, given = path.read_text(encoding="utf-8"), ""
    if path.stem == "teaching_inventory":  # its numbers are those that its answers are made from
        given = (ANSWERS / "inventory.py").read_text(encoding="utf-8")
        before, asked, key = re.split(r"^(?=## The (?:questions|key)$)", said, flags=re.MULTILINE)
        said = before + re.sub(r"(?m)^\d\. .*", "", asked) + key  # a test computes the options
    passage = Passage(said, f"book/{path.name}", page=path.stem, given=given)
    assert not (found := faults(passage)), listed(found)


@pytest.mark.parametrize("page", ROOMS)
def test_numbers_of_a_bank_are_proved(page):
    found = [fault for each in bank_passages(page) for fault in faults(each)]
    assert not found, listed(found, page)


def bank_passages(page):
    """Yield what a bank claims: its questions, keyed options and reasons, with their comments."""
    room, cells = Path(ROOMS[page].__file__).parent, code_cells(written(page))
    bank = json.loads((room / "bank.json").read_text(encoding="utf-8"))
    for kind in ("predictions", "quiz"):
        for n, question in enumerate(bank.get(kind, []), start=1):
            options = question.get("options", []) + question.get("near", [])
            claims = [question["question"], question.get("why", "")]
            claims += [option["why"] for option in options]
            asked = f"{question['question']} {question.get('answer')}"
            if "computed" not in question:  # else tests compute with the question, and its key
                claims += [option["text"] for option in options if option.get("correct")]
                asked = ""
            for claim in claims:
                where = f"{room.name}/bank.json, {kind} {n}"
                yield Passage(claim, where, cells, page, cells, asked=asked)


@pytest.mark.parametrize("name", NAMES)
def test_equalities_of_shapes_in_the_code_hold(name):
    remarks = "\n".join(r for c in code_cells(written(name)) for r in re.findall("#.*", c.source))
    assert false_equalities(remarks) == []


HEADS = {"finds": lambda: "1.2", "copy": lambda: ["1.0", "1.3"]}


@pytest.mark.parametrize(
    ("prose", "told"),
    [
        ("Head 1.2<!-- = finds() --> and heads 1.3 and 1.0<!-- = copy() -->.", []),
        ("Head 1.2 has more than head 2.3<!-- of an example -->.", []),
        ("Head 1.3<!-- = finds() --> finds it.", ["the text names 1.3, but <!-- = finds() -->"]),
        ("Heads 1.0 and 1.2<!-- = copy() -->.", ["the text names 1.0, 1.2, but <!-- = copy() -->"]),
        (
            "They copy<!-- = copy() -->.",
            ["the text names none, but <!-- = copy() -->"],
        ),
    ],
)
def test_the_name_of_a_head_is_what_its_comment_gives(prose, told, monkeypatch):
    monkeypatch.setattr(named, "values_of", lambda page: HEADS)
    found = [fault.partition("prose: ")[2] for fault in missing(prose)]
    assert [fault[: len(words)] for fault, words in zip(found, told, strict=True)] == told


PRINTED = """\
mean top weight   (2, 3)
          d=4   d=16  d=64
raw      0.25  0.583  -0.79
scaled   4/7   1,234  1e-16

share: 0.5714
three: (4, 5, 6)
of all:  700 in 3 lines
"""


SOURCE = """\
import numpy as np
from tutorial_lib.variants.positions import rope_frequencies  # built in chapter 16
steps = 800
top = -800
a, b = 12, np.array([steps])
widths = np.array([4, 16, 64, 512])
gradient[0, 2] = [0, -1]
allowed = {np.float16: 4}
shifted = [a for draws in range(100)]
for size in (30, 90):
    attend(widths, 16, n=3)
def attend(X, T, *, block=64, n):
    rates = rope_frequencies(128, base=10_000)
def work(self, ms):
    gpu.work(64)
"""


def missing(prose, output=PRINTED, *more):
    """Return the faults of a chapter that prints something and then says something."""
    above = code("03-11", SOURCE, stdout(output))
    cells = [above, *more, text("prose", prose)]
    chapter = new_notebook(cells=cells)
    return [f for each in chapter_passages("03_attention_weights", chapter) for f in faults(each)]


PROVED = [
    'It is 0.583<!-- "mean top weight"[0, 1] -->.',
    'It is 0.25 to 0.583<!-- "mean top weight"[0, 0]; "mean top weight"[0, 1] -->.',
    'A weight of 4/7<!-- "mean top weight"["scaled", 0] -->.',
    'A weight of 0.5714<!-- 03-11 "share" -->.',
    'A share of 4, 5 and 6 in 700<!-- "three"; "of all" -->.',
    'There are 1,234<!-- "mean top weight"[1, 1] --> of them, about 1,200<!-- = 1233 + 1 -->.',
    "More than 10 MB<!-- = 26.4 / 2 -->, at most 20 MB<!-- = 26.4 / 2 -->.",
    "It is 12 ms<!-- = 3 * 4.1 -->, 30 %<!-- = 3 / 10 -->, 150 million<!-- = 149_947 * 1e3 -->.",
    "An error of 1.1·10⁻¹⁶<!-- = np.finfo(float).eps / 2 -->.",
    "The largest is 65,504<!-- = np.finfo(np.float16).max -->.",
    "Five questions<!-- bank:03_attention_weights.quiz -->.",
    "For 800<!-- code:steps --> steps, or −800<!-- code:top -->, or 12<!-- code:a -->.",
    "Of 4, 16 and 64<!-- code:widths[:3] --> it is 16<!-- code:03-11 widths[1] -->.",
    "For 100<!-- code:draws --> draws; for 30<!-- code:size[0] -->, then 90<!-- code:size[1] -->.",
    "It has 64<!-- code:attend.block --> keys, 16<!-- code:attend.T --> words.",
    "Base 10,000<!-- code:rope_frequencies.base -->, 128<!-- code:rope_frequencies.d_k --> numbers",
    "In chapter 04 it is 11<!-- code:04_multi_head_attention 04-18 product[1, 1] -->.",
    "Within 10⁻⁸<!-- = 10.0**-8 -->, or $10^{-8}$<!-- = 10.0**-8 -->.",
    "With version 2.13<!-- = version('torch') --> of PyTorch.",
    'Of 10,000<!-- = in_code("20-10", r"(\\d+_\\d+)") -->.',
    "Its rows sum to 1.<!-- = np.allclose(softmax(np.eye(3)).sum(-1), 1) -->",
    "6/7 + 4/13 = 106/91 and $\\sqrt{4} = 2$.",
    "In two rows of 12, see section 3.5 (Vaswani et al., 2017).",
    "After [Britz et al. 2017](https://arxiv.org/abs/1703.03906), `d_model=512`, $W_{12}$.",
    "In [nanoGPT, issue 470](https://github.com/karpathy/nanoGPT/issues/470).",
    "```sh\npython -m 0.6\n\npython -m 0.7\n```",
    "Two rows.<!-- = np.eye(2).shape == (2, 2) -->\n\n<!-- = np.eye(2) -->\n```text\n✓ ·\n· ✓\n```",
    "The shape (2, 3)<!-- = np.zeros((2, 3)).shape -->.",
]


@pytest.mark.parametrize("prose", PROVED)
def test_a_proved_number_passes(prose):
    assert missing(prose) == []


REFUSED = {
    "It takes 12.88 million<!-- = 12.88 * 1e9 --> flop.": "12.88 in “It takes 12.88 million”, but",
    "$e^{-\\infty} = 1$": "does not hold",
    "It is 0.583.": "measured, and nothing says where",
    "It is 0.583, [they say](https://arxiv.org/abs/1703.03906).": "nothing says where",
    'It is 0.584<!-- "mean top weight"[0, 1] -->.': "gives 0.583: write that number",
    'It is 0.583<!-- "mean top weight"["raw", "d=8"] -->.': "no such entry",
    'It is 0.79<!-- "mean top weight"[0, 2] -->.': "gives -0.79: write that number",
    "It is 0.583<!-- mean -->.": "names nothing",
    "It is 0.583<!-- 03-11[1] -->.": '03-11[1] names nothing: write "label"[i, j], code:name',
    f"A sum of 261<!-- = {39 * '1+'}222 -->.": "has 81 characters, more than 80: make",
    'It is 0.583<!-- 03-12 "share" -->.': "03-12 is no chapter of _toc.yml and no code cell above",
    "For 801<!-- code:steps --> of them.": "gives 800: write that number, or, if the text is right",
    "For 800<!-- code:pace --> of them.": "no cell sets pace: write a name that one sets",
    "For 800<!-- code:b --> of them.": "raises NameError",
    "At most 61 s<!-- coursework.grader.judge:MOST_S -->.": "gives 120: write that number, or",
    "It is 0.583<!-- numpy_attention:sizes.none -->.": "not there",
    "It is 0.583<!-- = 1 / 0 -->.": "raises ZeroDivisionError",
    "About 22,000<!-- = math.exp(11) --> to 1.": "gives 59874.1: write that number, or",
    "More than 10 MB<!-- = 3 * 3.3 -->.": "gives 9.9",
    "In 200<!-- = 200 --> texts.": "200 repeats the text and can never differ: write",
    "In 0.002<!-- = 2e-3 --> of them.": "2e-3 repeats the text",
    "Six questions<!-- bank:03_attention_weights.quiz -->.": "gives 5: write that number, or",
    "There are six questions.": "a count of the book's own",
    "It is 12 ms.": "measured",
    "A weight of 5/7.": "a fraction",
    "The shape (3, 2).": "in no equality",
    "For 801 steps.": "measured",
    "Within $10^{-9}$.": "measured",
    "Its rows sum to 2.<!-- = softmax(np.eye(3)).sum() == 2 -->": "'Its rows sum to 2.', but <!--",
    "2 · 8 + 3 = 18.": "does not hold",
    "$(1, 2)\\begin{pmatrix} 1 & 0 \\\\ 2 & 1 \\end{pmatrix} = (5, 3)$": "does not hold",
    "(T, d_k) @ (S, d_k) = (T, S)": "inner lengths",
    "2 · 8 + = 19": "cannot be read",
    "```\n0.5  0.5\n```": "looks like an output",
    "<!-- = np.eye(2) -->\n```text\n✓ ·\n✓ ✓\n```": "is not what",
    "```sh\npython -m 0.6\n\npython\n```\n\nIt is 0.5.": "measured",
    "<details><summary>Hint</summary>\n\nIt is 0.5.\n\n</details>": "measured",
    "| a | 0.6 |\n|---|---|\n| b | 1 |": "measured",
}


@pytest.mark.parametrize("prose", REFUSED)
def test_an_unproved_number_is_refused(prose):
    (found,) = missing(prose)
    assert REFUSED[prose] in found
    assert found.startswith("03_attention_weights, cell prose: ")


def test_numbers_that_name_columns_are_no_row():
    shares = "share   (3,)\n   32     64    128\n0.516  0.531  0.563\n"
    assert missing('It is 0.563<!-- "share"["128"] -->.', shares) == []
    rows = "concat   (2, 3)\n        0    1    2\ndogs  0.1  0.2  0.3\nbark  0.4  0.5  0.6\n\n"
    assert missing('It is 0.6<!-- "concat"["bark", "2"] -->.', rows) == []
    blocks = "w   (2, 1, 2)\n[0]\n  0    1\n0.1  0.2\n[1]\n  0    1\n0.3  0.4\n\n"
    assert missing('It is 0.3<!-- "w"[1, 0, 0] -->.', blocks) == []
    assert missing('It is 0.3<!-- "x"[1, 0] -->.', "x   (2, 2)\n0.1  0.2\n0.3  0.4\n\n") == []
    named = "sent   (3,)\nn = 1    2   12\n0.000  1.0  1.8\n"
    assert missing('It is 1.8<!-- "sent"["12"] -->.', named) == []


def test_a_block_of_text_is_a_message_on_the_page_of_symptoms_alone():
    block = "```text\nRuntimeError: shape '[1, 1024]' is invalid\n```"
    assert faults(Passage(block, "book/symptoms.md", page="symptoms")) == []
    (fault,) = faults(Passage(block, "book/running.md", page="running"))
    assert "looks like an output" in fault


def test_an_output_below_is_not_named():
    below = code("below", "show()", stdout("late: 0.9\n"))
    assert missing('It is 0.9<!-- "late" -->.', "", below) == []
    cells = [text("prose", 'It is 0.9<!-- "late" -->.'), below]
    (passage,) = chapter_passages("03_attention_weights", new_notebook(cells=cells))
    assert "no cell above" in faults(passage)[0]


def test_an_ambiguous_label_asks_for_the_cell():
    again = code("03-12", "show()", stdout("share: 0.6\n"))
    (found,) = missing('It is 0.6<!-- "share" -->.', PRINTED, again)
    assert "2 cells print" in found
    assert missing('It is 0.6<!-- 03-12 "share" -->.', PRINTED, again) == []


def test_an_ambiguous_name_in_code_asks_for_the_cell():
    again = code("03-12", "steps = 90")
    (found,) = missing("In 800<!-- code:steps --> steps.", PRINTED, again)
    assert "steps is ambiguous, it is 800 and 90: write the id of the cell before it" in found
    assert missing("In 800<!-- code:03-11 steps --> steps.", PRINTED, again) == []
    again = code("03-12", "attend(widths, 32, n=3)")
    (found,) = missing("In 16<!-- code:attend.T --> steps.", PRINTED, again)
    assert "attend.T is ambiguous, it is 16 and 32" in found


def test_a_function_of_the_page_is_asked_by_its_name(monkeypatch):
    monkeypatch.setattr(named, "values_of", lambda page: {"share": lambda: [0.25, len(page)]})
    assert missing("From 0.25 to 20<!-- = share() -->.") == []
    assert missing("It is 0.25<!-- = share()[0] -->.") == []
    assert "correct the comment" in missing("It is 0.26<!-- = share()[0] -->.")[0]
    assert "raises NameError" in missing("It is 0.25<!-- = shares()[0] -->.")[0]


WITH_VALUES = {module_of(page): page for page in (*NAMES, *(path.stem for path in PAGES))}
MODULES = sorted({path.stem for path in (ROOT / VALUES).glob("*.py")} - {"__init__"})


@pytest.mark.parametrize("module", MODULES)
def test_every_named_value_is_used_documented_and_not_ambiguous(module):
    assert module in WITH_VALUES, f"{VALUES}/{module}.py belongs to no page: rename or remove it"
    page = WITH_VALUES[module]
    functions = values_of(page)
    told = list(misnamed(functions, " ".join(comments(page))))
    assert not told, f"{VALUES}/{module}.py: {listed(told)}"


def comments(page):
    """Return the comments of a chapter, or page, and of its bank."""
    if page in NAMES:
        texts = [cell.source for cell in written(page).cells if cell.cell_type == "markdown"]
        texts.append((Path(ROOMS[page].__file__).parent / "bank.json").read_text(encoding="utf-8"))
    else:
        texts = [(ROOT / f"book/{page}.md").read_text(encoding="utf-8")]
    return [comment for text in texts for comment in COMMENT.findall(text)]


def misnamed(functions, used):
    """Yield a sentence for each function that is not what a reference needs."""
    for name, function in functions.items():
        if not re.search(rf"\b{name}\(", used):
            yield f"no comment says {name}(): use it or remove it"
        if name in NAMESPACE:
            yield f"{name} is ambiguous, every expression has that name: choose another"
        if not re.fullmatch(r"[A-Z`][^\n]*\.", function.__doc__ or ""):
            yield f"the docstring of {name} is no single sentence: say the claim in one line"


def test_the_result_of_a_deeper_names_its_chapter_since_its_cells_come_below():
    label = '"weights without a mask, head 0"[1, 0]'
    result = "#### Deeper: more\n\nIt is 4/7<!-- {} -->."
    [fault] = missing(result.format(label))
    assert "as in the result of a Deeper, the chapter before it" in fault
    assert missing(result.format(f"03_attention_weights {label}")) == []


def test_a_quoted_number_has_its_source_beside_it():
    quoted = records.facts("quoted")["numbers"][0]
    named = f"<!-- quoted:numbers.{quoted['name']} -->"
    link = f"[They]({quoted['source']}) say "
    assert missing(f"{link}{quoted['value']}{named}.") == []
    assert "link it" in missing(f"They say {quoted['value']}{named}.")[0]
    assert missing(f"{link}{quoted['value'] + 1}{named}.") != []
    assert missing(f"{link}at most {quoted['value'] + 1}{named}.") != []
