"""Models of blocks against loops, damaged ones refused; sentences; 8 bits; GPT-2's two matrices."""

import difflib
import itertools
import re

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, ShapeError, records
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
LAYERS = [((2, 5, 3), (2, 5, 3), (2, 5, 2), (4, 5)), ((3, 5, 2), (3, 5, 2), (3, 5, 4), (12, 5))]
FEEDS = [((5, 8), (8, 5)), ((5, 6), (6, 5))]


def arrays_of(normal, layers):
    """Arrays of a model of 7 words, 9 positions and d_model 5."""
    shapes = [(7, 5), (9, 5), *layers, (5, 7)]
    return [normal(60 + i, *shape) / shape[-2] ** 0.5 for i, shape in enumerate(shapes)]


@pytest.fixture
def stack(normal):
    """Two blocks with 2 and 3 heads, and MLPs of 8 and 6 numbers."""
    layers = [(*layer, *feed) for layer, feed in zip(LAYERS, FEEDS, strict=True)]
    return BlockModel.of(arrays_of(normal, itertools.chain(*layers)))


@pytest.fixture
def tiny(normal):
    """The same without norms and MLPs."""
    return TinyModel.of(arrays_of(normal, itertools.chain(*LAYERS)))


@pytest.fixture(scope="module")
def example():
    """The committed model of the known text."""
    return TinyModel.of(records.checkpoint("known_text"))


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


def test_without_norms_and_with_second_matrices_of_zeros_blocks_are_tiny_model(
    tiny, normal, monkeypatch
):
    monkeypatch.setattr(language, "rms_norm", lambda X: X)
    feeds = tuple((normal(80 + n, 5, 8), np.zeros((8, 5))) for n in range(2))
    stack = BlockModel(tiny.E, tiny.P, tiny.layers, feeds, tiny.U)
    found, right = run_blocks(stack, IDS), copying.run(tiny, IDS)
    np.testing.assert_array_equal(found[0], right[0])
    for trace, expected in zip(found[1], right[1], strict=True):
        np.testing.assert_array_equal(trace.weights, expected.weights)


def test_no_word_knows_what_comes_after_it(stack):
    changed = IDS.copy()
    changed[:, 3] = 6
    before, after = run_blocks(stack, IDS)[0], run_blocks(stack, changed)[0]
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any(axis=-1).all()


def test_a_stack_is_its_list_of_arrays(stack):
    again = BlockModel.of(stack.arrays)
    assert len(stack.arrays) == 3 + 6 * 2
    assert all(a is b for a, b in zip(again.arrays, stack.arrays, strict=True))


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ([0, 1], TypeError, "ids is a list"),
        (np.array([0.0, 1.0]), TypeError, "ids is an array of float64; expected whole numbers"),
        (np.array([0, 7]), ValueError, "ids is 7 at position \\(1,\\); expected 0 to 6"),
        (np.array([-1]), ValueError, "ids is -1 at position"),
        (np.zeros(10, dtype=int), ShapeError, "has 10 tokens, but P has rows for 9 positions"),
        (np.zeros((2, 0), dtype=int), ShapeError, "axis T is empty"),
    ],
)
@pytest.mark.parametrize("kind", ["blocks", "layers"])
def test_ids_that_a_model_cannot_read_are_refused(ids, error, says, kind, stack, tiny):
    run, model = {"blocks": (run_blocks, stack), "layers": (copying.run, tiny)}[kind]
    with pytest.raises(error, match=says):
        run(model, ids)


def test_a_model_of_the_other_kind_is_refused(stack, tiny):
    with pytest.raises(TypeError, match="model is a TinyModel; expected a BlockModel"):
        run_blocks(tiny, IDS)
    with pytest.raises(TypeError, match="model is a BlockModel; expected a TinyModel"):
        copying.run(stack, IDS)
    with pytest.raises(TypeError, match="model is a BlockModel; expected a TinyModel"):
        in_eight_bits(stack)


# --- damaged checkpoints ---


def replaced(place, array):
    """Damage: another array in a place of the list."""
    return lambda arrays: [array if n == place % len(arrays) else W for n, W in enumerate(arrays)]


def emptied(place):
    """Damage: one number of an array that is NaN."""

    def damage(arrays):
        changed = arrays[place].copy()
        changed[(0,) * changed.ndim] = np.nan
        return replaced(place, changed)(arrays)

    return damage


DAMAGES = {
    "cut": (lambda arrays: arrays[:-1], "arrays make no {kind}; expected E, P,"),
    "one more": (lambda arrays: [*arrays, arrays[-1]], "arrays make no {kind}; expected E, P,"),
    "no layer": (lambda arrays: [*arrays[:2], arrays[-1]], "3 arrays make no {kind}"),
    "nothing": (lambda arrays: [], "0 arrays make no {kind}"),
    "E of another width": (replaced(0, np.ones((7, 4))), "P has shape .*with d_model=4"),
    "a flat E": (replaced(0, np.ones(35)), "E has shape \\(35,\\), 1 axes"),
    "P of another width": (replaced(1, np.ones((9, 4))), "P has shape .*with d_model=5"),
    "U of fewer words": (replaced(-1, np.ones((5, 6))), "U has shape .*with vocabulary=7"),
    "W_Q cut": (replaced(2, np.ones((2, 4, 3))), "W_K has shape .*d_model=4"),
    "W_O cut": (replaced(5, np.ones((3, 5))), "W_O has shape .*H\\*d_v=4"),
    "NaN in E": (emptied(0), "E is nan at position \\(0, 0\\)"),
    "NaN in P": (emptied(1), "P is nan at position \\(0, 0\\)"),
    "NaN in W_V": (emptied(4), "W_V is nan at position \\(0, 0, 0\\)"),
    "NaN in U": (emptied(-1), "U is nan at position \\(0, 0\\)"),
    "a list for U": (replaced(-1, [[1.0] * 7] * 5), "U is a list"),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("kind", [TinyModel, BlockModel])
def test_a_damaged_checkpoint_is_refused_by_name(name, kind, tiny, stack):
    damage, says = DAMAGES[name]
    arrays = list((tiny if kind is TinyModel else stack).arrays)
    error = TypeError if name == "a list for U" else ValueError
    if name in ("cut", "one more"):
        says = f"{len(damage(arrays))} {says}"
    with pytest.raises(error, match=says.format(kind=kind.__name__)):
        kind.of(damage(arrays))


@pytest.mark.parametrize(
    ("place", "array", "says"),
    [
        (6, np.ones((4, 8)), "W_1 has shape \\(4, 8\\).*with d_model=5"),
        (7, np.ones((7, 5)), "W_2 has shape \\(7, 5\\).*with d_feed=8"),
        (13, np.full((6, 5), np.inf), "W_2 is inf at position"),
    ],
)
def test_feeds_of_another_shape_are_refused_by_name(place, array, says, stack):
    with pytest.raises(ShapeError if "shape" in says else ValueError, match=says):
        BlockModel.of(replaced(place, array)(stack.arrays))


def test_layers_of_another_width_and_no_layers_are_refused(tiny, stack):
    wide = Params(*np.ones((3, 2, 6, 3)), np.ones((6, 6)))
    with pytest.raises(ShapeError, match=r"layer 1 has d_model=6, but E has shape \(7, 5\)"):
        TinyModel(tiny.E, tiny.P, (tiny.layers[0], wide), tiny.U)
    with pytest.raises(ShapeError, match="layers is empty; expected at least one"):
        TinyModel(tiny.E, tiny.P, (), tiny.U)
    with pytest.raises(TypeError, match="layer 0 is a tuple; expected Params"):
        TinyModel(tiny.E, tiny.P, ((1, 2),), tiny.U)
    with pytest.raises(ShapeError, match="feeds has 1 entries; expected 2: pairs W_1, W_2"):
        BlockModel(stack.E, stack.P, stack.layers, stack.feeds[:1], stack.U)


def test_arrays_of_one_kind_of_model_make_none_of_the_other(tiny, stack):
    assert (len(stack.arrays) - 3) % 4 == 0  # as many as three layers have
    for kind, other in ((TinyModel, stack), (BlockModel, tiny)):
        theirs = type(other).__name__
        says = f"these are the arrays of a {theirs}; expected those of a {kind.__name__}. Make the "
        with pytest.raises(ShapeError, match=f"^{says}model with {theirs}.of"):
            kind.of(other.arrays)


@pytest.mark.parametrize("kind", [TinyModel, BlockModel])
@pytest.mark.parametrize("arrays", [None, 3, np.ones((11, 7, 5)), iter([])])
def test_a_model_of_no_list_is_refused(kind, arrays):
    says = f"^arrays is a {type(arrays).__name__}; expected a list or a tuple of arrays such as"
    with pytest.raises(TypeError, match=says):
        kind.of(arrays)


def test_layers_and_feeds_that_are_no_lists_are_refused(stack):
    def made(layers=stack.layers, feeds=stack.feeds):
        return BlockModel(stack.E, stack.P, layers, feeds, stack.U)

    with pytest.raises(TypeError, match="layers is a Params; expected a list or a tuple of Params"):
        made(layers=stack.layers[0])
    with pytest.raises(TypeError, match="layers is a Params; expected a list or a tuple of Params"):
        TinyModel(stack.E, stack.P, stack.layers[0], stack.U)
    with pytest.raises(TypeError, match="feeds is a NoneType; expected a list or a tuple of pairs"):
        made(feeds=None)
    pair, (W_1, W_2) = stack.feeds
    with pytest.raises(ShapeError, match="feed 1 has 1 entries; expected 2: the matrices W_1 and"):
        made(feeds=(pair, (W_1,)))
    with pytest.raises(ShapeError, match="feed 1 has 3 entries; expected 2"):
        made(feeds=(pair, (W_1, W_2, W_2)))
    with pytest.raises(TypeError, match="feed 1 is a ndarray; expected a list or a tuple"):
        made(feeds=(pair, W_1))


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


@pytest.mark.parametrize("sentence", [None, ["the", "dogs"], b"the dogs", 3])
def test_a_sentence_that_is_no_string_is_refused(sentence):
    with pytest.raises(TypeError, match=f"sentence is a {type(sentence).__name__}; expected words"):
        encode(sentence)


def test_a_length_that_is_none_is_refused():
    with pytest.raises(ValueError, match="length=0; expected at least 1"):
        encode("the", length=0)
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
        assert language._changes(a, b) == by_recursion(a, b), (a, b)


def test_near_words_are_near_to_another_measure_too():
    for word in ("dgos", "brak", "themself", "horsse", "Adlr", "oftn"):
        near = language._near(word)
        assert 1 <= len(near) <= 3
        assert difflib.get_close_matches(word, WORDS, n=1)[0] in near


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


@pytest.mark.parametrize(
    ("W", "error", "says"),
    [
        (np.array([[1.0, np.nan]]), ValueError, "W is nan at position \\(0, 1\\)"),
        (np.array([[1.0, np.inf]]), ValueError, "W is inf at position \\(0, 1\\)"),
        (np.ones((2, 0)), ShapeError, "axis d is empty"),
        ([[1.0]], TypeError, "W is a list"),
        (np.ones((1, 2), dtype=np.int8), TypeError, "W is an array of int8"),
    ],
)
def test_what_has_no_8_bits_is_refused(W, error, says):
    with pytest.raises(error, match=says):
        eight_bits(W)


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
