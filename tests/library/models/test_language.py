"""Models of blocks against loops, damaged ones refused; sentences; 8 bits; GPT-2's two matrices."""

import itertools
import re
from dataclasses import replace

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
    encode,
    in_eight_bits,
    quantise_rows,
    run_blocks,
)

IDS = np.array([[3, 1, 3, 0, 6], [5, 5, 4, 2, 0]])


@pytest.fixture
def block_stack(model, normal):
    """The layers of `model` as blocks, with MLPs of 8 and 6 numbers."""
    mlp_pairs = [[normal(90 + d, d, 5).T, normal(80 + d, d, 5) / d**0.5] for d in (8, 6)]
    return BlockModel(model.E, model.P, model.layers, tuple(map(tuple, mlp_pairs)), model.U)


@pytest.mark.parametrize("ids", [IDS, IDS[1, :3]], ids=lambda ids: ids.ndim)
def test_blocks_score_words_as_plain_loops_do(ids, block_stack, assert_close):
    logits, traces = run_blocks(block_stack, ids)
    assert_close(logits, oracle.blocks(block_stack, ids))
    X, mask = oracle.embed(ids, block_stack.E, block_stack.P), oracle.causal_mask(ids.shape[-1])
    for params, feed, record in zip(block_stack.layers, block_stack.feeds, traces, strict=True):
        assert_close(record.X, oracle.rms_norm(X))
        assert record.params is params
        X = oracle.block(X, params, feed, mask)


def test_a_stack_is_its_list_of_arrays(block_stack):
    copied_arrays = BlockModel.of(block_stack.arrays).arrays
    assert len(copied_arrays) == 3 + 6 * 2
    assert all(a is b for a, b in zip(copied_arrays, block_stack.arrays, strict=True))


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
@pytest.mark.parametrize("model_fixture", ["model", "block_stack"])
def test_a_damaged_checkpoint_is_refused_by_name(name, model_fixture, request):
    damage, message = DAMAGES[name]
    model = request.getfixturevalue(model_fixture)
    with pytest.raises(ValueError, match=message.format(kind=type(model).__name__)):
        model.of(damage(model.arrays))


def test_arrays_of_one_kind_of_model_make_none_of_the_other(model, block_stack):
    assert (len(block_stack.arrays) - 3) % 4 == 0  # as many as three layers have
    for model_class, other_model in ((TinyModel, block_stack), (BlockModel, model)):
        message = f"arrays make no {model_class.__name__}.*Take {type(other_model).__name__}.of"
        with pytest.raises(ShapeError, match=message):
            model_class.of(other_model.arrays)
    with pytest.raises(TypeError, match="arrays is a ndarray; expected a list or a tuple"):
        TinyModel.of(np.ones((11, 7, 5)))


WIDE_LAYER = Params(*np.ones((3, 2, 6, 3)), np.ones((6, 6)))
MLP_PAIR = np.ones((5, 8)), np.ones((8, 5))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": [WIDE_LAYER, WIDE_LAYER]}, r"^layers\[0\].W_Q has shape .*with d_model=5, but"),
        ({"feeds": [MLP_PAIR]}, r"feeds has entries of \[2\] .*expected W_1 and W_2 for each"),
        ({"feeds": [MLP_PAIR, MLP_PAIR[:1]]}, r"feeds has entries of \[2, 1\]"),
        ({"feeds": [MLP_PAIR, (*MLP_PAIR, MLP_PAIR[1])]}, r"feeds has entries of \[2, 3\]"),
        ({"feeds": [MLP_PAIR[::-1], MLP_PAIR]}, r"W_1 has shape \(8, 5\).*with d_model=5"),
        ({"feeds": [MLP_PAIR, (MLP_PAIR[0] * np.inf, MLP_PAIR[1])]}, r"W_1 is inf at position"),
    ],
)
def test_layers_and_feeds_of_another_width_or_number_are_refused(fields, message, block_stack):
    with pytest.raises(ValueError, match=message):
        replace(block_stack, **fields)


def test_a_sentence_is_its_words_behind_bos():
    ids = encode(" the dogs  that bark\n( often ) . ")
    assert ids.dtype.kind == "i"
    assert " ".join(WORDS[i] for i in ids) == "<bos> the dogs that bark ( often ) ."
    for word in WORDS[1:]:
        assert encode(word).tolist() == [0, ID[word]]


def test_a_sentence_has_as_many_words_as_the_model_has_positions_but_one(example_model):
    ids = encode("the " * (LENGTH - 1))
    assert copying.run(example_model, ids)[0].shape == (LENGTH, len(WORDS)) == (64, 100)
    with pytest.raises(ShapeError, match="has 65 tokens, but P has rows for 64 positions"):
        copying.run(example_model, np.append(ids, 0))


NO_WORDS = "The sentence has no word; expected 1 to 63. Write some, such as “the dogs that bark”."
LONG = "The sentence has 70 words; expected at most 63, since the model has 64 positions and <bos> "
UNKNOWN, SPLIT_UP = "is no word of this text", "but its parts are. Put blanks between them:"
REFUSED = [
    ("", NO_WORDS),
    (" \t\n", NO_WORDS),
    ("dogs " * 70, f"{LONG}takes the first. Leave out 7."),
    ("<bos> the dogs", "'<bos>' is put in front by itself. Leave it out."),
    ("dogs bark.", f"'bark.' {UNKNOWN}, {SPLIT_UP} “bark .”."),
    ("(never)", f"'(never)' {UNKNOWN}, {SPLIT_UP} “( never )”."),
    ("The dogs", f"'The' {UNKNOWN}; near it: the, they, she. Take one of its words."),
    ("Anna, Kern", f"'Anna,' {UNKNOWN}; near it: Anna. Take one of its words."),
    ("dogs barking", f"'barking' {UNKNOWN}; near it: barks, bark. Take one of its words."),
    ("the elephant", f"'elephant' {UNKNOWN}. {language.WORDS_HINT}"),
    ("a", f"'a' {UNKNOWN}. {language.WORDS_HINT}"),
    ("the-dog", f"'the-dog' {UNKNOWN}. {language.WORDS_HINT}"),
    ("x" * 5000, f"'{'x' * 20}…' {UNKNOWN}. {language.WORDS_HINT}"),
]


@pytest.mark.parametrize(("sentence", "message"), REFUSED)
def test_a_sentence_that_is_none_is_refused_in_these_words(sentence, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode(sentence)


def test_changed_letters_are_counted_as_by_trying_all_ways():
    def edit_distance(word, other):
        if not word or not other:
            return len(word) + len(other)
        edit_counts = edit_distance(word[1:], other), edit_distance(word, other[1:])
        return min(min(edit_counts) + 1, edit_distance(word[1:], other[1:]) + (word[0] != other[0]))

    for word, other in itertools.product(["", "a", "dgo", "dogs", "mice", "gods"], repeat=2):
        assert language._edit_distance(word, other) == edit_distance(word, other), (word, other)


def test_all_that_kinds_names_is_of_this_text():
    words = "dogs bark Anna Kern often they themselves the that . ( ) [ ]"
    assert all(word in language.WORDS_HINT for word in words.split())
    assert len(encode(words)) == 1 + 14


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_8_bits_are_off_by_at_most_half_a_step_of_their_row(normal, dtype):
    W = (normal(70, 4, 3, 50) * np.logspace(-3, 3, 12).reshape(4, 3, 1)).astype(dtype)
    codes, steps = quantise_rows(W)
    assert (codes.dtype, codes.shape, steps.shape) == (np.int8, W.shape, (4, 3))
    assert (np.abs(codes).max(axis=-1) == 127).all()
    rounding_error = np.abs(codes * steps[..., None] - W)
    assert (rounding_error <= steps[..., None] / 2 * (1 + 1e-12)).all()
    assert (rounding_error > 0.4 * steps[..., None]).any()


def test_a_row_of_zeros_stays_one_and_whole_numbers_up_to_127_stay_exact():
    W = np.vstack([np.zeros(255), np.arange(-127.0, 128)])
    with np.errstate(all="raise"):
        codes, steps = quantise_rows(W)
    np.testing.assert_array_equal(codes * steps[:, None], W)
    np.testing.assert_array_equal(quantise_rows(W.astype(np.int64))[0], codes)


def test_the_example_in_8_bits_answers_as_well(example_model):
    documents = sample_documents(np.random.default_rng(4000), 60)
    rounded_model = in_eight_bits(example_model)
    for array, rounded_array in zip(example_model.arrays, rounded_model.arrays, strict=True):
        codes, steps = quantise_rows(array)
        np.testing.assert_array_equal(rounded_array, codes * steps[..., None])
    exact_Y, logits_8 = (
        copying.run(m, documents.ids[:, :-1])[0] for m in (example_model, rounded_model)
    )
    assert 0 < (excess_loss(logits_8, documents) - excess_loss(exact_Y, documents)).mean() < 1e-3
    accuracies = accuracy(logits_8, documents)
    assert set(accuracies) == set(TASKS)
    assert min(accuracies.values()) > 0.9995  # 1.000 in three decimals
