"""Repeat a pytest command as other processors would run it: `make test-blas`.

OpenBLAS, NumPy, MKL and PyTorch choose their routines for the processor that they find, and the
routines round in different ways. No printed number and no test may depend on that. Each run fixes
OpenBLAS's kernel, the instructions of the others and the number of threads; together the runs hold
every setting and, as far as `MOST_RUNS` goes, every pair of two. A kernel that crashes on this
processor, or gives wrong products, is left out, and the first lines say so.

Each run appends a line to `_build/blas_matrix.log`. A run in which NumPy does not use the kernel
that was asked for fails: pytest loads this file as a plugin and looks for itself.
"""

import itertools
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / "_build" / "blas_matrix.log"
KERNELS = {
    "x86_64": ("SkylakeX", "Haswell", "Sandybridge", "Nehalem", "Prescott"),
    "aarch64": ("NEOVERSEV1", "NEOVERSEN1", "ARMV8"),
}
REPORTED_AS = {"Katmai": "Prescott"}  # OpenBLAS has one kernel for both, and says the older name
TORCH = {"x86_64": ("avx512", "avx2", "default")}
MKL = {"x86_64": ("AVX2", "SSE4_2")}
WITHOUT = {"x86_64": ("", "AVX512_ICL X86_V4 X86_V3")}  # what NumPy's own loops do without
THREADS = ("1", "2")
MOST_RUNS = 8
OPTIONS = (
    "OPENBLAS_CORETYPE",
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "OMP_NUM_THREADS",
)
PROBE = """
import json
import numpy as np
import torch
from tools import blas_matrix

rng = np.random.default_rng(0)
right = True
for dtype in ("float32", "float64"):
    for T, d, n in ((1, 7, 5), (97, 131, 53), (128, 64, 128), (300, 257, 129)):
        A, B = rng.integers(-8, 9, (T, d)), rng.integers(-8, 9, (d, n))  # their sums are exact
        products = A.astype(dtype) @ B.astype(dtype), A.astype(dtype) @ B[:, 0].astype(dtype)
        right &= np.array_equal(products[0], A @ B) and np.array_equal(products[1], A @ B[:, 0])
instructions = torch.backends.cpu.get_cpu_capability().lower()  # of PyTorch's own loops
print(json.dumps([*blas_matrix.blas_in_use(), instructions, bool(right)]))
"""


def blas_in_use() -> tuple[str, int]:
    """Return the kernel and the number of threads of the OpenBLAS that NumPy loaded."""
    import numpy  # noqa: F401 (loads the library that threadpoolctl then finds)
    import threadpoolctl

    for library in threadpoolctl.threadpool_info():
        if library["internal_api"] == "openblas" and "numpy" in library["filepath"]:
            name = library["architecture"]
            return REPORTED_AS.get(name, name), library["num_threads"]
    return "no OpenBLAS", 0


def covering(factors: dict[str, tuple], most: int = MOST_RUNS) -> list[dict[str, str]]:
    """Choose runs that hold every value of every factor and as many pairs of values as can be.

    Parameters
    ----------
    factors : the values of each setting, by its name
    most : number of runs

    Returns
    -------
    runs : a value for each setting; fewer than `most` where these hold every pair
    """
    product = itertools.product(*factors.values())
    everything = [dict(zip(factors, values, strict=True)) for values in product]
    runs, held = [], set()
    while len(runs) < most:
        best = max(everything, key=lambda run: (_new(run, runs), len(_pairs(run) - held)))
        if _pairs(best) <= held:
            break
        runs.append(best)
        held |= _pairs(best)
    return runs


def _pairs(run):
    return set(itertools.combinations(run.items(), 2))


def _new(run, runs):
    """Count the values of a run that no other run has yet."""
    return sum(all(other[name] != value for other in runs) for name, value in run.items())


def environment(run: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with the settings of a run and this file as a plugin."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), run["OMP_NUM_THREADS"])
    return {**os.environ, **run, **threads, "PYTHONPATH": paths}


def probe(run: dict[str, str]) -> list | None:
    """Return what a run uses: kernel, threads, PyTorch's instructions, whether products are right.

    None: the kernel crashes.
    """
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(
        command, env=environment(run), capture_output=True, text=True, check=False, cwd=ROOT
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def why_left_out(kernel: str) -> str:
    """Say why a kernel cannot be used on this processor; "" where it can."""
    used = probe({"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"})
    if used is None:
        return "it crashes"
    if used[0] != kernel:
        return f"NumPy uses {used[0]} in its place"
    return "" if used[3] else "it gives wrong products"


def factors_here() -> dict[str, tuple]:
    """Return the settings that this processor can run, and print which kernels are left out."""
    machine = platform.machine().lower().replace("amd64", "x86_64")
    reasons = {kernel: why_left_out(kernel) for kernel in KERNELS.get(machine, ())}
    for kernel, reason in reasons.items():
        if reason:
            report(f"{kernel} is left out: {reason}")
    kernels = tuple(kernel for kernel, reason in reasons.items() if not reason)
    best = probe({"OMP_NUM_THREADS": "1"})[2]
    known = TORCH.get(machine, (best,))
    instructions = known[known.index(best) :] if best in known else (best,)
    of_mkl, without = MKL.get(machine, ("",)), WITHOUT.get(machine, ("",))
    return dict(zip(OPTIONS, (kernels, instructions, of_mkl, without, THREADS), strict=True))


def report(line: str) -> None:
    """Print a line and append it to the log."""
    print(f"==> {line}", flush=True)
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M')} {line}\n")


def pytest_report_header(config):
    """Print the kernel above the tests."""
    kernel, threads = blas_in_use()
    return f"NumPy's BLAS: {kernel}, threads: {threads}"


def pytest_sessionstart(session):
    """Stop a run, or a worker of it, whose kernel or thread count is not the one asked for."""
    import pytest

    wanted = (os.environ["OPENBLAS_CORETYPE"], int(os.environ["OPENBLAS_NUM_THREADS"]))
    if blas_in_use() != wanted:
        pytest.exit(f"NumPy uses {blas_in_use()} where {wanted} was asked for.", returncode=3)


def main(command: list[str]) -> int:
    """Run the command with each choice of settings; return 1 if any run fails."""
    factors = factors_here()
    if len(factors["OPENBLAS_CORETYPE"]) < 2:
        report("At least two kernels are needed: x86_64 or aarch64, and NumPy with OpenBLAS.")
        return 1
    runs, codes = covering(factors), []
    for number, run in enumerate(runs, start=1):
        settings = " ".join(f"{option}={value!r}" for option, value in run.items())
        name = f"run {number} of {len(runs)}: {settings}"
        used = probe(run)
        if used is None or used[2] != run["ATEN_CPU_CAPABILITY"]:
            codes.append(3)
            report(f"{name}: FAILED (PyTorch or NumPy uses {used and used[:3]})")
            continue
        print(f"==> {name}", flush=True)
        began = time.monotonic()
        done = subprocess.run([*command, "-p", "tools.blas_matrix"], env=environment(run))
        codes.append(done.returncode)
        verdict = f"FAILED (pytest: {done.returncode})" if done.returncode else "passed"
        report(f"{name}: {verdict} in {time.monotonic() - began:.0f} s")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
