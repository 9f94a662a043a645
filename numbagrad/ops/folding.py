"""Arrays seen as (outer, n, inner), the form in which kernels reduce."""

from functools import lru_cache
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import Kernel
from numbagrad.launch import launch
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.shaping import normal_axis, transpose

Axes = tuple[int, ...]


def normal_axes(name: str, axis: int | tuple[int, ...] | None, ndim: int) -> Axes:
    """`axis` as increasing axes counted from the front; None: all.

    Raises
    ------
    MXNetError
        If one is out of range or given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (int, np.integer)):
        return (normal_axis(name, axis, ndim),)
    axes = tuple(sorted(normal_axis(name, k, ndim) for k in axis))
    if len(set(axes)) != len(axes):
        raise MXNetError(f"{name}: an axis is given twice in {axis}")
    return axes


def kept_shape(shape: Shape, axes: Axes) -> Shape:
    """`shape` with the reduced `axes` as 1."""
    return tuple(1 if k in axes else n for k, n in enumerate(shape))


@lru_cache(maxsize=4096)
def reduced_shape(shape: Shape, axes: Axes, keepdims: bool) -> Shape:
    """The shape of a reduction's result."""
    return kept_shape(shape, axes) if keepdims else tuple(n for k, n in enumerate(shape) if k not in axes)


@lru_cache(maxsize=4096)
def _sizes(shape: Shape, axes: Axes) -> tuple[int, int, int]:
    """(outer, n, inner) for `axes` that are next to each other; for none, every element by itself."""
    if not axes:
        return size_of(shape), 1, 1
    first, end = axes[0], axes[-1] + 1
    return size_of(shape[:first]), size_of(shape[first:end]), size_of(shape[end:])


def fold(x: Any, axes: Axes) -> tuple[Any, int, int, int]:
    """`x` as (outer, n, inner) with `axes` in the middle: transposed where they are not next to each other."""
    shape = x._shape
    if axes and axes[-1] - axes[0] >= len(axes):
        rest = tuple(k for k in range(len(shape)) if k not in axes)
        x = transpose(x, axes=rest + axes)
        return x, size_of(tuple(shape[k] for k in rest)), size_of(tuple(shape[k] for k in axes)), 1
    return x, *_sizes(shape, axes)


def reduce(kernel: Kernel, x: Any, axes: Axes, dtype: np.dtype, again: Kernel | None = None) -> np.ndarray:
    """Run a reducing kernel over `axes`; the flat result.

    Axes that are not next to each other are reduced run by run, the last run first and the others with the kernel
    `again`; where it is None, by way of a transposed copy.
    """
    if again is None or not axes or axes[-1] - axes[0] < len(axes):
        x, outer, n, inner = fold(x, axes)
        out = np.empty(outer * inner, dtype)
        launch(kernel, x._flat, out, outer, n, inner)
        return out
    flat, shape = x._flat, x._shape
    while axes:
        end = axes[-1] + 1
        first = next(k for k in range(end - 1, -1, -1) if k - 1 not in axes)
        run = tuple(range(first, end))
        outer, n, inner = _sizes(shape, run)
        out = np.empty(outer * inner, dtype)
        launch(kernel, flat, out, outer, n, inner)
        flat, shape, axes, kernel = out, kept_shape(shape, run), axes[: -len(run)], again
    return flat
