"""What chapters print: layout, rounding, and the guard for values that could round either way."""

import numpy as np
import pytest

from tutorial_lib import describe_attention, running_example, show, show_fractions, trace
from tutorial_lib.describe import format_array, printable, round_stable

TABLES = {
    "a number": (("n", 3), {}, "n: 3\n"),
    "a float": (("x", 0.123456), {}, "x: 0.1235\n"),
    "fewer decimals": (("x", 0.123456), {"decimals": 2}, "x: 0.12\n"),
    "no trailing zeros": (("x", 2.5), {}, "x: 2.5\n"),
    "a whole float": (("x", 7.0), {}, "x: 7\n"),
    "a boolean": (("may look", True), {}, "may look: ✓\n"),
    "a boolean of NumPy": (("may look", np.False_), {}, "may look: ·\n"),
    "a scalar of NumPy": (("x", np.float64(0.5)), {}, "x: 0.5\n"),
    "single precision": (("x", np.float32(0.1)), {}, "x: 0.1\n"),
    "a vector": (("v", np.array([1.0, -2.5, 30])), {}, "v   (3,)\n 1.0  -2.5  30.0\n"),
    "a list": (("v", [1, 20]), {}, "v   (2,)\n 1  20\n"),
    "a vector with columns": (
        ("v", np.array([1.5, 2])),
        {"columns": ("a", "b")},
        "v   (2,)\n  a    b\n1.5  2.0\n",
    ),
    "a matrix with rows and columns": (
        ("w", np.array([[1, 0.25], [0, -1]])),
        {"rows": ["dogs", "it"], "columns": ["dogs", "it"]},
        "w   (2, 2)\n       dogs     it\ndogs   1.00   0.25\nit     0.00  -1.00\n\n",
    ),
    "a matrix with rows": (
        ("w", np.array([[1, 2], [3, 4]])),
        {"rows": ["dogs", 7]},
        "w   (2, 2)\ndogs  1  2\n7     3  4\n\n",
    ),
    "names that are numbers": (
        ("w", np.array([[1, 2]])),
        {"columns": [4, 512]},
        "w   (1, 2)\n  4  512\n  1    2\n\n",
    ),
    "booleans": (
        ("mask", np.array([[True, False], [True, True]])),
        {},
        "mask   (2, 2)\n✓  ·\n✓  ✓\n\n",
    ),
    "a matrix a head": (
        ("w", np.array([[[1, 2]], [[3, 4]]])),
        {"columns": "ab"},
        "w   (2, 1, 2)\n[0]\na  b\n1  2\n[1]\na  b\n3  4\n\n",
    ),
    "a matrix a head of each sequence": (
        ("w", np.arange(4).reshape(2, 2, 1, 1)),
        {},
        "w   (2, 2, 1, 1)\n[0, 0]\n0\n[0, 1]\n1\n[1, 0]\n2\n[1, 1]\n3\n\n",
    ),
    "no negative zero": (
        ("z", np.array([-0.0, -1e-9, 0.5])),
        {},
        "z   (3,)\n0.0  0.0  0.5\n",
    ),
    "not finite": (
        ("x", np.array([np.inf, -np.inf, np.nan, 0.5])),
        {},
        "x   (4,)\n inf  -inf   nan   0.5\n",
    ),
    "an empty array": (("x", np.zeros((0, 3))), {"columns": "abc"}, "x   (0, 3)\n"),
    "words": (("tokens", np.array(["dogs", "it"])), {}, "tokens   (2,)\ndogs    it\n"),
}
FRACTIONS = {
    "a matrix": (
        np.array([[4 / 7, 1 / 7, 2 / 7], [1, 0, -0.0]]),
        "w   (2, 3)\n4/7  1/7  2/7\n  1    0    0\n\n",
    ),
    "a number": (-2 / 3, "w: -2/3\n"),
    "a denominator of 1000": (0.001, "w: 1/1000\n"),
}
STRICT = pytest.mark.usefixtures("strict")


@pytest.fixture
def strict(monkeypatch):
    """As when outputs are refreshed or compared."""
    monkeypatch.setenv("TUTORIAL_LIB_STRICT", "1")


@pytest.fixture
def relaxed(monkeypatch):
    """As on a reader's machine."""
    monkeypatch.delenv("TUTORIAL_LIB_STRICT", raising=False)


@pytest.fixture
def running():
    """Tokens and causal weights of the running example."""
    example = running_example()
    return example.tokens, trace(example.X, example.params, mask=example.mask).weights


@pytest.mark.parametrize("environment", ["strict", "relaxed"])
@pytest.mark.parametrize("case", TABLES)
def test_layout(case, environment, request, capsys):
    request.getfixturevalue(environment)
    (label, value), options, expected = TABLES[case]
    show(label, value, **options)
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("case", FRACTIONS)
def test_fractions(case, capsys):
    value, expected = FRACTIONS[case]
    show_fractions("w", value)
    assert capsys.readouterr().out == expected


def test_weights_of_the_running_example_are_shown_as_fractions(running, capsys):
    tokens, weights = running
    show_fractions("weights", weights[1], rows=tokens, columns=tokens)
    assert capsys.readouterr().out.splitlines() == [
        "weights   (3, 3)",
        "       dogs   that   bark",
        "dogs      1      0      0",
        "that  16/17   1/17      0",
        "bark   4/13   1/13   8/13",
        "",
    ]


@pytest.mark.parametrize("error", [-9e-10, 9e-10])
def test_rounding_errors_below_1e_9_hide_no_fraction(error, capsys):
    show_fractions("x", np.array([4 / 7, -2 / 3]) + error)
    assert capsys.readouterr().out == "x   (2,)\n 4/7  -2/3\n"


@pytest.mark.parametrize("value", [np.pi, 1 / 1001, 0.5714, 4 / 7 + 1.1e-9, 4 / 7 - 1.1e-9, np.inf])
def test_what_is_no_small_fraction_is_refused_as_one(value):
    with pytest.raises(ValueError, match="Show it with decimals"):
        show_fractions("x", value)


@STRICT
@pytest.mark.parametrize(
    ("value", "decimals"),
    [
        (0.00005, 4),
        (0.12345, 4),
        (-0.12345, 4),
        (0.12345 + 4e-10, 4),
        (2.675, 2),
        (1 / 3 + 1 / 6e3, 3),
    ],
)
def test_value_at_a_rounding_boundary_is_refused(value, decimals, capsys):
    for shape in ((), (1,), (2, 3)):
        with pytest.raises(ValueError, match="lies on a rounding boundary"):
            show("x", np.full(shape, value), decimals=decimals)
    assert capsys.readouterr().out == ""


@STRICT
@pytest.mark.parametrize("value", [0.12345 + 3e-9, 0.12345 - 3e-9, 0.123449, 0.1234, 0.5, 1e-9])
def test_value_away_from_a_boundary_is_printed(value, capsys):
    show("x", value)
    assert (
        capsys.readouterr().out == f"x: {round(value, 4) + 0.0:.4f}".rstrip("0").rstrip(".") + "\n"
    )


@STRICT
@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (1 / 32, 4, "0.03125"),
        (3 / 32, 4, "0.09375"),
        (-1 / 32, 4, "-0.03125"),
        (0.5, 0, "0.5"),
        (2.125, 2, "2.125"),
    ],
)
def test_exact_short_decimal_prints_in_full(value, decimals, text, capsys):
    show("x", value, decimals=decimals)
    show("y", np.array([value, 1]), decimals=decimals)
    alone, _, row = capsys.readouterr().out.splitlines()
    assert alone == f"x: {text}"
    assert row.split()[0] == text


@STRICT
def test_exact_short_decimal_does_not_hide_a_neighbour_at_a_boundary():
    with pytest.raises(ValueError, match="rounding boundary at 5 decimals"):
        show("x", np.array([1 / 32, 0.000005]))


@pytest.mark.usefixtures("relaxed")
@pytest.mark.parametrize("value", [0.00005, 0.12345, 2.67495])
def test_reader_sees_a_number_where_the_guard_would_refuse(value, capsys):
    show("x", value)
    assert capsys.readouterr().out.startswith("x: ")


@pytest.mark.parametrize("setting", ["", None])
def test_guard_is_off_when_its_variable_is_unset_or_empty(monkeypatch, setting):
    monkeypatch.delenv("TUTORIAL_LIB_STRICT", raising=False)
    if setting is not None:
        monkeypatch.setenv("TUTORIAL_LIB_STRICT", setting)
    assert round_stable(0.12345, 4) == round(0.12345, 4)


@pytest.mark.parametrize("names", [{"rows": "ab"}, {"columns": "abcd"}, {"rows": "abcd"}])
def test_names_that_do_not_match_their_axis_are_refused(names, capsys):
    for value in (np.zeros((3, 3)), np.zeros((2, 3, 3))):
        with pytest.raises(ValueError, match=r"named, \[.*\], but the array has 3"):
            show("x", value, **names)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("value", "names"),
    [(np.zeros(3), {"rows": "abc"}), (1.0, {"rows": "a"}), (1.0, {"columns": "a"})],
)
def test_names_of_an_axis_that_is_not_there_are_refused(value, names):
    with pytest.raises(ValueError, match="no axis of"):
        show("x", value, **names)


def test_same_array_in_any_memory_order_prints_alike(capsys):
    value = np.arange(6.0).reshape(2, 3) / 7
    for same in (
        value,
        np.asfortranarray(value),
        value.tolist(),
        np.repeat(value, 2, axis=1)[:, ::2],
    ):
        show("x", same)
    texts = capsys.readouterr().out.split("x   (2, 3)\n")[1:]
    assert len(texts) == 4
    assert len(set(texts)) == 1


def test_a_tensor_that_requires_a_gradient_is_shown_as_its_array(capsys):
    value = np.array([[0.5, -2.0]])
    leaf = pytest.importorskip("torch").tensor(value, requires_grad=True)
    for given in (value, leaf, 1 * leaf):
        show("x", given)
        show_fractions("x", given)
    first, *others = capsys.readouterr().out.split("x   (1, 2)\n 0.5  -2.0\n\n")[1:]
    assert others == [first, first]


def test_format_array_takes_any_text_for_an_entry():
    assert format_array(np.arange(3), lambda n: "·" * n) == "     ·  ··"


def test_show_leaves_its_input_alone(assert_untouched):
    assert_untouched(show, "x", np.array([[-0.0, 1 / 32], [np.nan, 4]]))


def test_sentence_names_keys_from_the_strongest_on(running):
    tokens, weights = running
    assert describe_attention(weights, tokens, query=2) == (
        "Head 0: bark looks at dogs 0.571, bark 0.286, that 0.143."
    )
    assert describe_attention(weights, tokens, query=1, head=1) == (
        "Head 1: that looks at dogs 0.941, that 0.059."
    )
    assert describe_attention(weights, tokens, query=0, head=1) == "Head 1: dogs looks at dogs 1."


def test_sentence_of_a_query_with_nothing_to_look_at():
    assert describe_attention(np.zeros((1, 2, 2)), "ab", query=1) == "Head 0: b looks at nothing."


def test_equal_weights_are_named_in_the_order_of_the_sentence():
    third = np.array([[[1 / 3, np.nextafter(1 / 3, 1), np.nextafter(1 / 3, 0)]] * 3])
    assert (
        describe_attention(third, "abc", query=0) == "Head 0: a looks at a 0.333, b 0.333, c 0.333."
    )


def test_weights_that_are_printed_alike_are_named_in_the_order_of_the_sentence():
    weights = np.array([[[0.3331, 0.3334, 0.3332]] * 3])
    assert describe_attention(weights, "abc", query=0).endswith("a 0.333, b 0.333, c 0.333.")


def test_many_equal_weights_are_named_in_the_order_of_the_sentence():
    tokens = [f"t{n}" for n in range(40)]
    weights = np.tile([0.02, 0.03], (1, 40, 20))
    sentence = describe_attention(weights, tokens, query=0)
    assert sentence.split()[5::2] == tokens[1::2] + tokens[::2]


@pytest.mark.parametrize(
    ("name", "written"),
    [("dogs", "dogs"), ("\n", "\\n"), ("a\tb", "a\\tb"), ("犬", "犬"), (7, "7")],
)
def test_a_name_is_written_in_one_line(name, written):
    assert printable(name) == written


@STRICT
def test_sentence_refuses_a_weight_at_a_rounding_boundary():
    weights = np.array([[[0.1235, 0.8765], [0, 1]]])
    with pytest.raises(ValueError, match="rounding boundary at 3 decimals"):
        describe_attention(weights, "ab", query=0)


def test_sentence_leaves_its_input_alone(running, assert_untouched):
    tokens, weights = running
    assert_untouched(describe_attention, weights, tokens, query=2)
