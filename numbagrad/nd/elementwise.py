"""Elementwise functions under MXNet's names."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.dispatch import run_binary, run_elementwise, run_unary
from numbagrad.errors import MXNetError
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.refusal import CAUGHT, worded
from numbagrad.ops import arithmetic as a
from numbagrad.ops import piecewise, shaping
from numbagrad.ops.casting import cast as cast_op
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.joining import add_n as add_all
from numbagrad.ops.registry import Elementwise

_NUMBERS = (int, float, np.generic)
Function = Callable[..., Any]

# --------------------------------------------------------------------------------------------------------- unary

_UNARY: dict[str, tuple[Elementwise, str]] = {
    "abs": (a.absolute, "The magnitude of each element; derivative 0 at 0"),
    "negative": (a.negative, "Each element with the other sign"),
    "sign": (a.sign, "-1, 0 or 1"),
    "square": (a.square, "The square"),
    "reciprocal": (a.reciprocal, "1 / x"),
    "floor": (a.floor, "The integer at or below"),
    "ceil": (a.ceil, "The integer at or above"),
    "trunc": (a.trunc, "The integer part"),
    "fix": (a.trunc, "The integer part"),
    "rint": (a.rint, "The nearest integer, the even one of two"),
    "round": (a.round_, "The nearest integer, away from zero of two"),
    "exp": (a.exp, "e to the power x"),
    "expm1": (a.expm1, "exp(x) - 1, exact near 0"),
    "log": (a.log, "The natural logarithm"),
    "log1p": (a.log1p, "log(1 + x), exact near 0"),
    "log2": (a.log2, "The logarithm to base 2"),
    "log10": (a.log10, "The logarithm to base 10"),
    "sqrt": (a.sqrt, "The square root"),
    "rsqrt": (a.rsqrt, "1 / sqrt(x)"),
    "cbrt": (a.cbrt, "The cube root"),
    "rcbrt": (a.rcbrt, "1 / cbrt(x)"),
    "sin": (a.sin, "The sine of x in radians"),
    "cos": (a.cos, "The cosine of x in radians"),
    "tan": (a.tan, "The tangent of x in radians"),
    "arcsin": (a.arcsin, "The inverse sine"),
    "arccos": (a.arccos, "The inverse cosine"),
    "arctan": (a.arctan, "The inverse tangent"),
    "sinh": (a.sinh, "The hyperbolic sine"),
    "cosh": (a.cosh, "The hyperbolic cosine"),
    "tanh": (a.tanh, "The hyperbolic tangent"),
    "arcsinh": (a.arcsinh, "The inverse hyperbolic sine"),
    "arccosh": (a.arccosh, "The inverse hyperbolic cosine"),
    "arctanh": (a.arctanh, "The inverse hyperbolic tangent"),
    "degrees": (a.degrees, "Radians as degrees"),
    "radians": (a.radians, "Degrees as radians"),
    "erf": (a.erf, "The error function"),
    "erfc": (a.erfc, "1 - erf(x), exact for large x"),
    "erfinv": (a.erfinv, "The inverse of the error function"),
    "gamma": (a.gamma, "The gamma function"),
    "gammaln": (a.gammaln, "The logarithm of the magnitude of the gamma function"),
    "digamma": (a.digamma, "The derivative of gammaln"),
    "relu": (a.relu, "max(x, 0); derivative 0 at 0"),
    "sigmoid": (a.sigmoid, "1 / (1 + exp(-x))"),
    "softsign": (a.softsign, "x / (1 + |x|)"),
    "softrelu": (a.softplus, "log(1 + exp(x))"),
    "logical_not": (a.logical_not, "1 where an element is 0, else 0"),
    "isnan": (piecewise.isnan, "1 where an element is NaN, else 0"),
    "isinf": (piecewise.isinf, "1 where an element is infinite, else 0"),
    "isfinite": (piecewise.isfinite, "1 where an element is neither infinite nor NaN, else 0"),
}


def _unary(function_name: str, op: Elementwise, summary: str) -> Function:
    def function(data: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
        try:
            result = run_unary(op, data)
            return result if out is None else deliver(result, out)
        except CAUGHT as error:
            raise worded(error, function_name, function, data, out) from None

    kind = "float; of an int array float32" if op.result == "float" else "the dtype of `data`"
    function.__name__ = function.__qualname__ = function_name
    function.__doc__ = f"""{summary}, elementwise.

    Parameters
    ----------
    data : NDArray
    out : NDArray, optional
        Where to write the result.
    name : str, optional
        Accepted for MXNet's sake.

    Returns
    -------
    NDArray
        Of the shape of `data` ({kind}).
    """
    return function


UNARY: dict[str, Function] = {name: _unary(name, op, text) for name, (op, text) in _UNARY.items()}

# -------------------------------------------------------------------------------------------------------- binary


def _truth(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], int]:
    return lambda x, y: int(bool(compare(x, y)))


_BINARY: dict[str, tuple[Elementwise, Callable[[Any, Any], Any], str]] = {
    "add": (a.add, operator.add, "lhs + rhs"),
    "subtract": (a.subtract, operator.sub, "lhs - rhs"),
    "multiply": (a.multiply, operator.mul, "lhs * rhs"),
    "divide": (a.divide, operator.truediv, "lhs / rhs; ints give float32"),
    "floor_divide": (a.floor_divide, operator.floordiv, "The floor of lhs / rhs"),
    "modulo": (a.mod, operator.mod, "The remainder of lhs / rhs, with the sign of rhs"),
    "power": (a.power, operator.pow, "lhs to the power rhs; derivative 0 at 0**0"),
    "maximum": (a.maximum, max, "The greater of lhs and rhs; on a tie the gradient goes to lhs"),
    "minimum": (a.minimum, min, "The lesser of lhs and rhs; on a tie the gradient goes to lhs"),
    "hypot": (a.hypot, math.hypot, "sqrt(lhs**2 + rhs**2)"),
    "equal": (a.equal, _truth(operator.eq), "1 where lhs == rhs, else 0"),
    "not_equal": (a.not_equal, _truth(operator.ne), "1 where lhs != rhs, else 0"),
    "greater": (a.greater, _truth(operator.gt), "1 where lhs > rhs, else 0"),
    "greater_equal": (a.greater_equal, _truth(operator.ge), "1 where lhs >= rhs, else 0"),
    "lesser": (a.lesser, _truth(operator.lt), "1 where lhs < rhs, else 0"),
    "lesser_equal": (a.lesser_equal, _truth(operator.le), "1 where lhs <= rhs, else 0"),
    "logical_and": (a.logical_and, _truth(lambda x, y: x and y), "1 where both are not 0, else 0"),
    "logical_or": (a.logical_or, _truth(lambda x, y: x or y), "1 where either is not 0, else 0"),
    "logical_xor": (a.logical_xor, _truth(lambda x, y: bool(x) != bool(y)), "1 where one is 0 and one is not, else 0"),
}


def _binary(function_name: str, op: Elementwise, of_numbers: Callable[[Any, Any], Any], summary: str) -> Function:
    def function(lhs: Any, rhs: Any, out: NDArray | None = None, name: str | None = None) -> Any:
        if type(lhs) is NDArray or type(rhs) is NDArray:
            try:
                if op is a.power and isinstance(rhs, _NUMBERS) and rhs == 2:
                    result = run_unary(a.square, lhs)
                else:
                    result = run_binary(op, lhs, rhs)
                return result if out is None else deliver(result, out)
            except CAUGHT as error:
                raise worded(error, function_name, function, lhs, rhs, out) from None
        if isinstance(lhs, _NUMBERS) and isinstance(rhs, _NUMBERS):
            return of_numbers(lhs, rhs)
        raise TypeError(f"{function_name}: takes arrays and numbers, not {type(lhs).__name__} and {type(rhs).__name__}")

    function.__name__ = function.__qualname__ = function_name
    function.__doc__ = f"""{summary}, elementwise.

    Parameters
    ----------
    lhs, rhs : NDArray or number
        Arrays broadcast by NumPy's rules; dtypes mix by category, numbers never widen.
    out : NDArray, optional
        Where to write the result.
    name : str, optional
        Accepted for MXNet's sake.

    Returns
    -------
    NDArray or number
        A number where both are numbers.

    Raises
    ------
    MXNetError
        Where the shapes do not broadcast.
    """
    return function


BINARY: dict[str, Function] = {name: _binary(name, *row) for name, row in _BINARY.items()}
BINARY["true_divide"] = BINARY["divide"]
BINARY["mod"] = BINARY["modulo"]

# -------------------------------------------------------------------------------- broadcast_* and elemwise_*

_BROADCAST = {
    "add": "add",
    "plus": "add",
    "sub": "subtract",
    "minus": "subtract",
    "mul": "multiply",
    "div": "divide",
    "mod": "modulo",
    "power": "power",
    "maximum": "maximum",
    "minimum": "minimum",
    "hypot": "hypot",
    **{
        name: name
        for name in "equal not_equal greater greater_equal lesser lesser_equal "
        "logical_and logical_or logical_xor".split()
    },
}


def _of_arrays(function_name: str, base: str, same_shape: bool) -> Function:
    op = _BINARY[base][0]

    def function(lhs: NDArray, rhs: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
        if type(lhs) is not NDArray or type(rhs) is not NDArray:
            raise TypeError(f"{function_name}: takes two NDArrays, not {type(lhs).__name__} and {type(rhs).__name__}")
        if same_shape and lhs._shape != rhs._shape:
            raise MXNetError(f"{function_name}: shapes {lhs._shape} and {rhs._shape} differ")
        try:
            result = run_binary(op, lhs, rhs)
            return result if out is None else deliver(result, out)
        except CAUGHT as error:
            raise worded(error, function_name, function, lhs, rhs, out) from None

    function.__name__ = function.__qualname__ = function_name
    rule = "of one shape" if same_shape else "that broadcast by NumPy's rules"
    function.__doc__ = f"{_BINARY[base][2]}, elementwise, of two arrays {rule}; MXNetError where they are not."
    return function


ARRAYS: dict[str, Function] = {
    **{f"broadcast_{short}": _of_arrays(f"broadcast_{short}", base, False) for short, base in _BROADCAST.items()},
    **{
        f"elemwise_{short}": _of_arrays(f"elemwise_{short}", _BROADCAST[short], True)
        for short in ("add", "sub", "mul", "div")
    },
}

HOT: dict[str, Function] = {**UNARY, **BINARY, **ARRAYS}
"""The functions that word their refusals themselves, and need no door."""

# -------------------------------------------------------------------------------------------- with parameters


def clip(data: NDArray, a_min: float, a_max: float, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """`data` limited to [a_min, a_max]; the derivative is 1 inside and at both bounds, 0 outside."""
    return deliver(run_elementwise(a.clip, (data, a_min, a_max)), out)


def hard_sigmoid(
    data: NDArray, alpha: float = 0.2, beta: float = 0.5, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """``alpha x + beta`` limited to [0, 1]; the derivative is 0 at the joints."""
    return deliver(run_elementwise(piecewise.hard_sigmoid, (data, float(alpha), float(beta))), out)


def smooth_l1(data: NDArray, scalar: float = 1.0, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """``(scalar x)**2 / 2`` where ``|x| < 1 / scalar**2``, else ``|x| - 1 / (2 scalar**2)``."""
    return deliver(run_elementwise(piecewise.smooth_l1, (data, float(scalar))), out)


def cast(data: NDArray, dtype: Any, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """`data` in another dtype, as a copy; floats to ints truncate towards zero."""
    target = as_dtype(dtype)
    same = data._flat.dtype == target
    return deliver(shaping.identity(data) if same else cast_op(data, dtype=target), out)


def identity(data: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """A copy."""
    return deliver(shaping.identity(data), out)


def stop_gradient(data: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """A copy through which no gradient flows."""
    return deliver(shaping.stop_gradient(data), out)


def make_loss(data: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """A copy that starts the gradient anew: ones go back from it, whatever comes to it."""
    return deliver(shaping.make_loss(data), out)


def add_n(*args: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The sum of arrays of one shape."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    for arg in args:
        if type(arg) is not NDArray:
            raise TypeError(f"add_n: takes NDArrays, not {type(arg).__name__}")
    return deliver(add_all(args), out)


FUNCTIONS: dict[str, Function] = {
    **HOT,
    "clip": clip,
    "hard_sigmoid": hard_sigmoid,
    "smooth_l1": smooth_l1,
    "cast": cast,
    "Cast": cast,
    "identity": identity,
    "stop_gradient": stop_gradient,
    "BlockGrad": stop_gradient,
    "make_loss": make_loss,
    "add_n": add_n,
    "ElementWiseSum": add_n,
    "elementwise_sum": add_n,
}
