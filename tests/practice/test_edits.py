"""A file of mistakes is read as it is written, and what is wrong with it is told."""

import numpy as np
import pytest

import tutorial_lib as tl
from tutorial_lib.practice.mistake import Edit, apply_edits, read_mistakes

ROOM = """# softmax

overflow: large scores give NaN,
        even where the weights are ordinary
    Subtract each row's largest score first.
    symptom: overflow-in-exp
    keeps: 12
    - scores - scores.max(axis=axis, keepdims=True)
    + scores

two_steps: the sum runs over the whole array,
        and a line is new
    Sum along `axis`.
    - positive.sum(
    -     axis=axis, keepdims=True)
    + positive.sum()
    - return
    + positive = positive * 1
    + return

# attention_weights

in_another: the softmax runs over the queries
    Sum over the keys.
    in softmax:
    - scores = scores -
    + axis = -2
    + scores = scores -

from softmax: overflow
"""


def written(folder, text):
    """The mistakes of a file with this text."""
    path = folder / "room" / "mistakes.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_mistakes(path)


def test_a_file_gives_the_wrong_functions_with_their_words(tmp_path):
    found = written(tmp_path, ROOM)
    assert {name: [m.name for m in mistakes] for name, mistakes in found.items()} == {
        "softmax": ["overflow", "two_steps"],
        "attention_weights": ["in_another", "overflow"],
    }
    overflow, two_steps = found["softmax"]
    assert overflow.says == "large scores give NaN, even where the weights are ordinary"
    assert overflow.mend == "Subtract each row's largest score first."
    scores = np.array([[1.0, 2.0], [3.0, 5.0]])
    right, share = tl.softmax(scores), np.exp([[-1.0, 0.0], [-2.0, 0.0]])
    np.testing.assert_allclose(overflow.of(tl.softmax)(scores), right)
    with np.errstate(all="ignore"):
        assert np.isnan(overflow.of(tl.softmax)(scores + 1e4)).all()
    np.testing.assert_allclose(two_steps.of(tl.softmax)(scores), share / share.sum())
    symptoms = {m.name: m.symptom for m in (*found["softmax"], *found["attention_weights"])}
    told = {name: symptom for name, symptom in symptoms.items() if symptom}
    assert told == {"overflow": "overflow-in-exp"}
    assert found["attention_weights"][1].symptom == "overflow-in-exp"  # taken over with it
    assert (overflow.keeps, two_steps.keeps) == (12, 0)
    in_another, taken = (m.of(tl.attention_weights) for m in found["attention_weights"])
    np.testing.assert_allclose(in_another(scores), tl.softmax(scores, axis=-2))
    with np.errstate(all="ignore"):
        assert np.isnan(taken(scores + 1e4)).all()


def test_the_right_function_stays_as_it_is_and_a_wrong_one_requires_nothing():
    scores = np.array([[0.0, 1.0]])
    wrong = apply_edits(tl.attention_weights, [Edit("softmax", "np.exp", "np.exp2")])
    np.testing.assert_allclose(wrong(scores), [[1 / 3, 2 / 3]])
    assert tl.attention_weights(scores)[0, 1] > 0.7
    with pytest.raises(TypeError):
        tl.causal_mask("3")
    with pytest.raises(ValueError, match="NaN"):
        tl.softmax(np.array([[np.nan, 1.0]]))
    assert np.isnan(apply_edits(tl.softmax, ())(np.array([[np.nan, 1.0]]))).all()


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("scores.min", "'scores.min' is not in softmax: write the edit anew"),
        ("keepdims=True", "'keepdims=True' stands 2 times in softmax"),
    ],
)
def test_a_piece_that_is_gone_or_stands_twice_is_refused(old, said):
    with pytest.raises(ValueError, match=said):
        apply_edits(tl.softmax, [Edit("", old, "")])


def test_a_function_that_is_not_called_cannot_be_edited():
    with pytest.raises(ValueError, match="softmax calls no function embed"):
        apply_edits(tl.softmax, [Edit("embed", "E", "F")])


MISTAKE = "wrong: it is wrong\n    Mend it.\n    - a\n    + b\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"# f\n\n{MISTAKE}\n{MISTAKE}", "wrong stands here twice: give one of them another name"),
        (f"# f\n\n{MISTAKE}\n# f\n", "f stands here twice"),
        ("# f\n\nwrong: it is wrong\n    Mend it.\n", "give a sentence that mends it, and an"),
        ("# f\n\nwrong: it is wrong\n    - a\n    + b\n", "give a sentence that mends it"),
        ("# f\n\nIt is wrong.\n    Mend it.\n", "write `# function`, `name: what it does wrong`"),
        ("# f\n\nfrom g: wrong\n", "'g'"),
        (f"# f\n\n{MISTAKE}\n# g\n\nfrom f: right\n", "'right'"),
        (MISTAKE, "begin with `# function`"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path, text, said):
    with pytest.raises(ValueError, match=r"^room/mistakes\.txt, at '.*': ") as told:
        written(tmp_path, text)
    assert said in str(told.value)
