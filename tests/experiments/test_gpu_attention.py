"""The benchmark of a GPU, at small sizes on the CPU: what is counted, checked, recorded, left."""

import json
import math
import warnings
from collections import Counter
from functools import partial
from types import SimpleNamespace

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
NUMBERS = {"ms", "ms_low", "ms_high", "peak_mib", "error"}
ABSENT = {"cuDNN", "mem-efficient"}  # on a CPU
WAYS = (benchmark.FORWARD, benchmark.BACKWARD)


def case_of(form, way=benchmark.FORWARD, problem=CAUSAL):
    """A case."""
    return benchmark.Case(form, way, problem)


def row_of(form, way=benchmark.FORWARD, problem=CAUSAL):
    """The row of a form on the CPU."""
    return benchmark.row_of(case_of(form, way, problem), benchmark.SMALL, CPU, LIMITS)


@pytest.fixture(scope="module")
def record():
    """What a run at small sizes records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
        return benchmark.measure_all(benchmark.SMALL, CPU, math.inf)


# What is counted.


def rates_by_hand(row, limits):
    """Work, or bytes of a cache, over time, and in percent of what the device can do."""
    B, H, T, S, d_k = (row[name] for name in ("B", "H", "T", "S", "d_k"))
    if row["way"] == benchmark.DECODE:  # keys and values are read once
        rate = 2 * B * H * S * d_k * benchmark.DTYPES[row["dtype"]].itemsize / row["ms"] / 1e6
        return {"gb_per_s": rate, "percent_of_copy": 100 * rate / limits["copy_gb_per_s"]}
    scored_and_mixed = B * H * T * S * (2 * d_k + 2 * d_k) / (2 if row["causal"] else 1)
    flop = scored_and_mixed * (3.5 if row["way"] == benchmark.BACKWARD else 1)
    rate = flop / row["ms"] / 1e9
    return {"tflops": rate, "percent_of_gemm": 100 * rate / limits["gemm_tflops"][row["dtype"]]}


def test_rates_are_the_work_of_the_papers_over_time_in_percent_of_the_limits(record):
    rows = [row for row in record["cases"] if "left_out" not in row]
    assert len(rows) > 20
    for row in rows:
        for name, rate in rates_by_hand(row, record["limits"]).items():
            assert row[name] == pytest.approx(rate, rel=2e-3), (row["form"], row["way"], name)
    assert set(record["limits_at_the_end"]["gemm_tflops"]) == set(benchmark.SMALL.dtypes)


@pytest.mark.parametrize(("dtype", "percent"), [("bf16", 50.0), ("fp32", 800.0), ("fp16", None)])
def test_percents_are_of_the_same_precision(dtype, percent):
    problem = benchmark.Problem(1, 16, 16384, 16384, 128, dtype, True)
    ms = problem.flop / 400e12 * 1e3
    found = benchmark.rates_of(case_of("flash", benchmark.FORWARD, problem), ms, LIMITS)
    assert found == {"tflops": 400.0, "percent_of_gemm": percent}
    assert problem.cache_bytes == 2 * 16 * 16384 * 128 * (4 if dtype == "fp32" else 2)


def test_calls_are_timed_together_and_the_time_is_that_of_one(monkeypatch):
    asked = []

    def time_ms(call, *, device):
        before = len(asked)
        call()
        return 2.0 * (len(asked) - before)

    monkeypatch.setattr(benchmark, "time_ms", time_ms)
    found = benchmark.time_calls(lambda: asked.append(1), CPU, 20.0)
    assert found == {"median": 2.0, "low": 2.0, "high": 2.0}
    assert len(asked) == 1 + 1 + benchmark.WINDOWS * 10, "warm, alone, then windows of ten"
    asked.clear()
    benchmark.time_calls(lambda: asked.append(1), CPU, 0.01)
    assert len(asked) == 3, "one window where a call takes long"


def test_limits_are_those_of_a_product_and_of_a_copy(monkeypatch):
    seen = []

    def time_calls(call, device, window_ms):
        seen.append(call())
        return {"median": 1.0}

    monkeypatch.setattr(benchmark, "time_calls", time_calls)
    plan = benchmark.SMALL._replace(sides=(64, 128), copy_mib=3)
    limits = benchmark.measure_limits(plan, CPU)
    assert limits["gemm_tflops"] == dict.fromkeys(plan.dtypes, measuring.short(2 * 128**3 / 1e9))
    assert [A.dtype for A in seen[:-1:2]] == [benchmark.DTYPES[dtype] for dtype in plan.dtypes]
    assert limits["copy_gb_per_s"] == measuring.short(2 * 3 * 2**20 / 1e6)


# What is compared.


def planted(case, *, part):
    """Attention that is wrong in one part."""

    def attend(Q, K, V):
        if part == "values":
            return F.scaled_dot_product_attention(Q, K, V * 1.02, is_causal=True)
        if part == "mask":
            return F.scaled_dot_product_attention(Q, K, V)
        if part == "last head":
            return F.scaled_dot_product_attention(Q, K, V, is_causal=True).index_fill(
                1, torch.tensor([2]), 0.0
            )
        if part == "nan":
            return F.scaled_dot_product_attention(Q, K, V, is_causal=True) * torch.nan
        lost = {"gradient of Q": Q, "gradient of K": K, "gradient of V": V}
        given = [A.detach() + 0 * A if A is lost.get(part) else A for A in (Q, K, V)]
        return F.scaled_dot_product_attention(*given, is_causal=True)

    return attend


GRADIENTS = [f"gradient of {name}" for name in "QKV"]


@pytest.mark.parametrize("part", ["values", "mask", "last head", "nan", *GRADIENTS])
def test_wrong_attention_is_not_timed_and_says_why(part, monkeypatch):
    monkeypatch.setitem(benchmark.FORMS, "wrong", lambda p, device: planted(p, part=part))
    monkeypatch.setattr(benchmark, "time_calls", lambda *_: pytest.fail("it was timed"))
    assert "this is not attention" in row_of("wrong", benchmark.BACKWARD)["left_out"]


def test_the_plants_are_wrong_in_their_part_alone(monkeypatch):
    monkeypatch.setitem(benchmark.FORMS, "wrong", lambda p, device: planted(p, part="none"))
    assert row_of("wrong", benchmark.BACKWARD)["error"] < 1e-5
    rows = benchmark.rows_of(CAUSAL)
    assert (len(rows), rows[0], rows[-1]) == (64, 0, 69)


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


def test_on_a_gpu_every_length_of_the_plan_has_16k_tokens_and_width_2048():
    cases = benchmark.cases_of(benchmark.FULL)
    decodes = [case for case in cases if case.way == benchmark.DECODE]
    problems = {case.problem for case in cases if case.way != benchmark.DECODE}
    assert cases[: len(decodes)] == decodes
    assert {p.T for p in problems} == {512, 1024, 2048, 4096, 8192, 16384, 32768}
    assert all(max(16384, p.T) == p.B * p.T and p.T == p.S for p in problems)
    assert all(p.H * p.d_k == 2048 for p in problems)
    assert len(problems) == 7 * 2 * 2 * 4
    assert max(Counter(cases).values()) == 1
    assert len(cases) - len(decodes) == len(problems) * 2 * len(benchmark.FORMS)


def test_what_the_goals_name_comes_first_and_what_is_compiled_later():
    cases = [c for c in benchmark.cases_of(benchmark.FULL) if c.way != benchmark.DECODE]
    first = cases[: 7 * (len(benchmark.FORMS) - 1)]
    said = {(c.way, c.problem.dtype, c.problem.d_k, c.problem.causal) for c in first}
    assert said == {(benchmark.FORWARD, "bf16", 128, True)}
    assert first[0].problem.T == 16384
    assert benchmark.FLEX not in {c.form for c in first}
    last = cases[-1]
    assert (last.form, last.way, last.problem.dtype) == (benchmark.FLEX, *WAYS[1:], "fp32")


def test_when_the_minutes_are_spent_the_rest_is_named(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(benchmark.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(benchmark, "row_of", lambda case, *_: {"left_out": str(case)})
    rows, dropped = benchmark.measure_cases(benchmark.SMALL, CPU, LIMITS, until=2)
    names = [str(case) for case in benchmark.cases_of(benchmark.SMALL)]
    assert [row["left_out"] for row in rows] == names[:3]
    assert dropped == names[3:]
    assert len(set(names)) == len(names), "a name says which case"


def test_no_minutes_leave_the_limits_and_all_names():
    record = benchmark.measure_all(benchmark.SMALL, CPU, 0)
    assert record["cases"] == []
    assert len(record["dropped"]) == len(benchmark.cases_of(benchmark.SMALL))
    assert set(record["limits"]["gemm_tflops"]) == set(benchmark.SMALL.dtypes)


def test_the_record_has_every_case_with_numbers_or_a_reason(record):
    cases = benchmark.cases_of(benchmark.SMALL)
    assert [(r["form"], r["way"], r["dtype"], r["causal"]) for r in record["cases"]] == [
        (c.form, c.way, c.problem.dtype, c.problem.causal) for c in cases
    ]
    for row in record["cases"]:
        decode = row["way"] == benchmark.DECODE
        rates = {"gb_per_s", "percent_of_copy"} if decode else {"tflops", "percent_of_gemm"}
        reason = row.get("left_out")
        assert set(row) - {"ran"} == COLUMNS | ({"left_out"} if reason else NUMBERS | rates)
        assert bool(reason) >= (row["form"] in ABSENT)
    assert record["dropped"] == []
    json.dumps(record)


def test_the_record_says_where_it_was_made(record):
    assert {"device", "ours"} <= set(record["machine"])
    assert {"python", "torch", "cuda", "cudnn"} <= set(record["versions"])
    assert record["machine"]["ours"] == which_flash(CPU)
    assert record["plan"]["window_ms"] == benchmark.SMALL.window_ms
    assert record["minutes"] >= 0


def test_the_backend_that_ran_is_named(record):
    ran = {row["form"]: row.get("ran") for row in record["cases"] if row["way"] == WAYS[0]}
    assert ran["flash"] == "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert ran["math"] == "aten::_scaled_dot_product_attention_math"
    assert ran["naive"] is ran["FlexAttention"] is None
    row = row_of("flash", benchmark.BACKWARD)
    assert "_flash_attention_for_cpu_backward" in row["ran"]


@pytest.mark.parametrize("form", sorted(ABSENT))
def test_a_backend_that_is_not_there_is_recorded(form):
    row = row_of(form)
    assert row["left_out"].startswith("RuntimeError: No viable backend")
    assert set(row) == COLUMNS | {"left_out"}


def test_too_little_memory_is_recorded_and_what_pytorch_warned_of(monkeypatch):
    def full(problem, device):
        warnings.warn("Flash attention wants half (Triggered internally at x.cpp:1)", stacklevel=1)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64 GiB.")

    monkeypatch.setitem(benchmark.FORMS, "full", full)
    said = "CUDA out of memory. Tried to allocate 64 GiB. Flash attention wants half"
    assert row_of("full")["left_out"] == f"OutOfMemoryError: {said}"


def test_a_form_that_says_it_is_the_twin_is_no_measure(monkeypatch):
    monkeypatch.setattr(benchmark, "which_flash", lambda device: "cpu: the NumPy twin, because x")
    assert row_of(benchmark.OURS)["left_out"] == "RuntimeError: cpu: the NumPy twin, because x"


@pytest.mark.parametrize(("dtype", "asked"), [("tf32", "high"), ("fp32", "highest")])
def test_tensorfloat_is_allowed_in_its_cases_alone(dtype, asked, monkeypatch):
    seen, before = [], torch.get_float32_matmul_precision()

    def form(problem, device):
        seen.append(torch.get_float32_matmul_precision())
        raise RuntimeError("seen")

    monkeypatch.setitem(benchmark.FORMS, "asks", form)
    row_of("asks", problem=CAUSAL._replace(dtype=dtype))
    assert seen == [asked]
    assert torch.get_float32_matmul_precision() == before


# The driver, and the script.


def test_the_driver_is_asked_for_this_device(tmp_path, monkeypatch):
    script = tmp_path / "nvidia-smi"
    script.write_text('#!/bin/sh\necho "$@" > "$0.asked"\necho "1980 MHz, 3201 MHz, 600 W, 45"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = benchmark.nvidia_smi(benchmark.AT_WORK, torch.device("cuda:1"))
    assert found["clocks.sm"] == "1980 MHz"
    assert list(found) == list(benchmark.AT_WORK)
    asked = (tmp_path / "nvidia-smi.asked").read_text()
    assert "--id=1" in asked
    assert "--query-gpu=clocks.sm,clocks.mem," in asked
    script.write_text("#!/bin/sh\nexit 9\n")
    told = benchmark.nvidia_smi(benchmark.AT_WORK, CPU)
    assert "exit status 9" in told["nvidia-smi"]


def test_without_a_driver_the_record_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "FileNotFoundError" in benchmark.nvidia_smi(benchmark.AT_REST, CPU)["nvidia-smi"]


def test_the_script_runs_small_on_a_cpu_and_writes_nothing(capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "best_device", lambda: CPU)
    monkeypatch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
    benchmark.main(["--small", "--minutes", "0"])
    assert "cases dropped after" in capsys.readouterr().out


def test_without_a_gpu_the_script_says_what_to_ask_for(capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "best_device", lambda: CPU)
    monkeypatch.setattr(benchmark, "measure_all", lambda *_: pytest.fail("it began"))
    with pytest.raises(SystemExit):
        benchmark.main([])
    assert "the device is cpu; expected a CUDA device" in capsys.readouterr().err


def test_the_result_file_is_named_for_the_device(monkeypatch):
    written, asked = {}, []
    device = SimpleNamespace(type="cuda", index=0)
    monkeypatch.setattr(benchmark, "best_device", lambda: device)
    monkeypatch.setattr(benchmark, "measure_all", lambda *given: asked.append(given) or {"a": 1})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(measuring, "write", written.__setitem__)
    benchmark.main([])
    assert written == {"nvidia_h200": {"a": 1}}
    assert asked == [(benchmark.FULL, device, 8)]


def test_each_row_of_a_table_is_a_line_of_the_file():
    rows = [{"form": "flash", "ms": 1.5, "ran": "a, b"}, {"form": "naive", "left_out": "x {y}"}]
    record = {"cases": rows, "sizes": {"book": {"T": 128, "peaks": [1.0, 2.5]}}}
    text = measuring.as_text(record)
    assert json.loads(text) == record
    assert '\n  { "form": "flash", "ms": 1.5, "ran": "a, b" },\n' in text
    assert '"peaks": [ 1.0, 2.5\n' in text


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("form", "operator"),
    [("flash", "flash"), ("cuDNN", "cudnn"), ("mem-efficient", "efficient"), ("math", "math")],
)
def test_on_a_gpu_the_backend_that_ran_is_the_one_allowed(form, operator):
    problem = benchmark.Problem(2, 2, 256, 256, 64, "fp16", True)
    device, limits = benchmark.best_device(), {"gemm_tflops": {}, "copy_gb_per_s": 1.0}
    row = benchmark.row_of(
        case_of(form, benchmark.BACKWARD, problem), benchmark.SMALL, device, limits
    )
    assert operator in row.get("ran", row.get("left_out"))
