"""The benchmark of windows: every form is one attention, and every pair is counted."""

import numpy as np
import pytest
import torch

from experiments import measuring, windows
from tests.experiments.test_records import require_quotient
from tutorial_lib.records import record

pytestmark = pytest.mark.usefixtures("no_compiler")

TINY, FULL = windows.QUICK, windows.FULL
RECORD = record("windows")
ROWS = [(T, form) for T, found in RECORD["lengths"].items() for form in found["forms"]]


def test_every_form_is_one_attention():
    T = TINY.lengths[-1]
    inputs = np.random.default_rng(1).standard_normal((3, TINY.heads, T, 4), dtype=np.float32)
    with torch.inference_mode():
        calls = windows.calls_by_form(TINY, *inputs)
        for form, call in calls.items():
            expected = windows.exact(*inputs, windows.window_of(form) or T)
            assert measuring.error_of(call(), expected, wrong=form) < 2e-6, form


@pytest.mark.parametrize(("T", "window"), [(50, 7), (64, 20), (9, 9)])
def test_pairs_are_those_that_a_loop_counts(T, window):
    pairs = sum(min(t + 1, window) for t in range(T))
    shares = windows.pair_fractions(T, [window])
    assert shares["pairs"] == {"all": T * T, "causal": T * (T + 1) // 2, f"window {window}": pairs}
    assert shares["fraction"][f"window {window}"]["of_causal"] == measuring.short(
        pairs / (T * (T + 1) / 2)
    )


@pytest.mark.parametrize(("T", "form"), ROWS)
def test_a_row_agrees_with_its_times_and_its_pairs(T, form):
    forms = RECORD["lengths"][T]["forms"]
    row, library = forms[form], form.partition(",")[0]
    require_quotient(row["over_full"], row["ms"], forms[f"{library}, full"]["ms"])
    assert ("times_fraction" in row) == form.endswith("skipped")
    if "times_fraction" in row:
        over = row["over_full"]["median"]
        again = windows.times_fraction(over, int(T), windows.window_of(form))
        assert row["times_fraction"] == pytest.approx(again, rel=2e-3)


def test_pairs_of_the_record_are_those_of_its_lengths():
    for T, found in RECORD["lengths"].items():
        assert found | windows.pair_fractions(int(T), FULL.windows) == found
