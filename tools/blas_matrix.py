"""Repeat a pytest command as other processors would run it: `make test-blas`.

OpenBLAS, NumPy, MKL and PyTorch choose their routines for the processor that they find, and the
routines round in different ways. No printed number and no test may depend on that. Each run fixes
OpenBLAS's kernel, the instructions of the others and the number of threads; together the runs hold
every setting. A kernel that crashes on this processor, or gives wrong products, is left out.

A run in which NumPy does not use the kernel that was asked for fails: pytest loads this file as a
plugin and looks for itself. The last lines say of each run how it went.

`tools.run_notebooks` asks three of these settings before it stores what a cell shows, and `make
bench` before a record is done, by `--most 3`.
"""

import json
import os
import platform
import subprocess
import sys
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
FEW_RUNS = 3  # that have to agree before an output is stored
COMBINATIONS = (  # of MKL's instructions, those of NumPy's loops, and threads
    *((0, 0, 0), (1, 1, 1), (0, 1, 0), (1, 0, 1)),
    *((0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 0)),
)
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


def choose_runs(factors: dict[str, tuple], most: int = MOST_RUNS) -> list[dict[str, str]]:
    """Choose so many runs: the kernels in turn, and the other settings in every combination.

    The first run has the first value of every setting, the second one no value of the first.
    """
    runs = []
    for number in range(most):
        places = number, number, *COMBINATIONS[number % len(COMBINATIONS)]
        pairs = zip(factors.items(), places, strict=True)
        run = {name: values[place % len(values)] for (name, values), place in pairs}
        runs += [run] if run not in runs else []
    return runs


def variables(run: dict[str, str]) -> dict[str, str]:
    """Return the variables of the environment that make a process run with these settings."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), run["OMP_NUM_THREADS"])
    return run | threads


def environment(run: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with the settings of a run and this file as a plugin."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **variables(run), "PYTHONPATH": paths}


def shell_settings(run: dict[str, str]) -> str:
    """Return the settings of a run as a shell would take them."""
    return " ".join(f"{option}={value!r}" for option, value in run.items())


def probe(run: dict[str, str]) -> list | None:
    """Return what a run uses: kernel, threads, PyTorch's instructions, whether products are right.

    None: the kernel crashes.
    """
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(
        command, env=environment(run), capture_output=True, text=True, check=False, cwd=ROOT
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def is_usable(kernel: str) -> bool:
    """Whether a kernel runs on this processor, is the one that NumPy uses, and multiplies right."""
    used = probe({"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"})
    return used is not None and used[0] == kernel and used[3]


def available_settings(most: int) -> dict[str, tuple]:
    """Return the settings that this processor can run, its own first, with so many kernels."""
    machine = platform.machine().lower().replace("amd64", "x86_64")
    own, _, best, _ = probe({"OMP_NUM_THREADS": "1"})
    others = [kernel for kernel in KERNELS.get(machine, ()) if kernel != own]
    kernels = tuple(islice(filter(is_usable, [own, *others]), most))
    known = TORCH.get(machine, (best,))
    instructions = known[known.index(best) :] if best in known else (best,)
    of_mkl, without = MKL.get(machine, ("",)), WITHOUT.get(machine, ("",))
    return dict(zip(OPTIONS, (kernels, instructions, of_mkl, without, THREADS), strict=True))


def other_processors() -> dict[str, dict[str, str]]:
    """Return variables that make this processor others, FEW_RUNS with itself, by their words."""
    factors = available_settings(FEW_RUNS)
    return {shell_settings(run): variables(run) for run in choose_runs(factors, FEW_RUNS)[1:]}


def pytest_sessionstart(session):
    """Stop a run, or a worker of it, whose kernel or thread count is not the one asked for."""
    import pytest

    wanted = (os.environ["OPENBLAS_CORETYPE"], int(os.environ["OPENBLAS_NUM_THREADS"]))
    if blas_in_use() != wanted:
        pytest.exit(f"NumPy uses {blas_in_use()} where {wanted} was asked for.", returncode=3)


def main(arguments: list[str]) -> int:
    """Run the command with each choice of settings; return 1 if any run fails."""
    most, command = MOST_RUNS, arguments
    if arguments[0] == "--most":
        most, command = int(arguments[1]), arguments[2:]
    factors = available_settings(most)
    if len(factors["OPENBLAS_CORETYPE"]) < 2:
        print("At least two kernels are needed: x86_64 or aarch64, and NumPy with OpenBLAS.")
        return 1
    verdicts = {shell_settings(run): repeat(command, run) for run in choose_runs(factors, most)}
    print(*(f"==> {verdict}: {name}" for name, verdict in verdicts.items()), sep="\n")
    return int(any(verdict != "passed" for verdict in verdicts.values()))


def repeat(command: list[str], run: dict[str, str]) -> str:
    """Run the command with one choice of settings; return how it went."""
    print(f"==> {shell_settings(run)}", flush=True)
    used = probe(run)
    if used is None or used[2] != run["ATEN_CPU_CAPABILITY"]:
        return f"FAILED (PyTorch or NumPy uses {used and used[:3]})"
    code = subprocess.run([*command, "-p", "tools.blas_matrix"], env=environment(run)).returncode
    return f"FAILED (pytest: {code})" if code else "passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
