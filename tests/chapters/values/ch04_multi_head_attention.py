"""What chapter 04 says of the models with other numbers of heads, and other widths."""

import dataclasses

import numpy as np

from tests.chapters.named import printed_under
from tests.chapters.training_records import tiny_models
from tutorial_lib import causal_mask, init_params, running_example, trace

PAGE = "04_multi_head_attention"


def best_rate_of_one_head_is_the_smallest_tried():
    """The model with one head learned best at the smallest rate that was tried."""
    (one,) = (variant for variant in tiny_models("heads") if variant["heads"] == 1)
    return one["rate"] == min(tried["rate"] for tried in one["tried"])


def sixteen_heads_are_last_at_every_rate():
    """After 400 steps, sixteen heads have the lowest accuracy at every rate."""
    by_rate = printed_under(PAGE, "accuracy after 400 steps, by learning rate")
    return (by_rate.argmin(axis=0) == 4).all()


def best_rate_of_d_k_of_1_is_the_largest_tried():
    """The model with d_k = 1 learned best at the largest rate that was tried."""
    (narrow,) = (variant for variant in tiny_models("width") if variant["d_k"] == 1)
    return narrow["rate"] == max(tried["rate"] for tried in narrow["tried"])


def d_k_of_16_ran_at_twice_the_rate_of_32():
    """The best rate of d_k = 16 is twice the best rate of d_k = 32."""
    rates = {variant["d_k"]: variant["rate"] for variant in tiny_models("width")}
    return rates[16] == 2 * rates[32]


def values_of_head_1_are_the_positions():
    """In the running example, the values of head 1 are the last four columns of X."""
    X, params = running_example().X, running_example().params
    return np.array_equal(X @ params.W_V[1], X[:, 4:])


def equal_weights_need_only_one_wider_head():
    """Two heads of equal queries and keys are one head that has the values of both."""
    example = running_example()
    first, mask = vars(example.params), example.mask
    equal = {name: first[name][[0, 0]] for name in ("W_Q", "W_K")}
    both = trace(example.X, dataclasses.replace(example.params, **equal), mask=mask)
    wide = np.concatenate(first["W_V"], axis=-1)
    return np.allclose(both.weights[0] @ example.X @ wide, both.concat, rtol=1e-12, atol=1e-12)


def one_wider_head_fits_one_sentence_but_not_three():
    """With different weights, one W_V gives what two heads give for one sentence of six words."""
    params = init_params(np.random.default_rng(0), d_model=12, n_heads=2)
    X = np.random.default_rng(1).standard_normal((3, 6, 12))
    run = trace(X, params, mask=causal_mask(6))
    mixed = run.weights[:, 0] @ X  # (3, 6, 12), by head 0
    errors = []
    for rows, wanted in ((mixed[0], run.concat[0]), (mixed.reshape(18, 12), np.vstack(run.concat))):
        errors.append(np.abs(rows @ np.linalg.lstsq(rows, wanted, rcond=None)[0] - wanted).max())
    return errors[0] < 1e-9 and errors[1] > 0.1
