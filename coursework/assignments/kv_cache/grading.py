"""A draft taken back: each text of a batch keeps another number of rows, and all end together."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _accepted(drafted, chosen):
    agrees = drafted == chosen[:, : drafted.shape[1]]
    return np.cumprod(agrees, axis=1).sum(axis=1)


def _at_the_right(texts, width=None):
    """Lay texts, each (H, length, d), into zeros so that all end together; cut what is longer."""
    H, _, d = texts[0].shape
    width = max(text.shape[1] for text in texts) if width is None else width
    kept = np.zeros((len(texts), H, width, d))
    for row, text in zip(kept, texts, strict=True):
        length = min(width, text.shape[1])
        row[:, width - length :] = text[:, text.shape[1] - length :]
    return kept


def _texts(rows, pad, drafted, accepted):
    ends = rows.shape[2] - drafted.shape[1] + accepted
    return [row[:, start:end] for row, start, end in zip(rows, pad, ends, strict=True)]


def _kept(rows, pad, drafted, accepted):
    return _at_the_right(_texts(rows, pad, drafted, accepted))


def all_that_agree(rows, pad, drafted, chosen):
    agrees = drafted == chosen[:, :-1]
    texts = _texts(rows, pad, drafted, np.zeros(len(rows), dtype=int))
    drafts = rows[:, :, rows.shape[2] - drafted.shape[1] :]
    pairs = zip(texts, drafts, agrees, strict=True)
    return _at_the_right([np.concatenate([t, draft[:, a]], axis=1) for t, draft, a in pairs])


def counted_throughout(rows, pad, drafted, chosen):
    return _kept(rows, pad, drafted, (drafted == chosen[:, :-1]).sum(axis=1))


def compared_one_late(rows, pad, drafted, chosen):
    agrees = drafted == chosen[:, 1:]
    return _kept(rows, pad, drafted, np.cumprod(agrees, axis=1).sum(axis=1))


def first_refused_too(rows, pad, drafted, chosen):
    return _kept(rows, pad, drafted, np.minimum(_accepted(drafted, chosen) + 1, drafted.shape[1]))


def fewest_for_all(rows, pad, drafted, chosen):
    accepted = _accepted(drafted, chosen)
    return _kept(rows, pad, drafted, np.full_like(accepted, accepted.min()))


def numbers_of_text_0(rows, pad, drafted, chosen):
    accepted = _accepted(drafted, chosen)
    return _kept(rows, pad, drafted, np.full_like(accepted, accepted[0]))


def last_of_the_draft(rows, pad, drafted, chosen):
    accepted, N = _accepted(drafted, chosen), drafted.shape[1]
    texts = _texts(rows, pad, drafted, 0 * accepted)
    tails = _texts(rows, rows.shape[2] - accepted, drafted, 0 * accepted + N)
    pairs = zip(texts, tails, strict=True)
    return _at_the_right([np.concatenate(pair, axis=1) for pair in pairs])


def nothing_taken_back(rows, pad, drafted, chosen):
    return _kept(rows, pad, drafted, np.full(len(rows), drafted.shape[1]))


def whole_draft_gone(rows, pad, drafted, chosen):
    return _kept(rows, pad, drafted, np.zeros(len(rows), dtype=int))


def at_the_left(rows, pad, drafted, chosen):
    texts = _texts(rows, pad, drafted, _accepted(drafted, chosen))
    turned = _at_the_right([text[:, ::-1] for text in texts])
    return turned[:, :, ::-1]


def hole_at_the_end(rows, pad, drafted, chosen):
    places = np.arange(rows.shape[2])
    ends = rows.shape[2] - drafted.shape[1] + _accepted(drafted, chosen)
    stays = (places >= pad[:, None]) & (places < ends[:, None])
    return (rows * stays[:, None, :, None])[:, :, pad.min() : ends.max()]


def not_narrowed(rows, pad, drafted, chosen):
    texts = _texts(rows, pad, drafted, _accepted(drafted, chosen))
    return _at_the_right(texts, rows.shape[2])


def cut_to_the_shortest(rows, pad, drafted, chosen):
    texts = _texts(rows, pad, drafted, _accepted(drafted, chosen))
    return _at_the_right(texts, min(text.shape[1] for text in texts))


def rolled_round(rows, pad, drafted, chosen):
    refused = drafted.shape[1] - _accepted(drafted, chosen)
    rolled = [np.roll(row, n, axis=1) for row, n in zip(rows, refused, strict=True)]
    return np.stack(rolled)[:, :, (refused + pad).min() :]


def padding_kept(rows, pad, drafted, chosen):
    refused = drafted.shape[1] - _accepted(drafted, chosen)
    moved = rows.astype(float)
    for row, old, n in zip(moved, rows, refused, strict=True):
        row[:, n:] = old[:, : old.shape[1] - n]
    return moved[:, :, (refused + pad).min() :]


def cut_at_minus_0(rows, pad, drafted, chosen):
    refused = drafted.shape[1] - _accepted(drafted, chosen)
    triples = zip(rows, pad, refused, strict=True)
    return _at_the_right([row[:, start:-n] for row, start, n in triples])


MISTAKES = (
    Mistake(
        "all_that_agree",
        "a draft token that agrees is kept although one before it does not",
        "Stop at the first that does not agree: np.cumprod of the comparison along a draft.",
        all_that_agree,
    ),
    Mistake(
        "counted_throughout",
        "it counts all draft tokens that agree, and keeps so many from the front",
        "Count up to the first that does not agree: sum the np.cumprod of the comparison.",
        counted_throughout,
    ),
    Mistake(
        "compared_one_late",
        "a draft token is compared with what the model writes behind it",
        "In the place of drafted[b, n] the model writes chosen[b, n]: leave out the last column.",
        compared_one_late,
    ),
    Mistake(
        "first_refused_too",
        "one row too many is kept: that of the first wrong guess",
        "The model's own word for that place has no key yet. Keep accepted tokens alone.",
        first_refused_too,
    ),
    Mistake(
        "fewest_for_all",
        "every text keeps as few draft tokens as the one that accepts fewest",
        "Each text keeps its own number; padding at the left makes the lengths even.",
        fewest_for_all,
    ),
    Mistake(
        "numbers_of_text_0",
        "every text keeps as many draft tokens as text 0 accepts",
        "Count along each row of the comparison: axis=1.",
        numbers_of_text_0,
    ),
    Mistake(
        "last_of_the_draft",
        "the right number of draft rows is kept, but the last ones, not the first",
        "Accepted tokens stand right behind the text: cut the draft's end off.",
        last_of_the_draft,
    ),
    Mistake(
        "nothing_taken_back",
        "the rows of wrong guesses are kept",
        "Of a draft only the accepted tokens stay.",
        nothing_taken_back,
    ),
    Mistake(
        "whole_draft_gone",
        "no draft token is kept, accepted or not",
        "Accepted tokens stay: their keys are right, and need not be made again.",
        whole_draft_gone,
    ),
    Mistake(
        "at_the_left",
        "the texts begin together, with zeros at their right",
        "All texts end together: the zeros belong to the left of the shorter ones.",
        at_the_left,
    ),
    Mistake(
        "hole_at_the_end",
        "wrong guesses are set to 0 where they stand, and nothing is moved",
        "Move each text to the right by its number of wrong guesses.",
        hole_at_the_end,
    ),
    Mistake(
        "not_narrowed",
        "the result is as wide as the rows that came in",
        "The longest text needs no padding: as many columns as it has are enough.",
        not_narrowed,
    ),
    Mistake(
        "cut_to_the_shortest",
        "the result is as wide as the shortest text, so that longer ones lose their beginning",
        "Take the largest length for all, not the smallest.",
        cut_to_the_shortest,
    ),
    Mistake(
        "rolled_round",
        "wrong guesses come round to the left, and stand in the padding",
        "np.roll brings back what it pushes out: write into np.zeros instead.",
        rolled_round,
    ),
    Mistake(
        "padding_kept",
        "in front of a text stand old numbers, where zeros belong",
        "Begin with np.zeros, and copy from each text's own first column on.",
        padding_kept,
    ),
    Mistake(
        "cut_at_minus_0",
        "a text whose whole draft is accepted is empty: a slice that ends at -0 ends at 0",
        "Count from the front: end = S - refused.",
        cut_at_minus_0,
    ),
)


def _drafts(rng, accepted, N):
    """Draw drafts, and what the model chooses: right up to `accepted`, wrong there, then either.

    Every second draft says one word again and again, so that a shifted comparison agrees too.
    """
    B, most = len(accepted), 50
    drafted = rng.integers(most, size=(B, N))
    drafted[::2] = drafted[::2, :1]
    chosen = np.concatenate([drafted, rng.integers(most, size=(B, 1))], axis=1)
    other = (chosen + rng.integers(1, most, size=chosen.shape)) % most
    place = np.arange(N + 1)
    agrees = (place < accepted[:, None]) | (place % 2 == (accepted[:, None] + 1) % 2)
    return drafted, np.where(agrees, chosen, other)


def cases(rng):
    """Sizes all differ; in each case somebody refuses a token that others behind it agree with.

    Behind its first wrong guess every second token of a draft agrees by chance.
    """

    def arrays(accepted, pad, *, H=2, S=9, N=4, d=5):
        accepted, pad = np.array(accepted), np.array(pad)
        rows = rng.standard_normal((len(accepted), H, S, d))
        return rows, pad, *_drafts(rng, accepted, N)

    mixed = rng.permutation([0, 1, 3])
    whole = np.array([4, *rng.permutation([1, 2, 4])])
    padding = [1, *rng.integers(2, 4, size=2)]
    return [
        Case("three texts, and numbers that differ", arrays(mixed, [0, 2, 3]), 3),
        Case("whole drafts among others", arrays(whole, [2, 0, 1, 3], H=3, d=6), 2),
        Case("no padding", arrays([2, 0, 3, 1, 1], [0] * 5, H=3, S=7, N=4, d=2), 1),
        Case("every text is padded", arrays([0, 2, 1], padding, S=10, N=4, d=7), 2),
        Case("no draft token is right", arrays([0, 0], [3, 1], H=4, S=8, N=3, d=6), 1),
        Case("one text", arrays([2], [2], H=2, S=11, N=5, d=3), 1),
    ]


ASSIGNMENT = Assignment((Task("keep_accepted", cases, MISTAKES),))
