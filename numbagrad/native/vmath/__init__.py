"""Scalar functions for kernels: ``<name>_float32``, ``<name>_float64`` and the dtype-generic ``<name>``."""

from numbagrad.native.vmath import errors, exponential, libm, logarithm, power, sigmoidal, trigonometric
from numbagrad.native.vmath.doors import door

FUNCTIONS: dict[str, int] = dict.fromkeys(
    (
        "exp expm1 log log1p tanh sigmoid softplus erf sin cos sqrt rsqrt cbrt rcbrt exp2 log2 log10 tan arcsin arccos "
        "arctan sinh cosh arcsinh arccosh arctanh gamma gammaln digamma trigamma erfinv erfc floor ceil trunc rint "
        "round sign"
    ).split(),
    1,
) | dict.fromkeys("pow hypot arctan2 mod floordiv copysign".split(), 2)
"""Name -> number of arguments, of every function that exists in both dtypes."""

for _name in FUNCTIONS:
    _single, _double = getattr(libm, _name)
    for _module in (errors, exponential, logarithm, power, sigmoidal, trigonometric):
        _single = getattr(_module, f"{_name}_float32", _single)
        _double = getattr(_module, f"{_name}_float64", _double)
    globals()[f"{_name}_float32"] = _single
    globals()[f"{_name}_float64"] = _double
    globals()[_name] = door(_name, _single, _double)
