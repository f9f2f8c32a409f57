"""The check for the task of Part IV's review."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models import circuits
from tutorial_lib.models.ablation import ablate
from tutorial_lib.models.copying import run
from tutorial_lib.models.head_scores import patch
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import WIDE
from tutorial_lib.practice.review_part_4.planted import planted_model, sample_pairs

MISTAKES, cases_of = read_room(__file__)

PLANTED = {  # the order of the heads in each layer, of which the two 0s are the pair; d_k; n
    "three heads below four": ([1, 0, 2], [3, 1, 0, 2], WIDE, 11),
    "four heads below three": ([0, 2, 3, 1], [1, 0, 3], WIDE + 2, 11),
    "two heads of the same number": ([2, 1, 0], [1, 3, 0, 2], WIDE, 11),
    "a single sequence": ([3, 1, 0, 2], [2, 0, 1], WIDE, 1),
}


def _answer_positions(ids):
    """Return the number of each sequence, and the position of its answer: after the copy."""
    before = ids[:, :-1] == ids[:, -1:]
    return np.arange(len(ids)), before.argmax(axis=1) + 1


def _loss(logits, ids):
    """Return the mean of -log of the answer's probability."""
    n, s = _answer_positions(ids)
    return -np.log(softmax(logits[:, -1])[n, ids[n, s]]).mean()


def _margins(logits, ids, other):
    """Return the logit difference of the answers of `ids` and of `other`, in each sequence."""
    n, s = _answer_positions(ids)
    return logits[n, -1, ids[n, s]] - logits[n, -1, other[n, s]]


def _loss_rise(model, ids, other, head):
    """Return by how much the loss at the answer rises by a mean ablation over `other`."""
    return _loss(ablate(model, ids, [head], other), ids) - _loss(run(model, ids)[0], ids)


def _patching_effect(model, ids, other, head):
    """Return the patching effect of a head of layer 1, from `ids` to `other`."""
    start, end = (_margins(run(model, sequences)[0], ids, other) for sequences in (ids, other))
    patched = _margins(patch(model, ids, other, 1, head), ids, other)
    return (patched - start).mean() / (end - start).mean()


def _find_circuit(model, ids, other):
    (low, top), words = model.layers, np.unique(ids)
    patched = (patch(model, ids, other, 1, h) for h in range(top.n_heads))
    b = int(np.argmin([_margins(logits, ids, other).mean() for logits in patched]))
    W_QK = circuits.qk_circuit(top, b)
    W_OVs = [circuits.ov_circuit(low, h) for h in range(low.n_heads)]
    matches = [circuits.match_scores(model.E[words], W_QK, W_OV) for W_OV in W_OVs]
    last = np.isin(words, ids[:, -1])
    a = int(np.argmax([(np.diag(M) - M.mean(axis=1))[last].mean() for M in matches]))
    increases = [_loss_rise(model, ids, other, head) for head in ((0, a), (1, b))]
    return np.array([a, b]), np.array(increases), _patching_effect(model, ids, other, b)


@cases_of(_find_circuit)
def check_find_circuit():
    for seed, (label, (low, top, d_k, n)) in enumerate(PLANTED.items(), start=90):
        ids, other = sample_pairs(np.random.default_rng(seed), n)
        model = planted_model(seed, (low, top), d_k)
        yield label, {"model": model, "ids": ids, "other": other}
