"""Let trained models look at fewer keys than they were trained with, and see what it costs.

Models of the known text, trained as `known_text` trains its arms, five seeds each: the example of
the book, heads alone; the same at half and at twice its rate; the same without places; the same
heads in blocks with norms and an MLP; and with a sink, one learned logit a head that takes weight
and brings nothing. Nothing is trained again when keys are left out. What is reported is the
difference from the same seed with all its keys, on the same documents. Beside it stands how much
weight each head gives to <bos>.

Writes src/tutorial_lib/data/results/look_less.json, anew behind each model, and the first seed of
half the rate, in half precision, to src/tutorial_lib/data/checkpoints/look_less.npz. What is
trained is kept in _build/known_text, so a run that was stopped goes on where it was.
"""

from functools import partial

import numpy as np
import torch

from experiments import known_text, measuring
from experiments.known_text import EXAMPLE, TEST, Arm, digits, qkv_per_head, spread
from experiments.measuring import progress, write, write_checkpoint
from tutorial_lib.models import entropy

SEED = known_text.SEED
MODELS = {  # and times the rate that is best on validation documents
    "attention only": (EXAMPLE, 1),
    "attention only, half the rate": (EXAMPLE, 0.5),
    "attention only, twice the rate": (EXAMPLE, 2),
    "no positions": (Arm("less", "no positions", positions="none"), 1),
    "norm and MLP": (Arm("less", "norm and MLP", feed=256), 1),
    "learned sink": (Arm("less", "learned sink", sink=True), 1),
}
SLOW = "attention only, half the rate"
KEPT = (4, 8, 16, 32)  # keys of 64
TASKS = ("agreement", "attractor", "pronoun", "outer bracket", "surname")
LATE = slice(32, None)  # rows whose weights are watched


# A choice says which keys each query keeps: (Q, K, k) -> booleans, (..., T, T), & causal later.


def causal_scores(Q, K):
    """Return the scores, (B, H, T, T), and -inf where a query may not look."""
    scores = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5
    return scores.masked_fill(~causal(Q), -torch.inf)


def causal(Q):
    """Return the causal mask of a text."""
    return torch.ones(Q.shape[-2], Q.shape[-2], dtype=torch.bool).tril()


def top_k(scores, k):
    """Say which k of each row are the largest, of fewer all; -inf is never among them."""
    chosen = scores.topk(k, dim=-1).indices
    mask = torch.zeros(scores.shape, dtype=torch.bool).scatter(-1, chosen, True)
    return mask & (scores > -torch.inf)


def last_keys(Q, K, k):
    """The last k keys, itself included."""
    return causal(Q).triu(1 - k)


def first_and_last(Q, K, k, *, place):
    """One early key and the last k - 1."""
    seen = last_keys(Q, K, k - 1)
    seen[:, place] = True
    return seen


def all_keys(Q, K):
    """Nothing left out."""
    return causal(Q)


def hide_first_key(Q, K):
    """All keys but the first, which its own row keeps."""
    seen = causal(Q)
    seen[1:, 0] = False
    return seen


CHOICES = {
    "last": last_keys,
    "last and first": partial(first_and_last, place=0),
    "last and second": partial(first_and_last, place=1),
    "best": lambda Q, K, k: top_k(causal_scores(Q, K), k),  # of each head
}


def attend_chosen_keys(X, matrices, arm, choice, watched=None):
    """Return the heads side by side, (B, T, H * d_k), of chosen keys, and keep what was seen."""
    Q, K, V = qkv_per_head(X, matrices, arm)
    scores = causal_scores(Q, K).masked_fill(~choice(Q, K), -torch.inf)
    if arm.sink:
        column = matrices[-1][:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : K.shape[-2]]
    if watched is not None:
        watched.append((weights, V))
    return (weights @ V).transpose(1, 2).flatten(2)


def evaluate_choice(arrays, arm, documents, choice, watched=None):
    """Return nats above the floor of each document, and accuracies, with the chosen keys alone."""
    attend = partial(attend_chosen_keys, choice=choice, watched=watched)
    logits = known_text.scores(arrays, documents, arm, attend)
    right = {t: round(share, 4) for t, share in entropy.accuracy(logits, documents).items()}
    return entropy.excess_loss(logits, documents).mean(axis=1), {t: right[t] for t in TASKS}


def compare_choice(arrays, arm, documents, choice, whole):
    """Return what a choice loses more than all keys, the error of this mean, and accuracies."""
    loss, right = evaluate_choice(arrays, arm, documents, choice)
    more = loss - whole
    error = more.std(ddof=1) / len(more) ** 0.5
    return {"more": digits(more.mean()), "standard_error": digits(error), "accuracy": right}


def evaluate_choices(arrays, arm, documents):
    """Return the part of one seed: each choice with each number of keys, and what <bos> gets."""
    watched = []
    whole, _ = evaluate_choice(arrays, arm, documents, all_keys, watched)
    found = {name: {} for name in CHOICES}
    for name, choice in CHOICES.items():
        for k in KEPT:
            progress(f"{arm.name}: {name}, {k} keys")
            some = partial(choice, k=k)
            found[name][str(k)] = compare_choice(arrays, arm, documents, some, whole)
    first = compare_choice(arrays, arm, documents, hide_first_key, whole)
    return {"less": found, "without_first": first, "sink": sink_statistics(watched)}


def sink_statistics(watched):
    """Return the weight of each head on <bos> and on nobody: [layer][head]."""
    found = {"weight": [], "to_sink": []}
    for weights, _ in watched:
        late = weights[..., LATE, :]
        given = {
            "weight": late[..., 0].mean(dim=(0, 2)),
            "to_sink": (1 - late.sum(dim=-1)).mean(dim=(0, 2)).clamp(min=0),
        }
        for name, heads in given.items():
            found[name].append([round(share, 4) for share in heads.tolist()])
    return found


def summarise_seeds(rows):
    """Return one choice over the seeds: least, middle and most of each figure."""
    more = [row["more"] for row in rows]
    return {
        "more": spread(more),
        "seeds": more,
        "standard_error": max(row["standard_error"] for row in rows),
        "accuracy": {t: spread([row["accuracy"][t] for row in rows]) for t in TASKS},
    }


def summarise_sinks(parts):
    """Return over the seeds the most that a head gives to <bos>, and a layer's mean to nobody."""
    weight, mean = (np.array([part[name] for part in parts]) for name in ("weight", "to_sink"))
    largest = spread(weight.max(axis=(1, 2)).tolist())
    layers = mean.mean(axis=-1).round(4).T
    return {"largest": largest, "to_sink": [spread(layer.tolist()) for layer in layers]}


def cached_seed(arm, seed, rate, documents):
    """Return the part of one seed, of _build if it is done."""
    words = ["less", *arm[2:], seed, rate, known_text.STEPS]
    file = known_text.DONE / ("-".join(map(str, words)) + ".json")

    def look():
        arrays = known_text.cached_run(arm, seed, rate, known_text.STEPS, TEST)[1]
        return evaluate_choices([torch.from_numpy(array) for array in arrays], arm, documents)

    return measuring.cached(file, look)


def measure(name, documents):
    """Train a model from every seed, or read what is kept, and let it look at less."""
    (arm, times), parts = MODELS[name], []
    trained = known_text.tune_and_train(arm)
    if times != 1:
        trained = known_text.train_all_seeds(arm, times * trained["rate"], trained["tried"])
    for seed in known_text.SEEDS:
        parts.append(cached_seed(arm, seed, trained["rate"], documents))
    told = ("parameters", "rate", "tried", "steps", "excess_loss", "accuracy", "doubling_change")
    found = {name: trained[name] for name in told}
    found["less"] = {
        name: {
            str(k): summarise_seeds([part["less"][name][str(k)] for part in parts]) for k in KEPT
        }
        for name in CHOICES
    }
    found["without_first"] = summarise_seeds([part["without_first"] for part in parts])
    found["sink"] = summarise_sinks([part["sink"] for part in parts])
    return found


def settings():
    """Return what all models share."""
    return known_text.settings() | {"keys": list(KEPT), "rows_watched": [LATE.start, 63]}


def main(record):
    """Train, let look at less, and write the record, anew behind each model."""
    record |= {"settings": settings(), "models": {}}
    documents = known_text.held_out_documents(TEST)
    for name in MODELS:
        found = record["models"][name] = measure(name, documents)
        progress("")
        for choice in ("last", "last and first", "best"):
            rows = {k: row["more"]["median"] for k, row in found["less"][choice].items()}
            print(f"{name}, {found['excess_loss']['median']}: {choice} {rows}", flush=True)
        if name == SLOW:
            write_checkpoint("look_less", known_text.checkpoint(EXAMPLE, found["rate"]))
        write("look_less", record)
