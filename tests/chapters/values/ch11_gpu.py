"""What chapter 11 says of its counts, its records and its rounded numbers, computed."""

from functools import cache

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib import attention_scores, scaled_dot_product_attention, softmax
from tutorial_lib.counting import attention_bytes
from tutorial_lib.records import record


def times_that_a_table_crosses_the_memory():
    """Step by step, each score or weight is moved so many times, and fused not at all."""
    one = np.ones((1, 1))  # of one query and one key, so that the table has one entry
    more = attention_bytes(one, one, one, fused=False) - attention_bytes(one, one, one, fused=True)
    return more / one.itemsize


def largest_score_of_the_rounded_example():
    """The largest score of the arrays that are rounded to three formats."""
    rng = np.random.default_rng(0)
    rng.standard_normal((3, 2, 4, 64, 16))  # what round 2 samples in Deeper
    rng.standard_normal(1000)  # what is rounded as a test
    Q, K, _ = rng.standard_normal((3, 4, 256, 64))
    return np.abs(attention_scores(Q, K)).max()


def largest_errors_of_other_samples():
    """Ten samples like that of round 3: their largest errors in three formats, in units."""
    return _errors_of_samples()


@cache
def _errors_of_samples():
    errors = []
    for seed in range(1, 11):
        sample = np.random.default_rng(seed).standard_normal((3, 4, 256, 64))
        exact = scaled_dot_product_attention(*sample)
        for bits in (24, 11, 8):
            Q, K, V = _rounded(sample, bits)
            result = _rounded(_rounded(softmax(attention_scores(Q, K)), bits) @ V, bits)
            errors.append(np.abs(result - exact).max() * 2 ** (bits - 1) / np.abs(exact).max())
    return np.reshape(errors, (10, 3))


def _rounded(array, bits):
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.rint(mantissa * 2**bits), exponent - bits)


def first_numbers_of_philox():
    """What a GPU's generator gives for the seed 0 and the indices 0, 1, 2: Philox4x32-10."""
    numbers = []
    for index in range(3):
        counter, key = [0, 0, index, 0], [0, 0]  # the offset, the index; the seed
        for _ in range(10):
            first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter[0], counter[2] = (
                (second >> 32) ^ counter[1] ^ key[0],
                (first >> 32) ^ counter[3] ^ key[1],
            )
            counter[1], counter[3] = second % 2**32, first % 2**32
            key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
        numbers.append((counter[0] + 0.5) / 2**32)
    return numbers


def step_by_step_stays_below_a_sixth_and_an_eighth_of_the_peaks():
    """Below 32 flop per byte, less than 1/6 of the peak of a T4 and 1/8 of an H100's is reached."""
    ridges = printed_under("11_gpu", "flop per byte, ridge point")
    return (32 / ridges < [1 / 6, 1 / 8]).all()


def whole_tables_held_step_by_step():
    """Step by step, the memory of four sequences holds so many whole tables of scores."""
    held = printed_under("11_gpu", "four sequences, one core")[0, 1]  # in MiB
    return held // printed_under("11_gpu", "MiB of a table")


def our_module_in_percent():
    """The times are in percent of those of our module, which is why it has this number."""
    ours = record("torch_attention")["sizes"]["book"]["forward"]["ours"]
    return 100 * ours["times_ours"]["median"]


def callers_of_sdpa_lie_within_about_a_tenth():
    """At each length, the four layers that call SDPA, ours among them, are close together."""
    times = printed_under("11_gpu", "time, in percent of ours")
    ours = [100] * times.shape[1]
    return (np.ptp([*times[:3], ours], axis=0) < 15).all()
