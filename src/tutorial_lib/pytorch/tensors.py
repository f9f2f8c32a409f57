"""The contract of functions of tensors: the annotations of `tutorial_lib.contract`, in graphs too.

Arrays are tensors of floats, masks of booleans; all of a call are of one precision and on one
device: those of its module's weights, or else of the first. Autocast may convert a precision, but
never float64. Whether all numbers are finite is not checked: a GPU would have to be waited for.
"""

import inspect
from functools import wraps

import torch
from torch import nn

from tutorial_lib.contract import ArraySpec, Contract
from tutorial_lib.errors import mask_shape_error


def checked(function):
    """Check the arguments, in inner calls too: a graph cannot hold which call is the outermost."""
    contract = TensorContract(inspect.signature(function).parameters)

    @wraps(function)
    def checked_call(*arguments, **options):
        contract.check_arguments(arguments, options)
        return function(*arguments, **options)

    checked_call.contract = contract
    return checked_call


def require_float_tensor(name, value):
    """Require a tensor of floats; TypeError otherwise."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        raise TypeError(
            f"{name} is {type_phrase(value)}; expected a tensor of floats. "
            f"Convert it first: torch.as_tensor({name}, dtype=torch.float32)."
        )


def require_mask_tensor(name, mask, shape):
    """Require a tensor of booleans that broadcasts to the shape of the scores; True = may look."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"{name} is {type_phrase(mask)}; expected a tensor of booleans, True = may look. From "
            f"NumPy make torch.as_tensor(mask), from 1 and 0 mask == 1, from 0 and -inf mask == 0."
        )
    try:
        is_fitting = torch.broadcast_shapes(mask.shape, shape) == torch.Size(shape)
    except RuntimeError:
        is_fitting = False
    if not is_fitting:
        raise mask_shape_error(mask, shape)


def type_phrase(value):
    """Name the kind of a value in a sentence."""
    is_tensor = isinstance(value, torch.Tensor)
    return f"a tensor of {value.dtype}" if is_tensor else f"a {type(value).__name__}"


def autocast_converts(*tensors):
    """Say whether autocast gives these tensors one precision."""
    device = tensors[0].device.type
    is_autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return is_autocast and all(tensor.dtype != torch.float64 for tensor in tensors)


class TensorSpec(ArraySpec):
    """What an annotation asks of a tensor."""

    kinds, last = {"": lambda name, tensor: None}, {"mask": require_mask_tensor}
    require_array = staticmethod(require_float_tensor)


class TensorContract(Contract):
    """What the annotations of a function ask of its arguments, among them tensors."""

    kind_of_axes = TensorSpec

    def check_arguments(self, arguments, options):
        """Check the arguments of a call: after all else that they have one precision and device."""
        values = super().check_arguments(arguments, options)
        tensors = {name: values[name] for name, _ in (*self.arrays, *self.last) if name in values}
        modules = [value for value in values.values() if isinstance(value, nn.Module)]
        if modules and tensors:
            tensors = {"the weights": next(modules[0].parameters()), **tensors}
        for name, tensor in tensors.items():
            other_name, other = next(iter(tensors.items()))
            is_float = tensor.is_floating_point()
            if is_float and tensor.dtype != other.dtype and not autocast_converts(tensor, other):
                raise TypeError(
                    f"{name} is in {tensor.dtype}, {other_name} in {other.dtype}; expected one "
                    f"precision. Convert one of the two: {name}.to({other.dtype})."
                )
            if tensor.device != other.device:
                raise ValueError(
                    f"{name} is on {tensor.device}, {other_name} on {other.device}; expected one "
                    f"device. Move one of the two: {name}.to({str(other.device)!r})."
                )
        return values
