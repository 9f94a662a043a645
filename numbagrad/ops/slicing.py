"""Strided regions of an array, `offset` and `strides` counted in elements: views, copies, and zeros around them.

Slices, reversed axes, single elements and diagonals all are regions. The elements of a region must be distinct.
"""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import strided
from numbagrad.launch import launch
from numbagrad.ops.casting import raw
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import gather, normal_axis

Strides = tuple[int, ...]


def zeros(n: int, dtype: np.dtype) -> np.ndarray:
    """A new flat array of zeros."""
    out = np.empty(n, dtype)
    launch(strided.fill, 0, raw(out), n)
    return out


def is_contiguous(shape: Shape, strides: Strides) -> bool:
    """Whether a region is one run of memory, so that a view can show it."""
    if 0 in shape:
        return True
    run = 1
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if step != run:
                return False
            run *= n
    return True


def _x(*shape: int) -> np.ndarray:
    return np.linspace(-1.0, 2.0, size_of(shape)).reshape(shape)


def _view_vjp(context: Context, g: Any) -> Any:
    shape = context.params["shape"]
    return scatter_slice(
        g, offset=context.params["start"], strides=strided.contiguous_strides(shape), shape=context.shape(0)
    )


@composed(
    "view_slice",
    _view_vjp,
    view=True,
    float16=True,
    samples=lambda: [
        Sample((_x(4, 3),), {"start": 3, "shape": (2, 3)}, lambda x: x[1:3]),
        Sample((_x(4, 3),), {"start": 7, "shape": (1,)}, lambda x: x[2, 1:2]),
    ],
)
def view_slice(x: ArrayLike, *, start: int, shape: Shape) -> Output:
    """The run of elements from `start` on, as `shape`; on the same memory."""
    return x._flat[start : start + size_of(shape)], shape


def _copy_vjp(context: Context, g: Any) -> Any:
    params = context.params
    return scatter_slice(g, offset=params["offset"], strides=params["strides"], shape=context.shape(0))


@composed(
    "strided_slice",
    _copy_vjp,
    float16=True,
    samples=lambda: [
        Sample((_x(3, 4),), {"offset": 1, "shape": (3, 2), "strides": (4, 2)}, lambda x: x[:, 1::2]),
        Sample((_x(3, 4),), {"offset": 11, "shape": (2, 4), "strides": (-8, -1)}, lambda x: x[::-2, ::-1]),
        Sample((_x(3, 4),), {"offset": 1, "shape": (3,), "strides": (5,)}, lambda x: np.diag(x, 1)),
    ],
)
def strided_slice(x: ArrayLike, *, offset: int, shape: Shape, strides: Strides) -> Output:
    """A copy of a region."""
    return gather(x, offset, shape, strides), shape


def _scatter_vjp(context: Context, g: Any) -> Any:
    params = context.params
    return strided_slice(g, offset=params["offset"], shape=context.shape(0), strides=params["strides"])


def _around(region: Any, shape: Shape) -> Any:
    def expected(x: np.ndarray) -> np.ndarray:
        out = np.zeros(shape)
        out[region] = x
        return out

    return expected


@composed(
    "scatter_slice",
    _scatter_vjp,
    float16=True,
    samples=lambda: [
        Sample(
            (_x(3, 2),),
            {"offset": 1, "strides": (4, 2), "shape": (3, 4)},
            _around((slice(None), slice(1, None, 2)), (3, 4)),
        ),
        Sample((_x(3),), {"offset": 5, "strides": (-2,), "shape": (6,)}, _around(slice(None, None, -2), (6,))),
    ],
)
def scatter_slice(x: ArrayLike, *, offset: int, strides: Strides, shape: Shape) -> Output:
    """Zeros of `shape` with `x` in a region; the transpose of `strided_slice`."""
    out = zeros(size_of(shape), x._flat.dtype)
    view = strided.layout(offset, x._shape, strides)
    if view.count:
        launch(strided.scatter, raw(x._flat), raw(out), view.meta, view.ndim, view.count)
    return out, shape


def make_diagonal(x: Any, *, k: int = 0) -> Any:
    """Square matrices with the last axis of `x` as k-th diagonal, else 0."""
    *lead, n = x._shape
    n += abs(k)
    strides = (*strided.contiguous_strides((*lead, n * n))[:-1], n + 1)
    return scatter_slice(x, offset=k if k >= 0 else -k * n, strides=strides, shape=(*lead, n, n))


def diag(x: Any, *, k: int = 0, axis1: int = 0, axis2: int = 1, name: str = "diag") -> Any:
    """The k-th diagonal along two axes, as the last axis; of a vector, the matrix that has it as k-th diagonal.

    Raises
    ------
    MXNetError
        If there is no such diagonal, or an axis is out of range.
    """
    shape = x._shape
    if len(shape) == 1:
        return make_diagonal(x, k=k)
    first, second = normal_axis(name, axis1, len(shape)), normal_axis(name, axis2, len(shape))
    if first == second:
        raise MXNetError(f"{name}: axis1 and axis2 are both {first}")
    steps = strided.contiguous_strides(shape)
    length = min(shape[first] + min(k, 0), shape[second] - max(k, 0))
    if length <= 0:
        raise MXNetError(f"{name}: {shape} has no diagonal {k} along axes {first} and {second}")
    rest = [axis for axis in range(len(shape)) if axis not in (first, second)]
    return strided_slice(
        x,
        offset=k * steps[second] if k >= 0 else -k * steps[first],
        shape=(*[shape[axis] for axis in rest], length),
        strides=(*[steps[axis] for axis in rest], steps[first] + steps[second]),
    )
