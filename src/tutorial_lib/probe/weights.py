"""What the weights of a function of Q, K and V are asked, once they can be read."""

import numpy as np

from tutorial_lib.probe.dependence import off_diagonal, simplest_pattern
from tutorial_lib.probe.masks import mask_names
from tutorial_lib.probe.reference import LAWS, SCALES
from tutorial_lib.probe.report import DESCRIBED, RIGHT, WRONG, Finding
from tutorial_lib.probe.subject import largest, tokens

B = 2


def depends_of(weights):
    """Return which query gives which key a weight, in any sequence and head, (T, S)."""
    return ~(abs(weights) <= 1e-30).all(axis=(0, 1))


def hidden_in_a_head(weights):
    """Return which key has no weight in some head, (T, S)."""
    return (abs(weights) <= 1e-30).all(axis=0).any(axis=0)


def ask_row_sums(function, weights, claims, facts):
    """Ask what a row of weights sums to."""
    rows = weights.sum(axis=-1)
    if abs(rows - 1).max() <= function.precision:
        facts["row_sum"] = 1.0
        return [Finding(RIGHT, "row sums", "1 in every row")]
    facts["row_sum"] = (float(rows.min()), float(rows.max()))
    sentence = f"between {rows.min():.3g} and {rows.max():.3g}"
    if "row_sum" in claims and claims["row_sum"] is None:
        if rows.max() <= 1 + function.precision and not _one_sink(function):
            sentence = "what a row leaves to a sink is not the same in every row"
            return [Finding(WRONG, "row sums", sentence, "sink_not_in_every_row")]
        return [Finding(DESCRIBED, "row sums", sentence)]
    cut = rows.max() <= 1 + function.precision and "row_sum" not in claims
    if cut and not _cut_after_softmax(weights, function.precision):
        sentence += ": a sink, or weights that were cut; claim row_sum=1 or None"
        return [Finding(DESCRIBED, "row sums", sentence)]
    return [Finding(WRONG, "row sums", sentence, "row_sum_not_one")]


def _one_sink(function):
    """Say whether queries of 0 leave the same to a sink, beside the own key, in every row."""
    Q, K = function.inputs()
    weights = function.weights(0 * Q, K)
    own = np.diagonal(weights, axis1=-2, axis2=-1)
    with np.errstate(all="ignore"):
        left = (1 - weights.sum(axis=-1)) / own
    return bool((np.ptp(left, axis=-1) <= 1e-3 * (1 + np.abs(left).max())).all())


def _cut_after_softmax(weights, precision):
    """Say whether rows that see every key sum to 1, and shorter ones to less."""
    sees_all = (weights > 0).all(axis=-1)
    rows = weights.sum(axis=-1)
    return sees_all.any() and abs(rows[sees_all] - 1).max() <= precision < abs(rows - 1).max()


def ask_mask(function, depends, claims, weights):
    """Ask the mask as applied against the claimed one; here the diagonal counts, too."""
    if not claims.masks:
        return [Finding(DESCRIBED, "mask", str(simplest_pattern(depends) or "of no regular form"))]
    pattern, T = claims.pattern(), len(depends)
    expected = depends & np.tri(T, dtype=bool) if pattern is None else pattern.mask(T)
    if claims.get("causal") is not False:
        expected = expected | np.eye(T, dtype=bool)
    gap = hidden_in_a_head(weights) & expected if claims.pattern() else np.zeros_like(expected)
    if gap.any() and np.array_equal(depends, expected):
        i, j = np.argwhere(gap)[-1]
        sentence = f"in some head query {i} does not see key {j}, in others it does"
        return [Finding(WRONG, "mask", sentence, "mask_of_one_head")]
    if np.array_equal(depends, expected):
        return [Finding(RIGHT, "mask", f"as claimed: {simplest_pattern(depends) or 'drawn above'}")]
    wrong = depends != expected
    i, j = np.argwhere(wrong)[-1]
    verb = "sees" if depends[i, j] else "does not see"
    sentence = f"query {i} {verb} key {j}; {int(wrong.sum())} pairs are other than claimed"
    second = depends_of(function.weights(*function.inputs(T + 3, T + 3, seed=4)))
    name, hints = mask_names([depends, second], claims)
    name = "hidden_keys_seen" if name == "no_mask" else name  # the softmax may be cut instead
    return [Finding(WRONG, "mask", sentence, name, hints)]


def ask_scale(function, claims, facts):
    """Ask which factor scores have, at two widths."""
    factors, question = [_factor(function, d_k) for d_k in function.widths], "scale"
    if any(factor is None for factor in factors):
        sentence = "log-ratios of weights are no multiple of q · k"
        if "scale" not in claims:
            return [Finding(DESCRIBED, question, sentence)]
        return [Finding(WRONG, question, sentence, "softmax_of_other_scores")]
    found = _law(function, factors)
    facts["scale"] = found or tuple(factors)
    at = (f"{factor:.4g} at d_k = {d}" for factor, d in zip(factors, function.widths, strict=True))
    sentence = found or ", ".join(at)
    if "scale" not in claims:
        return [Finding(DESCRIBED, question, sentence)]
    if found == claims["scale"]:
        return [Finding(RIGHT, question, f"{sentence}, as claimed")]
    name = SCALES.get((claims["scale"], found), "scale_another")
    if found is None and np.ptp(factors) <= 1e-3 * factors[0]:
        name = "scale_of_fixed_width"
    return [Finding(WRONG, question, f"{sentence}, and claimed is {claims['scale']}", name)]


def _law(function, factors):
    """Return the law that gives these factors at the two widths, in words, or None."""
    allowed, sizes = max(1e-3, function.precision), (function.heads[0], function.length)
    for word, law in LAWS.items():
        if np.allclose(factors, [law(d_k, *sizes) for d_k in function.widths], allowed):
            return word
    return None


def _factor(function, d_k):
    """Fit the factor of the scores of the last query, or return None."""
    H, G = function.heads
    Q, K = function.inputs(d_k=d_k, size=0.5)
    K = K.copy()
    K[:, :, 1] = K[:, :, 0] + tokens(1, (B, G, d_k), seed=6)[0]
    weights = function.weights(Q, K)[:, :, -1]  # (B, H, S)
    with np.errstate(divide="ignore", invalid="ignore"):  # without what the distance alone does
        weights = weights / function.weights(0 * Q, K)[:, :, -1]
    weights = np.nan_to_num(weights, posinf=0.0)
    factors = []
    for order in (np.arange(H) // (H // G), np.arange(H) % G):
        products = np.einsum("bhd,bhsd->bhs", Q[:, :, -1], K[:, order])
        factors.append(_slope(weights, products, function.precision))
    return next((factor for factor in factors if factor is not None), None)


def _slope(weights, products, precision):
    """Return the one slope of the log-weights against the products in all rows, or None."""
    slopes = []
    for row, x in zip(*(x.reshape(-1, x.shape[-1]) for x in (weights, products)), strict=True):
        seen = row > 0
        if seen.sum() < 3:
            return None
        slope, offset = np.polyfit(x[seen], np.log(row[seen]), 1)
        if abs(slope * x[seen] + offset - np.log(row[seen])).max() > max(1e-3, 5 * precision):
            return None
        slopes.append(slope)
    return (
        float(np.mean(slopes))
        if np.ptp(slopes) <= max(1e-3, 5 * precision) * abs(np.mean(slopes))
        else None
    )


def ask_bias(function, claims, facts):
    """Ask what equal keys leave of the weights: a bias by distance."""
    Q, K = function.inputs()
    equal = np.repeat(K[:, :, :1], function.length, axis=2)
    last = function.weights(Q, equal)[0, :, -1]  # (H, S)
    seen = last > 0
    if (seen.sum(axis=-1) < 2).any():
        return [Finding(DESCRIBED, "bias", "cannot be asked: the last query sees one key or none")]
    steps = np.diff(np.log(np.where(seen, last, 1.0)), axis=-1)[seen[:, 1:] & seen[:, :-1]]
    sentence, facts["bias"] = "keys of unlike distance, in no order", "other"
    if np.abs(steps).max() <= 100 * function.precision:
        sentence, facts["bias"] = "none: equal keys have equal weights", "none"
    elif (steps > 0).all():
        sentence, facts["bias"] = "nearer keys have larger weights, in every head", "nearer"
    elif (steps < 0).all():
        sentence = "farther keys have larger weights, in every head"
    claimed = claims.get("bias")
    if claimed == "alibi" and facts["bias"] == "nearer":
        return _slopes_as_claimed(function, steps.reshape(function.heads[0], -1))
    if claimed in (None, facts["bias"]):
        return [Finding(DESCRIBED if claimed is None else RIGHT, "bias", sentence)]
    farther = claimed == "nearer" and (steps < 0).all()
    name = "bias_to_farther_keys" if farther else "bias_another"
    return [Finding(WRONG, "bias", f"{sentence}; claimed is {claimed!r}", name)]


def _slopes_as_claimed(function, steps):
    """Compare what a key gains by one token, (H, …), with the slopes of ALiBi."""
    if abs(steps - paper_slopes(len(steps))[:, None]).max() <= 100 * function.precision:
        return [Finding(RIGHT, "bias", "the slopes of ALiBi, in every head")]
    slopes = ", ".join(f"{slope:.3g}" for slope in steps[:, 0])
    return [Finding(WRONG, "bias", f"the slopes of the heads are {slopes}", "bias_of_other_slopes")]


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
    sentence = (
        f"the mask is aligned to the {found} corner"
        if found
        else "another mask:\n    "
        + ("\n    ".join(" ".join("·■"[int(seen)] for seen in row) for row in depends))
    )
    claimed = claims.get("corner")
    if depends.all() and fewer.all():
        name = "mask_dropped_for_fewer_queries"
        return [Finding(WRONG, "fewer queries", "every query sees every key", name)]
    if claimed is None or found == claimed:
        sign = DESCRIBED if claimed is None else RIGHT
        return [Finding(sign, "fewer queries", sentence)]
    name = "mask_first_corner" if found == "first" else "mask_another_corner"
    return [Finding(WRONG, "fewer queries", f"{sentence}, and claimed is {claimed!r}", name)]


def ask_large_scores(function):
    """Ask whether weights stay finite, and rows sum to 1, at scores of 80 to a million."""
    Q, K = function.inputs()
    weights, question = function.weights(Q, K), "large scores"
    sums_to_1 = abs(weights.sum(axis=-1) - 1).max() <= function.precision
    large = [_weights_at(function, size) for size in _sizes(function)]
    finite = [bool(np.isfinite(found).all()) for found in large]
    high, low = _lost(function, Q, K) if sums_to_1 else (False, False)
    if not all(finite[:2]) or (function.precision >= 1e-2 and not finite[2]):
        name = "maximum_starts_too_high" if low and not high else "not_finite_at_large_scores"
        name = "maximum_not_subtracted" if high and finite[0] else name
        name = "scores_overflow_in_half" if all(finite[:2]) else name
        return [Finding(WRONG, question, "weights are not finite at large scores", name)]
    more = depends_of(function.weights(Q * 30, K * 30)) & ~depends_of(weights)
    if more.any():
        i, j = np.argwhere(more)[0]
        sentence = f"query {i} sees key {j} where scores are large, else it does not"
        return [Finding(WRONG, question, sentence, "mask_not_low_enough")]
    low = low and not high and _factor(function, function.widths[0]) is not None
    allowed = max(1e-3, function.precision)
    kept = all(abs(found.sum(axis=-1) - 1).max() <= allowed for found in large)
    if low or (sums_to_1 and not kept):
        sentence = "rows do not sum to 1 where scores are large"
        name = "maximum_starts_too_high" if low else "row_sum_lost_at_large_scores"
        return [Finding(WRONG, question, sentence, name)]
    return [Finding(RIGHT, question, "finite, and rows sum to what they did")]


def _sizes(function):
    """Return sizes of scores; in half precision the largest overflows only if it is not scaled."""
    return 80.0, 1e4, 5e4 if function.precision >= 1e-2 else 1e6


def _weights_at(function, size):
    """Return the weights of scores of about this size."""
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
    right = np.array_equal(depends_of(function.weights(Q, K, mask=mask)), mask & whole)
    if not right:
        name = _argument_name(function, (Q, K), mask, whole)
        return [Finding(WRONG, "mask argument", "other keys are seen than it lets through", name)]
    if not _same_sink(function.weights(Q, K), function.weights(Q, K, mask=mask), mask):
        sentence = "what a row leaves to a sink, beside a key, changes with keys that are hidden"
        return [Finding(WRONG, "mask argument", sentence, "hidden_keys_in_the_sum")]
    mask[3] = False
    weights = function.weights(Q, K, mask=mask)
    return [Finding(RIGHT, "mask argument", "as handed over"), *_empty(weights, claims, facts)]


def _same_sink(weights, masked, mask):
    """Say whether the rest of a row, divided by the weight of a key, is the same under a mask."""
    rests = []
    for found in (weights, masked):
        with np.errstate(all="ignore"):
            rests.append((1 - found.sum(axis=-1, keepdims=True)) / found)
    seen = mask & (weights > 0) & (masked > 0)
    return bool(np.allclose(rests[0][seen], rests[1][seen], rtol=1e-3, atol=1e-3))


def _argument_name(function, QK, mask, whole):
    """Return the mistake of a mask that is not applied as handed over, or None."""
    seen, opposite = (depends_of(function.weights(*QK, mask=m)) for m in (mask, ~mask))
    if np.array_equal(opposite, mask & whole):
        return "mask_polarity"
    if np.array_equal(seen, mask) and function.weights(*QK, mask=mask | True).all():
        return "mask_replaces_causal"
    if np.array_equal(seen, mask.T & whole) and np.array_equal(opposite, ~mask.T & whole):
        return "mask_argument_transposed"
    with np.errstate(all="ignore"):
        gain = np.log(function.weights(*QK, mask=mask) / function.weights(*QK))
        gain = gain - gain[..., :1] + 1.0 * mask[:, :1]
    if largest(gain, mask * 1.0) <= 1e-4:
        return "mask_added_as_number"
    without, given = function.weights(*QK), function.weights(*QK, mask=mask)
    if largest(given, without) <= function.precision:
        return "mask_argument_ignored"
    smaller = (given < without)[..., whole & ~mask]
    low = np.array_equal(seen, whole) and smaller.mean() > 0.9
    return "mask_not_low_enough" if low else "mask_argument_misread"


def _empty(weights, claims, facts):
    """Say what a row in which everything is hidden returns; row 3 is one."""
    row, others = weights[:, :, 3], np.delete(weights, 3, axis=2)
    if not np.isfinite(others).all():
        sentence = "it makes other rows not finite"
        return [Finding(WRONG, "empty row", sentence, "empty_row_spoils_others")]
    found = "nan"
    if np.isfinite(row).all():
        found = "zero" if not row.any() else "mean" if np.ptp(row) <= 1e-4 / len(row) else "other"
    facts["empty_row"] = found
    claimed = claims.get("empty_row")
    if claimed in (None, found):
        sign = DESCRIBED if claimed is None else RIGHT
        return [Finding(sign, "empty row", f"{found}, where a mask hides everything")]
    name = f"empty_row_{found}" if found in ("nan", "mean") else "empty_row_another"
    return [Finding(WRONG, "empty row", f"{found}, and claimed is {claimed!r}", name)]
