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
LIMITS = {"bf16": 800.0, "fp32": 50.0}
COLUMNS = set(benchmark.Case._fields)
NUMBERS = {"ms", "tflops", "percent_of_gemm", "peak_mib", "error"}
ABSENT = {"cuDNN", "mem-efficient"}  # on a CPU


def row_of(form, way=benchmark.FORWARD):
    """The row of a form on the CPU; its heads have the least width that our kernel takes."""
    case = benchmark.Case(form, way, 2, 3, 70, 16, "fp32", True)
    return benchmark.row_of(case, benchmark.QUICK, CPU, LIMITS)


def test_the_record_has_every_case_with_numbers_or_a_reason(monkeypatch):
    monkeypatch.setattr(benchmark, "best_device", lambda: CPU)
    monkeypatch.setattr(measuring, "limit_threads", lambda: pytest.fail("it has one thread"))
    monkeypatch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
    record = measuring.run("gpu_attention", quick=True)
    assert record["dropped"] == 0
    assert len(record["cases"]) == len(benchmark.cases_of(benchmark.QUICK)) > 20
    for row in record["cases"]:
        assert set(row) == COLUMNS | ({"left_out"} if row.get("left_out") else NUMBERS)
        if "ms" in row:  # scored and mixed, half of the square, and 2.5 times that on the way back
            flop = row["B"] * row["H"] * row["T"] ** 2 * 4 * row["d_k"]
            flop = flop / (2 if row["causal"] else 1)
            flop = flop * (3.5 if row["way"] == benchmark.BACKWARD else 1)
            assert row["tflops"] == pytest.approx(flop / row["ms"]["median"] / 1e9, rel=2e-3)
    json.dumps(record)


def test_when_the_minutes_are_spent_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(benchmark, "best_device", lambda: CPU)
    record = {}
    benchmark.main(benchmark.QUICK._replace(minutes=-1), record)
    assert record["cases"] == []
    assert record["dropped"] == len(benchmark.cases_of(benchmark.QUICK))


causal = partial(F.scaled_dot_product_attention, is_causal=True)
PLANTED = {  # attention that is wrong in one part
    "values": lambda Q, K, V: causal(Q, K, V * 1.02),
    "mask": F.scaled_dot_product_attention,
    "nan": lambda Q, K, V: causal(Q, K, V) * torch.nan,
    "gradient of Q": lambda Q, K, V: causal(Q.detach() + 0 * Q, K, V),
    "gradient of V": lambda Q, K, V: causal(Q, K, V.detach() + 0 * V),
}


@pytest.mark.parametrize("part", PLANTED)
def test_wrong_attention_is_not_timed_and_says_why(part, monkeypatch):
    monkeypatch.setitem(benchmark.FORMS, "wrong", lambda case, device: PLANTED[part])
    monkeypatch.setattr(benchmark, "time_calls", lambda *_: pytest.fail("it was timed"))
    assert "this is not attention" in row_of("wrong", benchmark.BACKWARD)["left_out"]


@pytest.mark.parametrize("way", [benchmark.FORWARD, *long(benchmark.BACKWARD)])
@pytest.mark.parametrize("form", sorted({*benchmark.FORMS} - ABSENT))
def test_every_form_gives_what_attention_gives(form, way):
    row = row_of(form, way)
    if (form, way) == (benchmark.FLEX, benchmark.BACKWARD):
        assert "backward on CPU" in row["left_out"]
    elif form == benchmark.OURS and "twin" in which_flash(CPU):
        assert "NumPy twin" in row["left_out"]
    else:
        assert row["error"] < 2e-6
        assert row["peak_mib"] > 0
