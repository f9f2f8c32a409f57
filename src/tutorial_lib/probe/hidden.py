"""What a layer on hidden states is asked besides its mask; each question returns findings."""

from dataclasses import replace

import numpy as np

from tutorial_lib.probe.alike import ask_gradient, ask_half, disagreement
from tutorial_lib.probe.dependence import dependence, off_diagonal, simplest_pattern, table_of
from tutorial_lib.probe.masks import name_unmasked, where
from tutorial_lib.probe.report import (
    DESCRIBED,
    PLACES,
    RIGHT,
    WRONG,
    Finding,
    agreed,
    answered,
    broken,
    described,
    one_name,
    passed,
    without_names,
)
from tutorial_lib.probe.subject import changed, largest, singly, tokens

T = 10
SHIFT = 3  # tokens of padding, and the step of other positions
LONGER, LARGE = 64, 48  # tokens, and those of large scores
UNDECIDED = "whether by distance can be asked with positions= or where a window ends"
WORDS = {
    "none": "order does not matter",
    "relative": "only distances matter",
    "absolute": "the positions themselves matter",
}


def ask_batch(subject):
    """Ask whether the sequences of a batch are apart."""
    X, others = tokens(2, (3, T, subject.d_model))
    Y = subject.outputs(X)
    alone = singly(subject.outputs)(X)
    swapped = X.copy()
    swapped[1, 4] = others[1, 4]  # another token 4 in sequence 1
    moved = changed(Y, subject.outputs(swapped), subject.noise)  # (3, T)
    if not moved[[0, 2]].any() and subject.same(Y, alone):
        return passed("batch", "each sequence for itself")
    one = subject.outputs(X.reshape(1, -1, subject.d_model)).reshape(Y.shape)
    name = "batch_as_one_sequence" if subject.same(one, Y) else "sequences_mixed"
    if not moved[[0, 2]].any():
        table = table_of(subject, T, outputs=singly(subject.outputs))
        more = _more_seen(subject, table, lambda x: subject.outputs(np.concatenate([X[:1], x]))[1:])
        name = "mask_dropped_in_batch" if more else "sequence_changes_in_batch"
        return broken("batch", None, name)
    across = subject.memory is None and not np.delete(moved, 4, axis=1).any()
    return broken("batch", None, "batch_as_tokens" if across else name)


def ask_positions(subject, table, claims, facts):
    """Ask whether the order of the tokens matters, and whether it is only their distance.

    What is found goes into `facts`: "none", "relative", "absolute", "aware", or None where it
    cannot be asked.
    """
    facts["position"] = None
    found, how = _position(subject, table, claims.get("position"))
    facts["position"], claimed = found, claims.get("position")
    if found in (None, "aware"):
        sentence = f"order matters; {how}" if found else f"cannot be asked: {how}"
        if "handed over" in how and claimed in ("relative", "absolute"):
            return broken("positions", sentence, "positions_ignored")
        hints = ("positions_ignored",) if "handed over" in how else ()
        sign = WRONG if claimed == "none" and found and not hints else DESCRIBED
        if claimed and not hints and (found or subject.memory is None):
            sentence += (
                ", and claimed is 'none'" if sign == WRONG else f"; so {claimed!r} is not confirmed"
            )
        return [Finding(sign, "positions", sentence, None, hints)]
    sentence = f"{WORDS[found]} ({how})"
    if claimed in (None, found):
        return agreed("positions", sentence, claimed)
    name = _position_name(subject, table, claimed, found)
    return broken("positions", f"{sentence}, and claimed is {claimed!r}", name)


def _position_name(subject, table, claimed, found):
    """Return the mistake in positions on which two witnesses agree."""
    if found == "none":
        return "positions_missing" if _exchangeable(subject, table) else "positions_without_effect"
    if claimed == "none":
        return "positions_used"
    return "positions_only_relative" if found == "relative" else "positions_not_relative"


def _most_seen(table):
    """Return the output that sees most other tokens, and which."""
    seen = off_diagonal(table)[:T, :T]
    row = int(seen.sum(axis=1).argmax())
    return row, list(np.flatnonzero(seen[row]))


def _exchangeable(subject, table):
    """Say whether all tokens that an output sees can be exchanged, its own apart."""
    row, seen = _most_seen(table)
    X = tokens(1, (1, T, subject.d_model), seed=14)[0]
    there = X.copy()
    there[0, seen] = X[0, seen[::-1]]
    return subject.same(subject.outputs(X)[0, row], subject.outputs(there)[0, row])


def _position(subject, table, claimed):
    """Return what positions do, and how that was seen."""
    row, seen = _most_seen(table)
    if len(seen) < 2:
        return None, "no output sees two other tokens"
    X = tokens(1, (1, T, subject.d_model))[0]
    exchanged = X.copy()
    exchanged[0, [seen[0], seen[-1]]] = X[0, [seen[-1], seen[0]]]
    Y, Y_exchanged = subject.outputs(X), subject.outputs(exchanged)
    if subject.same(Y[0, row], Y_exchanged[0, row]):
        return "none", f"tokens {seen[0]} and {seen[-1]} can be exchanged for output {row}"
    if "positions" in subject.takes:
        places, how = np.arange(T)[None], f"all positions plus {SHIFT}"
        if subject.same(subject.outputs(X, positions=2 * places), Y):
            return "aware", "positions that are handed over change nothing"
        difference = largest(subject.outputs(X, positions=places + SHIFT), Y)
        return ("relative" if difference <= subject.tolerance else "absolute"), how
    return _more_tokens(subject, table, (X, Y), claimed)


def _more_tokens(subject, table, XY, claimed):
    """Put tokens before the text that some outputs do not see, and compare these."""
    off, rows, (X, Y) = off_diagonal(table), [], XY
    for i in range(SHIFT, T + SHIFT):  # which see, behind the others, what they see without
        seen = off[i, : T + SHIFT]
        alike = np.array_equal(seen[SHIFT:], off[i - SHIFT, :T])
        rows += [i] if alike and seen.any() and not seen[:SHIFT].any() else []
    if not rows and claimed in ("relative", "absolute"):
        return _without_weight(subject, off[:T, :T].any(axis=1), X, Y)
    if not rows:
        return "aware", UNDECIDED
    before = tokens(1, (1, SHIFT, subject.d_model), seed=7)[0]
    there = subject.outputs(np.concatenate([before, X], axis=1))
    same = subject.same(there[:, rows], Y[:, [i - SHIFT for i in rows]])
    return ("relative" if same else "absolute"), f"{SHIFT} more tokens, out of sight"


def _without_weight(subject, rows, X, Y):
    """Put a large token before the text, and compare those of some rows that give it no weight.

    Such outputs stay as they are where it is another large token of about its direction.
    """
    large, others = tokens(2, (256, 1, subject.d_model), size=30.0, seed=7)
    texts = X.repeat(256, axis=0)
    there, beside = (
        subject.outputs(np.concatenate([before, texts], axis=1))[:, 1:]
        for before in (large, 2 * large + 0.3 * others)
    )
    unmoved = ~changed(there, beside, subject.noise) & rows
    if not unmoved.any():
        return "aware", UNDECIDED
    same = largest(there[unmoved], Y.repeat(256, axis=0)[unmoved]) <= 10 * subject.tolerance
    return ("relative" if same else "absolute"), "a token before the text, without a weight"


def ask_padding(subject, claims, table, facts):
    """Ask whether a text has the same outputs alone and padded, on each side."""
    if "keep" not in subject.takes:
        return []
    sides = [side for side in ("right", "left") if side in claims.get("sides", (side,))]
    padded = [_padded(subject, side, facts) for side in sides]
    if padded[-1].name == "padding_shifts_positions" and padded[0].name in PLACES:
        padded[-1] = replace(padded[-1], name="padding_counted")
    if len({found.name for found in padded} - {None}) > 1:
        padded = sorted(padded, key=lambda found: found.name in PLACES)
    if claims.get("position") == "relative":  # then a shift should have no effect
        shifted = {"padding_shifts_positions": "positions_not_relative"}
        padded = [replace(found, name=shifted.get(found.name, found.name)) for found in padded]
    masked = answered("mask with padding", lambda: _mask_with_padding(subject, table))
    if any(found.name == "padding_polarity" for found in padded):
        masked = without_names(masked)
    both = masked + padded if all(f.name in {None, *PLACES} for f in padded) else padded + masked
    refused = "padding_refused_in_batch"
    both += answered("two lengths", lambda: _two_lengths(subject, sides[-1]), refused=refused)
    if both[-1].name != refused:
        both += answered("padding alone", lambda: _nothing_real(subject))
    return one_name(both)


def _mask_with_padding(subject, table):
    """Ask whether a padding mask that hides nothing leaves the mask as it is."""

    def run(X, **given):
        return subject.run(X, keep=np.ones(X.shape[:2], bool), **given)

    beside, question = replace(subject, run=singly(run)), "mask with padding"
    there, one = off_diagonal(table_of(beside, len(table))), np.eye(len(table), dtype=bool)
    other = there != off_diagonal(table)
    if not other.any():
        return passed(question, "the same as without")
    sentence = f"beside a padding mask that hides nothing {where(there, other)}"
    name = "mask_another_with_padding"
    if (there | one).all() and name_unmasked(beside) == "no_mask":
        name = "mask_dropped_with_padding"
    elif np.array_equal(there | one, np.tri(len(table), dtype=bool)):
        name = "window_dropped_with_padding"
    return broken(question, sentence, name)


def _nothing_real(subject):
    X = tokens(1, (2, T, subject.d_model), seed=11)[0]
    keep = np.array([[True] * T, [False] * T])
    Y = subject.outputs(X, keep=keep)
    question = "padding alone"
    if not subject.same(Y[0], subject.outputs(X[:1])[0]):
        return broken(question, None, "padding_alone_spoils_others")
    what = "finite" if np.isfinite(Y[1]).all() else "not finite"
    return described(question, f"the outputs of a sequence of padding are {what}")


def _pad(X, side, amount, seed=5):
    """Return X with other tokens at a side, what is real, and where."""
    more = tokens(1, (len(X), amount, X.shape[-1]), seed=seed)[0]
    real = slice(0, X.shape[1]) if side == "right" else slice(amount, None)
    padded = np.concatenate([X, more] if side == "right" else [more, X], axis=1)
    keep = np.zeros(padded.shape[:2], bool)
    keep[:, real] = True
    return padded, keep, real


def _padded(subject, side, facts):
    X = tokens(1, (1, T, subject.d_model))[0]
    padded, keep, real = padding = _pad(X, side, SHIFT)

    def outputs(padded, **given):
        return subject.outputs(padded, **given)[:, real]

    question, Y, there = f"padding on the {side}", subject.outputs(X), outputs(padded, keep=keep)
    if subject.same(there, Y):
        return Finding(RIGHT, question, "a text has the outputs that it has alone")
    for name, other in _other_masks(keep, side):
        if subject.same(outputs(padded, keep=other), Y):
            return broken(question, None, name)[0]
    if not np.isfinite(there).all():
        return broken(question, None, "padding_not_finite")[0]
    other = outputs(_pad(X, side, SHIFT, seed=6)[0], keep=keep)
    if not changed(there, other, subject.noise).any():
        return _counted(subject, side, X, padding, facts)
    named = _unused if subject.same(outputs(padded), there) else _only_padding_seen
    name = named(subject, padded, keep) or f"padding_seen_on_the_{side}"
    return broken(question, None, name)[0]


def _only_padding_seen(subject, _padded, keep):
    """Name a padding mask that lets real tokens see padding and no other real token, or not."""
    real, more = keep[0], {"keep": keep.repeat(keep.shape[1] + 1, axis=0)}
    table = table_of(subject, len(real), outputs=lambda X: subject.outputs(X, **more))
    seen = off_diagonal(table)[real]
    reversed_ = seen[:, ~real].any() and not seen[:, real].any()
    return "padding_polarity" if reversed_ else None


def _other_masks(keep, side):
    """Yield the opposite of a padding mask (1, T), and masks that are one token further."""
    steps = (1, -1) if side == "right" else (-1, 1)
    ahead, behind = (np.roll(keep, step, axis=1) for step in steps)
    yield "padding_polarity", ~keep
    for other in (keep | ahead, keep & behind, ahead, behind):
        yield "padding_off_by_one", other


def _unused(subject, padded, keep):
    """Name a padding mask that changes no output of a real token, or return None."""
    without, masked = subject.outputs(padded), subject.outputs(padded, keep=keep)
    if not changed(without, masked, subject.tolerance).any():
        return "padding_seen"
    padding = masked[0, ~keep[0]]  # hidden queries have one output, whatever they are
    alike = np.isnan(padding).all() or np.ptp(padding, axis=0).max() <= subject.tolerance
    others = np.ptp(masked[0, keep[0]], axis=0).max() > subject.tolerance
    return "padding_on_queries" if alike and others else None


def _counted(subject, side, X, padding, facts):
    """Say of padding that is not seen and has an effect whether it counts as positions."""
    padded, keep, real = padding
    question = f"padding on the {side}"
    if side == "left" and "positions" in subject.takes:
        places = np.maximum(np.cumsum(keep, axis=1) - 1, 0)
        there = subject.outputs(padded, keep=keep, positions=places)[:, real]
        if subject.same(there, subject.outputs(X, positions=places[:, real])):
            sentence = "right with the positions of the text; without them padding is counted"
            return Finding(DESCRIBED, question, sentence)
    name = "padding_counted"
    order = side == "left" and facts.get("position") != "none"
    whole = np.ones(X.shape[:2], bool)
    if order and subject.same(subject.outputs(X, keep=whole), subject.outputs(X)):
        name = "padding_shifts_positions"
    zeroed = subject.outputs(padded * keep[..., None])[:, real]
    if subject.same(zeroed, subject.outputs(padded, keep=keep)[:, real]):
        name = "padding_keeps_weight"
    return broken(question, None, name)[0]


def _two_lengths(subject, side):
    X = tokens(1, (3, T, subject.d_model), seed=8)[0]
    keep = np.ones((3, T), bool)
    hidden = slice(T - SHIFT, None) if side == "right" else slice(0, SHIFT)
    keep[0, hidden], keep[2, [0 if side == "left" else -1]] = False, False  # in no order of lengths
    alone, question = singly(subject.outputs)(X, keep=keep), "two lengths"
    together = subject.outputs(X, keep=keep)
    if subject.same(together[keep], alone[keep]):
        return passed(question, "each text has its own padding")
    return broken(question, None, _padding_name(subject, X, keep, together))


def _padding_name(subject, X, keep, together):
    first = subject.outputs(X, keep=keep[[0, 0, 0]])
    if subject.same(together[keep], first[keep]):
        return "padding_of_first_sequence"
    other_tokens = X.copy()
    other_tokens[[0, 2]] = tokens(1, X[:2].shape, seed=13)[0]
    unmoved = largest(subject.outputs(other_tokens, keep=keep)[1], together[1])
    moved = largest(subject.outputs(X, keep=np.ones_like(keep))[1], together[1])
    of_others = unmoved <= subject.noise < moved
    return "padding_of_other_sequences" if of_others else "padding_mixed_in_batch"


def ask_positions_in_batch(subject):
    """Ask a batch whose sequences have unlike positions."""
    if "positions" not in subject.takes:
        return []
    X = tokens(1, (2, T, subject.d_model), seed=9)[0]
    places = np.array([np.arange(T), 2 * np.arange(T)])
    together, question = subject.outputs(X, positions=places), "positions in a batch"
    alone = singly(subject.outputs)(X, positions=places)
    beside = _packed_beside_padding(subject, X[:1]) if "keep" in subject.takes else []
    if beside and beside[0].sign == WRONG:
        return beside
    if subject.same(together, alone):
        return [*beside, *passed(question, "each sequence has its own positions")]
    first = subject.outputs(X, positions=places[[0, 0]])
    same = subject.same(together, first)
    name = "positions_of_first_sequence" if same else "positions_mixed_in_batch"
    return broken(question, None, name)


def _packed_beside_padding(subject, X):
    """Ask two texts in one, whose positions begin anew, beside padding that hides nothing."""
    again = {"positions": np.arange(T)[None] % (T // 2)}
    there = subject.outputs(X, keep=np.ones((1, T), bool), **again)
    if subject.same(there, subject.outputs(X, **again)):
        return []
    sentence = "where positions begin anew, a padding mask that hides nothing has an effect"
    found = Finding(WRONG, "packed texts", sentence, "mask_another_with_padding")
    return [found if subject.packed else replace(found, sign=DESCRIBED, name=None)]


def _more_seen(subject, table, outputs):
    """Say which hidden token outputs of another kind depend on, or return None."""
    there = table_of(subject, len(table), outputs=singly(outputs))
    more = np.argwhere(off_diagonal(there) & ~table)
    return f"output {more[0][0]} depends on token {more[0][1]}" if len(more) else None


def ask_precision(subject, table):
    """Ask whether single and double precision agree, and what half precision loses."""
    if subject.single is None:
        return []
    (X,) = subject.example()
    found = disagreement(np.asarray(subject.single(X), dtype=float), subject.outputs(X))
    if found[0].sign != WRONG:
        return [*found, *answered("half precision", lambda: _ask_half(subject, table))]
    lost = _more_seen(subject, table, subject.single)
    return [replace(found[0], name="mask_lost_in_single")] if lost else found


def _ask_half(subject, table):
    """Ask for what is finite in double precision and not in half, and for the mask there."""
    found = ask_half(subject)
    if not found or found[0].sign == WRONG:
        return found
    more = _more_seen(subject, table, subject.half)
    if more:
        sentence = f"{more}, in double precision it does not"
        return broken("half precision", sentence, "mask_lost_in_half")
    return passed("half precision", "finite, and the same tokens are seen")


def ask_longer_mask(subject, table, claims):
    """Ask a text of which no usual length of blocks or tiles is a divisor."""
    pattern, length = claims.pattern() or simplest_pattern(table), LONGER + 3
    if pattern is None or (off_diagonal(table ^ pattern.mask(len(table)))).any():
        return []
    expected, seen = pattern.mask(length), table_of(subject, length)
    if claims.pattern() is None:
        return _longer_pattern(expected, seen)
    near = abs(np.arange(length)[:, None] - np.arange(length)) < T
    more = seen & ~expected  # a bias may leave far keys a weight that nothing shows
    wrong = off_diagonal(more | (expected & ~seen & near))
    if not wrong.any():
        return passed("longer mask", f"as claimed for {length} tokens")
    name = "hidden_keys_seen" if off_diagonal(more).any() else "keys_not_seen"
    return broken("longer mask", f"of {length} tokens {where(seen, wrong)}", name)


def _longer_pattern(expected, seen):
    """Describe the table of a longer text, where it is other than that of a short one."""
    wrong = off_diagonal(expected) != off_diagonal(seen)
    found = f"of {len(seen)} tokens: {simplest_pattern(seen) or where(seen, wrong)}"
    return described("longer mask", found) if wrong.any() else []


def ask_scores(subject, table):
    """Ask whether weights depend on scores: without, outputs are linear in all tokens."""
    if not off_diagonal(table).any() or not _linear(subject, len(table)):
        return []
    sentence = "outputs are linear in the tokens, so weights do not depend on scores"
    if _linear(subject, len(table), 100):  # a mean of tokens, say, which is no mistake of its own
        return [Finding(DESCRIBED, "scores", sentence)]
    return broken("scores", sentence, "scores_lost_in_single")


def _linear(subject, length, size=1):
    """Say whether the sum of two texts of a size has the sum of their outputs."""
    X, others = tokens(2, (1, length, subject.d_model), size=size, seed=21)
    both, one, other, none = map(subject.outputs, (X + others, X, others, 0 * X))
    return largest(both + none, one + other) <= 10 * size * subject.tolerance


def ask_row_sums(subject):
    """Ask whether outputs of equal tokens grow with their number, as where no sum is divided by."""
    X = tokens(1, (1, 1, subject.d_model), seed=23)[0]
    last = [subject.outputs(X.repeat(n, axis=1))[0, -1] for n in (4, 8, 16, 32)]
    steps = np.diff(last, axis=0)  # each twice the one before, or more, of one direction
    sizes = np.linalg.norm(steps, axis=1)
    straight = (steps[1:] * steps[:-1]).sum(axis=1) > 0.99 * sizes[1:] * sizes[:-1]
    grow = sizes[0] > 10 * subject.tolerance and (straight & (sizes[1:] > 1.8 * sizes[:-1])).all()
    sentence = "outputs of equal tokens grow with their number"
    return broken("row sums", sentence, "row_sum_not_one") if grow else []


def ask_copies(subject, table, facts):
    """Ask large scores, where a row of weights has one 1, so copies of a token change nothing.

    Nor do more tokens have an effect on an output than there are heads, while one token may have an
    effect on many; a softmax over the queries exchanges the two.
    """
    whole = np.array_equal(table, np.tri(len(table))) or table.all()
    if facts.get("position") != "none" or not whole:
        return []
    X, step = tokens(2, (3, LARGE, subject.d_model), seed=22)
    X, most = 100 * X, np.zeros(2, int)
    for x, other in zip(X, X + step, strict=True):
        seen = dependence(subject.outputs, x, other, tolerance=1e-6 * subject.effect)
        most = np.maximum(most, [off_diagonal(seen).sum(axis=axis).max() for axis in (1, 0)])
    copied = subject.outputs(np.concatenate([X[:, :1].repeat(4, axis=1), X], axis=1))[:, 4:]
    same = largest(copied, subject.outputs(X)) <= 1e-3 * subject.effect
    if same or most[0] <= 1.5 * most[1]:
        return []
    sentence = f"at large scores, {most[0]} tokens have an effect on one output, and copies matter"
    hints = "softmax_over_queries", "weights_transposed"
    return broken("softmax", sentence, "row_sum_not_one", hints)


def ask_training(subject, table):
    """Ask whether the mask holds in training mode, too."""
    if subject.training is None:
        return []
    before, evaluated, after, in_vain = subject.switched() if subject.switched else (False,) * 4
    if evaluated:
        sentence = "after a call in training mode an evaluation is random"
        return broken("training", sentence, "random_in_evaluation")
    if before and not after:
        return broken("training", None, "dropout_lost_after_evaluation")
    if in_vain:
        return broken("training", None, in_vain)
    X = tokens(1, (1, T, subject.d_model))[0]
    if not subject.same(subject.training(X.copy()), subject.training(X.copy())):
        return described("training", "each call has other outputs, dropout apart")
    more = _more_seen(subject, table, subject.training)
    if more:
        sentence = f"in training mode {more}, in evaluation it does not"
        return broken("training", sentence, "mask_dropped_in_training")
    return _as_in_evaluation(subject)


def _as_in_evaluation(subject):
    """Ask whether outputs without dropout are those of evaluation, with padding, too."""
    X = tokens(1, (2, T, subject.d_model))[0]
    keep = np.arange(T)[None].repeat(2, axis=0) >= SHIFT
    for given in ({}, {"keep": keep})[: 1 + ("keep" in subject.takes)]:
        there, here = (run(X.copy(), **given) for run in (subject.training, subject.outputs))
        if not changed(there[:, SHIFT:], here[:, SHIFT:], subject.tolerance).any():
            continue
        often = subject.training(X[[1, *64 * [0]]])[1:]
        if not subject.same(often, subject.training(X[:1].copy())):  # random, or of the batch
            return described("training", "other values than in evaluation, and the same mask")
        return broken("training", None, "training_another")
    return passed("training", "as in evaluation, dropout apart")


def ask_parameters(subject):
    """Ask whether each parameter takes part in the output."""
    if subject.unused is None:
        return []
    sentences = {
        "parameter_unused": "no part in the output, at least in some rows",
        "gradient_cut": "a part in the output, and no gradient",
        "parameter_not_registered": "a list of modules that is no part of the module",
    }
    found = []
    for names, (name, sentence) in zip(subject.unused(), sentences.items(), strict=True):
        found += broken("parameters", f"{', '.join(names)}: {sentence}", name) if names else []
    return found or passed("parameters", "each takes part in the output")


def ask_gradient_of(subject, claims):
    """Ask whether the gradient agrees with differences, with padding where it is taken."""
    contexts, token = {"": {}}, np.arange(T)[None]
    for side, keep in (("right", token < T - 1), ("left", token > 0)):
        if "keep" in subject.takes and side in claims.get("sides", (side,)):
            contexts[f", with padding on the {side}"] = {"keep": keep}
    cut = subject.unused and (lambda: subject.unused()[1])
    found = ask_gradient(subject, "X", contexts, cut=cut or tuple)
    if subject.trained is None or (found and found[0].sign == WRONG):
        return found
    run, gradient = subject.trained
    training = replace(subject, run=run, gradient=gradient)
    more = ask_gradient(training, "X", {", in training": {}})
    return [*found, *(replace(one, question="gradient in training") for one in more)]
