"""Wrong forms of the functions of chapter 12. A record of the way forward is only read."""

import math

import numpy as np

from tutorial_lib.gradients import softmax_backward
from tutorial_lib.practice.mistake import Mistake


def _start(V):
    return np.finfo(V.dtype).min, 0.0, 0.0


def _largest(scores):
    return scores.max(axis=-1, keepdims=True)


def _sum(powers):
    return powers.sum(axis=-1, keepdims=True)


def _highest(maximum, scores):
    return np.maximum(maximum, _largest(scores))


def _shrink_both(maximum, raised):
    factor = np.exp(maximum - raised)
    return factor, factor


def _fold(*, top=_highest, shrink=_shrink_both, base=None, divide=False, kept=None):
    """Fold; `shrink` gives the factors of total and mixed, `base` what scores are relative to."""

    def fold(state, scores, V):
        maximum, total, mixed = state
        raised = top(maximum, scores)
        of_total, of_mixed = shrink(maximum, raised)
        powers = np.exp(scores - (raised if base is None else base(maximum)))
        shares = powers / _sum(powers) if divide else powers
        total = of_total * total + _sum(powers)
        mixed = of_mixed * mixed + shares @ V
        return raised if kept is None else kept(maximum, raised), total, mixed

    return fold


def _only_mixed(maximum, raised):
    return 1.0, np.exp(maximum - raised)


def _only_total(maximum, raised):
    return np.exp(maximum - raised), 1.0


def _upside_down(maximum, raised):
    factor = np.exp(raised - maximum)
    return factor, factor


_FOLD_BLOCK = (
    Mistake(
        "total_not_shrunk",
        "total keeps powers that are relative to the old maximum",
        "Multiply the old total by exp(maximum - raised) before the new powers are added.",
        _fold(shrink=_only_mixed),
    ),
    Mistake(
        "mixed_not_shrunk",
        "mixed keeps powers that are relative to the old maximum",
        "Multiply the old mixed by exp(maximum - raised) before the new values are added.",
        _fold(shrink=_only_total),
    ),
    Mistake(
        "nothing_shrunk",
        "a larger score changes nothing in what was summed before",
        "Multiply total and mixed by exp(maximum - raised) first.",
        _fold(shrink=lambda maximum, raised: (1.0, 1.0)),
    ),
    Mistake(
        "shrink_upside_down",
        "what was summed before grows where it should shrink",
        "The factor is exp(old maximum - new maximum), at most 1.",
        _fold(shrink=_upside_down),
    ),
    Mistake(
        "maximum_of_this_block",
        "its maximum is that of this block alone",
        "Take the larger of the old maximum and the largest score of the block.",
        _fold(top=lambda maximum, scores: _largest(scores) + 0 * maximum),
    ),
    Mistake(
        "powers_relative_to_the_old_maximum",
        "the new powers are relative to the old maximum, and overflow",
        "Take the raised maximum away from the scores of the block.",
        _fold(base=lambda maximum: maximum),
    ),
    Mistake(
        "shares_of_this_block",
        "the values of the block are mixed by its own softmax",
        "Mix by the powers, undivided: total is divided out once, after the last block.",
        _fold(divide=True),
    ),
    Mistake(
        "old_maximum_kept",
        "the maximum that it returns is the old one",
        "Return the raised maximum: total and mixed are relative to it.",
        _fold(kept=lambda maximum, raised: maximum + 0 * raised),
    ),
)
_right_fold = _fold()


def _root(scores, d_k):
    return scores / math.sqrt(d_k)


def _seen(keys, last):
    return keys <= last


def _heads(total, mixed):
    return mixed / np.where(total > 0, total, 1)


def _logsumexp(maximum, total):
    return maximum + np.log(np.where(total > 0, total, 1))


def _attend(*, seen=_seen, scale=_root, fold=_right_fold, end=lambda S, block: S, **outputs):
    """Attend to blocks of keys; `end` says before which key the last block begins."""
    heads = outputs.get("heads", _heads)
    logsumexp = outputs.get("logsumexp", _logsumexp)

    def attend(Q, K, V, last, block):
        state, S = _start(V), K.shape[-2]
        for start in range(0, max(1, end(S, block)), block):
            keys = np.arange(start, min(start + block, S))
            scores = scale(Q @ np.swapaxes(K[..., keys, :], -1, -2), Q.shape[-1])
            scores = np.where(seen(keys, last), scores, -np.inf)
            state = fold(state, scores, V[..., keys, :])
        maximum, total, mixed = state
        return heads(total, mixed), logsumexp(maximum, total)

    return attend


_ATTEND_ROWS = (
    Mistake(
        "last_block_left_out",
        "keys behind the last full block are left out",
        "Let start run to the last key: the last block may be shorter.",
        _attend(end=lambda S, block: S - block + 1),
    ),
    Mistake(
        "mask_ignored",
        "queries see the keys behind their last one",
        "Put -inf in place of scores where keys <= last is False.",
        _attend(seen=lambda keys, last: keys <= last + keys),
    ),
    Mistake(
        "last_key_hidden",
        "the last key of each query is hidden",
        "The last key is seen too: keys <= last.",
        _attend(seen=lambda keys, last: keys < last),
    ),
    Mistake(
        "no_scale",
        "the scores are not divided by sqrt(d_k)",
        "Divide them by math.sqrt(Q.shape[-1]).",
        _attend(scale=lambda scores, d_k: scores),
    ),
    Mistake(
        "scale_d_k",
        "the scores are divided by d_k",
        "Divide them by its square root.",
        _attend(scale=lambda scores, d_k: scores / d_k),
    ),
    Mistake(
        "begun_anew",
        "each block begins anew, so only the last one counts",
        "Fold each block into the state of the blocks before.",
        _attend(fold=lambda state, scores, V: _right_fold(_start(V), scores, V)),
    ),
    Mistake(
        "not_divided",
        "mixed is not divided by total",
        "Divide after the last block: mixed / total.",
        _attend(heads=lambda total, mixed: mixed),
    ),
    Mistake(
        "nan_in_empty_rows",
        "a query that sees nothing gets NaN",
        "Its total is 0: divide by 1 there.",
        _attend(heads=lambda total, mixed: mixed / total),
    ),
    Mistake(
        "logsumexp_without_maximum",
        "logsumexp is the logarithm of total, which is relative to the maximum",
        "Add the maximum: maximum + np.log(total).",
        _attend(logsumexp=lambda maximum, total: _logsumexp(0, total)),
    ),
)


def _last_keys(T, S, causal):
    return (np.arange(T) + S - T if causal else np.full(T, S - 1))[:, None]


def _by_logsumexp(scores, logsumexp):
    return np.exp(scores - logsumexp)


def _by_block(scores, logsumexp):
    powers = np.exp(scores - np.maximum(_largest(scores), -1e30))
    return powers / np.where(_sum(powers) > 0, _sum(powers), 1)


def _compare(weights, dweights, mean):
    return weights * (dweights - mean)


def _backward(*, weigh=_by_logsumexp, compare=_compare, power=0.5, causal=None, add=True):
    """Go back a block of keys at a time; `add` is False where dQ keeps the last block alone."""

    def backward(trace, dheads, *, block=64):
        Q, K, V = trace.Q, trace.K, trace.V
        dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
        last = _last_keys(Q.shape[-2], K.shape[-2], trace.causal if causal is None else causal)
        mean = _sum(dheads * trace.heads)
        for start in range(0, K.shape[-2], block):
            keys = np.arange(start, min(start + block, K.shape[-2]))
            K_T, V_T = (np.swapaxes(array[..., keys, :], -1, -2) for array in (K, V))
            scores = np.where(keys <= last, Q @ K_T / math.sqrt(Q.shape[-1]), -np.inf)
            weights = weigh(scores, trace.logsumexp)
            dscores = compare(weights, dheads @ V_T, mean) / Q.shape[-1] ** power
            share = dscores @ K[..., keys, :]
            dQ = dQ + share if add else share
            dK[..., keys, :] = np.swapaxes(dscores, -1, -2) @ Q
            dV[..., keys, :] = np.swapaxes(weights, -1, -2) @ dheads
        return dQ, dK, dV

    return backward


_FLASH_BACKWARD = (
    Mistake(
        "mean_of_this_block",
        "the dweights are compared with the mean of this block's keys alone",
        "The mean of the whole row is (dheads * heads).sum(axis=-1, keepdims=True).",
        _backward(compare=lambda weights, dweights, mean: softmax_backward(weights, dweights)),
    ),
    Mistake(
        "mean_forgotten",
        "the dweights are not compared with the mean of their row",
        "Take (dheads * heads).sum(axis=-1, keepdims=True) away from dweights.",
        _backward(compare=lambda weights, dweights, mean: weights * dweights),
    ),
    Mistake(
        "softmax_skipped",
        "the dweights are taken for dscores: the softmax is skipped",
        "dscores is weights * (dweights - mean).",
        _backward(compare=lambda weights, dweights, mean: dweights),
    ),
    Mistake(
        "softmax_of_this_block",
        "the weights of a block sum to 1, as if there were no other keys",
        "A weight is exp(score - logsumexp), with the sum over all keys.",
        _backward(weigh=_by_block),
    ),
    Mistake(
        "last_block_alone_in_dq",
        "dQ is that of the last block of keys",
        "Every block has a share in dQ: add them up.",
        _backward(add=False),
    ),
    Mistake(
        "no_scale",
        "dQ and dK are not divided by sqrt(d_k)",
        "The scores were divided by it, so their gradient is too.",
        _backward(power=0),
    ),
    Mistake(
        "scaled_twice",
        "dQ and dK are divided by sqrt(d_k) twice",
        "Divide once: by math.sqrt(Q.shape[-1]).",
        _backward(power=1),
    ),
    Mistake(
        "mask_ignored",
        "hidden keys get gradients",
        "Where trace.causal is True, put -inf in place of the scores of later keys.",
        _backward(causal=False),
    ),
)


def _parts(*, share=None, total=None):
    """Merge; `share` gives each part's share of the heads, `total` the logsumexp of all."""

    def merge(heads, logsumexp):
        top = logsumexp.max(axis=0)
        right = np.exp(logsumexp - top)
        every = top + np.log(right.sum(axis=0))
        shares = right / right.sum(axis=0) if share is None else share(logsumexp)
        return (shares * heads).sum(axis=0), every if total is None else total(logsumexp)

    return merge


def _overflow(heads, logsumexp):
    sums = np.exp(logsumexp)
    total = sums.sum(axis=0)
    return (sums * heads).sum(axis=0) / total, np.log(total)


_MERGE_PARTS = (
    Mistake(
        "mean_of_the_parts",
        "every part counts the same",
        "Weight the heads of a part by its sum of powers, e to its logsumexp.",
        _parts(share=lambda logsumexp: np.full_like(logsumexp, 1 / len(logsumexp))),
    ),
    Mistake(
        "heads_added",
        "the heads of the parts are added up",
        "They are means: weight them by shares that sum to 1.",
        _parts(share=np.ones_like),
    ),
    Mistake(
        "weighted_by_logarithms",
        "the parts are weighted by logsumexp itself",
        "That is a logarithm: raise e to it.",
        _parts(share=lambda logsumexp: logsumexp / logsumexp.sum(axis=0)),
    ),
    Mistake(
        "overflow",
        "large scores give NaN",
        "Take the largest logsumexp over the parts away before the exponential.",
        _overflow,
    ),
    Mistake(
        "logarithms_added",
        "its logsumexp is the sum of those of the parts",
        "Add the sums, and take the logarithm of that.",
        _parts(total=lambda logsumexp: logsumexp.sum(axis=0)),
    ),
    Mistake(
        "largest_logsumexp",
        "its logsumexp is that of the largest part",
        "Add the sums of all parts, and take the logarithm of that.",
        _parts(total=lambda logsumexp: logsumexp.max(axis=0)),
    ),
)


def _tiles(*, window_of=lambda window, T: window, first_query=True, ahead=False):
    """Ask a tile for t - s; `first_query` is False where the last query is asked for both."""

    def tiles(T, window, block):
        first = np.arange(0, T, block)
        last = np.minimum(first + block, T) - 1
        smallest = (first if first_query else last)[:, None] - last
        return ((last[:, None] >= first) | ahead) & (smallest < window_of(window, T))

    return tiles


_TILES_TO_SCORE = (
    Mistake(
        "no_window",
        "every tile up to the diagonal is True: the window is not used",
        "A tile is needed only if some t - s in it is below the window.",
        _tiles(window_of=lambda window, T: T),
    ),
    Mistake(
        "one_too_many",
        "its window is one key too wide",
        "A window of 1 is the token itself: t - s must be below the window.",
        _tiles(window_of=lambda window, T: window + 1),
    ),
    Mistake(
        "sees_the_future",
        "tiles behind the diagonal are True, whose keys all come later",
        "The largest t - s of the tile must be at least 0.",
        _tiles(ahead=True),
    ),
    Mistake(
        "last_queries_alone",
        "only the last query of a block is asked, though the first sees further back",
        "The smallest t - s is where the first query meets the last key.",
        _tiles(first_query=False),
    ),
    Mistake(
        "transposed",
        "queries and keys are exchanged",
        "Rows are blocks of queries: give their numbers an axis, first[:, None].",
        lambda *sizes: _tiles()(*sizes).T,
    ),
    Mistake(
        "last_block_left_out",
        "the tokens behind the last full block have no tiles",
        "Let the blocks begin at np.arange(0, T, block): the last may be shorter.",
        lambda T, window, block: _tiles()(T // block * block, window, block),
    ),
)


def _weigh(share, *, power=0.5):
    def weights_on(Q, K, logsumexp):
        scores = Q @ np.swapaxes(K, -1, -2) / Q.shape[-1] ** power
        return share(scores, logsumexp)

    return weights_on


def _softmax(scores, logsumexp):
    powers = np.exp(scores - _largest(scores))
    return powers / _sum(powers)


_WEIGHTS_ON = (
    Mistake(
        "softmax_of_these_keys",
        "the weights of these few keys sum to 1",
        "Divide by the sum over all keys: exp(score - logsumexp).",
        _weigh(_softmax),
    ),
    Mistake(
        "overflow",
        "large scores give NaN",
        "Subtract first: exp(score - logsumexp), and not exp(score) / exp(logsumexp).",
        _weigh(lambda scores, logsumexp: np.exp(scores) / np.exp(logsumexp)),
    ),
    Mistake(
        "divided_by_the_logarithm",
        "the powers are divided by logsumexp, a logarithm",
        "Divide by e to the logsumexp: exp(score - logsumexp).",
        _weigh(lambda scores, logsumexp: np.exp(scores) / logsumexp),
    ),
    Mistake(
        "logarithms_returned",
        "it returns the logarithms of the weights",
        "Raise e to score - logsumexp.",
        _weigh(lambda scores, logsumexp: scores - logsumexp),
    ),
    Mistake(
        "no_scale",
        "the scores are not divided by sqrt(d_k)",
        "Divide them by math.sqrt(Q.shape[-1]).",
        _weigh(_by_logsumexp, power=0),
    ),
    Mistake(
        "scale_d_k",
        "the scores are divided by d_k",
        "Divide them by its square root.",
        _weigh(_by_logsumexp, power=1),
    ),
)


MISTAKES = {
    "fold_block": _FOLD_BLOCK,
    "attend_rows": _ATTEND_ROWS,
    "flash_backward": _FLASH_BACKWARD,
    "merge_parts": _MERGE_PARTS,
    "tiles_to_score": _TILES_TO_SCORE,
    "weights_on": _WEIGHTS_ON,
}
