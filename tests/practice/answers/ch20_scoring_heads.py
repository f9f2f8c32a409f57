"""What computes the keys of chapter 20: from the text, the model, and small sums."""

from fractions import Fraction
from functools import cache

import numpy as np

from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import accuracy
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.head_scores import (
    logit_terms,
    run_with,
    score_head,
)
from tutorial_lib.records import checkpoint


@cache
def asked():
    """The example, and documents that the chapter does not sample."""
    return TinyModel.of(checkpoint("known_text")), sample_documents(np.random.default_rng(7), 60)


def how_near_the_terms_come():
    """Whether the nine terms add up to the logits."""
    model, documents = asked()
    logits, parts = run(model, documents.ids[:, :-1])[0], logit_terms(model, documents.ids[:, :-1])
    off = np.abs(sum(parts) - logits).max()
    assert len(parts) == 1 + 8  # the word, and eight heads
    exact = bool(off < 1e-12 * np.abs(logits).max())
    return [not exact, exact, not exact, not exact]


def whose_ablation_loses_the_surnames():
    """Which of 1.0, 1.3 and 0.0 loses the most surnames when it is replaced by its mean."""
    model, documents = asked()
    ids, names = documents.ids[:, :-1], {"1.0": (1, 0), "1.3": (1, 3), "0.0": (0, 0)}
    logits, records = run(model, ids)
    weights = np.concatenate([record.weights for record in records], axis=1)
    scores = score_head(weights, documents.target_of("surname"))
    assert set(scores.argsort()[-2:]) == {4, 7}
    assert scores[0] < 0.01
    lost = {}
    for name, (layer, head) in names.items():
        mean = records[layer].heads[:, head].mean(axis=(0, 1))
        cut = accuracy(run_with(model, ids, {(layer, head): mean}), documents)
        lost[name] = accuracy(logits, documents)["surname"] - cut["surname"]
    most = max(lost, key=lost.get)
    assert lost[most] > 0.5
    return [most == "1.0", most == "1.3", most == "0.0", lost[most] < 0.5]


def fixed_offset_of_a_quiz():
    """A head that attends three back, where the subject is three back in three cases of four."""
    target = np.full((4, 12), -1)
    for n, text in enumerate(["the dogs ( often ) bark"] * 3 + ["the dogs ( often now ) bark"]):
        words = ["<bos>", *text.split()]
        target[n, words.index("bark") - 1] = words.index("dogs")
    weights = np.tile(np.eye(12, k=-3), (4, 1, 1, 1))
    score = score_head(weights, target)[0]
    return [bool(score == value) for value in (1 / 4, 3 / 4, 0, 1)]


def fraction_of_a_logit_difference():
    """The fraction of a logit difference that head 1.2 contributes."""
    bark, barks = np.array([1, 4, 0]), np.array([2, -3, 0])
    fraction = Fraction(int(bark[1] - barks[1]), int(bark.sum() - barks.sum()))
    return str(fraction)


def rows_of_head_two():
    """Which columns of concat hold head 2 of four heads of 16."""
    heads = np.zeros((4, 1, 16))
    heads[2] = 1
    [columns] = [np.flatnonzero(concat_heads(heads)[0])]
    return f"{columns[0]} to {columns[-1]}"
