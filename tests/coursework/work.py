"""A stand-in for the clock: the work of a call is counted, and a rate makes seconds of it.

The rates were measured with one thread of a server's processor. They are written down, so that a
test says the same on every machine and under every load.
"""

import numpy as np

PRODUCTS = 3e10  # a second: multiplications in products of matrices, each with its addition
NUMBERS = 4e9  # a second: numbers that are read or written one by one
A_STEP = 0.3e-6  # seconds: a call of one function, however small its arrays are


class Counting(np.ndarray):
    """An array that counts what is done with it; so does all that is computed from it."""

    steps = products = numbers = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(a) for a in inputs]
        if "out" in options:
            options["out"] = tuple(np.asarray(a) for a in options["out"])
        found = np.asarray(getattr(ufunc, method)(*plain, **options))
        if ufunc is np.matmul:
            Counting.products += found.size * plain[0].shape[-1]
        Counting.steps += 1
        Counting.numbers += max(a.size for a in (*plain, found))
        return found.view(Counting)


def seconds_of(function, *arguments):
    """Return the seconds that one call takes, of the work that is counted in it.

    What is done outside of NumPy's operators is not counted: of our functions, these are a third
    to all of the seconds that a clock shows on that processor.
    """
    Counting.steps = Counting.products = Counting.numbers = 0
    with np.errstate(all="ignore"):
        function(*(a.view(Counting) if isinstance(a, np.ndarray) else a for a in arguments))
    return A_STEP * Counting.steps + Counting.products / PRODUCTS + Counting.numbers / NUMBERS
