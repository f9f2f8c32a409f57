"""The device that is chosen, and what is known of it; a stand-in plays CUDA and MPS."""

from types import SimpleNamespace

import pytest
import torch

from tutorial_lib.pytorch import device as module
from tutorial_lib.pytorch.device import (
    VARIABLE,
    available_devices,
    best_device,
    best_dtype,
    cuda_compute_capability,
    describe_device,
    find_device,
    to_float64,
)

T4, A100, H200, P100 = (7, 5), (8, 0), (9, 0), (6, 0)


@pytest.fixture(autouse=True)
def fake_gpus(monkeypatch):
    """`stand_in(*capabilities, mps=False)`: play a machine with such CUDA devices, or with MPS."""
    monkeypatch.delenv(VARIABLE, raising=False)

    def play_machine(*capabilities, mps=False):
        cuda = {
            "is_available": lambda: bool(capabilities),
            "device_count": lambda: len(capabilities),
            "current_device": lambda: len(capabilities) - 1,
            "get_device_capability": lambda device: capabilities[device.index],
            "get_device_properties": lambda device: SimpleNamespace(
                name=f"Stand-in {device.index}", total_memory=16 * 2**30
            ),
        }
        for name, function in cuda.items():
            monkeypatch.setattr(torch.cuda, name, function)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return play_machine


@pytest.mark.parametrize(
    ("capabilities", "mps", "names"),
    [
        ([], False, ["cpu"]),
        ([], True, ["mps", "cpu"]),
        ([T4], False, ["cuda:0", "cpu"]),
        ([T4, H200], True, ["cuda:0", "cuda:1", "mps", "cpu"]),
    ],
)
def test_the_best_device_is_cuda_then_mps_then_the_cpu(fake_gpus, capabilities, mps, names):
    fake_gpus(*capabilities, mps=mps)
    assert available_devices() == names
    assert best_device() == torch.device(names[0])


@pytest.mark.parametrize(
    ("requested", "name"),
    [("cpu", "cpu"), ("mps", "mps"), ("cuda:0", "cuda:0"), ("cuda", "cuda:1"), ("", "cuda:0")],
)
def test_the_variable_overrides_the_choice(fake_gpus, monkeypatch, requested, name):
    fake_gpus(T4, H200, mps=True)
    monkeypatch.setenv(VARIABLE, requested)
    assert best_device() == torch.device(name)


ABSENT = [([T4, H200], "cuda:2"), ([T4, H200], "gpu"), ([], "cuda"), ([], "mps")]


@pytest.mark.parametrize(("capabilities", "requested"), ABSENT)
def test_an_absent_device_is_an_error_that_says_what_exists(
    fake_gpus, monkeypatch, capabilities, requested
):
    fake_gpus(*capabilities)
    monkeypatch.setenv(VARIABLE, requested)
    names = ", ".join(available_devices())
    message = f"is '{requested}'; expected a device of this machine: {names}. Name one of these"
    with pytest.raises(ValueError, match=f"{VARIABLE} {message}"):
        best_device()
    for call in (find_device, cuda_compute_capability, best_dtype, describe_device):
        with pytest.raises(ValueError, match=f"device {message}"):
            call(requested)


@pytest.mark.parametrize("name", ["mps:0", "cuda:1", "cpu:0"])
def test_the_device_of_a_tensor_is_found(fake_gpus, name):
    fake_gpus(T4, H200, mps=True)
    assert find_device(torch.device(name)).type == name.partition(":")[0]


DTYPES = {P100: "float32", (7, 0): "float16", T4: "float16", A100: "bfloat16", (8, 9): "bfloat16"}
DTYPES |= {H200: "bfloat16", (12, 0): "bfloat16"}


def test_the_dtype_is_the_one_with_matrix_units(fake_gpus):
    fake_gpus(*DTYPES, mps=True)
    for n, (version, dtype) in enumerate(DTYPES.items()):
        assert cuda_compute_capability(f"cuda:{n}") == version
        assert best_dtype(f"cuda:{n}") == getattr(torch, dtype)
    for device in ("cpu", "mps"):
        assert (cuda_compute_capability(device), best_dtype(device)) == (None, torch.float32)


def test_the_description_is_one_line_that_tells_device_precision_and_choice(fake_gpus, monkeypatch):
    fake_gpus(T4, mps=True)
    t4_line = "cuda:0: Stand-in 0, capability 7.5, 16 GiB; fast in float16; "
    assert describe_device("cuda") == t4_line + "one of cuda:0, mps, cpu"
    assert describe_device("mps").startswith("mps: Apple's GPU; fast in float32")
    monkeypatch.setattr(module.os, "cpu_count", lambda: 4)
    monkeypatch.setenv(VARIABLE, "cpu")
    cpu_line = "cpu: 4 cores; fast in float32; one of cuda:0, mps, cpu, TUTORIAL_LIB_DEVICE=cpu"
    assert describe_device(best_device()) == cpu_line


def test_comparisons_are_made_on_the_cpu_in_float64():
    tensor = torch.tensor([1.0, 1 / 3], dtype=torch.bfloat16, requires_grad=True)
    wide = to_float64(tensor)
    assert (wide.dtype, wide.device.type, wide.requires_grad) == (torch.float64, "cpu", False)
    assert wide.tolist() == tensor.tolist()
    wide[0] = 7.0
    assert tensor[0] == 1.0


def test_a_comparison_never_puts_a_float64_on_the_device():
    """A stand-in for a tensor on MPS, which cannot hold float64, keeps the order of the steps."""
    method_names = []

    class OnMPS:
        def __getattr__(self, method_name):
            return lambda: method_names.append(method_name) or self

    to_float64(OnMPS())
    assert method_names.index("cpu") < method_names.index("double")


@pytest.mark.gpu
def test_a_real_gpu_is_chosen_and_described():
    device = best_device()
    assert device == torch.ones(1, device="cuda").device
    assert cuda_compute_capability(device) == torch.cuda.get_device_capability()
    assert torch.cuda.get_device_name() in describe_device(device)
    A = torch.ones(64, 64, device=device, dtype=best_dtype(device))
    assert to_float64(A @ A).eq(64).all()
