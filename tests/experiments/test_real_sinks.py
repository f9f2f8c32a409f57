"""The sink's record is what its script measures, and each change changes what its name says."""

import numpy as np
import pytest

from experiments import real_sinks
from experiments.real_sinks import CHANGES, CONTROL, ENTRY, FEED, LATER, LENGTH, MAKER, TO
from tutorial_lib.models.real.model import SHA256, run_real
from tutorial_lib.records import record

RECORD = record("real_sinks")


def test_the_first_text_is_measured_again(model):
    measured = RECORD["doubt"][0]
    ids = model.tokenizer.encode(RECORD["text"])[:LENGTH]
    trace = run_real(model, ids)
    assert RECORD["model"]["sha256"] == SHA256
    assert trace.X[LATER, 0, ENTRY] == pytest.approx(RECORD["spike"]["texts"][0], abs=1)
    assert real_sinks.loss(trace, ids) == pytest.approx(measured["loss"], abs=1e-3)
    assert real_sinks.later_sink_weight(trace, 0) == pytest.approx(measured["later"], abs=1e-3)
    gone = run_real(model, ids, **CHANGES["token 0 replaced"])
    assert real_sinks.later_sink_weight(gone, 0) == pytest.approx(
        measured["later without"], abs=1e-3
    )


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("token 0 replaced", {0}),
        ("token 5 replaced", {CONTROL}),
        ("moved to token 40", {0, TO}),
        ("one entry moved", {0, TO}),
        ("a random row", {0, TO}),
        ("one entry zero", {0}),
    ],
)
def test_a_change_changes_the_rows_that_it_names(name, rows):
    feed = np.random.default_rng(3).standard_normal((LENGTH, 576))
    before = feed.copy()
    changed = CHANGES[name]["hooks"][MAKER, FEED](feed)
    np.testing.assert_array_equal(feed, before)
    assert set(np.flatnonzero((changed != feed).any(axis=1))) == rows
    if name == "moved to token 40":
        np.testing.assert_array_equal(changed[TO], feed[0])
    if name == "one entry moved":
        assert list(np.flatnonzero(changed[TO] != feed[TO])) == [ENTRY]
    if name == "a random row":
        assert np.linalg.norm(changed[TO]) == pytest.approx(np.linalg.norm(feed[0]))


def test_a_mask_hides_what_it_names():
    assert np.flatnonzero(real_sinks.isolation_mask(TO)[TO]).tolist() == [TO]
    for width, kept in ((16, ()), (16, (0,)), (64, (0, 1, 2, 3))):
        mask = real_sinks.recent_keys_mask(width, kept)
        assert (mask[100:].sum(axis=1) == width).all()
        assert mask[200, list(kept)].all()
        assert mask[200, 200]
        assert not mask[np.triu_indices(LENGTH, 1)].any()
