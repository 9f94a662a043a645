"""Functions that choose elements by index, by range and by mask, under MXNet's names and with its defaults.

Every function takes ``out=``, an array for the result, and ``name=``, which is accepted and means nothing. Index arrays
may have any numeric dtype, fractions are cut off; their gradient is zero.
"""

import builtins
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.strided import contiguous_strides
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.creation import as_shape
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic, indexing, slicing
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.joining import concat
from numbagrad.ops.shaping import normal_axis, reshape

Bounds = int | Sequence[int | None] | None
_NUMBERS = (int, float, np.generic)
_BOOL = np.dtype(bool)


def at_least_1d(result: Any) -> Any:
    """`result`, with the shape (1,) instead of ()."""
    return result if result._shape else reshape(result, shape=(1,))


# ------------------------------------------------------------------------------------------------ by index


def take(
    a: NDArray, indices: NDArray, axis: int = 0, mode: str = "clip", out: Any = None, name: str | None = None
) -> NDArray:
    """The elements of `a` at `indices` along an axis, whose place is taken by the axes of `indices`.

    Parameters
    ----------
    a : NDArray
    indices : NDArray
    axis : int
    mode : {"clip", "wrap", "raise"}
        Indices out of range: move to the nearest end; count round; raise, where -n to -1 count from the end.

    Raises
    ------
    IndexError
        With ``mode="raise"``, for an index out of range.
    """
    expect_array("take", a, indices)
    return deliver(indexing.take(a, indices, axis=axis, mode=mode), out)


def batch_take(a: NDArray, indices: NDArray, out: Any = None, name: str | None = None) -> NDArray:
    """``a[i, indices[i]]`` for each row i of a matrix; indices are clipped to the row."""
    expect_array("batch_take", a, indices)
    if len(a._shape) != 2:
        raise MXNetError(f"batch_take: takes a matrix, not an array of shape {a._shape}")
    return deliver(indexing.pick(a, indices, axis=1, keepdims=False, mode="clip"), out)


def pick(
    data: NDArray,
    index: NDArray,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """One element out of each line of `data` along an axis.

    Parameters
    ----------
    data : NDArray
    index : NDArray
        Of the shape of `data` without the axis, or with length 1 there.
    axis : int
    keepdims : bool
        Keep the axis with length 1.
    mode : {"clip", "wrap"}
        Indices out of range: move to the nearest end, or count round.

    Raises
    ------
    MXNetError
        For an index of another shape, or ``axis=None``.
    """
    expect_array("pick", data, index)
    if axis is None:
        raise MXNetError("pick: axis must be an int, not None")
    return deliver(at_least_1d(indexing.pick(data, index, axis=axis, keepdims=bool(keepdims), mode=mode)), out)


def fill_element_0index(lhs: NDArray, mhs: NDArray, rhs: NDArray, out: Any = None, name: str | None = None) -> NDArray:
    """A copy of the matrix `lhs` with ``mhs[i]`` at column ``rhs[i]`` of row i, if there is such a column."""
    expect_array("fill_element_0index", lhs, mhs, rhs)
    if len(lhs._shape) != 2 or not mhs._shape == rhs._shape == lhs._shape[:1]:
        raise MXNetError(
            f"fill_element_0index: takes shapes (n, m), (n,) and (n,), not {lhs._shape}, {mhs._shape} and {rhs._shape}"
        )
    chosen = indexing.one_hot(rhs, depth=lhs._shape[1], on=1, off=0, dtype=_BOOL)
    return deliver(arithmetic.where(chosen, reshape(mhs, shape=(*mhs._shape, 1)), lhs), out)


def one_hot(
    indices: NDArray,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: Any = "float32",
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """A new last axis of length `depth`: `on_value` at the index (if it is in range), `off_value` elsewhere."""
    expect_array("one_hot", indices)
    depth = index(depth)
    if depth < 0:
        raise MXNetError(f"one_hot: depth {depth} is negative")
    result = indexing.one_hot(indices, depth=depth, on=on_value, off=off_value, dtype=as_dtype(dtype))
    return deliver(result, out)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write 1 at the index of each row of the matrix `out`, 0 elsewhere; returns `out`. See :func:`one_hot`."""
    expect_array("onehot_encode", indices, out)
    if len(out._shape) != 2:
        raise MXNetError(f"onehot_encode: out must be a matrix, not of shape {out._shape}")
    return one_hot(indices, out._shape[1], dtype=out._flat.dtype, out=out)


def gather_nd(data: NDArray, indices: NDArray, out: Any = None, name: str | None = None) -> NDArray:
    """``data[indices[0], indices[1], ...]``: axis 0 of `indices` counts leading axes of `data`.

    Raises
    ------
    IndexError
        For an index out of range; -n to -1 count from the end.
    MXNetError
        If there are more index rows than axes.
    """
    expect_array("gather_nd", data, indices)
    return deliver(at_least_1d(indexing.gather_nd(data, indices)), out)


def scatter_nd(
    data: NDArray, indices: NDArray, shape: int | Sequence[int], out: Any = None, name: str | None = None
) -> NDArray:
    """Zeros of `shape` with ``result[indices[0], indices[1], ...] = data``.

    Of several writes to one place the last one stays, and it alone has a gradient.

    Raises
    ------
    IndexError
        For an index out of range; -n to -1 count from the end.
    MXNetError
        If the shapes do not fit.
    """
    expect_array("scatter_nd", data, indices)
    return deliver(indexing.scatter_nd(data, indices, shape=as_shape(shape)), out)


def Embedding(
    data: NDArray,
    weight: NDArray,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: Any = None,
    sparse_grad: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The rows of `weight` at the indices `data`, clipped to the table.

    Parameters
    ----------
    data : NDArray
        Indices, of any shape.
    weight : NDArray
        Of shape (input_dim, output_dim).
    input_dim, output_dim : int, optional
        Checked against the shape of `weight`.
    dtype, sparse_grad : optional
        Accepted for MXNet's sake: the dtype is that of `weight`, the gradient is dense.

    Raises
    ------
    MXNetError
        If `weight` has another shape.
    """
    expect_array("Embedding", data, weight)
    shape = weight._shape
    wanted = tuple(n if given is None else given for n, given in zip(shape, (input_dim, output_dim), strict=False))
    if len(shape) != 2 or wanted != shape:
        raise MXNetError(
            f"Embedding: a weight of shape {shape} is no table of (input_dim, output_dim) = {(input_dim, output_dim)}"
        )
    return deliver(indexing.embedding(weight, data), out)


def _sizes(name: str, shape: int | Sequence[int]) -> list[int]:
    """How far apart neighbours along each axis of `shape` are."""
    lengths = [int(shape)] if isinstance(shape, (int, np.integer)) else [index(n) for n in shape]
    if any(n < 1 for n in lengths[1:]) or not lengths or lengths[0] < -1:
        raise MXNetError(f"{name}: {shape} is no shape; only its first length may be left open with -1")
    return list(contiguous_strides((1, *lengths[1:])))


def unravel_index(data: NDArray, shape: int | Sequence[int], out: Any = None, name: str | None = None) -> NDArray:
    """The indices, on a new first axis, of flat positions in an array of `shape`; in the dtype of `data`."""
    expect_array("unravel_index", data)
    steps = _sizes("unravel_index", shape)
    rest, rows = data, []
    for step in steps:
        rows.append(reshape(arithmetic.floor_divide(rest, step), shape=(1, *data._shape)))
        rest = arithmetic.mod(rest, step)
    return deliver(concat(rows, 0, "unravel_index"), out)


def ravel_multi_index(data: NDArray, shape: int | Sequence[int], out: Any = None, name: str | None = None) -> NDArray:
    """The flat positions in an array of `shape` of indices on the first axis of `data`; in its dtype.

    Raises
    ------
    MXNetError
        If there are not as many rows as axes.
    """
    expect_array("ravel_multi_index", data)
    steps = _sizes("ravel_multi_index", shape)
    if not data._shape or data._shape[0] != len(steps):
        raise MXNetError(f"ravel_multi_index: an array of shape {data._shape} does not index {len(steps)} axes")
    rows = [indexing.take(data, NDArray(np.array([k]), ()), axis=0, mode="clip") for k in range(len(steps))]
    total = arithmetic.multiply(rows[0], steps[0])
    for row, step in zip(rows[1:], steps[1:], strict=True):
        total = arithmetic.add(total, arithmetic.multiply(row, step))
    return deliver(total, out)


# ------------------------------------------------------------------------------------------------ by range


def _bounds(name: str, value: Bounds, ndim: int) -> list[int | None]:
    if value is None or isinstance(value, (int, np.integer)):
        value = (value,)
    if len(value) > ndim:
        raise MXNetError(f"{name}: {len(value)} axes are sliced, the array has {ndim}")
    return [None if one is None else index(one) for one in value]


def _cut(x: NDArray, slices: Sequence[builtins.slice]) -> NDArray:
    """A copy of ``x[slices]``, one slice an axis from the front."""
    shape = list(x._shape)
    strides = list(contiguous_strides(x._shape))
    offset = 0
    for axis, part in enumerate(slices):
        start, stop, step = part.indices(shape[axis])
        offset += start * strides[axis]
        shape[axis] = len(range(start, stop, step))
        strides[axis] *= step
    return slicing.strided_slice(x, offset=0 if 0 in shape else offset, shape=tuple(shape), strides=tuple(strides))


def slice(
    data: NDArray, begin: Bounds, end: Bounds, step: Bounds = None, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of ``data[begin[0]:end[0]:step[0], ...]``.

    Parameters
    ----------
    data : NDArray
    begin, end : tuple of int or None
        One an axis, from the front; by Python's rules.
    step : tuple of int or None, optional
        1 where it is left out; may be negative.

    Raises
    ------
    MXNetError
        If the tuples are of different lengths, there are more than axes, or a step is 0.
    """
    expect_array("slice", data)
    ndim = len(data._shape)
    starts, stops = _bounds("slice", begin, ndim), _bounds("slice", end, ndim)
    steps = [None] * len(starts) if step is None or step == () else _bounds("slice", step, ndim)
    if not len(starts) == len(stops) == len(steps):
        raise MXNetError(f"slice: begin {begin}, end {end} and step {step} are of different lengths")
    if 0 in steps:
        raise MXNetError(f"slice: a step is 0 in {step}")
    return deliver(_cut(data, [builtins.slice(*one) for one in zip(starts, stops, steps, strict=True)]), out)


def slice_axis(
    data: NDArray, axis: int, begin: int, end: int | None, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of ``begin:end`` along one axis; negative bounds count from the end, None is the end.

    Raises
    ------
    MXNetError
        If that reaches beyond the axis, or holds no element.
    """
    expect_array("slice_axis", data)
    axis = normal_axis("slice_axis", axis, len(data._shape))
    n = data._shape[axis]
    start = begin + n if begin < 0 else begin
    stop = n if end is None else end + n if end < 0 else end
    if not 0 <= start < stop <= n:
        raise MXNetError(f"slice_axis: {begin}:{end} is no range along axis {axis} of {data._shape}")
    whole = builtins.slice(None)
    return deliver(_cut(data, [whole] * axis + [builtins.slice(start, stop)]), out)


def slice_like(
    data: NDArray, shape_like: NDArray, axes: int | Sequence[int] = (), out: Any = None, name: str | None = None
) -> NDArray:
    """The front of `data`, as long as `shape_like` along `axes` (none given: along all).

    Raises
    ------
    MXNetError
        If an axis of `shape_like` is longer, or, without `axes`, the numbers of axes differ.
    """
    expect_array("slice_like", data, shape_like)
    own, like = data._shape, shape_like._shape
    if isinstance(axes, (int, np.integer)):
        axes = (int(axes),)
    if not axes and len(own) != len(like):
        raise MXNetError(f"slice_like: {own} and {like} have different numbers of axes; give axes=")
    ends: list[int] = list(own)
    for axis in axes or range(len(own)):
        here = normal_axis("slice_like", axis, len(own))
        ends[here] = like[normal_axis("slice_like", axis, len(like))]
        if ends[here] > own[here]:
            raise MXNetError(f"slice_like: axis {here} of {like} is longer than that of {own}")
    return deliver(_cut(data, [builtins.slice(0, end) for end in ends]), out)


def diag(
    data: NDArray, k: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None, name: str | None = None
) -> NDArray:
    """The k-th diagonal along two axes, as the last axis; of a vector, the matrix that has it as k-th diagonal.

    Raises
    ------
    MXNetError
        If there is no such diagonal.
    """
    expect_array("diag", data)
    if not data._shape:
        raise MXNetError("diag: an array of no dimension has no diagonal")
    return deliver(slicing.diag(data, k=k, axis1=axis1, axis2=axis2), out)


# ------------------------------------------------------------------------------------------------- by mask


def _truth(condition: Any, *branches: Any) -> Any:
    """`condition` so that mixing it with `branches` neither changes their dtype nor rounds it to zero."""
    dtypes = {branch._flat.dtype for branch in branches if type(branch) is NDArray}
    return condition if dtypes == {condition._flat.dtype} else cast(condition, dtype=_BOOL)


def where(condition: NDArray, x: Any, y: Any, out: Any = None, name: str | None = None) -> NDArray:
    """`x` where `condition` is not 0, else `y`; the branch not taken has a gradient of exactly 0.

    Parameters
    ----------
    condition : NDArray
        Of the shape of `x` and `y`, or one element a row of theirs (axis 0).
    x, y : NDArray
        Of one shape; one of them may be a number.

    Raises
    ------
    MXNetError
        For other shapes.
    """
    branches = [branch for branch in (x, y) if not isinstance(branch, _NUMBERS)]
    expect_array("where", condition, *(branches or [x]))
    shape = branches[0]._shape
    given = condition._shape
    if any(branch._shape != shape for branch in branches) or given not in (shape, shape[:1]):
        raise MXNetError(
            f"where: a condition of shape {given} does not fit {' and '.join(str(b._shape) for b in branches)}"
        )
    condition = _truth(condition, *branches)
    if given != shape:
        condition = reshape(condition, shape=given + (1,) * (len(shape) - 1))
    return deliver(arithmetic.where(condition, x, y), out)


def boolean_mask(data: NDArray, index: NDArray, axis: int = 0, out: Any = None, name: str | None = None) -> NDArray:
    """The parts of `data` along an axis where `index` is not 0. The result's shape depends on values, which are read.

    Raises
    ------
    MXNetError
        If `index` has not one element for each place along the axis.
    """
    expect_array("boolean_mask", data, index)
    axis = normal_axis("boolean_mask", axis, len(data._shape))
    if index._shape != data._shape[axis : axis + 1]:
        raise MXNetError(f"boolean_mask: a mask of shape {index._shape} does not fit axis {axis} of {data._shape}")
    return deliver(indexing.take(data, indexing.true_positions(index), axis=axis, mode="clip"), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Embedding": Embedding,
    "batch_take": batch_take,
    "boolean_mask": boolean_mask,
    "choose_element_0index": pick,
    "crop": slice,
    "diag": diag,
    "fill_element_0index": fill_element_0index,
    "gather_nd": gather_nd,
    "one_hot": one_hot,
    "onehot_encode": onehot_encode,
    "pick": pick,
    "ravel_multi_index": ravel_multi_index,
    "scatter_nd": scatter_nd,
    "slice": slice,
    "slice_axis": slice_axis,
    "slice_like": slice_like,
    "take": take,
    "unravel_index": unravel_index,
    "where": where,
}
