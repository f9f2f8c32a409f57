"""What a function of Q, K and V is asked: here the weights themselves can be read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tutorial_lib.probe.alike import ask_calls, ask_gradient, ask_half, ask_lengths, disagreement
from tutorial_lib.probe.dependence import off_diagonal, simplest_pattern
from tutorial_lib.probe.masks import LEAST, length_for, mask_names, where
from tutorial_lib.probe.reference import LAWS, LONG, SCALES, Explanation, depends_of
from tutorial_lib.probe.report import (
    DESCRIBED,
    RIGHT,
    WRONG,
    Finding,
    Report,
    agreed,
    all_answered,
    answered,
    broken,
    described,
    passed,
    without_names,
)
from tutorial_lib.probe.subject import ProbeError, largest, singly, tokens

B = 2
LONGEST = 70  # tokens
QUESTIONS = {  # that mistakes of names with these first words belong to
    "scale": "scale",
    "window": "mask",
    "mask": "mask",
    "no": "mask",
    "key": "KV heads",
    "heads": "heads",
}


@dataclass(frozen=True)
class Function:
    """A function of Q (B, H, T, d_k), K (B, G, S, d_k) and V (B, G, S, d_v); `heads` are H and G.

    `takes` holds "mask" if it uses mask=, (T, S), True where a query may look; `length` is the
    number of tokens that show the claimed mask; `gradient` takes Q, K, V and dY, and returns three.
    """

    run: Callable
    heads: tuple
    takes: frozenset = frozenset()
    length: int = LEAST
    single: Callable | None = None
    half: Callable | None = None
    gradient: Callable | None = None

    def __post_init__(self):
        H, G = self.heads
        if G < 1 or H % G:
            raise ProbeError(
                f"heads={self.heads}: {H} query heads do not share {G} KV heads evenly. "
                "Give the numbers of query heads and of KV heads, such as (8, 2)."
            )

    @property
    def widths(self):
        """Two widths d_k = d_v, not smaller than the length, so that values can be unit vectors."""
        least = 32 * -(-(self.length + 3) // 32)
        return least, 2 * least

    @property
    def orders(self):
        """Which KV head serves each query head, by the words of a claim."""
        H, G = self.heads
        return {"repeated": np.arange(H) // (H // G), "tiled": np.arange(H) % G}

    @property
    def order(self):
        """Which query moves each head of the output, or None where these are not one each."""
        served = self.served(0)
        one = (served.sum(axis=0) == 1).all() and (served.sum(axis=1) == 1).all()
        return served.argmax(axis=1) if one else None

    @cached_property
    def tolerance(self):
        """What equal weights may differ by: precision is told by which numbers come back."""
        Q, K = self.inputs(2, 2, self.widths[0])
        Y = np.asarray(self.run(Q, K, K), dtype=float)
        single = Y.astype(np.float32)
        if np.array_equal(single.view(np.int32) & 0xFFFF, np.zeros(Y.shape)):
            return 3e-2  # bfloat16
        if np.array_equal(Y.astype(np.float16), Y):
            return 1e-2
        return 1e-4 if np.array_equal(single, Y) else 1e-6

    def same(self, Y, others, times=1):
        """Say whether two ways lead to one output, or to one that is so many times less exact."""
        return largest(Y, others) <= times * self.tolerance

    def example(self, *sizes, seed=0):
        """Return the arrays of a call: Q, K and V."""
        return [*self.inputs(*sizes, seed=seed), self.inputs(*sizes, seed=seed + 2)[1]]

    def outputs(self, Q, K, V, **context):
        """Run on copies, and require an output (B, H, T, d_v)."""
        try:
            out = np.asarray(self.run(Q.copy(), K.copy(), V.copy(), **context), dtype=float)
        except TypeError as error:
            raise ProbeError(
                f"the function does not take arrays of NumPy: {error}. Ask one of tensors with "
                "probe.torch, and one of JAX with probe.jax."
            ) from error
        expected = (*Q.shape[:3], V.shape[-1])
        if out.shape != expected:
            raise ProbeError(
                f"the function returned the shape {out.shape} for Q {Q.shape}, K {K.shape}, "
                f"V {V.shape}; expected {expected}. If its axes are (B, T, H, d), say axes='BTHd'."
            )
        return out

    def inputs(self, T=None, S=None, d_k=None, *, size=1.0, seed=0):
        """Draw Q and K, of the length and the smaller width where nothing else is said."""
        T, S, d_k = T or self.length, S or self.length, d_k or self.widths[0]
        H, G = self.heads
        Q = tokens(1, (B, H, T, d_k), size=size, seed=(seed, 1))[0]
        return Q, tokens(1, (B, G, S, d_k), size=size, seed=(seed, 2))[0]

    def cases(self, claims):
        """Return what is compared with a reference: a size, arrays, what has names, and rows."""
        Q, K, V = self.example(seed=51)
        Q_long, K_long = self.inputs(LONGEST, LONGEST, seed=54)
        mask = np.tri(self.length, dtype=bool) & (np.arange(self.length) != 2)
        return {
            "ordinary arrays": (1, [Q, K, V], {}, ...),
            "equal keys": (1, [Q, K[:, :, :1] + 0 * K, V], {}, ...),
            "large scores": (10, [10 * Q, 10 * K, V], {}, ...),
            "few queries": (1, [Q[:, :, :5], K, V], {}, ...),
            "longer arrays": (1, [Q_long, K_long, -K_long], {}, ...),
            **({"a mask": (1, [Q, K, V], {"mask": mask}, ...)} if self.takes else {}),
        }

    def weights(self, Q, K, **context):
        """Read the weights (B, H, T, S): values that are unit vectors let them through."""
        S, d_k = K.shape[2:]
        V = np.broadcast_to(np.eye(S, d_k), K.shape)
        return self.outputs(Q, K, V, **context)[..., :S]

    def served(self, of):
        """Return which head of the output a head of Q, K or V (0, 1, 2) moves, (H, H or G)."""
        given, others, moved = self.example(), self.example(seed=9), []
        base = self.outputs(*given)
        for head in range(given[of].shape[1]):
            there = given[of].copy()
            there[:, head] = others[of][:, head]
            changed = abs(self.outputs(*given[:of], there, *given[of + 1 :]) - base)
            moved.append(~(changed.max(axis=(0, 2, 3)) <= 1e-9))
        return np.transpose(moved)


def probe_function(function, claims):
    """Ask a function all questions; return a Report."""
    function = replace(function, length=length_for(claims))
    read_weights = function.weights(*function.inputs())
    depends, facts = depends_of(read_weights), {}
    findings = _ask_calls(function)
    if findings[-1].name in ("values_not_used", "not_finite"):  # then no weights can be read
        names, hints = Explanation(function, claims, values=False).names()
        findings[-1:] = with_cause(findings[-1:], names, hints)
    if findings[-1].sign == WRONG:
        return Report(tuple(findings))
    core = all_answered(_core(function, claims, facts, read_weights))
    explanation = Explanation(function, claims)
    wrong = any(found.sign == WRONG for found in core)
    names, hints = explanation.names(most=2 if wrong and function.length <= LONG else 1)
    findings += with_cause(core, names, hints)
    if all(found.sign != WRONG for found in findings):
        findings += answered("lengths", lambda: _ask_lengths(function, claims, explanation))
    right = all(found.sign != WRONG for found in findings)
    asked = all_answered(_questions(function, claims, facts, depends if right else None))
    basic = all(found.sign != WRONG or found.question in QUESTIONS.values() for found in core)
    sound = basic and all(name.split("_")[0] in QUESTIONS for name in names)
    findings += asked if sound else without_names(asked)
    pattern = claims.pattern()
    expected = None if pattern is None else pattern.mask(function.length)
    return Report(tuple(findings), depends, expected, simplest_pattern(depends), facts)


def _core(function, claims, facts, read_weights):
    """Return what is asked at one length, the most basic first, by question."""
    return {
        "batch": lambda: _ask_batch(function),
        "heads": lambda: _ask_own_heads(function),
        "KV heads": lambda: _ask_kv_heads(function, claims, facts),
        "values": lambda: _ask_values(function),
        "row sums": lambda: ask_row_sums(function, read_weights, claims, facts),
        "mask": lambda: ask_mask_of(function, claims, read_weights),
        "scale": lambda: ask_scale(function, claims, facts),
        "bias": lambda: ask_bias(function, claims, facts),
    }


def _questions(function, claims, facts, depends):
    """Return what a function is asked besides, by question."""
    return {
        "fewer queries": lambda: ask_fewer_queries(function, claims, facts),
        "few queries": lambda: _ask_few_queries(function, claims, facts, depends),
        "large scores": lambda: ask_large_scores(function),
        "mask argument": lambda: ask_mask_argument(function, claims, facts),
        "masks of a batch": lambda: _ask_masks_of_a_batch(function),
        "precision": lambda: _ask_precision(function),
        "gradient": lambda: ask_gradient(function, "QKV", {"": _with_mask(function, empty=False)}),
    }


def with_cause(findings, names, hints):
    """Return findings with the mistakes that explain the values in place of their own names.

    If none does, the most basic one that is broken keeps its name.
    """
    if names == ("soft_cap",):  # which is no mistake
        sentence = "that of the claim, behind a soft cap"
        capped = Finding(DESCRIBED, "scale", sentence)
        return [capped if found.question == "scale" else found for found in findings]
    names, hints = (tuple(name for name in some if name != "soft_cap") for some in (names, hints))
    if not names and not hints:
        wrong = [found for found in findings if found.sign == WRONG]
        return [found if found in wrong[:1] else without_names([found])[0] for found in findings]
    left, explained = list(names), []
    for found in findings:
        if found.sign == WRONG:
            fitting = [name for name in left if QUESTIONS.get(name.split("_")[0]) == found.question]
            fitting += [name for name in left if name.split("_")[0] not in QUESTIONS]
            name = fitting[0] if fitting else left[0] if len(left) == 1 else None
            found = replace(found, name=name if names else found.name, hints=hints)
            left, hints = [one for one in left if one != name], ()
        explained.append(found)
    sentence = "outputs are those of attention with this mistake"
    return [*explained, *(Finding(WRONG, "formula", sentence, name) for name in left)]


def _ask_calls(function):
    """Ask whether one input has one output, stays as it is, and whether values are used."""
    *findings, calls = ask_calls(function)
    if calls.sign == RIGHT:
        Q, K, V = function.example()
        first, *others = (function.outputs(Q, *x) for x in ((K, V), (K, V[::-1]), (K[::-1], V)))
        same = [function.same(first, other) for other in others]
        if same == [True, False]:
            return findings + broken("values", None, "values_not_used")
    return [*findings, calls]


def _ask_batch(function):
    given = function.example()
    Y, alone = function.outputs(*given), singly(function.outputs)(*given)
    if function.same(Y, alone):
        return passed("batch", "each sequence for itself")
    others = [np.concatenate([x[:1], 2 * x[1:]]) for x in given]
    same = function.same(function.outputs(*others)[0], Y[0])
    name = "sequence_changes_in_batch" if same else "sequences_mixed"
    return broken("batch", None, name)


def _ask_kv_heads(function, claims, facts):
    H, G = function.heads
    served = [function.served(of) for of in (1, 2)]
    found = [
        word
        for word, order in function.orders.items()
        if all(np.array_equal(table, order[:, None] == np.arange(G)) for table in served)
    ]
    if not found:
        one_each = np.array_equal(*served) and (served[0].sum(axis=1) == 1).all()
        name = "key_heads_of_another_group" if one_each else "key_heads_mixed"
        return broken("KV heads", None, name)
    if G in (1, H):
        return passed("KV heads", "one for all" if G == 1 else "one per query head")
    facts["key_heads"], claimed = found[0], claims.get("key_heads", "repeated")
    found = found[0]
    if found == claimed:
        return passed("KV heads", f"{found}, head 0 of K serves {H // G} query heads")
    return broken("KV heads", f"{found}, not {claimed}", f"key_heads_{found}")


def _ask_own_heads(function):
    order = function.order
    if np.array_equal(order, np.arange(function.heads[0])):
        return passed("heads", "each query moves its own head")
    if not function.served(0).any():
        return _without_queries(function)
    name = "heads_mixed" if order is None else "heads_in_another_order"
    return broken("heads", None, name)


def _without_queries(function):
    """Say of outputs that no query moves whether large ones do, beside which others are lost."""
    Q, K, V = function.example()
    lost = not function.same(function.outputs(1e4 * Q, K, V), function.outputs(Q, K, V))
    name = "scores_lost_in_single" if lost else None
    return broken("heads", "queries have no effect on any output", name)


def _ask_values(function):
    Q, K, V = function.example()
    weights, out = function.weights(Q, K), function.outputs(Q, K, V)
    mixes = [weights @ V[:, heads] for heads in function.orders.values()]
    if any(function.same(mix, out, 10) for mix in mixes):
        return passed("values", "each output is its weights times the values")
    return broken("values", None, "values_not_mixed_by_weights")


def _ask_lengths(function, claims, explanation):
    """Ask whether other lengths are as right as the first, to which everything else was asked."""
    Q, K, V = function.example(LONGEST, LONGEST, LONGEST + 10)
    whole, question = function.outputs(Q, K, V), "lengths"
    if claims.get("causal"):
        lengths = (1, 5, 16, 32, 33, 64)
        found = ask_lengths(function, (Q, K, V), lengths, 10 * function.tolerance)
        if found[0].sign == WRONG:
            return found
    right = explanation.right(Q, K, V)
    if not right:  # it may be right for the fewest tokens alone
        Q, K, V = function.example(LONGEST, LONGEST)
        right, whole = explanation.right(Q, K, V, cases=1), function.outputs(Q, K, V)
    if right and not any(function.same(found, whole, 10) for found in right):
        sentence = f"right for {function.length} tokens, and not for {LONGEST}"
        return broken(question, sentence, "wrong_for_longer_texts")
    return passed(question, f"as right for {LONGEST} tokens") if right else []


def _ask_few_queries(function, claims, facts, depends):
    """Ask whether few queries have the outputs that they have among as many as there are keys."""
    if depends is None or not (depends.all() or facts.get("corner")):
        return []
    (Q, K, V), few, question = function.example(), 5, "positions of fewer queries"
    whole, found = function.outputs(Q, K, V), []
    for word, part in {"last": slice(-few, None), "first": slice(few)}.items():
        alone = function.outputs(Q[:, :, part], K, V)
        found += [word] if function.same(alone, whole[:, :, part]) else []
    corner = facts.get("corner") or claims.get("corner")
    if corner in found or (corner is None and found):
        either = len(found) == 2 or facts.get("corner")
        sentence = "as among all" if either else f"counted from the {found[0]} corner"
        return agreed(question, sentence, either or None)
    sentence = f"{few} queries have other outputs than among {Q.shape[2]}"
    name = "queries_change_with_their_number"
    placed = corner != "first" and facts.get("bias") != "none"
    if placed and ("first" in found or _counted_from_0(function, Q[:, :, -few:], K)):
        name = "positions_first_corner"
    return broken(question, sentence, name)


def _counted_from_0(function, few, K):
    """Say whether few queries give the keys before them the weights that the first queries give."""
    Q = function.inputs()[0]
    Q[:, :, : few.shape[2]] = few
    rows = np.tri(few.shape[2], K.shape[2], dtype=bool)
    read = function.weights(few, K), function.weights(Q, K)[:, :, : few.shape[2]]
    alone, first = (np.log(weights / weights[..., :1])[..., rows] for weights in read)
    return largest(alone, first) <= 1e3 * function.tolerance


def _ask_masks_of_a_batch(function):
    """Ask with a mask for each sequence, (B, 1, T, S), and with one of its keys, (B, 1, 1, S)."""
    if "mask" not in function.takes:
        return []
    question, wrong = "masks of a batch", "a sequence has the mask of another one"
    T, rng = function.length, np.random.default_rng(1)
    masks = (rng.random((B, 1, T, T)) < 0.5) | np.eye(T, dtype=bool)
    used = _masks_used(function, masks, T)
    if not used.any():
        return described(question, "a mask (B, 1, T, S) is not taken as such")
    if not used[np.arange(B), np.arange(B)].all():
        name = "mask_of_first_sequence" if used[0].all() else None
        on_heads = (used == used[:, :1]).all() and used.any(axis=0).all()
        name = "mask_of_batch_on_heads" if on_heads and not name else name
        return [Finding(WRONG if name else DESCRIBED, question, wrong, name)]
    keys = (rng.random((B, 1, 1, T)) < 0.6) | (np.arange(T) < 5)
    if _masks_used(function, keys, 5)[np.arange(B), np.arange(B)].all():
        return passed(question, "each sequence has its own mask")
    return broken(question, "one of the keys, (B, 1, 1, S), is misread", "mask_argument_misread")


def _masks_used(function, masks, T):
    """Say which of the masks (B, 1, 1 or T, S) has the outputs of which sequence and head."""
    Q, K, V = function.example(T)
    out = function.outputs(Q, K, V, mask=masks)
    single = [np.broadcast_to(mask[0], (T, K.shape[2])) for mask in masks]
    single = [function.outputs(Q, K, V, mask=mask.copy()) for mask in single]
    return np.array([abs(out - one).max(axis=(2, 3)) <= function.tolerance for one in single])


def _ask_precision(function):
    if function.single is None:
        return []
    given = function.example()
    single = np.asarray(function.single(*given), dtype=float)
    others = np.asarray(function.single(given[0][::-1], *given[1:]), dtype=float)
    findings = disagreement(single, function.outputs(*given))
    if findings[0].sign == WRONG and largest(single, others) <= 1e-9:
        findings = [replace(findings[0], name="scores_lost_in_single")]
    context = _with_mask(function, empty=True)
    return findings + answered("half precision", lambda: ask_half(function, context))


def _with_mask(function, *, empty):
    """Return a causal mask to hand over, where one is taken, whose row 3 is empty or not."""
    mask = np.tri(function.length, dtype=bool)
    mask[3] &= not empty
    return {"mask": mask} if "mask" in function.takes else {}


def ask_row_sums(function, weights, claims, facts):
    """Ask what a row of weights sums to."""
    rows = weights.sum(axis=-1)
    if function.same(rows, 1.0):
        facts["row_sum"] = 1.0
        return passed("row sums", "1 in every row")
    facts["row_sum"] = (float(rows.min()), float(rows.max()))
    sentence = f"between {rows.min():.3g} and {rows.max():.3g}"
    if "row_sum" in claims and claims["row_sum"] is None:
        if rows.max() <= 1 + function.tolerance and not _one_sink(function):
            return broken("row sums", None, "sink_not_in_every_row")
        return described("row sums", sentence)
    cut = rows.max() <= 1 + function.tolerance and "row_sum" not in claims
    zeros = function.weights(0 * function.inputs()[0], function.inputs()[1])  # to which sinks add
    if cut and not function.same(zeros.sum(axis=-1), 1.0):
        sentence += ": a sink, or weights that were cut; claim row_sum=1 or None"
        return described("row sums", sentence)
    return broken("row sums", sentence, "row_sum_not_one")


def _one_sink(function):
    """Say whether queries of 0 leave the same to a sink, beside the own key, in every row."""
    Q, K = function.inputs()
    weights = function.weights(0 * Q, K)
    own = np.diagonal(weights, axis1=-2, axis2=-1)
    left = (1 - weights.sum(axis=-1)) / own
    return bool((np.ptp(left, axis=-1) <= 1e-3 * (1 + np.abs(left).max())).all())


def ask_mask_of(function, claims, weights):
    """Ask the mask as applied against the claimed one; here the diagonal counts, too."""
    depends = depends_of(weights)
    if not claims.masks:
        return described("mask", str(simplest_pattern(depends) or "of no regular form"))
    pattern, T = claims.pattern(), len(depends)
    expected = depends & np.tri(T, dtype=bool) if pattern is None else pattern.mask(T)
    if claims.get("causal") is not False:
        expected = expected | np.eye(T, dtype=bool)
    gap = (abs(weights) <= 1e-30).all(axis=0).any(axis=0) & expected  # no weight in some head
    if gap.any() and claims.pattern() and np.array_equal(depends, expected):
        i, j = np.argwhere(gap)[-1]
        sentence = f"in some head query {i} does not see key {j}, in others it does"
        return broken("mask", sentence, "mask_of_one_head")
    if np.array_equal(depends, expected):
        return passed("mask", f"as claimed: {simplest_pattern(depends) or 'drawn above'}")
    second = depends_of(function.weights(*function.inputs(T + 3, T + 3, seed=4)))
    name, hints = mask_names([depends, second], claims)
    name = "hidden_keys_seen" if name == "no_mask" else name  # the softmax may be cut instead
    return broken("mask", where(depends, depends != expected), name, hints)


def ask_scale(function, claims, facts):
    """Ask which factor scores have, at two widths."""
    factors, question = [_factor(function, d_k) for d_k in function.widths], "scale"
    if any(factor is None for factor in factors):
        sentence = "log-ratios of weights are no multiple of q · k"
        if "scale" not in claims:
            return described(question, sentence)
        return broken(question, sentence, "softmax_of_other_scores")
    found = _law(function, factors)
    facts["scale"] = found or tuple(factors)
    at = (f"{factor:.4g} at d_k = {d}" for factor, d in zip(factors, function.widths, strict=True))
    sentence = found or ", ".join(at)
    if claims.get("scale") in (None, found):
        claimed = ", as claimed" if "scale" in claims else ""
        return agreed(question, sentence + claimed, claims.get("scale"))
    name = SCALES.get((claims["scale"], found), "scale_another")
    if found is None and np.ptp(factors) <= 1e-3 * factors[0]:
        name = "scale_of_fixed_width"
    return broken(question, f"{sentence}, and claimed is {claims['scale']}", name)


def _law(function, factors):
    """Return the law that gives these factors at the two widths, in words, or None."""
    allowed, sizes = max(1e-3, function.tolerance), (function.heads[0], function.length)
    for word, law in LAWS.items():
        if np.allclose(factors, [law(d_k, *sizes) for d_k in function.widths], allowed):
            return word
    return None


def _factor(function, d_k):
    """Fit the one factor of the scores of the last query, in all rows, or return None."""
    Q, K = function.inputs(d_k=d_k, size=0.5)
    K[:, :, 1] = K[:, :, 0] + tokens(1, K[:, :, 0].shape, seed=6)[0]
    weights = function.weights(Q, K)[:, :, -1]  # (B, H, S)
    weights = np.nan_to_num(weights / function.weights(0 * Q, K)[:, :, -1], posinf=0.0)
    seen, count = weights > 0, (weights > 0).sum(axis=-1, keepdims=True)
    if (count < 3).any():
        return None
    y = np.log(np.where(seen, weights, 1.0))
    y = np.where(seen, y - y.sum(axis=-1, keepdims=True) / count, 0.0)
    for order in function.orders.values():
        x = np.where(seen, np.einsum("bhd,bhsd->bhs", Q[:, :, -1], K[:, order]), 0.0)
        x = np.where(seen, x - x.sum(axis=-1, keepdims=True) / count, 0.0)
        factor = float((x * y).sum() / (x * x).sum())
        if largest(factor * x, y) <= max(1e-3, 5 * function.tolerance):
            return factor
    return None


def ask_bias(function, claims, facts):
    """Ask what equal keys leave of the weights: a bias by distance."""
    Q, K = function.inputs()
    equal = np.repeat(K[:, :, :1], function.length, axis=2)
    last = function.weights(Q, equal)[0, :, -1]  # (H, S)
    seen = last > 0
    if (seen.sum(axis=-1) < 2).any():
        return described("bias", "cannot be asked: the last query sees one key or none")
    steps = np.diff(np.log(np.where(seen, last, 1.0)), axis=-1)[seen[:, 1:] & seen[:, :-1]]
    sentence, facts["bias"] = "keys of unlike distance, in no order", "other"
    if np.abs(steps).max() <= 100 * function.tolerance:
        sentence, facts["bias"] = "none: equal keys have equal weights", "none"
    elif (steps > 0).all():
        sentence, facts["bias"] = "nearer keys have larger weights, in every head", "nearer"
    elif (steps < 0).all():
        sentence = "farther keys have larger weights, in every head"
    claimed = claims.get("bias")
    if claimed == "alibi" and facts["bias"] == "nearer":
        return _slopes_as_claimed(function, steps.reshape(function.heads[0], -1))
    if claimed in (None, facts["bias"]):
        return agreed("bias", sentence, claimed)
    farther = claimed == "nearer" and (steps < 0).all()
    name = "bias_to_farther_keys" if farther else "bias_another"
    return broken("bias", f"{sentence}; claimed is {claimed!r}", name)


def _slopes_as_claimed(function, steps):
    """Compare what a key gains by one token, (H, …), with the slopes of ALiBi."""
    if abs(steps - paper_slopes(len(steps))[:, None]).max() <= 100 * function.tolerance:
        return passed("bias", "the slopes of ALiBi, in every head")
    slopes = ", ".join(f"{slope:.3g}" for slope in steps[:, 0])
    return broken("bias", f"the slopes of the heads are {slopes}", "bias_of_other_slopes")


def paper_slopes(H):
    """Return the slopes of ALiBi for H heads, also where H is no power of 2."""
    power = 2 ** int(np.log2(H))
    more = 2.0 ** (-4 / power * np.arange(1, 2 * (H - power), 2))
    return np.concatenate([2.0 ** (-8 / power * np.arange(1, power + 1)), more])


def ask_fewer_queries(function, claims, facts):
    """Ask, with fewer queries than keys, where a causal mask is aligned."""
    few = 5
    depends, fewer = (depends_of(function.weights(*function.inputs(n))) for n in (few, few - 2))
    whole = depends_of(function.weights(*function.inputs()))
    if not off_diagonal(np.tri(len(whole), dtype=bool) & whole).any() or np.triu(whole, 1).any():
        return []
    corners = {"last": whole[-few:], "first": whole[:few]}
    found = next((word for word, rows in corners.items() if np.array_equal(rows, depends)), None)
    facts["corner"] = found
    drawn = "\n    ".join(" ".join("·■"[int(seen)] for seen in row) for row in depends)
    sentence = f"the mask is aligned to the {found} corner" if found else f"another:\n    {drawn}"
    claimed = claims.get("corner")
    if depends.all() and fewer.all():
        return broken("fewer queries", None, "mask_dropped_for_fewer_queries")
    if claimed in (None, found):
        return agreed("fewer queries", sentence, claimed)
    name = "mask_first_corner" if found == "first" else "mask_another_corner"
    return broken("fewer queries", f"{sentence}, and claimed is {claimed!r}", name)


def ask_large_scores(function):
    """Ask whether weights stay finite, and rows sum to 1, at scores of 80 to a million.

    In half precision the largest overflows only if it is not scaled.
    """
    (Q, K), question, half = function.inputs(), "large scores", function.tolerance >= 1e-2
    weights = function.weights(Q, K)
    sums_to_1 = abs(weights.sum(axis=-1) - 1).max() <= function.tolerance
    large = [_weights_at(function, size) for size in (80.0, 1e4, 5e4 if half else 1e6)]
    finite = [bool(np.isfinite(found).all()) for found in large]
    high, low = _lost(function, Q, K) if sums_to_1 else (False, False)
    if not all(finite[: 3 if half else 2]):
        name = "maximum_not_subtracted" if high and finite[0] else "not_finite_at_large_scores"
        name = "scores_overflow_in_half" if all(finite[:2]) else name
        return broken(question, None, name)
    more = depends_of(function.weights(Q * 30, K * 30))
    if not half:  # query 0 and key 0 get a score that is below what hides the others
        K[:, :, 0], Q[:, :, 0] = K[:, :1, 0], -1e3 * K[:, :1, 0]
        more |= depends_of(function.weights(Q, K))
    if (more & ~depends_of(weights)).any():
        return broken(question, None, "mask_not_low_enough")
    low = low and not high and _factor(function, function.widths[0]) is not None
    lost = max(abs(found.sum(axis=-1) - 1).max() for found in large) > max(1e-3, function.tolerance)
    if low or (sums_to_1 and lost):
        return broken(question, None, "row_sum_lost_at_large_scores")
    return passed(question, "finite, and rows sum to what they did")


def _weights_at(function, size):
    Q, K = function.inputs()
    scale = np.sqrt(size / abs(np.einsum("bhtd,bhsd->bhts", Q[:, :1], K[:, :1])).max() * 4)
    return function.weights(Q * scale, K * scale)


def _lost(function, Q, K):
    """Say whether rows are lost where all scores are one high number, and one low number."""
    Q, K = (300 * abs(array[:1, :1, :1]) + 0 * array for array in (Q, K))
    rows = [function.weights(sign * Q, K).sum(axis=-1) for sign in (1, -1)]
    return [not abs(sums - 1).max() <= 1e-3 for sums in rows]


def ask_mask_argument(function, claims, facts):
    """Ask a mask that is handed over: its polarity, and a row in which everything is hidden."""
    if "mask" not in function.takes:
        return []
    Q, K = function.inputs()
    mask = np.random.default_rng(1).random((function.length,) * 2) < 0.3
    mask |= np.eye(function.length, dtype=bool)
    whole = depends_of(function.weights(Q, K))
    if not np.array_equal(depends_of(function.weights(Q, K, mask=mask)), mask & whole):
        return broken("mask argument", None, _argument_name(function, (Q, K), mask, whole))
    if not _same_sink(function.weights(Q, K), function.weights(Q, K, mask=mask), mask):
        return broken("mask argument", None, "hidden_keys_in_the_sum")
    mask[3] = False
    weights = function.weights(Q, K, mask=mask)
    return [*passed("mask argument", "as handed over"), *_empty(weights, claims, facts)]


def _same_sink(weights, masked, mask):
    """Say whether the rest of a row, divided by the weight of a key, is the same under a mask."""
    rests = [(1 - found.sum(axis=-1, keepdims=True)) / found for found in (weights, masked)]
    seen = mask & (weights > 0) & (masked > 0)
    return bool(np.allclose(rests[0][seen], rests[1][seen], rtol=1e-3, atol=1e-3))


def _argument_name(function, QK, mask, whole):
    """Return the mistake of a mask that is not applied as handed over, or None."""
    without, given = function.weights(*QK), function.weights(*QK, mask=mask)
    seen, opposite = (depends_of(function.weights(*QK, mask=m)) for m in (mask, ~mask))
    shown = {
        "mask_polarity": (~mask & whole, mask & whole),
        "mask_replaces_causal": (mask, ~mask),
        "mask_argument_transposed": (mask.T & whole, ~mask.T & whole),
    }
    for name, tables in shown.items():
        if all(map(np.array_equal, (seen, opposite), tables)):
            return name
    gain = np.log(given / without)
    if largest(gain - gain[..., :1] + 1.0 * mask[:, :1], 1.0 * mask) <= 1e-4:
        return "mask_added_as_number"
    if function.same(given, without):
        return "mask_argument_ignored"
    smaller = (given < without)[..., whole & ~mask]
    low = np.array_equal(seen, whole) and smaller.mean() > 0.9
    return "mask_not_low_enough" if low else "mask_argument_misread"


def _empty(weights, claims, facts):
    """Say what a row in which everything is hidden returns; row 3 is one."""
    row, others = weights[:, :, 3], np.delete(weights, 3, axis=2)
    if not np.isfinite(others).all():
        return broken("empty row", None, "empty_row_spoils_others")
    found = "nan"
    if np.isfinite(row).all():
        found = "zero" if not row.any() else "mean" if np.ptp(row) <= 1e-4 / len(row) else "other"
    facts["empty_row"] = found
    claimed = claims.get("empty_row")
    if claimed in (None, found):
        return agreed("empty row", f"{found}, where a mask hides everything", claimed)
    name = f"empty_row_{found}" if found in ("nan", "mean") else "empty_row_another"
    return broken("empty row", f"{found}, and claimed is {claimed!r}", name)
