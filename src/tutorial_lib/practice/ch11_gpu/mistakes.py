"""Wrong forms of the functions of chapter 11."""

import math
import statistics

import numpy as np

from tutorial_lib.practice.mistake import Mistake


def _pairs(Q, K):
    return math.prod(Q.shape[:-1]) * K.shape[-2]


def _flop(*, each=2, pairs=_pairs, widths=lambda Q, V: Q.shape[-1] + V.shape[-1]):
    return lambda Q, K, V: each * pairs(Q, K) * widths(Q, V)


ATTENTION_FLOP = (
    Mistake(
        "one_for_a_multiply_add",
        "it counts a multiply-add as one operation",
        "A multiply-add is 2 flop: a product, and a sum.",
        _flop(each=1),
    ),
    Mistake(
        "as_many_keys_as_queries",
        "it takes the number of keys to be that of the queries",
        "A query meets every key: K.shape[-2] of them.",
        _flop(pairs=lambda Q, K: _pairs(Q, Q)),
    ),
    Mistake(
        "values_as_wide_as_keys",
        "it takes the values to be as wide as the keys",
        "Scoring costs d_k multiply-adds a pair, mixing d_v.",
        _flop(widths=lambda Q, V: 2 * Q.shape[-1]),
    ),
    Mistake(
        "one_head",
        "it counts one head of one sequence",
        "Multiply by all axes before the last two: math.prod(Q.shape[:-1]).",
        _flop(pairs=lambda Q, K: Q.shape[-2] * K.shape[-2]),
    ),
    Mistake(
        "scoring_alone",
        "it forgets the mixing",
        "Each pair costs d_k multiply-adds for its score and d_v for its share of the value.",
        _flop(widths=lambda Q, V: Q.shape[-1]),
    ),
)


def _bytes(*, tables=4, size=None, heads=lambda Q, V: V.shape[-1], pairs=_pairs):
    def attention_bytes(Q, K, V, *, fused):
        numbers = Q.size + K.size + V.size + math.prod(Q.shape[:-1]) * heads(Q, V)
        if not fused:
            numbers += tables * pairs(Q, K)
        return numbers * (Q.itemsize if size is None else size)

    return attention_bytes


ATTENTION_BYTES = (
    Mistake(
        "four_bytes_a_number",
        "it takes every number to have 4 bytes",
        "Ask the array: Q.itemsize.",
        _bytes(size=4),
    ),
    Mistake(
        "numbers_and_no_bytes",
        "it counts numbers, not bytes",
        "Multiply by Q.itemsize, or take nbytes.",
        _bytes(size=1),
    ),
    Mistake(
        "output_forgotten",
        "it forgets the output of the heads, which must be written",
        "Add T * d_v numbers for each head.",
        _bytes(heads=lambda Q, V: 0),
    ),
    Mistake(
        "output_as_wide_as_queries",
        "it takes the output to be as wide as the queries",
        "A head's output is as wide as its values: V.shape[-1].",
        _bytes(heads=lambda Q, V: Q.shape[-1]),
    ),
    Mistake(
        "table_twice",
        "it moves two tables where four are moved",
        "Scores are written and read, weights are written and read.",
        _bytes(tables=2),
    ),
    Mistake(
        "the_wrong_way_round",
        "it counts the tables where the form is fused, and there alone",
        "The tables belong to the form step by step.",
        lambda Q, K, V, *, fused: _bytes()(Q, K, V, fused=not fused),
    ),
    Mistake(
        "one_table_for_all_heads",
        "it counts the tables of one head",
        "Every head of every sequence has a table: math.prod(Q.shape[:-1]) rows.",
        _bytes(pairs=lambda Q, K: Q.shape[-2] * K.shape[-2]),
    ),
)


def _timed(*, before=True, after=True, warm=True, early=False, sum_up=statistics.median):
    """Build a benchmark without what its options leave out."""

    def median_time(gpu, call, repeats, warm_up):
        for _ in range(warm_up if warm else 0):
            call()
        spent = []
        for _ in range(repeats):
            start = gpu.clock
            if before:
                gpu.synchronize()
            start = start if early else gpu.clock
            call()
            if after:
                gpu.synchronize()
            spent.append(gpu.clock - start)
        return sum_up(spent)

    return median_time


def _one_wait_for_all(gpu, call, repeats, warm_up):
    for _ in range(warm_up):
        call()
    gpu.synchronize()
    start = gpu.clock
    for _ in range(repeats):
        call()
    gpu.synchronize()
    return (gpu.clock - start) / repeats


MEDIAN_TIME = (
    Mistake(
        "asking_alone",
        "it looks at the clock before the work is done, so it times the asking",
        "Call gpu.synchronize() between the call and the second look at the clock.",
        _timed(after=False),
    ),
    Mistake(
        "waits_after_alone",
        "it counts work that was asked for earlier",
        "Call gpu.synchronize() before the first look at the clock too.",
        _timed(before=False),
    ),
    Mistake(
        "clock_before_the_wait",
        "it looks at the clock and then waits for earlier work",
        "Wait first: gpu.synchronize(), then start = gpu.clock.",
        _timed(early=True),
    ),
    Mistake(
        "no_warm_up",
        "it leaves the warm-up out, and the first calls are slow",
        "Call it warm_up times before the first repeat.",
        _timed(warm=False),
    ),
    Mistake(
        "warm_up_counted",
        "it counts the calls of the warm-up among the repeats",
        "Do not keep the times of the first warm_up calls.",
        lambda gpu, call, repeats, warm_up: _timed()(gpu, call, repeats + warm_up, 0),
    ),
    Mistake(
        "mean",
        "it returns the mean, which one disturbed repeat moves",
        "Return the median: statistics.median(spent).",
        _timed(sum_up=lambda spent: sum(spent) / len(spent)),
    ),
    Mistake(
        "smallest",
        "it returns the smallest time, which tells nothing of an ordinary call",
        "Return the median: statistics.median(spent).",
        _timed(sum_up=min),
    ),
    Mistake(
        "one_wait_for_all",
        "it waits once for all repeats, so it has one time for all of them",
        "Wait in each repeat, keep its time, and take the median.",
        _one_wait_for_all,
    ),
)


def _least(join):
    def least_times(Q, K, V, peak, bandwidth):
        moved = [_bytes()(Q, K, V, fused=fused) for fused in (False, True)]
        return tuple(join(_flop()(Q, K, V) / peak, n / bandwidth) for n in moved)

    return least_times


LEAST_TIMES = (
    Mistake(
        "added",
        "it adds the two times, as if nothing were computed while numbers are moved",
        "Both go on at once: the longer of the two is the least time.",
        _least(lambda compute, move: compute + move),
    ),
    Mistake(
        "the_shorter",
        "it takes the shorter of the two times",
        "Neither can be undercut: take the longer.",
        _least(min),
    ),
    Mistake(
        "arithmetic_alone",
        "it forgets that numbers must be moved",
        "Take the longer of flop / peak and bytes / bandwidth.",
        _least(lambda compute, move: compute),
    ),
    Mistake(
        "memory_alone",
        "it forgets the arithmetic",
        "Take the longer of flop / peak and bytes / bandwidth.",
        _least(lambda compute, move: move),
    ),
)


def _judged(*, allowed=None, error=np.abs, judge=lambda wrong, limit: (wrong <= limit).all()):
    """Compare with another limit, or judge the errors in another way."""

    def within_rounding(result, exact, eps):
        limit = 4 * eps * np.abs(exact).max() if allowed is None else allowed(result, exact, eps)
        return bool(judge(error(result - exact), limit))

    return within_rounding


WITHIN_ROUNDING = (
    Mistake(
        "each_entry_by_itself",
        "it allows each entry a share of itself, so one that is almost 0 is allowed nothing",
        "Compare all errors with the largest entry: 4 * eps * np.abs(exact).max().",
        _judged(allowed=lambda result, exact, eps: 4 * eps * np.abs(exact)),
    ),
    Mistake(
        "one_number_for_all",
        "it allows the same error at every size of the numbers",
        "Multiply by the largest entry: 4 * eps * np.abs(exact).max().",
        _judged(allowed=lambda result, exact, eps: 4 * eps),
    ),
    Mistake(
        "float32_for_all",
        "it judges every precision as float32",
        "Use the eps that is given.",
        _judged(allowed=lambda result, exact, eps: 4 * 2.0**-23 * np.abs(exact).max()),
    ),
    Mistake(
        "mean_error",
        "it looks at the mean error, in which one wrong entry is lost",
        "Every entry must be within the limit: .all().",
        _judged(judge=lambda wrong, limit: wrong.mean() <= limit),
    ),
    Mistake(
        "signed",
        "it lets every entry pass that is too small",
        "Take the size of the difference: np.abs(result - exact).",
        _judged(error=lambda difference: difference),
    ),
    Mistake(
        "nan_passes",
        "it lets NaN pass, since NaN is never larger than the limit",
        "Ask what is within, not what is outside: (errors <= limit).all().",
        _judged(judge=lambda wrong, limit: not (wrong > limit).any()),
    ),
    Mistake(
        "measured_by_itself",
        "it measures with the largest entry of the result, and infinity allows everything",
        "Measure with the exact numbers: np.abs(exact).max().",
        _judged(allowed=lambda result, exact, eps: 4 * eps * np.nanmax(np.abs(result))),
    ),
)

MISTAKES = {
    "attention_flop": ATTENTION_FLOP,
    "attention_bytes": ATTENTION_BYTES,
    "median_time": MEDIAN_TIME,
    "least_times": LEAST_TIMES,
    "within_rounding": WITHIN_ROUNDING,
}
