"""Wrong forms of the functions of chapter 16."""

import numpy as np

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.variants.positions import alibi_slopes, rope_rates, rotate


def _with_rates(change):
    def turn(X, positions, rates, *, half=False):
        return rotate(X, positions, change(X, rates), half=half)

    return turn


def _rates_of_half_the_width(X, rates):
    """Pair i gets base^(-4i/d): the rates of a head half as wide, taken by its columns."""
    return rates**2


def _plus_for_minus(X, positions, rates, *, half=False):
    turned = rotate(X, positions, rates, half=half)
    n, angles = len(rates), positions[..., None] * rates
    a, b = (np.s_[..., :n], np.s_[..., n : 2 * n]) if half else _neighbours(n)
    turned[a] = np.cos(angles) * X[a] + np.sin(angles) * X[b]
    return turned


def _neighbours(n):
    return np.s_[..., 0 : 2 * n : 2], np.s_[..., 1 : 2 * n : 2]


def _one_after_the_other(X, positions, rates, *, half=False):
    turned = X * 1.0
    n, angles = len(rates), positions[..., None] * rates
    a, b = (np.s_[..., :n], np.s_[..., n : 2 * n]) if half else _neighbours(n)
    turned[a] = np.cos(angles) * turned[a] - np.sin(angles) * turned[b]
    turned[b] = np.sin(angles) * turned[a] + np.cos(angles) * turned[b]
    return turned


def _half_the_width_apart(X, positions, rates, *, half=False):
    """Halves of the whole width, also where only some pairs turn."""
    if not half:
        return rotate(X, positions, rates)
    still = np.zeros(X.shape[-1] // 2 - len(rates))
    return rotate(X, positions, np.concatenate([rates, still]), half=True)


_ROTATE = (
    Mistake(
        "one_layout",
        "half is not used: it always turns neighbours",
        "With half=True numbers i and i + n are a pair.",
        lambda X, positions, rates, *, half=False: rotate(X, positions, rates),
    ),
    Mistake(
        "layouts_exchanged",
        "the two layouts are exchanged",
        "half=False turns numbers 2i and 2i + 1, half=True numbers i and i + n.",
        lambda X, positions, rates, *, half=False: rotate(X, positions, rates, half=not half),
    ),
    Mistake(
        "backwards",
        "it turns the other way round",
        "A quarter turn makes (-b, a) of (a, b).",
        _with_rates(lambda X, rates: -rates),
    ),
    Mistake(
        "plus_for_minus",
        "both halves of a pair add their sine, so it is no turn and lengths change",
        "The first number is cos · a - sin · b.",
        _plus_for_minus,
    ),
    Mistake(
        "one_after_the_other",
        "the second number is made of the first one as it is after the turn",
        "Make both from the pair as it was: read X, write turned.",
        _one_after_the_other,
    ),
    Mistake(
        "halves_of_the_whole_width",
        "it pairs number i with number i + d/2, also where only some pairs turn",
        "This book pairs i and i + n: the n pairs take the first 2n numbers.",
        _half_the_width_apart,
    ),
    Mistake(
        "rates_ignored",
        "rates are not used: pairs turn at those of base 10,000",
        "Multiply each position by the rates that are given.",
        _with_rates(lambda X, rates: rope_rates(X.shape[-1])[: len(rates)]),
    ),
    Mistake(
        "rates_squared",
        "pair i turns by the rate of pair 2i",
        "Rate i belongs to pair i: count pairs, not columns.",
        _with_rates(_rates_of_half_the_width),
    ),
)


def _one_series(n_heads):
    return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)


def _series_from_one(n_heads):
    return 2 * alibi_slopes(n_heads)


def _in_order(n_heads):
    return np.sort(alibi_slopes(n_heads))[::-1]


def _first_of_the_next(n_heads):
    power = 2 ** int(np.log2(n_heads))
    return np.concatenate([_one_series(power), _one_series(2 * power)[: n_heads - power]])


def _cut_short(n_heads):
    power = 2 ** int(np.ceil(np.log2(n_heads)))
    return _one_series(power)[:n_heads]


_ALIBI_SLOPES = (
    Mistake(
        "one_series",
        "one series runs from the first head to the last, whatever their number is",
        "The authors' code takes the series of the power of two below, then every second slope "
        "of the next power's.",
        _one_series,
    ),
    Mistake(
        "first_of_the_next",
        "the heads that are left get the first slopes of the next power, some of which are taken",
        "Take every second one: next_series[0::2].",
        _first_of_the_next,
    ),
    Mistake(
        "cut_short",
        "it cuts the series of the next power short, so no head has the smallest slopes",
        "Begin with the whole series of the power of two below.",
        _cut_short,
    ),
    Mistake(
        "sorted",
        "the slopes are sorted",
        "The slopes of the power of two come first: a head keeps its slope.",
        _in_order,
    ),
    Mistake(
        "from_one",
        "every slope is twice as large: the series of 8 heads begins at 1",
        "The first of 8 slopes is 1/2.",
        _series_from_one,
    ),
    Mistake(
        "negated",
        "the slopes are negative",
        "alibi_bias subtracts them: a slope is positive.",
        lambda n_heads: -alibi_slopes(n_heads),
    ),
)


def _neighbours_from_halves(W, n):
    order = np.arange(W.shape[-1])
    order[0 : 2 * n : 2], order[1 : 2 * n : 2] = np.arange(n), np.arange(n, 2 * n)
    return W[..., order]


def _ordered(W, first, second, rest=()):
    return W[..., [*first, *second, *rest]]


_HALVES_FROM_NEIGHBOURS = (
    Mistake(
        "the_way_back",
        "it goes the other way: from halves to neighbours",
        "Number 2i goes to column i, number 2i + 1 to column i + n.",
        _neighbours_from_halves,
    ),
    Mistake(
        "all_columns",
        "it moves all columns, also those that do not turn",
        "Columns from 2n on stay where they are.",
        lambda W, n: _ordered(W, range(0, W.shape[-1], 2), range(1, W.shape[-1], 2)),
    ),
    Mistake(
        "second_first",
        "the second numbers of the pairs come first, so every pair turns backwards",
        "First the even columns, then the odd ones.",
        lambda W, n: _ordered(W, range(1, 2 * n, 2), range(0, 2 * n, 2), range(2 * n, W.shape[-1])),
    ),
    Mistake(
        "rows",
        "it moves rows of W, which are features of X",
        "Columns are the numbers of a query: the last axis.",
        lambda W, n: np.swapaxes(_by_rows(np.swapaxes(W, -1, -2), n), -1, -2),
    ),
    Mistake(
        "nothing",
        "the columns stay in their order",
        "Put the even ones of the first 2n in front of the odd ones.",
        lambda W, n: W,
    ),
)


def _by_rows(W_T, n):
    rest = range(2 * n, W_T.shape[-1])
    return _ordered(W_T, range(0, 2 * n, 2), range(1, 2 * n, 2), rest)


def _of_base(change):
    def rates(d_k, factor, *, base=10_000.0):
        return rope_rates(d_k, base=change(d_k, factor, base))

    return rates


_LONGER_RATES = (
    Mistake(
        "interpolated",
        "every rate is divided by the factor, also the fastest: that is position interpolation",
        "Change the base alone, and pair 0 still turns by 1 radian.",
        lambda d_k, factor, *, base=10_000.0: rope_rates(d_k, base=base) / factor,
    ),
    Mistake(
        "factor_alone",
        "the base is multiplied by the factor, which slows the last pair by less than the factor",
        "The last pair turns by base^(-(d_k - 2)/d_k): solve for the base.",
        _of_base(lambda d_k, factor, base: base * factor),
    ),
    Mistake(
        "base_divided",
        "the base is divided, so the slow pairs turn faster",
        "A longer text wants slower pairs: a larger base.",
        _of_base(lambda d_k, factor, base: base / factor ** (d_k / (d_k - 2))),
    ),
    Mistake(
        "exponent_upside_down",
        "the exponent is upside down: (d_k - 2)/d_k",
        "From (new/old)^((d_k - 2)/d_k) = factor follows new = old · factor^(d_k/(d_k - 2)).",
        _of_base(lambda d_k, factor, base: base * factor ** ((d_k - 2) / d_k)),
    ),
    Mistake(
        "base_forgotten",
        "the base that is given is not used",
        "Begin with base, not with 10,000.",
        lambda d_k, factor, *, base=10_000.0: rope_rates(
            d_k, base=10_000.0 * factor ** (d_k / (d_k - 2))
        ),
    ),
)


def _back(*, query=1, value=1, output=-1):
    """Turn queries, values and outputs by these multiples of their angles, keys once."""

    def heads(Q, C, positions, rates, *, mask=None):
        Q, K, V = (rotate(A, positions, k * rates) for A, k in ((Q, query), (C, 1), (C, value)))
        mixed = scaled_dot_product_attention(Q, K, V, mask=mask)
        return rotate(mixed, positions, output * rates)

    return heads


_TURNED_BACK = (
    Mistake(
        "not_turned_back",
        "the output is not turned back, so it depends on where the text begins",
        "Turn what the head mixed by the query's place, with -rates.",
        _back(output=0),
    ),
    Mistake(
        "turned_again",
        "the output is turned on instead of back",
        "Negate the rates: rotate(mixed, positions, -rates).",
        _back(output=1),
    ),
    Mistake(
        "values_not_turned",
        "keys are turned and values are not: then there are two arrays, and nothing is shared",
        "One turned array is key and value.",
        _back(value=0, output=0),
    ),
    Mistake(
        "values_not_turned_and_turned_back",
        "values that were never turned are turned back",
        "One turned array is key and value; the mix of it is turned back.",
        _back(value=0),
    ),
    Mistake(
        "query_not_turned",
        "only C is turned: the score depends on the key's place alone",
        "Turn the queries by their own places too.",
        _back(query=0),
    ),
)


MISTAKES = {
    "rotate": _ROTATE,
    "alibi_slopes": _ALIBI_SLOPES,
    "halves_from_neighbours": _HALVES_FROM_NEIGHBOURS,
    "longer_rates": _LONGER_RATES,
    "turned_back": _TURNED_BACK,
}
