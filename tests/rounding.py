"""What rounding may change: a bound on errors, and stored numbers to their last digit.

How large a rounding error is depends on the processor, the BLAS and the number of threads: they add
in different orders. So an error has an upper bound with a reason and never a lower one, and is
never compared with the error that another machine has stored.
"""

import numpy as np


def rounding(*lengths, size=1.0, dtype=float):
    """The most by which a number is off that sums of so many products have gone into.

    A sum of n products is off by at most n times eps times the sum of their sizes, in whatever
    order it is added; where sums follow one another, their errors add up.

    Parameters
    ----------
    lengths : of the sums that follow one another
    size : of the numbers that are added up
    """
    return sum(lengths) * float(np.finfo(dtype).eps) * size


def unlike(found, stored, places, path=""):
    """Say, an entry a sentence, where numbers are not those that a record stores.

    Two machines may round a number up and down, so the last of the decimals may differ by one.

    Parameters
    ----------
    found, stored : numbers, words, and dicts and lists of them
    places : decimals that the record keeps
    path : of names and positions that leads here
    """
    if isinstance(stored, dict) and isinstance(found, dict) and found.keys() == stored.keys():
        pairs = [(f"{path}/{name}", found[name], stored[name]) for name in stored]
    elif isinstance(stored, list) and isinstance(found, list | tuple) and len(found) == len(stored):
        pairs = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(found, stored, strict=True))]
    elif isinstance(stored, float) and isinstance(found, float | int):
        unit = 10.0**-places
        said = f"{path} is {found}, and the record has {stored}; expected at most {unit:g} between"
        return [] if abs(found - stored) < 1.5 * unit else [said]
    else:
        return [] if found == stored else [f"{path} is {found!r}, and the record has {stored!r}"]
    return [said for name, one, other in pairs for said in unlike(one, other, places, name)]
