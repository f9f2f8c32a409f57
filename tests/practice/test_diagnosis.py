"""What a check says of a difference is true on input that the check has not used."""

import numpy as np
import pytest

import tutorial_lib as tl
from tests.practice.axes import arguments
from tests.practice.rooms import MISTAKES, account, asked
from tutorial_lib.practice.calls import Answers, Case
from tutorial_lib.practice.diagnosis import (
    KINDS,
    Seen,
    coarse,
    counted_by,
    diagnose,
    differing,
    of_shape,
)
from tutorial_lib.practice.inputs import normal
from tutorial_lib.variants.positions import rope_frequencies, rotate

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


def layers(seed, sizes):
    """A layer's input and parameters."""
    B, T, _, H, d_k, d_v = sizes
    rng = np.random.default_rng(seed)
    params = tl.init_params(rng, d_model=d_k + d_v, n_heads=H, d_k=d_k, d_v=d_v)
    return Case("layer", {"X": rng.standard_normal((B, T, d_k + d_v)), "params": params})


def counted(seed, sizes):
    """Numbers of queries and keys."""
    return Case("counted", {"T": sizes[1], "S": sizes[2]})


def positioned(seed, sizes):
    """Queries of a batch, each sequence with its own positions."""
    B, T, _, H, d_k, _ = sizes
    positions = np.arange(T) + 7 * np.arange(1, B + 1)[:, None, None]
    given = {"X": normal(seed, B, H, T, d_k), "positions": positions}
    return Case("positioned", given | {"frequencies": rope_frequencies(d_k)})


def twice(A):
    """Twice an array."""
    return 2.0 * A


def bent(A):
    """A function of which a slip has no other name."""
    return np.tanh(A) + A**2 / 4


def attend(Q, K, V, *, mask=None):
    """The right function, on scores that may be scaled."""
    return tl.scaled_dot_product_attention(Q, K, V, mask=mask)


def scaled(scale):
    """Attention whose scores are multiplied by a function of Q, K and V."""

    def function(Q, K, V, *, mask=None):
        scores = Q @ np.swapaxes(K, -1, -2) * scale(Q, K, V)
        return tl.attention_weights(scores, mask=mask) @ V

    return function


def with_nan(Q, K, V, *, mask):
    """Attention that gives NaN where a query sees nothing."""
    mixed = attend(Q, K, V, mask=mask)
    return np.where(mask.any(axis=-1, keepdims=True), mixed, np.nan)


def positive(scores):
    """Weights whose rows are not divided by their sums."""
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def spoiled(index, *, wrong):
    """Twice an array, but for one index of an axis, or only there."""

    def function(A):
        right, other = twice(A), twice(A) + 1 + np.abs(A)
        other[index] = right[index]
        changed = right.copy()
        changed[index] = right[index] + 1 + np.abs(A[index])
        return changed if wrong else other

    return function


def mask_of(T, S, *, k=0):
    """A causal mask whose diagonal is moved."""
    return np.tri(T, S, k=S - T + k, dtype=bool)


def layer(X, params, *, mask=None):
    """The layer."""
    return tl.multi_head_attention(X, params, mask=mask)


WRONG = [  # the right function, a wrong one, the cases, what is said
    (attend, lambda Q, K, V, *, mask: attend(Q, K, V), masked, "`mask` were not used"),
    (attend, lambda Q, K, V, *, mask: attend(Q, K, V, mask=~mask), masked, "exchanged"),
    (
        attend,
        lambda Q, K, V, *, mask: attend(Q, K, V, mask=mask[:1]),
        masked,
        "every sentence of `mask` were the first",
    ),
    (mask_of, lambda T, S: mask_of(T, S + 1)[:, :S], counted, "above the diagonal"),
    (
        attend,
        lambda Q, K, V: attend(np.arange(Q.size).reshape(Q.shape) % 3 + 0.0, K, V),
        heads,
        "does not depend on `Q`",
    ),
    (attend, scaled(lambda *_: 1), heads, "not divided by √d_k"),
    (attend, scaled(lambda Q, K, V: 1 / Q.shape[-1]), heads, "divided by d_k"),
    (attend, scaled(lambda Q, K, V: Q.shape[-3] ** -0.5), heads, "divided by √H"),
    (attend, scaled(lambda Q, K, V: K.shape[-2] ** -0.5), heads, "divided by √S"),
    (
        rotate,
        lambda X, positions, frequencies: rotate(X, positions[0], frequencies),
        positioned,
        "every sentence of `positions` were the first",
    ),
    (
        rotate,
        lambda X, *given: rotate(rotate(X, *given), *given),
        positioned,
        "`positions` were twice as large",
    ),
    (
        layer,
        lambda X, params: layer(X[:1] + 0 * X, params),
        layers,
        "every sentence of `X` were the first",
    ),
    (attend, scaled(lambda *_: 0.5), heads, "divided by 2 whatever d_k is"),
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
    (attend, lambda Q, K, V: Q.shape[-1] ** 0.5 * attend(Q, K, V), heads, "is √d_k times"),
    (attend, lambda Q, K, V: attend(Q, K, V) / Q.shape[-3], heads, "is 1/H times"),
    (twice, lambda A: -twice(A), matrices, "every sign is reversed"),
    (mask_of, lambda T, S: ~mask_of(T, S), counted, "exchanged"),
    (mask_of, lambda T, S: mask_of(T, S, k=-1), counted, "the diagonal is False"),
    (mask_of, lambda T, S: mask_of(T, S, k=1), counted, "above the diagonal is True"),
    (mask_of, lambda T, S: mask_of(T, S, k=2), counted, "True at too many positions"),
    (mask_of, lambda T, S: mask_of(T, S, k=-2), counted, "False at too many"),
    (tl.softmax, positive, scored, "divided by their sums they are right"),
    (attend, with_nan, masked, "in which the mask hides every key"),
    (twice, lambda A: twice(A) * A[..., :1], matrices, "for a factor of its own"),
    (twice, spoiled(np.s_[:, -1], wrong=True), matrices, "last row (axis -2) is wrong"),
    (twice, spoiled(np.s_[:, 0], wrong=False), matrices, "is right"),
    (
        attend,
        lambda Q, K, V, *, mask: attend(Q, K, V, mask=mask | (np.arange(mask.shape[-1]) == 2)),
        masked,
        "should be 0",
    ),
]


def claim_of(row):
    """What is said of a wrong function of the table on two cases; the claim, and a new case."""
    reference, own, case, _ = row
    claim = diagnose(Answers(own, reference, (case(1, SIZES), case(20, OTHER))))
    return claim, next(differing(Answers(own, reference, (case(40, LAST),))))


each_row = pytest.mark.parametrize("row", WRONG, ids=lambda row: row[-1])


@each_row
def test_claim_is_what_was_planted_and_holds_on_other_sizes_and_numbers(row):
    claim, new = claim_of(row)
    assert claim is not None
    assert row[-1] in claim.says
    with np.errstate(all="ignore"):
        assert claim.is_true_of(new)


@pytest.mark.parametrize("name", MISTAKES)
def test_an_axis_is_counted_by_what_it_holds_or_not_at_all(name):
    right, cases = asked(name)
    nouns = {"H": "head", "G": "head", "T": "token", "S": "token", "B1": "sentence"}
    for case in cases:
        seen = Seen(case, None, None, "", None, right)
        for argument, axes, shape in arguments(name, "", case.inputs):
            axes = ["B2", "B1", *axes.split()][-len(shape) :]
            for axis in (n for n in range(2, 1 + min(4, len(axes))) if shape[-n] > 1):
                noun = nouns.get(axes[-axis], "")
                said = counted_by(seen, shape, axis)
                assert said in {noun, "row" * (axis == 2)}, f"{case.label}: {argument}, {axes}"


def kind_of(row):
    """The kind of claim that is told of a wrong function of the table."""
    reference, own, case, _ = row
    seen = list(differing(Answers(own, reference, (case(1, SIZES), case(20, OTHER)))))
    says = claim_of(row)[0].says
    with np.errstate(all="ignore"):
        return next(kind for kind in KINDS if says in [claim.says for claim in kind(seen)])


def test_every_kind_of_claim_is_planted_above():
    assert {*map(kind_of, WRONG)} == set(KINDS)


@each_row
def test_claim_is_false_of_numbers_that_have_nothing_to_do_with_it(row):
    claim, new = claim_of(row)
    drawn = np.random.default_rng(3).standard_normal(new.right.shape)
    other = drawn > 0 if new.right.dtype == bool else drawn
    unrelated = type(new)(new.case, other, new.right, new.part, lambda *a, **k: other, row[0])
    if "does not depend" not in claim.says and "should be 0" not in claim.says:
        with np.errstate(all="ignore"):
            assert not claim.is_true_of(unrelated)


def test_of_differences_without_a_kind_nothing_is_said():
    def wrong(A):
        return np.sin(9 * A) + A**3

    assert diagnose(Answers(wrong, twice, (matrices(1, SIZES),))) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rounding_is_told_as_rounding(dtype):
    def rounded(A):
        return twice(A.astype(dtype)).astype(float)

    error = coarse(Answers(rounded, twice, (matrices(1, SIZES),)))
    assert (error is None) == (dtype is np.float16), "of half precision too little is left"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda A: A.swapaxes(-1, -2), "have changed places"),
        (lambda A: A[None], "an axis of length 1 is too many"),
        (lambda A: A.ravel(), "the numbers and their order are right"),
        (lambda A: A.sum(axis=-2), "it is added up along axis -2"),
        (lambda A: A.mean(axis=0), "it is averaged along axis -3"),
        (lambda A: A[..., :2], "it is cut along axis -1: 2 of 7"),
        (lambda A: A[..., 1:3], ""),
        (lambda A: A[0, 0], ""),
    ],
)
def test_a_wrong_shape_is_told_by_how_it_comes_about(change, words):
    A = normal(1, 2, 5, 7)
    assert words in of_shape(change(A), A)
    assert bool(words) == bool(of_shape(change(A), A))


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
    assert diagnose(Answers(product, one_more, (few,))) is None
    many = [Case(f"{n}", {"T": n, "S": 997 + n}) for n in (50, 51, 53)]
    claim = diagnose(Answers(lambda T, S: 2 * (T + S), one_more, many))
    assert claim.says == "every number is 2 times the right one"


def test_a_factor_that_is_a_size_is_told_so_only_where_the_size_varies():
    def averaged(Q, K, V):
        return attend(Q, K, V) / Q.shape[-3]

    same = tuple(heads(seed, SIZES) for seed in (1, 20))
    says = "every number is 0.3333 times the right one, as 1/H is here"
    assert diagnose(Answers(averaged, attend, same)).says == says
    other = heads(1, SIZES), heads(20, OTHER)
    assert (
        diagnose(Answers(averaged, attend, other)).says == "every number is 1/H times the right one"
    )


def test_a_scale_that_two_sizes_explain_is_told_as_another_number():
    square = heads(1, (2, 5, 5, 3, 8, 11)), heads(20, (2, 7, 7, 3, 10, 11))
    wrong = scaled(lambda Q, K, V: K.shape[-2] ** -0.5)  # as many keys as queries
    says = "the scores are not divided by √d_k, but by another number"
    assert diagnose(Answers(wrong, attend, square)).says == says
