"""``x[key]`` and ``x[key] = value``.

A key of ints, slices, ``...`` and ``None`` is basic: it names a strided region, read as a view where the region is one
run of memory. A key with index arrays or masks is advanced: it always copies, by NumPy's rules. In one thing we keep to
MXNet: an element alone has the shape ``(1,)``.
"""

from typing import Any

import numpy as np

from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import InPlaceError
from numbagrad.kernels import strided
from numbagrad.kernels.index import RAISE, assign
from numbagrad.launch import Handed, launch, plain
from numbagrad.nd.keys import (
    ALL,
    Mask,
    Region,
    index_array,
    is_all,
    is_basic,
    known_region,
    parts_of,
    region_of,
    take_apart,
    wrapped,
)
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.arithmetic import add, multiply, where
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.casting import cast_flat, raw, write_cast
from numbagrad.ops.dtypes import adopted
from numbagrad.ops.indexing import positions, take_
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.shaping import reshape, transpose
from numbagrad.ops.slicing import strided_slice, view_slice
from numbagrad.tape import state

_NUMBERS = (int, float, np.generic)
_HALF = np.dtype("float16")


# ---------------------------------------------------------------------------------------------- reading


def getitem(x: NDArray, key: Any) -> NDArray:
    """``x[key]``; see :meth:`NDArray.__getitem__`."""
    shape = x._shape
    kind = type(key)
    if kind is int and shape:
        n = shape[0]
        run = x._flat.size // n if n else 0
        return _view(x, wrapped(key, n, 0) * run, run, shape[1:] or (1,))
    if is_all(key):
        return x
    if kind is slice and shape:
        n = shape[0]
        start, stop, step = key.indices(n)
        if step == 1:
            run = x._flat.size // n if n else 0
            length = stop - start if stop > start else 0
            return _view(x, start * run if length else 0, length * run, (length, *shape[1:]))
    region = known_region(key, shape)
    if region is None:
        parts = parts_of(key, len(shape))
        if not is_basic(parts):
            return _gather(x, parts)
        region = region_of(parts, shape)
    if region.contiguous:
        return _view(x, region.offset, region.size, region.shape)
    return strided_slice(x, offset=region.offset, shape=region.shape, strides=region.strides)


def _view(x: NDArray, start: int, count: int, shape: Shape) -> NDArray:
    if state.recording and x._node is not None:
        return view_slice(x, start=start, shape=shape)
    view = NDArray(x._flat[start : start + count], shape, x._storage)
    view._context = x._context
    return view


def _gather(x: NDArray, parts: list[Any]) -> NDArray:
    """Read an advanced key: the basic parts first, then one take over the axes of the index arrays."""
    key = take_apart(parts, x._shape)
    if any(part is None or type(part) is int or part != ALL for part in key.basic):
        offset, shape, strides, size, contiguous = region_of(key.basic, x._shape)
        if contiguous:
            x = _view(x, offset, size, shape)
        else:
            x = strided_slice(x, offset=offset, shape=shape, strides=strides)
    rest = [axis for axis in range(len(x._shape)) if axis not in key.kept]
    order = (*rest[: key.place], *key.kept, *rest[key.place :])
    if order != tuple(range(len(order))):
        x = transpose(x, axes=order)
    last = key.place + len(key.kept)
    lengths = x._shape[key.place : last]
    if len(key.arrays) > 1:
        index = positions(*key.arrays, lengths=lengths, strides=strided.contiguous_strides(lengths))
        result = take_(x, index, first=key.place, last=last, mode="clip")
    else:
        result = take_(x, key.arrays[0], first=key.place, last=last, mode="raise")
    return result if result._shape else reshape(result, shape=(1,))


# ---------------------------------------------------------------------------------------------- writing


def setitem(x: NDArray, key: Any, value: Any) -> None:
    """``x[key] = value``; see :meth:`NDArray.__setitem__`."""
    check_writable(x, "x[key] = value")
    shape = x._shape
    if is_all(key):
        if type(value) is NDArray:
            x._assign(value if value._shape == shape else broadcast_to(_trimmed(value, shape), shape=shape))
        else:
            _write_run(x, 0, x._flat.size, shape, value)
        return
    if state.recording:
        _refuse_recorded(x, value)
    if type(key) is int and shape:
        n = shape[0]
        run = x._flat.size // n if n else 0
        _write_run(x, wrapped(key, n, 0) * run, run, shape[1:] or (1,), value)
        return
    region = known_region(key, shape)
    if region is None:
        parts = parts_of(key, len(shape))
        if not is_basic(parts):
            _scatter(x, parts, value)
            return
        region = region_of(parts, shape)
    if region.contiguous:
        _write_run(x, region.offset, region.size, region.shape, value)
    else:
        _write_strided(x, region, value)


def _refuse_recorded(x: NDArray, value: Any) -> None:
    """Refuse to write a part of an array with something that is on the tape: the gradient would be lost."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    for one in values:
        if type(one) is NDArray and one._node is not None:
            raise InPlaceError(
                "x[key] = value: Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with "
                f"autograd with a value that is part of the graph (shape {one._shape}), except over a whole array"
            )


def _number(value: Any, dtype: np.dtype) -> Any:
    """`value` as the Python number that an array of `dtype` can hold."""
    if value is None:
        value = float("nan")
    if dtype.kind == "f":
        return float(value)
    if dtype.kind == "b":
        return bool(value)
    try:
        return int(value)
    except (ValueError, OverflowError):
        raise ValueError(f"x[key] = value: {value} cannot be written to an array of {dtype}") from None


def _trimmed(value: Any, shape: Shape) -> Any:
    """`value` (NumPy array or NDArray) without leading axes of length 1 beyond the axes of `shape`.

    Raises
    ------
    ValueError
        If it does not broadcast to `shape`.
    """
    own = value.shape
    extra = len(own) - len(shape)
    if extra > 0 and own[:extra] == (1,) * extra:
        value = value.reshape(own[extra:])
        own = value.shape
    lead = len(shape) - len(own)
    if lead < 0 or any(m not in (1, n) for m, n in zip(own, shape[lead:], strict=True)):
        raise ValueError(f"x[key] = value: a value of shape {own} does not broadcast to the selected shape {shape}")
    return value


def _values(x: NDArray, value: Any, shape: Shape) -> np.ndarray:
    """`value` (array or nested list) as a flat array of the dtype of `x`, broadcast to `shape`, off the memory of `x`.

    Raises
    ------
    TypeError, ValueError
        If it is no array of numbers, or of another shape.
    """
    dtype = x._flat.dtype
    if type(value) is Handed:
        given = plain(value)
        value = NDArray(adopted(given.reshape(-1)), given.shape)
    if type(value) is not NDArray:
        try:
            array = np.asarray(value)
        except ValueError:
            raise TypeError("x[key] = value: the value is a ragged list") from None
        if array.dtype.kind not in "fiub":
            raise TypeError(f"x[key] = value: cannot write a {type(value).__name__} ({value!r:.60})")
        with np.errstate(all="ignore"):
            array = np.broadcast_to(_trimmed(array, shape), shape).astype(dtype, order="C", copy=True)
        return array.reshape(-1)
    value = _trimmed(value, shape)
    flat = value._flat
    if flat.dtype != dtype:
        flat = cast_flat(flat, dtype)
    elif value._storage is x._storage:
        flat = cast_flat(flat, dtype)  # a copy, by a kernel
    if value._shape == shape or flat.size == size_of(shape):
        return flat
    return broadcast_to(NDArray(flat, value._shape), shape=shape)._flat


def _write_run(x: NDArray, start: int, count: int, shape: Shape, value: Any) -> None:
    """Write to a region that is one run of memory."""
    flat = x._flat if count == x._flat.size else x._flat[start : start + count]
    if isinstance(value, _NUMBERS) or value is None:
        number = _number(value, flat.dtype)
        if flat.dtype == _HALF:
            launch(strided.fill, int(np.float16(number).view(np.uint16)), raw(flat), count)
        else:
            launch(strided.fill, number, flat, count)
    else:
        values = _values(x, value, shape)
        launch(strided.copy, raw(values), raw(flat), count)
    wrote(x._storage)


def _write_strided(x: NDArray, region: Region, value: Any) -> None:
    view = strided.layout(region.offset, region.shape, region.strides)
    if isinstance(value, _NUMBERS) or value is None:
        values = np.array([_number(value, x._flat.dtype)], x._flat.dtype)
        launch(strided.fill_strided, raw(values), raw(x._flat), view.meta, view.ndim, view.count)
    else:
        values = _values(x, value, region.shape)
        launch(strided.scatter, raw(values), raw(x._flat), view.meta, view.ndim, view.count)
    wrote(x._storage)


def _scatter(x: NDArray, parts: list[Any], value: Any) -> None:
    """Write to an advanced key; of several writes to one place the last one stays."""
    number = isinstance(value, _NUMBERS) or value is None
    if number and len(parts) == 1 and type(parts[0]) is Mask and type(parts[0].array) is NDArray:
        mask = parts[0].array
        if mask._shape == x._shape:
            # No positions, so that a captured step can do it.
            chosen = where(mask.detach(), _number(value, x._flat.dtype), x.detach())
            write_cast(chosen._flat, x._flat)
            wrote(x._storage)
            return
    key = take_apart(parts, x._shape)
    shape, steps = x._shape, strided.contiguous_strides(x._shape)
    region = region_of(key.basic, shape)
    rest = [axis for axis in range(len(region.shape)) if axis not in key.kept]
    index_shape = key.arrays[0]._shape
    lengths = tuple(shape[axis] for axis in key.axes)
    selected = (
        *[region.shape[axis] for axis in rest[: key.place]],
        *index_shape,
        *[region.shape[axis] for axis in rest[key.place :]],
    )
    if len(key.arrays) > 1:
        index = positions(*key.arrays, lengths=lengths, strides=strided.contiguous_strides(lengths))
    else:
        index = key.arrays[0]
    n = size_of(lengths)
    if number:
        values = np.full(size_of(selected), _number(value, x._flat.dtype), x._flat.dtype)
    else:
        values = _values(x, value, selected)
    if not values.size:
        return
    adjacent = key.kept == list(range(key.place, key.place + len(key.kept)))
    if index._storage is x._storage:
        index = index.copy()
    if region.size == x._flat.size and region.contiguous and adjacent:
        outer, inner = size_of(region.shape[: key.place]), size_of(region.shape[key.kept[-1] + 1 :])
        target = index._flat if index._flat.dtype == np.int64 else cast_flat(index._flat, np.dtype("int64"))
        launch(assign, raw(values), target, raw(x._flat), outer, n, inner, target.size, RAISE)
    else:
        # Where a key mixes index arrays and slices: the place of every element, as a sum over axes.
        if len(key.arrays) == len(key.axes):
            index = positions(*key.arrays, lengths=lengths, strides=tuple(steps[axis] for axis in key.axes))
        else:
            index = multiply(positions(index, lengths=(n,), strides=(1,)), steps[key.axes[-1]])
        base = np.full((), region.offset)
        for axis in rest:
            base = np.add.outer(base, np.arange(region.shape[axis]) * region.strides[axis])
        base = base.reshape(base.shape[: key.place] + (1,) * len(index_shape) + base.shape[key.place :])
        index = reshape(index, shape=index_shape + (1,) * (len(rest) - key.place))
        target = add(index, index_array(base))._flat
        launch(assign, raw(values), target, raw(x._flat), 1, x._flat.size, 1, target.size, RAISE)
    wrote(x._storage)
