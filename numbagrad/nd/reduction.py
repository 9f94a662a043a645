"""Sums, means, products, extremes and norms with MXNet's rules: a full reduction has shape (1,)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic, piecewise
from numbagrad.ops import reduction as ops
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import FLOAT32, as_dtype
from numbagrad.ops.folding import Axes, normal_axes
from numbagrad.ops.joining import concat
from numbagrad.ops.shaping import normal_axis, reshape

Axis = int | Sequence[int] | None
_INT64 = np.dtype("int64")


def reduced_axes(name: str, axis: Axis, ndim: int, exclude: bool = False) -> Axes:
    """The axes that are reduced, from the front; all for None and ``()``."""
    if axis is None or (not isinstance(axis, (int, np.integer)) and not axis):
        return tuple(range(ndim))
    axes = normal_axes(name, axis, ndim)  # type: ignore[arg-type]
    return tuple(k for k in range(ndim) if k not in axes) if exclude else axes


def reduced(
    op: Callable[..., Any], name: str, data: NDArray, axis: Axis, keepdims: bool, exclude: bool, out: Any
) -> NDArray:
    """Apply a reducing op by MXNet's rules."""
    if type(data) is not NDArray:
        raise TypeError(f"{name}: takes an NDArray, not {type(data).__name__}")
    ndim = len(data._shape)
    axes = tuple(range(ndim)) if axis is None else reduced_axes(name, axis, ndim, exclude)
    if len(axes) < ndim or (keepdims and ndim):
        result = op(data, axes=axes, keepdims=bool(keepdims))
    elif ndim == 1:
        result = op(data, axes=axes, keepdims=True)  # (1,) at once
    else:
        result = reshape(op(data, axes=axes, keepdims=False), shape=(1,))
    return result if out is None else deliver(result, out)


def _whole(data: NDArray) -> NDArray:
    """Sums and products of truth values count them."""
    if type(data) is not NDArray:
        return data  # refused by name later
    return cast(data, dtype=_INT64) if data._flat.dtype.kind == "b" else data


def sum(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The sum over axes.

    Parameters
    ----------
    data : NDArray
    axis : int or tuple of int, optional
        The axes to reduce; None and ``()``: all.
    keepdims : bool
        Keep the reduced axes, with length 1.
    exclude : bool
        Reduce all axes but the ones given.
    out : NDArray, optional
        Where to write the result.

    Returns
    -------
    NDArray
        In the dtype of `data` (int64 of truth values); of shape (1,) where all axes are reduced and not kept.

    Raises
    ------
    MXNetError
        For an axis out of range or given twice.

    Examples
    --------
    >>> from numbagrad import nd
    >>> nd.ones((2, 3)).sum(axis=1).asnumpy().tolist()
    [3.0, 3.0]
    """
    return reduced(ops.sum_, "sum", _whole(data), axis, keepdims, exclude, out)


def nansum(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The sum over axes of what is not NaN; the arguments are those of :func:`sum`."""
    return reduced(ops.nansum, "nansum", _whole(data), axis, keepdims, exclude, out)


def mean(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The mean over axes, of ints in float32; NaN of nothing; the arguments are those of :func:`sum`."""
    return reduced(ops.mean, "mean", data, axis, keepdims, exclude, out)


def prod(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The product over axes; the gradient is exact also with zeros. The arguments are those of :func:`sum`."""
    return reduced(ops.prod, "prod", _whole(data), axis, keepdims, exclude, out)


def nanprod(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The product over axes of what is not NaN; the arguments are those of :func:`sum`."""
    return reduced(ops.nanprod, "nanprod", _whole(data), axis, keepdims, exclude, out)


def max(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The largest element over axes, NaN where there is one; tied elements share the gradient equally.

    The arguments are those of :func:`sum`; MXNetError where there is no element.
    """
    return reduced(ops.max_, "max", data, axis, keepdims, exclude, out)


def min(
    data: NDArray,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The smallest element over axes, NaN where there is one; tied elements share the gradient equally.

    The arguments are those of :func:`sum`; MXNetError where there is no element.
    """
    return reduced(ops.min_, "min", data, axis, keepdims, exclude, out)


def norm(
    data: NDArray,
    ord: int = 2,
    axis: Axis = None,
    keepdims: bool = False,
    out: NDArray | None = None,
    name: str | None = None,
    out_dtype: Any = None,
) -> NDArray:
    """The Euclidean norm (`ord` 2) or the sum of magnitudes (`ord` 1) over axes; the derivative at 0 is 0.

    The other arguments are those of :func:`sum`; of ints in float32.

    Raises
    ------
    MXNetError
        For another `ord`.
    """
    if ord not in (1, 2):
        raise MXNetError(f"norm: ord is 1 or 2, not {ord}")
    if type(data) is NDArray and data._flat.dtype.kind != "f":
        data = cast(data, dtype=FLOAT32)
    if out_dtype is not None:
        data = cast(data, dtype=as_dtype(out_dtype))
    return reduced(ops.norm if ord == 2 else ops.norm1, "norm", data, axis, keepdims, False, out)


def moments(
    data: NDArray, axes: Axis = None, keepdims: bool = False, out: Any = None, name: str | None = None
) -> list[NDArray]:
    """The mean and the (biased) variance over axes; a list of the two."""
    center = mean(data, axes, True)
    if len(center._shape) != len(data._shape):
        center = reshape(center, shape=(1,) * len(data._shape))
    variance = mean(arithmetic.square(arithmetic.subtract(data, center)), axes, keepdims)
    average = center if center._shape == variance._shape else reshape(center, shape=variance._shape)
    return deliver([average, variance], out)


def cumsum(
    data: NDArray, axis: int | None = None, dtype: Any = None, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """Running sums along an axis; None: of all elements, flattened."""
    data = _whole(data)
    if dtype is not None:
        data = cast(data, dtype=as_dtype(dtype))
    if axis is None:
        data, axis = reshape(data, shape=(data._flat.size,)), 0
    return deliver(ops.cumsum(data, axis=normal_axis("cumsum", axis, len(data._shape)), reverse=0), out)


def _finite(name: str, arrays: Sequence[Any], out: Any) -> NDArray:
    expect_array(name, *arrays)
    result = None
    for array in arrays:
        shape = array._shape
        each = (
            ops.min_(piecewise.isfinite(array), axes=tuple(range(len(shape))), keepdims=False) if 0 not in shape else 1
        )
        result = each if result is None else arithmetic.minimum(result, each)
    if not isinstance(result, NDArray):  # no element, or no array
        result = NDArray(np.ones(1, FLOAT32), (1,))
    return deliver(reshape(cast(result, dtype=FLOAT32), shape=(1,)), out)


def all_finite(data: NDArray, init_output: bool = True, out: Any = None, name: str | None = None) -> NDArray:
    """1 if all elements are finite, else 0, in float32; without `init_output` the 0 of an `out` stays."""
    return multi_all_finite(data, init_output=init_output, out=out)


def multi_all_finite(
    *data: NDArray,
    num_arrays: int | None = None,
    init_output: bool = True,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """:func:`all_finite` of all elements of several arrays."""
    if num_arrays is not None and num_arrays != len(data):
        raise MXNetError(f"multi_all_finite: num_arrays is {num_arrays!r}, but there are {len(data)} arrays")
    result = _finite("multi_all_finite", data, None)
    return deliver(result if init_output or out is None else arithmetic.minimum(result, out), out)


def multi_sum_sq(*data: NDArray, num_arrays: int | None = None, out: Any = None, name: str | None = None) -> NDArray:
    """The sum of squares of each of several arrays, in float32."""
    expect_array("multi_sum_sq", *data)
    if not data or num_arrays not in (None, len(data)):
        raise MXNetError(f"multi_sum_sq: num_arrays is {num_arrays!r}, but there are {len(data)} arrays")
    sums = [cast(sum(arithmetic.square(array)), dtype=FLOAT32) for array in data]
    return deliver(concat(sums, 0, "multi_sum_sq"), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all_finite": all_finite,
    "multi_all_finite": multi_all_finite,
    "multi_sum_sq": multi_sum_sq,
    "sum": sum,
    "sum_axis": sum,
    "nansum": nansum,
    "mean": mean,
    "prod": prod,
    "nanprod": nanprod,
    "max": max,
    "max_axis": max,
    "min": min,
    "min_axis": min,
    "norm": norm,
    "moments": moments,
    "cumsum": cumsum,
}
