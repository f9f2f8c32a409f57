"""Places that are counts: of gates, which a query opens for the tokens that it cares for."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import attention_scores, attention_weights, causal_mask


def _mask(Q, K):
    return causal_mask(Q.shape[-2], K.shape[-2])


def _sigmoid(scores):
    return np.exp(-np.logaddexp(0, -scores))


def _gates(Q, K):
    return _sigmoid(attention_scores(Q, K)) * _mask(Q, K)


def _from_behind(gates):
    """Add up each gate and all behind it."""
    return np.cumsum(gates[..., ::-1], axis=-1)[..., ::-1]


def _behind(gates):
    return np.maximum(_from_behind(gates) - gates, 0)  # rounding leaves a 0 a little below it


def _with_rows(Q, table):
    return Q @ np.swapaxes(table, -1, -2) / np.sqrt(Q.shape[-1])  # (..., H, T, N)


def _at(with_rows, n):
    return np.take_along_axis(with_rows, n, axis=-1)


def _read(with_rows, place):
    """Mix what the two rows on both sides of each place give, (..., H, T, S)."""
    last = with_rows.shape[-1] - 1
    place = np.minimum(place, last)
    low = np.floor(place).astype(int)
    share = place - low
    return (1 - share) * _at(with_rows, low) + share * _at(with_rows, np.minimum(low + 1, last))


def _weights(Q, K, added, mask=None):
    mask = _mask(Q, K) if mask is None else mask
    return attention_weights(attention_scores(Q, K) + added, mask=mask)


def _by_places(Q, K, table, place):
    return _weights(Q, K, _read(_with_rows(Q, table), place))


def key_itself_counted(Q, K, table):
    return _by_places(Q, K, table, _from_behind(_gates(Q, K)))


def counted_from_the_front(Q, K, table):
    gates = _gates(Q, K)
    return _by_places(Q, K, table, np.maximum(np.cumsum(gates, axis=-1) - gates, 0))


def counted_up_to_the_key(Q, K, table):
    return _by_places(Q, K, table, np.cumsum(_gates(Q, K), axis=-1))


def later_tokens_counted(Q, K, table):
    return _by_places(Q, K, table, _behind(_sigmoid(attention_scores(Q, K))))


def later_tokens_seen(Q, K, table):
    added = _read(_with_rows(Q, table), _behind(_gates(Q, K)))
    return _weights(Q, K, added, np.ones(added.shape[-2:], dtype=bool))


def mask_without_offset(Q, K, table):
    mask = np.tri(Q.shape[-2], K.shape[-2], dtype=bool)
    place = _behind(_sigmoid(attention_scores(Q, K)) * mask)
    return _weights(Q, K, _read(_with_rows(Q, table), place), mask)


def query_itself_not_counted(Q, K, table):
    T, S = _mask(Q, K).shape
    return _by_places(Q, K, table, _behind(_gates(Q, K) * np.tri(T, S, S - T - 1)))


def words_counted(Q, K, table):
    ones = np.zeros(attention_scores(Q, K).shape) + _mask(Q, K)
    return _by_places(Q, K, table, _behind(ones))


def gates_of_0_and_1(Q, K, table):
    return _by_places(Q, K, table, _behind((attention_scores(Q, K) > 0) * _mask(Q, K)))


def gates_sum_to_1(Q, K, table):
    gates = attention_weights(attention_scores(Q, K), mask=_mask(Q, K))
    return _by_places(Q, K, table, _behind(gates))


def gates_not_scaled(Q, K, table):
    gates = _sigmoid(attention_scores(Q, K) * np.sqrt(Q.shape[-1])) * _mask(Q, K)
    return _by_places(Q, K, table, _behind(gates))


def rounded_down(Q, K, table):
    place = np.minimum(_behind(_gates(Q, K)), table.shape[-2] - 1)
    return _by_places(Q, K, table, np.floor(place))


def rounded(Q, K, table):
    place = np.minimum(_behind(_gates(Q, K)), table.shape[-2] - 1)
    return _by_places(Q, K, table, np.rint(place))


def shares_exchanged(Q, K, table):
    place = np.minimum(_behind(_gates(Q, K)), table.shape[-2] - 1)
    low = np.floor(place)
    return _by_places(Q, K, table, np.where(place > low, 2 * low + 1 - place, place))


def nothing_beyond_the_table(Q, K, table):
    place = _behind(_gates(Q, K))
    added = _read(_with_rows(Q, table), place)
    return _weights(Q, K, np.where(place > table.shape[-2] - 1, 0, added))


def table_comes_round(Q, K, table):
    place, N = _behind(_gates(Q, K)), table.shape[-2]
    low = np.floor(place).astype(int)
    share, rows = place - low, _with_rows(Q, table)
    added = (1 - share) * _at(rows, low % N) + share * _at(rows, (low + 1) % N)
    return _weights(Q, K, added)


def table_not_scaled(Q, K, table):
    added = _read(_with_rows(Q, table) * np.sqrt(Q.shape[-1]), _behind(_gates(Q, K)))
    return _weights(Q, K, added)


def table_of_head_0(Q, K, table):
    return _by_places(Q, K, np.stack([table[0]] * len(table)), _behind(_gates(Q, K)))


def rows_meet_the_keys(Q, K, table):
    with_keys = K @ np.swapaxes(table, -1, -2) / np.sqrt(Q.shape[-1])  # (..., H, S, N)
    by_query = np.repeat(with_keys[..., None, :, :], Q.shape[-2], axis=-3)  # (..., H, T, S, N)
    place = _behind(_gates(Q, K))
    return _weights(Q, K, _read(by_query, place[..., None])[..., 0])


MISTAKES = (
    Mistake(
        "key_itself_counted",
        "the gate of the key itself is counted too: the query's own token is not at place 0",
        "Count the tokens behind s alone: take gate s away from the sum that begins with it.",
        key_itself_counted,
    ),
    Mistake(
        "counted_from_the_front",
        "a place counts the tokens before the key, not those between it and the query",
        "Add the gates up from the query backwards: np.cumsum of the reversed row, reversed.",
        counted_from_the_front,
    ),
    Mistake(
        "counted_up_to_the_key",
        "a place counts from the first token up to the key",
        "Add the gates up from the query backwards, without that of the key.",
        counted_up_to_the_key,
    ),
    Mistake(
        "later_tokens_counted",
        "tokens behind the query are counted",
        "What the mask hides has the gate 0: multiply the gates by the mask.",
        later_tokens_counted,
    ),
    Mistake(
        "later_tokens_seen",
        "a query gives weight to keys behind it",
        "Give the mask to the softmax too: attention_weights(scores, mask=mask).",
        later_tokens_seen,
    ),
    Mistake(
        "mask_without_offset",
        "the first query sees the first key alone, though it is one of the last tokens",
        "The T queries are the last of S tokens: causal_mask(T, S), not np.tri(T, S).",
        mask_without_offset,
    ),
    Mistake(
        "query_itself_not_counted",
        "the query's own token is not counted",
        "The sum goes up to and with u = t.",
        query_itself_not_counted,
    ),
    Mistake(
        "words_counted",
        "every token counts 1: this is the distance in words",
        "A token counts as much as its gate says.",
        words_counted,
    ),
    Mistake(
        "gates_of_0_and_1",
        "a gate is 1 where the score is above 0, and 0 elsewhere",
        "A gate is the sigmoid of the score: a number between.",
        gates_of_0_and_1,
    ),
    Mistake(
        "gates_sum_to_1",
        "the gates come out of a softmax, so that they sum to 1",
        "Each gate is the sigmoid of its own score; several may be near 1.",
        gates_sum_to_1,
    ),
    Mistake(
        "gates_not_scaled",
        "the gates are made of products that are not divided by √d_k",
        "A gate is the sigmoid of the score, and a score is divided.",
        gates_not_scaled,
    ),
    Mistake(
        "rounded_down",
        "places are rounded down to a whole number",
        "Between two rows mix both, by how far the place is from each.",
        rounded_down,
    ),
    Mistake(
        "rounded",
        "places are rounded to the nearest whole number",
        "Between two rows mix both, by how far the place is from each.",
        rounded,
    ),
    Mistake(
        "shares_exchanged",
        "the two rows of a mixture have each other's share",
        "Place 2.25 is three quarters of row 2: the nearer row counts more.",
        shares_exchanged,
    ),
    Mistake(
        "nothing_beyond_the_table",
        "nothing is added to keys that are farther away than the table reaches",
        "Such keys get its last row: np.minimum(place, N - 1).",
        nothing_beyond_the_table,
    ),
    Mistake(
        "table_comes_round",
        "beyond the last row the table begins anew",
        "Such places get the last row: np.minimum(place, N - 1).",
        table_comes_round,
    ),
    Mistake(
        "table_not_scaled",
        "the product of query and table is not divided by √d_k",
        "The row of the table is added to the key, so both are divided.",
        table_not_scaled,
    ),
    Mistake(
        "table_of_head_0",
        "all heads read the table of head 0",
        "table[h] is the table of head h.",
        table_of_head_0,
    ),
    Mistake(
        "rows_meet_the_keys",
        "the rows of the table meet the keys, not the queries",
        "The row is added to the key, and the query meets both: multiply q by it.",
        rows_meet_the_keys,
    ),
)


def cases(rng):
    """Sizes all differ but in one case; every table but those of one case is long enough."""

    def arrays(*batch, H=3, T=5, S=8, d_k=4, N=7, large=1.5):
        Q, K = (large * rng.standard_normal((*batch, H, length, d_k)) for length in (T, S))
        return Q, K, 2 / large * rng.standard_normal((H, N, d_k))

    short = {"H": 2, "T": 4, "S": 12, "d_k": 5, "N": 3}
    return [
        Case("the last 5 of 8 tokens", arrays(), 2),
        Case("a batch", arrays(2, H=3, T=4, S=6, d_k=5, N=8), 2),
        Case("two batch axes, one new token", arrays(4, 2, H=3, T=1, S=7, d_k=5, N=9), 1),
        Case("as many queries as keys", arrays(H=2, T=7, S=7, d_k=3, N=8), 2),
        Case("a table that ends too early", arrays(3, **short), 2),
        Case("scores in the hundreds", arrays(H=4, T=3, S=9, d_k=5, N=10, large=12), 1),
    ]


ASSIGNMENT = Assignment((Task("weights_by_count", cases, MISTAKES),))
