"""Which device to compute on, what it is, and in which precision it is fast."""

import os

import torch

from tutorial_lib.contract import require

VARIABLE = "TUTORIAL_LIB_DEVICE"
GIB = 2**30


def available_devices() -> list:
    """List this machine's devices, the best first, such as ``["cuda:0", "cpu"]`` (chapter 11)."""
    gpu_numbers = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    mps_names = ["mps"] if torch.backends.mps.is_available() else []
    return [*(f"cuda:{gpu_index}" for gpu_index in gpu_numbers), *mps_names, "cpu"]


def find_device(device, *, name="device") -> torch.device:
    """Return a device of this machine by its name, or ValueError with the names that there are.

    Introduced in chapter 11. A name is ``"cpu"``, ``"cuda"``, which is the current one of several,
    ``"cuda:1"`` or ``"mps"``, and a torch.device will do. On CUDA what is returned has its number.
    """
    device_name, names = str(device), available_devices()
    if device_name == "cuda" and "cuda:0" in names:
        device_name = f"cuda:{torch.cuda.current_device()}"
    device_name = {"mps:0": "mps", "cpu:0": "cpu"}.get(device_name, device_name)
    expectation = f"a device of this machine: {', '.join(names)}. Name one of these."
    require(device_name in names, ValueError, f"{name} is {device_name!r}; expected {expectation}")
    return torch.device(device_name)


def best_device() -> torch.device:
    """Choose CUDA, then MPS, then the CPU, unless TUTORIAL_LIB_DEVICE names one (chapter 11)."""
    env_name = os.environ.get(VARIABLE)
    return find_device(env_name, name=VARIABLE) if env_name else find_device(available_devices()[0])


def cuda_compute_capability(device) -> tuple:
    """Return NVIDIA's compute capability, (7, 5) on a T4, or None without CUDA (chapter 11)."""
    device = find_device(device)
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def best_dtype(device) -> torch.dtype:
    """Choose a precision that the device multiplies matrices fast in.

    Introduced in chapter 11. NVIDIA's GPUs have matrix units for float16 from capability 7.0 on
    (but for the GTX 16 series), and for bfloat16, as fast and with the range of float32, from 8.0
    on. Without them float32 is chosen, which is safe and need not be the fastest.

    Source: NVIDIA, CUDA C++ Programming Guide, compute capabilities.
    """
    compute_capability = cuda_compute_capability(device) or (0, 0)
    if compute_capability >= (8, 0):
        return torch.bfloat16
    return torch.float16 if compute_capability >= (7, 0) else torch.float32


def describe_device(device) -> str:
    """Say in one line what a device is, its fast precision, and what it was chosen among.

    Introduced in chapter 11. Such as ``"cuda:0: Tesla T4, capability 7.5, 15 GiB; fast in float16;
    one of cuda:0, cpu"``, and TUTORIAL_LIB_DEVICE where it is set.
    """
    device, version = find_device(device), cuda_compute_capability(device)
    hardware = {"cpu": f"{os.cpu_count()} cores", "mps": "Apple's GPU"}.get(device.type)
    if version:
        properties = torch.cuda.get_device_properties(device)
        memory_gib = properties.total_memory / GIB
        hardware = f"{properties.name}, capability {version[0]}.{version[1]}, {memory_gib:.0f} GiB"
    dtype, names = str(best_dtype(device)).removeprefix("torch."), ", ".join(available_devices())
    env_note = f", {VARIABLE}={os.environ[VARIABLE]}" if os.environ.get(VARIABLE) else ""
    return f"{device}: {hardware}; fast in {dtype}; one of {names}{env_note}"


def to_float64(tensor) -> torch.Tensor:
    """Return the tensor on the CPU in float64, without its graph, to compare precisions."""
    return tensor.detach().cpu().double()  # in this order: MPS has no float64, most GPUs are slow
