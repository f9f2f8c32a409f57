"""The mask as applied: the table of who depends on whom against what is claimed, and its names."""

from functools import partial

import numpy as np

from tutorial_lib.probe.dependence import (
    HEADS,
    Pattern,
    dependence,
    off_diagonal,
    simplest_pattern,
    table_of,
)
from tutorial_lib.probe.report import broken, described, passed
from tutorial_lib.probe.subject import changed, largest, tokens

LEAST = 14  # tokens


def length_for(claims):
    """Return how many tokens show the claimed mask."""
    window, block = claims.get("window") or 0, claims.get("block") or 0
    return max(LEAST, window + claims.get("sinks", 0) + 4, 2 * block + 3)


def ask_mask(subject, table, claims, *, named=True):
    """Compare a table (T, T) with the claims; return the findings and the expected table."""
    pattern, one = claims.pattern(), np.eye(len(table), dtype=bool)
    expected = _expected(table, claims, pattern)
    wrong = off_diagonal(table) != off_diagonal(expected)
    if not off_diagonal(table).any() and (pattern is None or wrong.any()):
        sentence = "no output depends on any token but its own"
        if subject.memory is not None:
            return described("mask", sentence), expected
        return broken("mask", sentence, named and name_alone(subject)), expected
    if not claims.masks:
        found = simplest_pattern(table) or "of no regular form"
        return described("mask", str(found)), None
    if not wrong.any():
        return passed("mask", _as_claimed(table, pattern, claims)), expected
    second = table_of(subject, len(table) + 3, seed=1)
    name, hints = mask_names([off_diagonal(table), off_diagonal(second)], claims)
    if name == "no_mask" or (table | one).all():
        name, hints = (named and name_unmasked(subject)) or "hidden_keys_seen", ()
    return broken("mask", where(table, wrong), name, hints), expected


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


def where(table, wrong):
    """Say which token is seen, or is not seen, against what a table should be."""
    i, j = np.argwhere(wrong)[-1]
    verb = "depends" if table[i, j] else "does not depend"
    more, fewer = int(table[wrong].sum()), int((~table[wrong]).sum())
    return f"output {i} {verb} on token {j}; {more} pairs too many are seen, {fewer} too few"


def mask_names(tables, claims):
    """Return the mistake whose mask all tables of who sees whom show, and what else would.

    Tables without a diagonal are compared without one. If no mistake or several show these tables,
    the name says whether keys are seen that should be hidden, or the other way round.
    """

    def fits(mask):
        masks = [mask(len(table)) for table in tables]
        if not np.diagonal(tables[0]).any():
            masks = [off_diagonal(mask) for mask in masks]
        return all(map(np.array_equal, masks, tables))

    found = tuple(dict.fromkeys(name for name, mask in candidates(claims) if fits(mask)))
    if len(found) == 1:
        return found[0], ()
    table = tables[0]
    expected = _expected(table, claims, claims.pattern())
    more, fewer = (table & ~expected).any(), off_diagonal(expected & ~table).any()
    place = {(True, False): "hidden_keys_seen", (False, True): "keys_not_seen"}
    return place.get((more, fewer), "mask_another"), found


def candidates(claims):
    """Yield names of mistakes with the mask that each would show, a function of T."""
    claimed = claims.masks
    expected = Pattern(**{"causal": False, **claimed})
    window = claims.get("window")
    for word, name, none in (("sinks", "sinks_missing", 0), ("block", "blocks_missing", None)):
        if claims.get(word):
            yield name, Pattern(**claimed | {word: none}).mask
    if window is not None:
        names = {window + 1: "window_one_wide", window - 1: "window_one_narrow"}
        yield "window_missing", Pattern(**claimed | {"window": None}).mask
        for other in {*range(1, window + 4), 2 * window, 2 * window - 1} - {window}:
            name = names.get(other, "window_another")
            yield name, Pattern(**claimed | {"window": other}).mask
    if claims.get("causal"):
        yield from _of_causal(expected)
    if claims.get("causal") is False:
        yield "mask_causal", Pattern(**claimed | {"causal": True}).mask
        for reach in range(2, LEAST) if window is None else ():
            yield "window_by_mistake", Pattern(**claimed | {"window": reach}).mask
    for shift in range(1, claims.get("block") or 0):
        yield "blocks_shifted", lambda T, n=shift: expected.mask(T + n)[n:, n:]
    for heads in HEADS:
        for split, join in ((True, True), (True, False), (False, True)):
            name = f"heads_{'split' if split else 'joined'}_without_transpose"
            yield name, partial(by_reshape, expected, H=heads, split=split, join=join)


def _of_causal(expected):
    """Yield what may be wrong with a causal mask."""
    yield "no_mask", Pattern().mask
    yield "mask_reversed", lambda T: expected.mask(T).T
    yield "mask_reversed", lambda T: ~expected.mask(T)
    yield "mask_without_itself", lambda T: expected.mask(T) & ~np.eye(T, dtype=bool)
    yield "mask_one_ahead", lambda T: expected.mask(T) | np.eye(T, k=1, dtype=bool)
    for ahead in (2, 3, 4):
        yield "mask_ahead", lambda T, k=ahead: np.tri(T, k=k, dtype=bool)
    for first in range(2, 9):
        yield "first_tokens_unmasked", lambda T, n=first: expected.mask(T) | (np.arange(T) < n)
        yield "first_tokens_unmasked", lambda T, n=first: expected.mask(T) | _block_of(T, T, n)
        yield "mask_by_blocks", lambda T, n=first: expected.mask(T) | _block_of(T, n, T)
    for reach in range(2, LEAST):
        yield "mask_both_ways", Pattern(False, reach).mask
        yield "later_tokens_unmasked", lambda T, w=reach: ~np.tri(T, k=-w, dtype=bool)
        yield "mask_both_ways", Pattern(False, block=reach).mask


def _block_of(T, length, first):
    """Return who is in the block of whom, of blocks of a length, among the first tokens."""
    block = np.where(np.arange(T) < first, np.arange(T) // length, -1 - np.arange(T))
    return block[:, None] == block


def by_reshape(pattern, T, *, H, split, join):
    """Return the table of a layer that splits, or joins, its H heads by a reshape alone.

    Each head has one feature; a mask is applied to ones, so that nothing cancels.
    """
    X = np.repeat(np.eye(T)[..., None], H, axis=-1)  # text s has token s alone
    heads = X.reshape(T, H, T) if split else X.swapaxes(1, 2)
    heads = heads @ (pattern.mask(T) | np.eye(T, dtype=bool)).T
    Y = heads.reshape(T, T, H) if join else heads.swapaxes(1, 2)
    return Y.any(axis=-1).T


def name_unmasked(subject):
    """Name what lets every token be seen, or return None."""
    X, others = tokens(2, (LEAST, subject.d_model))
    given = {"positions": np.arange(LEAST)[None, ::-1]} if "positions" in subject.takes else {}
    Y, back = subject.outputs(X[None])[0], subject.outputs(X[None, ::-1], **given)[0]
    if subject.same(Y, back[::-1]):
        return "no_mask"
    large = np.triu(_table_at(subject, 100 * X, 100 * others), 1)[:-3]
    seen = large.sum(axis=1) / np.arange(LEAST - 1, 2, -1)  # fraction of the later tokens
    finite = np.isfinite(subject.outputs(100 * X[None])).all()
    if finite and 0.0 in seen and set(seen) <= {0.0, 1.0}:
        return "hidden_score_zero"
    attended = seen.mean() < 0.8  # a softmax chooses among them
    return "no_mask" if attended and _values_arrive(subject, X) else None


def name_alone(subject):
    """Name what lets a token see itself alone."""
    X, others = tokens(2, (1, LEAST, subject.d_model))
    sum_of_outputs = subject.outputs(X) + subject.outputs(others)
    apart = largest(subject.outputs(X + others) + subject.outputs(0 * X), sum_of_outputs)
    if apart <= subject.tolerance:
        return "only_itself_seen"
    normed = np.ptp(subject.outputs(10 * X)) < 3 * np.ptp(subject.outputs(X))
    return "others_not_seen" if normed else "attention_over_heads"


def ask_alike(subject, claims):
    """Ask tokens that are all alike but for one: does it see itself, and how are heads joined."""
    return [*_ask_itself(subject, claims), *_ask_join(subject)]


def _ask_itself(subject, claims):
    """Ask whether a token sees itself: if not, other tokens that are all alike hide its own."""
    X, others = (np.repeat(x[:, :1], LEAST, axis=1) for x in tokens(2, (1, 1, subject.d_model)))
    there = X.copy()
    there[:, -2] = others[:, -2]
    same = largest(subject.outputs(X)[:, -2], subject.outputs(there)[:, -2])
    if subject.effect == 0 or same > subject.noise:
        return []
    if not claims.masks:
        return described("itself", "among tokens all alike, the output of another one is theirs")
    return broken("itself", None, "mask_without_itself")


def _ask_join(subject):
    """Ask whether heads are joined by a reshape alone, of tokens that are alike but for one.

    Then an output holds rows of several tokens or heads, and which outputs are equal shows it.
    """
    same, other = tokens(2, (1, 1, subject.d_model))
    alike = []
    for place in (3, 8):
        X = np.repeat(same, LEAST, axis=1)
        X[:, place] = other[:, 0]
        Y = subject.outputs(X)[0]
        alike.append(np.abs(Y[:, None] - Y).max(axis=-1) <= subject.tolerance)
    for heads in HEADS:
        rows = np.arange(LEAST * heads).reshape(LEAST, heads)
        for place, found in zip((3, 8), alike, strict=True):
            head, own = rows // LEAST, rows % LEAST == place
            equal = ((head[:, None] == head) & (own[:, None] == own)).all(axis=-1)
            if not off_diagonal(equal).any() or not np.array_equal(equal, found):
                break
        else:
            sentence = f"outputs are alike as those of {heads} heads joined by a reshape"
            return broken("join", sentence, "heads_joined_without_transpose")
    return []


def _values_arrive(subject, X):
    """Say whether others reach the first and the last output in more directions than heads.

    If they change the sum of its weights alone, each head gives it one direction.
    """
    batch = tokens(1, (2 * subject.d_model, *X.shape), seed=12)[0]
    for place in (0, -1):
        batch[:, place] = X[place]
        found = subject.outputs(batch)[:, place]
        sizes = np.linalg.svd(found - found.mean(axis=0), compute_uv=False)
        if (sizes > 1e-6 * sizes[0]).sum() <= subject.d_model / 2:
            return False
    return True


def ask_large_scores(subject, table, claims):
    """Ask whether outputs stay finite at large scores, and whether hidden tokens are seen."""
    X, others = tokens(2, (len(table), subject.d_model), size=100.0)
    Y = subject.outputs(X[None])
    if not np.isfinite(Y).all():
        sentence = "tokens a hundred times as large give outputs that are not finite"
        # where a square, or a norm, would not overflow
        smaller = np.isfinite(subject.outputs(X[None] / 10)).all()
        hints = ("maximum_not_subtracted",) if smaller else ()
        return broken("large scores", sentence, "not_finite_at_large_scores", hints)
    pattern = claims.pattern() or Pattern(causal=not np.triu(table, 1).any())
    hidden = ~pattern.mask(len(table)) & ~off_diagonal(table)
    larger = (_table_at(subject, size * X, size * others) for size in (1, 10))
    causal = pattern.causal and not np.triu(table, 1).any()
    if (causal and _first_moves(subject)) or any(off_diagonal(t & hidden).any() for t in larger):
        return broken("large scores", None, "mask_not_low_enough")
    return passed("large scores", "finite, and nothing more is seen")


def _first_moves(subject):
    """Say whether later tokens move the first output of any of 32 texts of large tokens.

    One is enough whose first token has a score with itself that is below what hides the others.
    """
    X, others = tokens(2, (32, 3, subject.d_model), size=20.0, seed=19)
    others[:, 0] = X[:, 0]
    Y, moved = subject.outputs(X), subject.outputs(others)
    return changed(Y[:, 0], moved[:, 0], max(subject.noise, 1e-9 * np.abs(Y).max())).any()


def _table_at(subject, X, others):
    """Return the table of these tokens; outputs may differ by rounding, beside their size."""
    size = np.nan_to_num(np.abs(subject.outputs(X[None])), posinf=0.0).max()
    tolerance = max(subject.noise, 1e-9 * size)
    return dependence(subject.outputs, X, others, tolerance=tolerance)
