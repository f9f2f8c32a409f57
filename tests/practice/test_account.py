"""An account tells a learner in words what is wrong, and a check leaves nothing behind."""

import dataclasses
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import tutorial_lib as tl
from tests.lazy import torch
from tests.practice.rooms import ALL, MISTAKES, SYMPTOMS, account, asked, printed, wrong
from tests.sampling import every
from tutorial_lib.practice.account import WIDTH
from tutorial_lib.practice.mistake import mistake_by_name


def test_sentence_goes_on_below_itself_and_a_long_word_stays_whole(capsys):
    word = "x" * 90

    def wrong(scores, axis=-1):
        raise ValueError(f"{word} is no number, and the shape of the scores is\nanother one")

    lines = printed("softmax", wrong, capsys).splitlines()
    assert lines == [
        "✗ softmax: ordinary scores: it raised ValueError:",
        f"    {word}",
        "    is no number, and the shape of the scores is another one.",
    ]


def test_wrong_row_is_named_with_both_values(capsys):
    def wrong(scores, axis=-1):
        weights = tl.softmax(scores, axis)
        weights[1, 3, :3] = weights[1, 3, 2::-1]
        return weights

    row = tl.softmax(3 * np.random.default_rng(0).standard_normal((3, 5, 7)))[1, 3]
    wrong_row = [*row[2::-1], *row[3:]]
    given, right = (", ".join(f"{x:.3f}" for x in r[:6]) for r in (wrong_row, row))
    said = account("softmax", wrong, capsys).splitlines()
    assert (
        said[0] == f"✗ softmax: ordinary scores: row [1, 3] is {given}, … and should be {right}, …"
    )


def raises(*arguments, **options):
    raise KeyError("W_Z")


def raises_without_words(*arguments, **options):
    raise NotImplementedError


def exits(scores, axis=-1):
    raise SystemExit("not done")


def says_much(scores, axis=-1):
    raise ValueError("long\n " * 5_000)


def sometimes_none(scores, axis=-1):
    return tl.softmax(scores, axis) if axis == -1 else None


def in_place(scores, axis=-1):
    scores -= scores.max(axis=axis, keepdims=True)
    return tl.softmax(scores, axis)


def spoilt(spoil):
    """A softmax, its weights changed on the way out."""
    return lambda scores, axis=-1: spoil(tl.softmax(scores, axis))


class Odd:
    """An object that raises whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)


ARRAY = "expected an array of numbers of shape (3, 5, 7)."
RIGHT_SO_FAR = "\n  Right so far: ordinary scores."
RETURNED = [  # what a softmax does or returns, and what the account says of ordinary scores
    (raises, "it raised KeyError: 'W_Z'."),
    (raises_without_words, "it raised NotImplementedError."),
    (exits, "it raised SystemExit: not done."),
    (spoilt(lambda A: A.tolist()), f"it returned a list; {ARRAY}"),
    (spoilt(lambda A: (A, A)), "it returned a tuple of 2; return only its first part, which is ri"),
    (spoilt(lambda A: Odd()), "it returned an Odd, which raised RuntimeError when read: "),
    (spoilt(lambda A: A > 0), f"it returned an array of booleans of shape (3, 5, 7); {ARRAY}"),
    (spoilt(lambda A: A.astype(str)), f"it returned an array of <U32; {ARRAY}"),
    (spoilt(lambda A: A + 0j), f"it returned an array of complex128; {ARRAY}"),
    (
        spoilt(lambda A: A[None]),
        "it returned shape (1, 3, 5, 7); expected (3, 5, 7) (an axis of le",
    ),
    (spoilt(lambda A: A.swapaxes(-1, -2)), "it returned shape (3, 7, 5); expected (3, 5, 7) (axe"),
    (in_place, "it changed its input scores; compute with a copy of it."),
]
OTHERWISE = [  # where it is not the ordinary scores that the account is about
    (spoilt(lambda A: None), "○ softmax: not done yet (it returns None)."),
    (sometimes_none, f"✗ softmax: along another axis: it returned None; {ARRAY}{RIGHT_SO_FAR}"),
    (
        lambda scores: tl.softmax(scores),
        "✗ softmax: along another axis: it raised TypeError: <lambda>() got an unexpected keyword",
    ),
    (np.ones((3, 5, 7)), "✗ softmax: got a ndarray; give the function itself, not a result."),
    (None, "✗ softmax: got None; give the function itself, not a result."),
]
OTHERWISE += [(function, f"✗ softmax: ordinary scores: {words}") for function, words in RETURNED]


@pytest.mark.parametrize(("function", "words"), OTHERWISE)
def test_what_went_wrong_is_said_in_words(function, words, capsys):
    assert account("softmax", function, capsys).startswith(words)


def test_a_long_error_is_cut(capsys):
    text = account("softmax", says_much, capsys)
    assert text.startswith("✗ softmax: ordinary scores: it raised ValueError: long long long")
    assert len(text) < 500


def test_a_layer_without_the_maximum_is_told_what_is_right_so_far(capsys):
    first_version = wrong("my_layer", mistake_by_name(MISTAKES["my_layer"], "no_maximum"))
    lines = account("my_layer", first_version, capsys).splitlines()
    assert lines[1].startswith("  Right so far: one sentence under a causal mask; a batch, ")
    assert lines[2].startswith("  a fully masked row: row [0] is nan, ")


GIVEN = {  # by a learner, and what is said of it
    "it raised KeyError: 'W_Z'.": raises,
    "not done yet": lambda *arguments, **options: None,
    "it returned a list; expected ": lambda *arguments, **options: ["done"],
    "; expected ": lambda *arguments, **options: np.zeros((1, 2, 3, 4, 5, 6)),
    "it raised TypeError: <lambda>() ": lambda: 1,
    "got a str; give the function itself": "softmax",
}


@pytest.mark.parametrize(("name", "words"), every(4, list(product(MISTAKES, GIVEN))))
def test_every_check_survives_what_learners_give_it(name, words, capsys):
    said = account(name, GIVEN[words], capsys)
    assert said[0] in "✗○"
    assert said[1:].startswith(f" {name}: ")
    assert words in said


@pytest.mark.parametrize(("name", "mistake"), every(4, [(name, mistake) for name, mistake in ALL]))
def test_account_is_no_wider_than_a_page_and_ends_each_sentence_once(name, mistake, capsys):
    said = printed(name, wrong(name, mistake), capsys)
    lines = said.splitlines()
    if mistake.symptom:  # an address stays whole, on a line of its own, and nothing follows it
        assert lines.pop() == f"    {SYMPTOMS}{mistake.symptom}"
        assert lines.pop() == "  Elsewhere it shows like this:"
    assert max(map(len, lines)) <= WIDTH
    assert "…." not in said
    for sentence in "\n".join(lines).replace("\n    ", " ").splitlines():
        assert sentence.strip() == " ".join(sentence.split())
        assert sentence[-1] in ".…?"


def test_a_hook_left_behind_is_noticed(capsys):
    outputs_of, _ = asked("outputs_of")

    def forgetful(module, X, names):
        outputs = outputs_of(module, X, names)
        module.get_submodule(names[0]).register_forward_hook(lambda *_: None)
        return outputs

    assert "changed its input module; remove" in account("outputs_of", forgetful, capsys)


def test_a_changed_mask_is_noticed(capsys):
    def wrong(scores, *, mask=None):
        weights = tl.attention_weights(scores, mask=mask)
        if mask is not None:
            mask[:] = True
        return weights

    assert "a causal mask: it changed its input mask" in account("attention_weights", wrong, capsys)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record.Y, "no mask: it returned a ndarray; expected a Trace."),
        (
            lambda record: {"scores": record.scores - record.scores.mean()},
            "no mask: in scores, row",
        ),
        (
            lambda record: {"concat": record.heads},
            "no mask: its concat is shape (2, 3, 5, 11); expected (2, 5, 33).",
        ),
        (lambda record: {"weights": None}, "no mask: its weights is None; expected an array "),
        (
            lambda record: {"context": 2 * record.X},
            "no mask: its context is a ndarray; expected None.",
        ),
    ],
)
def test_a_wrong_part_of_a_record_is_named(change, words, capsys):
    def wrong(X, params, *, context=None, mask=None):
        record = tl.trace(X, params, context=context, mask=mask)
        changed = change(record)
        return dataclasses.replace(record, **changed) if isinstance(changed, dict) else changed

    assert account("trace", wrong, capsys).startswith(f"✗ trace: {words}")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("linear_backward", lambda X, W, dY: (X, W), "row [0] is"),
        ("linear_backward", lambda X, W, dY: [X, W, dY], "a list; expected a tuple of 2, not of 3"),
        ("linear_backward", lambda X, W, dY: (dY, W), "its result 0 is shape (5, 11); expected (5"),
        ("linear_backward", lambda X, W, dY: (X, None), "its result 1 is None; expected an array"),
        ("is_equivariant", lambda layer, X, order: 1, "returned a number; expected True or False"),
        ("count_parameters", lambda *sizes, bias: "1482", "returned a str; expected a number"),
        ("count_parameters", lambda *sizes, bias: 5, "it is 5 and should be 1482"),
        ("causal_mask", lambda T, S=None: np.ones((T, S or T)), "array of numbers of shape (5, 5)"),
    ],
)
def test_wrong_kind_of_answer_is_said_in_words(name, function, words, capsys):
    assert words in account(name, function, capsys)


def test_a_check_leaves_numpys_error_state_alone(capsys):
    def careless(scores, axis=-1):
        np.seterr(all="ignore")
        return np.exp(scores) / np.exp(scores).sum(axis=axis, keepdims=True)

    with np.errstate(all="raise", divide="warn"):
        before = np.geterr()
        assert account("softmax", careless, capsys).startswith("✗ softmax: large scores give NaN")
        assert np.geterr() == before


def test_a_check_draws_no_random_numbers_from_the_shared_generator(capsys):
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    account("multi_head_attention", tl.multi_head_attention, capsys)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("convert", ["bfloat16", "to_sparse"])
def test_tensors_that_numpy_cannot_read_are_answered_in_a_sentence(convert, capsys):
    pytest.importorskip("torch")

    def of_torch(scores, axis=-1):
        return getattr(torch.from_numpy(tl.softmax(scores, axis)), convert)()

    words = "it returned a Tensor, which raised TypeError when read: "
    assert words in account("softmax", of_torch, capsys)


def test_a_mistake_that_gives_some_of_the_values_is_named_with_a_reserve(capsys):
    def wrong(scores, *, mask=None):
        right = tl.attention_weights(scores, mask=mask)
        if mask is None:
            return right
        first = mask.ndim == 2  # the causal mask, the first with one
        return tl.softmax(np.where(mask, scores, 0.0)) if first else right**3 + right

    said = account("attention_weights", wrong, capsys)
    like = mistake_by_name(MISTAKES["attention_weights"], "mask_filled_with_0")
    assert said.splitlines()[-1] == f"  In this case it looks like this: {like.says}."


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize(("function", "begins"), [("softmax", "[right]"), ("len", "[wrong]")])
def test_an_account_can_be_printed_on_a_console_without_its_signs(encoding, function, begins):
    code = f"from tutorial_lib import checks, softmax; checks.check_softmax({function})"
    env = os.environ | {"PYTHONIOENCODING": encoding}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert run.stdout.decode(encoding).startswith(f"{begins} softmax: ")
