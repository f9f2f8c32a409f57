"""What a function of Q, K and V is asked: here the weights themselves can be read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tutorial_lib.probe import weights
from tutorial_lib.probe.alike import ask_calls, ask_gradient, ask_half, disagreement
from tutorial_lib.probe.dependence import simplest_pattern
from tutorial_lib.probe.masks import LEAST, length_for
from tutorial_lib.probe.reference import LONG, Explanation
from tutorial_lib.probe.report import (
    DESCRIBED,
    RIGHT,
    WRONG,
    Finding,
    Report,
    answered,
    without_names,
)
from tutorial_lib.probe.subject import ProbeError, largest, tokens

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
    """A function of Q (B, H, T, d_k), K (B, G, S, d_k) and V (B, G, S, d_v).

    Parameters
    ----------
    run : the function, with mask=None, (T, S), True where a query may look
    heads : H and G
    takes : holds "mask" if `run` uses one
    length : T, the number of tokens that show the claimed mask
    single, half : the same function in lower precision, or None
    strided : the same function of arrays in another order in memory, or None
    gradient : a function of Q, K, V and the gradient of the output, which returns three, or None
    """

    run: Callable
    heads: tuple
    takes: frozenset = frozenset()
    length: int = LEAST
    single: Callable | None = None
    half: Callable | None = None
    strided: Callable | None = None
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

    @cached_property
    def precision(self):
        """What equal weights may differ by: precision is told by which numbers come back."""
        Q, K = self.inputs(2, 2, self.widths[0])
        Y = np.asarray(self.run(Q, K, K), dtype=float)
        single = Y.astype(np.float32)
        if np.array_equal(single.view(np.int32) & 0xFFFF, np.zeros(Y.shape)):
            return 3e-2  # bfloat16
        if np.array_equal(Y.astype(np.float16), Y):
            return 1e-2
        return 1e-4 if np.array_equal(single, Y) else 1e-6

    @property
    def tolerance(self):
        """What two ways to one output may differ by."""
        return self.precision

    def example(self, seed=0):
        """Return the arrays of a call: Q, K and V."""
        return [*self.inputs(seed=seed), self.inputs(seed=seed + 2)[1]]

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

    def weights(self, Q, K, **context):
        """Read the weights (B, H, T, S): values that are unit vectors let them through."""
        S, d_k = K.shape[2:]
        V = np.broadcast_to(np.eye(S, d_k), K.shape)
        with np.errstate(all="ignore"):
            return self.outputs(Q, K, V, **context)[..., :S]

    def served(self, of):
        """Return which head of the output a head of Q, K or V (0, 1, 2) moves, (H, H or G)."""
        given = [*self.inputs(), self.inputs(seed=3)[1]]
        others = [*self.inputs(seed=9), self.inputs(seed=8)[1]]
        base = self.outputs(*given)
        moved = []
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
    depends, facts = weights.depends_of(read_weights), {}
    findings = _ask_calls(function)
    if findings[-1].name in ("values_not_used", "not_finite"):  # then no weights can be read
        names, hints = Explanation(function, claims, values=False).names()
        findings[-1:] = with_cause(findings[-1:], names, hints)
    if findings[-1].sign == WRONG:
        return Report(tuple(findings))
    core = _answers(_core(function, claims, facts, read_weights))
    explanation = Explanation(function, claims)
    broken = any(found.sign == WRONG for found in core)
    names, hints = explanation.names(most=2 if broken and function.length <= LONG else 1)
    findings += with_cause(core, names, hints)
    if all(found.sign != WRONG for found in findings):
        findings += answered("lengths", lambda: _ask_lengths(function, claims, explanation))
    right = all(found.sign != WRONG for found in findings)
    asked = _answers(_questions(function, claims, facts, depends if right else None))
    basic = all(found.sign != WRONG or found.question in QUESTIONS.values() for found in core)
    sound = basic and all(name.split("_")[0] in QUESTIONS for name in names)
    findings += asked if sound else without_names(asked)
    pattern = claims.pattern()
    expected = None if pattern is None else pattern.mask(function.length)
    return Report(tuple(findings), depends, expected, simplest_pattern(depends), facts)


def _answers(questions):
    return [found for question, ask in questions.items() for found in answered(question, ask)]


def _core(function, claims, facts, read_weights):
    """Return what is asked at one length, the most basic first, by question."""
    depends = weights.depends_of(read_weights)
    return {
        "batch": lambda: _ask_batch(function),
        "heads": lambda: _ask_own_heads(function),
        "KV heads": lambda: _ask_kv_heads(function, claims, facts),
        "values": lambda: _ask_values(function),
        "row sums": lambda: weights.ask_row_sums(function, read_weights, claims, facts),
        "mask": lambda: weights.ask_mask(function, depends, claims, read_weights),
        "scale": lambda: weights.ask_scale(function, claims, facts),
        "bias": lambda: weights.ask_bias(function, claims, facts),
    }


def _questions(function, claims, facts, depends):
    """Return what a function is asked besides, by question."""
    return {
        "fewer queries": lambda: weights.ask_fewer_queries(function, claims, facts),
        "few queries": lambda: _ask_few_queries(function, claims, facts, depends),
        "width of values": lambda: _ask_width_of_values(function),
        "large scores": lambda: weights.ask_large_scores(function),
        "mask argument": lambda: weights.ask_mask_argument(function, claims, facts),
        "masks of a batch": lambda: _ask_masks_of_a_batch(function),
        "memory layout": lambda: _ask_strides(function),
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
        moved = [largest(first, other) for other in others]
        if moved[0] <= function.precision < moved[1]:
            sentence = "other values have the same output"
            calls = Finding(WRONG, "values", sentence, "values_not_used")
    return [*findings, calls]


def _ask_batch(function):
    """Ask whether the sequences of a batch are apart."""
    given = function.example()
    alone = [function.outputs(*(array[[b]] for array in given)) for b in range(B)]
    if largest(function.outputs(*given), np.concatenate(alone)) <= function.precision:
        return [Finding(RIGHT, "batch", "each sequence for itself")]
    sentence = "a sequence in a batch has other outputs than alone"
    return [Finding(WRONG, "batch", sentence, "sequences_mixed")]


def _ask_kv_heads(function, claims, facts):
    """Ask which key head, and which value head, serves which query head."""
    H, G = function.heads
    served = [function.served(of) for of in (1, 2)]
    repeated, tiled = np.arange(H) // (H // G), np.arange(H) % G
    found = None
    for word, order in (("repeated", repeated), ("tiled", tiled)):
        if all(np.array_equal(table, order[:, None] == np.arange(G)) for table in served):
            found = found or word
    if found is None:
        sentence = "a head of K or V serves other query heads than its own group"
        one_each = np.array_equal(*served) and (served[0].sum(axis=1) == 1).all()
        name = "key_heads_of_another_group" if one_each else "key_heads_mixed"
        return [Finding(WRONG, "KV heads", sentence, name)]
    if G in (1, H):
        return [Finding(RIGHT, "KV heads", "one for all" if G == 1 else "one per query head")]
    facts["key_heads"] = found
    claimed = claims.get("key_heads", "repeated")
    if found == claimed:
        return [Finding(RIGHT, "KV heads", f"{found}, head 0 of K serves {H // G} query heads")]
    return [Finding(WRONG, "KV heads", f"{found}, not {claimed}", f"key_heads_{found}")]


def _ask_own_heads(function):
    """Ask whether the query of a head moves its own output alone."""
    served = function.served(0)
    if np.array_equal(served, np.eye(len(served))):
        return [Finding(RIGHT, "heads", "each query moves its own head")]
    sentence = "the query of a head moves outputs of other heads, or not its own"
    permuted = (served.sum(axis=0) == 1).all() and (served.sum(axis=1) == 1).all()
    return [
        Finding(WRONG, "heads", sentence, "heads_in_another_order" if permuted else "heads_mixed")
    ]


def _ask_values(function):
    """Ask whether an output is the sum of values by these weights, head by head."""
    H, G = function.heads
    Q, K = function.inputs()
    V = tokens(1, K.shape, seed=3)[0]
    weights, out = function.weights(Q, K), function.outputs(Q, K, V)
    mixes = [weights @ V[:, heads] for heads in (np.arange(H) // (H // G), np.arange(H) % G)]
    if min(largest(mix, out) for mix in mixes) <= 10 * function.precision:
        return [Finding(RIGHT, "values", "each output is its weights times the values")]
    sentence = "outputs are not the weights times the values"
    return [Finding(WRONG, "values", sentence, "values_not_mixed_by_weights")]


def _ask_width_of_values(function):
    """Ask for values of another width than the keys."""
    (Q, K), (G, S) = function.inputs(), (function.heads[1], function.length)
    V = tokens(1, (B, G, S, K.shape[-1]), seed=3)[0]
    narrow, whole = V[..., :24], function.outputs(Q, K, V)
    if largest(function.outputs(Q, K, narrow), whole[..., :24]) <= 10 * function.precision:
        return [Finding(RIGHT, "width of values", "values may be narrower than keys")]
    sentence = "values of another width have other weights"
    return [Finding(WRONG, "width of values", sentence, "width_of_values_in_scores")]


def _ask_lengths(function, claims, explanation):
    """Ask whether other lengths are as right as the first, to which everything else was asked."""
    Q, K = function.inputs(LONGEST, LONGEST, LONGEST + 10)
    V = tokens(1, K.shape, seed=3)[0]
    whole, question = function.outputs(Q, K, V), "lengths"
    for T in (1, 5, 16, 32, 33, 64) if claims.get("causal") else ():
        part = function.outputs(*(array[:, :, :T] for array in (Q, K, V)))
        if largest(part, whole[:, :, :T]) > 10 * function.precision:
            sentence = f"{T} tokens alone have other outputs than at the head of {LONGEST}"
            return [Finding(WRONG, question, sentence, "length_changes_outputs")]
    right = explanation.right(Q, K, V)
    if right and min(largest(found, whole) for found in right) > 10 * function.precision:
        sentence = f"right for {function.length} tokens, and not for {LONGEST}"
        return [Finding(WRONG, question, sentence, "wrong_for_longer_texts")]
    return [Finding(RIGHT, question, f"as right for {LONGEST} tokens")] if right else []


def _ask_few_queries(function, claims, facts, depends):
    """Ask whether few queries have the outputs that they have among as many as there are keys."""
    if depends is None or not (depends.all() or facts.get("corner")):
        return []
    (Q, K), few, question = function.inputs(), 5, "positions of fewer queries"
    V = tokens(1, K.shape, seed=3)[0]
    whole, rows = function.outputs(Q, K, V), {"last": slice(-few, None), "first": slice(few)}
    found = [
        word
        for word, part in rows.items()
        if largest(function.outputs(Q[:, :, part], K, V), whole[:, :, part]) <= function.precision
    ]
    corner = facts.get("corner") or claims.get("corner")
    if corner in found or (corner is None and found):
        either = len(found) == 2 or facts.get("corner")
        sentence = "as among all" if either else f"counted from the {found[0]} corner"
        return [Finding(RIGHT if either else DESCRIBED, question, sentence)]
    sentence = f"{few} queries have other outputs than among {Q.shape[2]}"
    name = "queries_change_with_their_number"
    if corner != "first" and ("first" in found or _counted_from_0(function, Q[:, :, -few:], K)):
        name = "positions_first_corner"
    return [Finding(WRONG, question, sentence, name)]


def _counted_from_0(function, few, K):
    """Say whether few queries give the keys before them the weights that the first queries give."""
    Q = function.inputs()[0]
    Q[:, :, : few.shape[2]] = few
    rows = np.tri(few.shape[2], K.shape[2], dtype=bool)
    with np.errstate(all="ignore"):
        alone, first = (
            np.log(weights / weights[..., :1])[..., : few.shape[2], :][..., rows]
            for weights in (function.weights(few, K), function.weights(Q, K))
        )
    return largest(alone, first) <= 1e3 * function.precision


def _ask_masks_of_a_batch(function):
    """Ask with a mask for each sequence, (B, 1, T, S)."""
    if "mask" not in function.takes:
        return []
    (Q, K), T = function.inputs(), function.length
    V = tokens(1, K.shape, seed=3)[0]
    masks = np.random.default_rng(1).random((B, 1, T, T)) < 0.5
    masks |= np.eye(T, dtype=bool)
    out = function.outputs(Q, K, V, mask=masks)
    single = [function.outputs(Q, K, V, mask=mask[0]) for mask in masks]
    used = np.array([abs(out - one).max(axis=(2, 3)) <= function.precision for one in single])
    if used[np.arange(B), np.arange(B)].all():
        return _ask_key_masks(function)
    sentence, name = "a sequence has the mask of another one", None
    if used[0].all():
        name = "mask_of_first_sequence"
    elif (used == used[:, :1]).all() and used.any(axis=0).all():
        name = "mask_of_batch_on_heads"
    if name is None:
        return [Finding(DESCRIBED, "masks of a batch", "a mask (B, 1, T, S) is not taken as such")]
    return [Finding(WRONG, "masks of a batch", sentence, name)]


def _ask_key_masks(function):
    """Ask few queries with a mask of the keys for each sequence, (B, 1, 1, S)."""
    (Q, K), question = function.inputs(5), "masks of a batch"
    V = tokens(1, K.shape, seed=3)[0]
    keys = np.random.default_rng(2).random((B, 1, 1, K.shape[2])) < 0.6
    keys[..., :5] = True
    out = function.outputs(Q, K, V, mask=keys)
    single = [function.outputs(Q, K, V, mask=np.repeat(mask[0], 5, axis=0)) for mask in keys]
    expected = np.stack([one[b] for b, one in enumerate(single)])
    if largest(out, expected) <= function.precision:
        return [Finding(RIGHT, question, "each sequence has its own mask")]
    sentence = "a mask of the keys, (B, 1, 1, S), gives other outputs than one of queries and keys"
    return [Finding(WRONG, question, sentence, "mask_argument_misread")]


def _ask_strides(function):
    """Ask with the same values in another order in memory."""
    if function.strided is None:
        return []
    given = function.example()
    if largest(function.strided(*given), function.outputs(*given)) <= function.precision:
        return [Finding(RIGHT, "memory layout", "strides change nothing")]
    sentence = "the same values in another order in memory have other outputs"
    return [Finding(WRONG, "memory layout", sentence, "strides_ignored")]


def _ask_precision(function):
    """Ask whether single and double precision agree, and whether half precision stays finite."""
    if function.single is None:
        return []
    given = function.example()
    with np.errstate(all="ignore"):
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
