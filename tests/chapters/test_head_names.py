"""A wrong head is red: in a sentence, beside a right number, in a bank, in a label of code."""

import json
import re

import pytest
from nbformat.v4 import new_notebook

from tests.chapters import named, test_prose_numbers
from tests.chapters.head_names import examples, label_faults, labels
from tests.chapters.pages import advises
from tests.chapters.planted import code, stdout, text
from tests.chapters.prose_numbers import Passage, chapter_passages, faults

PRINTED = """\
weight   (2, 3)
              1.0   1.2   1.3
surname      0.94  0.02  0.88
attractor    0.01  1.00  0.03

without: 0.57
"""
VALUES = {
    "finds_the_subject": lambda: "1.2",
    "of_a_deep_model": lambda: "16.0",
    "head_at": lambda task: {"attractor": "1.2", "surname": "1.0"}[task],
    "copy": lambda: ["1.0", "1.3"],
    "of_layer_1": lambda: ["1.0", "1.1", "1.2", "1.3"],
    "near_the_limit": lambda: [("0.0", "1.1")],
    "match": lambda: [("0.0", "1.0"), ("0.0", "1.3")],
}


@pytest.fixture
def found(monkeypatch):
    """Return a function that returns the faults of a text, below a cell that printed PRINTED."""
    monkeypatch.setattr(named, "values_of", lambda page: VALUES)

    def faults_of(prose):
        cells = [code("03-11", "show()", stdout(PRINTED)), text("prose", prose)]
        passages = chapter_passages("03_attention_weights", new_notebook(cells=cells))
        return [fault for passage in passages for fault in faults(passage)]

    return faults_of


PROVED = [
    'It has 0.94<!-- "weight"["surname", "1.0"] -->, more than head 1.3 with 0.88'
    '<!-- "weight"["surname", "1.3"] -->.',
    "Head 1.2<!-- = finds_the_subject() --> finds the subject.",
    "Head 16.0<!-- = of_a_deep_model() --> lies in layer 16.",
    'Head 1.2<!-- = head_at("attractor") --> finds it, head 1.0<!-- = head_at("surname") --> no.',
    "It is **head 1.2**<!-- = finds_the_subject() -->.",
    "Heads 1.0 and 1.3<!-- = copy() --> copy, and 1.3 and 1.0<!-- = copy() --> do it alike.",
    "Heads 1.0, 1.3, and 1.2<!-- = copy(); = finds_the_subject() --> are of layer 1.",
    "Its heads 1.0 to 1.3<!-- = of_layer_1() --> are head 0 to 3 here.",
    "Two pairs match, head 0.0 with head 1.3, and head 0.0 with head 1.0<!-- = match() -->.",
    "Near it: head 0.0 with head 1.1<!-- = near_the_limit() -->. Head 1.2 next"
    "<!-- = True -->, with 1.00<!-- \"weight\"['attractor', '1.2'] -->.",
    'The limit is near for 0.0 → 1.1<!-- = near_the_limit() -->, and 0.57<!-- "without" -->.',
    'Head 1.2 gives it 1.00<!-- "weight"["attractor", "1.2"] -->, and without 1.2 it is lost.',
    'Head 1.0 has 0.94<!-- "weight"["surname", "1.0"] -->, 1.3 has 0.88'
    '<!-- "weight"["surname", "1.3"] -->.',
    'It has 1.00.<!-- "weight"["attractor", "1.2"] --> It is good.',
    "A head 2.3<!-- of an example --> would be in layer 2.",
    "Head 1.2<!-- of an example --> is head 2 of layer 1; `head 1.3` and heads of 12 layers.",
]


@pytest.mark.parametrize("prose", PROVED)
def test_a_head_that_something_proves_passes(prose, found):
    assert found(prose) == []


REFUSED = {
    "Head 1.2 finds the subject.": "nothing says why 'Head 1.2' names this head: write",
    "Head 16.0 lies in layer 16.": "nothing says why 'Head 16.0' names this head: write",
    "Head 1.3<!-- = finds_the_subject() --> finds it.": "the text names 1.3, but <!-- = finds_the",
    "Head 0.0 with head 1.0<!-- = near_the_limit() -->.": "names 0.0 with 1.0, but <!-- = near_the",
    "Head 1.1 with head 0.0<!-- = near_the_limit() -->.": "names 1.1 with 0.0, but <!-- = near_the",
    "So 1.1 → 0.0<!-- = near_the_limit() -->.": "names 1.1 with 0.0, but <!-- = near_the_limit()",
    "Head 0.0 with 1.0, head 0.1 with 1.3<!-- = match() -->.": "gives 0.0 with 1.0, 0.0 with 1.3: ",
    "Heads 1.0 and 1.2<!-- = copy() --> copy.": "the text names 1.0, 1.2, but <!-- = copy() -->",
    "Heads 1.2, 1.0 and 1.3<!-- = copy() --> copy.": "nothing says why 'Heads 1.2' names this",
    "Head 1.3<!-- = copy() --> copies.": "the text names 1.3, but <!-- = copy() --> gives 1.0, 1.3",
    "Heads 1.1 to 1.3<!-- = of_layer_1() -->.": "the text names 1.1, 1.2, 1.3, but",
    "They copy<!-- = copy() -->.": "the text names none, but <!-- = copy() --> gives 1.0, 1.3:",
    "Head 1.2 finds it<!-- = finds_the_subject() -->.": "gives a head: move it right behind",
    "Head 1.2.<!-- = finds_the_subject() --> Head 1.0.": "nothing says why 'Head 1.0' names this",
    'Head 1.2<!-- = ["1.2"] --> finds it.': "computes nothing: write a function",
    'Head 1.3 has 1.00<!-- "weight"["attractor", "1.2"] -->.': "nothing says why 'Head 1.3' names",
    'Head 1.2 has 1.00<!-- "weight"["attractor", "1.2"] -->, head 1.3 not.': "1.3' names this head",
    'It is 1.00<!-- "weight"["attractor", "1.2"] -->. Head 1.2 finds it.': "'Head 1.2' names this",
    '- It is 1.00<!-- "weight"["attractor", "1.2"] -->\n- head 1.2': "'head 1.2' names this head",
    'Head 1.3 has 0.94<!-- "weight"["surname", "1.0"] -->, head 1.0 only 0.88'
    '<!-- "weight"["surname", "1.3"] -->.': "names head 1.3, 1.0, and its numbers are of 1.0, 1.3",
    'Head 1.3 has 0.94<!-- "weight"["surname", "1.0"] -->, not 0.88'
    '<!-- "weight"["surname", "1.3"] -->.': "names head 1.3, and its numbers are of 1.0, 1.3",
    'Head 1.0 has 0.94<!-- "weight"["surname", "1.0"] -->, head 1.0 has 0.88'
    '<!-- "weight"["surname", "1.3"] -->.': "names head 1.0, 1.0, and its numbers are of 1.0, 1.3",
    "It is lost without 1.2.": "1.2 is measured",
    "| head 1.2 |": "nothing says why 'head 1.2' names this head",
    "A head 2.3<!-- of an example --> and head 2.2.": "head 2.2' names this head",
}


@pytest.mark.parametrize("prose", REFUSED)
def test_a_head_that_nothing_proves_is_refused_once(prose, found):
    (fault,) = found(prose)
    assert REFUSED[prose] in fault
    assert advises(fault)


def test_a_refusal_advises_no_head_by_its_name(found):
    advice = [fault.rpartition(": ")[2] for prose in REFUSED for fault in found(prose)]
    assert not re.findall(r"\d\.\d", " ".join(advice))


def test_a_head_in_a_reason_is_proved_or_of_the_example_of_its_question(monkeypatch, tmp_path):
    (tmp_path / "bank.json").write_text(
        json.dumps(
            {
                "predictions": [
                    {
                        "question": "At *surname*, which heads copy?",
                        "why": "Heads 1.0 and 1.2<!-- = copy() --> copy.",
                        "options": [
                            {"text": "Head 1.0", "correct": True, "why": "Head 1.3 is left."},
                            {"text": "Head 0.0", "correct": False, "why": "It looks at names."},
                        ],
                    }
                ],
                "quiz": [
                    {
                        "question": "Head 1.2<!-- of an example --> adds 4. What is left?",
                        "options": [
                            {"text": "Head 1.2", "correct": True, "why": "Head 1.2 adds 4."},
                            {"text": "5", "correct": False, "why": "Head 1.1 adds nothing."},
                        ],
                    }
                ],
            }
        )
    )
    page = "03_attention_weights"
    monkeypatch.setattr(named, "values_of", lambda page: VALUES)
    monkeypatch.setitem(
        test_prose_numbers.ROOMS, page, type("Room", (), {"__file__": f"{tmp_path}/__init__.py"})
    )
    passages = test_prose_numbers.bank_passages(page)
    told = [fault for passage in passages for fault in faults(passage)]
    assert [re.search(r"names (1.0, 1.2)|'(.*)' names", fault)[0] for fault in told] == [
        "names 1.0, 1.2",
        "'Head 1.3' names",
        "'Head 1.0' names",
        "'Head 1.1' names",
    ]


def test_an_example_is_what_stands_before_its_comment():
    assert examples("Head 2.3 and 2.1<!-- of an example -->, head 1.2.") == {"2.1", "2.3"}
    assert examples("Head 2.3.") == set()


CODE = """\
of_heads = "nouns 1.2, names 1.0".split(", ")
rates = 1.2, show(logits["1.2"], columns=["1.0", "1.3"])
weights = low.weights[0]  # of head 0.0
show("wrong without 1.2", wrong)
caption = f"{name}: where heads 1.0 and 1.3 look"
print("took 1.24 s")
"""
HEADS = {
    "head 0.0": lambda: "0.0",
    "without 1.2": VALUES["finds_the_subject"],
    "heads 1.0 and 1.3": VALUES["copy"],
}


def test_labels_are_what_a_reader_sees_and_no_keys():
    assert sorted(labels(CODE)) == [
        "# of head 0.0",
        ": where heads 1.0 and 1.3 look",
        "wrong without 1.2",
    ]


def test_labels_that_heads_has_pass():
    assert list(label_faults([code("c", CODE)], HEADS)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        (
            "of head 0.0",
            "of head 0.1",
            ["no code has 'head 0.0'", "'# of head 0.1' names head 0.1"],
        ),
        ("without 1.2", "without 1.3", ["no code has 'without", "'wrong without 1.3' names head"]),
        ("look", "look, not head 1.2", ["look, not head 1.2' names head 1.2: add a piece"]),
    ],
)
def test_a_wrong_head_in_a_label_is_refused(right, wrong, told):
    found = list(label_faults([code("c", CODE.replace(right, wrong))], HEADS))
    assert len(found) == len(told)
    assert all(part in fault and advises(fault) for part, fault in zip(told, found, strict=True))


def test_a_piece_of_two_labels_is_refused_unless_it_is_one_itself():
    of_a_head = HEADS["head 0.0"]
    two = [code("c", 'show("head 0.0 first", a)\nshow("head 0.0 last", b)')]
    assert "write a longer" in next(label_faults(two, {"head 0.0": of_a_head}))
    assert list(label_faults(two, dict.fromkeys(("0.0 first", "0.0 last"), of_a_head))) == []
    own = [code("c", 'show("head 0.0", a)\nshow("head 0.0 last", b)')]
    assert list(label_faults(own, dict.fromkeys(("head 0.0", "0.0 last"), of_a_head))) == []
    assert "add a piece" in next(label_faults(own, {"head 0.0": of_a_head}))


def test_on_a_page_that_names_no_head_a_label_has_numbers():
    assert list(label_faults([code("c", 'print("an accuracy of 0.9 or more")')], {})) == []


def test_a_piece_of_a_label_with_another_head_than_its_function_gives_is_refused():
    (fault,) = label_faults([code("c", CODE)], HEADS | {"without 1.2": lambda: "1.3"})
    assert "the code says 'without 1.2', but HEADS gives 1.3 for it: correct the label" in fault


def test_a_passage_alone_needs_no_chapter():
    assert faults(Passage("Head 1.0<!-- of an example --> is head 0 of layer 1.", "a page")) == []
