"""What chapter 09 says of starting values and of its measurements, computed."""

from tutorial_lib.records import record


def two_machines_were_measured():
    """The layers of PyTorch and of NumPy were timed on two machines."""
    machines = [record(name)["machine"] for name in ("packed_projection", "numpy_attention")]
    return machines[0]["numpy_blas"] != machines[1]["numpy_blas"]
