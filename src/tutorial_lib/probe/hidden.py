"""What a layer on hidden states is asked besides its mask; each question returns findings."""

from dataclasses import replace

import numpy as np

from tutorial_lib.probe.dependence import HEADS, off_diagonal, table_of
from tutorial_lib.probe.numerics import agree, disagreement, gradient_findings
from tutorial_lib.probe.report import DESCRIBED, RIGHT, WRONG, Finding
from tutorial_lib.probe.subject import changed, largest, tokens

T = 10
SHIFT = 3  # tokens of padding, and the step of other positions


def ask_batch(subject):
    """Ask whether the sequences of a batch are apart."""
    X, others = tokens(2, (3, T, subject.d_model))
    Y = subject.outputs(X)
    alone = np.concatenate([subject.outputs(x[None]) for x in X])
    swapped = X.copy()
    swapped[1, 4] = others[1, 4]  # another token 4 in sequence 1
    moved = changed(Y, subject.outputs(swapped), subject.noise)  # (3, T)
    if not moved[[0, 2]].any() and largest(Y, alone) <= subject.tolerance:
        return [Finding(RIGHT, "batch", "each sequence for itself")]
    one = subject.outputs(X.reshape(1, -1, subject.d_model)).reshape(Y.shape)
    name = "batch_as_one_sequence" if largest(one, Y) <= subject.tolerance else None
    if not moved[[0, 2]].any():
        sentence = "a sequence in a batch has other outputs than alone"
        return [Finding(WRONG, "batch", sentence, name)]
    if not np.delete(moved, 4, axis=1).any():
        name = "batch_as_tokens"
    elif name is None and _heads_of_others(subject):
        name = "heads_joined_across_batch"
    return [Finding(WRONG, "batch", "a token of sequence 1 moves other sequences", name)]


def _heads_of_others(subject):
    """Say whether sequence b moves those that get its heads if (H, B) is read as (B, H)."""
    tables = []
    for B in (3, 5):
        X, others = tokens(2, (B, T, subject.d_model), seed=17)
        moved = np.zeros((B, B), bool)
        for b in range(B):
            there = X.copy()
            there[b, 4] = others[b, 4]
            moved[:, b] = changed(subject.outputs(X), subject.outputs(there), subject.noise).any(1)
        tables.append(moved)
    for heads in HEADS:
        fits = []
        for moved in tables:
            B = len(moved)
            row = np.arange(B * heads)
            joined = np.zeros((B, B), bool)
            joined[row // heads, row % B] = True
            fits += [np.array_equal(moved, joined), not moved.all()]
        if all(fits[::2]) and any(fits[1::2]):
            return True
    return False


def ask_calls(subject):
    """Ask whether calls are apart, and whether the input stays as it is."""
    X, others = tokens(2, (1, T, subject.d_model))
    given = X.copy()
    first = np.array(subject.run(given), dtype=float)
    findings = []
    if not np.array_equal(given, X):
        sentence = "the call writes into its input"
        findings.append(Finding(WRONG, "input", sentence, "input_overwritten"))
    if not np.isfinite(first).all():
        sentence = f"{(~np.isfinite(first)).any(axis=-1).sum()} of {T} outputs are not finite"
        return [*findings, Finding(WRONG, "calls", sentence, "not_finite")]
    subject.outputs(others)
    later = [subject.outputs(X) for _ in range(3)]
    same = [largest(Y, later[-1]) <= subject.tolerance for Y in (first, *later[:-1])]
    if all(same):
        return [*findings, Finding(RIGHT, "calls", "one input, one output")]
    if same[-1]:
        sentence = "one input has another output after a call with other tokens"
        return [*findings, Finding(WRONG, "calls", sentence, "state_between_calls")]
    sentence = "one input has another output at each call"
    if _seeded(subject, X):
        return [*findings, Finding(WRONG, "calls", sentence, "random_in_evaluation")]
    hints = ("random_in_evaluation", "state_between_calls")
    return [*findings, Finding(WRONG, "calls", sentence, None, hints)]


def _seeded(subject, X):
    """Say whether one seed makes two calls alike."""
    outputs = []
    for _ in range(2):
        subject.seed()
        outputs.append(subject.outputs(X))
    return largest(*outputs) <= subject.tolerance


def ask_positions(subject, table, claims, facts):
    """Ask whether the order of the tokens matters, and whether it is only their distance.

    What is found goes into `facts`: "none", "relative", "absolute", "aware", or None where it
    cannot be asked.
    """
    facts["position"] = None
    found, how = _position(subject, table)
    facts["position"], claimed = found, claims.get("position")
    if found in (None, "aware"):
        sentence = f"order matters; {how}" if found else f"cannot be asked: {how}"
        if "handed over" not in how and claimed:
            sign = WRONG if claimed == "none" and found else DESCRIBED
            return [Finding(sign, "positions", f"{sentence}; so {claimed!r} is not confirmed")]
        if "handed over" not in how:
            return [Finding(DESCRIBED, "positions", sentence)]
        if claimed in ("relative", "absolute"):
            return [Finding(WRONG, "positions", sentence, "positions_ignored")]
        return [Finding(DESCRIBED, "positions", sentence, None, ("positions_ignored",))]
    words = {
        "none": "order does not matter",
        "relative": "only distances matter",
        "absolute": "the positions themselves matter",
    }
    sentence = f"{words[found]} ({how})"
    if claimed in (None, found):
        return [Finding(DESCRIBED if claimed is None else RIGHT, "positions", sentence)]
    name = _position_name(subject, table, claimed, found)
    return [Finding(WRONG, "positions", f"{sentence}, and claimed is {claimed!r}", name)]


def _position_name(subject, table, claimed, found):
    """Return the mistake in positions on which two witnesses agree, or None."""
    if found == "none" and _exchangeable(subject, table):
        return "positions_missing"
    nearly = (claimed, found) == ("relative", "absolute") and _nearly_relative(subject)
    return "positions_rounded" if nearly else None


def _nearly_relative(subject):
    """Say whether a shift of positions changes little, and no shift of a few tokens much."""
    if "positions" not in subject.takes:
        return False
    X, places = tokens(1, (1, T, subject.d_model))[0], np.arange(T)[None]
    Y = subject.outputs(X)
    return all(
        largest(subject.outputs(X, positions=places + shift), Y) <= 0.05 * subject.effect
        for shift in (1, SHIFT, 5 * SHIFT)
    )


def _exchangeable(subject, table):
    """Say whether all tokens that an output sees can be exchanged, its own apart."""
    row = max(range(T), key=lambda i: off_diagonal(table)[i, :T].sum())
    seen = [j for j in range(T) if table[row, j] and j != row]
    X = tokens(1, (1, T, subject.d_model), seed=14)[0]
    there = X.copy()
    there[0, seen] = X[0, seen[::-1]]
    return largest(subject.outputs(X)[0, row], subject.outputs(there)[0, row]) <= subject.tolerance


def _position(subject, table):
    """Return what positions do, and how that was seen."""
    row = max(range(T), key=lambda i: off_diagonal(table)[i, :T].sum())
    seen = [j for j in range(T) if table[row, j] and j != row]
    if len(seen) < 2:
        return None, "no output sees two other tokens"
    X = tokens(1, (1, T, subject.d_model))[0]
    exchanged = X.copy()
    exchanged[0, [seen[0], seen[-1]]] = X[0, [seen[-1], seen[0]]]
    Y, Y_exchanged = subject.outputs(X), subject.outputs(exchanged)
    if largest(Y[0, row], Y_exchanged[0, row]) <= subject.tolerance:
        return "none", f"tokens {seen[0]} and {seen[-1]} can be exchanged for output {row}"
    shifted = _given_positions if "positions" in subject.takes else _more_tokens
    difference, how = shifted(subject, table, X, Y)
    if difference is None:
        return "aware", how
    return ("relative" if difference <= subject.tolerance else "absolute"), how


def _given_positions(subject, _table, X, Y):
    """Shift all positions; return the difference, None where they are not used, and how."""
    places = np.arange(T)[None]
    if largest(subject.outputs(X, positions=2 * places), Y) <= subject.tolerance:
        return None, "positions that are handed over change nothing"
    there = subject.outputs(X, positions=places + SHIFT)
    return largest(there, Y), f"all positions plus {SHIFT}"


def _more_tokens(subject, table, X, Y):
    """Put tokens before the text that some outputs do not see; return the difference there."""
    rows = [i for i in range(SHIFT, T + SHIFT) if _sees_alike(table, i)]
    if not rows:
        return None, "whether by distance can be asked with positions= or where a window ends"
    before = tokens(1, (1, SHIFT, subject.d_model), seed=7)[0]
    there = subject.outputs(np.concatenate([before, X], axis=1))
    difference = largest(there[:, rows], Y[:, [i - SHIFT for i in rows]])
    return difference, f"{SHIFT} more tokens, out of sight"


def _sees_alike(table, i):
    """Say whether output i, behind SHIFT more tokens, sees what output i - SHIFT sees, and any."""
    seen = off_diagonal(table)[i, : T + SHIFT]
    here = off_diagonal(table)[i - SHIFT, :T]
    return seen.any() and not seen[:SHIFT].any() and np.array_equal(seen[SHIFT:], here)


def ask_padding(subject, claims, table):
    """Ask whether a text has the same outputs alone and padded, on each side."""
    if "keep" not in subject.takes:
        return []
    sides = [side for side in ("right", "left") if side in claims.get("sides", (side,))]
    findings = [finding for side in sides for finding in _padded(subject, side)]
    if findings[-1].sign == WRONG and all(found.sign == RIGHT for found in findings[:-1]):
        findings[-1] = _amount_matters(subject, findings[-1])
    findings += [*_two_lengths(subject, sides[-1]), *_nothing_real(subject)]
    return [*findings, *_mask_with_padding(subject, table)]


def _amount_matters(subject, found):
    """Name padding that counts as positions: it is right on the right, and unseen on the left."""
    X = tokens(1, (1, T, subject.d_model))[0]
    shifted = []
    for amount in (2, SHIFT):
        padded, keep, real = _pad(X, "left", amount)
        shifted.append(subject.outputs(padded, keep=keep)[:, real])
    if found.hints and largest(*shifted) > subject.tolerance:
        return replace(found, name="padding_shifts_positions", hints=())
    return found


def _mask_with_padding(subject, table):
    """Ask whether a padding mask that hides nothing leaves the mask as it is."""

    def outputs(X):
        return subject.outputs(X, keep=np.ones(X.shape[:2], bool))

    there = off_diagonal(table_of(subject, len(table), outputs=outputs))
    other = there != off_diagonal(table)
    if not other.any():
        return [Finding(RIGHT, "mask with padding", "the same as without")]
    i, j = np.argwhere(other)[0]
    verb = "depends" if there[i, j] else "does not depend"
    sentence = f"beside a padding mask that hides nothing output {i} {verb} on token {j}"
    leak = np.triu(there & other, 1).any() and not np.triu(table, 1).any()
    name = "mask_dropped_with_padding" if leak else None
    if not leak and np.array_equal(there, off_diagonal(np.tri(len(table), dtype=bool))):
        name = "window_dropped_with_padding"
    return [Finding(WRONG, "mask with padding", sentence, name)]


def _nothing_real(subject):
    """Ask a batch in which one sequence is padding alone."""
    X = tokens(1, (2, T, subject.d_model), seed=11)[0]
    keep = np.array([[True] * T, [False] * T])
    with np.errstate(all="ignore"):
        Y = subject.outputs(X, keep=keep)
    question = "padding alone"
    if not largest(Y[0], subject.outputs(X[:1])[0]) <= subject.tolerance:
        return [Finding(WRONG, question, "a sequence of padding changes another one")]
    what = "finite" if np.isfinite(Y[1]).all() else "not finite"
    return [Finding(DESCRIBED, question, f"the outputs of a sequence of padding are {what}")]


def _pad(X, side, amount, seed=5):
    """Return X with other tokens at a side, what is real, and where."""
    more = tokens(1, (len(X), amount, X.shape[-1]), seed=seed)[0]
    real = slice(0, X.shape[1]) if side == "right" else slice(amount, None)
    padded = np.concatenate([X, more] if side == "right" else [more, X], axis=1)
    keep = np.zeros(padded.shape[:2], bool)
    keep[:, real] = True
    return padded, keep, real


def _padded(subject, side):
    """Ask one side of padding."""
    X = tokens(1, (1, T, subject.d_model))[0]
    padded, keep, real = _pad(X, side, SHIFT)

    def outputs(padded, **given):
        with np.errstate(all="ignore"):
            return subject.outputs(padded, **given)[:, real]

    def equal(Y, others):
        return largest(Y, others) <= subject.tolerance

    Y, there = subject.outputs(X), outputs(padded, keep=keep)
    question = f"padding on the {side}"
    if equal(there, Y):
        return [Finding(RIGHT, question, "a text has the outputs that it has alone")]
    for name, other in _other_masks(keep, side):
        if equal(outputs(padded, keep=other), Y):
            return [Finding(WRONG, question, "right with another padding mask", name)]
    if not np.isfinite(there).all():
        return [Finding(WRONG, question, "an output of a real token is not finite")]
    other = outputs(_pad(X, side, SHIFT, seed=6)[0], keep=keep)
    if changed(there, other, subject.noise).any():
        name = _unused(subject, padded, keep) if equal(outputs(padded), there) else None
        return [Finding(WRONG, question, "other padding changes outputs of real tokens", name)]
    return [_counted(subject, side, X, (padded, keep, real))]


def _other_masks(keep, side):
    """Yield the opposite of a padding mask (1, T), and masks whose border is one token further."""
    steps = (1, -1) if side == "right" else (-1, 1)
    ahead, behind = (np.roll(keep, step, axis=1) for step in steps)
    yield "padding_polarity", ~keep
    yield "padding_off_by_one", keep | ahead
    yield "padding_off_by_one", keep & behind


def _unused(subject, padded, keep):
    """Name a padding mask that changes no output of a real token, but may change others."""
    with np.errstate(all="ignore"):
        without, masked = subject.outputs(padded), subject.outputs(padded, keep=keep)
    changes = changed(without, masked, subject.tolerance)
    return "padding_on_queries" if changes.any() else "padding_seen"


def _counted(subject, side, X, padding):
    """Say of padding that is not seen and has an effect whether it counts as positions."""
    padded, keep, real = padding
    question = f"padding on the {side}"
    if side == "left" and "positions" in subject.takes:
        places = np.maximum(np.cumsum(keep, axis=1) - 1, 0)
        there = subject.outputs(padded, keep=keep, positions=places)[:, real]
        if largest(there, subject.outputs(X, positions=places[:, real])) <= subject.tolerance:
            sentence = "right with the positions of the text; without them padding is counted"
            return Finding(DESCRIBED, question, sentence)
    sentence = "a padded text has other outputs than alone, though no padding is seen"
    if side == "left":
        return Finding(WRONG, question, sentence, None, ("padding_shifts_positions",))
    none, less, more = (
        largest(subject.outputs(padded, keep=keep)[:, real], subject.outputs(X))
        for padded, keep, real in (_pad(X, side, 0), padding, _pad(X, side, 3 * SHIFT))
    )
    weighed = none <= subject.tolerance and more > less
    return Finding(WRONG, question, sentence, "padding_keeps_weight" if weighed else None)


def _two_lengths(subject, side):
    """Ask a batch of two texts of unlike lengths."""
    X = tokens(1, (2, T, subject.d_model), seed=8)[0]
    keep = np.ones((2, T), bool)
    hidden = slice(T - SHIFT, None) if side == "right" else slice(0, SHIFT)
    keep[1, hidden] = False
    together = subject.outputs(X, keep=keep)
    alone = np.concatenate([subject.outputs(X[[b]], keep=keep[[b]]) for b in range(2)])
    question = "two lengths"
    if largest(together[keep], alone[keep]) <= subject.tolerance:
        return [Finding(RIGHT, question, "each text has its own padding")]
    sentence = (
        "in a batch of two lengths, a padded text has other outputs than in a batch of its own"
    )
    return [Finding(WRONG, question, sentence, _padding_name(subject, X, keep, together))]


def _padding_name(subject, X, keep, together):
    """Return whose padding a sequence gets, if it is not its own."""
    first = subject.outputs(X, keep=keep[[0, 0]])
    if largest(together[keep], first[keep]) <= subject.tolerance:
        return "padding_of_first_sequence"
    other_tokens = X.copy()
    other_tokens[1] = tokens(1, X[1].shape, seed=13)[0]
    unmoved = largest(subject.outputs(other_tokens, keep=keep)[0], together[0])
    moved = largest(subject.outputs(X, keep=np.ones_like(keep))[0], together[0])
    return "padding_of_other_sequences" if unmoved <= subject.noise < moved else None


def ask_positions_in_batch(subject):
    """Ask a batch whose sequences have unlike positions."""
    if "positions" not in subject.takes:
        return []
    X = tokens(1, (2, T, subject.d_model), seed=9)[0]
    places = np.array([np.arange(T), 2 * np.arange(T)])
    together = subject.outputs(X, positions=places)
    alone = np.concatenate([subject.outputs(X[[b]], positions=places[[b]]) for b in range(len(X))])
    question = "positions in a batch"
    if largest(together, alone) <= subject.tolerance:
        return [Finding(RIGHT, question, "each sequence has its own positions")]
    first = subject.outputs(X, positions=places[[0, 0]])
    same = largest(together, first) <= subject.tolerance
    sentence = "in a batch of unlike positions outputs differ from those of each text alone"
    return [Finding(WRONG, question, sentence, "positions_of_first_sequence" if same else None)]


def ask_precision(subject):
    """Ask whether single and double precision agree."""
    if subject.single is None:
        return []
    X = tokens(1, (1, T, subject.d_model))[0]
    with np.errstate(all="ignore"):
        return disagreement(np.asarray(subject.single(X), dtype=float), subject.outputs(X))


def ask_training(subject, table):
    """Ask whether the mask holds in training mode, too."""
    if subject.training is None:
        return []
    in_training = table_of(subject, len(table), one_by_one=True, outputs=subject.training)
    more = off_diagonal(in_training) & ~table
    if more.any():
        i, j = np.argwhere(more)[0]
        sentence = f"in training mode output {i} depends on token {j}, in evaluation it does not"
        return [Finding(WRONG, "training", sentence, "mask_dropped_in_training")]
    X = tokens(1, (1, T, subject.d_model))[0]
    if largest(subject.training(X), subject.outputs(X)) <= subject.tolerance:
        return [Finding(RIGHT, "training", "as in evaluation, dropout apart")]
    return [Finding(DESCRIBED, "training", "other values than in evaluation, and the same mask")]


def ask_parameters(subject):
    """Ask whether each parameter takes part in the output."""
    if subject.unused is None:
        return []
    names = subject.unused()
    if not names:
        return [Finding(RIGHT, "parameters", "each takes part in the output")]
    sentence = f"{', '.join(names)}: no part in the output"
    return [Finding(WRONG, "parameters", sentence, "parameter_unused")]


def ask_gradient(subject):
    """Ask whether the gradient agrees with differences."""
    if subject.gradient is None:
        return []
    X, dY, direction = tokens(3, (1, 6, subject.d_model))
    dY = dY[..., :1] * np.ones(subject.outputs(X).shape[-1])
    found = []
    for words, context in (("X", {}), *_with_padding(subject, X)):
        gradient = subject.gradient(X, dY, **context)
        slope = float((gradient * direction).sum())

        def outputs(step, context=context):
            return subject.outputs(X + step * direction, **context)

        if not agree(slope, outputs, dY):
            found.append((f"that of {words}", gradient))
    return gradient_findings(found, by_rule=subject.by_rule is not None and subject.by_rule())


def _with_padding(subject, X):
    """Yield a padding mask under which the last token is padding, if one is taken."""
    keep = np.ones(X.shape[:2], bool)
    keep[:, -1] = False
    if "keep" in subject.takes:
        yield "X, with padding", {"keep": keep}
