"""Keys of ``x[key]`` taken apart: into a strided region, and index arrays."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numbagrad.kernels import strided
from numbagrad.launch import Handed, plain, reading
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.dtypes import adopted
from numbagrad.ops.indexing import true_positions
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.slicing import is_contiguous

ALL = slice(None)


class Region(NamedTuple):
    """Where a basic key points: in elements of the flat array."""

    offset: int
    shape: Shape
    strides: tuple[int, ...]
    size: int
    contiguous: bool


class Mask(NamedTuple):
    """A boolean mask in a key; NumPy array or NDArray."""

    array: Any


# ------------------------------------------------------------------------------------------------ keys


def wrapped(i: int, n: int, axis: int) -> int:
    """The index `i` into an axis of length `n`, counted from the front."""
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
    if kind is Handed:
        given = plain(part)
        part = NDArray(adopted(given.reshape(-1)), given.shape)
        kind = NDArray
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


def parts_of(key: Any, ndim: int) -> list[Any]:
    """The parts of a key, with ``...`` and what is missing at the end written out: they take `ndim` axes."""
    parts = [_part(part) for part in key] if type(key) is tuple else [_part(key)]
    taken = sum(_axes_of(part) for part in parts)
    if taken > ndim:
        raise IndexError(f"too many indices ({taken}) for an array of {ndim} dimensions")
    at = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(at) > 1:
        raise IndexError("a key can have one ellipsis (...) only")
    rest: list[Any] = [ALL] * (ndim - taken)
    if at:
        parts[at[0] : at[0] + 1] = rest or [Ellipsis]  # even an empty one keeps index arrays apart
    else:
        parts += rest
    return parts


def region_of(parts: Iterable[Any], shape: Shape) -> Region:
    """The region that a basic key (written out) names; all elements of the axes that index arrays take."""
    steps = strided.contiguous_strides(shape)
    offset = axis = 0
    lengths: list[int] = []
    strides: list[int] = []
    for part in parts:
        if part is Ellipsis:
            continue
        if part is None:
            lengths.append(1)
            strides.append(0)
            continue
        n, step = shape[axis], steps[axis]
        if type(part) is int:
            offset += wrapped(part, n, axis) * step
        else:
            start, stop, stride = part.indices(n)
            length = len(range(start, stop, stride))
            offset += start * step
            lengths.append(length)
            strides.append(stride * step)
        axis += 1
    if not lengths:
        lengths, strides = [1], [1]
    size = size_of(tuple(lengths))
    contiguous = is_contiguous(tuple(lengths), tuple(strides))
    return Region(offset if size else 0, tuple(lengths), tuple(strides), size, contiguous)


@lru_cache(maxsize=1024)
def _looked_up(signature: tuple[Any, ...], shape: Shape) -> Region:
    parts = [slice(*part) if type(part) is tuple else part for part in signature]
    return region_of(parts_of(tuple(parts), len(shape)), shape)


def known_region(key: Any, shape: Shape) -> Region | None:
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
    return _looked_up(tuple(signature), shape)


def is_all(key: Any) -> bool:
    """Whether the key is ``:``, ``...`` or ``()``."""
    if type(key) is slice:
        return key.start is None and key.stop is None and key.step is None
    return key is Ellipsis or (type(key) is tuple and not key)


def is_basic(parts: list[Any]) -> bool:
    """Whether a key (written out) names a region."""
    return all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)


# --------------------------------------------------------------------------------------- advanced keys


class Advanced(NamedTuple):
    """A key with index arrays, taken apart."""

    basic: list[Any]
    """The other parts, with ``:`` for every axis that index arrays take."""
    arrays: list[NDArray]
    """Index arrays, broadcast to one shape."""
    axes: list[int]
    """Which axes of the array they take; one array for all of them where a mask stands alone."""
    kept: list[int]
    """Which axes of the basic result index arrays take."""
    place: int
    """Before which of the remaining axes of the basic result those of the index arrays go."""


def index_array(values: np.ndarray) -> NDArray:
    """`values` as an NDArray of int64."""
    return NDArray(np.ascontiguousarray(values, np.int64).reshape(-1), values.shape)


def _mask_positions(mask: Any, shape: Shape, axis: int) -> NDArray:
    """The flat positions where a mask over axes of `shape` is true.

    Raises
    ------
    IndexError
        If it has another shape.
    """
    if mask.shape != shape:
        raise IndexError(f"a mask of shape {mask.shape} does not fit axes of lengths {shape} from axis {axis} on")
    return true_positions(mask) if type(mask) is NDArray else index_array(np.flatnonzero(mask))


def take_apart(parts: list[Any], shape: Shape) -> Advanced:
    """Take an advanced key (written out) apart.

    Raises
    ------
    IndexError
        If index arrays do not broadcast, or a mask does not fit.
    """
    basic: list[Any] = []
    arrays: list[NDArray] = []
    axes: list[int] = []
    kept: list[int] = []
    alone = sum(type(part) in (Mask, NDArray, np.ndarray) for part in parts) == 1
    runs = axis = place = out_axis = 0
    inside = False
    for part in parts:
        if part is Ellipsis:
            inside = False
            continue
        is_array = type(part) in (Mask, NDArray, np.ndarray)
        if is_array or type(part) is int:
            if not inside:
                runs += 1
                if runs == 1:
                    place = out_axis
            inside = True
        else:
            inside = False
        if not is_array:
            basic.append(part)
            axis += part is not None
            out_axis += type(part) is not int
            continue
        span = _axes_of(part)
        if type(part) is Mask:
            lengths = shape[axis : axis + span]
            flat = _mask_positions(part.array, lengths, axis)
            if alone or span == 1:
                arrays.append(flat)
            else:
                reading()
                arrays += [index_array(one) for one in np.unravel_index(flat._flat, lengths)]
        else:
            arrays.append(part if type(part) is NDArray else index_array(part))
        axes += range(axis, axis + span)
        kept += range(out_axis, out_axis + span)
        basic += [ALL] * span
        axis += span
        out_axis += span
    if len(arrays) > 1:
        try:
            common = np.broadcast_shapes(*[array._shape for array in arrays])
        except ValueError:
            raise IndexError(
                f"index arrays of shapes {', '.join(str(array._shape) for array in arrays)} do not broadcast"
            ) from None
        arrays = [array if array._shape == common else broadcast_to(array, shape=common) for array in arrays]
    return Advanced(basic, arrays, axes, kept, place if runs == 1 else 0)
