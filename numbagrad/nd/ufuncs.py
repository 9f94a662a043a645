"""NumPy's universal functions of NDArrays: ``np.exp(x)``, ``np.add(a, x)`` and ``a + x`` of a NumPy array `a`.

They are our ops, so they are recorded and captured. Comparisons and tests give bool, as NumPy's do. What has no
counterpart is NumPy's to compute, on copies; not while recording.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.containers import flatten, rebuild
from numbagrad.dispatch import run_elementwise
from numbagrad.errors import MXNetError
from numbagrad.nd.creation import array
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.products import matmul
from numbagrad.nd.refusal import renamed
from numbagrad.ops import arithmetic as a
from numbagrad.ops import piecewise
from numbagrad.ops.casting import cast
from numbagrad.ops.registry import Elementwise
from numbagrad.ops.shaping import identity
from numbagrad.tape import state

_BOOL = np.dtype(bool)

_VALUES: dict[str, Elementwise] = {
    name: getattr(a, name)
    for name in (
        "add subtract multiply divide floor_divide power negative absolute sign maximum minimum hypot square "
        "reciprocal exp expm1 exp2 log log1p log2 log10 sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
        "arcsinh arccosh arctanh degrees radians floor ceil trunc rint"
    ).split()
} | {"remainder": a.mod, "fabs": a.absolute, "rad2deg": a.degrees, "deg2rad": a.radians}

_TESTS: dict[str, Elementwise] = {
    "equal": a.equal,
    "not_equal": a.not_equal,
    "less": a.lesser,
    "less_equal": a.lesser_equal,
    "greater": a.greater,
    "greater_equal": a.greater_equal,
    "logical_and": a.logical_and,
    "logical_or": a.logical_or,
    "logical_xor": a.logical_xor,
    "logical_not": a.logical_not,
    "isnan": piecewise.isnan,
    "isinf": piecewise.isinf,
    "isfinite": piecewise.isfinite,
}


def as_ndarray(value: Any) -> Any:
    """An NDArray itself; a NumPy array, number or sequence as a constant of its dtype."""
    if isinstance(value, NDArray):
        return value
    values = value if isinstance(value, np.ndarray) else np.asarray(value)
    return array(values, dtype=values.dtype)


def by_numpy(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What NumPy computes from copies of the NDArrays, which it cannot write to.

    Raises
    ------
    TypeError
        While recording: the gradient would be lost.
    """
    if state.recording:
        raise TypeError(
            f"{name} has no counterpart in numbagrad and cannot be recorded; compute it from x.asnumpy() where no "
            "gradient is wanted"
        )
    leaves: list[Any] = []
    structure = flatten((tuple(args), kwargs), leaves)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, NDArray):
            leaves[i] = leaf.asnumpy()
            leaves[i].flags.writeable = False
    args, kwargs = rebuild(structure, iter(leaves))
    return function(*args, **kwargs)


def _array_ufunc(
    self: NDArray, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, where: Any = True, **kwargs: Any
) -> Any:
    """Run our op of the name of `ufunc`."""
    name = f"np.{ufunc.__name__}"
    if out is not None:
        if len(out) != 1 or not isinstance(out[0], NDArray):
            raise TypeError(f"{name}: out= must be an NDArray where one takes part")
        out = out[0]
    if method == "at":
        raise TypeError(f"{name}.at writes in place, which an NDArray does not take; use x[...] = or nd.scatter_nd")
    for value in inputs:
        if not isinstance(value, (NDArray, np.ndarray, int, float, np.generic, list, tuple)):
            if hasattr(value, "__array_ufunc__"):
                return NotImplemented
            raise TypeError(f"{name}: takes arrays and numbers, not {type(value).__name__}")
    test = _TESTS.get(ufunc.__name__)
    op = _VALUES.get(ufunc.__name__) if test is None else test
    known = op is not None or ufunc in (np.matmul, np.positive)
    if method != "__call__" or not known:
        if out is not None:
            raise TypeError(f"{name}: out= takes no NDArray here: numbagrad has no {name}")
        if method != "__call__":
            name, function = f"{name}.{method}", getattr(ufunc, method)
        else:
            function = ufunc
        return by_numpy(name, function, inputs, kwargs if where is True else {**kwargs, "where": where})
    if where is not True:
        raise TypeError(f"{name}: where= is not supported; use np.where(condition, {name}(...), x)")
    if kwargs:
        raise TypeError(f"{name}: {', '.join(kwargs)} is not supported; use astype for another dtype")
    try:
        if ufunc is np.matmul:
            result = matmul(as_ndarray(inputs[0]), as_ndarray(inputs[1]))
        else:
            operands = tuple(x if isinstance(x, (int, float, np.generic)) else as_ndarray(x) for x in inputs)
            result = identity(operands[0]) if op is None else run_elementwise(op, operands)
            if test is not None:
                result = cast(result, dtype=_BOOL)
        return deliver(result, out)
    except (MXNetError, TypeError) as error:
        raise type(error)(renamed(name, str(error))) from None


METHODS: dict[str, Any] = {"__array_ufunc__": _array_ufunc}
