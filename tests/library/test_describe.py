"""What chapters print: layout, rounding, and the guard for values that could round either way."""

from functools import partial

import numpy as np
import pytest

from tests.library.test_errors import refuse
from tutorial_lib import describe_attention, running_example, show, show_fractions, trace
from tutorial_lib.describe import format_array

show_rows = partial(show, rows=["dogs", 7])
PRINTED_LAYOUTS = {  # what is printed, and by which call
    "n: 3\n": lambda: show("n", 3),
    "x: 0.1235\n": lambda: show("x", 0.123456),
    "x: 0.12\n": lambda: show("x", 0.123456, decimals=2),
    "x: 2.5\n": lambda: show("x", 2.5),
    "x: 7\n": lambda: show("x", 7.0),
    "may look: ✓\n": lambda: show("may look", True),
    "may look: ·\n": lambda: show("may look", np.False_),
    "x: 0.1\n": lambda: show("x", np.float32(0.1)),
    "v   (3,)\n 1.0  -2.5  30.0\n": lambda: show("v", np.array([1.0, -2.5, 30])),
    "v   (2,)\n 1  20\n": lambda: show("v", [1, 20]),
    "v   (2,)\n  a    b\n1.5  2.0\n": lambda: show("v", np.array([1.5, 2]), columns=("a", "b")),
    "w   (2, 2)\n       dogs      7\ndogs   1.00   0.25\n7      0.00  -1.00\n\n": (
        lambda: show_rows("w", np.array([[1, 0.25], [0, -1]]), columns=["dogs", 7])
    ),
    "w   (2, 2)\ndogs  1  2\n7     3  4\n\n": lambda: show_rows("w", np.array([[1, 2], [3, 4]])),
    "w   (1, 2)\n  4  512\n  1    2\n\n": lambda: show("w", np.array([[1, 2]]), columns=[4, 512]),
    "m   (2, 2)\n✓  ·\n✓  ✓\n\n": lambda: show("m", np.tri(2, dtype=bool)),
    "w   (2, 1, 2)\n[0]\na  b\n1  2\n[1]\na  b\n3  4\n\n": (
        lambda: show("w", np.array([[[1, 2]], [[3, 4]]]), columns="ab")
    ),
    "w   (2, 2, 1, 1)\n[0, 0]\n0\n[0, 1]\n1\n[1, 0]\n2\n[1, 1]\n3\n\n": (
        lambda: show("w", np.arange(4).reshape(2, 2, 1, 1))
    ),
    "z   (3,)\n0.0  0.0  0.5\n": lambda: show("z", np.array([-0.0, -1e-9, 0.5])),
    "x   (4,)\n inf  -inf   nan   0.5\n": (
        lambda: show("x", np.array([np.inf, -np.inf, np.nan, 0.5]))
    ),
    "x   (0, 3)\n": lambda: show("x", np.zeros((0, 3)), columns="abc"),
    "tokens   (2,)\ndogs    it\n": lambda: show("tokens", np.array(["dogs", "it"])),
    "w   (2, 3)\n4/7  1/7  2/7\n  1    0    0\n\n": (
        lambda: show_fractions("w", np.array([[4 / 7, 1 / 7, 2 / 7], [1, 0, -0.0]]))
    ),
    "w: -2/3\n": lambda: show_fractions("w", -2 / 3),
    "w: 1/1000\n": lambda: show_fractions("w", 0.001),
    "x   (2,)\n 4/7  -2/3\n": lambda: show_fractions("x", np.array([4 / 7, -2 / 3]) - 9e-10),
}
STRICT_OUTPUTS = pytest.mark.usefixtures("strict_outputs")


@pytest.fixture
def strict_outputs(monkeypatch):
    """As when outputs are refreshed or compared."""
    monkeypatch.setenv("TUTORIAL_LIB_STRICT", "1")


@pytest.fixture
def running_weights():
    """Tokens and causal weights of the running example."""
    example = running_example()
    return example.tokens, trace(example.X, example.params, mask=example.mask).weights


@pytest.mark.parametrize("text", PRINTED_LAYOUTS)
def test_layout_with_the_guard_and_without_it(text, monkeypatch, capsys):
    for strict_setting in ("1", ""):
        monkeypatch.setenv("TUTORIAL_LIB_STRICT", strict_setting)
        PRINTED_LAYOUTS[text]()
        assert capsys.readouterr().out == text


@pytest.mark.parametrize("value", [np.pi, 1 / 1001, 0.5714, 4 / 7 + 1.1e-9, 4 / 7 - 1.1e-9, np.inf])
def test_what_is_no_small_fraction_is_refused_as_one(value):
    sentence = (
        f"ValueError: {value!r} is not a fraction with a denominator up to 1000. Show it with"
    )
    for entries in (value, np.array([value])):
        refuse(sentence, lambda entries=entries: show_fractions("x", entries))


@STRICT_OUTPUTS
@pytest.mark.parametrize(
    ("value", "decimals"),
    [(0.00005, 4), (-0.12345, 4), (0.12345 + 4e-10, 4), (2.675, 2), (1 / 3 + 1 / 6e3, 3)],
)
def test_value_at_a_rounding_boundary_is_refused(value, decimals, capsys):
    for shape in ((), (1,), (2, 3)):
        with pytest.raises(ValueError, match="lies on a rounding boundary"):
            show("x", np.full(shape, value), decimals=decimals)
    assert capsys.readouterr().out == ""


@STRICT_OUTPUTS
@pytest.mark.parametrize("value", [0.12345 + 3e-9, 0.12345 - 3e-9, 0.123449, 1e-9])
def test_value_away_from_a_boundary_is_printed(value, capsys):
    show("x", value)
    assert capsys.readouterr().out == f"x: {round(value, 4):g}\n"


@STRICT_OUTPUTS
@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(1 / 32, 4, "0.03125"), (-1 / 32, 4, "-0.03125"), (0.5, 0, "0.5"), (2.125, 2, "2.125")],
)
def test_exact_short_decimal_prints_in_full(value, decimals, text, capsys):
    show("x", value, decimals=decimals)
    show("y", np.array([value, 1]), decimals=decimals)
    number_line, _, vector_line = capsys.readouterr().out.splitlines()
    assert number_line == f"x: {text}"
    assert vector_line.split()[0] == text


@STRICT_OUTPUTS
def test_a_number_that_is_safe_does_not_hide_a_neighbour_at_a_boundary():
    values, weights = np.array([1 / 32, 0.000005]), np.array([[[0.1235, 0.8765], [0, 1]]])
    boundary_error = "ValueError: … lies on a rounding boundary at"
    refuse(f"{boundary_error} 5 decimals", lambda: show("x", values))
    refuse(f"{boundary_error} 3 decimals", lambda: describe_attention(weights, "ab", query=0))


@pytest.mark.parametrize("value", [0.00005, 0.12345, 2.67495])
def test_reader_sees_a_number_where_the_guard_would_refuse(value, monkeypatch, capsys):
    monkeypatch.delenv("TUTORIAL_LIB_STRICT", raising=False)
    show("x", value)
    monkeypatch.setenv("TUTORIAL_LIB_STRICT", "")
    show("x", value)
    assert capsys.readouterr().out == 2 * f"x: {round(value, 4)}\n"


@pytest.mark.parametrize(
    ("shape", "axis_names", "sentence"),
    [
        ((3, 3), {"rows": "ab"}, "2 rows named, ['a', 'b'], but the array has 3. Give one name"),
        ((2, 3, 3), {"columns": "abcd"}, "4 columns named, ['a', 'b', 'c', 'd'], but … has 3"),
        ((3,), {"columns": "ab"}, "2 columns named, ['a', 'b'], but the array has 3"),
        ((3,), {"rows": "abc"}, "rows named, ['a', 'b', 'c'], but the array has no axis of rows"),
        ((), {"rows": "a"}, "rows named, ['a'], but the array has no axis of rows. Leave rows out"),
        ((), {"columns": "a"}, "columns named, ['a'], but the array has no axis of columns"),
    ],
)
def test_names_that_do_not_match_their_axis_are_refused(shape, axis_names, sentence, capsys):
    refuse(f"ValueError: {sentence}", lambda: show("x", np.zeros(shape), **axis_names))
    assert capsys.readouterr().out == ""


def test_same_array_in_any_memory_order_prints_alike(capsys):
    value = np.arange(6.0).reshape(2, 3) / 7
    strided_array = np.repeat(value, 2, axis=1)[:, ::2]
    for equal_array in (value, np.asfortranarray(value), value.tolist(), strided_array):
        show("x", equal_array)
    texts = capsys.readouterr().out.split("x   (2, 3)\n")[1:]
    assert len(texts) == 4
    assert len(set(texts)) == 1


def test_a_tensor_that_requires_a_gradient_is_shown_as_its_array(capsys):
    value = np.array([[0.5, -2.0]])
    leaf_tensor = pytest.importorskip("torch").tensor(value, requires_grad=True)
    for matrix in (value, leaf_tensor, 1 * leaf_tensor):
        show("x", matrix)
        show_fractions("x", matrix)
    array, *tensors = capsys.readouterr().out.split("x   (1, 2)\n 0.5  -2.0\n\n")[1:]
    assert tensors == [array, array]


def test_format_array_takes_any_text_for_an_entry():
    assert format_array(np.arange(3), lambda n: "·" * n) == "     ·  ··"


def test_show_and_the_sentence_leave_their_input_alone(running_weights, assert_untouched):
    assert_untouched(show, "x", np.array([[-0.0, 1 / 32], [np.nan, 4]]))
    tokens, weights = running_weights
    assert_untouched(describe_attention, weights, tokens, query=2)


@pytest.mark.parametrize(
    ("head_and_query", "sentence"),
    [
        ({"query": 2}, "Head 0: bark looks at dogs 0.571, bark 0.286, that 0.143."),
        ({"query": 1, "head": 1}, "Head 1: that looks at dogs 0.941, that 0.059."),
        ({"query": 0, "head": 1}, "Head 1: dogs looks at dogs 1."),
    ],
)
def test_sentence_names_keys_from_the_strongest_on(running_weights, head_and_query, sentence):
    tokens, weights = running_weights
    assert describe_attention(weights, tokens, **head_and_query) == sentence


def test_sentence_of_a_query_with_nothing_to_look_at():
    assert describe_attention(np.zeros((1, 2, 2)), "ab", query=1) == "Head 0: b looks at nothing."


@pytest.mark.parametrize(
    ("row", "order"),
    [
        ([1 / 3, np.nextafter(1 / 3, 1), np.nextafter(1 / 3, 0)], [0, 1, 2]),
        ([0.3331, 0.3334, 0.3332], [0, 1, 2]),  # printed alike
        ([0.02, 0.03] * 20, [*range(1, 40, 2), *range(0, 40, 2)]),
    ],
)
def test_equal_weights_are_named_in_the_order_of_the_sentence(row, order):
    tokens = [f"t{n}" for n in range(len(row))]
    sentence = describe_attention(np.array([[row]]), tokens, query=0)
    assert sentence.split()[5::2] == [tokens[n] for n in order]


@STRICT_OUTPUTS
@pytest.mark.parametrize(
    ("value", "decimals"), [(0.12356, 3), (3.45494, 2), (1234.508, 0), (23750.1, -2)]
)
def test_single_precision_with_few_decimals_keeps_away_from_a_boundary(value, decimals, capsys):
    show("x", np.float64(value), decimals=decimals)
    with pytest.raises(ValueError, match="rounding boundary"):
        show("x", np.float32(value), decimals=decimals)
    show("x", np.float32(value + 0.3 / 10**decimals), decimals=decimals)
    first, second = capsys.readouterr().out.splitlines()
    assert float(second[2:]) - float(first[2:]) in (0, pytest.approx(10**-decimals))
