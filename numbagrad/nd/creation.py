"""New arrays: from values, of one value, of sequences of numbers."""

import math
import weakref
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad.context import CPU0, Context
from numbagrad.errors import MXNetError
from numbagrad.kernels.strided import copy
from numbagrad.launch import launch
from numbagrad.nd.ndarray import NDArray, _refuse_gpu
from numbagrad.nd.output import deliver
from numbagrad.nd.outside import borrowed
from numbagrad.ops.casting import cast, cast_flat, raw
from numbagrad.ops.dtypes import FLOAT32, adopted, as_dtype
from numbagrad.ops.joining import concat
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.shaping import fill_flat, identity, normal_axis, reshape, transpose
from numbagrad.ops.shaping import full_like as constant_like

_CURRENT = Context._current


def as_shape(shape: Any) -> Shape:
    """`shape`, an int or a sequence of ints, as a tuple.

    Raises
    ------
    MXNetError
        For a negative length.
    TypeError
        For a length that is no int.
    """
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    result = tuple([index(n) for n in shape])
    for n in result:
        if n < 0:
            raise MXNetError(f"a shape cannot have a negative length: {result}")
    return result


def labelled(result: NDArray, ctx: Any) -> NDArray:
    """`result` with the device label `ctx`, or the current one for None; kept only where it is not ``cpu(0)``."""
    if ctx is None:
        stack = _CURRENT.stack
        if not stack:
            return result
        ctx = stack[-1]
    elif not isinstance(ctx, Context):
        raise TypeError(f"ctx= takes a Context, not {type(ctx).__name__}")
    _refuse_gpu(ctx)
    if ctx != CPU0:
        result._context = ctx
    return result


def hosted(flat: np.ndarray, shape: Shape) -> NDArray:
    """An array that owns `flat`, values that Python computed; a captured program starts from them at each replay."""
    if door.mode is not None:
        template, flat = flat, np.empty_like(flat)
        launch(copy, raw(template), raw(flat), flat.size)
    return NDArray(flat, shape)


# --------------------------------------------------------------------------------------------------- from values


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array with the values of `source_array`.

    Parameters
    ----------
    source_array : array_like
        A NumPy array, a number, nested sequences of numbers, an NDArray, or a list of NDArrays of one shape, which are
        stacked.
    ctx : Context, optional
        The device label; the current one by default.
    dtype : optional
        The default is the dtype of an NDArray, and float32 for anything else.

    Returns
    -------
    NDArray
        A copy. While recording, that of an NDArray is recorded.

    Raises
    ------
    TypeError
        For ragged sequences, strings and other things that are no numbers.

    Examples
    --------
    >>> from numbagrad import nd
    >>> nd.array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if type(source_array) is np.ndarray:
        source = source_array
    elif type(source_array) is door.Handed:
        given = door.plain(source_array)
        target = FLOAT32 if dtype is None else as_dtype(dtype)
        return labelled(NDArray(cast_flat(given.reshape(-1), target), given.shape), ctx)
    elif isinstance(source_array, NDArray):
        _check_label(ctx)
        result = identity(source_array) if dtype is None else source_array.astype(dtype)
        result._context = None
        return labelled(result, ctx)
    elif isinstance(source_array, (list, tuple)) and source_array and isinstance(source_array[0], NDArray):
        if not all(isinstance(each, NDArray) and each._shape == source_array[0]._shape for each in source_array):
            raise TypeError("array: a list of NDArrays must hold NDArrays of one shape only")
        joined = concat([reshape(each, shape=(1, *each._shape)) for each in source_array], 0, "array")
        result = cast(joined, dtype=as_dtype(dtype))
        return labelled(result, ctx)
    else:
        try:
            source = np.array(source_array)
        except (ValueError, TypeError) as error:
            raise TypeError(f"array: the values make no array of numbers: {error}") from None
    target = FLOAT32 if dtype is None else as_dtype(dtype)
    if source.dtype == target:
        flat = adopted(source.flatten())
    elif source.dtype.kind not in "fiub" or source.dtype.itemsize > 8:
        raise TypeError(f"array: values of type {source.dtype} are no numbers that an NDArray can hold")
    elif source.dtype.kind == "f" and target.kind in "iu":  # by one rule for NaN and what does not fit
        flat = cast_flat(source.astype(source.dtype.newbyteorder("=")).reshape(-1), target)
    else:
        with np.errstate(all="ignore"):  # what is too large becomes infinite
            flat = source.astype(target).reshape(-1)
    return labelled(hosted(flat, source.shape), ctx)


def _check_label(ctx: Any) -> None:
    if ctx is not None:
        _refuse_gpu(ctx)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An array on the memory of `ndarray`, which becomes read-only; a copy where `zero_copy` is False.

    Arrays of one NumPy array, or of views of it, share memory as slices of one array here do.

    Raises
    ------
    ValueError
        If `ndarray` is not C-contiguous.
    """
    dtype = as_dtype(ndarray.dtype)
    if not zero_copy:
        return array(ndarray, dtype=dtype)
    if not ndarray.flags.c_contiguous:
        raise ValueError("from_numpy: only C-contiguous arrays share memory; use zero_copy=False")
    if id(ndarray) in _LOCKED:
        ndarray.flags.writeable = True  # for the moment: what we have locked we may share again
    if not ndarray.flags.carray:
        return array(ndarray, dtype=dtype)
    flat = adopted(ndarray.reshape(-1))
    ndarray.flags.writeable = False
    number = id(ndarray)
    _LOCKED[number] = weakref.ref(ndarray, lambda _: _LOCKED.pop(number, None))
    return borrowed("from_numpy", flat.reshape(ndarray.shape))


_LOCKED: dict[int, weakref.ref[np.ndarray]] = {}
"""The NumPy arrays that :func:`from_numpy` has made read-only, by their ids."""


# ---------------------------------------------------------------------------------------------------- one value


def _filled(shape: Any, value: float, ctx: Any, dtype: Any, out: Any) -> NDArray:
    _check_label(ctx)
    shape = as_shape(shape)
    flat = np.empty(size_of(shape), FLOAT32 if dtype is None else as_dtype(dtype))
    fill_flat(flat, value)
    result = labelled(NDArray(flat, shape), ctx)
    return result if out is None else deliver(result, out)


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array whose values are arbitrary."""
    _check_label(ctx)
    shape = as_shape(shape)
    return labelled(NDArray(np.empty(size_of(shape), as_dtype(dtype)), shape), ctx)


def zeros(shape: Any, ctx: Context | None = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> NDArray:
    """A new array of zeros; `shape` is an int or a tuple, the default dtype float32."""
    _only_storage("zeros", kwargs)
    return _filled(shape, 0, ctx, dtype, out)


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> NDArray:
    """A new array of ones; `shape` is an int or a tuple, the default dtype float32."""
    _only_storage("ones", kwargs)
    return _filled(shape, 1, ctx, dtype, out)


def _only_storage(name: str, kwargs: dict[str, Any]) -> None:
    """Accept MXNet's ``stype="default"`` and ``name=``, and nothing else."""
    stype = kwargs.pop("stype", None)
    if stype not in (None, "default"):
        raise MXNetError(f"{name}: arrays are dense, there is no stype {stype!r}")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"{name}: unexpected keyword {', '.join(kwargs)}")


def full(shape: Any, val: Any, ctx: Context | None = None, dtype: Any = None, out: Any = None) -> NDArray:
    """A new array with every element `val`: a number, or an array that broadcasts to `shape`."""
    if isinstance(val, (int, float, np.generic)):
        return _filled(shape, val, ctx, dtype, out)  # type: ignore[arg-type]
    from numbagrad.ops.broadcasting import broadcast_to

    values = val if isinstance(val, NDArray) else array(val)
    result = cast(broadcast_to(values, shape=as_shape(shape)), dtype=as_dtype(dtype))
    return deliver(labelled(result, ctx), out)


def zeros_like(data: NDArray, out: Any = None, name: str | None = None, **kwargs: Any) -> NDArray:
    """Zeros of the shape and dtype of `data`."""
    _only_storage("zeros_like", kwargs)
    return deliver(constant_like(data, value=0), out)


def ones_like(data: NDArray, out: Any = None, name: str | None = None, **kwargs: Any) -> NDArray:
    """Ones of the shape and dtype of `data`."""
    _only_storage("ones_like", kwargs)
    return deliver(constant_like(data, value=1), out)


def full_like(data: NDArray, fill_value: float, out: Any = None, name: str | None = None) -> NDArray:
    """An array of the shape and dtype of `data` with every element `fill_value`."""
    return deliver(constant_like(data, value=fill_value), out)


# ---------------------------------------------------------------------------------------------------- sequences


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: Any = None,
    out: Any = None,
) -> NDArray:
    """Numbers from `start` (0 where only one is given) in steps to below `stop`, each `repeat` times.

    Raises
    ------
    MXNetError
        For a step of 0, or numbers that are not finite.
    """
    _check_label(ctx)
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise MXNetError("arange: the step cannot be 0")
    if not math.isfinite(start + stop + step):
        raise MXNetError(f"arange: start, stop and step must be finite, not {start}, {stop} and {step}")
    target = as_dtype(dtype)
    count = max(0, math.ceil((stop - start) / step))
    numbers = start + np.arange(count) * step
    if repeat != 1:
        numbers = np.repeat(numbers, index(repeat))
    flat = numbers.astype(target)
    return deliver(labelled(hosted(flat, flat.shape), ctx), out)


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: Any = None,
    out: Any = None,
) -> NDArray:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one if `endpoint`."""
    _check_label(ctx)
    flat = np.linspace(float(start), float(stop), num, endpoint=endpoint).astype(as_dtype(dtype))
    return deliver(labelled(hosted(flat, flat.shape), ctx), out)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, out: Any = None) -> NDArray:
    """An (N, M) array (M = N where 0) of zeros with ones on diagonal `k`, above the main one where positive."""
    _check_label(ctx)
    values = np.eye(N, M or None, k, as_dtype(dtype))
    return deliver(labelled(hosted(values.reshape(-1), values.shape), ctx), out)


# -------------------------------------------------------------------------------------------------------- others


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """`tensor` with axes `source` moved to `destination`, the others in their order.

    Raises
    ------
    ValueError
        If there are not as many of one as of the other, an axis is named twice, or there is no such axis.
    """
    ndim = len(tensor._shape)
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    try:
        sources = [normal_axis("moveaxis", k, ndim) for k in sources]
        targets = [normal_axis("moveaxis", k, ndim) for k in targets]
    except MXNetError as error:
        raise ValueError(str(error)) from None
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError(f"moveaxis: cannot move axes {source} to {destination}")
    order = [k for k in range(ndim) if k not in sources]
    for target, k in sorted(zip(targets, sources, strict=True)):
        order.insert(target, k)
    return transpose(tensor, axes=tuple(order))


def histogram(
    a: NDArray, bins: int | Sequence[float] | NDArray = 10, range: Sequence[float] | None = None
) -> list[NDArray]:
    """How many elements of `a` lie in each bin, and the edges of the bins.

    Parameters
    ----------
    a : NDArray
    bins : int or NDArray
        How many bins of equal width, or their edges.
    range : pair of float, optional
        The outer edges for an int `bins`; elements outside do not count.

    Returns
    -------
    list of NDArray
        Counts (int64) and edges (in the dtype of `a`; those given).
    """
    edges = bins.asnumpy() if isinstance(bins, NDArray) else bins
    if range is not None and len(range) != 2:
        raise MXNetError(f"histogram: range is a pair of numbers, not {range}")
    outer = None if range is None else (float(range[0]), float(range[1]))
    values = a.asnumpy()
    counts, found = np.histogram(values.view(np.uint8) if values.dtype.kind == "b" else values, edges, outer)
    target = bins._flat.dtype if isinstance(bins, NDArray) else a._flat.dtype if a._flat.dtype.kind == "f" else FLOAT32
    return [
        hosted(counts.astype(np.int64), counts.shape),
        bins if isinstance(bins, NDArray) else hosted(found.astype(target), found.shape),
    ]


def waitall() -> None:
    """Nothing: every result is there when its call returns."""


def _tostype(self: NDArray, stype: str) -> NDArray:
    """The array itself: the only storage type is ``default``; MXNetError for another."""
    if stype != "default":
        raise MXNetError(f"tostype: arrays are dense, there is no stype {stype!r}")
    return self


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arange": arange,
    "array": array,
    "empty": empty,
    "eye": eye,
    "from_numpy": from_numpy,
    "full": full,
    "full_like": full_like,
    "histogram": histogram,
    "linspace": linspace,
    "moveaxis": moveaxis,
    "ones": ones,
    "ones_like": ones_like,
    "waitall": waitall,
    "zeros": zeros,
    "zeros_like": zeros_like,
}
