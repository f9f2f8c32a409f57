"""How long pages take: rates for words, lines of code and exercises, fitted to noted minutes.

Two simulated readers, a student with Parts I and II and an engineer with Parts III and IV, worked
through these pages as they were at one commit, and noted their minutes. Every fourth page is left
out of the fit, and the rates are tried on it. `tools/minutes.py` holds the rates, rounded.

    python -m tools.page_minutes      counts the pages of that commit again, which needs the
                                            history, and prints rates and errors
"""

import json
import subprocess
from typing import NamedTuple

import numpy as np

from tools.chapters import ROOT
from tools.minutes import count

COMMIT = "2b5cd20"
EVERY = 4
# minutes of reading and of doing, as noted; then words, lines, exercises, further words
NOTED = {
    "01_embeddings": (40, 45, 1642, 75, 4, 0),
    "02_queries_keys_values": (50, 50, 1668, 79, 4, 0),
    "03_attention_weights": (60, 55, 2114, 132, 4, 0),
    "04_heads": (70, 60, 2004, 141, 4, 0),
    "05_concatenation": (40, 65, 1361, 91, 4, 0),
    "06_output_projection": (60, 75, 2439, 150, 4, 0),
    "08_gradients": (120, 100, 2607, 303, 4, 0),
    "10_masks": (75, 60, 2217, 191, 4, 0),
    "12_flash_attention": (110, 80, 2211, 178, 4, 0),
    "14_kv_cache": (95, 75, 2764, 204, 4, 0),
    "15_fewer_keys": (95, 90, 2569, 196, 4, 0),
    "16_positions": (85, 70, 2446, 169, 4, 0),
    "17_look_at_less": (105, 80, 2307, 228, 4, 0),
    "18_state": (80, 70, 2245, 202, 3, 0),
    "19_known_text": (75, 55, 2351, 153, 4, 0),
    "20_scored_heads": (100, 80, 2506, 247, 4, 0),
    "21_induction": (85, 70, 2272, 201, 4, 0),
    "22_how_many_heads": (85, 80, 1880, 228, 4, 0),
    "23_capstone": (60, 270, 1813, 85, 4, 395),
    "review_part_3": (25, 120, 800, 7, 1, 214),
    "review_part_4": (25, 110, 682, 16, 1, 156),
}


class Fit(NamedTuple):
    """Rates in minutes, and the errors on the pages left out, as parts of the noted minutes."""

    rates: tuple
    median: float
    worst: float


def fit():
    """Return the fits of reading, to words and lines, and of doing, to exercises and lines."""
    reading, doing, words, lines, exercises, further = np.array(list(NOTED.values()), float).T
    return _fit(reading, words, lines), _fit(doing, exercises, further, lines)


def _fit(minutes, *held):
    """Fit rates to relative errors, so that a short page counts like a long one."""
    left_out = np.arange(len(minutes)) % EVERY == EVERY - 1
    parts = np.stack(held, axis=1) / minutes[:, None]
    rates = np.linalg.lstsq(parts[~left_out], np.ones(sum(~left_out)), rcond=None)[0]
    errors = np.abs(parts[left_out] @ rates - 1)
    return Fit(tuple(map(float, rates)), float(np.median(errors)), float(errors.max()))


def counted(name):
    """Count what a page held at the commit."""
    command = ["git", "show", f"{COMMIT}:notebooks/{name}.ipynb"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return count(json.loads(shown.stdout)["cells"])


def main():
    """Count again, then print rates and errors.

    Raises
    ------
    ValueError : a page held something else than NOTED says
    """
    for name, (*_, words, lines, exercises, further) in NOTED.items():
        found = counted(name)
        said = (words, lines, exercises, further)
        if said != (found.words, found.lines, found.exercises, found.further):
            raise ValueError(f"{name} held {found}, and NOTED says {said}: correct NOTED.")
    for kind, found in zip(("reading", "doing"), fit(), strict=True):
        rates = ", ".join(f"{rate:.4f}" for rate in found.rates)
        print(f"{kind}: {rates}; left out: median {found.median:.1%}, worst {found.worst:.1%}")


if __name__ == "__main__":
    main()
