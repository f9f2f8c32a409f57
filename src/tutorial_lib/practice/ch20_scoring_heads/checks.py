"""Checks for chapter 20."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models import head_scores
from tutorial_lib.models.copying import run
from tutorial_lib.models.grammar import WORDS, read_documents
from tutorial_lib.models.language import encode
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_V, WIDE, H, T, normal, two_layer_model

MISTAKES, cases_of = read_room(__file__)
N, LENGTH, VOCABULARY = 4, 10, 14  # sequences, their length, words there are


def _targets(seed, *, n=N, length=LENGTH):
    """Targets of a third of the queries; the last query has none."""
    rng = np.random.default_rng(seed)
    earlier = (rng.random((n, length)) * np.arange(1, length + 1)).astype(int)
    target = np.where(rng.random((n, length)) < 1 / 3, earlier, -1)
    target[:, -1] = -1
    return target


def _weights(seed, *, n=N, heads=H, length=LENGTH):
    scores = 2 * normal(seed, n, heads, length, length)
    return softmax(np.where(np.tri(length, dtype=bool), scores, -np.inf))


@cases_of(head_scores.score_head)
def check_score_head():
    yield "three heads", {"weights": _weights(0), "target": _targets(1)}
    yield "one sequence", {"weights": _weights(2, n=1), "target": _targets(3, n=1)}
    yield "eight heads", {"weights": _weights(4, heads=8), "target": _targets(5)}


def _offset_targets(seed, *offsets):
    """Targets whose distances are mostly the likely ones."""
    rng = np.random.default_rng(seed)
    back = rng.choice([*offsets, 0, 1, 2, 3, 4], (N, LENGTH))
    target = np.arange(LENGTH) - back
    return np.where((target >= 0) & (rng.random((N, LENGTH)) < 0.7), target, -1)


def _rare_targets():
    """Few queries have a target, most of them the first word."""
    target = np.full((N, LENGTH), -1)
    target[:3, 0] = 0
    target[:2, 6] = 5
    return target


@cases_of(head_scores.best_offset)
def check_best_offset():
    yield "mostly two back", {"target": _offset_targets(6, 2, 2, 2)}
    yield "mostly itself", {"target": _offset_targets(7, 0, 0, 0)}
    yield "mostly three back", {"target": _offset_targets(8, 3, 3, 3, 3)}
    yield "few targets", {"target": _rare_targets()}


@cases_of(head_scores.fixed_offset_score)
def check_fixed_offset_score():
    yield "two back", {"target": _offset_targets(9, 2, 2), "offset": 2}
    yield "itself", {"target": _offset_targets(10, 0, 0), "offset": 0}
    yield "a distance that never occurs", {"target": _offset_targets(11, 1), "offset": 7}


def _model(seed, **widths):
    return two_layer_model(seed, **{"vocabulary": VOCABULARY} | widths)


def _ids(seed, *batch, length=LENGTH):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (*batch, length))


def _all_logit_terms(model, ids):
    return tuple(head_scores.logit_terms(model, ids))


@cases_of(_all_logit_terms)
def check_logit_terms():
    yield "one sequence", {"model": _model(20), "ids": _ids(12)}
    yield "four sequences", {"model": _model(40, d_k=WIDE), "ids": _ids(13, N, length=T)}


@cases_of(head_scores.run_with)
def check_run_with():
    first, last = {"model": _model(60)}, {"model": _model(80, d_k=WIDE)}
    one, each = {(0, 1): normal(16, D_V)}, {(1, 2): normal(17, N, LENGTH, D_V)}
    apart, both = each | {(0, 0): normal(18, D_V)}, each | {(1, 0): normal(19, D_V)}
    yield "one vector for all words, layer 0", first | {"ids": _ids(14), "outputs": one}
    yield "a vector for each word, layer 1", last | {"ids": _ids(15, N), "outputs": each}
    yield "a head of each layer", last | {"ids": _ids(15, N), "outputs": apart}
    yield "two heads of one layer", last | {"ids": _ids(15, N), "outputs": both}


@cases_of(head_scores.patch)
def check_patch():
    first, last = _model(100), _model(120, d_k=WIDE)
    yield "layer 0", _patch_case(first, 18) | {"layer": 0, "head": 2}
    yield "layer 1, four sequences", _patch_case(last, 21, N) | {"layer": 1, "head": 0}


def _patch_case(model, seed, *batch):
    return {"model": model, "ids": _ids(seed, *batch), "other": _ids(seed + 1, *batch)}


def _score_by_kind(weights, target, ids, kinds):
    n, t = np.nonzero(target >= 0)
    s = target[n, t]
    picked, decided = weights[n, :, t, s], ids[n, s]  # (cases, H), (cases,)
    return np.array([picked[np.isin(decided, kind)].mean(axis=0) for kind in kinds])


@cases_of(_score_by_kind)
def check_score_by_kind():
    two = [[*range(6)], [*range(6, VOCABULARY)]]
    three = [[0, 2, 4, 11], [1, 3, 5, 7], [6, 8, 9, 10, 12]]
    yield "two kinds", _score_case(23, 11) | {"kinds": two}
    yield "three kinds, five heads", _score_case(26, 17, heads=5) | {"kinds": three}


def _score_case(seed, n, *, heads=H):
    weights, target = _weights(seed, n=n, heads=heads), _targets(seed + 1, n=n)
    return {"weights": weights, "target": target, "ids": _ids(seed + 2, n)}


def _duplicate_score(weights, ids):
    same = ids[:, :, None] == ids[:, None, :]
    same &= np.tri(ids.shape[1], k=-1, dtype=bool)  # (sequences, T, T)
    on_copies = (weights * same[:, None]).sum(axis=-1)  # (sequences, H, T)
    n, t = np.nonzero(same.any(axis=-1))
    return on_copies[n, :, t].mean(axis=0)


@cases_of(_duplicate_score)
def check_duplicate_score():
    twice = np.array([[0, 3, 0, 5, 3, 6, 7, 8, 0, 2], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]])
    yield "words come again and again", {"weights": _weights(29), "ids": _ids(30, N) % 5}
    yield "one sequence without copies", {"weights": _weights(31, n=2), "ids": twice}


def _weight_at_subject(model, sentence, layer, head):
    words = encode(sentence)
    target = read_documents(words[None]).decided_by[0, -1]
    return run(model, words[:-1])[1][layer].weights[head, -1, target]


@cases_of(_weight_at_subject)
def check_weight_at_subject():
    model, wide = (_model(140, d_k=d_k, vocabulary=len(WORDS)) for d_k in (D_K, WIDE))
    yield "a noun between", (model, "the dogs that the cat sees bark", 1, 2)
    yield "a name and brackets, wider heads", (wide, "Anna Kern ( often ) sleeps", 0, 1)
    yield "the second sentence", (model, "the cow sings . the frogs dance", 1, 0)
