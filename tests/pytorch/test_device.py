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
    capability,
    describe_device,
    find_device,
    to_float64,
)

T4, A100, H200, P100 = (7, 5), (8, 0), (9, 0), (6, 0)


@pytest.fixture(autouse=True)
def _no_wish(monkeypatch):
    """Let no variable of the shell choose."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def stand_in(monkeypatch):
    """`stand_in(*capabilities, mps=False)`: play a machine with such CUDA devices, or with MPS."""

    def play(*capabilities, mps=False):
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

    return play


@pytest.mark.parametrize(
    ("capabilities", "mps", "listed"),
    [
        ([], False, ["cpu"]),
        ([], True, ["mps", "cpu"]),
        ([T4], False, ["cuda:0", "cpu"]),
        ([T4, H200], True, ["cuda:0", "cuda:1", "mps", "cpu"]),
    ],
)
def test_the_best_device_is_cuda_then_mps_then_the_cpu(stand_in, capabilities, mps, listed):
    stand_in(*capabilities, mps=mps)
    assert available_devices() == listed
    assert best_device() == torch.device(listed[0])


@pytest.mark.parametrize(
    ("asked", "found"),
    [("cpu", "cpu"), ("mps", "mps"), ("cuda:0", "cuda:0"), ("cuda", "cuda:1"), ("", "cuda:0")],
)
def test_the_variable_overrides_the_choice(stand_in, monkeypatch, asked, found):
    stand_in(T4, H200, mps=True)
    monkeypatch.setenv(VARIABLE, asked)
    assert best_device() == torch.device(found)


@pytest.mark.parametrize("asked", ["cuda:2", "gpu", "cuda:", "CUDA", "meta", "cuda:-1", "0"])
def test_an_absent_device_is_an_error_that_says_what_exists(stand_in, monkeypatch, asked):
    stand_in(T4, H200)
    monkeypatch.setenv(VARIABLE, asked)
    words = f"TUTORIAL_LIB_DEVICE is '{asked}'; expected .* cuda:0, cuda:1, cpu. Name one"
    with pytest.raises(ValueError, match=words):
        best_device()
    with pytest.raises(ValueError, match=f"device is '{asked}'"):
        find_device(asked)


@pytest.mark.parametrize("asked", ["cuda", "cuda:0", "mps"])
def test_a_machine_without_a_gpu_turns_one_down(stand_in, monkeypatch, asked):
    stand_in()
    monkeypatch.setenv(VARIABLE, asked)
    with pytest.raises(ValueError, match=f"is '{asked}'; expected a device of this machine: cpu. "):
        best_device()


@pytest.mark.parametrize("given", ["mps:0", "cuda:1", "cpu:0"])
def test_the_device_of_a_tensor_is_found(stand_in, given):
    stand_in(T4, H200, mps=True)
    assert find_device(torch.device(given)).type == given.partition(":")[0]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (P100, "float32"),
        ((7, 0), "float16"),
        (T4, "float16"),
        (A100, "bfloat16"),
        ((8, 9), "bfloat16"),
        (H200, "bfloat16"),
        ((12, 0), "bfloat16"),
    ],
)
def test_the_dtype_is_the_one_with_matrix_units(stand_in, number, dtype):
    stand_in(number)
    assert capability("cuda") == number
    assert best_dtype("cuda:0") == getattr(torch, dtype)


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_without_cuda_there_is_no_capability_and_float32(stand_in, device):
    stand_in(H200, mps=True)
    assert capability(device) is None
    assert best_dtype(device) == torch.float32


def test_each_of_several_gpus_has_its_own_capability(stand_in):
    stand_in(T4, H200)
    assert [capability(f"cuda:{n}") for n in (0, 1)] == [T4, H200]
    assert [best_dtype(f"cuda:{n}") for n in (0, 1)] == [torch.float16, torch.bfloat16]


def test_the_description_is_one_line_that_tells_device_precision_and_choice(stand_in, monkeypatch):
    stand_in(T4, mps=True)
    t4 = "cuda:0: Stand-in 0, capability 7.5, 16 GiB; fast in float16; "
    assert describe_device("cuda") == t4 + "one of cuda:0, mps, cpu"
    assert describe_device("mps").startswith("mps: Apple's GPU; fast in float32")
    monkeypatch.setattr(module.os, "cpu_count", lambda: 4)
    monkeypatch.setenv(VARIABLE, "cpu")
    told = "cpu: 4 cores; fast in float32; one of cuda:0, mps, cpu, TUTORIAL_LIB_DEVICE=cpu"
    assert describe_device(best_device()) == told


@pytest.mark.parametrize("ask", [capability, best_dtype, describe_device])
def test_nothing_is_said_of_a_device_that_is_not_there(stand_in, ask):
    stand_in()
    with pytest.raises(ValueError, match="device is 'cuda:0'; expected"):
        ask("cuda:0")


def test_comparisons_are_made_on_the_cpu_in_float64():
    given = torch.tensor([1.0, 1 / 3], dtype=torch.bfloat16, requires_grad=True)
    made = to_float64(given)
    assert (made.dtype, made.device.type, made.requires_grad) == (torch.float64, "cpu", False)
    assert made.tolist() == given.tolist()
    made[0] = 7.0
    assert given[0] == 1.0


def test_a_comparison_never_puts_a_float64_on_the_device():
    """A stand-in for a tensor on MPS, which cannot hold float64, keeps the order of the steps."""
    steps = []

    class OnMPS:
        def __getattr__(self, step):
            return lambda: steps.append(step) or self

    to_float64(OnMPS())
    assert steps.index("cpu") < steps.index("double")


@pytest.mark.gpu
def test_a_real_gpu_is_chosen_and_described():
    device = best_device()
    assert device == torch.ones(1, device="cuda").device
    assert capability(device) == torch.cuda.get_device_capability()
    assert torch.cuda.get_device_name() in describe_device(device)
    A = torch.ones(64, 64, device=device, dtype=best_dtype(device))
    assert to_float64(A @ A).eq(64).all()
