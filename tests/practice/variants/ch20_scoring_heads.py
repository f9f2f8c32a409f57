"""Right answers of chapter 20, written in other ways."""

import numpy as np

from tutorial_lib.embedding import embed
from tutorial_lib.models.copying import run
from tutorial_lib.models.grammar import read_documents
from tutorial_lib.models.language import encode


def score_by_loops(weights, target):
    found = [
        weights[n, :, t, target[n, t]] for n, t in np.ndindex(target.shape) if target[n, t] >= 0
    ]
    return np.mean(found, axis=0)


def paths_by_silence(model, ids):
    """Each head alone: its part of concat, the rest zeros."""
    _, records = run(model, ids)
    parts = [embed(ids, model.E, model.P) @ model.U]
    for record in records:
        d_v = record.params.d_v
        for head in range(record.params.n_heads):
            alone = np.zeros_like(record.concat)
            alone[..., head * d_v : (head + 1) * d_v] = record.heads[..., head, :, :]
            parts.append(alone @ record.params.W_O @ model.U)
    return tuple(parts)


def kinds_by_truths(weights, target, ids, kinds):
    rows = []
    for kind in kinds:
        own = target.copy()
        for n, t in np.argwhere(target >= 0):
            if ids[n, target[n, t]] not in kind:
                own[n, t] = -1
        rows.append(score_by_loops(weights, own))
    return np.array(rows)


def duplicates_by_loops(weights, ids):
    found = []
    for n, t in np.ndindex(ids.shape):
        copies = [s for s in range(t) if ids[n, s] == ids[n, t]]
        if copies:
            found.append(weights[n, :, t, copies].sum(axis=0))
    return np.mean(found, axis=0)


def weight_in_a_batch(model, sentence, layer, head):
    words = encode(sentence)[None]
    place = read_documents(words).decided_by[0, -1]
    _, records = run(model, words[:, :-1])
    return float(records[layer].weights[0, head, -1, place])


VARIANTS = [
    ("logit_terms", "silence", paths_by_silence),
    ("score_by_kind", "a truth for each kind", kinds_by_truths),
    ("duplicate_score", "loops", duplicates_by_loops),
    ("weight_at_subject", "a batch", weight_in_a_batch),
]


NARROW = [
    ("score_head", "three heads", "return", "assert weights.shape[1] == 3\nreturn"),
    ("best_offset", "no first word", ">= 0", "> 0"),
    ("logit_terms", "one text", "return", "assert ids.ndim == 1\nreturn"),
]
