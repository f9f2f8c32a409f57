"""What a layer with a memory (cross-attention) is asked: its memory is probed as a text of its own.

Seen from the memory such a layer is a function of the memory's tokens, with queries that stay. What
it returns for all of them stands at each token of the memory, so that every question of padding, of
a batch and of precision can be asked as it is.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.probe import hidden
from tutorial_lib.probe.alike import ask_calls
from tutorial_lib.probe.dependence import dependence
from tutorial_lib.probe.report import WRONG, agreed, answered, broken, described, one_name, passed
from tutorial_lib.probe.subject import Subject, singly, tokens

QUERIES = 6


def ask_memory(subject, table, claims):
    """Ask which tokens of the memory are seen, and all that is asked of a text."""
    if subject.memory is None:
        return []
    memory, (seen,) = _as_subject(subject), _seen(subject)
    if seen.sign == WRONG:
        return [seen]
    found = [*ask_calls(memory), *hidden.ask_batch(memory)]
    every = np.ones((hidden.T,) * 2, bool)
    found += hidden.ask_precision(memory, every)
    M = tokens(1, (1, 9, memory.d_model), seed=34)[0]
    alike = memory.same(memory.outputs(M), memory.outputs(M[:, ::-1]))
    sentence = f"the order of its tokens {'does not matter' if alike else 'matters'}"
    claimed = claims.get("position") == "none" or None
    wrong = claimed and not alike
    found += (
        broken("order", None, "positions_used") if wrong else agreed("order", sentence, claimed)
    )
    lengths = partial(_ask_lengths, subject, memory, table, alike)
    found += answered("lengths", lengths, refused="memory_refused")
    if "keep" in memory.takes:
        sides = {"sides": ("right", "left") if alike else ("right",)}
        padding = partial(hidden.ask_padding, memory, sides, every, {"position": "none"})
        found += answered("padding", padding, refused="padding_refused")
    return [seen, *one_name([replace(one, question=f"memory, {one.question}") for one in found])]


def ask_first_calls(subject):
    """Ask calls; where there is a memory, its length need not be that of a text."""
    if subject.memory is None:
        return ask_calls(subject)
    return answered("calls", partial(ask_calls, subject), refused="memory_refused")


def _as_subject(subject):
    """Return the layer as a function of its memory (B, S, d_memory)."""
    X = tokens(1, (1, QUERIES, subject.d_model), seed=31)[0]

    def of(run):
        def outputs(M, keep=None):
            given = {} if keep is None else {"memory_keep": keep}
            Y = np.asarray(run(np.repeat(X, len(M), axis=0), memory=M, **given), dtype=float)
            return np.repeat(Y.reshape(len(M), 1, -1), M.shape[1], axis=1)

        return run and outputs

    takes = frozenset({"keep"} if "memory_keep" in subject.takes else ())
    single, half = of(subject.single), of(subject.half)
    width, precision = subject.memory[1], subject.precision
    return Subject(of(subject.run), width, takes, None, single, half, precision=precision)


def _seen(subject):
    """Ask which output depends on which token of the memory, for two numbers of queries."""
    S, width = subject.memory
    tables = []
    M, others = tokens(2, (S, width), seed=33)
    alike = M[:1].repeat(S, axis=0)  # of equal scores, however large scores are
    draws = ((QUERIES, M, others), (QUERIES + 2, M, others), (QUERIES, alike, alike + M / 100))
    for T, *pair in draws:
        X = tokens(1, (1, T, subject.d_model), seed=32)[0]
        outputs = singly(lambda M, X=X: subject.outputs(X, memory=M))
        tables.append(dependence(outputs, *pair, tolerance=subject.noise))
    *tables, equal = tables
    if all(table.all() for table in tables):
        return passed("memory", "every output depends on every token of it")
    sentence = f"{tables[0].mean():.0%} of its tokens are seen by an output"
    if not tables[0].any():
        return broken("memory", "no output depends on it", "memory_not_read")
    for corner in (0, 1):
        causal = [np.tri(len(t), S, corner * (S - len(t)), dtype=bool) for t in tables]
        if all(map(np.array_equal, tables, causal)):
            return broken("memory", sentence, "memory_masked_as_causal")
    if equal.all():
        sentence += ", and all where its tokens are nearly equal; are scores too large?"
        return described("memory", sentence)
    return broken("memory", sentence, "memory_not_seen")


def _ask_lengths(subject, memory, table, alike):
    """Ask memories of other lengths than the text, and one that is there twice."""
    question, (S, width) = "lengths", subject.memory
    M = tokens(1, (1, S, width), seed=35)[0]
    once, twice = (memory.outputs(np.tile(M, (1, n, 1)))[:, 0] for n in (1, 2))
    memory.outputs(M[:, :1])
    X = tokens(1, (1, QUERIES, subject.d_model), seed=36)[0]
    apart = not np.triu(table, 1).any()
    few, more = subject.outputs(X[:, :2], memory=M), subject.outputs(X, memory=M)[:, :2]
    if (alike and not memory.same(once, twice)) or (apart and not subject.same(few, more)):
        return broken(question, None, "memory_length_changes_outputs")
    return passed(question, "it may be longer or shorter than the text")
