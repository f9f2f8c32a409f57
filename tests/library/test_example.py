"""The running example, whose weights are fractions, and the published one."""

from fractions import Fraction

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import published_example, running_example, trace

WEIGHTS = [
    [["1"], ["4/5", "1/5"], ["4/7", "1/7", "2/7"]],
    [["1"], ["16/17", "1/17"], ["4/13", "1/13", "8/13"]],
]


@pytest.fixture
def example():
    """The example of Part I."""
    return running_example()


@pytest.fixture
def reference():
    """The example that was published."""
    return published_example()


def causal_trace(example):
    """Its causal trace."""
    return trace(example.X, example.params, mask=example.mask)


@pytest.mark.parametrize("head", [0, 1])
def test_weights_are_the_fractions_of_the_book(example, head, assert_close):
    expected = np.zeros((3, 3))
    for t, row in enumerate(WEIGHTS[head]):
        expected[t, : t + 1] = [float(Fraction(text)) for text in row]
    assert_close(causal_trace(example).weights[head], expected)


@pytest.mark.parametrize("trace_field", ["weights", "heads", "concat", "Y"])
def test_all_that_follows_the_softmax_is_a_fraction(example, trace_field):
    for value in getattr(causal_trace(example), trace_field).ravel().tolist():
        assert abs(Fraction(value).limit_denominator(1000) - Fraction(value)) < 1e-12


def test_denominators_of_the_output_are_products_of_those_of_the_weights(example):
    denominators = [
        {Fraction(value).limit_denominator(1000).denominator for value in row}
        for row in causal_trace(example).Y.tolist()
    ]
    assert all(85 % d == 0 for d in denominators[1])
    assert all(91 % d == 0 for d in denominators[2])
    assert denominators[0] == {1}


def test_input_is_words_plus_positions(example):
    expected = [[1, 0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(example.X, expected)
    np.testing.assert_array_equal(oracle.embed(example.ids, example.E, example.P), expected)


def test_literal_matrices_are_those_of_the_generator(example):
    rng = np.random.default_rng(12087)
    W_Q = rng.integers(-1, 2, (2, 8, 4)) * (2 * np.log(2))
    W_K = rng.integers(-1, 2, (2, 8, 4))
    np.testing.assert_allclose(example.params.W_Q, W_Q, rtol=1e-15)
    np.testing.assert_array_equal(example.params.W_K, W_K)


def test_words_have_the_first_four_features_positions_the_last_four_and_padding_none(example):
    word_rows, position_rows = np.split(example.E, 2, axis=1)[0], np.split(example.P, 2, axis=1)[1]
    assert not example.E[0].any()
    assert not example.E[:, 4:].any()
    assert not example.P[:, :4].any()
    assert set(word_rows.ravel()) == {0, 1}
    assert len(np.unique(word_rows, axis=0)) == len(example.vocabulary) == 6
    np.testing.assert_array_equal(position_rows @ position_rows.T, np.eye(4))  # a feature for each
    np.testing.assert_array_equal(np.concatenate(list(example.params.W_V), axis=1), np.eye(8))


def test_first_head_carries_words_and_second_head_carries_positions(example):
    V = causal_trace(example).V
    word_rows, position_rows = example.E[example.ids], example.P[:3]
    np.testing.assert_array_equal(V[0], word_rows[:, :4])
    np.testing.assert_array_equal(V[1], position_rows[:, 4:])


def test_running_example_has_the_sizes_of_the_book(example):
    assert example.tokens == ("dogs", "that", "bark")
    assert example.ids.tolist() == [1, 2, 3]
    sizes = example.params.n_heads, example.params.d_model, example.params.d_k, example.params.d_v
    assert sizes == (2, 8, 4, 4)
    np.testing.assert_array_equal(example.mask, np.tril(np.ones((3, 3), dtype=bool)))


def test_root_of_d_k_is_exact_and_scores_are_whole_multiples_of_ln_2(example):
    ln2_multiples = causal_trace(example).scores / np.log(2)
    np.testing.assert_allclose(ln2_multiples, np.round(ln2_multiples), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["example", "reference"])
@pytest.mark.parametrize("trace_field", ["Q", "scores", "weights", "heads", "concat", "Y"])
def test_examples_equal_the_loops(request, name, trace_field, assert_close):
    example = request.getfixturevalue(name)
    expected = oracle.trace(example.X, example.params, mask=example.mask)
    assert_close(getattr(causal_trace(example), trace_field), expected[trace_field])


@pytest.mark.parametrize("build", [running_example, published_example])
def test_each_call_makes_new_arrays_in_double_precision(build):
    arrays, copies = ([example.E, *vars(example.params).values()] for example in (build(), build()))
    for array, second_array in zip(arrays, copies, strict=True):
        assert array.dtype == np.float64
        assert not np.shares_memory(array, second_array)


def test_published_numbers_are_reproduced_to_every_printed_digit(reference):
    record = causal_trace(reference)
    assert [f"{x:.4f}" for x in record.concat[0, :4]] == ["0.0800", "0.0257", "-0.0117", "-0.1056"]
    assert [f"{x:.4f}" for x in record.Y[0, :4]] == ["0.0334", "0.0033", "-0.0041", "-0.0073"]


def test_published_weights_are_running_means(reference):
    weights = causal_trace(reference).weights
    running_means = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    assert 0.0017 < np.abs(weights - running_means).max() <= 0.0018


def test_published_hand_calculation_took_a_column_of_w_o(reference):
    concat, W_O = causal_trace(reference).concat, reference.params.W_O
    heads = [concat[0, :8] @ W_O[:8, 0], concat[0, 8:] @ W_O[8:, 0]]
    np.testing.assert_allclose(heads, [0.0306995, 0.0027214], atol=5e-8)
    np.testing.assert_allclose(concat[0] @ W_O[0], -0.0014602, atol=5e-8)


def test_published_example_has_the_published_sizes(reference):
    assert reference.tokens == ("<BOS>", "I", "like", "transformers", "<EOS>")
    assert reference.ids.tolist() == [1, 3, 4, 5, 2]
    assert reference.E.shape == (6, 16)
    assert reference.P.shape == (5, 16)
    assert (reference.params.n_heads, reference.params.d_k, reference.params.d_v) == (2, 8, 8)
