"""Each annotation is kept by the functions of PyTorch: one argument becomes what it forbids."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

from tests.library.test_signatures import (
    LENGTHS,
    arguments,
    array_faults,
    call_faults,
    case_id,
    takes_anything,
)
from tests.pytorch.layers import D_MODEL, PATHS, B, NoArithmetic, T, draw, make
from tutorial_lib import ShapeError, init_params, pytorch
from tutorial_lib.pytorch import MultiHeadAttention
from tutorial_lib.pytorch.tensors import TensorContract, TensorSpec

FOLDER = Path(pytorch.__file__).parent
SIZES = {name: LENGTHS[name] for name in ("d_model", "d_k", "d_v")}
LAYER = MultiHeadAttention(n_heads=LENGTHS["H"], **SIZES).double()
PARAMS = init_params(np.random.default_rng(0), d_model=12, n_heads=3)
FLASH_QKV = dict.fromkeys("QKV", np.ones((2, 6, 5, 16), np.float32))
PROCESS_CALLS = {"run_parallel", "parallelize_heads", "run_layer", "run_ring"}
PROCESS_CALLS |= {"ring_attention"}
ARGUMENTS = {  # what mathematics asks beside the signature
    "attention_trace": {"module": LAYER},
    "project_packed_qkv": {"module": LAYER},
    "flash_attention": FLASH_QKV | {"blocks": None},
    "packed_weight": {"params": PARAMS},
    "torch_mha_from_params": {"params": PARAMS},
    **{name: {"device": "cpu"} for name in ("time_ms", "measure", "peak_mib")},
    "time_in_rounds": {"device": "cpu", "calls": {"nothing": list}, "say": None},
    "shard_params": {"params": PARAMS, "rank": 0, "world_size": 3},
    **{name: {"mesh": DeviceMesh.__new__(DeviceMesh)} for name in PROCESS_CALLS},
}


def checked_call(value):
    """The function that has the contract: of a class its constructor."""
    return value.__init__ if isinstance(value, type) else value


def contract_functions():
    """The functions and constructors of the folder that have a contract, by name."""
    functions = {"forward": LAYER.forward}
    for path in FOLDER.glob("*.py"):
        module = f"tutorial_lib.pytorch.{path.stem}"
        for name, value in vars(importlib.import_module(module)).items():
            here = getattr(checked_call(value), "__module__", "") == module
            functions |= {name: value} if here and hasattr(checked_call(value), "contract") else {}
    return functions


def tensor_faults(axes, array):
    """What the annotation of a tensor forbids: (value, error, words of the sentence)."""
    tensor, first_entry = torch.from_numpy(array), (0,) * (array.ndim - len(axes.names) + 1)
    for value in (np.ma.array(array), array.tolist(), True):
        yield value, TypeError, "torch.as_tensor("
    if axes.kind == "mask":
        yield tensor.int(), TypeError, "mask == 1"
        yield tensor.float(), TypeError, "mask == 0"
        for misfit_mask in (np.repeat(array, 2, axis=0), array[None], array[..., :0]):
            yield misfit_mask, ShapeError, "mask[:, None]"
        return
    for dtype in (torch.int64, torch.bool, torch.complex64):
        yield tensor.to(dtype), TypeError, "a tensor of floats"
    yield tensor[..., :0], ShapeError, "filtered"
    yield tensor[first_entry], ShapeError, "missing axes"
    if not axes.batched:
        yield tensor[None], ShapeError, "Drop an axis"


def joint_faults(function, values):
    """What tensors forbid each other, and a layer its inputs."""
    layer = getattr(function, "__self__", values.get("module"))
    arrays = {name: value for name, value in values.items() if type(value) is np.ndarray}
    for name, array in arrays.items() if layer or len(arrays) > 2 else ():
        tensor = torch.from_numpy(array)
        yield {name: tensor.to("meta")}, ValueError, "expected one device. Move one"
        for dtype in (torch.float16, torch.bfloat16) if array.dtype.kind == "f" else ():
            yield {name: tensor.to(dtype)}, TypeError, "expected one precision. Convert one"
        if layer and array.dtype == float:
            yield {name: np.repeat(array, 2, axis=-1)}, ShapeError, "with d_model=13"


def torch_faults(function):
    """A contract with a right call, what is wrong in its place, and the error."""
    values = arguments(function, ARGUMENTS)
    takes_tensors = isinstance(checked_call(function).contract, TensorContract)
    yield from call_faults(function, values, tensor_faults if takes_tensors else array_faults)
    for case in joint_faults(function, values) if takes_tensors else ():
        yield function, values, *case


def tensor_values(function, values):
    """The arguments of a call, its arrays as tensors where the function wants tensors."""
    if not isinstance(checked_call(function).contract, TensorContract):
        return values
    return {n: torch.from_numpy(v) if type(v) is np.ndarray else v for n, v in values.items()}


def is_refused(function, values, changes, error, message):
    """Whether a call is refused before any arithmetic, in words that name what changed."""
    values = tensor_values(function, values | changes)
    try:
        with NoArithmetic():
            function(**values)
    except error as refusal:
        return all(fragment in str(refusal) for fragment in (*changes, message))
    return False


@pytest.mark.parametrize("name", contract_functions())
def test_what_an_annotation_forbids_is_refused_before_any_arithmetic(name):
    function = contract_functions()[name]
    cases = [*torch_faults(function)]
    assert cases or takes_anything(function)
    assert [case_id(case) for case in cases if not is_refused(*case)] == []


@pytest.mark.parametrize("name", [n for n in contract_functions() if n not in PROCESS_CALLS])
def test_what_the_annotations_allow_is_computed_and_has_the_shape_that_they_name(name):
    function = contract_functions()[name]
    output = function(**tensor_values(function, arguments(function, ARGUMENTS)))
    annotation = inspect.signature(function).return_annotation
    if isinstance(annotation, str) and "mask" not in annotation:
        sizes = dict(LENGTHS) if name not in ARGUMENTS else {}
        TensorSpec(annotation).checked_batch(name, output, sizes)
    elif isinstance(annotation, type) and annotation is not inspect.Signature.empty:
        assert isinstance(output, annotation)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_autocast_does_not_take_double_precision_along(path, dtype):
    other_dtype = {torch.float32: torch.float64, torch.float64: torch.float32}[dtype]
    refusal = pytest.raises(TypeError, match="expected one precision")
    with torch.autocast("cpu", dtype=torch.bfloat16), refusal:
        path(make(dtype), draw(T, D_MODEL).to(other_dtype))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_mask_of_one_key_is_not_stretched_to_none(path):
    with pytest.raises(ShapeError, match=r"mask has shape \(0,\)"):
        path(make(), draw(B, 1, D_MODEL), mask=torch.ones(0, dtype=torch.bool))
