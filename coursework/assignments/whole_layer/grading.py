"""The whole layer, with weights that heads share, a context and a mask, and the way back."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task

WITHHELD = (
    "project_heads",
    "split_heads",
    "concat_heads",
    "attention_scores",
    "softmax",
    "attention_weights",
    "scaled_dot_product_attention",
    "trace",
    "multi_head_attention",
    "attend_block",
    "attend_in_blocks",
    "tiled_multi_head_attention",
    "softmax_backward",
    "sum_copies",
    "attention_backward",
    "linear_backward",
    "project_heads_backward",
    "multi_head_attention_backward",
)


def _swap(array):
    return np.swapaxes(array, -1, -2)


def _repeated(weights, n_heads):
    return np.repeat(weights, n_heads // weights.shape[-3], axis=-3)


def _in_turn(weights, n_heads):
    return np.concatenate([weights] * (n_heads // weights.shape[-3]), axis=-3)


def _project(X, context, W_Q, W_K, W_V):
    context = context[..., None, :, :]
    return X[..., None, :, :] @ W_Q, context @ W_K, context @ W_V


def _scores(Q, K):
    return Q @ _swap(K) / np.sqrt(Q.shape[-1])


def _divided(powers):
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def _softmax(scores):
    return _divided(np.exp(scores - scores.max(axis=-1, keepdims=True)))


def _attend(scores, mask):
    has_key = mask.any(axis=-1, keepdims=True)
    return has_key * _softmax(np.where(mask | ~has_key, scores, -np.inf))


def _out(weights, V, W_O, share=_repeated):
    heads = np.swapaxes(share(weights, V.shape[-3]) @ V, -3, -2)  # (..., T, H, d_v)
    return heads.reshape(*heads.shape[:-2], -1) @ W_O


def groups_in_turn(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_attend(_scores(Q, K), mask), V, W_O, _in_turn)


def values_by_group(X, context, W_Q, W_K, W_V, W_O, mask):
    W_V = W_V[np.arange(len(W_V)) * len(W_Q) // len(W_V)]
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_attend(_scores(Q, K), mask), V, W_O)


def scaled_by_d_model(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_attend(Q @ _swap(K) / np.sqrt(X.shape[-1]), mask), V, W_O)


def mask_upside_down(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_attend(_scores(Q, K), ~mask), V, W_O)


def mask_after_softmax(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_softmax(_scores(Q, K)) * mask, V, W_O)


def hidden_row_averages(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_softmax(np.where(mask, _scores(Q, K), -1e9)), V, W_O)


def hidden_row_is_nan(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_softmax(np.where(mask, _scores(Q, K), -np.inf)), V, W_O)


def overflow(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    return _out(_divided(np.exp(np.where(mask, _scores(Q, K), -np.inf))), V, W_O)


def hidden_score_is_top(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    scores = _scores(Q, K)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    return _out(_divided(powers), V, W_O)


def concat_without_swap(X, context, W_Q, W_K, W_V, W_O, mask):
    Q, K, V = _project(X, context, W_Q, W_K, W_V)
    heads = _repeated(_attend(_scores(Q, K), mask), len(W_V)) @ V  # (..., H, T, d_v)
    return heads.reshape(*X.shape[:-1], -1) @ W_O


LAYER = (
    Mistake(
        "groups_in_turn",
        "head h uses the weights of group h % G: the heads of a group are not neighbours",
        "Head h uses group h // (H/G); np.repeat deals the groups out like that.",
        groups_in_turn,
    ),
    Mistake(
        "values_by_group",
        "head h takes the values of matrix h // (H/G) of W_V, as it takes the weights of a group",
        "The weights are shared, the values are not: head h has W_V[h] for itself.",
        values_by_group,
    ),
    Mistake(
        "scaled_by_d_model",
        "the scores are divided by √d_model",
        "A score is a sum of d_k products: divide by √d_k.",
        scaled_by_d_model,
    ),
    Mistake(
        "mask_upside_down",
        "the mask is read the wrong way round: it looks where the mask says False",
        "True means: may look. Where it is False, the score goes to -inf.",
        mask_upside_down,
    ),
    Mistake(
        "mask_after_softmax",
        "the mask takes weights away after the softmax, and the rest no longer sums to 1",
        "Hide the scores first; the softmax then shares out all of 1 among the visible keys.",
        mask_after_softmax,
    ),
    Mistake(
        "hidden_row_averages",
        "a query with nothing to look at gets an average of values that are hidden from it",
        "Such a row of weights is zero. A large negative number in place of -inf makes all its "
        "scores equal.",
        hidden_row_averages,
    ),
    Mistake(
        "hidden_row_is_nan",
        "a query with nothing to look at gets NaN",
        "A row of -inf has no finite maximum and a sum of 0: treat such rows on their own.",
        hidden_row_is_nan,
    ),
    Mistake(
        "overflow",
        "large scores overflow in the exponential",
        "Take each row's largest visible score away first; the weights stay the same.",
        overflow,
    ),
    Mistake(
        "hidden_score_is_top",
        "the largest score of a row is taken with the hidden ones, and may leave nothing of others",
        "Put -inf in place of the hidden scores first, then take the maximum.",
        hidden_score_is_top,
    ),
    Mistake(
        "concat_without_swap",
        "the heads are laid side by side without swapping heads and tokens",
        "A row of concat belongs to one token: make H and d_v neighbours before you merge them.",
        concat_without_swap,
    ),
)


def _cut(dconcat, n_heads):
    return np.swapaxes(dconcat.reshape(*dconcat.shape[:-1], n_heads, -1), -3, -2)


def _cut_by_reshape(dconcat, n_heads):
    *batch, T, width = dconcat.shape
    return dconcat.reshape(*batch, n_heads, T, width // n_heads)


def _through_softmax(weights, dweights):
    return weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True))


def _unmasked(scores, mask):
    return _softmax(scores)


def _skipped(weights, dweights):
    return dweights


def _without_mean(weights, dweights):
    return weights * dweights


def _added(by_heads, n_groups):
    *batch, n_heads, T, S = by_heads.shape
    return by_heads.reshape(*batch, n_groups, n_heads // n_groups, T, S).sum(axis=-3)


def _added_in_turn(by_heads, n_groups):
    *batch, n_heads, T, S = by_heads.shape
    return by_heads.reshape(*batch, n_heads // n_groups, n_groups, T, S).sum(axis=-4)


def _first_of_group(by_heads, n_groups):
    return by_heads[..., :: by_heads.shape[-3] // n_groups, :, :]


def _paths(given, *, attend=_attend, back=_through_softmax, cut=_cut, groups=(_repeated, _added)):
    """What comes back through all keys and through all values: two (..., S, d_context)."""
    dY, *arrays, W_O, mask = given
    *_, W_Q, W_K, W_V = arrays
    share, add = groups
    Q, K, V = _project(*arrays)
    weights, dheads = attend(_scores(Q, K), mask), cut(dY @ W_O.T, len(W_V))
    dproducts = back(weights, add(dheads @ _swap(V), len(W_Q))) / np.sqrt(Q.shape[-1])
    dK, dV = _swap(dproducts) @ Q, _swap(share(weights, len(W_V))) @ dheads
    return (dK @ _swap(W_K)).sum(axis=-3), (dV @ _swap(W_V)).sum(axis=-3)


def _summed(path, given):
    """Add up the batch axes that the context does not have."""
    _, _, context, *_ = given
    return path.reshape(-1, *context.shape).sum(axis=0)


def values_alone(*given):
    _, by_values = _paths(given)
    return _summed(by_values, given)


def keys_alone(*given):
    by_keys, _ = _paths(given)
    return _summed(by_keys, given)


def softmax_skipped(*given):
    return _summed(sum(_paths(given, back=_skipped)), given)


def mean_forgotten(*given):
    return _summed(sum(_paths(given, back=_without_mean)), given)


def scale_forgotten(*given):
    by_keys, by_values = _paths(given)
    W_K = given[4]
    return _summed(by_keys * np.sqrt(W_K.shape[-1]) + by_values, given)


def mask_forgotten(*given):
    return _summed(sum(_paths(given, attend=_unmasked)), given)


def cut_without_swap(*given):
    return _summed(sum(_paths(given, cut=_cut_by_reshape)), given)


def one_head_of_each_group(*given):
    return _summed(sum(_paths(given, groups=(_repeated, _first_of_group))), given)


def groups_dealt_in_turn(*given):
    return _summed(sum(_paths(given, groups=(_in_turn, _added_in_turn))), given)


def copies_not_summed(*given):
    return sum(_paths(given))


GRADIENT = (
    Mistake(
        "values_alone",
        "the path through the keys is missing",
        "The keys were made from the context too: add what comes back through W_K.",
        values_alone,
    ),
    Mistake(
        "keys_alone",
        "the path through the values is missing",
        "The values were made from the context too: add what comes back through W_V.",
        keys_alone,
    ),
    Mistake(
        "softmax_skipped",
        "dweights goes on to the keys as if it were dscores: the softmax is skipped",
        "Between the two stands the softmax; chapter 08, round 1, goes back through it.",
        softmax_skipped,
    ),
    Mistake(
        "mean_forgotten",
        "behind the softmax the mean of each row is not taken away",
        "The weights of a row share 1: what counts is how far dweights lies above its mean.",
        mean_forgotten,
    ),
    Mistake(
        "scale_forgotten",
        "nothing is divided by √d_k on the way back",
        "The scores were divided by √d_k, so the gradient of Q Kᵀ is too.",
        scale_forgotten,
    ),
    Mistake(
        "mask_forgotten",
        "the weights on the way back know nothing of the mask",
        "Use the weights of the way forward: a hidden key has weight 0 there.",
        mask_forgotten,
    ),
    Mistake(
        "cut_without_swap",
        "the gradient of concat is cut into heads without swapping tokens and heads",
        "A row of concat holds all heads of one token: cut the width first, then swap the axes.",
        cut_without_swap,
    ),
    Mistake(
        "one_head_of_each_group",
        "only the first head of each group sends a gradient back to the weights",
        "All heads of a group use its weights: add up what each sends back to them.",
        one_head_of_each_group,
    ),
    Mistake(
        "groups_dealt_in_turn",
        "head h uses the weights of group h % G: the heads of a group are not neighbours",
        "Head h uses group h // (H/G); cut the axis of heads into (G, H/G), in this order.",
        groups_dealt_in_turn,
    ),
    Mistake(
        "copies_not_summed",
        "a context that the whole batch read gets a gradient for each sequence",
        "A copy on the way forward is a sum on the way back: add up the batch axes that the "
        "context does not have.",
        copies_not_summed,
    ),
)


SMALL = {"T": 5, "S": 7, "widths": (11, 13, 8, 9)}
# The context of a sequence has 90,000 numbers. Differences of the layer, one for each of them, one
# by one or many at a time, are 2e12 flop and more in each case: minutes instead of milliseconds.
LARGE = {"T": 40, "S": 150, "widths": (50, 600, 24, 20)}


def _arrays(rng, *batch, sizes, H=6, G=3, shared=False, size=1.0):
    """X, context and the four matrices; widths are d_model, d_context, d_k and d_v."""
    d_model, d_context, d_k, d_v = sizes["widths"]
    shapes = (G, d_model, d_k), (G, d_context, d_k), (H, d_context, d_v), (H * d_v, d_model)
    X = size * rng.standard_normal((*batch, sizes["T"], d_model))
    context = (*(() if shared else batch), sizes["S"], d_context)
    drawn = [1.4 * rng.standard_normal(shape) / np.sqrt(shape[-2]) for shape in shapes]
    return X, size * rng.standard_normal(context), *drawn


def _mask(rng, *shape):
    """Half of it True, and at least one entry in each row."""
    chosen = rng.integers(shape[-1], size=(*shape[:-1], 1))
    return (rng.random(shape) < 0.5) | (np.arange(shape[-1]) == chosen)


def _with_hidden_rows(mask):
    """Let query 2 see nothing in any group, and query 4 nothing in group 1."""
    mask[:, 2], mask[1, 4] = False, False
    return mask


def _common_cases(rng, sizes):
    """(label, arguments without dY) of the cases that both functions have."""
    T, S = sizes["T"], sizes["S"]
    causal = np.tri(T, S, S - T, dtype=bool)

    def arrays(*batch, **options):
        return _arrays(rng, *batch, sizes=sizes, **options)

    return [
        ("6 heads, 3 groups, nothing hidden", (*arrays(), np.ones((T, S), dtype=bool))),
        ("a group for each head, a causal mask", (*arrays(H=3), causal)),
        ("a batch, a mask for each sequence", (*arrays(4), _mask(rng, 4, 1, T, S))),
        ("two batch axes, one context", (*arrays(4, 2, shared=True), causal)),
        ("rows without True", (*arrays(), _with_hidden_rows(_mask(rng, 3, T, S)))),
        ("scores of 1,000 and more", (*arrays(size=40.0), _mask(rng, 3, T, S))),
    ]


def layer_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""
    common = zip(_common_cases(rng, SMALL), (3, 2, 3, 2, 2, 2), strict=True)
    one = _arrays(rng, sizes={"T": 1, "S": 1, "widths": (1, 1, 1, 1)}, H=1, G=1)
    shared = _arrays(rng, sizes=SMALL, G=1)
    return [
        Case("one token, one key, every width 1", (*one, np.ones((1, 1), dtype=bool)), 1),
        *(Case(label, arguments, points) for (label, arguments), points in common),
        Case("one group for all heads, a mask for all queries", (*shared, _mask(rng, 1, 7)), 1),
    ]


def gradient_cases(rng):
    """As for the layer, with a gradient of Y, and too large for differences."""

    def case(label, arguments, points):
        X, *_, W_O, _ = arguments
        dY = rng.standard_normal((*X.shape[:-1], W_O.shape[-1]))
        return Case(label, (dY, *arguments), points)

    common = zip(_common_cases(rng, LARGE), (3, 2, 3, 2, 2, 2), strict=True)
    return [case(label, arguments, points) for (label, arguments), points in common]


ASSIGNMENT = Assignment(
    (
        Task("layer", layer_cases, LAYER),
        Task("gradient_of_context", gradient_cases, GRADIENT),
    ),
    withheld=WITHHELD,
)
