"""What a function of Q, K and V is asked: here the weights themselves can be read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tutorial_lib.probe.dependence import Pattern, off_diagonal, read
from tutorial_lib.probe.masks import LEAST, length_for
from tutorial_lib.probe.report import DESCRIBED, RIGHT, WRONG, Finding, Report
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
    """

    run: Callable
    heads: tuple
    takes: frozenset = frozenset()
    length: int = LEAST

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
        out = np.asarray(self.run(Q.copy(), K.copy(), V.copy(), **context), dtype=float)
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
    weights = function.weights(Q, K)
    depends = _depends(weights)
    facts, findings = {}, []
    findings += _sums(function, weights, claims, facts)
    findings += _mask(depends, claims, weights, function, (Q, K))
    findings += _heads(function, claims, facts)
    findings += _values(function)
    findings += _scale(function, claims, facts)
    findings += _bias(function, facts)
    findings += _fewer_queries(function, claims, facts)
    findings += _large(function)
    findings += _argument(function, claims, facts)
    pattern = claims.pattern()
    expected = None if pattern is None else pattern.mask(function.length)
    return Report(tuple(findings), depends, expected, read(depends), facts)


def _depends(weights):
    """Return which query gives which key a weight, in any sequence and head, (T, S)."""
    return ~(abs(weights) <= 1e-30).all(axis=(0, 1))


def _sums(function, weights, claims, facts):
    """Ask what a row of weights sums to."""
    rows, columns = weights.sum(axis=-1), weights.sum(axis=-2)
    if abs(rows - 1).max() <= function.precision:
        facts["row_sum"] = 1.0
        return [Finding(RIGHT, "row sums", "1 in every row")]
    facts["row_sum"] = (float(rows.min()), float(rows.max()))
    sentence = f"between {rows.min():.3g} and {rows.max():.3g}"
    if "row_sum" in claims and claims["row_sum"] is None:
        return [Finding(DESCRIBED, "row sums", sentence)]
    name = None
    if abs(columns - 1).max() <= function.precision:
        name = "softmax_over_queries"
    elif _one_or_none(weights.sum(axis=1), function.precision):
        name = "softmax_over_heads"
    elif _cut_after_softmax(weights, function.precision):
        name = "mask_after_softmax"
    elif rows.max() <= 1 + function.precision and "row_sum" not in claims:
        sentence += ": a sink, or weights that were cut; claim row_sum=1 or None"
        return [Finding(DESCRIBED, "row sums", sentence)]
    return [Finding(WRONG, "row sums", sentence, name)]


def _one_or_none(sums, precision):
    """Say whether each sum is 1, or 0 where a pair is hidden."""
    return np.minimum(abs(sums - 1), abs(sums)).max() <= precision


def _cut_after_softmax(weights, precision):
    """Say whether rows that see every key sum to 1, and shorter ones to less."""
    sees_all = (weights > 0).all(axis=-1)
    rows = weights.sum(axis=-1)
    return sees_all.any() and abs(rows[sees_all] - 1).max() <= precision < abs(rows - 1).max()


def _mask(depends, claims, weights, function, QK):
    """Ask the mask as applied against the claimed one; here the diagonal counts, too."""
    if not claims.masks:
        return [Finding(DESCRIBED, "mask", str(read(depends) or "of no regular form"))]
    pattern, T = claims.pattern(), len(depends)
    expected = depends & np.tri(T, dtype=bool) if pattern is None else pattern.mask(T)
    if claims.get("causal") is not False:
        expected = expected | np.eye(T, dtype=bool)
    if np.array_equal(depends, expected):
        return [Finding(RIGHT, "mask", f"as claimed: {read(depends) or 'drawn above'}")]
    wrong = depends != expected
    i, j = np.argwhere(wrong)[-1]
    verb = "sees" if depends[i, j] else "does not see"
    sentence = f"query {i} {verb} key {j}; {int(wrong.sum())} pairs are other than claimed"
    return [Finding(WRONG, "mask", sentence, _mask_name(depends, claims, weights, function, QK))]


def _mask_name(depends, claims, weights, function, QK):
    """Return the mistake that a wrong mask shows, twice."""
    T = len(depends)
    one = np.eye(T, dtype=bool)
    full = Pattern(**{"causal": False, **claims.masks}).mask(T)
    if depends.all() and claims.get("causal"):
        Q, K = QK
        back = function.weights(Q[:, :, ::-1], K[:, :, ::-1])[:, :, ::-1, ::-1]
        return "no_mask" if largest(weights, back) <= function.precision else None
    if np.array_equal(depends, full & ~one) and not np.diagonal(weights, axis1=-2, axis2=-1).any():
        return "mask_without_itself"
    window = claims.get("window")
    shapes = {
        "mask_transposed": lambda T: full.T if len(full) == T else Pattern(True).mask(T).T,
        "mask_one_ahead": lambda T: Pattern(True).mask(T) | np.eye(T, k=1, dtype=bool),
    }
    if window is not None:
        for name, other in (("wide", window + 1), ("narrow", window - 1)):
            shapes[f"window_one_{name}"] = Pattern(**claims.masks | {"window": other}).mask
        shapes["window_missing"] = Pattern(**claims.masks | {"window": None}).mask
    second = _depends(function.weights(*function.inputs(T + 3, T + 3, seed=4)))
    for name, mask in shapes.items():
        fits = np.array_equal(depends, mask(T)) and np.array_equal(second, mask(T + 3))
        if fits and not (name == "mask_transposed" and window is not None):
            return name
    return None


def _heads(function, claims, facts):
    """Ask which key head, and which value head, serves which query head."""
    H, G = function.heads
    served = [_served(function, of) for of in ("K", "V")]
    repeated, tiled = np.arange(H) // (H // G), np.arange(H) % G
    found = None
    for word, order in (("repeated", repeated), ("tiled", tiled)):
        if all(np.array_equal(table, order[:, None] == np.arange(G)) for table in served):
            found = found or word
    if found is None:
        sentence = "a head of K or V serves other query heads than its own group"
        return [Finding(WRONG, "KV heads", sentence)]
    if G in (1, H):
        return [Finding(RIGHT, "KV heads", "one for all" if G == 1 else "one per query head")]
    facts["key_heads"] = found
    claimed = claims.get("key_heads", "repeated")
    if found == claimed:
        return [Finding(RIGHT, "KV heads", f"{found}, head 0 of K serves {H // G} query heads")]
    return [Finding(WRONG, "KV heads", f"{found}, not {claimed}", f"key_heads_{found}")]


def _served(function, of):
    """Return which query head a head of K or V moves, (H, G)."""
    H, G = function.heads
    Q, K = function.inputs()
    V, others = tokens(2, K.shape, seed=3)
    base = function.outputs(Q, K, V)
    table = np.zeros((H, G), bool)
    for g in range(G):
        K_there, V_there = K.copy(), V.copy()
        if of == "K":
            K_there[:, g] = function.inputs(seed=9)[1][:, g]
        else:
            V_there[:, g] = others[:, g]
        moved = abs(function.outputs(Q, K_there, V_there) - base)
        table[:, g] = ~(moved.max(axis=(0, 2, 3)) <= 1e-9)
    return table


def _values(function):
    """Ask whether an output is the sum of values by these weights, head by head."""
    H, G = function.heads
    Q, K = function.inputs()
    V = tokens(1, K.shape, seed=3)[0]
    weights, out = function.weights(Q, K), function.outputs(Q, K, V)
    mixes = [weights @ V[:, heads] for heads in (np.arange(H) // (H // G), np.arange(H) % G)]
    if min(largest(mix, out) for mix in mixes) <= 10 * function.precision:
        return [Finding(RIGHT, "values", "each output is its weights times the values")]
    return [Finding(WRONG, "values", "outputs are not the weights times the values")]


LAWS = {
    "1/sqrt(d_k)": lambda d: d**-0.5,
    "1/d_k": lambda d: 1 / d,
    "1": lambda d: 1.0,
    "sqrt(d_k)": lambda d: d**0.5,
}
MISTAKES = {"1": "scale_missing", "1/d_k": "scale_without_root", "sqrt(d_k)": "scale_multiplied"}


def _scale(function, claims, facts):
    """Ask which factor scores have, at two widths."""
    factors = [_factor(function, d_k) for d_k in function.widths]
    if any(factor is None for factor in factors):
        return [Finding(DESCRIBED, "scale", "log-ratios of weights are no multiple of q · k")]
    laws = (
        w for w, law in LAWS.items() if np.allclose(factors, [*map(law, function.widths)], 1e-3)
    )
    found = next(laws, None)
    facts["scale"] = found or tuple(factors)
    at = (f"{factor:.4g} at d_k = {d}" for factor, d in zip(factors, function.widths, strict=True))
    sentence = found or ", ".join(at)
    if "scale" not in claims:
        return [Finding(DESCRIBED, "scale", sentence)]
    if found == claims["scale"]:
        return [Finding(RIGHT, "scale", f"{sentence}, as claimed")]
    name = MISTAKES.get(found) if claims["scale"] == "1/sqrt(d_k)" else None
    return [Finding(WRONG, "scale", f"{sentence}, and claimed is {claims['scale']}", name)]


def _factor(function, d_k):
    """Fit the factor of the scores of the last query, or return None."""
    H, G = function.heads
    Q, K = function.inputs(d_k=d_k, size=0.5)
    K = K.copy()
    K[:, :, 1] = K[:, :, 0] + tokens(1, (B, G, d_k), seed=6)[0]
    weights = function.weights(Q, K)[:, :, -1]  # (B, H, S)
    factors = []
    for order in (np.arange(H) // (H // G), np.arange(H) % G):
        products = np.einsum("bhd,bhsd->bhs", Q[:, :, -1], K[:, order])
        factors.append(_slope(weights, products))
    return next((factor for factor in factors if factor is not None), None)


def _slope(weights, products):
    """Return the one slope of the log-weights against the products in all rows, or None."""
    slopes = []
    for row, x in zip(*(x.reshape(-1, x.shape[-1]) for x in (weights, products)), strict=True):
        seen = row > 0
        if seen.sum() < 3:
            return None
        slope, offset = np.polyfit(x[seen], np.log(row[seen]), 1)
        if abs(slope * x[seen] + offset - np.log(row[seen])).max() > 1e-3:
            return None
        slopes.append(slope)
    return float(np.mean(slopes)) if np.ptp(slopes) <= 1e-3 * abs(np.mean(slopes)) else None


def _bias(function, facts):
    """Describe what equal keys leave of the weights: a bias by distance."""
    Q, K = function.inputs()
    equal = np.repeat(K[:, :, :1], function.length, axis=2)
    last = function.weights(Q, equal)[0, :, -1]  # (H, S)
    if not (last > 0).any(axis=-1).all():
        return [Finding(DESCRIBED, "bias", "cannot be asked: the last query sees nothing")]
    if np.ptp(np.where(last > 0, last, last.max()), axis=-1).max() <= function.precision:
        return [Finding(DESCRIBED, "bias", "none: equal keys have equal weights")]
    with np.errstate(divide="ignore"):
        steps = np.log(last[:, -1]) - np.log(last[:, -2])
    facts["bias_steps"] = tuple(steps)
    growing = "nearer keys more" if (steps > 0).all() else "not nearer keys in every head"
    return [Finding(DESCRIBED, "bias", f"equal keys have other weights by distance, {growing}")]


def _fewer_queries(function, claims, facts):
    """Ask, with fewer queries than keys, where a causal mask is aligned."""
    few = 5
    depends = _depends(function.weights(*function.inputs(few)))
    whole = _depends(function.weights(*function.inputs()))
    if not off_diagonal(np.tri(len(whole), dtype=bool) & whole).any() or np.triu(whole, 1).any():
        return []
    corners = {"last": whole[-few:], "first": whole[:few]}
    found = next((word for word, rows in corners.items() if np.array_equal(rows, depends)), None)
    facts["corner"] = found
    sentence = (
        f"the mask is aligned to the {found} corner"
        if found
        else "another mask:\n    "
        + ("\n    ".join(" ".join("·■"[seen] for seen in row) for row in depends))
    )
    claimed = claims.get("corner")
    if claimed is None or found == claimed:
        sign = DESCRIBED if claimed is None else RIGHT
        return [Finding(sign, "fewer queries", sentence)]
    name = "mask_first_corner" if found == "first" else None
    return [Finding(WRONG, "fewer queries", f"{sentence}, and claimed is {claimed!r}", name)]


def _large(function):
    """Ask whether weights stay finite at scores of 80 and of 10,000."""
    Q, K = function.inputs()
    finite = []
    for size in (80.0, 1e4):
        scale = np.sqrt(size / abs(np.einsum("bhtd,bhsd->bhts", Q[:, :1], K[:, :1])).max() * 4)
        finite.append(np.isfinite(function.weights(Q * scale, K * scale)).all())
    if all(finite):
        return [Finding(RIGHT, "large scores", "finite at scores of 10,000")]
    name = "maximum_not_subtracted" if finite[0] else None
    return [Finding(WRONG, "large scores", "weights are not finite at large scores", name)]


def _argument(function, claims, facts):
    """Ask a mask that is handed over: its polarity, and a row in which everything is hidden."""
    if "mask" not in function.takes:
        return []
    Q, K = function.inputs()
    mask = np.random.default_rng(1).random((function.length,) * 2) < 0.6
    mask |= np.eye(function.length, dtype=bool)
    whole = _depends(function.weights(Q, K))
    right = np.array_equal(_depends(function.weights(Q, K, mask=mask)), mask & whole)
    if not right:
        opposite = _depends(function.weights(Q, K, mask=~mask))
        name = "mask_polarity" if np.array_equal(opposite, mask & whole) else None
        return [Finding(WRONG, "mask argument", "other keys are seen than it lets through", name)]
    mask[3] = False
    weights = function.weights(Q, K, mask=mask)
    return [Finding(RIGHT, "mask argument", "as handed over"), *_empty(weights, claims, facts)]


def _empty(weights, claims, facts):
    """Say what a row in which everything is hidden returns; row 3 is one."""
    row, others = weights[:, :, 3], np.delete(weights, 3, axis=2)
    if not np.isfinite(others).all():
        return [Finding(WRONG, "empty row", "it makes other rows not finite")]
    found = "nan"
    if np.isfinite(row).all():
        found = "zero" if not row.any() else "mean" if np.ptp(row) <= 1e-4 / len(row) else "other"
    facts["empty_row"] = found
    claimed = claims.get("empty_row")
    if claimed in (None, found):
        sign = DESCRIBED if claimed is None else RIGHT
        return [Finding(sign, "empty row", f"{found}, where a mask hides everything")]
    name = f"empty_row_{found}" if found in ("nan", "mean") else None
    return [Finding(WRONG, "empty row", f"{found}, and claimed is {claimed!r}", name)]
