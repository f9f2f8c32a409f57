"""Bad input is refused at the door, in words: what was given, what was expected, how to mend it."""

import dataclasses
import re
from functools import partial

import numpy as np
import pytest

import tutorial_lib as tl
from tutorial_lib import errors
from tutorial_lib.embedding import require_position_table
from tutorial_lib.onepass import flash_backward, flash_forward

COMPARISONS = {
    *("isfinite", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    *("maximum", "invert", "logical_and", "logical_or", "bitwise_and", "bitwise_or"),
}


class NoArithmetic(np.ndarray):
    """An array that can be looked at and compared; any computation with it is a failure."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        assert ufunc.__name__ in COMPARISONS, f"computed {ufunc.__name__} before the check"
        return getattr(ufunc, method)(*(np.asarray(value) for value in inputs), **options)


def array(*shape, value=None, at=None, dtype=float):
    """An array of ones that refuses arithmetic; one entry may be bad."""
    ones_array = np.ones(shape, dtype=dtype).view(NoArithmetic)
    if at is not None:
        ones_array[at] = value
    return ones_array


NAN, INF = np.nan, np.inf
PARAMS = tl.Params(np.ones((3, 12, 4)), np.ones((3, 12, 4)), np.ones((3, 12, 7)), np.ones((21, 12)))
MIXED = dataclasses.replace(PARAMS, W_V=PARAMS.W_V.astype(np.float32))
INPUTS, VOCABULARY = np.ones((2, 5, 12)), tl.Vocabulary(("dogs", "bark"))


def refuse(sentence, call):
    """Require that a call raises this error, with a sentence of these fragments in this order."""
    with pytest.raises((TypeError, ValueError, OSError)) as refusal:
        call()
    message = f"{refusal.type.__name__}: {refusal.value}"
    assert re.match(".*".join(map(re.escape, sentence.split(" … "))), message), message


def look_up(token=0, at=(0, 0), positions=5):
    """`embed` of 2 sentences of 5 tokens in a table of 9 rows."""
    return tl.embed(array(2, 5, value=token, at=at, dtype=int), array(9, 12), array(positions, 12))


def weigh(score, *score_index, mask_value=None):
    """`attention_weights` of 6 keys, one score as given."""
    mask = None if mask_value is None else np.full((5, 6), mask_value)
    return tl.attention_weights(array(3, 5, 6, value=score, at=score_index), mask=mask)


def backward(inputs=INPUTS, params=PARAMS, context=None, **fields):
    """`multi_head_attention_backward` of 5 tokens, but for an input, or one field of the trace."""
    with np.errstate(over="ignore", invalid="ignore"):
        record = tl.trace(inputs, params, context=context)
    return tl.multi_head_attention_backward(dataclasses.replace(record, **fields), array(2, 5, 12))


def flash_pass(**array_changes):
    """`flash_forward` of 5 queries and 6 keys and its backward pass, but for one array."""
    shapes = {"Q": (3, 5, 4), "K": (3, 6, 4), "V": (3, 6, 7), "dheads": (3, 5, 7)}
    arrays = {name: np.ones(size) for name, size in shapes.items()} | array_changes
    dheads = arrays.pop("dheads")
    return flash_backward(flash_forward(**arrays), dheads)


float32s, int_ones = partial(array, dtype=np.float32), partial(np.ones, dtype=int)
tiled, sines = tl.tiled_multi_head_attention, partial(tl.sinusoidal_positions, 5)
new_params = partial(tl.init_params, np.random.default_rng(0), d_model=12)
attend_one = partial(tl.attend_block, Q=array(3, 5, 4), K_T=array(3, 4, 6), V=array(3, 6, 7))
describe = partial(tl.describe_attention, tokens="abcde", query=0)
SENTENCES = {
    # Tokens, ids and positions.
    "TypeError: token 3 is a int; expected a string … [str(token)": (
        lambda: tl.Vocabulary(("dogs", 3))
    ),
    "ValueError: the vocabulary is empty; expected at least one token … Give": (
        lambda: tl.Vocabulary(())
    ),
    "ValueError: ['dogs'] occur in the vocabulary twice; expected each token once … dict.": (
        lambda: tl.Vocabulary(("dogs", "bark", "dogs"))
    ),
    "TypeError: tokens is the string 'dogs'; expected a sequence of tokens … 'dogs'.split()": (
        lambda: tl.Vocabulary("dogs")
    ),
    "TypeError: tokens is the string 'bark'; expected a list of tokens … 'bark'.split()": (
        lambda: VOCABULARY.ids("bark")
    ),
    "ValueError: tokens is empty; expected at least one token. Give": lambda: VOCABULARY.ids([]),
    "ValueError: token 'cats' is not in the vocabulary ['dogs', 'bark']. Use one of these": (
        lambda: VOCABULARY.ids(["dogs", "cats"])
    ),
    "ShapeError: … 5 tokens … 4 positions; expected at least 5 rows. Cut … or give P more rows": (
        lambda: look_up(positions=4)
    ),
    "ValueError: ids is 9 at position (1, 3); … 0 to 8 … Add a row": lambda: look_up(9, (1, 3)),
    "TypeError: P is an array of int8; expected floats": (
        lambda: require_position_table(np.ones((8, 12), dtype=np.int8), 5, 12)
    ),
    "ShapeError: d_model=7; expected an even width … Choose 6 or 8": lambda: sines(7),
    "ValueError: base=0.0; … positive finite number … base=10_000.0": lambda: sines(8, base=0.0),
    # Widths of heads.
    "ShapeError: d_model=12 … n_heads=5 equal parts. Choose n_heads from [1, 2, 3, 4, 6, 12]": (
        lambda: new_params(n_heads=5)
    ),
    "ShapeError: width=12 … n_heads=5 equal parts": lambda: tl.split_heads(array(5, 12), 5),
    # Scores and weights.
    "ValueError: … row () is inf … A product overflowed float16: convert Q and K to float64": (
        lambda: tl.softmax(np.array([INF, 0], "f2"))
    ),
    "ShapeError: scores has shape (5, 6); expected an axis 2 … Choose axis=-1": (
        lambda: tl.softmax(array(5, 6), axis=2)
    ),
    "ShapeError: scores has shape (5, 0); expected an axis": lambda: tl.softmax(array(5, 0)),
    "ValueError: … row () is nan … expected a finite number. Look for NaN in Q and K": (
        lambda: tl.softmax(array(3, value=NAN, at=0))
    ),
    "ValueError: … row (0, 3) is inf … A product overflowed float64: make Q or K smaller": (
        lambda: weigh(INF, slice(None), 3, mask_value=True)
    ),
    "ValueError: … row (0, 3) is -inf … a product overflowed … attention_weights(": (
        lambda: weigh(-INF, slice(None), 3, mask_value=True)
    ),
    "ValueError: X is -inf at position (0, 3, 5); expected finite numbers … np.argwhere(": (
        lambda: tl.multi_head_attention(array(2, 5, 12, value=-INF, at=([1, 0], [2, 3], 5)), PARAMS)
    ),
    # The backward pass.
    "ShapeError: … (2, 5) … of shape (5, 5) … does not broadcast … Pass the shape of the array": (
        lambda: tl.sum_copies(array(2, 5), (5, 5))
    ),
    "TypeError: X is an array of int64; expected floats … .astype(float)": (
        lambda: backward(int_ones((2, 5, 12)))
    ),
    "ValueError: trace.Y is nan at position (1, 4, 11); expected finite numbers": (
        lambda: backward(Y=array(2, 5, 12, value=NAN, at=(1, 4, 11)))
    ),
    "ShapeError: trace.Q has shape": lambda: backward(Q=array(2, 3, 4, 4)),
    "ShapeError: dY has shape": lambda: backward(Y=array(2, 4, 12)),
    # The layer in blocks, and in one pass.
    "TypeError: X is int64, W_Q is float64 … float32 throughout or float64 … X.astype(": (
        lambda: tiled(int_ones((5, 12)), PARAMS)
    ),
    "TypeError: … W_V is float32, W_O is float64; expected": lambda: tiled(array(5, 12), MIXED),
    "TypeError: … K_T is float64, V is int64": lambda: attend_one(V=int_ones((3, 6, 7))),
    "ShapeError: Q has 8 rows and K_T has 6 columns; expected at least as many … Pass": (
        lambda: attend_one(Q=array(3, 8, 4), causal=True)
    ),
    "TypeError: Q is float16, K is float16, V is float16; expected float32 throughout": (
        lambda: flash_forward(*np.ones((3, 5, 4), dtype=np.float16))
    ),
    "ShapeError: … the leading axes (3,), (3,) and (1,); expected the same. Copy what is shared": (
        lambda: flash_pass(V=array(1, 6, 7))
    ),
    "ShapeError: dheads … (3, 5, 7), the shape of heads": lambda: flash_pass(dheads=array(3, 5, 4)),
    "TypeError: … dheads is float32": lambda: flash_pass(dheads=float32s(3, 5, 7)),
    # Sentences about attention.
    "TypeError: weights is a list; expected a NumPy array … np.asarray(": lambda: describe([[1.0]]),
    "ValueError: weights has shape (5, 5) … expected (H, T, S) and S tokens … weights[0]": (
        lambda: describe(array(5, 5))
    ),
    "ValueError: head=0, query=5; expected a head below 3 and a query below 5 … counted from 0": (
        lambda: describe(array(3, 5, 5), query=5)
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_bad_input_is_refused_before_any_arithmetic(sentence, capsys):
    refuse(sentence, SENTENCES[sentence])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("width", [0, -12, 12.0, True])
def test_what_is_split_is_a_positive_whole_number(width):
    error = ValueError if type(width) is int else TypeError
    for n_heads in (1, 3):
        with pytest.raises(error, match=r"^d_model"):
            errors.require_divisible("d_model", width, "n_heads", n_heads)
    with pytest.raises(error, match=r"^n_heads"):
        errors.require_divisible("d_model", 12, "n_heads", width)
    errors.require_divisible("d_model", np.int64(12), "n_heads", np.int32(3))
