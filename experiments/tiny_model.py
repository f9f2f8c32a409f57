"""Train the tiny model of chapter 08 in many forms, long enough to see which curves are flat.

Four questions, each with arms that differ in one thing: one layer or two (chapter 08); what the
scores are divided by (chapter 03); how many heads, and how wide their queries and keys (chapter
04). Each arm first takes the best of four learning rates, by its accuracy on sequences that are
kept for this choice, with a seed that is not used again; then it trains from five seeds. Accuracy
is the share of copies that are right, on sequences that no step saw. The record also holds a model
of one layer whose numbers are set, not trained: it copies by places alone.

Writes src/tutorial_lib/data/results/tiny_model.json and the first model of two layers after 200
steps, rounded to single precision, to src/tutorial_lib/data/checkpoints/copying.npz. An arm that
is done is kept in _build/tiny_model, so a run that was stopped goes on where it was; empty that
folder when seeds, rates or the training itself have changed.
"""

import math
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.measuring import cached, progress, write_checkpoint
from tutorial_lib import Params
from tutorial_lib.models import copying
from tutorial_lib.models.copying import LENGTH, PERIODS, VOCABULARY, TinyModel
from tutorial_lib.models.training import train

SEEDS, RATES, TESTED = range(5), (1.25e-3, 2.5e-3, 5e-3, 1e-2), 512
RATE_SEED, VALIDATION, TEST = 100, 2000, 1000  # seeds of a choice of rate, of two sets of sequences
SEED = [*SEEDS, RATE_SEED, TEST, VALIDATION]
DONE = Path("_build") / "tiny_model"
CHECKPOINT_STEPS, CHECKPOINT_RATE = 200, 5e-3


class Arm(NamedTuple):
    """One form of the model: what it is compared in, its name, its widths, its steps."""

    group: str
    name: str
    layers: int = 2
    heads: int = 2
    d_k: int = 32
    d_v: int = 32
    times: float = 1.0  # what the scores are multiplied by, beside the root of the library
    start: float = 1.0  # what W_Q begins multiplied by
    steps: int = 800
    tried_for: int = 400  # steps of the runs that choose the rate

    @property
    def watched(self):
        """The steps at which accuracy is measured: doublings of 25, with one between two."""
        doublings = [25 * 2**n for n in range(20)]
        between = [round(step * math.sqrt(2)) for step in doublings]
        return sorted(step for step in (*doublings, *between) if step <= self.steps)


ROOT = math.sqrt(32)
ARMS = (
    Arm("layers", "two layers, 2 heads of 32"),
    Arm("layers", "one layer, 8 heads of 16", 1, 8, d_k=16, d_v=16, steps=12800, tried_for=3200),
    Arm("layers", "one layer, 4 heads of 32", 1, 4, steps=12800, tried_for=3200),
    Arm("root", "sqrt(d_k)"),
    Arm("root", "no root", times=ROOT),
    Arm("root", "sqrt(d_model)", times=ROOT / 8),
    Arm("root", "no root, small start", times=ROOT, start=1 / ROOT),
    *(Arm("heads", f"{h}", heads=h, d_k=64 // h, d_v=64 // h) for h in (1, 2, 4, 8, 16)),
    *(Arm("width", f"{d_k}", d_k=d_k) for d_k in (1, 2, 4, 8, 16, 32)),
)


def scale_scores(model, factor):
    """Return the model with each W_Q, and so each score, multiplied by a factor."""
    layers = tuple(Params(p.W_Q * factor, p.W_K, p.W_V, p.W_O) for p in model.layers)
    return TinyModel(model.E, model.P, layers, model.U)


def differentiate(arm):
    """Return a function for `train`: loss and gradients where all scores have another scale."""

    def loss_and_gradients(model, ids, known):
        loss, gradients = copying.loss_and_gradients(scale_scores(model, arm.times), ids, known)
        for place in range(2, 2 + 4 * arm.layers, 4):  # behind E and P: W_Q, W_K, W_V, W_O a layer
            gradients[place] = gradients[place] * arm.times
        return loss, gradients

    return loss_and_gradients


def init(arm, rng):
    """Draw the untrained model of an arm."""
    shape = {"n_layers": arm.layers, "n_heads": arm.heads, "d_k": arm.d_k, "d_v": arm.d_v}
    return scale_scores(copying.init_model(rng, **shape), arm.start)


def run(arm, seed, rate, sequences):
    """Train one arm from one seed; return its accuracy at each watched step."""
    rng, accuracies = np.random.default_rng(seed), []
    model = init(arm, rng)
    steps = train(model, rng, steps=arm.steps, rate=rate, differentiate=differentiate(arm))
    for step, _, trained in steps:
        if step in arm.watched:
            right = copying.copy_accuracy(scale_scores(trained, arm.times), *sequences)
            accuracies.append(round(float(right), 4))
            progress(f"{arm.group}, {arm.name}, seed {seed}, rate {rate}: step {step} {right:.3f}")
    return accuracies


def held_out(seed):
    """Return sequences that no training step sees."""
    return copying.sample_sequences(np.random.default_rng(seed), TESTED)


def train_all_seeds(arm):
    """Choose the rate of an arm, train it from every seed, and return its part of the record."""
    file = DONE / ("-".join(map(str, arm[2:])) + ".json")  # one model may answer several questions
    return {"group": arm.group, "name": arm.name} | cached(file, partial(measure_anew, arm))


def measure_anew(arm):
    """Return the same of an arm that is not done, without what names it."""
    short, validation = arm._replace(steps=arm.tried_for), held_out(VALIDATION)
    rates = {rate: run(short, RATE_SEED, rate, validation)[-1] for rate in RATES}
    rate = max(rates, key=rates.get)
    found = {"layers": arm.layers, "heads": arm.heads, "d_k": arm.d_k, "d_v": arm.d_v}
    found["parameters"] = sum(array.size for array in init(arm, np.random.default_rng(0)).arrays)
    found |= {"rate": rate, "tried_for": arm.tried_for}
    found["tried"] = [{"rate": r, "copy_accuracy": right} for r, right in rates.items()]
    found |= {"steps": arm.watched}
    found["runs"] = [{"seed": s, "copy_accuracy": run(arm, s, rate, held_out(TEST))} for s in SEEDS]
    return found


def save_checkpoint():
    """Train the model that chapter 08 opens, and write its arrays, the same bytes each time."""
    rng = np.random.default_rng(0)
    first = copying.init_model(rng)
    *_, (_, _, model) = train(first, rng, steps=CHECKPOINT_STEPS, rate=CHECKPOINT_RATE)
    write_checkpoint("copying", [array.astype(np.float32) for array in model.arrays])


def position_weights(t):
    """Return weights of places 0 to t, with sum 0, that find the next letter for every period.

    The next letter stands at every place that lies a multiple of the period before t + 1. For each
    period, the sum of the weights over these places must exceed that over the places of any other
    letter, and 0. A perceptron finds such weights, all of them whole numbers: so it sees the same
    ties, and takes the same steps, on every machine.
    """
    wanted = []
    for period in range(PERIODS[0], min(t, PERIODS[1]) + 1):
        letters = [(np.arange(t + 1) % period == r).astype(int) for r in range(period)]
        right = letters.pop((t + 1) % period)
        wanted += [right - other for other in letters] + [right]
    wanted = (t + 1) * np.array(wanted) - np.sum(wanted, axis=1, keepdims=True)  # rows of sum 0
    weights = np.zeros(t + 1, dtype=int)
    while (wanted @ weights).min() <= (t + 1) ** 2 // 2:  # right, and by a margin
        weights += wanted[(wanted @ weights).argmin()]
    return weights // np.gcd.reduce(weights)


def position_model():
    """Return a model of one layer, two heads, that copies without comparing a single letter.

    X holds the letter and the place side by side. Head 0 takes the positive place weights, head 1
    the negative ones; both hand on letters, and W_O adds the one and subtracts the other.
    """
    scores = np.full((2, LENGTH, LENGTH), -40.0)
    for t in range(PERIODS[0], LENGTH):
        weights = position_weights(t)
        for head, part in enumerate((np.maximum(weights, 0), np.maximum(-weights, 0))):
            scores[head, t, : t + 1] = np.log(np.maximum(part / part.sum(), 1e-17))
    one, none = np.eye(VOCABULARY), np.zeros((VOCABULARY, VOCABULARY))
    W_Q = np.stack([np.vstack([none, table * math.sqrt(LENGTH)]) for table in scores])
    W_K, W_V = (np.stack([np.vstack(pair)] * 2) for pair in ((none, one), (one, none)))
    W_O = 1e4 * np.vstack([np.hstack([none, one]), np.hstack([none, -one])])
    layers = (Params(W_Q, W_K, W_V, W_O),)
    letters, places = np.hstack([one, none]), np.hstack([none, one])
    return TinyModel(letters, places, layers, np.vstack([none, one]))


def position_record():
    """Return the part of the record about the model that copies by places."""
    model = position_model()
    return {
        "parameters": sum(array.size for array in model.arrays),
        "copy_accuracy": round(float(copying.copy_accuracy(model, *held_out(TEST))), 4),
        "position_weights_at_20": position_weights(20).tolist(),
    }


def main(record):
    """Train every arm, print a line for each, and write the checkpoint."""
    save_checkpoint()
    arms = []
    for arm in ARMS:
        found = train_all_seeds(arm)
        progress("")
        last = [run["copy_accuracy"][-1] for run in found["runs"]]
        print(f"{arm.group}, {arm.name}: {min(last)} to {max(last)}, rate {found['rate']}")
        arms.append(found)
    settings = {"d_model": 64, "vocabulary": VOCABULARY, "batch": copying.BATCH}
    settings |= {"tested_sequences": TESTED}
    record |= {"settings": settings, "by_positions": position_record(), "variants": arms}
