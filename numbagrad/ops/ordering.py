"""Sorting, and where the largest and smallest elements are.

Sorts are stable: of equal elements the one of lower index comes first, in either direction. NaN comes last in a sort,
and is the largest and the smallest element for `argmax` and `argmin`, as in NumPy.
"""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import extreme, order
from numbagrad.kernels.kernel import Kernel
from numbagrad.kernels.strided import contiguous_strides
from numbagrad.launch import launch
from numbagrad.ops.folding import Axes, fold, reduced_shape
from numbagrad.ops.indexing import take_along
from numbagrad.ops.layout import size_of
from numbagrad.ops.registry import ArrayLike, Output, Sample, composed
from numbagrad.ops.slicing import strided_slice

_INT64 = np.dtype("int64")


def _x(*shape: int) -> np.ndarray:
    return np.sin(np.arange(float(size_of(shape))) * 2.3).reshape(shape)


_TIES = np.array([[2.0, 1.0, 2.0], [1.0, 1.0, 3.0]])


@composed(
    "argsort",
    lambda context, g: None,
    differentiable=False,
    samples=lambda: [
        Sample((_x(3, 4),), {"axis": 1, "ascending": True}, lambda x: np.argsort(x, 1, kind="stable")),
        Sample((_x(3, 4),), {"axis": 0, "ascending": True}, lambda x: np.argsort(x, 0, kind="stable")),
        Sample((_TIES,), {"axis": 1, "ascending": False}, lambda x: np.array([[0, 2, 1], [2, 0, 1]])),
    ],
)
def argsort(x: ArrayLike, *, axis: int, ascending: bool) -> Output:
    """The indices (int64) that sort `x` along an axis counted from the front."""
    _, outer, n, inner = fold(x, (axis,))
    out = np.empty(x._flat.size, _INT64)
    launch(order.argsort, x._flat, out, outer, n, inner, int(not ascending))
    return out, x._shape


def sort(x: Any, *, axis: int, ascending: bool) -> Any:
    """`x` in order along an axis; the gradient goes back to where each element came from."""
    return take_along(x, argsort(x, axis=axis, ascending=ascending), axis=axis)


def first(x: Any, k: int, axis: int) -> Any:
    """A copy of the first `k` elements along an axis."""
    shape = x._shape
    if shape[axis] == k:
        return x
    kept = (*shape[:axis], k, *shape[axis + 1 :])
    return strided_slice(x, offset=0, shape=kept, strides=contiguous_strides(shape))


def topk_indices(x: Any, *, k: int, axis: int, ascending: bool) -> Any:
    """The indices (int64) of the `k` largest (`ascending`: smallest) elements along an axis, best first.

    Raises
    ------
    MXNetError
        If there are fewer than `k`.
    """
    if k > x._shape[axis]:
        raise MXNetError(f"topk: k is {k}, but axis {axis} of {x._shape} has {x._shape[axis]} elements only")
    return first(argsort(x, axis=axis, ascending=ascending), k, axis)


def _arg(name: str, kernel: Kernel, x: ArrayLike, axes: Axes, keepdims: bool, dtype: np.dtype) -> Output:
    folded, outer, n, inner = fold(x, axes)
    if n == 0:
        raise MXNetError(f"{name}: no elements along axes {axes} of an array of shape {x._shape}")
    out = np.empty(outer * inner, dtype)
    launch(kernel, folded._flat, out, outer, n, inner)
    return out, reduced_shape(x._shape, axes, keepdims)


def _arg_samples(numpy: Any) -> Any:
    return lambda: [
        Sample((_x(3, 4),), {"axes": (1,), "keepdims": False}, lambda x: numpy(x, axis=1)),
        Sample((_x(3, 4),), {"axes": (0,), "keepdims": True}, lambda x: numpy(x, axis=0, keepdims=True)),
        Sample((_TIES,), {"axes": (0, 1), "keepdims": False}, lambda x: numpy(x)),
    ]


@composed("argmax", lambda context, g: None, differentiable=False, samples=_arg_samples(np.argmax))
def argmax(x: ArrayLike, *, axes: Axes, keepdims: bool, dtype: np.dtype = _INT64) -> Output:
    """Where the largest element over `axes` first stands, as `dtype`; over all axes, in the flat array."""
    return _arg("argmax", extreme.argmax, x, axes, keepdims, dtype)


@composed("argmin", lambda context, g: None, differentiable=False, samples=_arg_samples(np.argmin))
def argmin(x: ArrayLike, *, axes: Axes, keepdims: bool, dtype: np.dtype = _INT64) -> Output:
    """Where the smallest element over `axes` first stands, as `dtype`; over all axes, in the flat array."""
    return _arg("argmin", extreme.argmin, x, axes, keepdims, dtype)
