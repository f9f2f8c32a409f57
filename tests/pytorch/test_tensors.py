"""Each annotation is kept by the functions of PyTorch: one argument becomes what it forbids."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from tests.library.test_signatures import LENGTHS, arguments, case_id, cases, of_array
from tests.pytorch.layers import D_MODEL, PATHS, B, NoArithmetic, T, draw, make
from tutorial_lib import ShapeError, init_params, pytorch
from tutorial_lib.pytorch import DecoderAttention, MultiHeadAttention
from tutorial_lib.pytorch.tensors import TensorAxes, TensorContract

FOLDER = Path(pytorch.__file__).parent
SIZES = {name: LENGTHS[name] for name in ("d_model", "d_k", "d_v")}
LAYER = MultiHeadAttention(n_heads=LENGTHS["H"], **SIZES).double()
PARAMS = init_params(np.random.default_rng(0), d_model=12, n_heads=3)
FLASH = dict.fromkeys("QKV", np.ones((2, 6, 5, 16), np.float32))
PROCESSES = {"run_parallel", "parallelize_heads", "run_layer", "run_ring", "compare"}
PROCESSES |= {"ring_attention"}
ARGUMENTS = {  # what mathematics asks beside the signature
    "MultiHeadAttention": SIZES,
    "attention_trace": {"module": LAYER},
    "project_packed": {"module": LAYER},
    "flash_attention": FLASH | {"blocks": None},
    "params_from_module": {"module": LAYER},
    "params_from_torch_mha": {"layer": nn.MultiheadAttention(12, 3)},
    "params_from_decoder": {"decoder": DecoderAttention(12, 3)},
    "packed_weight": {"params": PARAMS},
    "torch_mha_from_params": {"params": PARAMS},
    "decoder_from_params": {"params": PARAMS, "rotation": None},
    **{name: {"device": "cpu"} for name in ("time_ms", "measure", "peak_mib")},
    "interleave": {"device": "cpu", "calls": {"nothing": list}, "say": None},
    "shard_params": {"params": PARAMS, "rank": 0, "world_size": 3},
    **{name: {"mesh": DeviceMesh.__new__(DeviceMesh)} for name in PROCESSES},
}


def called(value):
    """The function that has the contract: of a class its constructor."""
    return value.__init__ if isinstance(value, type) else value


def contracts():
    """The functions and constructors of the folder that have a contract, by name."""
    functions = {"forward": LAYER.forward}
    for path in FOLDER.glob("*.py"):
        module = f"tutorial_lib.pytorch.{path.stem}"
        for name, value in vars(importlib.import_module(module)).items():
            here = getattr(called(value), "__module__", "") == module
            functions |= {name: value} if here and hasattr(called(value), "contract") else {}
    return functions


def of_tensor(axes, array):
    """What the annotation of a tensor forbids: (value, error, words of the sentence)."""
    tensor, least = torch.from_numpy(array), (0,) * (array.ndim - len(axes.names) + 1)
    for value in (np.ma.array(array), array.tolist(), True):
        yield value, TypeError, "torch.as_tensor("
    if axes.kind == "mask":
        yield tensor.int(), TypeError, "mask == 1"
        yield tensor.float(), TypeError, "mask == 0"
        for misfit in (np.repeat(array, 2, axis=0), array[None], array[..., :0]):
            yield misfit, ShapeError, "mask[:, None]"
        return
    for dtype in (torch.int64, torch.bool, torch.complex64):
        yield tensor.to(dtype), TypeError, "a tensor of floats"
    yield tensor[..., :0], ShapeError, "filtered"
    yield tensor[least], ShapeError, "missing axes"
    if not axes.batched:
        yield tensor[None], ShapeError, "Drop an axis"


def of_several(function, values):
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


def torch_cases():
    """Every contract with a right call, what is wrong in its place, and the error."""
    for function in contracts().values():
        values = arguments(function, ARGUMENTS)
        tensors = isinstance(called(function).contract, TensorContract)
        yield from cases(function, values, of_tensor if tensors else of_array)
        for case in of_several(function, values) if tensors else ():
            yield function, values, *case


def as_tensors(function, values):
    """The arguments of a call, its arrays as tensors where the function wants tensors."""
    if not isinstance(called(function).contract, TensorContract):
        return values
    return {n: torch.from_numpy(v) if type(v) is np.ndarray else v for n, v in values.items()}


@pytest.mark.parametrize("case", [*torch_cases()], ids=case_id)
def test_what_an_annotation_forbids_is_refused_before_any_arithmetic(case):
    function, values, changes, error, words = case
    values = as_tensors(function, values | changes)
    with NoArithmetic(), pytest.raises(error) as caught:
        function(**values)
    for fragment in (*changes, words):
        assert fragment in str(caught.value)


@pytest.mark.parametrize("name", [n for n in contracts() if n not in PROCESSES])
def test_what_the_annotations_allow_is_computed_and_has_the_shape_that_they_name(name):
    function = contracts()[name]
    result = function(**as_tensors(function, arguments(function, ARGUMENTS)))
    returns = inspect.signature(function).return_annotation
    if isinstance(returns, str) and "mask" not in returns:
        TensorAxes(returns).measure(name, result, dict(LENGTHS) if name not in ARGUMENTS else {})
    elif isinstance(returns, type) and returns is not inspect.Signature.empty:
        assert isinstance(result, returns)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_autocast_does_not_take_double_precision_along(path, dtype):
    other = {torch.float32: torch.float64, torch.float64: torch.float32}[dtype]
    words = pytest.raises(TypeError, match="expected one precision")
    with torch.autocast("cpu", dtype=torch.bfloat16), words:
        path(make(dtype), draw(T, D_MODEL).to(other))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_mask_of_one_key_is_not_stretched_to_none(path):
    with pytest.raises(ShapeError, match=r"mask has shape \(0,\)"):
        path(make(), draw(B, 1, D_MODEL), mask=torch.ones(0, dtype=torch.bool))
