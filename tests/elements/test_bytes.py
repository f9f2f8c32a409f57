"""The byte calculator as bytes: its table without a script says what the library counts."""

import re

import pytest

from tutorial_lib.counting import cache_entries, model_cache_bytes
from tutorial_lib.elements.exhibits import byte_calculator
from tutorial_lib.records import facts

HTML = byte_calculator().html
ROW = (
    r'<tr data-cached="(.*?)"><th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>'
)
ROWS = {name: rest for cached, name, *rest in re.findall(ROW, HTML)}
PATTERNED = [model for model in facts("models")["models"] if "pattern" in model]


def test_every_model_that_caches_anything_is_there():
    caching = {model["name"] for model in PATTERNED if any(cache_entries(model))}
    assert set(ROWS) == caching
    assert {"BERT-base", "BERT-large"} == {model["name"] for model in PATTERNED} - caching
    assert re.findall(r"<option.*?>(.*?)</option>", HTML)[: len(ROWS) + 1] == [*ROWS, "my own"]


@pytest.mark.parametrize("name", ROWS)
def test_row_says_what_the_library_counts(name):
    [model] = [model for model in PATTERNED if model["name"] == name]
    layers, each, outgrows = ROWS[name]
    outgrows, _, few = outgrows.partition(", but it has learned ")
    positions = model.get("positions", {"kind": "none"})
    assert few == (
        f"{positions['max_positions']:,} positions" if positions["kind"] == "learned" else ""
    )
    counts = [int(count) for count in re.findall(r"(\d+):", layers)]
    assert sum(counts) == model["layers"]
    written = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d|\d", each)]
    wanted = [2 * number for number in cache_entries(model) if number]
    assert [number for number in written if number != model.get("window")] == wanted
    weights = 2 * model["parameters"]
    if outgrows == "never":
        assert model_cache_bytes(model, 2**60) <= weights
    else:
        tokens = int(outgrows.replace(",", ""))
        assert model_cache_bytes(model, tokens - 1) <= weights < model_cache_bytes(model, tokens)
