"""The mask as applied: the table of who depends on whom against what is claimed, and its names."""

import numpy as np

from tutorial_lib.probe.dependence import (
    HEADS,
    Pattern,
    dependence,
    off_diagonal,
    simplest_pattern,
    table_of,
)
from tutorial_lib.probe.report import DESCRIBED, RIGHT, WRONG, Finding
from tutorial_lib.probe.subject import largest, tokens

LEAST = 14  # tokens


def length_for(claims):
    """Return how many tokens show the claimed mask."""
    window, block = claims.get("window") or 0, claims.get("block") or 0
    return max(LEAST, window + claims.get("sinks", 0) + 4, 2 * block + 3)


def ask_mask(table, second_table, claims, unmasked, alone):
    """Compare a table with the claims; return the findings and the expected table.

    Parameters
    ----------
    table : (T, T)
    second_table : a function that returns the table of T + 3 tokens
    unmasked : a function that returns the name of a mistake with which all tokens are seen, or None
    alone : the same, where a token sees itself alone
    """
    pattern = claims.pattern()
    expected = _expected(table, claims, pattern)
    wrong = off_diagonal(table) != off_diagonal(expected)
    if not off_diagonal(table).any() and (pattern is None or wrong.any()):
        sentence = "no output depends on any token but its own"
        return [Finding(WRONG, "mask", sentence, alone())], expected
    if not claims.masks:
        found = simplest_pattern(table) or "of no regular form"
        return [Finding(DESCRIBED, "mask", str(found))], None
    if not wrong.any():
        return [Finding(RIGHT, "mask", _as_claimed(table, pattern, claims))], expected
    name, hints = _named(table, second_table, claims, unmasked)
    return [Finding(WRONG, "mask", _where(table, wrong), name, hints)], expected


def _expected(table, claims, pattern):
    """Return the claimed table; `causal=True` alone leaves open what is seen of the past."""
    T = len(table)
    if pattern is not None:
        return pattern.mask(T)
    return table & np.tri(T, dtype=bool) if claims.get("causal") else table


def _as_claimed(table, pattern, claims):
    """Say that a mask is as claimed, and what was found besides."""
    found = simplest_pattern(table)
    if pattern is not None or found == Pattern(causal=True):
        return f"as claimed: {pattern or found}"
    return f"no later token is seen, as claimed; what is seen: {found or 'drawn above'}"


def _where(table, wrong):
    """Say which token is seen against the claim, or is not seen."""
    i, j = np.argwhere(wrong)[-1]
    seen = table[wrong]
    kind = "seen against the claim" if seen.all() else "claimed and not seen"
    kind = kind if seen.all() or not seen.any() else "other than claimed"
    verb = "depends" if table[i, j] else "does not depend"
    return f"output {i} {verb} on token {j}; {int(wrong.sum())} pairs are {kind}"


def _named(table, second_table, claims, unmasked):
    """Return the name on which two witnesses agree, or hints."""
    fits = [name for name, mask in _candidates(claims) if _same(mask(len(table)), table)]
    if off_diagonal(table).sum() == len(table) * (len(table) - 1) and claims.get("causal"):
        name = unmasked()
        return name, () if name else ("no_mask", "mask_after_softmax", "softmax_over_queries")
    found = simplest_pattern(table)
    if not fits and (found is None or found.causal or not claims.get("causal")):
        return None, ()
    second = second_table()
    if not fits:  # a window or a block, to both sides
        return ("mask_both_ways" if simplest_pattern(second) == found else None), ()
    agreed = [name for name, mask in _candidates(claims) if _same(mask(len(second)), second)]
    both = [name for name in dict.fromkeys(fits) if name in agreed]
    return (both[0], ()) if len(both) == 1 else (None, tuple(both))


def _same(mask, table):
    return np.array_equal(off_diagonal(mask), off_diagonal(table))


def _candidates(claims):
    """Yield names of mistakes with the mask that each would show, a function of T."""
    claimed = claims.masks
    expected = Pattern(**{"causal": False, **claimed})
    window = claims.get("window")
    if claims.get("sinks"):
        yield "sinks_missing", Pattern(**claimed | {"sinks": 0}).mask
    if claims.get("block"):
        yield "blocks_missing", Pattern(**claimed | {"block": None}).mask
    if window is not None:
        yield "window_one_wide", Pattern(**claimed | {"window": window + 1}).mask
        yield "window_one_narrow", Pattern(**claimed | {"window": window - 1}).mask
        yield "window_missing", Pattern(**claimed | {"window": None}).mask
    if claims.get("causal"):
        yield "mask_transposed", lambda T: expected.mask(T).T
        yield "mask_one_ahead", lambda T: expected.mask(T) | np.eye(T, k=1, dtype=bool)
    for heads in HEADS:
        yield "heads_split_without_transpose", lambda T, H=heads: split_by_reshape(expected, T, H)
        yield "heads_joined_without_transpose", lambda T, H=heads: joined_by_reshape(expected, T, H)


def split_by_reshape(pattern, T, H):
    """Return the table of a layer that splits (T, H * d_k) into (H, T, d_k) by a reshape alone."""
    row = np.arange(T * H)  # row h * T + t of the reshaped array has features of token row // H
    sees = np.kron(np.eye(H, dtype=bool), pattern.mask(T)) if H > 1 else pattern.mask(T)
    token = row // H
    table = np.zeros((T, T), bool)
    i, j = np.nonzero(sees)
    table[token[i], token[j]] = True
    return table


def joined_by_reshape(pattern, T, H):
    """Return the table of a layer that joins (H, T, d_v) into (T, H * d_v) by a reshape alone."""
    row = np.arange(T * H)  # row h * T + t is written into the output of token row // H
    table = np.zeros((T, T), bool)
    queries = np.repeat(np.eye(T, dtype=bool)[None], H, axis=0).reshape(T * H, T)
    sees = np.tile(pattern.mask(T), (H, 1)) | queries  # a query moves its own row
    np.logical_or.at(table, row // H, sees)
    return table


def unmasked(subject, *, one_by_one):
    """Return a function that names what lets every token be seen, or returns None."""

    def name():
        X, others = tokens(2, (LEAST, subject.d_model))
        Y, back = (
            subject.outputs(x[None], **_positions(subject, order))[0]
            for x, order in ((X, slice(None)), (X[::-1], slice(None, None, -1)))
        )
        if largest(Y, back[::-1]) <= subject.tolerance:
            return "no_mask"
        large = np.triu(_table_at(subject, 100 * X, 100 * others, one_by_one), 1)[:-3]
        seen = large.sum(axis=1) / np.arange(LEAST - 1, 2, -1)  # fraction of the later tokens
        if 0.0 in seen and set(seen) <= {0.0, 1.0}:
            return "hidden_score_zero"
        attended = seen.mean() < 0.8  # a softmax chooses among them
        return "no_mask" if attended and _values_arrive(subject, X) else None

    return name


def alone(subject):
    """Return a function that names what lets a token see itself alone, or returns None."""

    def name():
        X, others = tokens(2, (1, LEAST, subject.d_model))
        sum_of_outputs = subject.outputs(X) + subject.outputs(others)
        apart = largest(subject.outputs(X + others) + subject.outputs(0 * X), sum_of_outputs)
        if apart <= subject.tolerance:
            return "only_itself_seen"
        normed = np.ptp(subject.outputs(10 * X)) < 3 * np.ptp(subject.outputs(X))
        return None if normed else "attention_over_heads"

    return name


def _values_arrive(subject, X):
    """Say whether later tokens reach the first output in more directions than there are heads.

    If they change the sum of its weights alone, each head gives it one direction.
    """
    batch = np.repeat(X[None], 2 * subject.d_model, axis=0)
    batch[:, 1:] = tokens(1, batch[:, 1:].shape, seed=12)[0]
    first = subject.outputs(batch)[:, 0]
    sizes = np.linalg.svd(first - first.mean(axis=0), compute_uv=False)
    return (sizes > 1e-6 * sizes[0]).sum() > subject.d_model / 2


def _positions(subject, order):
    if "positions" not in subject.takes:
        return {}
    return {"positions": np.arange(LEAST)[None, order]}


def ask_large_scores(subject, table, claims, *, one_by_one):
    """Ask whether outputs stay finite at large scores, and whether hidden tokens are seen."""
    X, others = tokens(2, (len(table), subject.d_model), size=100.0)
    with np.errstate(all="ignore"):
        Y = subject.outputs(X[None])
    if not np.isfinite(Y).all():
        sentence = "tokens a hundred times as large give outputs that are not finite"
        with np.errstate(all="ignore"):  # where a square, or a norm, would not overflow
            smaller = np.isfinite(subject.outputs(X[None] / 10)).all()
        hints = ("maximum_not_subtracted",) if smaller else ()
        return [Finding(WRONG, "large scores", sentence, None, hints)]
    pattern = claims.pattern() or Pattern(causal=not np.triu(table, 1).any())
    hidden = ~pattern.mask(len(table))
    for size in (1, 10):
        large = _table_at(subject, size * X, size * others, one_by_one)
        more = off_diagonal(large) & ~table & hidden
        if more.any():
            i, j = np.argwhere(more)[0]
            sentence = f"output {i} depends on token {j} where scores are large, else it does not"
            return [Finding(WRONG, "large scores", sentence, "mask_not_low_enough")]
    return [Finding(RIGHT, "large scores", "finite, and nothing more is seen")]


def _table_at(subject, X, others, one_by_one):
    """Return the table of these tokens; outputs may differ by rounding, beside their size."""
    with np.errstate(all="ignore"):
        size = np.nan_to_num(np.abs(subject.outputs(X[None])), posinf=0.0).max()
    tolerance = max(subject.noise, 1e-9 * size)
    return dependence(subject.outputs, X, others, tolerance=tolerance, one_by_one=one_by_one)


def second_table(subject, T, *, one_by_one):
    """Return a function that makes the table of T + 3 tokens."""
    return lambda: table_of(subject, T + 3, one_by_one=one_by_one, seed=1)
