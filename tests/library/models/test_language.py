"""Models of blocks against loops, damaged ones refused; sentences; 8 bits; GPT-2's two matrices."""

import itertools
import re

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, ShapeError
from tutorial_lib.models import copying, language
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.entropy import accuracy, excess_loss
from tutorial_lib.models.grammar import ID, LENGTH, TASKS, WORDS, sample_documents
from tutorial_lib.models.language import (
    BlockModel,
    eight_bits,
    encode,
    in_eight_bits,
    run_blocks,
)

IDS = np.array([[3, 1, 3, 0, 6], [5, 5, 4, 2, 0]])


@pytest.fixture
def stack(tiny, normal):
    """The layers of `tiny` as blocks, with MLPs of 8 and 6 numbers."""
    pairs = [[normal(90 + d, d, 5).T, normal(80 + d, d, 5) / d**0.5] for d in (8, 6)]
    return BlockModel(tiny.E, tiny.P, tiny.layers, tuple(map(tuple, pairs)), tiny.U)


# --- models of blocks ---


def test_blocks_score_words_as_plain_loops_do(stack, assert_close):
    assert_close(run_blocks(stack, IDS)[0], oracle.blocks(stack, IDS))
    assert_close(run_blocks(stack, IDS[1, :3])[0], oracle.blocks(stack, IDS[1, :3]))


def test_each_trace_is_of_the_normed_stream_that_its_block_reads(stack, assert_close):
    X = oracle.embed(IDS, stack.E, stack.P)
    for params, feed, found in zip(
        stack.layers, stack.feeds, run_blocks(stack, IDS)[1], strict=True
    ):
        assert_close(found.X, oracle.rms_norm(X))
        assert found.params is params
        X = oracle.block(X, params, feed, oracle.causal_mask(5))


def test_a_stack_is_its_list_of_arrays(stack):
    again = BlockModel.of(stack.arrays)
    assert len(stack.arrays) == 3 + 6 * 2
    assert all(a is b for a, b in zip(again.arrays, stack.arrays, strict=True))


# --- damaged checkpoints ---


DAMAGES = {
    "cut": (lambda arrays: arrays[:-1], "arrays make no {kind}; expected E, P,"),
    "one more": (lambda arrays: [*arrays, arrays[-1]], "arrays make no {kind}; expected E, P,"),
    "no layer": (lambda arrays: [*arrays[:2], arrays[-1]], "^3 arrays make no {kind}"),
    "E narrower": (lambda arrays: [arrays[0][:, :4], *arrays[1:]], "P has shape .*d_model=4"),
    "W_Q flat": (lambda arrays: [*arrays[:2], arrays[2][0], *arrays[3:]], "Is the checkpoint"),
    "NaN": (lambda arrays: [*arrays[:4], arrays[4] * np.nan, *arrays[5:]], "W_V is nan at posit"),
    "none": (lambda arrays: (), "arrays is empty"),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("kind", ["tiny", "stack"])
def test_a_damaged_checkpoint_is_refused_by_name(name, kind, request):
    damage, says = DAMAGES[name]
    model = request.getfixturevalue(kind)
    with pytest.raises(ValueError, match=says.format(kind=type(model).__name__)):
        model.of(damage(model.arrays))


def test_layers_and_feeds_of_another_width_or_number_are_refused(tiny, stack):
    wide = Params(*np.ones((3, 2, 6, 3)), np.ones((6, 6)))
    (W_1, W_2), other = stack.feeds

    def make(*feeds):
        return BlockModel(stack.E, stack.P, stack.layers, feeds, stack.U)

    with pytest.raises(ShapeError, match=r"^layers\[1\].W_Q has shape .*with d_model=5, but"):
        TinyModel(tiny.E, tiny.P, (tiny.layers[0], wide), tiny.U)
    with pytest.raises(ShapeError, match=r"^layers\[1\].W_Q has shape"):
        BlockModel(tiny.E, tiny.P, (tiny.layers[0], wide), stack.feeds, tiny.U)
    for feeds in ([other], [other, (W_1,)], [other, (W_1, W_2, W_2)]):
        with pytest.raises(ShapeError, match=r"feeds has entries of .*expected W_1 and W_2 for ea"):
            make(*feeds)
    with pytest.raises(ShapeError, match=r"W_1 has shape \(4, 8\).*with d_model=5"):
        make((W_1[:4], W_2), other)
    with pytest.raises(ValueError, match=r"W_1 is .*inf at position"):
        make(stack.feeds[0], tuple(W * np.inf for W in other))


def test_arrays_of_one_kind_of_model_make_none_of_the_other(tiny, stack):
    assert (len(stack.arrays) - 3) % 4 == 0  # as many as three layers have
    for kind, other in ((TinyModel, stack), (BlockModel, tiny)):
        says = f"arrays make no {kind.__name__}.*Take {type(other).__name__}.of"
        with pytest.raises(ShapeError, match=says):
            kind.of(other.arrays)
    with pytest.raises(TypeError, match="arrays is a ndarray; expected a list or a tuple"):
        TinyModel.of(np.ones((11, 7, 5)))


# --- sentences ---


def test_a_sentence_is_its_words_behind_bos():
    ids = encode(" the dogs  that bark\n( often ) . ")
    assert ids.dtype.kind == "i"
    assert " ".join(WORDS[i] for i in ids) == "<bos> the dogs that bark ( often ) ."
    for word in WORDS[1:]:
        assert encode(word).tolist() == [0, ID[word]]


def test_a_sentence_has_as_many_words_as_the_model_has_positions_but_one(example):
    ids = encode("the " * (LENGTH - 1))
    assert copying.run(example, ids)[0].shape == (LENGTH, len(WORDS)) == (64, 100)
    with pytest.raises(ShapeError, match="has 65 tokens, but P has rows for 64 positions"):
        copying.run(example, np.append(ids, 0))
    assert encode("the dogs", length=3).shape == (3,)
    with pytest.raises(ValueError, match="has 2 words; expected at most 1, since the model"):
        encode("the dogs", length=2)


REFUSED = {
    "": (
        nothing := "The sentence has no word; expected 1 to 63. Write some, such as "
        "“the dogs that bark”."
    ),
    " \t\n": nothing,
    "dogs " * 70: "The sentence has 70 words; expected at most 63, since the model has 64 "
    "positions and <bos> takes the first. Leave out 7.",
    "<bos> the dogs": "'<bos>' is put in front by itself. Leave it out.",
    "dogs bark.": "'bark.' is no word of this text, but its parts are. Put blanks between them: "
    "“bark .”.",
    "(never)": "'(never)' is no word of this text, but its parts are. Put blanks between them: "
    "“( never )”.",
    "The dogs": "'The' is no word of this text; near it: the, they, she. Take one of its words.",
    "Anna, Kern": "'Anna,' is no word of this text; near it: Anna. Take one of its words.",
    "dogs barking": "'barking' is no word of this text; near it: barks, bark. "
    "Take one of its words.",
    "the elephant": f"'elephant' is no word of this text. {language.KINDS}",
    "a": f"'a' is no word of this text. {language.KINDS}",
    "the-dog": f"'the-dog' is no word of this text. {language.KINDS}",
    "x" * 5000: f"'{'x' * 20}…' is no word of this text. {language.KINDS}",
}


@pytest.mark.parametrize("sentence", REFUSED, ids=lambda sentence: repr(sentence[:12]))
def test_a_sentence_that_is_none_is_refused_in_these_words(sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(REFUSED[sentence])}$"):
        encode(sentence)


def test_a_length_that_leaves_no_word_is_refused():
    for sentence in ("the", ""):
        with pytest.raises(ValueError, match=r"^length=1; expected at least 2, since <bos> takes"):
            encode(sentence, length=1)
    assert encode("the", length=2).tolist() == [0, ID["the"]]


def test_changed_letters_are_counted_as_by_trying_all_ways():
    def by_recursion(a, b):
        if not a or not b:
            return len(a) + len(b)
        ways = by_recursion(a[1:], b), by_recursion(a, b[1:])
        return min(min(ways) + 1, by_recursion(a[1:], b[1:]) + (a[0] != b[0]))

    for a, b in itertools.product(["", "a", "dgo", "dogs", "mice", "gods"], repeat=2):
        assert language._distance(a, b) == by_recursion(a, b), (a, b)


def test_all_that_kinds_names_is_of_this_text():
    named = "dogs bark Anna Kern often they themselves the that . ( ) [ ]"
    assert all(word in language.KINDS for word in named.split())
    assert len(encode(named)) == 1 + 14


# --- weights in 8 bits ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_8_bits_are_off_by_at_most_half_a_step_of_their_row(normal, dtype):
    W = (normal(70, 4, 3, 50) * np.logspace(-3, 3, 12).reshape(4, 3, 1)).astype(dtype)
    codes, steps = eight_bits(W)
    assert codes.dtype == np.int8
    assert codes.shape == W.shape
    assert steps.shape == (4, 3)
    assert (np.abs(codes).max(axis=-1) == 127).all()
    off = np.abs(codes * steps[..., None] - W)
    assert (off <= steps[..., None] / 2 * (1 + 1e-12)).all()
    assert (off > 0.4 * steps[..., None]).any()


def test_a_row_of_zeros_stays_one_and_whole_numbers_up_to_127_stay_exact():
    W = np.vstack([np.zeros(255), np.arange(-127.0, 128)])
    with np.errstate(all="raise"):
        codes, steps = eight_bits(W)
    np.testing.assert_array_equal(codes * steps[:, None], W)
    np.testing.assert_array_equal(eight_bits(W.astype(np.int64))[0], codes)


def test_the_example_in_8_bits_answers_as_well(example):
    documents = sample_documents(np.random.default_rng(4000), 60)
    rounded = in_eight_bits(example)
    for array, again in zip(example.arrays, rounded.arrays, strict=True):
        codes, steps = eight_bits(array)
        np.testing.assert_array_equal(again, codes * steps[..., None])
    before, after = (copying.run(m, documents.ids[:, :-1])[0] for m in (example, rounded))
    worse = excess_loss(after, documents).mean() - excess_loss(before, documents).mean()
    assert 0 < worse < 1e-3
    shares = accuracy(after, documents)
    assert set(shares) == set(TASKS)
    assert min(shares.values()) > 0.9995  # 1.000 in three decimals
