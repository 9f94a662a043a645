"""``nd.contrib``: MXNet's functions that were called experimental."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad.context import Context
from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.creation import arange, hosted
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.selection import boolean_mask
from numbagrad.nd.shape import concat, stack
from numbagrad.ops import arithmetic, indexing, piecewise, reduction, shaping
from numbagrad.ops.casting import cast
from numbagrad.ops.shaping import normal_axis

_BOOL = np.dtype(bool)

# ------------------------------------------------------------------------------------------- kinds of numbers


def isnan(data: NDArray) -> NDArray:
    """1 where an element is NaN, else 0, in the dtype of `data`."""
    expect_array("isnan", data)
    return piecewise.isnan(data)


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, else 0, in the dtype of `data`."""
    expect_array("isinf", data)
    return piecewise.isinf(data)


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is neither infinite nor NaN, else 0, in the dtype of `data`."""
    expect_array("isfinite", data)
    return piecewise.isfinite(data)


def allclose(
    a: NDArray,
    b: NDArray,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = True,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """1 if ``|a - b| <= atol + rtol |b|`` everywhere, else 0; an array of no axis.

    Infinities are close to themselves, and NaN to NaN with `equal_nan`.
    """
    expect_array("allclose", a, b)
    close = arithmetic.lesser_equal(
        arithmetic.absolute(arithmetic.subtract(a, b)),
        arithmetic.add(arithmetic.multiply(arithmetic.absolute(b), float(rtol)), float(atol)),
    )
    close = arithmetic.logical_and(close, piecewise.isfinite(b))
    same = arithmetic.logical_or(close, arithmetic.equal(a, b))
    if equal_nan:
        same = arithmetic.logical_or(same, arithmetic.logical_and(piecewise.isnan(a), piecewise.isnan(b)))
    if not same._flat.size:
        same = hosted(np.ones(1, same._flat.dtype), (1,))
    return deliver(reduction.min_(same, axes=tuple(range(len(same._shape))), keepdims=False), out)


# --------------------------------------------------------------------------------------------------- positions


def arange_like(
    data: NDArray,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Context | None = None,
    axis: int | None = None,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """Numbers from `start` in steps, each `repeat` times, as many as `data` has elements, or along one axis of it.

    Returns
    -------
    NDArray
        Of the shape of `data`, or of one axis where `axis` is given; in the dtype of `data`.
    """
    expect_array("arange_like", data)
    shape = data._shape if axis is None else (data._shape[normal_axis("arange_like", axis, len(data._shape))],)
    count = math.prod(shape)
    if repeat < 1:
        raise MXNetError(f"arange_like: repeat must be at least 1, not {repeat}")
    groups = -(-count // repeat)
    numbers = arange(start, start + step * groups, step, repeat, ctx=ctx, dtype=data._flat.dtype)
    return deliver(numbers[:count].reshape(shape) if count else NDArray(numbers._flat, shape), out)


def index_array(data: NDArray, axes: Sequence[int] | None = None, out: Any = None, name: str | None = None) -> NDArray:
    """The index of each element of `data` along all axes, or along `axes`, on a new last axis; int64."""
    expect_array("index_array", data)
    ndim = len(data._shape)
    wanted = range(ndim) if axes is None else [normal_axis("index_array", k, ndim) for k in axes]
    grid = np.indices(data._shape)
    numbers = np.stack([grid[k] for k in wanted], axis=-1)
    return deliver(hosted(numbers.reshape(-1), numbers.shape), out)


def index_copy(
    old_tensor: NDArray, index_vector: NDArray, new_tensor: NDArray, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of `old_tensor` with the rows of `new_tensor` at the rows that `index_vector` names.

    Of several rows for one place the last one stays, and it alone has a gradient.

    Raises
    ------
    MXNetError
        If the shapes do not fit.
    IndexError
        For an index out of range.
    """
    expect_array("index_copy", old_tensor, index_vector, new_tensor)
    shape = old_tensor._shape
    if len(index_vector._shape) != 1 or not shape or new_tensor._shape != (*index_vector._shape, *shape[1:]):
        raise MXNetError(
            f"index_copy: rows of shape {new_tensor._shape} at an index of shape {index_vector._shape} do not fit "
            f"an array of shape {shape}"
        )
    index = indexing.positions(index_vector, lengths=shape[:1], strides=(1,))
    ones = NDArray(np.ones(index._flat.size, _BOOL), index._shape)
    written = indexing.put(ones, index, shape=shape[:1], span=1)
    rows = indexing.put(cast(new_tensor, dtype=old_tensor._flat.dtype), index, shape=shape, span=1)
    written = shaping.reshape(written, shape=shape[:1] + (1,) * (len(shape) - 1))
    return deliver(arithmetic.where(written, rows, old_tensor), out)


# ------------------------------------------------------------------------------------------------- elementwise


def div_sqrt_dim(data: NDArray, out: Any = None, name: str | None = None) -> NDArray:
    """`data` over the square root of the length of its last axis."""
    expect_array("div_sqrt_dim", data)
    if not data._shape:
        raise MXNetError("div_sqrt_dim: takes an array of at least one axis")
    return deliver(arithmetic.divide(data, math.sqrt(data._shape[-1])), out)


def gradientmultiplier(
    data: NDArray, scalar: float = 1.0, is_int: bool = True, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of `data` whose gradient is multiplied by `scalar`; a negative one reverses it."""
    expect_array("gradientmultiplier", data)
    return deliver(shaping.scale_gradient(data, factor=float(scalar)), out)


def quadratic(
    data: NDArray, a: float = 0.0, b: float = 0.0, c: float = 0.0, out: Any = None, name: str | None = None
) -> NDArray:
    """``a x**2 + b x + c``."""
    expect_array("quadratic", data)
    inner = arithmetic.add(arithmetic.multiply(data, float(a)), float(b))
    return deliver(arithmetic.add(arithmetic.multiply(inner, data), float(c)), out)


# ------------------------------------------------------------------------------------------------ control flow


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _stacked(name: str, outputs: list[Any]) -> Any:
    """The outputs of all steps, nested alike, stacked step by step along a new first axis."""
    first = outputs[0]
    if isinstance(first, (list, tuple)):
        for each in outputs:
            if not isinstance(each, (list, tuple)) or len(each) != len(first):
                raise MXNetError(f"{name}: the steps return different numbers of outputs")
        return [_stacked(name, [each[i] for each in outputs]) for i in range(len(first))]
    return stack(*outputs, axis=0)


def _expect_callable(name: str, *functions: Any) -> None:
    for function in functions:
        if not callable(function):
            raise TypeError(f"{name}: takes functions, not {type(function).__name__}")


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Call `body` for each slice of `data` along axis 0, handing on states.

    Parameters
    ----------
    body : callable
        ``body(slice, states)`` returns ``(outputs, states)``; a list of arrays where `data` or the states are lists.
    data : NDArray or list of NDArray
        Of one length along axis 0, at least 1.
    init_states : NDArray or list of NDArray

    Returns
    -------
    (outputs, states)
        The outputs of all calls stacked along axis 0, and the last states.

    Raises
    ------
    MXNetError
        If the lengths differ or are 0.
    """
    _expect_callable("foreach", body)
    arrays = _listed(data)
    expect_array("foreach", *arrays)
    lengths = {array._shape[0] if array._shape else 0 for array in arrays}
    if len(lengths) != 1 or lengths == {0}:
        raise MXNetError(f"foreach: takes arrays of one length, at least 1, not {[array._shape for array in arrays]}")
    states = init_states
    outputs = []
    for i in range(lengths.pop()):
        output, states = body([array[i] for array in arrays] if isinstance(data, (list, tuple)) else data[i], states)
        outputs.append(output)
    return _stacked("foreach", outputs), states


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """Call `func` while `cond` holds.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)`` is true for another step; its value is read.
    func : callable
        ``func(*loop_vars)`` returns ``(step output, new loop_vars)``.
    loop_vars : NDArray or list of NDArray
    max_iterations : int
        The most steps.

    Returns
    -------
    (outputs, loop_vars)
        The step outputs stacked along axis 0, which has length `max_iterations`, with zeros beyond the last step; an
        empty list after no step.

    Raises
    ------
    ValueError
        Without `max_iterations`.
    """
    _expect_callable("while_loop", cond, func)
    if max_iterations is None:
        raise ValueError("while_loop: max_iterations must be given")
    single = not isinstance(loop_vars, (list, tuple))
    variables = _listed(loop_vars)
    outputs: list[Any] = []
    while len(outputs) < int(max_iterations) and bool(cond(*variables)):
        output, new = func(*variables)
        new = _listed(new)
        if len(new) != len(variables):
            raise MXNetError(f"while_loop: func returns {len(new)} loop_vars, there are {len(variables)}")
        variables = new
        outputs.append([] if output is None else output)
    if not outputs:
        return [], loop_vars
    missing = int(max_iterations) - len(outputs)

    def whole(stacked: Any) -> Any:
        if isinstance(stacked, list):
            return [whole(each) for each in stacked]
        if not missing:
            return stacked
        shape = (missing, *stacked._shape[1:])
        rest = NDArray(np.zeros(math.prod(shape), stacked._flat.dtype), shape)
        return concat(stacked, rest, dim=0)

    return whole(_stacked("while_loop", outputs)), variables[0] if single else variables


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """``then_func()`` if `pred`, an array of one element, is not 0, else ``else_func()``; `pred` is read."""
    _expect_callable("cond", then_func, else_func)
    return then_func() if bool(pred) else else_func()


LOOPS = ("cond", "foreach", "while_loop")
"""What runs functions of its caller, whose errors are not ours to word."""


__all__ = [
    "allclose",
    "arange_like",
    "boolean_mask",
    "cond",
    "div_sqrt_dim",
    "foreach",
    "gradientmultiplier",
    "index_array",
    "index_copy",
    "isfinite",
    "isinf",
    "isnan",
    "quadratic",
    "while_loop",
]
