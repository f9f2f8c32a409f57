"""What the experiments share: interleaved rounds, medians, peak memory, and how data is written.

A file of `data/` is written here, and its sha256 into `data/sha256.json`. After a change of
`data/facts` by hand, `python -m experiments.measuring` fills in what the configurations of models
give and writes the sha256. It renews no result and no checkpoint: a measured number changes where
its script writes it.
"""

import ctypes
import gc
import hashlib
import importlib
import io
import json
import os
import platform
import re
import sys
import time
import tracemalloc
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import threadpoolctl
import torch

from tutorial_lib import Params, concat_heads, init_params, records
from tutorial_lib.models_card import fill_in
from tutorial_lib.pytorch import timing

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h
GEMM_SIDE = 1024
GEMM_FLOP = 2 * GEMM_SIDE**3
SEED = 0  # of the inputs
MIB = 2**20
MOST_ERROR = 1e-5  # of a form in float32, as a share of the largest number
MOST_CHARACTERS = 300  # of a reason


class Size(NamedTuple):
    """B sequences of T tokens, and a layer of width d with H heads of width d / H."""

    B: int
    T: int
    d: int
    H: int

    @property
    def flop(self):
        """Four projections, and scores and mixing for the half of the square that is seen."""
        return 8 * self.B * self.T * self.d**2 + 4 * self.B * self.T**2 * self.d // 2


SIZES = {
    "book": Size(8, 128, 256, 8),
    "gpt2": Size(4, 1024, 768, 12),
    "long": Size(1, 4096, 768, 12),
}


def inputs(size):
    """Return X and Params of a size, in float64."""
    rng = np.random.default_rng(SEED)
    params = init_params(rng, d_model=size.d, n_heads=size.H)
    return rng.standard_normal((size.B, size.T, size.d)), params


def single_inputs(size):
    """Return the same in float32."""
    X, params = inputs(size)
    return X.astype(np.float32), in_float32(params)


def in_float32(params):
    """Return Params in float32."""
    return Params(*(W.astype(np.float32) for W in vars(params).values()))


def fused_weights(params):
    """Return (d, 3d) and (d, d): the four matrices as torch's users store them, as tensors."""
    wide = [concat_heads(W) for W in (params.W_Q, params.W_K, params.W_V)]
    return torch.from_numpy(np.concatenate(wide, axis=-1)), torch.from_numpy(params.W_O)


def normal(rng, *shape):
    """Return normal numbers in float32."""
    return rng.standard_normal(shape, dtype=np.float32)


def run(name, *, quick=False):
    """Run a script of this folder: make a record, have it filled, and write it unless it is quick.

    A script has a SEED, and a function `main` that fills a record and prints it: `main(record)`, or
    `main(plan, record)` with the plans FULL and QUICK; one that says more of the machine has a
    function `machine`. With `PREPARED = False` threads and memory stay as they are.
    """
    script = importlib.import_module(f"experiments.{name}")
    own = vars(script)
    if quick and "QUICK" not in own:
        raise SystemExit(f"{name} has no small plan; expected {name} without --quick.")
    if own.get("PREPARED", True):
        limit_threads()
    where = own.get("machine", machine)()
    record = new_record(script.__file__, seed=script.SEED, where=where)
    plan = [script.QUICK if quick else script.FULL] if "FULL" in own else []
    script.main(*plan, record)
    if not quick:
        write(name, record)
    return record


def call_each(calls):
    """Make every call, {name: call}; return results, and of those that fail why, both by name."""
    given, reasons = {}, {}
    for name, call in calls.items():
        try:
            given[name] = call()
        except Exception as fault:
            reasons[name] = failure_reason(fault)
    return given, reasons


def failure_reason(fault):
    """Say in a line why something failed: the first cause, which a compiler wraps in others."""
    while fault.__cause__:
        fault = fault.__cause__
    said = str(fault).strip().partition("\n\n")[0]  # what follows a blank line is advice
    return " ".join(f"{type(fault).__name__}: {said}".split())[:MOST_CHARACTERS]


def limit_threads():
    """Give NumPy's BLAS and torch one thread each, and keep freed memory in the process.

    What a new page of memory costs differs from machine to machine by a factor of a hundred, and
    most of all on virtual ones; with memory kept, no timed call waits for one. Only the C library
    of Linux can be told so; elsewhere nothing changes.
    """
    threadpoolctl.threadpool_limits(limits=1)
    torch.set_num_threads(1)
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)


def time_in_rounds(calls, *, rounds, title=""):
    """As `tutorial_lib.pytorch.time_in_rounds`, on the CPU; a terminal shows how far the run is."""
    times_ms = timing.time_in_rounds(
        calls, device="cpu", rounds=rounds, say=lambda line: progress(f"{title}: {line}")
    )
    progress("")
    return times_ms


def round_robin(calls, *given):
    """Return a call that gives the same to the next of some calls, round and round."""
    turn = cycle(calls)
    return lambda: next(turn)(*given)


def gemm():
    """Return a call that multiplies two square matrices: GEMM_FLOP at the best rate there is.

    In one `time_in_rounds` with other calls its times tell, round by round, how long work of a
    known number of flop must take: `limit_ms`.
    """
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, GEMM_SIDE, GEMM_SIDE)).astype(np.float32)
    product = np.empty_like(A)
    return lambda: np.matmul(A, B, out=product)


def limit_ms(flop, gemm_ms):
    """Return the time of so many flop at the rate of the large product in the same round."""
    return flop * gemm_ms / GEMM_FLOP


def progress(line):
    """Show on a terminal how far the run is, in one line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def summary(values):
    """Return the median and the quartiles, which say how much the rounds differ."""
    low, median, high = np.percentile(values, [25, 50, 75]).tolist()
    return {"median": short(median), "low": short(low), "high": short(high)}


def medians(values):
    """Return the median of each entry of a dict."""
    return {name: summary(of)["median"] for name, of in values.items()}


def ratio(times_ms, reference_ms):
    """Return the summary of the ratios of two calls, each taken within one round."""
    return summary(times_ms / reference_ms)


def table_of(times_ms, **references_ms):
    """Return for each name its time, and its ratios to the times of some references."""
    return {
        name: {"ms": summary(ms)} | {of: ratio(ms, other) for of, other in references_ms.items()}
        for name, ms in times_ms.items()
    }


def measure_sizes(sizes, record, measure_size):
    """Measure every size, {name: (size, rounds)}."""
    record["sizes"] = {name: measure_size(name, *given) for name, given in sizes.items()}


def short(number):
    """Return a number with four digits."""
    return float(f"{number:.4g}")


def rounded(value, places=4):
    """Return what JSON can hold, its numbers with so many decimals."""
    if isinstance(value, dict):
        return {name: rounded(part, places) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [rounded(part, places) for part in value]
    return round(float(value), places) + 0.0 if isinstance(value, float) else value  # and no -0.0


def peak_mib(call):
    """Return the most that a call of NumPy holds at once: its result, but not its inputs."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return short((tracemalloc.get_traced_memory()[1] - before) / MIB)
    finally:
        tracemalloc.stop()


def torch_peak_mib(call):
    """Return the same for a call of torch on the CPU."""
    return short(timing.peak_mib(call, device="cpu"))


PEAK_MIB = {"NumPy": peak_mib, "torch": torch_peak_mib}


def error_of(found, expected, *, wrong):
    """Return the largest difference from float64, as a share of the largest number.

    ValueError where it is more than MOST_ERROR: then `found` is something else, called `wrong`.
    """
    found = np.asarray(found, dtype=float).reshape(expected.shape)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error <= MOST_ERROR:
        raise ValueError(f"error {error:.1e}; expected at most {MOST_ERROR}: {wrong}")
    return float(f"{error:.1e}")


def machine():
    """Say in words where the measurements are made: device, threads, BLAS, kernels."""
    capability = torch.backends.cpu.get_cpu_capability()
    return {
        "device": f"one core of: {_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "threads": 1,
        "numpy_blas": _numpy_blas(),
        "torch_blas": f"{_torch_blas()}, {torch.get_num_threads()} thread, {capability}",
    }


def versions():
    """Return the versions that the measurements are made with."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    return found | {"torch": torch.__version__}


def _processor():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    named = re.search(r"model name\s*: (.+)", text)
    return named[1] if named else platform.machine()


def _numpy_blas():
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas" and "numpy" in library["filepath"]:
            threads = library["num_threads"]
            name = {"openblas": "OpenBLAS"}.get(library["internal_api"], library["internal_api"])
            kernels = library.get("architecture", "unnamed")
            return f"{name} {library['version']}, {kernels} kernels, {threads} thread"
    return np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]


def _torch_blas():
    found = re.search(r"Math Kernel Library Version ([\d.]+)", torch.__config__.show())
    return f"MKL {found[1]}" if found else "its own BLAS"


def new_record(file, *, seed, where=None):
    """Return a record that holds its head: the script, its seed, the machine, versions, the month.

    `seed` is a number, a list of several, or None; `where` stands in place of `machine()`.
    """
    script = f"experiments/{Path(file).name}"
    values = script, seed, where or machine(), versions(), time.strftime("%Y-%m")
    return dict(zip(records.HEAD_KEYS, values, strict=True))


def write(name, record):
    """Write data/results/<name>.json, which the chapter reads.

    Raises
    ------
    ValueError : the record does not begin as `new_record` makes it
    """
    records.require_record_metadata(name, record)
    _put(f"results/{name}.json", (as_text(record) + "\n").encode())


def write_checkpoint(name, arrays):
    """Write data/checkpoints/<name>.npz, the same bytes for the same arrays.

    Raises
    ------
    ValueError : it is larger than its budget
    """
    buffer = io.BytesIO()
    np.savez(buffer, **{f"{place:02}": array for place, array in enumerate(arrays)})
    records.require_checkpoint_budget(name, buffer.getvalue())
    _put(f"checkpoints/{name}.npz", buffer.getvalue())


def _put(path, content):
    (records.DATA / path).write_bytes(content)
    write_checksums(path)
    print(f"wrote {path}")


def write_checksums(written=None):
    """Write data/sha256.json: what every file of data/ is when it is as it should be.

    Facts may have been edited by hand, and a new file may come from another machine; every other
    file but the one that was written keeps the sha256 that it has.
    """
    known = json.loads(records.MANIFEST.read_bytes()) if records.MANIFEST.is_file() else {}
    digests = {}
    for path in sorted(p for folder in records.FOLDERS for p in (records.DATA / folder).iterdir()):
        name = path.relative_to(records.DATA).as_posix()
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        measured = name != written and not name.startswith("facts/")
        digests[name] = known.get(name, found) if measured else found
    records.MANIFEST.write_bytes((json.dumps(digests, indent=1) + "\n").encode())


def cached(file, measure):
    """Return what a file of _build holds; where there is none, measure it and write it first."""
    if not file.exists():
        found = measure()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def as_text(record):
    """Return a record as JSON: numbers of a list side by side, each row of a table in a line."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    text = re.sub(r"\n +(?=[-\d.]+[,\n])", " ", text)
    row = re.compile(r"(\n +)(\{[^][{}]*\})")
    return row.sub(lambda found: found[1] + re.sub(r"\n *", " ", found[2]), text)


if __name__ == "__main__":
    models = records.DATA / "facts" / "models.json"
    models.write_text(fill_in(models.read_text("utf-8")), "utf-8")
    write_checksums()
