"""The contract of a function is its signature: each annotation says what an argument has to be.

    @checked
    def project_heads(X: "... T d_model", W: "any H d_model d") -> "... H T d":

A text names the axes of an array. An axis that comes twice, in one call or one record, has one
length; `H*d_v` is a product, and 1 is 1; `...`, mostly first, are batch axes, which broadcast.
Without an axis S in any array, S is T: queries and keys come from the same tokens. One word may
stand before the axes: `any` leaves out whether all numbers are finite, `raw` allows narrow integers
too, since they are only moved, `int` asks for integers; `mask` and `gradient` are a mask and a
gradient of what has these axes and the batch axes of all other arrays.

"length" is a whole number of at least 1, "integer" any whole number, `callable` a function, a class
asks for one of its instances, and `list[Params]` for a list or a tuple of one or more, each of
which shares axes with the arrays beside it, and not with the next. Where the default is None, None
is allowed. An annotation that is none of these, such as `object`, is for readers; of `self`, which
has none, only `sizes` count.

All of it is checked before any arithmetic, and only by the outermost call: what a checked function
passes on, it has computed from arguments that were checked. A function that calls the reader's code
says so by an argument `callable`, and then the calls inside are checked too.
"""

import inspect
import math
import threading
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from types import GenericAlias

import numpy as np

from tutorial_lib.errors import (
    ShapeError,
    common_batch_shape,
    require_array,
    require_gradient,
    require_mask,
    require_positive_whole,
    require_whole_number,
    require_wide_dtype_and_finite,
)

MADE_BY = {  # class -> what is expected, and how to make one
    np.ndarray: "a NumPy array. Convert it first: np.asarray({name}).",
    np.random.Generator: (
        "a numpy.random.Generator. Create one with a seed: np.random.default_rng(0)."
    ),
    bool: "True or False. Write {name}=True or {name}=False.",
    dict: "a dict. Write its entries as {{key: value}}.",
    float: "a number. Give a float, such as 0.5.",
    str: "a string. Join a list of words first: ' '.join({name}).",
    tuple: "a tuple. Convert it first: tuple({name}).",
    callable: "a function. Give it uncalled, for example {name}=lambda: module(X).",
}
NUMPY_CLASSES = {bool: bool | np.bool_, float: Real}  # class -> what will do
PROPERTIES = {"H": "n_heads", "G": "n_kv_heads"}  # the axes of a record whose property differs
ENTRY_CHECKS = {  # word before the axes -> what is required of the entries
    "": require_wide_dtype_and_finite,
    "any": lambda name, array: require_wide_dtype_and_finite(name, array, finite=False),
    "raw": lambda name, array: None,
    "int": lambda name, array: require(
        array.dtype.kind in "iu",
        TypeError,
        f"{name} is an array of {array.dtype}; expected whole numbers, the row numbers of E. "
        f"Convert tokens with Vocabulary.ids, or floats with {name}.astype(int).",
    ),
}
LATE_CHECKS = {  # the same, where an array is checked last, against the lengths of all others
    "mask": lambda name, mask, shape: require_mask(mask, shape),
    "gradient": require_gradient,
}
CHECKS = {  # what is no array -> its check
    "length": require_positive_whole,
    "integer": require_whole_number,
    callable: lambda name, value: require_instance(name, value, callable),
}


class _CheckedCallState(threading.local):
    checked = False  # whether a checked function is running


def require(holds, error, sentence):
    """Raise an error with a sentence, what was given, expected, how to mend it, unless it holds."""
    if not holds:
        raise error(sentence)


def require_instance(name, value, kind):
    """Require an instance of a class, or what is `callable`; MADE_BY says how to make one."""
    fits = callable(value) if kind is callable else isinstance(value, NUMPY_CLASSES.get(kind, kind))
    if not fits or (kind is float and isinstance(value, bool)):
        recipe = MADE_BY.get(kind, f"{kind.__name__}.").format(name=name)
        raise TypeError(f"{name} is a {type(value).__name__}; expected {recipe}")


def require_value_fits_annotation(name, value, annotation, **sizes):
    """Require what an annotation asks for; `sizes` are the lengths of some of its axes."""
    if annotation in CHECKS:
        CHECKS[annotation](name, value)
    elif isinstance(annotation, str):
        axes = ArraySpec(annotation)
        axes.checked_batch(name, value, sizes)
        axes.require_entries(name, value)
    elif not isinstance(annotation, GenericAlias):
        require_instance(name, value, annotation)
    elif not isinstance(value, list | tuple):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a list or a tuple. "
            f"Write [entry] for one of a single entry."
        )
    elif not value:
        raise ValueError(f"{name} is empty; expected one entry at least. Give a list of some.")
    else:
        for index, entry in enumerate(value):
            require_value_fits_annotation(f"{name}[{index}]", entry, *annotation.__args__)


class ArraySpec:
    """What an annotation such as `"any ... H S d_k"` asks of an array, read once."""

    kinds, last, require_array = ENTRY_CHECKS, LATE_CHECKS, staticmethod(require_array)

    def __init__(self, annotation):
        kind_word, _, axes_text = annotation.partition(" ")
        has_kind = kind_word in {**self.kinds, **self.last}
        self.kind, self.text = (kind_word, axes_text) if has_kind else ("", annotation)
        self.names = tuple(axis for axis in self.text.split() if axis != "...")
        self.factors = {axis: axis.split("*") for axis in self.names if not axis.isidentifier()}
        self.batched = "..." in self.text
        self.before = len(self.text.partition("...")[0].split())  # the batch axes
        self.require_entries = (self.kinds | self.last)[self.kind]

    def checked_batch(self, name, array, sizes):
        """Return the batch axes of an array that has these axes; add their lengths to `sizes`."""
        self.require_array(name, array)
        for axis, factors in self.factors.items():
            sizes[axis] = math.prod(int(f) if f.isdigit() else sizes[f] for f in factors)
        shape, first, n = tuple(array.shape), self.before, array.ndim - len(self.names)
        if n < 0 or (n > 0 and not self.batched):
            fix = "Drop an axis." if n > 0 else f"Add the missing axes, for example {name}[None]."
            raise ShapeError(f"{name} has shape {shape}, {len(shape)} axes; expected {self}. {fix}")
        for axis, length in zip(self.names, shape[:first] + shape[first + n :], strict=True):
            if length == 0:
                raise ShapeError(
                    f"{name} has shape {shape}: its axis {axis} is empty; expected {self} "
                    f"with at least one entry in each. Was the input filtered down to nothing?"
                )
            if length != sizes.setdefault(axis, length):
                raise ShapeError(
                    f"{name} has shape {shape}; expected {self} with {axis}={sizes[axis]}, "
                    f"but its axis {axis} has length {length}. Make the two agree."
                )
        return shape[first : first + n]

    def __str__(self):
        return f"({', '.join(self.text.split())})"


class Contract:
    """What the annotations of a function ask of its arguments, read once."""

    kind_of_axes = ArraySpec

    def __init__(self, parameters):
        annotations = {
            n: object if p.annotation is p.empty else p.annotation for n, p in parameters.items()
        }
        self.names = tuple(n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.optional = {name for name, p in parameters.items() if p.default is None}
        self.calls_back = callable in annotations.values()
        types = type | GenericAlias
        self.values = {n: a for n, a in annotations.items() if a in CHECKS or isinstance(a, types)}
        classes = {n: a.__args__ for n, a in annotations.items() if isinstance(a, GenericAlias)}
        self.lists = {name for name, (kind,) in classes.items() if hasattr(kind, "contract")}
        texts = {n: a for n, a in annotations.items() if isinstance(a, str) and a not in CHECKS}
        self.axes = {name: self.kind_of_axes(annotation) for name, annotation in texts.items()}
        self.arrays = [(name, a) for name, a in self.axes.items() if a.kind not in a.last]
        self.last = [(name, a) for name, a in self.axes.items() if a.kind in a.last]

    def check_arguments(self, arguments, options):
        """Check the arguments of a call and return them; that one is missing is left to Python."""
        inputs = dict(zip(self.names, arguments, strict=False), **options)
        for name in self.optional & inputs.keys():
            if inputs[name] is None:
                del inputs[name]
        sizes = {}
        for name, annotation in self.values.items():
            if name in inputs:
                require_value_fits_annotation(name, inputs[name], annotation)
                sizes |= getattr(inputs[name], "sizes", {})
        arrays = [(name, inputs[name], axes) for name, axes in self.arrays if name in inputs]
        batch_axes = {name: axes.checked_batch(name, array, sizes) for name, array, axes in arrays}
        for name in self.lists & inputs.keys():
            for index, entry in enumerate(inputs[name]):
                require_record_axes(f"{name}[{index}]", entry, dict(sizes))
        batch_shape = common_batch_shape(batch_axes)
        for name, array, axes in arrays:
            axes.require_entries(name, array)
        for name, axes in self.last:
            if name in inputs:
                sizes.setdefault("S", sizes.get("T"))
                shape = *batch_shape, *(sizes[axis] for axis in axes.names)
                axes.require_entries(name, inputs[name], shape)
        return inputs


_call = _CheckedCallState()


def checked(function):
    """Check the arguments of a function against its annotations."""
    contract = Contract(inspect.signature(function).parameters)

    @wraps(function)
    def checked_call(*arguments, **options):
        if _call.checked:
            return function(*arguments, **options)
        contract.check_arguments(arguments, options)
        _call.checked = not contract.calls_back
        try:
            return function(*arguments, **options)
        finally:
            _call.checked = False

    checked_call.contract = contract
    checked_call.__kwdefaults__ = function.__kwdefaults__  # where a text looks a default up
    return checked_call


def checked_record(made_by):
    """Make a class a frozen record whose fields are checked as the arguments of a function are.

    Each axis of its arrays is a property, under its own name or that of PROPERTIES, and `sizes`
    holds them all, with those of the records in it. What is mathematics beside the shapes, a class
    asks in a method `require_consistent_fields`.

    Parameters
    ----------
    made_by : how to make one, a sentence
    """

    def make_checked_record(cls):
        cls.__post_init__, cls.sizes = _check_record_fields, property(_record_axis_lengths)
        cls = dataclass(frozen=True)(cls)
        cls.contract = Contract(inspect.signature(cls).parameters)
        for name, axes in reversed(cls.contract.axes.items()):
            for axis_number, axis in enumerate(axes.names):
                if axis.isidentifier():
                    property_name = PROPERTIES.get(axis, axis)
                    setattr(cls, property_name, _axis_length_property(name, axis_number, axis))
        MADE_BY[cls] = f"{cls.__name__}. {made_by}"
        return cls

    return make_checked_record


def _check_record_fields(self):
    self.contract.check_arguments((), vars(self))
    if hasattr(self, "require_consistent_fields"):
        self.require_consistent_fields()


def require_record_axes(name, instance, sizes):
    """Require of each array of a record the axes that its annotation names, and `sizes`."""
    for field, annotation in type(instance).__annotations__.items():
        array = getattr(instance, field)
        if isinstance(annotation, str) and annotation not in CHECKS and array is not None:
            ArraySpec(annotation).checked_batch(f"{name}.{field}", array, sizes)


def _record_axis_lengths(self):
    """Return the lengths of the axes, by name."""
    sizes = {}
    for name, value in vars(self).items():
        axes = self.contract.axes.get(name)
        lengths = zip(axes.names, value.shape, strict=True) if axes and value is not None else ()
        sizes |= dict(lengths) | getattr(value, "sizes", {})
    return sizes


def _axis_length_property(name, axis_index, axis):
    """Return the property that is the length of an axis of one array."""
    return property(
        lambda self: getattr(self, name).shape[axis_index], doc=f"Length of the axis {axis}."
    )
