"""Scalar functions for kernels: ``<name>_float32``, ``<name>_float64`` and the dtype-generic ``<name>``."""

from numbagrad.native.vmath import (
    arcs,
    errors,
    exponential,
    gammas,
    hyperbolic,
    logarithm,
    power,
    roots,
    rounding,
    sigmoidal,
    trigonometric,
)
from numbagrad.native.vmath.doors import door

_FAMILIES = (
    (exponential, "exp expm1 exp2", 1),
    (logarithm, "log log1p log2 log10", 1),
    (sigmoidal, "tanh sigmoid softplus", 1),
    (errors, "erf erfc erfinv", 1),
    (trigonometric, "sin cos tan", 1),
    (arcs, "arcsin arccos arctan", 1),
    (arcs, "arctan2", 2),
    (hyperbolic, "sinh cosh arcsinh arccosh arctanh", 1),
    (power, "pow", 2),
    (roots, "sqrt rsqrt cbrt rcbrt", 1),
    (roots, "hypot", 2),
    (gammas, "gamma gammaln digamma trigamma", 1),
    (rounding, "floor ceil trunc rint round sign", 1),
    (rounding, "mod floordiv copysign", 2),
)

FUNCTIONS: dict[str, int] = {name: arity for _, names, arity in _FAMILIES for name in names.split()}
"""Name -> number of arguments, of every function that exists in both dtypes."""

for _module, _names, _ in _FAMILIES:
    for _name in _names.split():
        _single, _double = (getattr(_module, f"{_name}_{_dtype}") for _dtype in ("float32", "float64"))
        globals()[f"{_name}_float32"] = _single
        globals()[f"{_name}_float64"] = _double
        globals()[_name] = door(_name, _single, _double)
