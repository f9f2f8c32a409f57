"""A mask that is causal behind a prefix, for sequences that are padded on the right."""

import numpy as np
import torch

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _below(counts, T):
    return torch.arange(T) < counts[:, None]


def _causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


def _pairs(queries, keys):
    return queries[:, :, None] & keys[:, None, :]


def _masked(look, lengths, T):
    real = _below(lengths, T)
    return (look & _pairs(real, real))[:, None]


def opposite(prefix, lengths, T):
    return ~_masked(_causal(T) | _below(prefix, T)[:, None], lengths, T)


def causal_alone(prefix, lengths, T):
    return _masked(_causal(T), lengths, T)


def both_must_allow(prefix, lengths, T):
    return _masked(_causal(T) & _below(prefix, T)[:, None], lengths, T)


def prefix_sees_all(prefix, lengths, T):
    return _masked(_causal(T) | _below(prefix, T)[:, :, None], lengths, T)


def two_texts(prefix, lengths, T):
    given = _below(prefix, T)
    return _masked(_pairs(given, given) | (_causal(T) & _pairs(~given, ~given)), lengths, T)


def one_too_far(prefix, lengths, T):
    return _masked(_causal(T) | _below(prefix + 1, T)[:, None], lengths, T)


def padding_seen(prefix, lengths, T):
    return (_causal(T) | _below(prefix, T)[:, None])[:, None]


def padding_looks(prefix, lengths, T):
    look = _causal(T) | _below(prefix, T)[:, None]
    return (look & _below(lengths, T)[:, None])[:, None]


def no_axis_for_heads(prefix, lengths, T):
    return _masked(_causal(T) | _below(prefix, T)[:, None], lengths, T)[:, 0]


MISTAKES = (
    Mistake(
        "opposite",
        "True stands where a token may not look",
        "True means may look, here as everywhere in this book.",
        opposite,
    ),
    Mistake(
        "causal_alone",
        "the prefix is causal too",
        "A token of the prefix also looks at those of the prefix that come after it.",
        causal_alone,
    ),
    Mistake(
        "both_must_allow",
        "a token looks only at keys that are in the prefix and not after it",
        "One of the two reasons is enough: the key is not later, or it is in the prefix.",
        both_must_allow,
    ),
    Mistake(
        "prefix_sees_all",
        "a token of the prefix looks at what comes after the prefix",
        "Ask of the key whether it is in the prefix, and not of the query: keys are the last axis.",
        prefix_sees_all,
    ),
    Mistake(
        "two_texts",
        "tokens after the prefix do not look at the prefix",
        "After the prefix a token looks at all before it, the prefix included.",
        two_texts,
    ),
    Mistake(
        "one_too_far",
        "the prefix is one token too long",
        "A prefix of n tokens has the places 0 to n - 1.",
        one_too_far,
    ),
    Mistake(
        "padding_seen",
        "padding looks and is looked at as if it were real",
        "Both must be real, the query and the key: two masks of lengths, on two axes.",
        padding_seen,
    ),
    Mistake(
        "padding_looks",
        "padding is not looked at, but it looks",
        "The rows of padding are empty as well as its columns.",
        padding_looks,
    ),
    Mistake(
        "no_axis_for_heads",
        "the axis for the heads is missing: (B, T, T)",
        "Add one, [:, None], so that the mask broadcasts to (B, H, T, T).",
        no_axis_for_heads,
    ),
)


def cases(rng):
    """The first two cases have two tokens or more in the prefix, and two or more behind it."""

    def drawn(B, T, *, length=None):
        lengths = rng.integers(5, T, size=B) if length is None else np.full(B, length)
        return rng.integers(2, lengths - 1), lengths, T

    def with_empty(prefix, lengths, T):
        kept = np.arange(len(lengths)) != rng.integers(len(lengths))
        return prefix * kept, lengths * kept, T

    short = rng.integers(3, 6, size=4)
    single = rng.permutation([(1, 1), (0, 1), (0, 0), *rng.choice([(1, 1), (0, 1)], size=2)])
    return [
        Case("prefixes and lengths that differ", drawn(3, 8), 3),
        Case("no padding", drawn(5, 6, length=6), 2),
        Case("all real tokens are prefix", (short, short.copy(), 7), 2),
        Case("no prefix", (np.zeros(4, int), short.copy(), 6), 1),
        Case("an empty sequence among others", with_empty(*drawn(4, 9)), 1),
        Case("one token, real or not", (*single.T.copy(), 1), 1),
    ]


ASSIGNMENT = Assignment((Task("prefix_mask", cases, MISTAKES),), torch=True)
