"""What computes the keys of chapter 05: entries are followed to where a reshape puts them."""

from fractions import Fraction

import numpy as np

import tutorial_lib as tl


def _heads_of_the_example():
    example = tl.running_example()
    return tl.trace(example.X, example.params, mask=example.mask).heads  # (H, T, d_v)


def _written(numbers):
    """Numbers as the bank writes them, such as 1/17 16/17 0 0."""
    return " ".join(str(Fraction(number).limit_denominator(100)) for number in numbers)


def column_of_an_entry():
    """The column of concat in which the 16/17 of heads[1, 1, 1] arrives in the row of *that*."""
    heads = _heads_of_the_example()
    alone = np.zeros(heads.shape)
    alone[1, 1, 1] = heads[1, 1, 1]
    (column,) = np.flatnonzero(np.isclose(tl.concat_heads(alone)[1], 16 / 17))
    return column


def strides_of_a_cut():
    """The strides of split_heads(product, 4), counted in entries."""
    product = np.zeros((3, 8))
    assert [stride // product.itemsize for stride in product.strides] == [8, 1]
    return [stride // product.itemsize for stride in tl.split_heads(product, 4).strides]


def right_half_without_a_swap(texts):
    """What the right half of the row of *dogs* equals in heads.reshape(3, 8)."""
    heads = _heads_of_the_example()
    half = heads.reshape(3, 8)[0, 4:]
    dogs, that = 0, 1
    rows = heads[1, dogs], heads[0, that], heads[0, dogs], heads[1, that]
    assert all(text.endswith(f": {_written(row)}") for text, row in zip(texts, rows, strict=True))
    return [np.array_equal(half, row) for row in rows]


def index_in_concat():
    """Where the entry arrives that was put at heads[2, 4, 1]."""
    heads = np.zeros((3, 5, 7))
    heads[2, 4, 1] = 1
    ((row, column),) = np.argwhere(tl.concat_heads(heads))
    return f"concat[{row}, {column}]"


def _a_reshape_does(array, wanted):
    return np.array_equal(array.reshape(wanted.shape), wanted)


def what_a_reshape_can_do():
    """Whether a reshape lays the entries as the arrow says."""
    B, H, T, d = 2, 3, 5, 4
    heads = np.arange(B * H * T * d).reshape(B, H, T, d)
    tokens_first = heads.reshape(B, T, H, d)
    fused = np.arange(B * T * 3 * H * d).reshape(B, T, 3 * H * d)
    three = np.stack(np.split(fused, 3, axis=-1))  # (3, B, T, H*d)
    joined = np.concatenate([tokens_first[:, :, h] for h in range(H)], axis=-1)
    return [
        _a_reshape_does(heads, tl.concat_heads(heads)),
        _a_reshape_does(fused, three),
        _a_reshape_does(heads, np.swapaxes(heads, 1, 2)),
        _a_reshape_does(tokens_first, joined),
    ]


def outputs_changed_without_swaps():
    """Which outputs change with token 0 in a layer of 8 heads that cuts and joins by reshape."""
    rng = np.random.default_rng(0)
    H, T, d_model = 8, 64, 24
    matrices = rng.standard_normal((3, d_model, d_model)) / np.sqrt(d_model)

    def layer(X):
        Q, K, V = ((X @ W).reshape(H, T, d_model // H) for W in matrices)
        heads = tl.scaled_dot_product_attention(Q, K, V, mask=tl.causal_mask(T))
        return heads.reshape(T, d_model)

    X = rng.standard_normal((T, d_model))
    changed = X.copy()
    changed[0] = rng.standard_normal(d_model)
    changes = np.flatnonzero(np.abs(layer(changed) - layer(X)).max(axis=-1) > 1e-9).tolist()
    others = list(range(T)), [0], list(range(8)), list(range(0, T, 8))
    return [changes == other for other in others]


def keys_of_a_new_token():
    """Which keys the first row of causal_mask(2, 5) shows."""
    seen = np.flatnonzero(tl.causal_mask(2, 5)[0]).tolist()
    return [seen == [0], seen == [0, 1, 2, 3], seen == [0, 1, 2, 3, 4], seen == [3, 4]]


def averages_in_a_row():
    """How many different rows of weights give the columns of one row of concat."""
    H, T, d_v = 8, 64, 5
    weights = tl.attention_weights(np.random.default_rng(0).standard_normal((H, T, T)))
    one_key = np.eye(T)[:, None, :, None] * np.ones(d_v)  # (T, 1, T, d_v): values of 0 but for one
    columns = tl.concat_heads(weights @ one_key)[:, -1]  # (T, H*d_v): the weight of each key
    count = len(np.unique(columns.round(12), axis=1).T)
    return [count == 1, count == T, count == H * d_v, count == H]
