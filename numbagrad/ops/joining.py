"""Ops that join several arrays or cut one into several: each is the other's VJP."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import strided
from numbagrad.launch import launch
from numbagrad.ops.casting import cast, raw
from numbagrad.ops.dtypes import promote
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.padding import crop
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import normal_axis


def _x(*shape: int) -> np.ndarray:
    return np.sin(np.arange(size_of(shape)) * 1.3).reshape(shape)


def promoted(arrays: Sequence[Any]) -> list[Any]:
    """The arrays in their common dtype."""
    dtypes = {array._flat.dtype for array in arrays}
    if len(dtypes) == 1:
        return list(arrays)
    dtype = promote(dtypes)
    return [cast(array, dtype=dtype) for array in arrays]


# ----------------------------------------------------------------------------------------------- concatenation


def _concat_vjp(context: Context, g: Any) -> list[Any]:
    axis = context.params["axis"]
    parts: list[Any] = []
    start = 0
    for i, length in enumerate(context.params["lengths"]):
        begin = tuple(start if k == axis else 0 for k in range(len(g._shape)))
        parts.append(crop(g, begin=begin, shape=context.shape(i)) if context.wants(i) else None)
        start += length
    return parts


@composed(
    "concat",
    _concat_vjp,
    float16=True,
    samples=lambda: [
        Sample(
            (_x(2, 3), _x(2, 1), _x(2, 2)),
            {"axis": 1, "lengths": (3, 1, 2)},
            lambda *xs: np.concatenate(xs, axis=1),
        ),
        Sample((_x(2, 3), _x(1, 3)), {"axis": 0, "lengths": (2, 1)}, lambda *xs: np.concatenate(xs, axis=0)),
    ],
)
def _concat(*arrays: ArrayLike, axis: int, lengths: tuple[int, ...]) -> Output:
    first = arrays[0]._shape
    total = sum(lengths)
    shape = (*first[:axis], total, *first[axis + 1 :])
    out = np.empty(size_of(shape), arrays[0]._flat.dtype)
    outer, inner = size_of(first[:axis]), size_of(first[axis + 1 :])
    start = 0
    for array, length in zip(arrays, lengths, strict=True):
        if array._flat.size:
            launch(strided.insert, raw(array._flat), raw(out), outer, length, total, start, inner)
        start += length
    return out, shape


def concat(arrays: Sequence[Any], axis: int, name: str = "concat") -> Any:
    """The arrays one after the other along `axis`, in their common dtype.

    Raises
    ------
    MXNetError
        Where their shapes differ along another axis, or there are none.
    """
    if not arrays:
        raise MXNetError(f"{name}: takes at least one array")
    first = arrays[0]._shape
    axis = normal_axis(name, axis, len(first))
    for array in arrays:
        shape = array._shape
        if len(shape) != len(first) or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise MXNetError(f"{name}: shapes {first} and {shape} differ along an axis other than {axis}")
    return _concat(*promoted(arrays), axis=axis, lengths=tuple(array._shape[axis] for array in arrays))


# --------------------------------------------------------------------------------------------------- splitting


def _split_vjp(context: Context, *gs: Any) -> Any:
    return concat(gs, context.params["axis"])


@composed(
    "split",
    _split_vjp,
    multi=True,
    float16=True,
    samples=lambda: [
        Sample((_x(2, 6),), {"axis": 1, "lengths": (1, 3, 2)}, lambda x: np.split(x, [1, 4], axis=1)),
        Sample((_x(4, 3),), {"axis": 0, "lengths": (2, 2)}, lambda x: np.split(x, 2)),
    ],
)
def split(x: ArrayLike, *, axis: int, lengths: tuple[int, ...]) -> list[Output]:
    """Consecutive parts of `x` along `axis`, of these lengths, which sum to the whole."""
    shape = x._shape
    outer, inner = size_of(shape[:axis]), size_of(shape[axis + 1 :])
    parts = []
    start = 0
    for length in lengths:
        part: Shape = (*shape[:axis], length, *shape[axis + 1 :])
        out = np.empty(size_of(part), x._flat.dtype)
        if out.size:
            launch(strided.extract, raw(x._flat), raw(out), outer, length, shape[axis], start, inner)
        parts.append((out, part))
        start += length
    return parts


# ---------------------------------------------------------------------------------------------------------- sums


@composed(
    "add_n",
    lambda context, g: (g,) * context.params["count"],
    samples=lambda: [Sample((_x(2, 3), _x(2, 3) + 1, _x(2, 3) * 2), {"count": 3}, lambda *xs: sum(xs))],
)
def _add_n(first: ArrayLike, *others: ArrayLike, count: int) -> Output:
    out = np.empty_like(first._flat)
    launch(strided.copy, first._flat, out, out.size)
    for other in others:
        launch(strided.add_into, other._flat, out, out.size)
    return out, first._shape


def add_n(arrays: Sequence[Any]) -> Any:
    """The sum of arrays of one shape, in their common dtype.

    Raises
    ------
    MXNetError
        Where shapes differ, or there are none.
    """
    if not arrays:
        raise MXNetError("add_n: takes at least one array")
    for array in arrays:
        if array._shape != arrays[0]._shape:
            raise MXNetError(f"add_n: shapes {arrays[0]._shape} and {array._shape} differ")
    return _add_n(*promoted(arrays), count=len(arrays))
