"""Train layers of chapter 23 on the known text, right ones and wrong ones, for a few hundred steps.

The model, the text, the rate, the average of the weights and the documents that are tested are
those of `known_text`; its first model is the plain layer here, so the two records agree where they
meet. Right layers differ in an option that the chapter's layer has: key heads, rotation, a window,
a sink. Wrong ones have a mistake that its check names. No rate is chosen anew: all take that of
`known_text`, and all train as long as a reader does on a laptop.

Writes src/tutorial_lib/data/results/capstone.json.
"""

from functools import partial

import torch

from experiments import known_text
from experiments.known_text import (
    EXAMPLE,
    LENGTH,
    SEEDS,
    TEST,
    evaluate_logits,
    held_out_documents,
    scores,
)
from experiments.measuring import progress

RATE, STEPS = 4e-3, 768
WATCHED = [48, 96, 192, 384, 768]
WINDOW = 16
SEED = [*SEEDS, TEST, known_text.STREAM]


def visible_keys_mask(T, *, window=LENGTH, ahead=0):
    """Return what each query may see: `window` keys, the last of them `ahead` of it."""
    behind = torch.ones(T, T, dtype=torch.bool).tril(ahead)
    return behind & ~torch.ones(T, T, dtype=torch.bool).tril(ahead - window)


def attend_and_concat(X, matrices, arm, *, scale=None, tiled=False, **sees):
    """Return the heads side by side, (B, T, H * d_v), of a layer with options or a mistake."""
    how = {"seen": visible_keys_mask(X.shape[1], **sees), "scale": scale, "tiled": tiled}
    return known_text.attend_and_concat(X, matrices, arm, **how)


FORMS = {
    "right": {
        "plain": (EXAMPLE, {}),
        "two KV heads": (EXAMPLE._replace(kv_heads=2), {}),
        "rotated": (EXAMPLE._replace(positions="RoPE"), {}),
        "window of 16": (EXAMPLE, {"window": WINDOW}),
        "sink": (EXAMPLE._replace(sink=True), {}),
    },
    "wrong": {
        "not scaled": (EXAMPLE, {"scale": 1.0}),
        "KV heads tiled": (EXAMPLE._replace(kv_heads=2), {"tiled": True}),
        "one key ahead": (EXAMPLE, {"ahead": 1, "window": LENGTH + 1}),
    },
}


def run(arm, seed, how, documents):
    """Train one layer from one seed; return its part of the record."""
    attend, found = partial(attend_and_concat, **how), []
    for step, average in known_text.train(arm, seed, RATE, STEPS, attend):
        if step in WATCHED:
            now = evaluate_logits(scores(average, documents, arm, attend), documents)
            found.append(now["excess_loss"])
    return {"seed": seed, "excess_loss": found, "accuracy": now["accuracy"]}


def main(record):
    """Train every layer from every seed, and print a line for each."""
    record |= {"steps": WATCHED, "rate": RATE, "window": WINDOW}
    documents = held_out_documents(TEST)
    for kind, forms in FORMS.items():
        for name, (arm, how) in forms.items():
            runs = [run(arm, seed, how, documents) for seed in SEEDS]
            ends = known_text.spread([found["excess_loss"][-1] for found in runs])
            numbers = sum(torch.Size(shape).numel() for shape in arm.shapes)
            found = {"parameters": numbers, "excess_loss": ends, "runs": runs}
            record.setdefault(kind, {})[name] = found
            progress("")
            print(f"{name}: {ends}", flush=True)
