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
def running():
    """The example of Part I."""
    return running_example()


@pytest.fixture
def published():
    """The example that was published."""
    return published_example()


def traced(example):
    """Its causal trace."""
    return trace(example.X, example.params, mask=example.mask)


@pytest.mark.parametrize("head", [0, 1])
def test_weights_are_the_fractions_of_the_book(running, head, assert_close):
    expected = np.zeros((3, 3))
    for t, row in enumerate(WEIGHTS[head]):
        expected[t, : t + 1] = [float(Fraction(text)) for text in row]
    assert_close(traced(running).weights[head], expected)


@pytest.mark.parametrize("step", ["weights", "heads", "concat", "Y"])
def test_all_that_follows_the_softmax_is_a_fraction(running, step):
    for value in getattr(traced(running), step).ravel().tolist():
        assert abs(Fraction(value).limit_denominator(1000) - Fraction(value)) < 1e-12


def test_denominators_of_the_output_are_products_of_those_of_the_weights(running):
    rows = [
        {Fraction(value).limit_denominator(1000).denominator for value in row}
        for row in traced(running).Y.tolist()
    ]
    assert all(85 % d == 0 for d in rows[1])
    assert all(91 % d == 0 for d in rows[2])
    assert rows[0] == {1}


def test_input_is_words_plus_positions(running):
    expected = [[1, 0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(running.X, expected)
    np.testing.assert_array_equal(oracle.embed(running.ids, running.E, running.P), expected)


def test_literal_matrices_are_those_of_the_generator(running):
    rng = np.random.default_rng(12087)
    W_Q = rng.integers(-1, 2, (2, 8, 4)) * (2 * np.log(2))
    W_K = rng.integers(-1, 2, (2, 8, 4))
    np.testing.assert_allclose(running.params.W_Q, W_Q, rtol=1e-15)
    np.testing.assert_array_equal(running.params.W_K, W_K)


def test_words_have_the_first_four_features_positions_the_last_four_and_padding_none(running):
    words, positions = np.split(running.E, 2, axis=1)[0], np.split(running.P, 2, axis=1)[1]
    assert not running.E[0].any()
    assert not running.E[:, 4:].any()
    assert not running.P[:, :4].any()
    assert set(words.ravel()) == {0, 1}
    assert len(np.unique(words, axis=0)) == len(running.vocabulary) == 6
    np.testing.assert_array_equal(positions @ positions.T, np.eye(4))  # a feature for each
    np.testing.assert_array_equal(np.concatenate(list(running.params.W_V), axis=1), np.eye(8))


def test_first_head_carries_words_and_second_head_carries_positions(running):
    V = traced(running).V
    words, positions = running.E[running.ids], running.P[:3]
    np.testing.assert_array_equal(V[0], words[:, :4])
    np.testing.assert_array_equal(V[1], positions[:, 4:])


def test_running_example_has_the_sizes_of_the_book(running):
    assert running.tokens == ("dogs", "that", "bark")
    assert running.ids.tolist() == [1, 2, 3]
    sizes = running.params.n_heads, running.params.d_model, running.params.d_k, running.params.d_v
    assert sizes == (2, 8, 4, 4)
    np.testing.assert_array_equal(running.mask, np.tril(np.ones((3, 3), dtype=bool)))


def test_root_of_d_k_is_exact_and_scores_are_whole_multiples_of_ln_2(running):
    units = traced(running).scores / np.log(2)
    np.testing.assert_allclose(units, np.round(units), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["running", "published"])
@pytest.mark.parametrize("step", ["Q", "scores", "weights", "heads", "concat", "Y"])
def test_examples_equal_the_loops(request, name, step, assert_close):
    example = request.getfixturevalue(name)
    expected = oracle.trace(example.X, example.params, mask=example.mask)
    assert_close(getattr(traced(example), step), expected[step])


@pytest.mark.parametrize("make", [running_example, published_example])
def test_each_call_makes_new_arrays_in_double_precision(make):
    arrays, others = ([example.E, *vars(example.params).values()] for example in (make(), make()))
    for array, other in zip(arrays, others, strict=True):
        assert array.dtype == np.float64
        assert not np.shares_memory(array, other)


def test_published_numbers_are_reproduced_to_every_printed_digit(published):
    record = traced(published)
    assert [f"{x:.4f}" for x in record.concat[0, :4]] == ["0.0800", "0.0257", "-0.0117", "-0.1056"]
    assert [f"{x:.4f}" for x in record.Y[0, :4]] == ["0.0334", "0.0033", "-0.0041", "-0.0073"]


def test_published_weights_are_running_means(published):
    weights = traced(published).weights
    means = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    assert 0.0017 < np.abs(weights - means).max() <= 0.0018


def test_published_hand_calculation_took_a_column_of_w_o(published):
    concat, W_O = traced(published).concat, published.params.W_O
    heads = [concat[0, :8] @ W_O[:8, 0], concat[0, 8:] @ W_O[8:, 0]]
    np.testing.assert_allclose(heads, [0.0306995, 0.0027214], atol=5e-8)
    np.testing.assert_allclose(concat[0] @ W_O[0], -0.0014602, atol=5e-8)


def test_published_example_has_the_published_sizes(published):
    assert published.tokens == ("<BOS>", "I", "like", "transformers", "<EOS>")
    assert published.ids.tolist() == [1, 3, 4, 5, 2]
    assert published.E.shape == (6, 16)
    assert published.P.shape == (5, 16)
    assert (published.params.n_heads, published.params.d_k, published.params.d_v) == (2, 8, 8)
