"""Repeat a pytest command with two BLAS kernels, each with one and two threads: `make test-blas`.

OpenBLAS chooses a kernel for the processor it finds, and kernels add in different orders. Printed
numbers must not depend on that. Each run says which kernel NumPy used, and a run in which it is not
the one that was asked for fails: pytest loads this file as a plugin and looks for itself.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

KERNELS = {
    "x86_64": ("SkylakeX", "Haswell", "Sandybridge", "Nehalem", "Prescott"),
    "aarch64": ("NEOVERSEV1", "NEOVERSEN1", "ARMV8"),
}
THREADS = (1, 2)
PROBE = """
import json, hashlib, numpy
from tools import blas_matrix
rng = numpy.random.default_rng(0)
for dtype in ("float32", "float64"):
    A, B = (rng.normal(size=shape).astype(dtype) for shape in ((97, 131), (131, 53)))
    product = A @ B
    A @ B[:, 0]
used = blas_matrix.blas_in_use()
print(json.dumps([*used, hashlib.sha256(product.tobytes()).hexdigest()[:8]]))
"""


def blas_in_use() -> tuple[str, int]:
    """Return the kernel and the number of threads of the OpenBLAS that NumPy loaded."""
    import numpy  # noqa: F401 (loads the library that threadpoolctl then finds)
    import threadpoolctl

    for library in threadpoolctl.threadpool_info():
        if library["internal_api"] == "openblas" and "numpy" in library["filepath"]:
            return library["architecture"], library["num_threads"]
    return "no OpenBLAS", 0


def environment(kernel: str, threads: int) -> dict[str, str]:
    """Return this process's environment with a kernel, a thread count and this file as a plugin."""
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    count = {f"{name}_NUM_THREADS": str(threads) for name in ("OPENBLAS", "OMP", "MKL")}
    path = os.pathsep.join(filter(None, paths))
    return {**os.environ, **count, "OPENBLAS_CORETYPE": kernel, "PYTHONPATH": path}


def probe(kernel: str, threads: int) -> tuple[str, int, str] | None:
    """Return kernel, threads and a fingerprint of a product, or None where the kernel crashes."""
    command = [sys.executable, "-c", PROBE]
    env = environment(kernel, threads)
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return tuple(json.loads(run.stdout)) if run.returncode == 0 else None


def usable_kernels() -> list[str]:
    """Return the kernels of KERNELS that this processor runs, newest first."""
    known = KERNELS.get(platform.machine().lower().replace("amd64", "x86_64"), ())
    found = {kernel: probe(kernel, 1) for kernel in known}
    return [kernel for kernel, used in found.items() if used and used[0] == kernel]


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
    """Run the command for two kernels and each thread count; return 1 if any run fails."""
    kernels = usable_kernels()
    print(f"==> Kernels that run here: {', '.join(kernels) or 'none'}")
    if len(kernels) < 2:
        print("At least two are needed: a processor of x86_64 or aarch64, and NumPy with OpenBLAS.")
        return 1
    results = {}
    for kernel in kernels[:2]:
        for threads in THREADS:
            _, used_threads, fingerprint = probe(kernel, threads)
            name = f"{kernel}, threads: {used_threads}"
            print(f"==> {name}; one product's last bits: {fingerprint}", flush=True)
            env = environment(kernel, threads)
            results[name] = subprocess.run(
                [*command, "-p", "tools.blas_matrix"], env=env
            ).returncode
    for name, code in results.items():
        print(f"==> {name}: {'passed' if code == 0 else f'FAILED (pytest: {code})'}")
    return int(any(results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
