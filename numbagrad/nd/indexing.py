"""``x[key]`` and ``x[key] = value``.

A key of ints, slices, ``...`` and ``None`` is basic: it names a strided region, read as a view where the region is one
run of memory. A key with index arrays or masks is advanced: it always copies, by NumPy's rules. In one thing we keep to
MXNet: an element alone has the shape ``(1,)``.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numbagrad import tape
from numbagrad.dispatch import check_writable
from numbagrad.errors import InPlaceError
from numbagrad.kernels import strided
from numbagrad.launch import launch, reading
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.arithmetic import where
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.casting import cast_flat, raw, write_cast
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.shaping import gather
from numbagrad.ops.slicing import is_contiguous, strided_slice, view_slice
from numbagrad.tape import state

_NUMBERS = (int, float, np.generic)
_ALL = slice(None)
_HALF = np.dtype("float16")


class Region(NamedTuple):
    """Where a basic key points: in elements of the flat array."""

    offset: int
    shape: Shape
    strides: tuple[int, ...]
    count: int
    contiguous: bool


class Mask(NamedTuple):
    """A boolean mask in a key; NumPy array or NDArray."""

    array: Any


# ------------------------------------------------------------------------------------------------ keys


def _wrapped(i: int, n: int, axis: int) -> int:
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i + n if i < 0 else i


def _part(part: Any) -> Any:
    """One part of a key as int, slice, None, Ellipsis, Mask, NumPy index array or NDArray.

    Raises
    ------
    ValueError
        If it can be no part of a key.
    """
    kind = type(part)
    if kind is int or kind is slice or part is None or part is Ellipsis:
        return part
    if kind is NDArray:
        return Mask(part) if part._flat.dtype == bool else part
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (list, tuple, range, np.ndarray)):
        try:
            array = np.asarray(part)
        except ValueError:
            array = np.empty(0, object)
        if array.size == 0 and not isinstance(part, np.ndarray):
            array = array.astype(np.int64)
        if array.dtype == bool:
            return Mask(array)
        if array.dtype.kind in "iu":
            return int(array) if array.ndim == 0 else array.astype(np.int64)
        if array.dtype.kind == "f":
            return array.astype(np.int64)
    raise ValueError(f"an NDArray cannot be indexed with {part!r} of type {kind.__name__}")


def _axes_of(part: Any) -> int:
    """How many axes a part of a key takes."""
    if part is None or part is Ellipsis:
        return 0
    return part.array.ndim if type(part) is Mask else 1


def _parts(key: Any, ndim: int) -> list[Any]:
    """The parts of a key, with ``...`` and what is missing at the end written out: they take `ndim` axes."""
    parts = [_part(part) for part in key] if type(key) is tuple else [_part(key)]
    taken = sum(_axes_of(part) for part in parts)
    if taken > ndim:
        raise IndexError(f"too many indices ({taken}) for an array of {ndim} dimensions")
    at = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(at) > 1:
        raise IndexError("a key can have one ellipsis (...) only")
    rest = [_ALL] * (ndim - taken)
    if at:
        parts[at[0] : at[0] + 1] = rest
    else:
        parts += rest
    return parts


def _region(parts: Iterable[Any], shape: Shape) -> Region:
    """The region that a basic key (written out) names; all elements of the axes that index arrays take."""
    steps = strided.contiguous_strides(shape)
    offset = axis = 0
    lengths: list[int] = []
    strides: list[int] = []
    for part in parts:
        if part is None:
            lengths.append(1)
            strides.append(0)
            continue
        n, step = shape[axis], steps[axis]
        if type(part) is int:
            offset += _wrapped(part, n, axis) * step
        else:
            start, stop, stride = (part if type(part) is slice else _ALL).indices(n)
            length = len(range(start, stop, stride))
            offset += start * step
            lengths.append(length)
            strides.append(stride * step)
        axis += 1
    if not lengths:
        lengths, strides = [1], [1]
    count = size_of(tuple(lengths))
    contiguous = is_contiguous(tuple(lengths), tuple(strides))
    return Region(offset if count else 0, tuple(lengths), tuple(strides), count, contiguous)


@lru_cache(maxsize=1024)
def _known_region(signature: tuple[Any, ...], shape: Shape) -> Region:
    parts = [slice(*part) if type(part) is tuple else part for part in signature]
    return _region(_parts(tuple(parts), len(shape)), shape)


def _basic(key: Any, shape: Shape) -> Region | None:
    """The region of a key of ints, slices, ``...`` and None, looked up; None for any other key."""
    signature: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        kind = type(part)
        if kind is int or part is None or part is Ellipsis:
            signature.append(part)
        elif kind is slice:
            start, stop, step = bounds = part.start, part.stop, part.step
            if not (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or type(step) is int)
            ):
                return None
            signature.append(bounds)
        else:
            return None
    return _known_region(tuple(signature), shape)


def _is_all(key: Any) -> bool:
    """Whether the key is ``:``, ``...`` or ``()``."""
    if type(key) is slice:
        return key.start is None and key.stop is None and key.step is None
    return key is Ellipsis or type(key) is tuple and not key


def _is_basic(parts: list[Any]) -> bool:
    return all(part is None or type(part) is int or type(part) is slice for part in parts)


# ---------------------------------------------------------------------------------------------- reading


def getitem(x: NDArray, key: Any) -> NDArray:
    """``x[key]``; see :meth:`NDArray.__getitem__`."""
    shape = x._shape
    kind = type(key)
    if kind is int and shape:
        n = shape[0]
        run = x._flat.size // n if n else 0
        return _view(x, _wrapped(key, n, 0) * run, run, shape[1:] or (1,))
    if _is_all(key):
        return x
    if kind is slice and shape:
        n = shape[0]
        start, stop, step = key.indices(n)
        if step == 1:
            run = x._flat.size // n if n else 0
            length = stop - start if stop > start else 0
            return _view(x, start * run if length else 0, length * run, (length, *shape[1:]))
    region = _basic(key, shape)
    if region is None:
        parts = _parts(key, len(shape))
        if not _is_basic(parts):
            raise NotImplementedError
        region = _region(parts, shape)
    if region.contiguous:
        return _view(x, region.offset, region.count, region.shape)
    return strided_slice(x, offset=region.offset, shape=region.shape, strides=region.strides)


def _view(x: NDArray, start: int, count: int, shape: Shape) -> NDArray:
    if state.recording and x._node is not None:
        return view_slice(x, start=start, shape=shape)
    view = NDArray(x._flat[start : start + count], shape, x._storage)
    view._context = x._context
    return view


# ---------------------------------------------------------------------------------------------- writing


def setitem(x: NDArray, key: Any, value: Any) -> None:
    """``x[key] = value``; see :meth:`NDArray.__setitem__`."""
    check_writable(x, "x[key] = value")
    shape = x._shape
    if _is_all(key):
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
        _write_run(x, _wrapped(key, n, 0) * run, run, shape[1:] or (1,), value)
        return
    region = _basic(key, shape)
    if region is None:
        parts = _parts(key, len(shape))
        if not _is_basic(parts):
            raise NotImplementedError
        region = _region(parts, shape)
    if region.contiguous:
        _write_run(x, region.offset, region.count, region.shape, value)
    else:
        _write_strided(x, region, value)


def _refuse_recorded(x: NDArray, value: Any) -> None:
    """Refuse to write a part of an array with something that is on the tape: the gradient would be lost."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    for one in values:
        if type(one) is NDArray and one._node is not None:
            raise InPlaceError(
                "x[key] = value: Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd "
                f"with a value that is part of the graph (shape {one._shape}), except over a whole array"
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
        flat = flat.copy()
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
    x._storage.version += 1


def _write_strided(x: NDArray, region: Region, value: Any) -> None:
    view = strided.layout(region.offset, region.shape, region.strides)
    if isinstance(value, _NUMBERS) or value is None:
        values = np.array([_number(value, x._flat.dtype)], x._flat.dtype)
        launch(strided.fill_strided, raw(values), raw(x._flat), view.meta, view.ndim, view.count)
    else:
        values = _values(x, value, region.shape)
        launch(strided.scatter, raw(values), raw(x._flat), view.meta, view.ndim, view.count)
    x._storage.version += 1
