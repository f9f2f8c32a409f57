"""Scripts of measurements: what --quick measures has the parts of the record and is not written."""

import importlib
import json
import re

import pytest

from experiments import (
    capstone,
    decode,
    grading,
    how_many_heads,
    look_less,
    measuring,
    numpy_attention,
    packed_projection,
    scored_heads,
    state,
    torch_attention,
    windows,
)
from tests.experiments.test_records import NAMED, PARTS
from tests.sampling import long

pytestmark = pytest.mark.usefixtures("no_compiler")

PLANS = {"decode": decode.FULL, "state": state.FULL, "windows": windows.FULL}
BY_SIZE = "sizes", "groups"  # whose names are those of a plan
FORMS = [(library, form) for library, form, *_ in decode.forms([*decode.FULL.kv_heads, "MLA"])]
WINDOW_WAYS = [f"window {w}, {way}" for w in windows.FULL.windows for way in ("masked", "skipped")]
FLEX_WAYS = [f"window {w}, FlexAttention" for w in windows.FULL.windows]
NAMES = {  # part of a record -> the names in it, which its script has
    **{
        f"decode/forms/{library}": [form for own, form in FORMS if own == library]
        for library in ("NumPy", "torch")
    },
    "decode/without_a_cache_ms/NumPy": [*map(str, decode.FULL.lengths)],
    "decode/without_a_cache_ms/torch": [*map(str, decode.FULL.lengths)],
    "state/widths": [*map(str, state.FULL.widths)],
    **{
        f"state/widths/{width}/cache": [*map(str, state.FULL.lengths)]
        for width in state.FULL.widths
    },
    "state/prefill/chunks": [*map(str, state.FULL.chunks)],
    "windows/lengths": [*map(str, windows.FULL.lengths)],
    **{
        f"windows/lengths/{T}/forms": [
            *(f"NumPy, {way}" for way in ("full", *WINDOW_WAYS)),
            *(f"torch, {way}" for way in ("full", *WINDOW_WAYS, *FLEX_WAYS)),
        ]
        for T in windows.FULL.lengths
    },
    **{
        f"numpy_attention/sizes/{n}/forms": numpy_attention.forms_timed_at_size(n)
        for n in measuring.SIZES
    },
    **{
        f"torch_attention/sizes/{name}/{way}": torch_attention.FORMS
        for name in measuring.SIZES
        for way in (torch_attention.FORWARD, torch_attention.BACKWARD)
    },
    "packed_projection/sizes": packed_projection.FULL,
    "grading/classes": grading.FULL,
    **{f"capstone/{kind}": forms for kind, forms in capstone.FORMS.items()},
    "how_many_heads/models": how_many_heads.MODELS,
    "look_less/models": look_less.MODELS,
    "scored_heads/models": scored_heads.MODELS,
    "scored_heads/heads": scored_heads.SCORED,
    "scored_heads/longer": scored_heads.LONGER,
}


@pytest.mark.parametrize("path", NAMES)
def test_a_part_of_a_record_has_the_names_of_its_script(path):
    assert sorted(PARTS[path]) == sorted(NAMES[path])


@pytest.mark.parametrize("name", PLANS)
def test_a_record_is_of_the_plan_of_its_script(name):
    assert NAMED[name]["plan"] == json.loads(json.dumps(PLANS[name]._asdict()))


@pytest.mark.parametrize(
    "name", ["decode", "numpy_attention", "state", "torch_attention", "windows"]
)
def test_no_form_in_a_record_errs_by_more_than_single_precision_does(name):
    parts = [part for path, part in PARTS.items() if path.startswith(f"{name}/")]
    errors = [part["error"] for part in parts if "error" in part]
    assert 0 < max(errors) <= measuring.MOST_ERROR


def structure(value):
    """The names in a record without their numbers, and the kind of each value."""
    if isinstance(value, list):
        return [structure(value[0])]
    if not isinstance(value, dict):
        return "number" if isinstance(value, int | float) else type(value).__name__
    value = value | {name: [*value[name].values()] for name in BY_SIZE if name in value}
    return {re.sub(r"\d+", "#", name): structure(part) for name, part in value.items()}


@pytest.mark.parametrize(
    "name",
    [*long("decode", "numpy_attention", "windows"), "packed_projection", "state"],
)
def test_a_quick_run_has_the_parts_of_the_record_and_writes_nothing(name, monkeypatch):
    monkeypatch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
    monkeypatch.setattr(measuring, "limit_threads", lambda: None)
    found = measuring.run(name, quick=True)
    assert structure(json.loads(json.dumps(found))) == structure(NAMED[name])


@pytest.mark.parametrize("name", ["grading", "state"])
def test_threads_and_memory_are_set_where_a_script_does_not_forbid_it(name, monkeypatch):
    called = []
    monkeypatch.setattr(measuring, "limit_threads", lambda: called.append(name))
    script = importlib.import_module(f"experiments.{name}")
    monkeypatch.setattr(script, "main", lambda plan, record: None)
    measuring.run(name, quick=True)
    assert called == ([] if name == "grading" else [name])


def test_a_script_without_a_small_plan_says_so(monkeypatch):
    monkeypatch.setattr(measuring, "limit_threads", lambda: pytest.fail("it began"))
    with pytest.raises(SystemExit, match="capstone has no small plan"):
        measuring.run("capstone", quick=True)
