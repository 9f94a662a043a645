"""Scalar functions for kernels: ``<name>_float32``, ``<name>_float64`` and the dtype-generic ``<name>``.

Most are branch-free, so that LLVM vectorises a loop that calls them. :data:`FUNCTIONS` lists them.
"""
# ruff: noqa: F401 - a package that gathers names

from numbagrad.native.vmath.arcs import (
    arccos,
    arccos_float32,
    arccos_float64,
    arcsin,
    arcsin_float32,
    arcsin_float64,
    arctan,
    arctan2,
    arctan2_float32,
    arctan2_float64,
    arctan_float32,
    arctan_float64,
)
from numbagrad.native.vmath.errors import (
    erf,
    erf_float32,
    erf_float64,
    erfc,
    erfc_float32,
    erfc_float64,
    erfinv,
    erfinv_float32,
    erfinv_float64,
)
from numbagrad.native.vmath.exponential import (
    exp,
    exp2,
    exp2_float32,
    exp2_float64,
    exp_float32,
    exp_float64,
    expm1,
    expm1_float32,
    expm1_float64,
)
from numbagrad.native.vmath.gammas import (
    digamma,
    digamma_float32,
    digamma_float64,
    gamma,
    gamma_float32,
    gamma_float64,
    gammaln,
    gammaln_float32,
    gammaln_float64,
    polygamma,
    polygamma_float32,
    polygamma_float64,
    trigamma,
    trigamma_float32,
    trigamma_float64,
)
from numbagrad.native.vmath.hyperbolic import (
    arccosh,
    arccosh_float32,
    arccosh_float64,
    arcsinh,
    arcsinh_float32,
    arcsinh_float64,
    arctanh,
    arctanh_float32,
    arctanh_float64,
    cosh,
    cosh_float32,
    cosh_float64,
    sinh,
    sinh_float32,
    sinh_float64,
)
from numbagrad.native.vmath.logarithm import (
    log,
    log1p,
    log1p_float32,
    log1p_float64,
    log2,
    log2_float32,
    log2_float64,
    log10,
    log10_float32,
    log10_float64,
    log_float32,
    log_float64,
)
from numbagrad.native.vmath.power import (
    pow,
    pow_float32,
    pow_float64,
)
from numbagrad.native.vmath.roots import (
    cbrt,
    cbrt_float32,
    cbrt_float64,
    hypot,
    hypot_float32,
    hypot_float64,
    rcbrt,
    rcbrt_float32,
    rcbrt_float64,
    rsqrt,
    rsqrt_float32,
    rsqrt_float64,
    sqrt,
    sqrt_float32,
    sqrt_float64,
)
from numbagrad.native.vmath.rounding import (
    ceil,
    ceil_float32,
    ceil_float64,
    copysign,
    copysign_float32,
    copysign_float64,
    floor,
    floor_float32,
    floor_float64,
    floordiv,
    floordiv_float32,
    floordiv_float64,
    mod,
    mod_float32,
    mod_float64,
    rint,
    rint_float32,
    rint_float64,
    round,
    round_float32,
    round_float64,
    sign,
    sign_float32,
    sign_float64,
    trunc,
    trunc_float32,
    trunc_float64,
)
from numbagrad.native.vmath.sigmoidal import (
    sigmoid,
    sigmoid_float32,
    sigmoid_float64,
    softplus,
    softplus_float32,
    softplus_float64,
    tanh,
    tanh_float32,
    tanh_float64,
)
from numbagrad.native.vmath.trigonometric import (
    cos,
    cos_float32,
    cos_float64,
    sin,
    sin_float32,
    sin_float64,
    tan,
    tan_float32,
    tan_float64,
)

_ONE = (
    "exp expm1 exp2 log log1p log2 log10 tanh sigmoid softplus erf erfc erfinv sin cos tan arcsin arccos arctan "
    "sinh cosh arcsinh arccosh arctanh sqrt rsqrt cbrt rcbrt gamma gammaln digamma trigamma "
    "floor ceil trunc rint round sign"
)
_TWO = "polygamma pow hypot arctan2 mod floordiv copysign"

FUNCTIONS: dict[str, int] = dict.fromkeys(_ONE.split(), 1) | dict.fromkeys(_TWO.split(), 2)
"""Name -> number of arguments, of every function that exists in both dtypes."""

__all__ = ["FUNCTIONS", *FUNCTIONS, *(f"{name}_{dtype}" for name in FUNCTIONS for dtype in ("float32", "float64"))]
