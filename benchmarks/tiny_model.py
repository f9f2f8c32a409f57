"""Train the tiny model of chapter 08 from five seeds, with two layers and with one.

The model of one layer has as many heads, and as many numbers, as that of two. Every ten steps: the
share of copies that are right on sequences it has not seen. Writes
src/tutorial_lib/data/results/tiny_model.json and the first model of two layers, rounded to single
precision, to src/tutorial_lib/data/checkpoints/tiny_model.npz.
"""

import io
import time

import numpy as np
from measuring import RESULTS, machine, prepare, print_machine, progress, write

from tutorial_lib import tiny_model

SEEDS, STEPS, EVERY, TESTED = range(5), 200, 10, 256
HEADS = {2: 2, 1: 4}  # heads in a layer, by the number of layers
CHECKPOINT = RESULTS.parent / "checkpoints" / "tiny_model.npz"


def train(seed, n_layers):
    """Return the trained model, its accuracy every ten steps, and the seconds of training."""
    rng = np.random.default_rng(seed)
    fresh = tiny_model.draw_sequences(np.random.default_rng(1000 + seed), TESTED)
    accuracies, measuring = [], 0.0

    def watch(step, model):
        nonlocal measuring
        if step % EVERY == 0:
            started = time.perf_counter()
            accuracies.append(round(float(tiny_model.copy_accuracy(model, *fresh)), 4))
            measuring += time.perf_counter() - started
            progress(f"layers {n_layers}, seed {seed}: step {step} of {STEPS}")

    started = time.perf_counter()
    model = tiny_model.init_model(rng, n_layers=n_layers, n_heads=HEADS[n_layers])
    model, _ = tiny_model.train(model, rng, steps=STEPS, watch=watch)
    return model, accuracies, time.perf_counter() - started - measuring


def save(model):
    """Write the arrays of a model, the same bytes each time."""
    CHECKPOINT.parent.mkdir(exist_ok=True)
    names = [f"{n:02}" for n in range(len(model.arrays))]
    arrays = (array.astype(np.float32) for array in model.arrays)
    buffer = io.BytesIO()
    np.savez(buffer, **dict(zip(names, arrays, strict=True)))
    CHECKPOINT.write_bytes(buffer.getvalue())


def main():
    """Train, print a line for each model, and write both files."""
    prepare()
    where = machine()
    print_machine(where)
    runs = []
    for n_layers in HEADS:
        for seed in SEEDS:
            model, accuracies, seconds = train(seed, n_layers)
            progress("")
            print(f"layers {n_layers}, seed {seed}: {accuracies[-1]:.4f} after {seconds:.1f} s")
            runs.append(
                {
                    "layers": n_layers,
                    "heads": HEADS[n_layers],
                    "seed": seed,
                    "seconds": round(seconds, 1),
                }
                | {"copy_accuracy": accuracies}
            )
            if (n_layers, seed) == (2, 0):
                save(model)
    settings = {"d_model": model.E.shape[1], "vocabulary": len(model.E)}
    settings |= {"steps": list(range(EVERY, STEPS + 1, EVERY)), "tested_sequences": TESTED}
    record = {"script": "benchmarks/tiny_model.py", "machine": where, "settings": settings}
    write("tiny_model", record | {"runs": runs})


if __name__ == "__main__":
    main()
