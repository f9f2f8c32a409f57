"""Bad input is refused at the door, in words: what was given, what was expected, how to mend it."""

import dataclasses
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import tutorial_lib as tl
from tutorial_lib import errors, onepass

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


def hidden(*shape):
    """A masked array, which a product would take for a plain one."""
    return np.ma.array(np.ones(shape), mask=True)


def project(X):
    """Three heads of width 4 from rows of width 12."""
    return tl.project_heads(X, array(3, 12, 4))


def embed_at(P):
    """Five tokens at the positions of a table."""
    return tl.embed(ids(), array(9, 12), P)


NAN, INF = float("nan"), float("inf")
PARAMS = tl.Params(np.ones((3, 12, 4)), np.ones((3, 12, 4)), np.ones((3, 12, 7)), np.ones((21, 12)))


@dataclass(frozen=True)
class Kind:
    """A kind of bad input: the error, what it says was expected, and how to mend it."""

    error: type
    expected: str
    mend: str


NO_ARRAY = Kind(TypeError, "expected a NumPy array", "Convert it first: np.asarray(")
NO_NUMBERS = Kind(TypeError, "expected real numbers", ".astype(float)")
HIDDEN = Kind(TypeError, "expected a NumPy array", ".filled(0.0)")
NARROW = Kind(TypeError, "expected floats, or int64", ".astype(float)")
OVERFLOW = Kind(ValueError, "product overflowed float16", "convert Q and K to float64")
TOO_LARGE = Kind(ValueError, "product overflowed float64", "make Q or K smaller")
NAN_SCORE = Kind(ValueError, "expected a finite number", "Look for NaN in Q and K")
NO_IDS = Kind(TypeError, "expected whole numbers, the row numbers of E", "ids.astype(int)")
NO_PARAMS = Kind(TypeError, "expected Params", "Make them with Params(W_Q, W_K, W_V, W_O)")
NO_BOOLEANS = Kind(TypeError, "expected a NumPy array of booleans, True = may look", "mask == 1")
NO_LENGTH = Kind(TypeError, "expected a whole number", "Give an int")
NO_RNG = Kind(TypeError, "expected a numpy.random.Generator", "np.random.default_rng(0)")
WIDTH = Kind(tl.ShapeError, "expected (", "Make the two agree")
TOO_FEW_AXES = Kind(tl.ShapeError, "expected (", "Add the missing axes")
TOO_MANY_AXES = Kind(tl.ShapeError, "expected (", "Drop an axis")
EMPTY = Kind(tl.ShapeError, "at least one entry in each", "filtered down to nothing?")
HEADS = Kind(tl.ShapeError, "equal parts", "Choose n_heads from [1, 2, 3, 4, 6, 12]")
ODD = Kind(tl.ShapeError, "expected an even width", "Choose 6 or 8")
MASK_SHAPE = Kind(tl.ShapeError, "does not broadcast to the scores'", "mask[:, None]")
BATCH = Kind(tl.ShapeError, "Expected equal lengths, or 1", "array[None]")
AXIS = Kind(tl.ShapeError, "expected an axis", "Choose axis=-1")
TOO_FEW_ROWS = Kind(tl.ShapeError, "expected at least", "Cut the sequence, or give P more rows")
OUTSIDE = Kind(ValueError, "expected 0 to 8", "Add a row to E")
NOT_FINITE = Kind(ValueError, "expected finite numbers", "np.argwhere(~np.isfinite(")
NO_LARGEST = Kind(ValueError, "expected a finite number", "attention_weights(scores, mask=mask)")
TOO_SHORT = Kind(ValueError, "expected at least 1", "Give a positive length")
BASE = Kind(ValueError, "expected a positive finite number", "base=10_000.0")
TOO_FEW_KEYS = Kind(tl.ShapeError, "at least as many keys as queries", "Pass the keys of these")
PRECISIONS = Kind(TypeError, "float32 throughout or float64 throughout", "X.astype(")
NO_BOOL = Kind(TypeError, "expected True or False", "Write causal=True")
NO_NUMBER = Kind(TypeError, "expected a number", "Give a float")


def layer_rows(name, layer):
    """What `trace` and `multi_head_attention` refuse; one calls the other, both are held to it."""
    X, C, p = array(2, 5, 12), array(2, 6, 12), PARAMS
    nan = array(2, 5, 12, bad=NAN, at=(1, 2, 3))
    inf = array(6, 12, bad=-INF, at=(4, 11))
    words, numbers, bits = np.array([["a"]]), np.ones((5, 5)), np.ones((5, 5), dtype=np.int64)
    return [
        (name, lambda: layer([[1.0]], p), NO_ARRAY, "X is a list"),
        (name, lambda: layer(hidden(5, 12), p), HIDDEN, "X is a MaskedArray"),
        (name, lambda: layer(np.ones((5, 12)).view(np.matrix), p), NO_ARRAY, "X is a matrix"),
        (name, lambda: layer(array(5, 12, dtype="i1"), p), NARROW, "X is an array of int8"),
        (name, lambda: layer(X, p, context=array(6, 12, dtype="i4")), NARROW, "context … int32"),
        (name, lambda: layer(None, p), NO_ARRAY, "X is a NoneType"),
        (name, lambda: layer(words, p), NO_NUMBERS, "X is an array of <U1"),
        (name, lambda: layer(X, p, context=[[1.0]]), NO_ARRAY, "context is a list"),
        (name, lambda: layer(X, (p.W_Q, p.W_K)), NO_PARAMS, "params is a tuple"),
        (name, lambda: layer(array(12), p), TOO_FEW_AXES, "X has shape (12,), 1 axes"),
        (name, lambda: layer(X, p, context=array(12)), TOO_FEW_AXES, "context has shape (12,)"),
        (name, lambda: layer(array(0, 12), p), EMPTY, "X has shape (0, 12) … axis T is empty"),
        (name, lambda: layer(X, p, context=array(2, 0, 12)), EMPTY, "context … axis S is empty"),
        (name, lambda: layer(array(5, 11), p), WIDTH, "X has shape (5, 11) … with d_model=12"),
        (name, lambda: layer(X, p, context=array(6, 7)), WIDTH, "context has shape (6, 7)"),
        (name, lambda: layer(X, p, context=array(8, 6, 12)), BATCH, "X has (2,), context has (8,)"),
        (name, lambda: layer(nan, p), NOT_FINITE, "X is nan at position (1, 2, 3)"),
        (name, lambda: layer(X, p, context=inf), NOT_FINITE, "context is -inf at position (4, 11)"),
        (name, lambda: layer(X, p, mask=numbers), NO_BOOLEANS, "mask is of type float64"),
        (name, lambda: layer(X, p, mask=bits), NO_BOOLEANS, "mask is of type int64"),
        (name, lambda: layer(X, p, mask=[[True]]), NO_BOOLEANS, "mask is of type list"),
        (name, lambda: layer(X, p, mask=bits[:4] > 0), MASK_SHAPE, "(4, 5) … (2, 3, 5, 5)"),
        (name, lambda: layer(X, p, context=C, mask=bits > 0), MASK_SHAPE, "(5, 5) … (2, 3, 5, 6)"),
        (name, lambda: layer(X[0], p, mask=tl.causal_mask(5)[None, None]), MASK_SHAPE, "(1, 1, 5"),
    ]


EMBED = [
    ("embed", lambda: tl.embed([0], array(9, 12)), NO_ARRAY, "ids is a list"),
    ("embed", lambda: tl.embed(ids(), [[1.0]]), NO_ARRAY, "E is a list"),
    ("embed", lambda: tl.embed(ids(), array(9, 12, dtype="u1")), NARROW, "E is an array of uint8"),
    ("embed", lambda: embed_at(array(6, 12, dtype="i4")), NARROW, "P is an array of int32"),
    ("embed", lambda: tl.embed(ids(), array(9, 12), [[1.0]]), NO_ARRAY, "P is a list"),
    ("embed", lambda: tl.embed(array(5), array(9, 12)), NO_IDS, "ids is an array of float64"),
    ("embed", lambda: tl.embed(ids() > 0, array(9, 12)), NO_NUMBERS, "ids is an array of bool"),
    ("embed", lambda: tl.embed(np.array(3), array(9, 12)), TOO_FEW_AXES, "ids has shape ()"),
    ("embed", lambda: tl.embed(ids(), array(12)), TOO_FEW_AXES, "E has shape (12,)"),
    ("embed", lambda: tl.embed(ids(), array(2, 9, 12)), TOO_MANY_AXES, "E has shape (2, 9, 12)"),
    ("embed", lambda: tl.embed(ids()[:, :0], array(9, 12)), EMPTY, "ids … axis T is empty"),
    ("embed", lambda: tl.embed(ids(), array(9, 12), array(8, 11)), WIDTH, "P … with d_model=12"),
    ("embed", lambda: tl.embed(ids(), array(9, 12), array(4, 12)), TOO_FEW_ROWS, "5 tokens … 4 p"),
    ("embed", lambda: tl.embed(ids(9, (1, 3)), array(9, 12)), OUTSIDE, "ids is 9 … (1, 3)"),
    ("embed", lambda: tl.embed(ids(-1, (0, 4)), array(9, 12)), OUTSIDE, "ids is -1 … (0, 4)"),
    ("embed", lambda: tl.embed(ids(), array(9, 12, bad=NAN, at=(7, 2))), NOT_FINITE, "E … (7, 2)"),
    ("embed", lambda: tl.embed(ids(), array(9, 12), array(5, 12, bad=INF, at=3)), NOT_FINITE, "P"),
]
POSITIONS = [
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(2.0, 8), NO_LENGTH, "T is 2.0"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(0, 8), TOO_SHORT, "T=0"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, "8"), NO_LENGTH, "d_model is '8'"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, -2), TOO_SHORT, "d_model=-2"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 7), ODD, "d_model=7"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=0.0), BASE, "base=0.0"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=INF), BASE, "base=inf"),
    ("sinusoidal_positions", lambda: tl.sinusoidal_positions(5, 8, base=NAN), BASE, "base=nan"),
    (
        "sinusoidal_positions",
        lambda: tl.sinusoidal_positions(5, 8, base="9"),
        NO_NUMBER,
        "base is a str",
    ),
]
PROJECT = [
    ("project_heads", lambda: tl.project_heads([[1.0]], array(3, 12, 4)), NO_ARRAY, "X is a list"),
    ("project_heads", lambda: project(array(5, 12, dtype="i2")), NARROW, "X is an array of int16"),
    ("project_heads", lambda: tl.project_heads(array(5, 12), None), NO_ARRAY, "W is a NoneType"),
    ("project_heads", lambda: tl.project_heads(array(12), array(3, 12, 4)), TOO_FEW_AXES, "X"),
    ("project_heads", lambda: tl.project_heads(array(5, 12), array(12, 4)), TOO_FEW_AXES, "W"),
    ("project_heads", lambda: tl.project_heads(array(0, 12), array(3, 12, 4)), EMPTY, "X … axis T"),
    ("project_heads", lambda: tl.project_heads(array(5, 12), array(3, 12, 0)), EMPTY, "W … axis d"),
    ("project_heads", lambda: tl.project_heads(array(5, 12), array(3, 11, 4)), WIDTH, "W … =12"),
    ("project_heads", lambda: tl.project_heads(nan_at(1, 0, 2), array(3, 12, 4)), NOT_FINITE, "X"),
]
INIT = [
    ("init_params", lambda: draw(d_model=12, n_heads=5), HEADS, "d_model=12 … n_heads=5"),
    ("init_params", lambda: draw(d_model=12, n_heads=5, d_v=3), HEADS, "does not split"),
    ("init_params", lambda: draw(d_model=12.0, n_heads=3), NO_LENGTH, "d_model is 12.0"),
    ("init_params", lambda: draw(d_model=12, n_heads=True), NO_LENGTH, "n_heads is True"),
    ("init_params", lambda: draw(d_model=12, n_heads=0, d_k=2), TOO_SHORT, "n_heads=0"),
    ("init_params", lambda: draw(d_model=12, n_heads=3, d_v=-1), TOO_SHORT, "d_v=-1"),
    ("init_params", lambda: draw(d_model=12, n_heads=3, d_k=1.5), NO_LENGTH, "d_k is 1.5"),
    ("init_params", lambda: tl.init_params(42, d_model=12, n_heads=3), NO_RNG, "rng is a int"),
]
PARAMS_ROWS = [
    ("Params", lambda: matrices(W_Q=[[[1.0]]]), NO_ARRAY, "W_Q is a list"),
    ("Params", lambda: matrices(W_O=None), NO_ARRAY, "W_O is a NoneType"),
    ("Params", lambda: matrices(W_K=array(3, 12, 4, dtype="i2")), NARROW, "W_K … array of int16"),
    ("Params", lambda: matrices(W_V=np.full((3, 12, 7), "a")), NO_NUMBERS, "W_V … array of <U1"),
    ("Params", lambda: matrices(W_Q=array(12, 4)), TOO_FEW_AXES, "W_Q has shape (12, 4)"),
    ("Params", lambda: matrices(W_O=array(3, 7, 12)), TOO_MANY_AXES, "W_O has shape (3, 7, 12)"),
    ("Params", lambda: matrices(W_K=array(2, 12, 4)), WIDTH, "W_K … (2, 12, 4) … with H=3"),
    ("Params", lambda: matrices(W_K=array(3, 11, 4)), WIDTH, "W_K … (3, 11, 4) … d_model=12"),
    ("Params", lambda: matrices(W_K=array(3, 12, 5)), WIDTH, "W_K … (3, 12, 5) … with d_k=4"),
    ("Params", lambda: matrices(W_V=array(4, 12, 7)), WIDTH, "W_V … (4, 12, 7) … with H=3"),
    ("Params", lambda: matrices(W_V=array(3, 13, 7)), WIDTH, "W_V … (3, 13, 7) … d_model=12"),
    ("Params", lambda: matrices(W_O=array(7, 12)), WIDTH, "W_O … (7, 12) … with H*d_v=21"),
    ("Params", lambda: matrices(W_O=array(21, 11)), WIDTH, "W_O … (21, 11) … with d_model=12"),
    ("Params", lambda: matrices(W_Q=array(3, 12, 0)), EMPTY, "W_Q … axis d_k is empty"),
    ("Params", lambda: matrices(W_V=nan_at(2, 11, 6, shape=(3, 12, 7))), NOT_FINITE, "(2, 11, 6)"),
]
WEIGHTS = [
    ("softmax", lambda: tl.softmax([1.0, 2.0]), NO_ARRAY, "scores is a list"),
    ("softmax", lambda: tl.softmax(np.array([True])), NO_NUMBERS, "scores is an array of bool"),
    ("softmax", lambda: tl.softmax(np.uint8([1, 2])), NARROW, "scores is an array of uint8"),
    ("softmax", lambda: tl.softmax(np.int32([1, 2])), NARROW, "scores is an array of int32"),
    ("softmax", lambda: tl.softmax(np.uint64([1, 2])), NARROW, "scores is an array of uint64"),
    ("softmax", lambda: tl.softmax(np.array([INF, 0], "f2")), OVERFLOW, "row () is inf"),
    ("softmax", lambda: tl.softmax(array(5, 6), axis=2), AXIS, "scores has shape (5, 6) … axis 2"),
    ("softmax", lambda: tl.softmax(array(5, 6), axis=-3), AXIS, "expected an axis -3"),
    ("softmax", lambda: tl.softmax(array(5, 6), axis=None), NO_LENGTH, "axis is None"),
    ("softmax", lambda: tl.softmax(array(5, 0)), AXIS, "scores has shape (5, 0)"),
    ("softmax", lambda: tl.softmax(array()), AXIS, "scores has shape ()"),
    ("softmax", lambda: tl.softmax(nan_at(4, 1, shape=(5, 6))), NAN_SCORE, "row (4,) is nan"),
    ("softmax", lambda: tl.softmax(rows(INF)), TOO_LARGE, "row (3,) is inf"),
    ("softmax", lambda: tl.softmax(rows(-INF)), NO_LARGEST, "row (3,) is -inf"),
    ("softmax", lambda: tl.softmax(array(3, bad=NAN, at=0)), NAN_SCORE, "row () is nan"),
    ("causal_mask", lambda: tl.causal_mask(5.0), NO_LENGTH, "T is 5.0, a float"),
    ("causal_mask", lambda: tl.causal_mask(0), TOO_SHORT, "T=0"),
    ("causal_mask", lambda: tl.causal_mask(True), NO_LENGTH, "T is True, a bool"),
    ("causal_mask", lambda: tl.causal_mask(5, -6), TOO_SHORT, "S=-6"),
    ("causal_mask", lambda: tl.causal_mask(5, "6"), NO_LENGTH, "S is '6', a str"),
    ("attention_weights", lambda: weigh([[1.0]]), NO_ARRAY, "scores is a list"),
    ("attention_weights", lambda: weigh(array(6)), TOO_FEW_AXES, "scores has shape (6,)"),
    ("attention_weights", lambda: weigh(array(3, 0, 6)), EMPTY, "scores … axis T is empty"),
    ("attention_weights", lambda: weigh(array(3, 5, 0)), EMPTY, "scores … axis S is empty"),
    ("attention_weights", lambda: weigh(array(5, 6), array(5, 6)), NO_BOOLEANS, "type float64"),
    ("attention_weights", lambda: weigh(array(5, 6), [[True] * 6]), NO_BOOLEANS, "type list"),
    ("attention_weights", lambda: weigh(array(5, 6), looks(5, 5)), MASK_SHAPE, "(5, 5) … (5, 6)"),
    ("attention_weights", lambda: weigh(array(5, 6), looks(3, 5, 6)), MASK_SHAPE, "(3, 5, 6)"),
    ("attention_weights", lambda: weigh(nan_at(2, 4, 9)), NAN_SCORE, "row (2, 4) is nan"),
    ("attention_weights", lambda: weigh(rows(INF), looks(5, 6)), TOO_LARGE, "(3,) is inf"),
    ("attention_weights", lambda: weigh(rows(-INF), looks(5, 6)), NO_LARGEST, "-inf"),
]
SCORES = [
    ("attention_scores", lambda: score(Q=[[1.0]]), NO_ARRAY, "Q is a list"),
    ("attention_scores", lambda: score(K=hidden(6, 4)), HIDDEN, "K is a MaskedArray"),
    ("attention_scores", lambda: score(K=array(6, 4, dtype="i1")), NARROW, "K is an array of int8"),
    ("attention_scores", lambda: score(Q=array(5, 4, dtype="u8")), NARROW, "Q … uint64"),
    ("attention_scores", lambda: score(Q=array(4)), TOO_FEW_AXES, "Q has shape (4,)"),
    ("attention_scores", lambda: score(K=array(4)), TOO_FEW_AXES, "K has shape (4,)"),
    ("attention_scores", lambda: score(Q=array(0, 4)), EMPTY, "Q … axis T is empty"),
    ("attention_scores", lambda: score(K=array(0, 4)), EMPTY, "K … axis S is empty"),
    ("attention_scores", lambda: score(K=array(6, 5)), WIDTH, "K … with d_k=4"),
    ("attention_scores", lambda: score(K=array(8, 3, 6, 4)), BATCH, "Q has (2, 3), K has (8, 3)"),
]
SDPA = [
    ("scaled_dot_product_attention", lambda: attend(Q=[[1.0]]), NO_ARRAY, "Q is a list"),
    ("scaled_dot_product_attention", lambda: attend(V=array(6, 7, dtype="i1")), NARROW, "V … int8"),
    ("scaled_dot_product_attention", lambda: attend(K=None), NO_ARRAY, "K is a NoneType"),
    ("scaled_dot_product_attention", lambda: attend(V=(1.0,)), NO_ARRAY, "V is a tuple"),
    ("scaled_dot_product_attention", lambda: attend(Q=array(4)), TOO_FEW_AXES, "Q has shape (4,)"),
    ("scaled_dot_product_attention", lambda: attend(V=array(7)), TOO_FEW_AXES, "V has shape (7,)"),
    ("scaled_dot_product_attention", lambda: attend(Q=array(0, 4)), EMPTY, "Q … axis T is empty"),
    ("scaled_dot_product_attention", lambda: attend(K=array(0, 4)), EMPTY, "K … axis S is empty"),
    ("scaled_dot_product_attention", lambda: attend(V=array(6, 0)), EMPTY, "V … axis d_v is empty"),
    ("scaled_dot_product_attention", lambda: attend(K=array(6, 5)), WIDTH, "K … with d_k=4"),
    ("scaled_dot_product_attention", lambda: attend(V=array(5, 7)), WIDTH, "V … with S=6"),
    ("scaled_dot_product_attention", lambda: attend(V=array(8, 3, 6, 7)), BATCH, "V has (8, 3)"),
    ("scaled_dot_product_attention", lambda: attend(mask=array(5, 6)), NO_BOOLEANS, "type float64"),
    ("scaled_dot_product_attention", lambda: attend(mask=looks(5, 5)), MASK_SHAPE, "(5, 5)"),
    ("scaled_dot_product_attention", lambda: attend(mask=looks(2, 5, 6)), MASK_SHAPE, "(2, 5, 6)"),
    ("scaled_dot_product_attention", lambda: attend(Q=nan_at(1, 2, shape=(5, 4))), NOT_FINITE, "Q"),
    ("scaled_dot_product_attention", lambda: attend(K=nan_at(5, 0, shape=(6, 4))), NOT_FINITE, "K"),
    ("scaled_dot_product_attention", lambda: attend(V=nan_at(0, 6, shape=(6, 7))), NOT_FINITE, "V"),
]
HEADS_ROWS = [
    ("split_heads", lambda: tl.split_heads([[1.0]], 3), NO_ARRAY, "X is a list"),
    ("split_heads", lambda: tl.split_heads(array(12), 3), TOO_FEW_AXES, "X has shape (12,)"),
    ("split_heads", lambda: tl.split_heads(array(0, 12), 3), EMPTY, "X … axis T is empty"),
    ("split_heads", lambda: tl.split_heads(array(5, 12), 5), HEADS, "width=12 … n_heads=5"),
    ("split_heads", lambda: tl.split_heads(array(5, 12), 24), HEADS, "n_heads=24"),
    ("split_heads", lambda: tl.split_heads(array(5, 12), 3.0), NO_LENGTH, "n_heads is 3.0"),
    ("split_heads", lambda: tl.split_heads(array(5, 12), 0), TOO_SHORT, "n_heads=0"),
    ("concat_heads", lambda: tl.concat_heads([[[1.0]]]), NO_ARRAY, "heads is a list"),
    ("concat_heads", lambda: tl.concat_heads(array(5, 7)), TOO_FEW_AXES, "heads has shape (5, 7)"),
    ("concat_heads", lambda: tl.concat_heads(array(3, 0, 7)), EMPTY, "heads … axis T is empty"),
    ("concat_heads", lambda: tl.concat_heads(array(0, 5, 7)), EMPTY, "heads … axis H is empty"),
]
NAN_DY = NOT_FINITE, "dY is nan at position (1, 4, 11)"
NO_FLOATS = Kind(TypeError, "expected floats", ".astype(float)")
GRADIENT = Kind(tl.ShapeError, "one entry for each entry", "Take it from the loss")
COPIES = Kind(tl.ShapeError, "does not broadcast", "Pass the shape of the array")
NO_SHAPE = Kind(TypeError, "expected a tuple", "tuple(shape)")
NO_TRACE = Kind(TypeError, "expected a Trace", "Compute it with trace(X, params, ...)")
BACKWARD = [
    ("softmax_backward", lambda: tl.softmax_backward([1.0], array(1)), NO_ARRAY, "weights is a"),
    ("softmax_backward", lambda: tl.softmax_backward(array(5, 6), None), NO_ARRAY, "dweights is a"),
    ("softmax_backward", lambda: soften(array(5, 0)), EMPTY, "weights … axis S is empty"),
    ("softmax_backward", lambda: soften(array(6)), GRADIENT, "dweights has shape (6,) … (5, 6)"),
    ("softmax_backward", lambda: soften(array(5, 6, dtype=int)), NO_FLOATS, "dweights … int64"),
    ("softmax_backward", lambda: soften(nan_at(1, 2, shape=(5, 6))), NOT_FINITE, "dweights … nan"),
    ("sum_copies", lambda: tl.sum_copies([[1.0]], (1,)), NO_ARRAY, "gradient is a list"),
    ("sum_copies", lambda: tl.sum_copies(array(2, 5), (5, 5)), COPIES, "(2, 5) … of shape (5, 5)"),
    ("sum_copies", lambda: tl.sum_copies(array(5), (2, 5)), COPIES, "(5,) … of shape (2, 5)"),
    ("sum_copies", lambda: tl.sum_copies(array(2, 5), [5]), NO_SHAPE, "shape is a list"),
    ("attention_backward", lambda: attend_back(Q=[[1.0]]), NO_ARRAY, "Q is a list"),
    ("attention_backward", lambda: attend_back(dheads=None), NO_ARRAY, "dheads is a NoneType"),
    ("attention_backward", lambda: attend_back(Q=array(4)), TOO_FEW_AXES, "Q has shape (4,)"),
    ("attention_backward", lambda: attend_back(V=array(0, 7)), EMPTY, "V … axis S is empty"),
    ("attention_backward", lambda: attend_back(K=array(6, 5)), WIDTH, "K … with d_k=4"),
    ("attention_backward", lambda: attend_back(V=array(5, 7)), WIDTH, "V … with S=6"),
    ("attention_backward", lambda: attend_back(weights=array(5, 5)), WIDTH, "weights … with S=6"),
    ("attention_backward", lambda: attend_back(V=array(8, 3, 6, 7)), BATCH, "V has (8, 3)"),
    ("attention_backward", lambda: attend_back(dheads=array(5, 7)), GRADIENT, "(2, 3, 5, 7)"),
    ("attention_backward", lambda: attend_back(dheads=array(2, 3, 5, 4)), GRADIENT, "(2, 3, 5, 7)"),
    ("attention_backward", lambda: attend_back(dheads=array(2, 3, 5, 7, dtype=int)), NO_FLOATS, ""),
    (
        "attention_backward",
        lambda: attend_back(dheads=nan_at(0, 2, 4, 6, shape=(2, 3, 5, 7))),
        NOT_FINITE,
        "dheads is nan at position (0, 2, 4, 6)",
    ),
    ("linear_backward", lambda: linear_back(X=[[1.0]]), NO_ARRAY, "X is a list"),
    ("linear_backward", lambda: linear_back(X=array(4)), TOO_FEW_AXES, "X has shape (4,)"),
    ("linear_backward", lambda: linear_back(W=array(3, 7)), WIDTH, "W … with d_in=4"),
    ("linear_backward", lambda: linear_back(W=array(4, 0)), EMPTY, "W … axis d_out is empty"),
    ("linear_backward", lambda: linear_back(dY=array(2, 5, 4)), GRADIENT, "dY … (2, 5, 7)"),
    ("linear_backward", lambda: linear_back(dY=array(2, 5, 7, dtype=int)), NO_FLOATS, "dY … int64"),
    ("linear_backward", lambda: linear_back(dY=rows_of(INF)), NOT_FINITE, "dY is inf … (1, 0, 0)"),
    ("project_heads_backward", lambda: heads_back(X=None), NO_ARRAY, "X is a NoneType"),
    ("project_heads_backward", lambda: heads_back(X=array(12)), TOO_FEW_AXES, "X has shape (12,)"),
    ("project_heads_backward", lambda: heads_back(W=array(3, 11, 4)), WIDTH, "W … d_model=12"),
    ("project_heads_backward", lambda: heads_back(W=array(0, 12, 4)), EMPTY, "W … axis H is empty"),
    (
        "project_heads_backward",
        lambda: heads_back(dprojected=array(2, 5, 12)),
        GRADIENT,
        "dprojected has shape (2, 5, 12) … (2, 3, 5, 4)",
    ),
    (
        "project_heads_backward",
        lambda: heads_back(dprojected=array(2, 3, 5, 4, dtype=int)),
        NO_FLOATS,
        "dprojected is an array of int64",
    ),
    (
        "project_heads_backward",
        lambda: heads_back(dprojected=nan_at(1, 2, 4, 3, shape=(2, 3, 5, 4))),
        NOT_FINITE,
        "dprojected is nan at position (1, 2, 4, 3)",
    ),
    (
        "multi_head_attention_backward",
        lambda: tl.multi_head_attention_backward((1, 2), array(2, 5, 12)),
        NO_TRACE,
        "trace is a tuple",
    ),
    ("multi_head_attention_backward", lambda: back(params=None), NO_PARAMS, "params is a NoneType"),
    ("multi_head_attention_backward", lambda: back(dY=[[1.0]]), NO_ARRAY, "dY is a list"),
    ("multi_head_attention_backward", lambda: back(dY=array(5, 12)), GRADIENT, "(2, 5, 12)"),
    ("multi_head_attention_backward", lambda: back(dY=array(2, 5, 21)), GRADIENT, "(2, 5, 21)"),
    ("multi_head_attention_backward", lambda: back(dY=whole(2, 5, 12)), NO_FLOATS, "dY … int64"),
    ("multi_head_attention_backward", lambda: back(dY=nan_at(1, 4, 11, shape=(2, 5, 12))), *NAN_DY),
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
    ("attend_block", lambda: tile(Q=[[1.0]]), NO_ARRAY, "Q is a list"),
    ("attend_block", lambda: tile(K_T=None), NO_ARRAY, "K_T is a NoneType"),
    ("attend_block", lambda: tile(Q=array(4)), TOO_FEW_AXES, "Q has shape (4,)"),
    ("attend_block", lambda: tile(K_T=array(3, 6, 4)), WIDTH, "K_T … with d_k=4"),
    ("attend_block", lambda: tile(V=array(3, 5, 7)), WIDTH, "V … with S=6"),
    ("attend_block", lambda: tile(V=array(3, 6, 0)), EMPTY, "V … axis d_v is empty"),
    ("attend_block", lambda: tile(Q=array(3, 8, 4), causal=True), TOO_FEW_KEYS, "8 rows … 6 co"),
]
ATTEND_IN_BLOCKS = [
    ("attend_in_blocks", lambda: in_blocks(V=[[1.0]]), NO_ARRAY, "V is a list"),
    ("attend_in_blocks", lambda: in_blocks(V=array(2, 3, 6, 7)), TOO_MANY_AXES, "V has shape (2,"),
    ("attend_in_blocks", lambda: in_blocks(K_T=array(3, 5, 6)), WIDTH, "K_T … with d_k=4"),
    ("attend_in_blocks", lambda: in_blocks(V=array(3, 5, 7)), WIDTH, "V … with T=6"),
    ("attend_in_blocks", lambda: in_blocks(block=0), TOO_SHORT, "block=0"),
    ("attend_in_blocks", lambda: in_blocks(block=2.0), NO_LENGTH, "block is 2.0"),
]
TILED = [
    ("tiled_multi_head_attention", lambda: tiled([[1.0]]), NO_ARRAY, "X is a list"),
    ("tiled_multi_head_attention", lambda: tiled(array(12)), TOO_FEW_AXES, "X has shape (12,)"),
    ("tiled_multi_head_attention", lambda: tiled(array(0, 12)), EMPTY, "X … axis T is empty"),
    ("tiled_multi_head_attention", lambda: tiled(array(5, 11)), WIDTH, "X … with d_model=12"),
    ("tiled_multi_head_attention", lambda: tiled(params=None), NO_PARAMS, "params is a NoneType"),
    ("tiled_multi_head_attention", lambda: tiled(whole(5, 12)), PRECISIONS, "X is int64"),
    (
        "tiled_multi_head_attention",
        lambda: tiled(singles(5, 12)),
        PRECISIONS,
        "X is float32 … float64",
    ),
    ("tiled_multi_head_attention", lambda: tiled(causal=1), NO_BOOL, "causal is a int"),
    ("tiled_multi_head_attention", lambda: tiled(block=0), TOO_SHORT, "block=0"),
    ("tiled_multi_head_attention", lambda: tiled(block=True), NO_LENGTH, "block is True"),
    (
        "tiled_multi_head_attention",
        lambda: tiled(nan_at(4, 11, shape=(5, 12))),
        NOT_FINITE,
        "X is nan",
    ),
]
TABLE = [
    *(EMBED + POSITIONS + PROJECT + INIT + PARAMS_ROWS + WEIGHTS + SCORES + SDPA + HEADS_ROWS),
    *(BACKWARD + ATTEND_BLOCK + ATTEND_IN_BLOCKS + TILED),
    *layer_rows("trace", tl.trace),
    *layer_rows("multi_head_attention", tl.multi_head_attention),
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


def matrices(**changed):
    """`Params` of H=3, d_model=12, d_k=4, d_v=7, but for one array."""
    right = {"W_Q": (3, 12, 4), "W_K": (3, 12, 4), "W_V": (3, 12, 7), "W_O": (21, 12)}
    return tl.Params(**({name: array(*shape) for name, shape in right.items()} | changed))


def weigh(scores, mask=None):
    """`attention_weights`, shorter."""
    return tl.attention_weights(scores, mask=mask)


def score(**changed):
    """`attention_scores` of T=5, S=6, but for one array."""
    return tl.attention_scores(**({"Q": array(2, 3, 5, 4), "K": array(2, 3, 6, 4)} | changed))


def attend(*, mask=None, **changed):
    """`scaled_dot_product_attention` of T=5, S=6, but for one array."""
    right = {"Q": array(2, 3, 5, 4), "K": array(2, 3, 6, 4), "V": array(2, 3, 6, 7)}
    return tl.scaled_dot_product_attention(**(right | changed), mask=mask)


def whole(*shape):
    """Whole numbers."""
    return np.ones(shape, dtype=np.int64)


def rows_of(bad):
    """(2, 5, 7) ones, sequence 1 bad throughout."""
    return array(2, 5, 7, bad=bad, at=1)


def soften(dweights):
    """`softmax_backward` of T=5, S=6, or of weights as empty as dweights."""
    weights = array(5, 6) if dweights.size else dweights
    return tl.softmax_backward(weights, dweights)


def attend_back(**changed):
    """`attention_backward` of T=5, S=6, but for one array."""
    right = {"Q": array(2, 3, 5, 4), "K": array(2, 3, 6, 4), "V": array(2, 3, 6, 7)}
    right |= {"weights": array(2, 3, 5, 6), "dheads": array(2, 3, 5, 7)}
    return tl.attention_backward(**(right | changed))


def linear_back(**changed):
    """`linear_backward` of widths 4 and 7, but for one array."""
    return tl.linear_backward(
        **({"X": array(2, 5, 4), "W": array(4, 7), "dY": array(2, 5, 7)} | changed)
    )


def heads_back(**changed):
    """`project_heads_backward` of H=3, but for one array."""
    right = {"X": array(2, 5, 12), "W": array(3, 12, 4), "dprojected": array(2, 3, 5, 4)}
    return tl.project_heads_backward(**(right | changed))


def back(dY=None, X=None, context=None, **changed):
    """`multi_head_attention_backward` of T=5, but for one thing, or one field of the trace."""
    X = np.ones((2, 5, 12)) if X is None else X
    record = dataclasses.replace(tl.trace(X, PARAMS, context=context), **changed)
    return tl.multi_head_attention_backward(record, array(2, 5, 12) if dY is None else dY)


def tile(*, causal=False, **other):
    """`attend_block` of three heads, 5 queries and 6 keys, but for one array."""
    given = {"Q": array(3, 5, 4), "K_T": array(3, 4, 6), "V": array(3, 6, 7), **other}
    return tl.attend_block(*given.values(), causal=causal)


def in_blocks(*, block=2, **other):
    """`attend_in_blocks` of three heads and 6 tokens, but for one thing."""
    given = {"Q": array(3, 6, 4), "K_T": array(3, 4, 6), "V": array(3, 6, 7), **other}
    return tl.attend_in_blocks(*given.values(), causal=True, block=block)


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


def plain(*shape):
    """Ones of a plain array."""
    return np.ones(shape)


QKV = {"Q": plain(3, 5, 4), "K": plain(3, 6, 4), "V": plain(3, 6, 7)}
TILE = {"Q": plain(3, 6, 4), "K_T": plain(3, 4, 6), "V": plain(3, 6, 7)}
BACK = {"X": plain(2, 5, 12), "W": plain(12, 7), "dY": plain(2, 5, 7)}
FOLD = onepass.fold_block, (-1e9, 0.0, 0.0)
FLASH = onepass.flash_backward, onepass.flash_forward(**QKV)
ARRAYS = {
    tl.embed: {"ids": np.zeros((2, 5), dtype=int), "E": plain(9, 12), "P": plain(8, 12)},
    tl.project_heads: {"X": plain(5, 12), "W": plain(3, 12, 4)},
    tl.softmax: {"scores": plain(5, 6)},
    tl.attention_weights: {"scores": plain(5, 6)},
    tl.attention_scores: {"Q": QKV["Q"], "K": QKV["K"]},
    tl.scaled_dot_product_attention: QKV,
    partial(tl.split_heads, n_heads=3): {"X": plain(5, 12)},
    tl.concat_heads: {"heads": plain(3, 5, 7)},
    partial(tl.multi_head_attention, params=PARAMS): {"X": plain(5, 12), "context": plain(6, 12)},
    partial(tl.tiled_multi_head_attention, params=PARAMS): {"X": plain(5, 12)},
    tl.softmax_backward: {"weights": plain(5, 6), "dweights": plain(5, 6)},
    partial(tl.sum_copies, shape=(5, 6)): {"gradient": plain(2, 5, 6)},
    tl.attention_backward: QKV | {"weights": plain(3, 5, 6), "dheads": plain(3, 5, 7)},
    tl.linear_backward: BACK,
    tl.project_heads_backward: {
        "X": plain(5, 12),
        "W": plain(3, 12, 4),
        "dprojected": plain(3, 5, 4),
    },
    tl.attend_block: TILE,
    partial(tl.attend_in_blocks, causal=True, block=2): TILE,
    partial(*FOLD): {"scores": plain(5, 6), "V": plain(6, 7)},
    onepass.flash_forward: QKV,
    partial(*FLASH): {"dheads": plain(3, 5, 7)},
}
NO_ARRAYS_OF_NUMBERS = {
    "a list": lambda array: array.tolist(),
    "a masked array": np.ma.asarray,
    "an np.matrix": lambda array: array.reshape(-1, array.shape[-1]).view(np.matrix),
    "booleans": lambda array: array.astype(bool),
    "complex numbers": lambda array: array.astype(complex),
    "words": lambda array: array.astype(str),
    "objects": lambda array: array.astype(object),
}


FINITE = {
    "embed": "E P",
    "project_heads": "X",
    "scaled_dot_product_attention": "Q K V",
    "multi_head_attention": "X context",
    "tiled_multi_head_attention": "X",
    "softmax_backward": "dweights",
    "attention_backward": "dheads",
    "linear_backward": "dY",
    "project_heads_backward": "dprojected",
    "flash_forward": "Q K V",
    "flash_backward": "dheads",
}


def named(function):
    """The name of a function, some of whose arguments may be given already."""
    return getattr(function, "func", function).__name__


def each_array(wanted=None):
    """Parametrise with every array of every function, or with those wanted."""
    pairs = [
        pytest.param(function, name, id=f"{named(function)}: {name}")
        for function, given in ARRAYS.items()
        for name in given
        if wanted is None or name in wanted.get(named(function), "").split()
    ]
    return pytest.mark.parametrize(("function", "name"), pairs)


@each_array(FINITE)
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_the_last_number_of_an_array_must_be_finite_too(function, name, bad):
    spoilt = ARRAYS[function][name].copy()
    spoilt.flat[-1] = bad
    with pytest.raises(ValueError, match=rf"^{name} is {bad} at position .*; expected finite"):
        function(**ARRAYS[function] | {name: spoilt})


@each_array(FINITE)
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64])
def test_integers_too_narrow_for_sums_are_refused(function, name, kind):
    given = ARRAYS[function]
    with pytest.raises(TypeError, match=rf"\b{name} is (an array of )?{kind.__name__}"):
        function(**given | {name: given[name].astype(kind)})


@pytest.mark.parametrize("kind", NO_ARRAYS_OF_NUMBERS)
@each_array()
def test_every_array_of_every_function_must_be_a_plain_array_of_numbers(function, name, kind):
    given = ARRAYS[function]
    function(**given)
    with pytest.raises(TypeError, match=rf"^{name} is an? .*; expected"):
        function(**given | {name: NO_ARRAYS_OF_NUMBERS[kind](given[name])})


def test_table_covers_every_public_name_that_takes_input():
    without_input = {"Example", "ShapeError", "Trace", "published_example", "running_example"}
    without_input |= {"Gradients"}
    assert {row[0] for row in TABLE} == set(tl.__all__) - without_input


@pytest.mark.parametrize("name", ["trace", "multi_head_attention", "scaled_dot_product_attention"])
def test_table_holds_each_kind_for_each_function_with_arrays_and_a_mask(name):
    kinds = {row[2] for row in TABLE if row[0] == name}
    wanted = {NO_ARRAY, TOO_FEW_AXES, EMPTY, WIDTH, BATCH, NO_BOOLEANS, MASK_SHAPE, NOT_FINITE}
    assert kinds >= wanted


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
