"""The bug hunt: a suspect is found by its values and its line, and tests are scored."""

import numpy as np
import pytest

from tutorial_lib import hunt
from tutorial_lib.practice.calls import call, same


def of(name, mistake, level=None):
    """The suspect of a function with one of its mistakes."""
    found = [s for s in hunt.suspects(level) if (s.task.name, s.mistake.name) == (name, mistake)]
    return found[0]


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
    values = np.random.default_rng(0).normal(size=(3, 5))
    exact = hunt.tasks()["softmax"].right(values)
    assert hunt.score_test(lambda f: bool((f(values) == exact).all()), "softmax")[0] == 0
    assert "another order of operations" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(hunt.HuntError, match="none of the functions"):
        hunt.score_test(sums_to_1, "softmaxx")


def test_an_input_counts_by_its_values_and_then_the_line_is_named(capsys):
    suspect = of("softmax", "overflow", level=2)
    suspect.show()
    shown = capsys.readouterr().out
    assert "require" not in shown
    assert '"' not in shown.partition("1  def")[2]
    suspect.try_input(scores=np.zeros((2, 3)))
    said = capsys.readouterr().out
    assert "Both give the same" in said
    assert "sees it on “scores around ten thousand”" in said
    suspect.try_input(scores=np.array([[0.0, 800.0]]))
    assert "This input shows it" in capsys.readouterr().out
    for number in range(1, len(suspect.numbered_lines()[0].splitlines()) + 1):
        suspect.name_line(number)
    said = capsys.readouterr().out
    assert "✓ softmax: large scores give NaN" in said
    assert "is as it should be" in said


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda s: s.try_input(scorse=1), "no argument scorse; give scores, axis"),
        (lambda s: s.try_input(scores="a b"), "refuses this input"),
        (lambda s: s.try_input(axis=0), "Set scores as well; you set axis"),
        (lambda s: s.name_line(99), "no line 99"),
        (lambda s: hunt.try_text("2", "0", "a b"), "Line 1 of your code is no Python"),
        (lambda s: hunt.score_text("softmax", "x"), "Your code raised NameError"),
        (lambda s: hunt.show_suspect("4", "0"), "no level 4"),
        (lambda s: hunt.show_suspect("1", "x"), "The number is 'x'"),
        (lambda s: hunt.name_text("1", "0", "two"), "give its number"),
        (lambda s: hunt.score_text("softmax", "tset = 1"), "no function test"),
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


def test_a_reader_of_part_1_gets_functions_of_part_1_and_those_with_a_purpose_first():
    assert {hunt.chapter_of(s.task.name) for s in hunt.suspects(last_chapter=8)} == set(range(1, 9))
    said = [bool(hunt.inspect.getdoc(hunt.inspect.unwrap(s.task.right))) for s in hunt.suspects()]
    assert said == sorted(said, reverse=True)


def test_a_function_that_copies_may_be_compared_exactly():
    rows = np.arange(60.0).reshape(5, 12)
    right = hunt.tasks()["split_heads"].right(rows, 3)
    assert hunt.score_test(lambda f: np.array_equal(f(rows, 3), right), "split_heads")[0] > 0


def test_a_form_draws_tries_names_and_scores(capsys):
    hunt.show_suspect("2", "7", code="", line="", chapters="8")
    hunt.try_text(
        "1", str(hunt.suspects(1).index(of("softmax", "wrong_axis"))), "scores = np.eye(3)[:2]"
    )
    hunt.score_text("softmax", "def test(f):\n    return f(np.eye(3)[:2]).sum() > 1.99")
    printed = capsys.readouterr().out
    assert "This input shows it" in printed
    assert "It catches 1 of 3" in printed
