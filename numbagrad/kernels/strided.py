"""Copies between a flat array and a strided view: broadcast, transpose, flip, slices, diagonals, concatenation.

A strided view is described by a small int64 array ``[offset, shape..., strides...]``, strides counted in
elements; a stride may be 0 (broadcast) or negative (flip). The kernels walk it plane by plane: the last axis
times the axis whose stride is smallest, so that a transpose reads and writes whole cache lines.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import njit

_U = np.uintp  # unsigned positions cannot mean "from the end", so LLVM sees plain loops
_TILE = 32  # elements on a side of a transpose tile (measured best of 8 to 1,024)
_NARROW_TILE = 16  # where lines are a multiple of 256 elements apart: they share few sets of the cache


class Layout(NamedTuple):
    """A strided view as the kernels take it; shared through a cache, so never write to `meta`."""

    meta: np.ndarray[Any, Any]
    ndim: int
    count: int  # type: ignore[assignment]  # nobody counts values in a layout


def collapse(shape: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Merge neighbouring axes that are one run of memory and drop axes of length 1.

    Parameters
    ----------
    shape, strides : sequence of int
        Lengths and steps (in elements) of a view; of equal length.

    Returns
    -------
    (shape, strides) : tuple of tuple of int
        The same elements in the same order with as few axes as possible, at least one.
    """
    if 0 in shape:
        return (0,), (1,)
    lengths: list[int] = []
    steps: list[int] = []
    for length, step in zip(shape, strides, strict=True):
        if length == 1:
            continue
        if lengths and steps[-1] == length * step:
            lengths[-1] *= length
            steps[-1] = step
        else:
            lengths.append(length)
            steps.append(step)
    return (tuple(lengths), tuple(steps)) if lengths else ((1,), (1,))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array of `shape`."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


@lru_cache(maxsize=4096)
def layout(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
    """Build what `gather`, `scatter` and their kin take for the view of `shape` and `strides` at `offset`."""
    lengths, steps = collapse(shape, strides)
    count = 1
    for length in lengths:
        count *= length
    return Layout(np.array([offset, *lengths, *steps], dtype=np.int64), len(lengths), count)


# --------------------------------------------------------------------------------------------------- planes


@njit
def _row_axis(meta: Any, ndim: int) -> int:
    """The axis that makes a plane with the last one: that of the smallest stride, -1 where there is only one."""
    best = ndim - 2
    if best >= 0:
        smallest = abs(meta[2 * ndim])
        for axis in range(ndim - 1):
            step = abs(meta[1 + ndim + axis])
            if 0 < step < smallest:
                smallest = step
                best = axis
    return best


@njit
def _plane_start(meta: Any, ndim: int, row_axis: int, plane: int) -> tuple[int, int]:
    """Where plane number `plane` begins: in the strided array, and in the contiguous one."""
    strided = meta[0]
    contiguous = 0
    pitch = meta[ndim]
    rest = plane
    for back in range(ndim - 1):
        axis = ndim - 2 - back
        length = meta[1 + axis]
        if axis != row_axis and rest > 0:
            quotient = rest // length
            index = rest - quotient * length
            rest = quotient
            strided += index * meta[1 + ndim + axis]
            contiguous += index * pitch
        pitch *= length
    return strided, contiguous


@njit
def _plane_shape(meta: Any, ndim: int, row_axis: int) -> tuple[int, int, int, int, int]:
    """Rows, columns, pitch of a row in the contiguous array, row and column stride in the strided one."""
    columns = meta[ndim]
    column_stride = meta[2 * ndim]
    if row_axis < 0:
        return 1, columns, columns, 0, column_stride
    pitch = 1
    for axis in range(row_axis + 1, ndim):
        pitch *= meta[1 + axis]
    return meta[1 + row_axis], columns, pitch, meta[1 + ndim + row_axis], column_stride


@njit(inline=True)
def _write(out: Any, position: Any, value: Any) -> None:
    out[position] = value


@njit(inline=True)
def _accumulate(out: Any, position: Any, value: Any) -> None:
    out[position] += value


@njit
def _gather_plane(x: Any, out: Any, start: int, first: int, rows: int, columns: int, pitch: int, strides: Any) -> None:
    row_stride, column_stride = strides
    tile = _NARROW_TILE if column_stride % 256 == 0 else _TILE
    blocked = 0 < abs(row_stride) < abs(column_stride)
    height = tile if blocked else 1
    width = tile if blocked else columns
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            for row in range(top, min(top + height, rows)):
                source = _U(start + row * row_stride + left * column_stride)
                target = _U(first + row * pitch + left)
                count = _U(min(width, columns - left))
                if column_stride == 1:
                    for i in range(count):
                        out[target + i] = x[source + i]
                elif column_stride == 0:
                    value = x[source]
                    for i in range(count):
                        out[target + i] = value
                else:
                    for i in range(count):
                        out[target + i] = x[source + i * _U(column_stride)]


def _scattering(name: str, doc: str, store: Any) -> Kernel:
    @njit
    def scatter_plane(
        x: Any, out: Any, start: int, first: int, rows: int, columns: int, pitch: int, strides: Any
    ) -> None:
        row_stride, column_stride = strides
        if 0 < abs(row_stride) < abs(column_stride):
            tile = _NARROW_TILE if column_stride % 256 == 0 else _TILE
            for top in range(0, rows, tile):
                height = _U(min(tile, rows - top))
                for left in range(0, columns, tile):
                    for column in range(left, min(left + tile, columns)):
                        target = _U(start + top * row_stride + column * column_stride)
                        source = _U(first + top * pitch + column)
                        for i in range(height):
                            store(out, target + i * _U(row_stride), x[source + i * _U(pitch)])
        else:
            for row in range(rows):
                target = _U(start + row * row_stride)
                source = _U(first + row * pitch)
                if column_stride == 1:
                    for i in range(_U(columns)):
                        store(out, target + i, x[source + i])
                else:
                    for i in range(_U(columns)):
                        store(out, target + i * _U(column_stride), x[source + i])

    def scatter(x: Any, out: Any, meta: Any, ndim: int, count: int) -> int:
        if count == 0:
            return 0
        row_axis = _row_axis(meta, ndim)
        rows, columns, pitch, row_stride, column_stride = _plane_shape(meta, ndim, row_axis)
        for plane in range(count // (rows * columns)):
            start, first = _plane_start(meta, ndim, row_axis, plane)
            scatter_plane(x, out, start, first, rows, columns, pitch, (row_stride, column_stride))
        return 0

    scatter.__name__ = scatter.__qualname__ = name
    scatter.__doc__ = doc
    return kernel("in inout in size size")(scatter)


# -------------------------------------------------------------------------------------------------- kernels


@kernel("in out in size size")
def gather(x: Any, out: Any, meta: Any, ndim: int, count: int) -> int:
    """``out[k] = x[view[k]]``: read the view `meta` of `x` into `out`, `count` elements in C order."""
    if count == 0:
        return 0
    row_axis = _row_axis(meta, ndim)
    rows, columns, pitch, row_stride, column_stride = _plane_shape(meta, ndim, row_axis)
    for plane in range(count // (rows * columns)):
        start, first = _plane_start(meta, ndim, row_axis, plane)
        _gather_plane(x, out, start, first, rows, columns, pitch, (row_stride, column_stride))
    return 0


scatter = _scattering(
    "scatter", "``out[view[k]] = x[k]``: write `x` into the view `meta` of `out`; the rest of `out` stays.", _write
)
scatter_add = _scattering(
    "scatter_add", "``out[view[k]] += x[k]``; an element that the view names twice gets both terms.", _accumulate
)


@kernel("in inout in size size")
def fill_strided(value: Any, out: Any, meta: Any, ndim: int, count: int) -> int:
    """``out[view[k]] = value[0]``: write one value into the whole view `meta` of `out`."""
    if count == 0:
        return 0
    row_axis = _row_axis(meta, ndim)
    rows, columns, _, row_stride, column_stride = _plane_shape(meta, ndim, row_axis)
    for plane in range(count // (rows * columns)):
        start, _ = _plane_start(meta, ndim, row_axis, plane)
        for row in range(rows):
            target = _U(start + row * row_stride)
            if column_stride == 1:
                for i in range(_U(columns)):
                    out[target + i] = value[0]
            else:
                for i in range(_U(columns)):
                    out[target + i * _U(column_stride)] = value[0]
    return 0


@kernel("in out size")
def copy(x: Any, out: Any, n: int) -> int:
    """``out = x``, `n` elements of one dtype."""
    for i in range(n):
        out[i] = x[i]
    return 0


@kernel("scalar out size")
def fill(value: Any, out: Any, n: int) -> int:
    """``out = value``, a number converted to the dtype of `out`."""
    typed = out.dtype.type(value)
    for i in range(n):
        out[i] = typed
    return 0


@kernel("in inout size")
def add_into(x: Any, out: Any, n: int) -> int:
    """``out += x``, `n` elements."""
    for i in range(n):
        out[i] += x[i]
    return 0


@kernel("in inout scalar size")
def scale_into(x: Any, out: Any, factor: Any, n: int) -> int:
    """``out += factor * x``, `n` elements; the factor is converted to the dtype of `out`."""
    typed = out.dtype.type(factor)
    for i in range(n):
        out[i] += typed * x[i]
    return 0


# ---------------------------------------------------------------------------------------------- parts of an axis


def _moving(store: Any) -> Any:
    """The loop of the kernels below. `store` is bound here: code that is handed a function cannot be kept on disk.

    Where a start is 0 they say ``start - start``: for a literal the loop would be compiled once more.
    """

    @njit
    def move(x: Any, out: Any, rows: int, length: int, x_start: int, out_start: int, pitches: Any) -> None:
        """Rows of `x` to rows of `out`: their number and length, the two first positions, the two pitches."""
        x_pitch, out_pitch = pitches
        for row in range(rows):
            source = _U(x_start + row * x_pitch)
            target = _U(out_start + row * out_pitch)
            for i in range(_U(length)):
                store(out, target + i, x[source + i])

    return move


_copy_rows = _moving(_write)
_add_rows = _moving(_accumulate)


@kernel("in inout size size size size size")
def insert(x: Any, out: Any, outer: int, length: int, total: int, start: int, inner: int) -> int:
    """Copy `x` (outer, length, inner) to ``out[:, start : start + length]``, `out` being (outer, total, inner)."""
    _copy_rows(x, out, outer, length * inner, start - start, start * inner, (length * inner, total * inner))
    return 0


@kernel("in out size size size size size")
def extract(x: Any, out: Any, outer: int, length: int, total: int, start: int, inner: int) -> int:
    """Copy ``x[:, start : start + length]``, `x` being (outer, total, inner), to `out` (outer, length, inner)."""
    _copy_rows(x, out, outer, length * inner, start * inner, start - start, (total * inner, length * inner))
    return 0


@kernel("in inout size size size size size")
def insert_add(x: Any, out: Any, outer: int, length: int, total: int, start: int, inner: int) -> int:
    """Add `x` (outer, length, inner) to ``out[:, start : start + length]``, `out` being (outer, total, inner)."""
    _add_rows(x, out, outer, length * inner, start - start, start * inner, (length * inner, total * inner))
    return 0


@kernel("in inout size size size size size")
def extract_add(x: Any, out: Any, outer: int, length: int, total: int, start: int, inner: int) -> int:
    """Add ``x[:, start : start + length]``, `x` being (outer, total, inner), to `out` (outer, length, inner)."""
    _add_rows(x, out, outer, length * inner, start * inner, start - start, (total * inner, length * inner))
    return 0
