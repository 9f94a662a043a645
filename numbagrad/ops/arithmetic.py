"""Elementwise arithmetic, comparison, rounding, exponentials, trigonometry."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.native import scalar as s
from numbagrad.native.expr import node
from numbagrad.ops import special
from numbagrad.ops.registry import Elementwise, elementwise

_POSITIVE = (0.2, 3.0)


def _unary(name: str, numpy: Callable[..., Any], domain: Any = (-2.0, 2.0), **more: Any) -> Elementwise:
    return elementwise(name, lambda x: node(name, x), 1, numpy=numpy, domain=domain, **more)


def _float(name: str, numpy: Callable[..., Any], domain: Any = (-2.0, 2.0)) -> Elementwise:
    return _unary(name, numpy, domain, result="float")


# ------------------------------------------------------------------------------------------------ arithmetic

add = elementwise("add", lambda a, b: a + b, 2, numpy=np.add)
subtract = elementwise("subtract", lambda a, b: a - b, 2, numpy=np.subtract)
multiply = elementwise("multiply", lambda a, b: a * b, 2, numpy=np.multiply)
divide = elementwise("divide", lambda a, b: a / b, 2, numpy=np.divide, domain=((-2, 2), _POSITIVE), result="float")
floor_divide = elementwise(
    "floor_divide", lambda a, b: a // b, 2, numpy=np.floor_divide, domain=((0.1, 0.9), (1.1, 1.9)), differentiable=False
)
mod = elementwise("mod", lambda a, b: a % b, 2, numpy=np.mod, domain=((1.3, 1.9), (0.7, 1.2)))
power = elementwise("power", lambda a, b: a**b, 2, numpy=np.power, domain=(_POSITIVE, (-2, 2)))
negative = _unary("neg", np.negative)
absolute = _unary("abs", np.abs, (0.2, 2.0))
sign = _unary("sign", np.sign, differentiable=False)
square = elementwise("square", lambda x: x * x, 1, numpy=np.square)
reciprocal = elementwise("reciprocal", lambda x: 1 / x, 1, numpy=np.reciprocal, domain=_POSITIVE, result="float")
maximum = elementwise("maximum", s.maximum, 2, numpy=np.maximum, domain=((-2, 0), (0.5, 2)))
minimum = elementwise("minimum", s.minimum, 2, numpy=np.minimum, domain=((-2, 0), (0.5, 2)))
multiply_zero = elementwise("mul0", lambda g, k: s.mul0(g, k), 2, numpy=np.multiply, domain=(_POSITIVE, _POSITIVE))
where = elementwise(
    "where",
    lambda c, a, b: s.where(c, a, b),
    3,
    numpy=lambda c, a, b: np.where(c != 0, a, b),
    domain=((0.5, 1), (-2, 2), (-2, 2)),
)
clip = elementwise(
    "clip",
    lambda x, low, high: s.where(x < low, low, s.where(x > high, high, x)),
    3,
    numpy=np.clip,
    domain=((-2, 2), (-1.0, -0.9), (0.9, 1.0)),
)
hypot = elementwise(
    "hypot",
    lambda a, b: s.sqrt(a * a + b * b),
    2,
    numpy=np.hypot,
    domain=(_POSITIVE, _POSITIVE),
    result="float",
    vjp=lambda g, y, a, b: (s.where(y == 0, 0, s.mul0(g, a / y)), s.where(y == 0, 0, s.mul0(g, b / y))),
)

# ------------------------------------------------------------------------------------- comparison and logic

_COMPARISONS = {
    "equal": ("eq", np.equal),
    "not_equal": ("ne", np.not_equal),
    "lesser": ("lt", np.less),
    "lesser_equal": ("le", np.less_equal),
    "greater": ("gt", np.greater),
    "greater_equal": ("ge", np.greater_equal),
    "logical_and": ("logical_and", np.logical_and),
    "logical_or": ("logical_or", np.logical_or),
}


def _comparison(name: str) -> Elementwise:
    symbol, numpy = _COMPARISONS[name]
    return elementwise(
        name,
        lambda a, b: node(symbol, a, b),
        2,
        numpy=lambda a, b: numpy(a, b).astype(np.result_type(a, b)),
        differentiable=False,
    )


equal = _comparison("equal")
not_equal = _comparison("not_equal")
lesser = _comparison("lesser")
lesser_equal = _comparison("lesser_equal")
greater = _comparison("greater")
greater_equal = _comparison("greater_equal")
logical_and = _comparison("logical_and")
logical_or = _comparison("logical_or")
logical_xor = elementwise(
    "logical_xor",
    lambda a, b: node("ne", a != 0, b != 0),
    2,
    numpy=lambda a, b: np.logical_xor(a, b).astype(np.result_type(a, b)),
    differentiable=False,
)
logical_not = _unary("logical_not", lambda x: np.logical_not(x).astype(x.dtype), differentiable=False)

# -------------------------------------------------------------------------------------------------- rounding

floor = _unary("floor", np.floor, differentiable=False)
ceil = _unary("ceil", np.ceil, differentiable=False)
trunc = _unary("trunc", np.trunc, differentiable=False)
rint = _unary("rint", np.rint, differentiable=False)
round_ = _unary("round", lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), differentiable=False)

# ------------------------------------------------------------------------- exponentials, powers, logarithms

exp = _float("exp", np.exp)
expm1 = _float("expm1", np.expm1)
exp2 = _float("exp2", np.exp2)
log = _float("log", np.log, _POSITIVE)
log1p = _float("log1p", np.log1p, (-0.7, 2.0))
log2 = _float("log2", np.log2, _POSITIVE)
log10 = _float("log10", np.log10, _POSITIVE)
sqrt = _float("sqrt", np.sqrt, _POSITIVE)
rsqrt = _float("rsqrt", lambda x: 1 / np.sqrt(x), _POSITIVE)
cbrt = _float("cbrt", np.cbrt, _POSITIVE)
rcbrt = _float("rcbrt", lambda x: 1 / np.cbrt(x), _POSITIVE)

# --------------------------------------------------------------------------------------------- trigonometry

sin = _float("sin", np.sin)
cos = _float("cos", np.cos)
tan = _float("tan", np.tan, (-1.2, 1.2))
arcsin = _float("arcsin", np.arcsin, (-0.8, 0.8))
arccos = _float("arccos", np.arccos, (-0.8, 0.8))
arctan = _float("arctan", np.arctan)
sinh = _float("sinh", np.sinh)
cosh = _float("cosh", np.cosh)
tanh = _float("tanh", np.tanh)
arcsinh = _float("arcsinh", np.arcsinh)
arccosh = _float("arccosh", np.arccosh, (1.3, 3.0))
arctanh = _float("arctanh", np.arctanh, (-0.8, 0.8))
degrees = elementwise("degrees", lambda x: x * (180 / math.pi), 1, numpy=np.degrees, result="float")
radians = elementwise("radians", lambda x: x * (math.pi / 180), 1, numpy=np.radians, result="float")

# ---------------------------------------------------------------------------------------- special functions

erf = _float("erf", special.erf)
erfc = _float("erfc", special.erfc)
erfinv = _float("erfinv", special.erfinv, (-0.8, 0.8))
gamma = _float("gamma", special.gamma, (0.6, 3.0))
gammaln = _float("gammaln", special.gammaln, (0.6, 3.0))
digamma = _float("digamma", special.digamma, (0.6, 3.0))
trigamma = _float("trigamma", lambda x: special.polygamma(1, x), (0.6, 3.0))
polygamma = elementwise(
    "polygamma",
    lambda n, x: node("polygamma", n, x),
    2,
    numpy=lambda n, x: special.polygamma(np.rint(n), x),
    domain=((2.0, 2.0), (0.6, 3.0)),
    result="float",
)

# ---------------------------------------------------------------------------------------------- activations

relu = elementwise(
    "relu",
    lambda x: s.where(x <= 0, 0, x),
    1,
    vjp=lambda g, y, x: [s.where(x <= 0, 0, s.where(x > 0, g, x))],  # NaN where x is NaN, as in dense
    numpy=lambda x: np.maximum(x, 0),
    domain=(0.1, 2.0),
)
sigmoid = _float("sigmoid", special.expit)
softplus = _float("softplus", lambda x: np.logaddexp(x, 0))
softsign = elementwise(
    "softsign", lambda x: x / (1 + abs(x)), 1, numpy=lambda x: x / (1 + np.abs(x)), domain=(0.1, 2.0), result="float"
)

SCALAR_OPERATIONS: dict[str, Elementwise] = {
    "neg": negative,
    "abs": absolute,
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "mul0": multiply_zero,
    "div": divide,
    "floordiv": floor_divide,
    "mod": mod,
    "pow": power,
    "where": where,
    "lt": lesser,
    "le": lesser_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_not": logical_not,
    "sign": sign,
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "rint": rint,
    "round": round_,
    "exp": exp,
    "expm1": expm1,
    "exp2": exp2,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "cbrt": cbrt,
    "rcbrt": rcbrt,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "arcsin": arcsin,
    "arccos": arccos,
    "arctan": arctan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "arcsinh": arcsinh,
    "arccosh": arccosh,
    "arctanh": arctanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "erf": erf,
    "erfc": erfc,
    "erfinv": erfinv,
    "gamma": gamma,
    "gammaln": gammaln,
    "digamma": digamma,
    "trigamma": trigamma,
    "polygamma": polygamma,
}
"""The op that computes each operation of an expression graph, for derivatives that are themselves recorded."""
