"""Sorting and positions of extremes, under MXNet's names and with its defaults: indices are floats unless asked."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.nd.arguments import expect_array, expect_choice
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.selection import at_least_1d
from numbagrad.ops import indexing, ordering
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.folding import Axes
from numbagrad.ops.shaping import normal_axis, reshape


def _line(name: str, data: NDArray, axis: int | None) -> tuple[NDArray, int]:
    """`data` and the axis to order along; flattened for None."""
    expect_array(name, data)
    if axis is None or not data._shape:
        return reshape(data, shape=(data._flat.size,)), 0
    return data, normal_axis(name, axis, len(data._shape))


def sort(
    data: NDArray, axis: int | None = -1, is_ascend: bool = True, out: Any = None, name: str | None = None
) -> NDArray:
    """`data` in order along an axis (None: flattened), NaN last. Stable."""
    data, axis = _line("sort", data, axis)
    return deliver(ordering.sort(data, axis=axis, ascending=bool(is_ascend)), out)


def argsort(
    data: NDArray,
    axis: int | None = -1,
    is_ascend: bool = True,
    dtype: Any = "float32",
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The indices that sort `data` along an axis (None: flattened), NaN last; on ties the lower index first."""
    data, axis = _line("argsort", data, axis)
    result = ordering.argsort(data, axis=axis, ascending=bool(is_ascend))
    return deliver(cast(result, dtype=as_dtype(dtype)), out)


def topk(
    data: NDArray,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: Any = "float32",
    out: Any = None,
    name: str | None = None,
) -> Any:
    """The `k` largest elements along an axis, largest first.

    Parameters
    ----------
    data : NDArray
    axis : int or None
        None: of the flattened array.
    k : int
        How many; 0 means all.
    ret_typ : {"indices", "value", "both", "mask"}
        Indices; values; a list of values and indices; or 1 where an element is among them and 0 elsewhere, in the shape
        of `data`.
    is_ascend : bool
        The smallest instead, smallest first.
    dtype : dtype
        Of the indices.

    Raises
    ------
    MXNetError
        If there are fewer than `k`, or for another `ret_typ`.
    """
    expect_choice("topk", "ret_typ", ret_typ, ("indices", "value", "both", "mask"))
    shape = data._shape if type(data) is NDArray else ()
    data, axis = _line("topk", data, axis)
    count = k if k > 0 else data._shape[axis]
    indices = ordering.topk_indices(data, k=count, axis=axis, ascending=bool(is_ascend))
    if ret_typ == "mask":
        return deliver(reshape(_marks(data, indices, axis), shape=shape), out)
    result: Any
    if ret_typ == "indices":
        result = cast(indices, dtype=as_dtype(dtype))
    else:
        result = indexing.take_along(data, indices, axis=axis)
        if ret_typ == "both":
            result = [result, cast(indices, dtype=as_dtype(dtype))]
    return deliver(result, out)


def _marks(data: NDArray, indices: NDArray, axis: int) -> NDArray:
    """1 where `indices` point to along an axis, 0 elsewhere; in the dtype of `data`."""
    shape = data._shape
    ones = NDArray(np.ones(indices._flat.size, data._flat.dtype), indices._shape)
    return indexing.put(ones, indexing.along(shape, indices, axis=axis), shape=shape, span=len(shape))


def _arg(op: Any, data: NDArray, axis: int | None, keepdims: bool, out: Any) -> NDArray:
    expect_array(op.name, data)
    ndim = len(data._shape)
    axes: Axes = tuple(range(ndim)) if axis is None else (normal_axis(op.name, axis, ndim),)
    dtype = data._flat.dtype
    if dtype.kind == "b":
        result = op(data, axes=axes, keepdims=bool(keepdims))
    elif dtype.char == "e":
        result = cast(op(data, axes=axes, keepdims=bool(keepdims)), dtype=dtype)
    else:
        result = op(data, axes=axes, keepdims=bool(keepdims) or ndim == 1, dtype=dtype)
    return deliver(at_least_1d(result), out)


def argmax(
    data: NDArray, axis: int | None = None, keepdims: bool = False, out: Any = None, name: str | None = None
) -> NDArray:
    """Where the largest element along an axis (None: of the flattened array) first stands; a NaN is the largest.

    The indices have the dtype of `data`.

    Raises
    ------
    MXNetError
        If there are no elements, or the axis is out of range.
    """
    return _arg(ordering.argmax, data, axis, keepdims, out)


def argmin(
    data: NDArray, axis: int | None = None, keepdims: bool = False, out: Any = None, name: str | None = None
) -> NDArray:
    """Where the smallest element along an axis (None: of the flattened array) first stands; a NaN is the smallest.

    The indices have the dtype of `data`.

    Raises
    ------
    MXNetError
        If there are no elements, or the axis is out of range.
    """
    return _arg(ordering.argmin, data, axis, keepdims, out)


def argmax_channel(data: NDArray, out: Any = None, name: str | None = None) -> NDArray:
    """`argmax` along axis 1."""
    return _arg(ordering.argmax, data, 1, False, out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "argmax": argmax,
    "argmax_channel": argmax_channel,
    "argmin": argmin,
    "argsort": argsort,
    "sort": sort,
    "topk": topk,
}
