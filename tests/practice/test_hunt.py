"""The bug hunt: a suspect is found by its values and its line, and tests are scored."""

import re

import numpy as np
import pytest

from book._ext.content import hunts
from tools.chapters import ROOT
from tutorial_lib import hunt
from tutorial_lib.practice.calls import Case, call, same


def of(name, mistake):
    """A new suspect of a function with one of its mistakes."""
    names = [mistake.name for mistake in hunt.tasks()[name].mistakes]
    return hunt.suspect(name, names.index(mistake) + 1)


@pytest.mark.parametrize("name", hunt.tasks())
def test_every_mistake_of_a_function_can_be_caught(name, capsys):
    task = hunt.tasks()[name]

    def compare_all_cases(f):
        return all(same(call(f, case).value, call(task.right, case).value) for case in task.cases)

    caught, known = hunt.score_test(compare_all_cases, name)
    assert caught == known > 0
    assert "rejects" not in capsys.readouterr().out


def test_a_test_is_told_what_it_lets_through_and_which_right_function_it_rejects(capsys):
    def sums_to_1(f):
        np.testing.assert_allclose(f(np.arange(6.0).reshape(2, 3)).sum(axis=-1), 1)

    assert hunt.score_test(sums_to_1, "softmax") == (2, 3)
    assert (
        "lets 1 through that would show on: scores around ten thousand" in capsys.readouterr().out
    )
    hunt.score_test(lambda f: None, "attention_weights")
    assert "causal mask and padding; … and 4 more" in " ".join(capsys.readouterr().out.split())
    values = np.random.default_rng(0).normal(size=(3, 5))
    exact = hunt.tasks()["softmax"].right(values)
    assert hunt.score_test(lambda f: bool((f(values) == exact).all()), "softmax")[0] == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of operations: it returns False. Allow for rounding, as np.allclose" in said
    with pytest.raises(hunt.HuntError, match="none of the functions"):
        hunt.score_test(sums_to_1, "softmaxx")


def test_an_input_counts_by_its_values_and_then_the_line_is_named(capsys):
    suspect = of("softmax", "overflow")
    suspect.show()
    shown = capsys.readouterr().out
    assert "require" not in shown
    assert '"' not in shown.partition("1  def")[2]
    suspect.try_input(scores=np.zeros((2, 3)))
    assert "Both give the same" in capsys.readouterr().out
    suspect.name_line(3)
    assert capsys.readouterr().out.startswith("○ First show it")
    suspect.try_input(scores=np.array([[0.0, 800.0]]))
    assert "This input shows it" in capsys.readouterr().out
    for number in range(1, len(suspect.numbered_lines()[0].splitlines()) + 1):
        suspect.name_line(number)
    said = capsys.readouterr().out
    assert "✓ softmax: large scores give NaN" in said
    assert "notebooks/03_attention_weights.html" in said
    assert "is as it should be" in said


def test_lines_that_a_mistake_needs_together_are_named_and_no_blank_one_is(capsys):
    suspect = of("attention_with_sink", "sink_not_shifted")
    suspect.shown = True
    suspect.name_line(3)
    assert "In our repair lines 3, 4 and 5 change" in " ".join(capsys.readouterr().out.split())
    for text, wrong in (suspect.numbered_lines() for suspect in hunt.suspects()):
        assert wrong
        assert all(text.splitlines()[number - 1][3:].strip() for number in wrong)


@pytest.mark.parametrize(
    ("name", "mistake", "wrong"),
    [
        ("top_k_mask", "mask_after", {2}),  # the last line, changed too, does no harm
        ("sinusoidal_positions", "frequency_of_each_column", {2, 5, 6}),  # in line 3 a comment
        ("attention_backward", "values_through_softmax", {7}),  # a line moved down and changed
        ("delta_step", "error_before_decay", {2, 3}),  # two lines exchanged
        ("softmax", "overflow", {2}),  # a line left out in front of it
    ],
)
def test_wrong_are_the_lines_of_the_smallest_repair(name, mistake, wrong):
    assert of(name, mistake).numbered_lines()[1] == wrong


def test_the_smallest_repair_makes_every_suspect_right():
    for suspect in hunt.suspects():
        right, lines = (
            hunt._source_lines(suspect.task.right, suspect.mistake.edits, made)
            for made in ((), None)
        )
        repair = suspect._smallest_repair(right, lines)
        assert suspect._is_repaired(right, lines, repair), suspect.mistake.name


def test_each_miss_brings_a_further_hint(capsys):
    suspect = of("softmax", "overflow")
    said = []
    for _ in range(4):
        suspect.try_input(scores=np.zeros((2, 3)))
        said.append(" ".join(capsys.readouterr().out.split()).partition(". ")[2])
    assert said == [
        "A hint: it shows with scores (5, 7): scores around ten thousand.",
        "A hint: it shows with scores (5, 7) from -10000.8 to 10002.1.",
        "A hint: the repair begins in one of the 2 lines of the body.",
        "",
    ]
    easy = of("softmax", "wrong_axis")
    easy.try_property("finite")
    assert "“finite” holds in all 4 cases" in (told := capsys.readouterr().out)
    assert "A hint: take random numbers in several rows" in told
    easy.try_input(scores=np.eye(3)[:2])
    easy.try_property("finite")
    assert "hint" not in capsys.readouterr().out  # it has been shown
    lengths = of("causal_mask", "wrong_sign")
    lengths.try_input(T=3)
    lengths.try_input(T=4)
    assert "A hint: the repair begins" in capsys.readouterr().out  # the first said all numbers


def test_a_hint_shows_small_arrays_and_the_half_of_the_body():
    ties = next(case for case in hunt.tasks()["top_k_mask"].cases if case.label == "equal scores")
    assert "scores = [[1.0, 2.0, 2" in hunt._inputs_text(ties, hunt._entries_text)
    assert of("embed", "one_position")._place_text() == "the second half of the body"
    assert of("attention_with_sink", "sink_twice")._place_text() == "the first half of the body"


def test_a_purpose_says_what_holds_of_special_inputs_and_no_more():
    said = of("attention_weights", "mask_filled_with_0").purpose()
    assert "may look at. A row of weights sums to 1, or is 0 throughout" in said
    assert said.endswith(
        "fully masked. attention_weights(scores (2, 3, 5, 7)) returns (2, 3, 5, 7)."
    )


def test_advice_on_rounding_is_for_rounding_alone(capsys):
    hunt.score_test(lambda f: 1 / 0, "softmax")
    hunt.score_test(lambda f: {0.25: True}[f(np.zeros((4, 4)))[0, 0]], "softmax")
    said = " ".join(capsys.readouterr().out.split())
    assert "another order of operations: KeyError" in said
    assert "np.allclose" not in said


RNG = np.random.default_rng(3)
Q, K, V = (RNG.normal(size=(2, n, 3)) for n in (4, 6, 6))
PAST = np.tri(4, 6, 2, dtype=bool)
BROKEN = [
    ("softmax", "wrong_axis", "rows sum to 1", {"scores": Q}),
    ("softmax", "overflow", "finite", {"scores": 9000 * Q}),
    ("softmax", "over_everything", "batch = one by one", {"scores": Q}),
    ("attention_weights", "mask_after_softmax", "rows sum to 1", {"scores": V, "mask": V > 0}),
    ("attention_weights", "mask_filled_with_0", "rows sum to 1", {"scores": V, "mask": V > 9}),
    ("project_heads", "wide_reshape", "no leak", {"X": Q, "W": Q[:, :3]}),
    ("linear_attention", "looks_ahead", "no leak", {"Q": V, "K": K, "V": V}),
    ("window_mask", "not_causal", "no leak", {"T": 2, "S": 5, "window": 3}),
    ("window_mask", "top_left", "cached = uncached", {"T": 2, "S": 5, "window": 3}),
    ("buffer_mask", "no_offset", "cached = uncached", {"length": 3, "T": 2, "capacity": 7}),
    ("chunked", "nothing_before", "any chunk size", {"Q": V, "K": K, "V": V, "size": 4}),
    ("project_heads", "heads_before_batch", "batch = one by one", {"X": Q, "W": Q[:, :3]}),
]


@pytest.mark.parametrize(("name", "mistake", "claim", "given"), BROKEN)
def test_a_property_holds_for_the_right_function_and_not_for_the_wrong_one(
    name, mistake, claim, given
):
    one = of(name, mistake)
    assert claim in hunt.properties_of(one.task)
    options = {"mask", "size"} & set(given)
    case = Case(
        "", {n: given[n] for n in given if n not in options}, {n: given[n] for n in options}
    )
    right = one.task.right
    assert hunt._breach(claim, right, case, right) == ""
    said = hunt._breach(claim, one.mistake.of(right), case, right)
    assert said
    assert ("the other way" in said) == (claim in hunt.TWO_WAYS)


def test_under_a_mask_a_hidden_key_changes_no_row_and_the_last_query_is_enough():
    case = Case("", {"Q": Q, "K": K, "V": V}, {"mask": PAST})
    one = of("scaled_dot_product_attention", "mask_after_softmax")
    right = one.task.right
    assert hunt._breach("no leak", right, case, right) == ""
    assert "row [0, 0]" in hunt._breach("no leak", one.mistake.of(right), case, right)
    assert hunt._breach("cached = uncached", right, case, right) == ""
    lonely = Case("", {"Q": Q, "K": K, "V": V})
    assert hunt._breach("no leak", right, lonely, right) == ""  # without a mask nothing is hidden


def test_a_wrong_shape_is_evidence_and_a_question_that_fails_is_none(capsys):
    of("sum_copies", "length_1_lost").try_property("no leak")
    said = " ".join(capsys.readouterr().out.split())
    assert "case “both”: it returned shape (5,); expected (1, 5, 1); that alone shows" in said
    one = of("project_heads", "heads_before_batch")
    right, case = one.task.right, next(c for c in one.task.cases if c.label == "a batch")
    assert "5, 8); that" in hunt._breach("batch = one by one", one.mistake.of(right), case, right)
    scalar, case = lambda X: X[0, 0], hunt.tasks()["rms_norm"].cases[0]
    assert hunt._breach("no leak", scalar, case, scalar) is None


def test_what_not_every_right_function_has_is_not_offered():
    softmax, sink, rotate = map(hunt.tasks().get, ("softmax", "attention_with_sink", "rotate"))
    assert hunt.properties_of(softmax) == ["rows sum to 1", "finite", "batch = one by one"]
    assert hunt.properties_of(sink) == ["finite"]  # its rows sum to less than 1
    assert hunt.properties_of(rotate) == []


def test_a_property_shows_a_mistake_as_an_input_does(capsys):
    one = hunt.suspect("attention_weights", 1)
    one.check_found(None, None)
    assert capsys.readouterr().out.startswith("○ attention_weights: not done yet")
    right = of("attention_weights", "softmax_over_queries")
    right.try_property("no leak")
    assert "“no leak” holds in all 8 cases" in capsys.readouterr().out
    line = min(right.numbered_lines()[1])
    right.check_found("rows sum to 1", line)
    said = capsys.readouterr().out
    assert "✓ It fails “rows sum to 1” in the case “no mask”: row [0, 0] is" in said
    assert "✓ attention_weights: the softmax runs over the queries" in said
    one.check_found({"scores": V, "mask": V > 0}, 1)
    assert "○ Line 1 is as it should be" in capsys.readouterr().out


def test_the_page_offers_every_property_and_says_what_it_takes():
    page = (ROOT / "book/hunt.md").read_text(encoding="utf-8")
    menu = re.search('<select name="claim">(.+?)</select>', page)[1]
    assert re.findall("<option>(.+?)</option>", menu) == list(hunt.PROPERTIES)
    assert all(f"**{name}**" in page for name in hunt.PROPERTIES)


def test_a_suspect_on_paper_shows_no_marks_of_code():
    assert not [s.mistake.name for s in hunt.suspects() if "`" in hunts._printed(s)]


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda s: s.try_input(scorse=1), "no argument scorse; give scores, axis"),
        (lambda s: s.try_input(scores="a b"), "refuses this input"),
        (lambda s: s.try_input(axis=0), "Set scores as well; you set axis"),
        (lambda s: s.name_line(99), "no line 99"),
        (lambda s: s.name_line("2"), "no line 2"),
        (
            lambda s: s.try_property("no leak"),
            "'no leak' is no property of .* 'finite' or .* input",
        ),
        (lambda s: hunt.try_text("2", "0", "a b"), "Line 1 of your code is no Python"),
        (lambda s: hunt.score_text("softmax", "x"), "Your code raised NameError"),
        (lambda s: hunt.show_suspect("5", "0"), "no level 5"),
        (lambda s: hunt.show_suspect("1", "x"), "The number is 'x'"),
        (lambda s: hunt.name_text("1", "0", "two"), "give its number"),
        (lambda s: hunt.score_text("softmax", "tset = 1"), "no function test"),
        (lambda s: hunt.score_test(lambda f: f(np.eye(3)) > 0, "softmax"), "returns a.* np.all"),
    ],
)
def test_what_cannot_be_judged_is_said(use, said):
    with pytest.raises(hunt.HuntError, match=said):
        use(of("softmax", "overflow"))


def test_every_suspect_has_a_wrong_line_and_a_level_and_edited_inner_functions_are_shown():
    for suspect in hunt.suspects():
        lines, wrong = suspect.numbered_lines()
        assert wrong, suspect.mistake.name
        assert suspect.level in hunt.LEVELS
        assert len(wrong) < len(lines.splitlines()) or len(lines.splitlines()) < 4
    assert (
        "def attention_scores" in of("scaled_dot_product_attention", "no_scale").numbered_lines()[0]
    )


def test_a_level_is_that_of_ordinary_inputs_and_level_4_shows_in_gradients_alone():
    assert of("attention_with_sink", "sink_twice").level == 1  # it hides in a case of the check
    assert of("softmax", "wrong_axis").level == 1  # it hides where the option is set to -2
    assert of("attend_block", "first_corner").level == 3
    assert of("linear_backward", "gradient_transposed").level == 1  # a wrong shape, always
    assert of("linear_backward", "batch_kept").level == 4
    assert of("embed", "one_position").level == 1  # the header's case has positions, another none
    assert of("embed_padded", "positions_stay").level == 3  # the header's case is padded
    assert of("top_k_mask", "mask_after").level == 3  # no ordinary input: the mask is needed
    assert {hunt.chapter_of(suspect.task.name) for suspect in hunt.suspects(4)} == {"08_gradients"}
    for level in hunt.LEVELS:
        assert len(hunt.suspects(level)) >= 15
        assert len(hunt.suspects(level, last_chapter=8)) >= (5 if level == 2 else 8)
    page = (ROOT / "book/hunt.md").read_text(encoding="utf-8")
    levels = re.search('<select name="level">(.+?)</select>', page)[1]
    assert [int(level) for level in re.findall(r"\d", levels)] == [*hunt.LEVELS]


def test_a_reader_of_part_1_gets_functions_of_part_1():
    rooms = {hunt.chapter_of(s.task.name)[:2] for s in hunt.suspects(last_chapter=8)}
    assert rooms == {f"0{chapter}" for chapter in range(1, 9)}


def test_a_function_that_copies_may_be_compared_exactly():
    rows = np.arange(60.0).reshape(5, 12)
    right = hunt.tasks()["split_heads"].right(rows, 3)
    assert hunt.score_test(lambda f: np.array_equal(f(rows, 3), right), "split_heads")[0] > 0


def test_a_form_draws_tries_names_and_scores(capsys):
    hunt.show_suspect("2", "7", code="", line="", chapters="8")
    names = [(suspect.task.name, suspect.mistake.name) for suspect in hunt.suspects(1)]
    number = str(names.index(("softmax", "wrong_axis")))
    hunt.try_text("1", number, "scores = np.eye(3)[:2]")
    hunt.score_text("softmax", "def test(f):\n    return f(np.eye(3)[:2]).sum() > 1.99")
    printed = capsys.readouterr().out
    assert "This input shows it" in printed
    assert "It catches 1 of 3" in printed
