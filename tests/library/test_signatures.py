"""Each annotation is kept: in a right call, one argument at a time becomes what it forbids."""

import copy
import dataclasses
import importlib
import inspect
import math
from pathlib import Path
from types import GenericAlias

import numpy as np
import pytest

import tutorial_lib
from tests.library.test_errors import NoArithmetic
from tutorial_lib.contract import CHECKS, LATE_CHECKS, MADE_BY, ArraySpec, checked
from tutorial_lib.models.grammar import GRAMMAR, Documents, sample_documents
from tutorial_lib.models.own_layer import ForwardRecord, OwnLayer, forward_pass
from tutorial_lib.models.real.model import RealModel, RealTrace, run_real
from tutorial_lib.models.rules import Grammar
from tutorial_lib.onepass import FlashTrace, flash_forward
from tutorial_lib.projection import Params
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.grouped import GroupedParams

LIBRARY = Path(tutorial_lib.__file__).parent
LENGTHS = {"T": 5, "S": 7, "H": 6, "G": 2, "d_k": 8, "d_v": 11, "d_model": 13, "rows": 5, "rank": 3}
LENGTHS |= {"n": 19, "vocabulary": 100, "words": 100, "length": 64}
LENGTH_ALIASES = dict(zip(("n_heads", "n_kv_heads"), "HG", strict=True))
MUTATED_ARGUMENTS = {"buffer", "cache"}  # arguments that change
COUNTING_FUNCTIONS = "cache_entries", "layer_kinds", "layer_kind_counts", "model_cache_bytes"
MODEL_FIELDS = {"layers": 2, "pattern": ["full"], "kv_heads": 3, "d_k": 4, "d_v": 7}
PARAMS = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
TARGET = np.zeros((19, 5), dtype=int)
GATES = {"gates": {(1, 0): 0.5}, "outputs": {(1, 0): np.zeros(11)}}
KNOWN_MASK = np.ones((19, 18), dtype=bool)
ARGUMENTS = {  # what mathematics asks beside the signature
    "split_heads": {"X": np.ones((5, 12)), "n_heads": 3},
    "sinusoidal_positions": {"d_model": 12},
    "run_real": dict.fromkeys(("mask", "caches", "hooks")),
    "sum_copies": {"gradient": np.ones((2, 5, 4)), "shape": (5, 4)},
    "multi_head_attention_backward": {"dY": np.ones((5, 13))},
    "cross_layer_attention": {"layers": [PARAMS], "sources": [0], "X": PARAMS.W_O, "mask": None},
    "global_mask": {"tokens": [0]},
    "random_mask": {"n": 3},
    "receptive_field": {"mask": np.ones((5, 5), dtype=bool)},
    "rope_frequencies": {"d_k": 8},
    "rotate": {"X": np.ones((5, 8)), "positions": np.arange(5), "frequencies": np.ones(3)},
    "alibi_scores": {"Q": np.ones((6, 5, 8))},
    "delta_step": {"beta": 0.1, "decay": 0.9},
    "fold_block": {"state": (-1e9, 0.0, 0.0)},
    "BlockModel": {"feeds": [(np.ones((13, 9)), np.ones((9, 13)))] * 2},
    "score_head": {"target": TARGET},
    "best_offset": {"target": TARGET},
    "fixed_offset_score": {"target": TARGET},
    "patch": {"layer": 1},
    "replacement_outputs": {"heads": [(0, 1)], "how": "mean"},
    "ablate": {"heads": [(0, 1)], "how": "mean"},
    "gated": GATES,
    "gate_gradients": {"task": "bracket", **GATES},
    "learn_gates": {"gates": {(1, 0): 0.5}, "gradients": lambda gates: gates},
    "parse_alternatives": {"rule": "1 dog"},
    "compile_rules": {"rules": {"text": "1 dog text"}, "words": ["dog"], "start": "text"},
    "read_documents": {"ids": np.array([[0, 2, 8]])},
    "prune_greedily": {"heads": [(0, 0), (0, 1)], "loss": len},
    "write_rows": {"length": 3},
    "leak": {"layer": np.copy},
    "drift": {"layer": np.copy, "window": 3},
    "in_chunks": {"step": lambda X, cache: (X, cache), "cache": None, "sizes": [2, 3]},
    "backward_pass": {"dY": np.ones((5, 13))},
    "interval": {"values": [0.1, 0.2]},
    "compose": {"first": (0, 1), "second": (1, 0), "through": "keys"},
    "adam_step": {"memory": None},
    "loss_and_gradients": {"known": KNOWN_MASK},
    "copy_accuracy": {"known": KNOWN_MASK},
    "encode": {"sentence": "the dogs bark"},
    **dict.fromkeys(("attention_flop", "attention_bytes"), dict.fromkeys("QKV", np.ones((5, 8)))),
    **{name: {"model": MODEL_FIELDS} for name in COUNTING_FUNCTIONS},
}


def contracted():
    """The functions and records with a contract, by module and name, where no PyTorch is needed."""
    functions_by_name = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        module = ".".join(("tutorial_lib", *path.relative_to(LIBRARY).with_suffix("").parts))
        if "from tutorial_lib.contract import" in path.read_text() and ".pytorch." not in module:
            for name, value in vars(importlib.import_module(module)).items():
                if getattr(value, "__module__", "") == module and hasattr(value, "contract"):
                    functions_by_name[f"{module}.{name}"] = value
    return functions_by_name


def valid_value(annotation, name=""):
    """What an annotation allows."""
    if annotation is callable:
        return lambda *arrays: sum(map(np.sum, arrays))
    if annotation in CHECKS:
        return LENGTHS.get(LENGTH_ALIASES.get(name, name), 3)
    if isinstance(annotation, GenericAlias):
        return [*map(valid_value, annotation.__args__)] * 2
    if not isinstance(annotation, type):
        return ones(ArraySpec(annotation))
    constructors = {
        np.random.Generator: np.random.default_rng,
        float: lambda: 2.5,
        np.ndarray: lambda: np.ones(3),
        Grammar: lambda: GRAMMAR,
        OwnLayer: lambda: OwnLayer(valid_value(GroupedParams)),
        ForwardRecord: lambda: forward_pass(valid_value("T d_model"), valid_value(OwnLayer)),
        Documents: lambda: sample_documents(np.random.default_rng(0), LENGTHS["n"]),
        tutorial_lib.Trace: lambda: tutorial_lib.trace(
            valid_value("T d_model"), valid_value(Params)
        ),
        RealTrace: lambda: run_real(valid_value(RealModel), np.array([2, 0, 1])),
        KVCache: lambda: KVCache.empty(valid_value(Params), 9),
        FlashTrace: lambda: flash_forward(*map(valid_value, ("T d_k", "S d_k", "S d_v"))),
    }
    if annotation not in constructors and hasattr(annotation, "contract"):
        return annotation(**arguments(annotation))
    return constructors.get(annotation, annotation)()


def ones(axes):
    """An array with these axes, whose products are no lengths of others."""
    for axis in axes.names:
        factors = [int(f) if f.isdigit() else LENGTHS.setdefault(f, 19) for f in axis.split("*")]
        LENGTHS[axis] = math.prod(factors)
    shape = [LENGTHS[axis] for axis in axes.names] or [4]
    return np.ones(shape, dtype={"mask": bool, "int": int}.get(axes.kind, float))


def arguments(function, table=ARGUMENTS):
    """A right call of a function or a record."""
    values, parameters = table.get(function.__name__, {}), inspect.signature(function).parameters
    values = {name: value for name, value in values.items() if name in parameters}
    other_parameters = {name: p for name, p in parameters.items() if name not in values}
    for name, p in other_parameters.items():
        has_default = p.default not in (p.empty, None)
        other_parameters[name] = p.default if has_default else valid_value(p.annotation, name)
    return other_parameters | values


def array_faults(axes, array):
    """What the annotation of an array forbids: (value, error, words of the sentence)."""
    if axes.kind == "mask":
        yield array.astype(int), TypeError, "mask == 1"
        yield array.tolist(), TypeError, "mask == 1"
        yield np.repeat(array, 2, axis=0), ValueError, "mask[:, None]"
        return
    yield array.tolist(), TypeError, "np.asarray("
    yield np.ma.array(array), TypeError, ".filled("
    yield array.reshape(-1, array.shape[-1]).view(np.matrix), TypeError, "np.asarray("
    for dtype in (str, bool, complex, object):
        yield array.astype(dtype), TypeError, ".astype(float)"
    if axes.kind == "gradient":
        yield array.astype(int), TypeError, ".astype(float)"
        yield np.repeat(array, 2, axis=-1), ValueError, "Take it from the loss"
    elif axes.kind == "int":
        yield array.astype(float), TypeError, ".astype(int)"
    elif axes.kind != "raw":
        for dtype in (np.int8, np.int32, np.uint64):
            yield array.astype(dtype), TypeError, ".astype(float)"
    if axes.kind in ("", "gradient"):
        for bad_value in (np.nan, np.inf, -np.inf):
            spoilt_array = array.copy()
            spoilt_array.flat[-1] = bad_value
            yield spoilt_array, ValueError, f"is {bad_value} at position"
    if axes.names and axes.kind != "gradient":
        yield array[..., :0], ValueError, "filtered"
        flat_array = array[(0,) * (array.ndim - len(axes.names) + 1)]
        yield np.asarray(flat_array), ValueError, "missing axes"
    if not axes.batched:
        yield array[None], ValueError, "Drop an axis"


def value_faults(annotation):
    """The same of what is no array."""
    if annotation is callable:
        yield 2.5, TypeError, "Give it uncalled"
    elif annotation in CHECKS:
        yield from [(2.5, TypeError, "Give an int"), (True, TypeError, "Give an int")]
    elif isinstance(annotation, GenericAlias):
        yield object(), TypeError, "a list or a tuple"
        yield (), ValueError, "is empty"
        for value, error, message in value_faults(*annotation.__args__):
            yield [value], error, message
    elif annotation is not object:
        yield object(), TypeError, MADE_BY[annotation].partition("{")[0]
    if annotation == "length":
        yield 0, ValueError, "Give a positive length"
        yield 2**62, ValueError, "2**62"


def axis_faults(annotations, values):
    """For each axis that two arrays share: the second of them twice as long there."""
    known_axes = set()
    for name, annotation in annotations.items():
        if hasattr(annotation, "contract"):
            known_axes |= set(values[name].sizes)
        elif isinstance(annotation, str) and annotation not in CHECKS:
            axes = ArraySpec(annotation)
            for axis_place, axis in enumerate(axes.names[::-1], 1):
                if (axis in known_axes or "*" in axis) and axes.kind not in LATE_CHECKS:
                    yield name, np.repeat(values[name], 2, axis=-axis_place), f"{name} has shape"
            known_axes |= set(axes.names)


def batch_faults(annotations, values):
    """The first two arrays with batch axes that do not broadcast."""
    texts = {n: a for n, a in annotations.items() if isinstance(a, str) and a not in CHECKS}
    axes = {name: ArraySpec(text) for name, text in texts.items()}
    names = [n for n, a in axes.items() if a.batched and not a.before and a.kind not in LATE_CHECKS]
    if len(names) > 1:
        yield {n: np.stack([values[n]] * copies) for n, copies in zip(names, (2, 3), strict=False)}


def call_faults(function, values, array_faults=array_faults):
    """A contract with a right call, what is wrong in its place, and the error."""
    annotations = {n: p.annotation for n, p in inspect.signature(function).parameters.items()}
    for name, annotation in annotations.items():
        array = isinstance(annotation, str) and annotation not in CHECKS
        faults = (
            array_faults(ArraySpec(annotation), values[name]) if array else value_faults(annotation)
        )
        for value, error, message in faults:
            yield function, values, {name: value}, error, message
    for name, value, message in axis_faults(annotations, values):
        yield function, values, {name: value}, ValueError, message
    for changes in batch_faults(annotations, values):
        yield function, values, changes, ValueError, "Expected equal lengths, or 1"


def case_id(case):
    """The function, the arguments and what the error says."""
    function, _, changes, _, message = case
    return f"{function.__qualname__}({', '.join(changes)}): {message}"


def takes_anything(function):
    """Whether a function forbids nothing by its annotations."""
    return {p.annotation for p in inspect.signature(function).parameters.values()} == {object}


def is_refused(function, values, changes, error, message):
    """Whether a call is refused before any arithmetic, in words that name what changed."""
    values = values | changes
    arrays = {name: value for name, value in values.items() if type(value) is np.ndarray}
    try:
        function(**values | {name: array.view(NoArithmetic) for name, array in arrays.items()})
    except error as refusal:
        return all(fragment in str(refusal) for fragment in (*changes, message))
    return False


@pytest.mark.parametrize("name", contracted())
def test_what_an_annotation_forbids_is_refused_before_any_arithmetic(name):
    function = contracted()[name]
    cases = [*call_faults(function, arguments(function))]
    assert cases or takes_anything(function)
    assert [case_id(case) for case in cases if not is_refused(*case)] == []


@pytest.mark.parametrize("name", contracted())
def test_what_the_annotations_allow_is_computed_and_has_the_shape_that_they_name(name):
    function = contracted()[name]
    output = function(**arguments(function))
    return_annotation = inspect.signature(function).return_annotation
    if isinstance(return_annotation, str):
        ArraySpec(return_annotation).checked_batch(
            name, output + 0, {} if function.__name__ in ARGUMENTS else dict(LENGTHS)
        )
    elif isinstance(return_annotation, type) and return_annotation is not inspect.Signature.empty:
        assert isinstance(output, return_annotation)


def test_only_the_outermost_call_is_checked_unless_a_function_calls_the_reader_s_code():
    @checked
    def inner_function(x: "length"):
        return x

    @checked
    def outer_function(x: "any T"):
        return inner_function(-1)

    @checked
    def caller(function: callable):
        return function(-1)

    assert outer_function(np.ones(2)) == -1
    for call in (lambda: inner_function(-1), lambda: caller(inner_function)):  # after a call, too
        with pytest.raises(ValueError, match="x=-1"):
            call()


def as_float32(value):
    """A value whose arrays of floats have single precision, and can only be read."""
    if dataclasses.is_dataclass(value):
        return type(value)(*map(as_float32, vars(value).values()))
    if isinstance(value, list | tuple):
        return type(value)(map(as_float32, value))
    if isinstance(value, np.ndarray):
        value = value.astype(np.float32 if value.dtype.kind == "f" else value.dtype)
        value.setflags(write=False)
    return value


def dtype_names(value):
    """The types of all arrays in a value."""
    value = [*vars(value).values()] if dataclasses.is_dataclass(value) else value
    nested_dtypes = map(dtype_names, value) if isinstance(value, list | tuple) else ()
    return {value.dtype.name} if isinstance(value, np.ndarray) else set().union(*nested_dtypes)


@pytest.mark.parametrize("name", contracted())
def test_inputs_are_only_read_and_single_precision_stays(name):
    values = {
        argument: as_float32(value) for argument, value in arguments(contracted()[name]).items()
    }
    for argument in MUTATED_ARGUMENTS & values.keys():
        values[argument] = copy.deepcopy(values[argument])  # can be written
    output_dtypes = dtype_names(contracted()[name](**values))
    makes_float64 = ".models." in name or ".alibi_" in name  # by their own arrays, by whole numbers
    if "float32" in dtype_names([*values.values()]) and not makes_float64:
        assert "float64" not in output_dtypes
