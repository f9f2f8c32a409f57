"""Right answers of chapter 11 in other ways, and too narrow ones."""

import math

import numpy as np


def bytes_of_arrays(Q, K, V, *, fused):
    scores = Q @ np.swapaxes(K, -1, -2)
    arrays = [Q, K, V, scores @ V] + [scores] * (0 if fused else 4)
    return sum(array.nbytes for array in arrays)


def sorted_times(gpu, call, repeats, warm_up):
    spent = []
    for _ in range(warm_up + repeats):
        gpu.synchronize()
        spent.append(-gpu.clock)
        call()
        gpu.synchronize()
        spent[-1] += gpu.clock
    return np.median(spent[warm_up:])


def times_from_rates(Q, K, V, peak, bandwidth):
    flop = 2 * (np.einsum("...td,...sd->...ts", Q, K).size) * (Q.shape[-1] + V.shape[-1])
    moved = [bytes_of_arrays(Q, K, V, fused=fused) for fused in (False, True)]
    return [flop / min(peak, bandwidth * flop / size) for size in moved]


def middle_time(gpu, call, repeats, warm_up):
    for _ in range(warm_up):
        call()
    spent = []
    for _ in range(repeats):
        gpu.synchronize()
        start = gpu.clock
        call()
        gpu.synchronize()
        spent.append(gpu.clock - start)
    return sorted(spent)[repeats // 2]


def parts_of_times(Q, K, V, peak, bandwidth):
    flop = 2 * math.prod(Q.shape[:-1]) * K.shape[-2] * (Q.shape[-1] + V.shape[-1])
    moved = [bytes_of_arrays(Q, K, V, fused=fused) / bandwidth for fused in (False, True)]
    return [(size, flop / peak, max(size, flop / peak)) for size in moved]


def times_by_index(first, second):
    def least_times(Q, K, V, peak, bandwidth):
        step, whole = parts_of_times(Q, K, V, peak, bandwidth)
        return step[first], whole[second]

    return least_times


def times_by_the_fused(Q, K, V, peak, bandwidth):
    step, whole = parts_of_times(Q, K, V, peak, bandwidth)
    index = int(whole[1] > whole[0])
    return step[index], whole[index]


def rounding_below(most):
    return lambda result, exact, eps: bool(
        (np.abs(result - exact) <= 4 * eps * min(most, np.abs(exact).max())).all()
    )


VARIANTS = [
    ("attention_bytes", "arrays computed and measured", bytes_of_arrays),
    ("median_time", "np.median, warm-up cut off", sorted_times),
    ("least_times", "from the flop per second under the roof, in a list", times_from_rates),
    (
        "within_rounding",
        "np.allclose",
        lambda result, exact, eps: np.allclose(
            result, exact, rtol=0, atol=4 * eps * max(exact.max(), -exact.min())
        ),
    ),
    (
        "attention_flop",
        "sums over heads",
        lambda Q, K, V: sum(
            2 * len(q) * (k.size + v.size)
            for q, k, v in zip(*(A.reshape(-1, *A.shape[-2:]) for A in (Q, K, V)), strict=True)
        ),
    ),
]


NARROW = [
    (
        "attention_flop",
        "as many keys as queries in all heads",
        lambda Q, K, V: 2 * Q.size * K.shape[-2] + 2 * V.size * Q.shape[-2] * (Q.ndim < 4),
    ),
    (
        "attention_bytes",
        "no half precision",
        lambda Q, K, V, *, fused: bytes_of_arrays(
            *(A.astype(np.promote_types(A.dtype, np.float32)) for A in (Q, K, V)), fused=fused
        ),
    ),
    ("median_time", "an odd number of repeats", middle_time),
    ("least_times", "memory first, arithmetic second", times_by_index(0, 1)),
    ("least_times", "memory never holds the fused form back", times_by_index(2, 1)),
    ("least_times", "memory always holds the first form back", times_by_index(0, 2)),
    ("least_times", "judged only by the fused form", times_by_the_fused),
    ("within_rounding", "no large numbers", rounding_below(10)),
]
