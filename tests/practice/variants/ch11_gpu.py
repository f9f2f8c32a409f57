"""Right answers of chapter 11 in other ways, and edits that make it too narrow."""

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


VARIANTS = [
    ("median_time", "np.median, warm-up cut off", sorted_times),
    ("least_times", "from the flop per second under the roof, in a list", times_from_rates),
    (
        "within_rounding",
        "np.allclose",
        lambda result, exact, eps: np.allclose(
            result, exact, rtol=0, atol=4 * eps * max(exact.max(), -exact.min())
        ),
    ),
]


NARROW = [
    (
        "attention_flop",
        "as many keys as queries in all heads",
        "V.shape[-1]",
        "V.shape[-1] * (Q.ndim < 4)",
    ),
    ("attention_bytes", "no half precision", "once =", "assert Q.itemsize > 2\nonce ="),
    (
        "median_time",
        "an odd number of repeats",
        "statistics.median(spent)",
        "sorted(spent)[repeats // 2]",
    ),
    (
        "least_times",
        "memory first, arithmetic second",
        "tuple(max(compute, size / bandwidth) for size in moved)",
        "(moved[0] / bandwidth, compute)",
    ),
    (
        "least_times",
        "memory never holds the fused form back",
        "tuple(max(compute, size / bandwidth) for size in moved)",
        "(max(compute, moved[0] / bandwidth), compute)",
    ),
    (
        "least_times",
        "memory always holds the first form back",
        "tuple(max(compute, size / bandwidth) for size in moved)",
        "(moved[0] / bandwidth, max(compute, moved[1] / bandwidth))",
    ),
    (
        "least_times",
        "judged only by the fused form",
        "max(compute, size / bandwidth)",
        "compute if compute > moved[1] / bandwidth else size / bandwidth",
    ),
    ("within_rounding", "no large numbers", "np.abs(exact).max()", "min(10, np.abs(exact).max())"),
]
