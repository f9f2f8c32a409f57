"""What a check says of a difference is true on input that the check has not used."""

from dataclasses import replace

import numpy as np
import pytest

import tutorial_lib as tl
from tests.practice.rooms import account
from tutorial_lib.practice.calls import Answers, Case
from tutorial_lib.practice.diagnosis import (
    KINDS,
    explain_difference,
    rounding_error,
    shape_difference_text,
    wrong_values,
)
from tutorial_lib.practice.inputs import normal

SIZES = 2, 5, 7, 3, 8, 11  # B, T, S, H, d_k, d_v
OTHER = 3, 4, 9, 2, 6, 13
LAST = 4, 6, 11, 3, 10, 5  # sizes that no check has


def heads(seed, sizes, **options):
    """A case of queries, keys and values."""
    B, T, S, H, d_k, d_v = sizes
    shapes = {"Q": (B, H, T, d_k), "K": (B, H, S, d_k), "V": (B, H, S, d_v)}
    arrays = {n: normal(seed + i, *shape) for i, (n, shape) in enumerate(shapes.items())}
    return Case("heads", arrays, options)


def masked(seed, sizes):
    """The same under a mask for each sentence, in which one query sees nothing."""
    B, T, S, *_ = sizes
    mask = np.random.default_rng(seed).random((B, 1, T, S)) < 0.6
    mask[..., 0] = True
    mask[:, :, 1] = False
    return heads(seed, sizes, mask=mask)


def scored(seed, sizes):
    """Scores of a batch."""
    B, T, S, H, *_ = sizes
    return Case("scores", {"scores": normal(seed, B, H, T, S)})


def square(seed, sizes):
    """Arrays of two equal last axes, of even length."""
    return Case("square", {"A": normal(seed, sizes[0], 2 * sizes[1], 2 * sizes[1])})


def matrices(seed, sizes):
    """Scores that are no case of a name in the field."""
    return Case("matrices", {"A": normal(seed, sizes[0], sizes[1], 2 * sizes[2])})


def counted(seed, sizes):
    """Numbers of queries and keys."""
    return Case("counted", {"T": sizes[1], "S": sizes[2]})


def twice(A):
    """Twice an array."""
    return 2.0 * A


def bent(A):
    """A function of which a slip has no other name."""
    return np.tanh(A) + A**2 / 4


def attend(Q, K, V, *, mask=None):
    """The right function, on scores that may be scaled."""
    return tl.scaled_dot_product_attention(Q, K, V, mask=mask)


def with_nan(Q, K, V, *, mask):
    """Attention that gives NaN where a query sees nothing."""
    mixed = attend(Q, K, V, mask=mask)
    return np.where(mask.any(axis=-1, keepdims=True), mixed, np.nan)


def positive(scores):
    """Weights whose rows are not divided by their sums."""
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def mask_of(T, S, *, k=0):
    """A causal mask whose diagonal is moved."""
    return np.tri(T, S, k=S - T + k, dtype=bool)


WRONG = [  # the right function, a wrong one, the cases, what is said
    (attend, lambda Q, K, V, *, mask: attend(Q, K, V), masked, "True everywhere"),
    (attend, lambda Q, K, V, *, mask: attend(Q, K, V, mask=~mask), masked, "exchanged"),
    (
        attend,
        lambda Q, K, V: attend(np.arange(Q.size).reshape(Q.shape) % 3 + 0.0, K, V),
        heads,
        "does not depend on `Q`",
    ),
    (twice, lambda A: twice(A).swapaxes(-1, -2), square, "have changed places"),
    (bent, lambda A: np.tanh(A) - A**2 / 4, matrices, "`np.tanh(A) - A ** 2 / 4` in place of"),
    (bent, lambda A: A + A**2 / 4, matrices, "`A` in place of `np.tanh(A)` in `np.tanh(A) + A"),
    (
        twice,
        lambda A: twice(A)[:, [2, 0, 1, *range(3, A.shape[1])]],
        matrices,
        "in a different order",
    ),
    (twice, lambda A: twice(A).swapaxes(-1, -2).reshape(A.shape), matrices, "by a reshape"),
    (twice, lambda A: 6 * A, matrices, "is 3 times the right one"),
    (
        tl.scaled_dot_product_attention,
        lambda Q, K, V: Q.shape[-1] ** 0.5 * attend(Q, K, V),
        heads,
        "is √d_k times",
    ),
    (twice, lambda A: -twice(A), matrices, "every sign is reversed"),
    (mask_of, lambda T, S: ~mask_of(T, S), counted, "are exchanged"),
    (mask_of, lambda T, S: mask_of(T, S, k=2), counted, "True at too many positions"),
    (mask_of, lambda T, S: mask_of(T, S, k=-2), counted, "False at too many"),
    (tl.softmax, positive, scored, "divided by their sums they are right"),
    (attend, with_nan, masked, "it holds NaN, and is right wherever"),
    (twice, lambda A: twice(A) * A[..., :1], matrices, "for a factor of its own"),
]


def claim_of(row):
    """What is said of a wrong function of the table on two cases; the claim, and a new case."""
    reference, own, case, _ = row
    claim = explain_difference(
        wrong_values(Answers(own, reference, (case(1, SIZES), case(20, OTHER))))
    )
    return claim, next(wrong_values(Answers(own, reference, (case(40, LAST),))))


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row[-1])
def test_claim_is_what_was_planted_and_holds_of_other_sizes_but_not_of_other_numbers(row):
    claim, new = claim_of(row)
    assert row[-1] in claim.says
    sampled = np.random.default_rng(3).standard_normal(new.right.shape)
    other = sampled > 0 if new.right.dtype == bool else sampled
    with np.errstate(all="ignore"):
        assert claim.is_true_of(new)
        if "does not depend" not in claim.says:
            assert not claim.is_true_of(replace(new, value=other, own=lambda *a, **k: other))


def kind_of(row):
    """The kind of claim that is told of a wrong function of the table."""
    reference, own, case, _ = row
    seen = list(wrong_values(Answers(own, reference, (case(1, SIZES), case(20, OTHER)))))
    says = claim_of(row)[0].says
    with np.errstate(all="ignore"):
        return next(kind for kind in KINDS if says in [claim.says for claim in kind(seen)])


def test_every_kind_of_claim_is_planted_above():
    assert {*map(kind_of, WRONG)} == set(KINDS)


def test_of_differences_without_a_kind_nothing_is_said():
    def wrong(A):
        return np.sin(9 * A) + A**3

    assert explain_difference(wrong_values(Answers(wrong, twice, (matrices(1, SIZES),)))) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rounding_is_told_as_rounding(dtype):
    def rounded(A):
        return twice(A.astype(dtype)).astype(float)

    error = rounding_error(Answers(rounded, twice, (matrices(1, SIZES),)))
    assert (error is None) == (dtype is np.float16), "of half precision too little is left"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda A: A.swapaxes(-1, -2), "have changed places"),
        (lambda A: A[None], "an axis of length 1 is too many"),
        (lambda A: A.ravel(), "the numbers and their order are right"),
        (lambda A: A[..., 1:3], ""),
        (lambda A: A[0, 0], ""),
    ],
)
def test_a_wrong_shape_is_told_by_how_it_comes_about(change, words):
    A = normal(1, 2, 5, 7)
    assert words in shape_difference_text(change(A), A)
    assert bool(words) == bool(shape_difference_text(change(A), A))


def test_dropout_is_told_by_a_second_call(capsys):
    rng = np.random.default_rng()

    def left_on(scores, *, mask=None):
        weights = tl.attention_weights(scores, mask=mask)
        return weights * (rng.random(weights.shape) < 0.9)

    said = account("attention_weights", left_on, capsys)
    assert "A second call with the same input gives another result: is dropout" in said


def test_of_a_few_small_numbers_nothing_is_claimed():
    def one_more(T, S):
        return T + S

    def product(T, S):
        return T + S if T < 5 else T * S // 2

    few = Case("few", {"T": 5, "S": 7})
    assert explain_difference(wrong_values(Answers(product, one_more, (few,)))) is None
    many = [Case(f"{n}", {"T": n, "S": 997 + n}) for n in (50, 51, 53)]
    claim = explain_difference(wrong_values(Answers(lambda T, S: 2 * (T + S), one_more, many)))
    assert claim.says == "every number is 2 times the right one"
