"""The benchmark of a GPU, at small sizes on the CPU: what is counted, checked, recorded, left."""

import json
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from experiments import gpu_attention as benchmark
from experiments import measuring
from tests.sampling import long
from tutorial_lib.pytorch.flash import which_flash

pytestmark = pytest.mark.usefixtures("no_compiler")

CPU = torch.device("cpu")
LIMITS = {"gemm_tflops": {"bf16": 800.0, "fp32": 50.0}, "copy_gb_per_s": 4000.0}
CAUSAL = benchmark.Problem(2, 3, 70, 70, 8, "fp32", True)  # more queries than are compared
COLUMNS = {"form", "way", "B", "H", "T", "S", "d_k", "dtype", "causal"}
NUMBERS = {"ms", "peak_mib", "error"}
ABSENT = {"cuDNN", "mem-efficient"}  # on a CPU
WAYS = (benchmark.FORWARD, benchmark.BACKWARD)


def case_of(form, way=benchmark.FORWARD, problem=CAUSAL):
    """A case."""
    return benchmark.Case(form, way, problem)


def row_of(form, way=benchmark.FORWARD, problem=CAUSAL):
    """The row of a form on the CPU."""
    return benchmark.row_of(case_of(form, way, problem), benchmark.QUICK, CPU, LIMITS)


@pytest.fixture(scope="module")
def record():
    """What a run at small sizes records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
        patch.setattr(benchmark, "best_device", lambda: CPU)
        patch.setattr(measuring, "prepare", lambda: pytest.fail("it has one thread"))
        patch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
        return measuring.run("gpu_attention", quick=True)


# What is counted.


def rates_by_hand(row, limits):
    """Work, or bytes of a cache, over time, and in percent of what the device can do."""
    B, H, T, S, d_k, ms = (*(row[name] for name in "BHTS"), row["d_k"], row["ms"]["median"])
    if row["way"] == benchmark.DECODE:  # keys and values are read once
        rate = 2 * B * H * S * d_k * benchmark.DTYPES[row["dtype"]].itemsize / ms / 1e6
        return {"gb_per_s": rate, "percent_of_copy": 100 * rate / limits["copy_gb_per_s"]}
    scored_and_mixed = B * H * T * S * (2 * d_k + 2 * d_k) / (2 if row["causal"] else 1)
    rate = scored_and_mixed * (3.5 if row["way"] == benchmark.BACKWARD else 1) / ms / 1e9
    return {"tflops": rate, "percent_of_gemm": 100 * rate / limits["gemm_tflops"][row["dtype"]]}


def test_rates_are_the_work_of_the_papers_over_time_in_percent_of_the_limits(record):
    rows = [row for row in record["cases"] if "left_out" not in row]
    assert len(rows) > 20
    for row in rows:
        for name, rate in rates_by_hand(row, record["limits"]).items():
            assert row[name] == pytest.approx(rate, rel=2e-3), (row["form"], row["way"], name)


# What is compared.


causal = partial(F.scaled_dot_product_attention, is_causal=True)
PLANTED = {  # attention that is wrong in one part
    "values": lambda Q, K, V: causal(Q, K, V * 1.02),
    "mask": F.scaled_dot_product_attention,
    "last head": lambda Q, K, V: causal(Q, K, V).index_fill(1, torch.tensor([2]), 0.0),
    "nan": lambda Q, K, V: causal(Q, K, V) * torch.nan,
    "gradient of Q": lambda Q, K, V: causal(Q.detach() + 0 * Q, K, V),
    "gradient of K": lambda Q, K, V: causal(Q, K.detach() + 0 * K, V),
    "gradient of V": lambda Q, K, V: causal(Q, K, V.detach() + 0 * V),
}


@pytest.mark.parametrize("part", PLANTED)
def test_wrong_attention_is_not_timed_and_says_why(part, monkeypatch):
    monkeypatch.setitem(benchmark.FORMS, "wrong", lambda p, device: PLANTED[part])
    monkeypatch.setattr(benchmark, "time_calls", lambda *_: pytest.fail("it was timed"))
    assert "this is not attention" in row_of("wrong", benchmark.BACKWARD)["left_out"]


@pytest.mark.parametrize("way", [benchmark.FORWARD, *long(benchmark.BACKWARD)])
@pytest.mark.parametrize("form", sorted({*benchmark.FORMS} - ABSENT))
def test_every_form_gives_what_attention_gives(form, way):
    problem = CAUSAL._replace(H=1, d_k=16)  # the least that our kernel takes
    row = row_of(form, way, problem)
    if (form, way) == (benchmark.FLEX, benchmark.BACKWARD):
        assert "backward on CPU" in row["left_out"]
    elif form == benchmark.OURS and "twin" in which_flash(CPU):
        assert "NumPy twin" in row["left_out"]
    else:
        assert row["error"] < 2e-6
        assert row["peak_mib"] > 0


# What runs, and what is left.


def test_when_the_minutes_are_spent_the_rest_is_named(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(benchmark.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(benchmark, "row_of", lambda case, *_: {"left_out": str(case)})
    rows, dropped = benchmark.measure_cases(benchmark.QUICK, CPU, LIMITS, until=2)
    names = [str(case) for case in benchmark.cases_of(benchmark.QUICK)]
    assert [row["left_out"] for row in rows] == names[:3]
    assert dropped == names[3:]
    assert len(set(names)) == len(names), "a name says which case"


def test_the_record_has_every_case_with_numbers_or_a_reason(record):
    cases = benchmark.cases_of(benchmark.QUICK)
    assert [(r["form"], r["way"], r["dtype"], r["causal"]) for r in record["cases"]] == [
        (c.form, c.way, c.problem.dtype, c.problem.causal) for c in cases
    ]
    for row in record["cases"]:
        decode = row["way"] == benchmark.DECODE
        rates = {"gb_per_s", "percent_of_copy"} if decode else {"tflops", "percent_of_gemm"}
        reason = row.get("left_out")
        assert set(row) == COLUMNS | ({"left_out"} if reason else NUMBERS | rates)
        assert bool(reason) >= (row["form"] in ABSENT)
    assert record["dropped"] == []
    json.dumps(record)
