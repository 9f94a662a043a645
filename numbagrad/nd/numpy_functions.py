"""NumPy's functions of NDArrays: ``np.sum(x, axis=0)``, ``np.concatenate([x, y])`` and their kin.

They are our ops under NumPy's argument names, with NumPy's shapes: a full reduction has no axes. Dtypes follow our own
rules. What has no counterpart is NumPy's to compute, on copies; not while recording.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.nd import creation, ordering, selection, shape
from numbagrad.nd import linalg as nd_linalg
from numbagrad.nd.contraction import einsum
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.reduction import _whole, cumsum
from numbagrad.nd.refusal import door
from numbagrad.nd.ufuncs import as_ndarray, by_numpy
from numbagrad.ops import arithmetic, joining, linalg, reduction
from numbagrad.ops.casting import cast
from numbagrad.ops.folding import normal_axes
from numbagrad.ops.layout import size_of
from numbagrad.ops.shaping import identity, reshape

Axis = int | Sequence[int] | None
_INT64 = np.dtype("int64")
_BOOL = np.dtype(bool)

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What stands for a function of NumPy."""

READING: frozenset[Callable[..., Any]] = frozenset(
    (np.allclose, np.array2string, np.array_equal, np.array_equiv, np.array_repr, np.array_str, np.save, np.savetxt)
)
"""Functions that read values and are no part of a computation: NumPy's also while recording."""


def _stands_for(*functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(ours: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = door(ours, f"np.{function.__name__}")
        return ours

    return register


def _array_function(
    self: NDArray, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run what stands for `function`."""
    if not all(issubclass(kind, (NDArray, np.ndarray)) for kind in types):
        return NotImplemented
    name = f"np.{function.__name__}"
    ours = FUNCTIONS.get(function)
    if ours is not None:
        return ours(*args, **kwargs)
    if function in READING:
        copies = [x.asnumpy() if isinstance(x, NDArray) else x for x in args]
        return function(*copies, **kwargs)
    return by_numpy(name, function, args, kwargs)


METHODS: dict[str, Any] = {"__array_function__": _array_function}

# ---------------------------------------------------------------------------------------------------- reductions


def _axes(name: str, axis: Axis, x: NDArray) -> tuple[int, ...]:
    given = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return normal_axes(f"np.{name}", given, len(x._shape))


def _reduced(op: Callable[..., Any], name: str, x: Any, axis: Axis, keepdims: Any, out: Any) -> NDArray:
    x = as_ndarray(x)
    axes = _axes(name, axis, x)
    return deliver(op(x, axes=axes, keepdims=bool(keepdims)), out)


def _summing(function: Callable[..., Any], name: str, op: Callable[..., Any]) -> None:
    @_stands_for(function)
    def summing(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> NDArray:
        x = as_ndarray(a) if dtype is None else cast(as_ndarray(a), dtype=dtype)
        return _reduced(op, name, x if name == "mean" else _whole(x), axis, keepdims, out)


_summing(np.sum, "sum", reduction.sum_)
_summing(np.prod, "prod", reduction.prod)
_summing(np.mean, "mean", reduction.mean)
_summing(np.nansum, "nansum", reduction.nansum)
_summing(np.nanprod, "nanprod", reduction.nanprod)


@_stands_for(np.max, np.amax)
def _max(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> NDArray:
    return _reduced(reduction.max_, "max", a, axis, keepdims, out)


@_stands_for(np.min, np.amin)
def _min(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> NDArray:
    return _reduced(reduction.min_, "min", a, axis, keepdims, out)


@_stands_for(np.var)
def _var(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False
) -> NDArray:
    return deliver(_variance(a, axis, dtype, ddof, keepdims), out)


@_stands_for(np.std)
def _std(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False
) -> NDArray:
    return deliver(arithmetic.sqrt(_variance(a, axis, dtype, ddof, keepdims)), out)


def _variance(x: Any, axis: Axis, dtype: Any, ddof: int, keepdims: Any) -> NDArray:
    x = as_ndarray(x) if dtype is None else cast(as_ndarray(x), dtype=dtype)
    axes = _axes("var", axis, x)
    count = size_of(tuple(x._shape[k] for k in axes))
    square = arithmetic.square(arithmetic.subtract(x, reduction.mean(x, axes=axes, keepdims=True)))
    mean = reduction.mean(square, axes=axes, keepdims=bool(keepdims))
    return mean if not ddof else arithmetic.multiply(mean, count / (count - ddof))


def _position(function: Callable[..., Any], nd_function: Callable[..., Any]) -> None:
    @_stands_for(function)
    def position(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> NDArray:
        x = as_ndarray(a)
        found = cast(nd_function(cast(x, dtype="float64"), axis, bool(keepdims)), dtype=_INT64)
        if axis is None and not keepdims:
            found = reshape(found, shape=())
        return deliver(found, out)


_position(np.argmax, ordering.argmax)
_position(np.argmin, ordering.argmin)


@_stands_for(np.cumsum)
def _cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> NDArray:
    return deliver(cumsum(as_ndarray(a), axis=axis, dtype=dtype), out)


@_stands_for(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> NDArray:
    x = as_ndarray(x)
    vector = len(x._shape) == 1 or isinstance(axis, int)
    if ord is not None and not (vector and ord in (1, 2)):
        raise MXNetError(f"np.linalg.norm of an NDArray: ord {ord!r} is not supported for shape {x._shape}")
    if x._flat.dtype.kind != "f":
        x = cast(x, dtype="float32")
    return _reduced(reduction.norm1 if ord == 1 else reduction.norm, "norm", x, axis, keepdims, None)


# -------------------------------------------------------------------------------------------------------- shapes


@_stands_for(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return a.shape


@_stands_for(np.ndim)
def _ndim(a: Any) -> int:
    return a.ndim


@_stands_for(np.size)
def _size(a: Any, axis: int | None = None) -> int:
    return a.size if axis is None else a.shape[axis]


@_stands_for(np.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> NDArray:
    if order not in ("C", "A"):
        raise MXNetError(f"np.reshape of an NDArray: order is C, not {order}")
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if -1 in shape:
        rest = size_of(tuple(n for n in shape if n != -1))
        if shape.count(-1) > 1 or not rest or a.size % rest:
            raise MXNetError(f"np.reshape: cannot make {shape} of {a.shape}")
        shape = tuple(a.size // rest if n == -1 else n for n in shape)
    view = reshape(a, shape=shape)
    return identity(view) if copy else view


@_stands_for(np.ravel)
def _ravel(a: Any, order: str = "C") -> NDArray:
    return _reshape(a, -1, order)


@_stands_for(np.transpose)
def _transpose(a: Any, axes: Any = None) -> NDArray:
    return shape.transpose(a, axes)


@_stands_for(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> NDArray:
    return shape.swapaxes(a, axis1, axis2)


@_stands_for(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> NDArray:
    return creation.moveaxis(a, source, destination)


@_stands_for(np.expand_dims)
def _expand_dims(a: Any, axis: int) -> NDArray:
    return shape.expand_dims(a, axis)


@_stands_for(np.squeeze)
def _squeeze(a: Any, axis: Axis = None) -> NDArray:
    found = _axes("squeeze", axis, a) if axis is not None else tuple(k for k, n in enumerate(a.shape) if n == 1)
    for k in found:
        if a.shape[k] != 1:
            raise ValueError(f"np.squeeze: axis {k} of shape {a.shape} has not length 1")
    return reshape(a, shape=tuple(n for k, n in enumerate(a.shape) if k not in found))


@_stands_for(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any) -> NDArray:
    return array.broadcast_to(shape)


@_stands_for(np.tile)
def _tile(A: Any, reps: Any) -> NDArray:
    return shape.tile(A, reps)


@_stands_for(np.repeat)
def _repeat(a: Any, repeats: int, axis: int | None = None) -> NDArray:
    return shape.repeat(a, repeats, axis)


@_stands_for(np.flip)
def _flip(m: Any, axis: Axis = None) -> NDArray:
    return shape.flip(m, tuple(range(m.ndim)) if axis is None else axis)


@_stands_for(np.concatenate)
def _concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None) -> NDArray:
    parts = [as_ndarray(x) for x in arrays]
    if axis is None:
        parts, axis = [reshape(x, shape=(x._flat.size,)) for x in parts], 0
    return deliver(joining.concat(parts, axis, "np.concatenate"), out)


@_stands_for(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None) -> NDArray:
    return shape.stack(*[as_ndarray(x) for x in arrays], axis=axis, out=out)


@_stands_for(np.vstack)
def _vstack(tup: Any) -> NDArray:
    parts = [as_ndarray(x) for x in tup]
    return _concatenate([x if x.ndim > 1 else reshape(x, shape=(1, x.size)) for x in parts])


@_stands_for(np.hstack)
def _hstack(tup: Any) -> NDArray:
    parts = [as_ndarray(x) for x in tup]
    parts = [x if x.ndim else reshape(x, shape=(1,)) for x in parts]
    return _concatenate(parts, 0 if parts[0].ndim == 1 else 1)


@_stands_for(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[NDArray]:
    return shape.split_v2(ary, indices_or_sections, axis)


# -------------------------------------------------------------------------------------------- choice, products


@_stands_for(np.where)
def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        return by_numpy("np.where of one argument", np.where, (condition,), {})
    numbers = (int, float, np.generic)
    chosen = arithmetic.not_equal(condition, 0) if isinstance(condition, NDArray) else as_ndarray(condition)
    return arithmetic.where(
        cast(chosen, dtype=_BOOL),
        x if isinstance(x, numbers) else as_ndarray(x),
        y if isinstance(y, numbers) else as_ndarray(y),
    )


@_stands_for(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> NDArray:
    x = as_ndarray(a)
    numbers = (int, float, np.generic)
    if isinstance(a_min, numbers) and isinstance(a_max, numbers):
        return deliver(arithmetic.clip(x, a_min, a_max), out)
    if a_min is not None:
        x = arithmetic.maximum(x, a_min if isinstance(a_min, numbers) else as_ndarray(a_min))
    if a_max is not None:
        x = arithmetic.minimum(x, a_max if isinstance(a_max, numbers) else as_ndarray(a_max))
    return deliver(x, out)


@_stands_for(np.take)
def _take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> NDArray:
    x = as_ndarray(a)
    if axis is None:
        x, axis = reshape(x, shape=(x._flat.size,)), 0
    return deliver(selection.take(x, as_ndarray(indices), axis, mode), out)


@_stands_for(np.sort)
def _sort(a: Any, axis: int | None = -1) -> NDArray:
    return ordering.sort(a, axis)


@_stands_for(np.argsort)
def _argsort(a: Any, axis: int | None = -1) -> NDArray:
    return ordering.argsort(a, axis, dtype=_INT64)


@_stands_for(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> NDArray:
    x, y = joining.promoted([as_ndarray(a), as_ndarray(b)])
    if not x._shape or not y._shape:
        return deliver(arithmetic.multiply(x, y), out)
    if len(y._shape) > 2:
        raise MXNetError(f"np.dot of NDArrays: the second has at most two axes, not shape {y._shape}; use np.matmul")
    return deliver(linalg.dot(x, y, ta=0, tb=0), out)


@_stands_for(np.einsum)
def _einsum(subscripts: str, /, *operands: Any) -> NDArray:
    result = einsum(subscripts, *[as_ndarray(x) for x in operands])
    free = subscripts.replace(" ", "").partition("->")[2]
    return reshape(result, shape=()) if "->" in subscripts and not free else result


@_stands_for(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> NDArray:
    x, y = as_ndarray(a), as_ndarray(b)
    return deliver(arithmetic.multiply(reshape(x, shape=(x._flat.size, 1)), reshape(y, shape=(1, y._flat.size))), out)


@_stands_for(np.linalg.inv)
def _inv(a: Any) -> NDArray:
    return nd_linalg.inverse(a)


@_stands_for(np.linalg.det)
def _det(a: Any) -> NDArray:
    return reshape(nd_linalg.det(a), shape=a.shape[:-2])


@_stands_for(np.diag)
def _diag(v: Any, k: int = 0) -> NDArray:
    return selection.diag(v, k)


@_stands_for(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> NDArray:
    x, scale = as_ndarray(a), 10.0**decimals
    result = (
        arithmetic.divide(arithmetic.rint(arithmetic.multiply(x, scale)), scale) if decimals else arithmetic.rint(x)
    )
    return deliver(result, out)


# -------------------------------------------------------------------------------------------------- new arrays


@_stands_for(np.copy)
def _copy(a: Any, order: str = "K") -> NDArray:
    return identity(a)


def _filled(function: Callable[..., Any], value: float) -> None:
    @_stands_for(function)
    def filled(a: Any, dtype: Any = None) -> NDArray:
        return creation.full_like(a if dtype is None else a.astype(dtype), value)


_filled(np.zeros_like, 0)
_filled(np.ones_like, 1)


@_stands_for(np.full_like)
def _full_like(a: Any, fill_value: float, dtype: Any = None) -> NDArray:
    return creation.full_like(a if dtype is None else a.astype(dtype), fill_value)
