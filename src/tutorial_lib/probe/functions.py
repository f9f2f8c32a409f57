"""What a function of Q, K and V is asked: here the weights themselves can be read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tutorial_lib.probe import weights
from tutorial_lib.probe.dependence import simplest_pattern
from tutorial_lib.probe.masks import LEAST, length_for
from tutorial_lib.probe.numerics import agree, disagreement, gradient_findings
from tutorial_lib.probe.report import RIGHT, WRONG, Finding, Report, answered, without_names
from tutorial_lib.probe.subject import ProbeError, largest, tokens

B = 2


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
    gradient : a function of Q, K, V and the gradient of the output, which returns three, or None
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

    @cached_property
    def precision(self):
        """What equal weights may differ by: single precision is told by what comes back."""
        Q, K = self.inputs(2, 2, self.widths[0])
        return 1e-6 if np.asarray(self.run(Q, K, K)).dtype == np.float64 else 1e-4

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


def probe_function(function, claims):
    """Ask a function all questions; return a Report."""
    function = replace(function, length=length_for(claims))
    Q, K = function.inputs()
    read_weights = function.weights(Q, K)
    depends, facts = weights.depends_of(read_weights), {}
    findings = _ask_calls(function)
    if findings[-1].name == "values_not_used":  # then no weights can be read
        return Report(tuple(findings))
    findings += [*_ask_batch(function), *_ask_own_heads(function)]
    findings += weights.ask_row_sums(function, read_weights, claims, facts)
    sound = all(found.sign != WRONG for found in findings)
    asked = weights.ask_mask(depends, claims, read_weights, function, (Q, K))
    for question, ask in _questions(function, claims, facts).items():
        asked += answered(question, ask)
    findings += asked if sound else without_names(asked)
    pattern = claims.pattern()
    expected = None if pattern is None else pattern.mask(function.length)
    return Report(tuple(findings), depends, expected, simplest_pattern(depends), facts)


def _questions(function, claims, facts):
    """Return what a function is asked once its weights are read, by question."""
    return {
        "KV heads": lambda: _ask_kv_heads(function, claims, facts),
        "values": lambda: _ask_values(function),
        "scale": lambda: weights.ask_scale(function, claims, facts),
        "bias": lambda: weights.ask_bias(function, claims, facts),
        "fewer queries": lambda: weights.ask_fewer_queries(function, claims, facts),
        "large scores": lambda: weights.ask_large_scores(function),
        "mask argument": lambda: weights.ask_mask_argument(function, claims, facts),
        "precision": lambda: _ask_precision(function),
        "gradient": lambda: _ask_gradient(function),
    }


def _ask_calls(function):
    """Ask whether one input has one output, and stays as it is."""
    given = (*function.inputs(), function.inputs(seed=2)[1])
    before = [array.copy() for array in given]
    first = np.asarray(function.run(*given), dtype=float)
    findings = []
    if not all(map(np.array_equal, given, before)):
        sentence = "the call writes into its input"
        findings.append(Finding(WRONG, "input", sentence, "input_overwritten"))
    function.outputs(*(array[::-1] for array in before))
    if largest(first, function.outputs(*before)) <= function.precision:
        Q, K, V = before
        moved = [largest(first, function.outputs(Q, *KV)) for KV in ((K, V[::-1]), (K[::-1], V))]
        if moved[0] <= function.precision < moved[1]:
            sentence = "other values have the same output"
            return [*findings, Finding(WRONG, "values", sentence, "values_not_used")]
        return [*findings, Finding(RIGHT, "calls", "one input, one output")]
    hints = ("random_in_evaluation", "state_between_calls")
    sentence = "one input has another output at another call"
    return [*findings, Finding(WRONG, "calls", sentence, None, hints)]


def _ask_batch(function):
    """Ask whether the sequences of a batch are apart."""
    first = [array[:1] for array in (*function.inputs(), function.inputs(seed=2)[1])]
    others = [array[1:] for array in (*function.inputs(seed=5), function.inputs(seed=6)[1])]
    both = map(np.concatenate, zip(first, others, strict=True))
    if largest(function.outputs(*both)[:1], function.outputs(*first)) <= function.precision:
        return [Finding(RIGHT, "batch", "each sequence for itself")]
    return [Finding(WRONG, "batch", "a sequence in a batch has other outputs than alone")]


def _ask_kv_heads(function, claims, facts):
    """Ask which key head, and which value head, serves which query head."""
    H, G = function.heads
    served = [_served(function, of) for of in (1, 2)]
    repeated, tiled = np.arange(H) // (H // G), np.arange(H) % G
    found = None
    for word, order in (("repeated", repeated), ("tiled", tiled)):
        if all(np.array_equal(table, order[:, None] == np.arange(G)) for table in served):
            found = found or word
    if found is None:
        sentence = "a head of K or V serves other query heads than its own group"
        return [Finding(WRONG, "KV heads", sentence, _kv_name(served, (repeated, tiled)))]
    if G in (1, H):
        return [Finding(RIGHT, "KV heads", "one for all" if G == 1 else "one per query head")]
    facts["key_heads"] = found
    claimed = claims.get("key_heads", "repeated")
    if found == claimed:
        return [Finding(RIGHT, "KV heads", f"{found}, head 0 of K serves {H // G} query heads")]
    return [Finding(WRONG, "KV heads", f"{found}, not {claimed}", f"key_heads_{found}")]


def _kv_name(served, orders):
    """Return the mistake in who serves whom, for keys and for values, or None."""
    tables = [order[:, None] == np.arange(served[0].shape[1]) for order in orders]
    if {True} == {any(np.array_equal(table, found) for table in tables) for found in served}:
        return "keys_and_values_in_other_orders"
    if not np.array_equal(*served) or (served[0].sum(axis=1) != 1).any():
        return None
    return "first_key_head_for_all" if served[0][:, 0].all() else "key_heads_of_another_group"


def _ask_own_heads(function):
    """Ask whether the query of a head moves its own output alone."""
    served = _served(function, 0)
    if np.array_equal(served, np.eye(len(served))):
        return [Finding(RIGHT, "heads", "each query moves its own head")]
    sentence = "the query of a head moves outputs of other heads, or not its own"
    permuted = (served.sum(axis=0) == 1).all() and (served.sum(axis=1) == 1).all()
    return [Finding(WRONG, "heads", sentence, "heads_in_another_order" if permuted else None)]


def _served(function, of):
    """Return which head of the output a head of Q, K or V (0, 1, 2) moves, (H, H or G)."""
    given = [*function.inputs(), function.inputs(seed=3)[1]]
    others = [*function.inputs(seed=9), function.inputs(seed=8)[1]]
    base = function.outputs(*given)
    moved = []
    for head in range(given[of].shape[1]):
        there = given[of].copy()
        there[:, head] = others[of][:, head]
        changed = abs(function.outputs(*given[:of], there, *given[of + 1 :]) - base)
        moved.append(~(changed.max(axis=(0, 2, 3)) <= 1e-9))
    return np.transpose(moved)


def _ask_values(function):
    """Ask whether an output is the sum of values by these weights, head by head."""
    H, G = function.heads
    Q, K = function.inputs()
    V = tokens(1, K.shape, seed=3)[0]
    weights, out = function.weights(Q, K), function.outputs(Q, K, V)
    mixes = [weights @ V[:, heads] for heads in (np.arange(H) // (H // G), np.arange(H) % G)]
    if min(largest(mix, out) for mix in mixes) <= 10 * function.precision:
        return [Finding(RIGHT, "values", "each output is its weights times the values")]
    return [Finding(WRONG, "values", "outputs are not the weights times the values")]


def _ask_precision(function):
    """Ask whether single and double precision agree, and whether half precision stays finite."""
    if function.single is None:
        return []
    given = (*function.inputs(), function.inputs(seed=2)[1])
    with np.errstate(all="ignore"):
        single = np.asarray(function.single(*given), dtype=float)
        others = np.asarray(function.single(given[0][::-1], *given[1:]), dtype=float)
    findings = disagreement(single, function.outputs(*given))
    if findings[0].sign == WRONG and largest(single, others) <= 1e-9:
        findings = [replace(findings[0], name="scores_lost_in_single")]
    return findings + answered("half precision", lambda: _ask_half(function, given))


def _ask_half(function, given):
    """Ask for what is finite in double and not in half, with a row that sees nothing if it can."""
    mask = np.tri(function.length, dtype=bool)
    mask[3] = False
    context = {"mask": mask} if "mask" in function.takes else {}
    if not _lost_in_half(function, given, context):
        return [Finding(RIGHT, "half precision", "finite where double precision is")]
    Q, *KV = given
    name = None
    if not _lost_in_half(function, (Q / 1000, *KV), context):
        name = "scores_overflow_in_half"
    elif context and not _lost_in_half(function, given, {}):
        name = "mask_value_overflows_in_half"
    return [Finding(WRONG, "half precision", "not finite where double precision is", name)]


def _lost_in_half(function, given, context):
    """Say whether anything is finite in double precision, and not in half."""
    with np.errstate(all="ignore"):
        half = np.asarray(function.half(*given, **context), dtype=float)
        return bool((np.isfinite(function.outputs(*given, **context)) & ~np.isfinite(half)).any())


def _ask_gradient(function):
    """Ask whether each gradient agrees with differences, under a mask where one is taken."""
    if function.gradient is None:
        return []
    H, G = function.heads
    masked = "mask" in function.takes
    (found,) = gradient_findings(_wrong_gradients(function, masked))
    if found.sign == RIGHT or found.name:
        return [found]
    if masked and not _wrong_gradients(function, False):
        return [replace(found, name="gradient_without_mask", hints=())]
    if G < H and not _wrong_gradients(replace(function, heads=(G, G)), masked):
        return [replace(found, name="gradient_of_shared_heads", hints=())]
    name = _gradient_formula(function)
    return [replace(found, name=name, hints=() if name else found.hints)]


def _gradient_formula(function):
    """Return the mistake whose formula gives the gradient of Q, or None."""
    H, G = function.heads
    Q, K = function.inputs()
    V, order = tokens(1, K.shape, seed=3)[0], np.arange(H) // (H // G)
    dY = tokens(1, (*Q.shape[:3], V.shape[-1]), seed=4)[0]
    weights, found = function.weights(Q, K), function.gradient(Q, K, V, dY)[0]
    dscores = weights * (dY @ np.swapaxes(V[:, order], -1, -2))
    right = dscores - weights * dscores.sum(axis=-1, keepdims=True)
    for name, wrong in {
        "gradient_without_row_sum": dscores * Q.shape[-1] ** -0.5,
        "gradient_without_scale": right,
    }.items():
        if largest(wrong @ K[:, order], found) <= 1e-6 * abs(found).max():
            return name
    return None


def _wrong_gradients(function, masked):
    """Return the gradients that do not agree with differences: a word for each, and the array."""
    given = [*function.inputs(), function.inputs(seed=2)[1]]
    mask = {"mask": np.tri(function.length, dtype=bool)} if masked else {}
    dY = tokens(1, function.outputs(*given).shape, seed=4)[0]
    wrong = []
    for k, gradient in enumerate(function.gradient(*given, dY, **mask)):
        direction = tokens(1, given[k].shape, seed=(6, k))[0]

        def outputs(step, k=k, direction=direction):
            moved = [array + step * direction if i == k else array for i, array in enumerate(given)]
            return function.outputs(*moved, **mask)

        if not agree(float((gradient * direction).sum()), outputs, dY):
            wrong.append((f"that of {'QKV'[k]}", gradient))
    return wrong
