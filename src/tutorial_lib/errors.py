"""Checks at the door: each `require_*` says what was given, what was expected, how to mend it."""

import numpy as np


class ShapeError(ValueError):
    """The axes of an array, or two arrays together, do not fit."""


def first_true_index(is_true):
    """Return the index of the first True; of none, an empty one."""
    return tuple(int(coordinate) for coordinate in next(iter(np.argwhere(is_true)), ()))


def broadcasts_to(shape, target):
    """Say whether an array of a shape broadcasts to another shape, which stays as it is."""
    length_pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, length) for size, length in length_pairs)


def require_array(name, value):
    """Require a NumPy array of integers or floats.

    Raises
    ------
    TypeError : anything else, such as a list, a tensor of another library, an array of booleans,
        an np.matrix, or a masked array, whose hidden entries a product would forget
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a MaskedArray; expected a NumPy array, since a product would forget what "
            f"is hidden. Fill it, {name}.filled(0.0), or pass mask= to the attention."
        )
    if not isinstance(value, np.ndarray) or isinstance(value, np.matrix):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a NumPy array. "
            f"Convert it first: np.asarray({name})."
        )
    if value.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} is an array of {value.dtype}; expected real numbers. "
            f"Convert it first, for example {name}.astype(float)."
        )


def require_float_array(name, array):
    """Require an array of floats, because whole numbers cannot change by a small amount."""
    if array.dtype.kind != "f":
        raise TypeError(
            f"{name} is an array of {array.dtype}; expected floats, since a gradient tells what "
            f"a small change does. Convert it first: {name}.astype(float)."
        )


def require_whole_number(name, value):
    """Require a whole number, of Python or of NumPy; True and False are none."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{name} is {value!r}, a {type(value).__name__}; expected a whole number. "
            f"Give an int, such as 4."
        )


def require_positive_whole(name, value):
    """Require a whole number of at least 1, with which NumPy can count: of 62 bits."""
    require_whole_number(name, value)
    if value < 1:
        raise ValueError(f"{name}={value}; expected at least 1. Give a positive length.")
    if value >= 2**62:
        raise ValueError(
            f"{name}={value}; expected less than 2**62, since NumPy counts with 64 bits and sums "
            f"could overflow. Give the length of the sequence where nothing is to be left out."
        )


def require_divisible(width_name, width, parts_name, parts):
    """Require that a width splits into equal parts."""
    require_positive_whole(width_name, width)
    require_positive_whole(parts_name, parts)
    if width % parts:
        divisors = [divisor for divisor in range(1, width + 1) if width % divisor == 0]
        raise ShapeError(
            f"{width_name}={width} does not split into {parts_name}={parts} equal parts. "
            f"Choose {parts_name} from {divisors}, or change {width_name}."
        )


def require_finite(name, array):
    """Require that no entry is NaN or infinite; the error names the first position."""
    if not np.isfinite(array).all():
        position = first_true_index(~np.isfinite(array))
        raise ValueError(
            f"{name} is {array[position]} at position {position}; expected finite numbers. "
            f"Look at the step that computed {name}: np.argwhere(~np.isfinite({name})) lists all."
        )


def require_wide_dtype_and_finite(name, array, *, finite=True):
    """Require numbers of a dtype that is wide enough for their products and sums.

    NumPy adds and multiplies small integers in their own width, and drops what does not fit
    without a warning: 100 + 100 is -56 in int8. Unsigned differences wrap.
    """
    if array.dtype.kind != "f" and array.dtype != np.int64:
        raise TypeError(
            f"{name} is an array of {array.dtype}; expected floats, or int64, which are wide "
            f"enough for sums, differences and products. Convert it first: {name}.astype(float)."
        )
    if finite:
        require_finite(name, array)


def require_finite_row_maxima(scores, axis):
    """Require that each row along `axis` has a finite largest score, so that softmax is defined."""
    is_axis = isinstance(axis, int | np.integer) and -scores.ndim <= axis < scores.ndim
    if not is_axis or scores.shape[axis] == 0:
        raise ShapeError(
            f"scores has shape {scores.shape}; expected an axis {axis} with at least one entry. "
            f"Choose axis=-1 for attention scores of shape (..., T, S)."
        )
    maxima = scores.max(axis=axis)
    if not np.isfinite(maxima).all():
        row_index = first_true_index(~np.isfinite(maxima))
        raise ValueError(
            f"the largest score of row {row_index} is {maxima[row_index]}; expected a finite "
            "number. " + _nonfinite_score_advice(maxima[row_index])
        )


def _nonfinite_score_advice(maximum):
    if np.isnan(maximum):
        return "Look for NaN in Q and K: np.argwhere(~np.isfinite(Q))."
    remedy = "make Q or K smaller" if maximum.dtype == np.float64 else "convert Q and K to float64"
    overflow_cause = f"a product overflowed {maximum.dtype}: {remedy}."
    if maximum > 0:
        return "A" + overflow_cause[1:]
    return (
        f"Either {overflow_cause} Or -inf hides every key of the row, which is then fully masked: "
        f"attention_weights(scores, mask=mask) gives it zeros."
    )


def require_mask(mask, shape):
    """Require None, or booleans that broadcast to the shape of the scores; True = may look.

    A mask per sequence, (B, T, S), with as many sequences as heads fits too, and is then taken for
    a mask per head, because its shape cannot show the difference. Give it its head axis,
    mask[:, None], whatever B is.
    """
    if mask is None:
        return
    if not isinstance(mask, np.ndarray) or mask.dtype != bool:
        mask_type = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(
            f"mask is of type {mask_type}; expected a NumPy array of booleans, True = may look. "
            f"From 1 and 0 make mask == 1; from 0 and -inf make mask == 0."
        )
    if not broadcasts_to(mask.shape, shape):
        raise mask_shape_error(mask, shape)


def mask_shape_error(mask, shape):
    """Return the error of a mask, array or tensor, that does not broadcast to the scores."""
    return ShapeError(
        f"mask has shape {tuple(mask.shape)}, which does not broadcast to the scores' "
        f"{tuple(shape)}, (..., H, T, S). A mask per sequence, (B, T, S), needs a head axis: "
        f"mask[:, None]."
    )


def common_batch_shape(axes_by_name):
    """Return the shape to which batch axes broadcast; `batches` holds those of each array."""
    axes_by_name = {name: axes for name, axes in axes_by_name.items() if axes}
    if len(set(axes_by_name.values())) < 2:
        return next(iter(axes_by_name.values()), ())
    try:
        return np.broadcast_shapes(*axes_by_name.values())
    except ValueError:
        shape_list = ", ".join(f"{name} has {axes}" for name, axes in axes_by_name.items())
        raise ShapeError(
            f"the leading axes do not fit together: {shape_list}. Expected equal lengths, or 1, "
            f"from the right. Add a batch axis of 1 where one is missing: array[None]."
        ) from None


def require_gradient(name, gradient, shape):
    """Require finite floats of the shape of the array whose gradient they are."""
    require_array(name, gradient)
    require_float_array(name, gradient)
    if gradient.shape != tuple(shape):
        raise ShapeError(
            f"{name} has shape {gradient.shape}; expected {tuple(shape)}, the shape of "
            f"{name.removeprefix('d')}: a gradient has one entry for each entry of its array. "
            f"Take it from the loss of this very {name.removeprefix('d')}."
        )
    require_finite(name, gradient)


def require_ids(ids, vocabulary_size):
    """Require ids from 0 to `vocabulary_size` - 1; the error names the first position."""
    is_outside = (ids < 0) | (ids >= vocabulary_size)
    if is_outside.any():
        position = first_true_index(is_outside)
        raise ValueError(
            f"ids is {ids[position]} at position {position}; expected 0 to {vocabulary_size - 1}, "
            f"one of the {vocabulary_size} rows of E. Add a row to E, or map unknown tokens first."
        )


def require_one_precision(**arrays):
    """Require that all arrays are float32, or all float64."""
    dtype_names = {name: array.dtype.name for name, array in arrays.items()}
    if set(dtype_names.values()) not in ({"float32"}, {"float64"}):
        dtype_list = ", ".join(f"{name} is {dtype}" for name, dtype in dtype_names.items())
        name_1, name_2, *_ = dtype_names
        raise TypeError(
            f"{dtype_list}; expected float32 throughout or float64 throughout. "
            f"Convert what differs, for example {name_1}.astype({name_2}.dtype)."
        )
