"""The whole layer, with weights that heads share, a context and a mask, and its backward pass."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task

WITHHELD = (  # a line for each module of the library
    *("project_heads", "split_heads", "concat_heads"),
    *("attention_scores", "softmax", "attention_weights", "scaled_dot_product_attention"),
    *("trace", "multi_head_attention"),
    *("attend_block", "attend_in_blocks", "tiled_multi_head_attention"),
    *("score_tile", "fold_block", "attend_rows", "flash_forward"),
    *("block_backward", "flash_backward"),
    *("softmax_backward", "sum_copies", "attention_backward", "linear_backward"),
    *("project_heads_backward", "multi_head_attention_backward"),
)


SMALL = {"T": 7, "S": 11, "widths": (13, 17, 8, 19), "others": (19, 23, 13, 17)}
# The context of a sequence has 90,000 numbers. Differences of the layer, one for each of them, one
# by one or many at a time, are 2e12 flop and more in each case: minutes instead of milliseconds.
LARGE = {"T": 41, "S": 151, "widths": (53, 601, 23, 19), "others": (47, 607, 31, 13)}


def _arrays(rng, *batch, T, S, widths, H=6, G=3, shared=False, size=1.0):
    """X, context and the four matrices; widths are d_model, d_context, d_k and d_v."""
    d_model, d_context, d_k, d_v = widths
    shapes = (G, d_model, d_k), (G, d_context, d_k), (H, d_context, d_v), (H * d_v, d_model)
    X = size * rng.standard_normal((*batch, T, d_model))
    context = (*(() if shared else batch), S, d_context)
    matrices = [1.4 * rng.standard_normal(shape) / np.sqrt(shape[-2]) for shape in shapes]
    return X, size * rng.standard_normal(context), *matrices


def _mask(rng, *shape):
    """Half of it True, and at least one entry in each row."""
    chosen = rng.integers(shape[-1], size=(*shape[:-1], 1))
    return (rng.random(shape) < 0.5) | (np.arange(shape[-1]) == chosen)


def _padding(rng, B, S):
    """Each sequence's context ends somewhere else, and none is full."""
    return np.arange(S) < 1 + rng.permutation(S - 1)[:B, None, None, None]


def _with_hidden_rows(mask):
    """Let query 2 see nothing in any group, and query 4 nothing in group 1."""
    mask[:, 2], mask[1, 4] = False, False
    return mask


def _common_cases(rng, *, T, S, widths, others):
    """(label, arguments without dY) of the cases that both functions have."""

    def arrays(*batch, widths=widths, **options):
        return _arrays(rng, *batch, T=T, S=S, widths=widths, **options)

    causal = np.tri(T, S, S - T, dtype=bool)
    many = {"H": 15, "G": 5, "shared": True, "widths": others}
    return [
        ("6 heads, 3 groups, nothing hidden", (*arrays(), np.ones((T, S), dtype=bool))),
        ("a group for each head, a causal mask", (*arrays(H=3), causal)),
        ("a batch, padded contexts", (*arrays(5), _padding(rng, 5, S))),
        ("two batch axes, one context", (*arrays(4, 2, **many), _mask(rng, 4, 2, 5, T, S))),
        ("rows without True", (*arrays(widths=others), _with_hidden_rows(_mask(rng, 3, T, S)))),
        ("scores of 1,000 and more", (*arrays(H=10, G=5, size=32.0), _mask(rng, 5, T, S))),
    ]


def layer_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""
    common = zip(_common_cases(rng, **SMALL), (3, 2, 3, 2, 2, 2), strict=True)
    one = _arrays(rng, T=1, S=1, widths=(1, 1, 1, 1), H=1, G=1)
    shared = _arrays(rng, T=7, S=11, widths=SMALL["widths"], G=1)
    return [
        Case("one token, one key, every width 1", (*one, np.ones((1, 1), dtype=bool)), 1),
        *(Case(label, arguments, points) for (label, arguments), points in common),
        Case("one group for all heads, a mask for all queries", (*shared, _mask(rng, 1, 11)), 1),
    ]


def gradient_cases(rng):
    """As for the layer, with a gradient of Y, and too large for differences.

    Where all keys are alike, only the path through the values is left.
    """

    def case(label, arguments, points):
        X, *_, W_O, _ = arguments
        dY = rng.standard_normal((*X.shape[:-1], W_O.shape[-1]))
        return Case(label, (dY, *arguments), points)

    common = [*zip(_common_cases(rng, **LARGE), (2, 2, 2, 2, 2, 1), strict=True)]
    (_, (X, context, W_Q, W_K, *others)), _ = common[0]
    alike = ("keys that are all alike", (X, context, W_Q, 0 * W_K, *others)), 3
    return [case(label, arguments, points) for (label, arguments), points in (alike, *common)]


ASSIGNMENT = Assignment(
    (Task("layer", layer_cases), Task("gradient_of_context", gradient_cases)), withheld=WITHHELD
)
