"""Bad input is refused at the door, in words: what was given, what was expected, how to mend it."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

import tutorial_lib as tl
from tutorial_lib import errors

COMPARISONS = {
    *("isfinite", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    *("maximum", "invert", "logical_and", "logical_or", "bitwise_and", "bitwise_or"),
}


class NoArithmetic(np.ndarray):
    """An array that can be looked at and compared; any computation with it is a failure."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        assert ufunc.__name__ in COMPARISONS, f"computed {ufunc.__name__} before the check"
        return getattr(ufunc, method)(*(np.asarray(value) for value in inputs), **options)


def array(*shape, bad=None, at=None, dtype=float):
    """An array of ones that refuses arithmetic; one entry may be bad."""
    ones = np.ones(shape, dtype=dtype).view(NoArithmetic)
    if at is not None:
        ones[at] = bad
    return ones


NAN, INF = float("nan"), float("inf")
PARAMS = tl.Params(np.ones((3, 12, 4)), np.ones((3, 12, 4)), np.ones((3, 12, 7)), np.ones((21, 12)))


@dataclass(frozen=True)
class Kind:
    """A kind of bad input: the error, what it says was expected, and how to mend it."""

    error: type
    expected: str
    mend: str


NO_ARRAY = Kind(TypeError, "expected a NumPy array", "Convert it first: np.asarray(")
OVERFLOW = Kind(ValueError, "product overflowed float16", "convert Q and K to float64")
TOO_LARGE = Kind(ValueError, "product overflowed float64", "make Q or K smaller")
NAN_SCORE = Kind(ValueError, "expected a finite number", "Look for NaN in Q and K")
HEADS = Kind(tl.ShapeError, "equal parts", "Choose n_heads from [1, 2, 3, 4, 6, 12]")
ODD = Kind(tl.ShapeError, "expected an even width", "Choose 6 or 8")
AXIS = Kind(tl.ShapeError, "expected an axis", "Choose axis=-1")
TOO_FEW_ROWS = Kind(tl.ShapeError, "expected at least", "Cut the sequence, or give P more rows")
OUTSIDE = Kind(ValueError, "expected 0 to 8", "Add a row to E")
NOT_FINITE = Kind(ValueError, "expected finite numbers", "np.argwhere(~np.isfinite(")
NO_LARGEST = Kind(ValueError, "expected a finite number", "attention_weights(scores, mask=mask)")
BASE = Kind(ValueError, "expected a positive finite number", "base=10_000.0")
TOO_FEW_KEYS = Kind(tl.ShapeError, "at least as many keys as queries", "Pass the keys of these")
PRECISIONS = Kind(TypeError, "float32 throughout or float64 throughout", "X.astype(")


EMBED = [
    ("embed", lambda: tl.embed(ids(), array(9, 12), array(4, 12)), TOO_FEW_ROWS, "5 tokens … 4 p"),
    ("embed", lambda: tl.embed(ids(9, (1, 3)), array(9, 12)), OUTSIDE, "ids is 9 … (1, 3)"),
    ("embed", lambda: tl.embed(ids(-1, (0, 4)), array(9, 12)), OUTSIDE, "ids is -1 … (0, 4)"),
]
POSITIONS = [
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 7), ODD, "d_model=7"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=0.0), BASE, "base=0.0"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=INF), BASE, "base=inf"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=NAN), BASE, "base=nan"),
]
INIT = [
    ("init_params", lambda: draw(d_model=12, n_heads=5), HEADS, "d_model=12 … n_heads=5"),
    ("init_params", lambda: draw(d_model=12, n_heads=5, d_v=3), HEADS, "does not split"),
]
WEIGHTS = [
    ("softmax", lambda: tl.softmax(np.array([INF, 0], "f2")), OVERFLOW, "row () is inf"),
    ("softmax", lambda: tl.softmax(array(5, 6), axis=2), AXIS, "scores has shape (5, 6) … axis 2"),
    ("softmax", lambda: tl.softmax(array(5, 6), axis=-3), AXIS, "expected an axis -3"),
    ("softmax", lambda: tl.softmax(array(5, 0)), AXIS, "scores has shape (5, 0)"),
    ("softmax", lambda: tl.softmax(array()), AXIS, "scores has shape ()"),
    ("softmax", lambda: tl.softmax(nan_at(4, 1, shape=(5, 6))), NAN_SCORE, "row (4,) is nan"),
    ("softmax", lambda: tl.softmax(rows(INF)), TOO_LARGE, "row (3,) is inf"),
    ("softmax", lambda: tl.softmax(rows(-INF)), NO_LARGEST, "row (3,) is -inf"),
    ("softmax", lambda: tl.softmax(array(3, bad=NAN, at=0)), NAN_SCORE, "row () is nan"),
    ("attention_weights", lambda: weigh(nan_at(2, 4, 9)), NAN_SCORE, "row (2, 4) is nan"),
    ("attention_weights", lambda: weigh(rows(INF), looks(5, 6)), TOO_LARGE, "(3,) is inf"),
    ("attention_weights", lambda: weigh(rows(-INF), looks(5, 6)), NO_LARGEST, "-inf"),
]
HEADS_ROWS = [
    ("split_heads", lambda: tl.split_heads(array(5, 12), 5), HEADS, "width=12 … n_heads=5"),
    ("split_heads", lambda: tl.split_heads(array(5, 12), 24), HEADS, "n_heads=24"),
]
NO_FLOATS = Kind(TypeError, "expected floats", ".astype(float)")
COPIES = Kind(tl.ShapeError, "does not broadcast", "Pass the shape of the array")
BACKWARD = [
    ("sum_copies", lambda: tl.sum_copies(array(2, 5), (5, 5)), COPIES, "(2, 5) … of shape (5, 5)"),
    ("sum_copies", lambda: tl.sum_copies(array(5), (2, 5)), COPIES, "(5,) … of shape (2, 5)"),
    ("multi_head_attention_backward", lambda: back(X=whole(2, 5, 12)), NO_FLOATS, "X … int64"),
    (
        "multi_head_attention_backward",
        lambda: back(context=whole(6, 12)),
        NO_FLOATS,
        "context … in",
    ),
    (
        "multi_head_attention_backward",
        lambda: back(Y=nan_at(1, 4, 11, shape=(2, 5, 12))),
        NOT_FINITE,
        "trace.Y is nan at position (1, 4, 11)",
    ),
]
STRING = Kind(TypeError, "expected a string", "str(token)")
NO_TOKENS = Kind(ValueError, "expected at least one token", "token")
WORDS = [
    ("Vocabulary", lambda: tl.Vocabulary(("dogs", 3)), STRING, "token 3 is a int"),
    ("Vocabulary", lambda: tl.Vocabulary(()), NO_TOKENS, "the vocabulary is empty … Give"),
    (
        "Vocabulary",
        lambda: tl.Vocabulary(("dogs", "bark", "dogs")),
        Kind(ValueError, "expected each token once", "dict.fromkeys(tokens)"),
        "['dogs'] occur in the vocabulary twice",
    ),
    (
        "Vocabulary",
        lambda: tl.Vocabulary("dogs"),
        Kind(TypeError, "expected a sequence of tokens", "'dogs'.split()"),
        "tokens is the string 'dogs'",
    ),
    (
        "Vocabulary",
        lambda: tl.Vocabulary(("dogs", "bark")).ids("dogs bark"),
        Kind(TypeError, "expected a list of tokens", "'dogs bark'.split()"),
        "tokens is the string 'dogs bark'",
    ),
    ("Vocabulary", lambda: tl.Vocabulary(("dogs",)).ids([]), NO_TOKENS, "tokens is empty … Give"),
    (
        "Vocabulary",
        lambda: tl.Vocabulary(("dogs", "bark")).ids(["dogs", "cats"]),
        Kind(ValueError, "not in the vocabulary ['dogs', 'bark']", "Use one of these, or add it"),
        "token 'cats'",
    ),
]
NAMES = Kind(ValueError, "Give one name for each", "but the array has")
SENTENCE = Kind(ValueError, "expected (H, T, S) and S tokens", "weights[0]")
PLACE = Kind(ValueError, "expected a head below 3 and a query below 5", "counted from 0")
FRACTION = Kind(ValueError, "not a fraction with a denominator up to 1000", "Show it with decimals")
TEXT = [
    ("show", lambda: tl.show("x", np.ones((5, 6)), rows="abcd"), NAMES, "4 rows … has 5"),
    ("show", lambda: tl.show("x", np.ones((5, 6)), columns="abcde"), NAMES, "5 columns … has 6"),
    ("show", lambda: tl.show("x", np.ones(3), columns="ab"), NAMES, "2 columns … has 3"),
    ("show_fractions", lambda: tl.show_fractions("x", np.pi), FRACTION, "3.14159"),
    ("show_fractions", lambda: tl.show_fractions("x", np.array([NAN])), FRACTION, "nan"),
    ("show_fractions", lambda: tl.show_fractions("x", np.array([INF])), FRACTION, "inf"),
    ("describe_attention", lambda: describe([[1.0]]), NO_ARRAY, "weights is a list"),
    ("describe_attention", lambda: describe(array(5, 5)), SENTENCE, "weights has shape (5, 5)"),
    ("describe_attention", lambda: describe(array(2, 3, 5, 5)), SENTENCE, "shape (2, 3, 5, 5)"),
    ("describe_attention", lambda: describe(array(3, 5, 6)), SENTENCE, "there are 5 tokens"),
    ("describe_attention", lambda: describe(array(3, 5, 5), query=5), PLACE, "query=5"),
    ("describe_attention", lambda: describe(array(3, 5, 5), query=-1), PLACE, "query=-1"),
    ("describe_attention", lambda: describe(array(3, 5, 5), head=3), PLACE, "head=3"),
]
ATTEND_BLOCK = [
    ("attend_block", lambda: tile(Q=array(3, 8, 4), causal=True), TOO_FEW_KEYS, "8 rows … 6 co"),
]
TILED = [
    ("tiled_multi_head_attention", lambda: tiled(whole(5, 12)), PRECISIONS, "X is int64"),
    (
        "tiled_multi_head_attention",
        lambda: tiled(singles(5, 12)),
        PRECISIONS,
        "X is float32 … float64",
    ),
]
TABLE = [
    *(EMBED + POSITIONS + INIT + WEIGHTS + HEADS_ROWS + BACKWARD + ATTEND_BLOCK + TILED),
    *(WORDS + TEXT),
]


def ids(bad=0, at=(0, 0)):
    """(2, 5) ids below 9, one of them as asked."""
    return array(2, 5, bad=bad, at=at, dtype=int)


def nan_at(*position, shape=(3, 5, 12)):
    """An array with one NaN."""
    return array(*shape, bad=NAN, at=position)


def rows(bad):
    """(5, 6) scores, row 3 bad throughout."""
    return array(5, 6, bad=bad, at=3)


def looks(*shape):
    """A mask that lets all look."""
    return np.ones(shape, dtype=bool)


def draw(**sizes):
    """`init_params` with a generator."""
    return tl.init_params(np.random.default_rng(0), **sizes)


def weigh(scores, mask=None):
    """`attention_weights`, shorter."""
    return tl.attention_weights(scores, mask=mask)


def whole(*shape):
    """Whole numbers."""
    return np.ones(shape, dtype=np.int64)


def back(X=None, context=None, **changed):
    """`multi_head_attention_backward` of T=5, but for the input, or one field of the trace."""
    X = np.ones((2, 5, 12)) if X is None else X
    record = dataclasses.replace(tl.trace(X, PARAMS, context=context), **changed)
    return tl.multi_head_attention_backward(record, array(2, 5, 12))


def tile(*, causal=False, **other):
    """`attend_block` of three heads, 5 queries and 6 keys, but for one array."""
    given = {"Q": array(3, 5, 4), "K_T": array(3, 4, 6), "V": array(3, 6, 7), **other}
    return tl.attend_block(*given.values(), causal=causal)


def tiled(X=None, *, params=PARAMS, **options):
    """`tiled_multi_head_attention` of 5 tokens, but for one thing."""
    X = array(5, 12) if X is None else X
    return tl.tiled_multi_head_attention(X, params, **options)


def singles(*shape):
    """Ones in single precision."""
    return array(*shape, dtype=np.float32)


def describe(weights, *, query=0, head=0):
    """`describe_attention` of five tokens."""
    return tl.describe_attention(weights, "abcde", query=query, head=head)


def row_id(row):
    """The function and the start of what its error says."""
    name, _, kind, given = row
    return f"{name}: {given or kind.expected}"


@pytest.mark.parametrize(("name", "call", "kind", "given"), TABLE, ids=map(row_id, TABLE))
def test_bad_input_is_refused_before_any_arithmetic(name, call, kind, given, capsys):
    with pytest.raises(kind.error) as caught:
        call()
    assert type(caught.value) is kind.error
    for fragment in (*given.split(" … "), kind.expected, kind.mend):
        assert fragment in str(caught.value)
    assert capsys.readouterr().out == ""


def test_shape_error_is_a_value_error():
    assert issubclass(tl.ShapeError, ValueError)
    assert tl.ShapeError is errors.ShapeError


def test_first_position_that_is_not_finite_is_named():
    X = np.ones((2, 5, 12))
    X[1, 4, 0], X[1, 2, 11], X[0, 3, 5] = NAN, INF, -INF
    with pytest.raises(ValueError, match=r"X is -inf at position \(0, 3, 5\)"):
        tl.multi_head_attention(X, PARAMS)


def test_first_id_outside_the_vocabulary_is_named():
    with pytest.raises(ValueError, match=r"ids is 12 at position \(1,\)"):
        tl.embed(np.array([0, 12, -3]), np.ones((9, 4)))


def test_empty_batch_is_no_error():
    assert tl.multi_head_attention(np.ones((0, 5, 12)), PARAMS).shape == (0, 5, 12)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("width", "error"), [(0, ValueError), (-12, ValueError), (12.0, TypeError), (True, TypeError)]
)
def test_what_is_split_is_a_positive_whole_number(width, error, parts):
    with pytest.raises(error, match=r"^d_model"):
        errors.require_divisible("d_model", width, "n_heads", parts)
    with pytest.raises(error, match=r"^n_heads"):
        errors.require_divisible("d_model", 12, "n_heads", width)


@pytest.mark.parametrize("pattern", ["T d_model", "... T d_model", "... d_model"])
def test_shape_that_fits_its_pattern_passes(pattern):
    errors.require_shape("X", np.ones((5, 12)), pattern, d_model=12)


def test_whole_numbers_of_numpy_are_lengths():
    errors.require_divisible("d_model", np.int64(12), "n_heads", np.int32(3))
