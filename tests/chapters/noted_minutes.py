"""How long pages take: rates for words, lines of code and exercises, fitted to noted minutes.

Two simulated readers, a student with Parts I and II and an engineer with Parts III and IV, worked
through the pages of noted_minutes.csv and noted their minutes; its counts are those of the pages
as they were then, at commit 2b5cd20. Every fourth page is left out of the fit, and the rates are
tried on it. `tools/minutes.py` holds the rates, rounded.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

NOTED = np.genfromtxt(
    Path(__file__).with_suffix(".csv"), delimiter=",", names=True, usecols=range(1, 7)
)


class Fit(NamedTuple):
    """Rates in minutes, and the errors on the pages left out, as parts of the noted minutes."""

    rates: tuple
    median: float
    worst: float


def fit(noted=NOTED):
    """Return the fits of reading, to words and lines, and of doing, to exercises and lines."""
    held = {"reading": ["words", "lines"], "doing": ["exercises", "further", "lines"]}
    return [_fit(noted[kind], [noted[name] for name in names]) for kind, names in held.items()]


def _fit(minutes, held):
    """Fit rates to relative errors, so that a short page counts like a long one."""
    left_out = np.arange(len(minutes)) % 4 == 3
    parts = np.stack(held, axis=1) / minutes[:, None]
    rates = np.linalg.lstsq(parts[~left_out], np.ones(sum(~left_out)), rcond=None)[0]
    errors = np.abs(parts[left_out] @ rates - 1)
    return Fit(tuple(map(float, rates)), float(np.median(errors)), float(errors.max()))
