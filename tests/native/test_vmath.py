import json
import os
import subprocess
import sys
import typing

import mpmath
import numpy as np
import pytest
import scipy.special
from numba.core.errors import TypingError

from numbagrad.native import vmath
from numbagrad.native.compiler import PYTHON_MODE, REASSOCIATE, njit
from numbagrad.native.fingerprint import fingerprint
from numbagrad.native.vmath.doors import door

pytestmark = pytest.mark.skipif(PYTHON_MODE, reason="compiled against plain Python is tested from the compiled side")

inf, nan = np.inf, np.nan
CORE = "exp expm1 log log1p tanh sigmoid softplus erf sin cos pow".split()
DTYPES = {"float32": np.float32, "float64": np.float64}

# largest error in ulp, float32 and float64; measured on 67 million float32 (and on a million float64 against long
# double) where they are vectorised, and never more than is written here
BOUNDS = {
    "exp": (1.0, 1.1), "expm1": (1.6, 1.8), "log": (1.0, 1.0), "log1p": (1.5, 1.5), "tanh": (1.6, 1.7),
    "sigmoid": (1.7, 1.8), "softplus": (1.8, 1.9), "erf": (1.6, 1.5), "sin": (1.4, 1.0), "cos": (1.4, 1.0),
    "pow": (0.6, 1.3), "exp2": (1.1, 1.2), "log2": (1.8, 1.8), "log10": (1.2, 1.2), "tan": (0.6, 2.5),
    "arcsin": (0.6, 1.8), "arccos": (0.6, 1.3), "arctan": (0.6, 1.8), "arctan2": (0.6, 2.0), "sinh": (1.7, 1.8),
    "cosh": (1.6, 1.6), "arcsinh": (0.6, 2.0), "arccosh": (0.6, 2.3), "arctanh": (0.6, 2.2), "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5), "cbrt": (0.6, 0.6), "rcbrt": (0.6, 1.6), "hypot": (0.6, 1.3), "gamma": (0.6, 5.0),
    "gammaln": (0.6, 5.0), "digamma": (0.6, 4.0), "trigamma": (0.6, 4.5), "erfc": (0.6, 3.0), "erfinv": (0.6, 1.5),
}  # fmt: skip

_kernels: dict[tuple[int, str], typing.Any] = {}
_GROUP = 6


def group_kernel(names, dtype):
    """One kernel for up to six functions of one argument count: a kernel each would take twice as long to compile."""
    functions = [getattr(vmath, f"{name}_{dtype}") for name in names]
    a, b, c, d, e, f = functions + functions[:1] * (_GROUP - len(functions))

    @njit
    def unary(which, x, out):
        n = x.size
        if which == 0:
            for i in range(n):
                out[i] = a(x[i])
        elif which == 1:
            for i in range(n):
                out[i] = b(x[i])
        elif which == 2:
            for i in range(n):
                out[i] = c(x[i])
        elif which == 3:
            for i in range(n):
                out[i] = d(x[i])
        elif which == 4:
            for i in range(n):
                out[i] = e(x[i])
        else:
            for i in range(n):
                out[i] = f(x[i])

    @njit
    def binary(which, x, y, out):
        n = x.size
        if which == 0:
            for i in range(n):
                out[i] = a(x[i], y[i])
        elif which == 1:
            for i in range(n):
                out[i] = b(x[i], y[i])
        elif which == 2:
            for i in range(n):
                out[i] = c(x[i], y[i])
        elif which == 3:
            for i in range(n):
                out[i] = d(x[i], y[i])
        elif which == 4:
            for i in range(n):
                out[i] = e(x[i], y[i])
        else:
            for i in range(n):
                out[i] = f(x[i], y[i])

    return unary if vmath.FUNCTIONS[names[0]] == 1 else binary


def run(name, *arguments):
    dtype = arguments[0].dtype.name
    alike = [other for other, arity in vmath.FUNCTIONS.items() if arity == len(arguments)]
    group, which = divmod(alike.index(name), _GROUP)
    key = 10 * len(arguments) + group, dtype
    if key not in _kernels:
        _kernels[key] = group_kernel(alike[_GROUP * group : _GROUP * (group + 1)], dtype)
    out = np.empty_like(arguments[0])
    _kernels[key](which, *arguments, out)
    return out


def same(a, b):
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def neighbours(points, dtype):
    """The points and three neighbours on each side."""
    near = [np.asarray(points, dtype)]
    for end in (-inf, inf):
        step = near[0]
        for _ in range(3):
            with np.errstate(over="ignore", under="ignore"):
                step = np.nextafter(step, dtype(end))
            near.append(step)
    return np.concatenate(near)


# ------------------------------------------------------------------------------- float32 against float64 of NumPy

SINGLE = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
    "sigmoid": scipy.special.expit, "softplus": lambda x: np.logaddexp(0.0, x), "erf": scipy.special.erf,
    "sin": np.sin, "cos": np.cos, "pow": np.power, "exp2": np.exp2, "log2": np.log2, "log10": np.log10, "tan": np.tan,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arctan2": np.arctan2, "sinh": np.sinh,
    "cosh": np.cosh, "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "cbrt": np.cbrt, "rcbrt": lambda x: 1.0 / np.cbrt(x), "hypot": np.hypot,
    "gamma": scipy.special.gamma, "gammaln": scipy.special.gammaln, "digamma": scipy.special.psi,
    "trigamma": lambda x: scipy.special.polygamma(1, x), "erfc": scipy.special.erfc,
    "erfinv": lambda x: np.copysign(scipy.special.erfinv(x), x),
}  # fmt: skip
# where NumPy's or SciPy's float64 function is itself not accurate, or says something else at a pole
SINGLE_DOMAIN = {
    "gamma": (-5.0, 36.0), "gammaln": (0.001, 1e30), "digamma": (0.001, 1e30), "trigamma": (0.001, 1e30),
}  # fmt: skip


def single_samples(seed):
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [
            np.frombuffer(generator.bytes(4 * 40_000), np.float32),
            *(generator.uniform(-size, size, 10_000).astype(np.float32) for size in (0.01, 1.0, 10.0, 100.0)),
            (generator.choice([-1, 1], 20_000) * np.exp(generator.uniform(-20, 10, 20_000))).astype(np.float32),
            neighbours(
                [0, 1, -1, 0.5, 2, 88.72284, -87.33655, -103.97208, 0.55, 1e-4, 2.0**17, 1.1754944e-38, 3.4028235e38],
                np.float32,
            ),
            np.array([0.0, -0.0, inf, -inf, nan, 1e-45, -1e-45], np.float32),
        ]
    )


def single_errors(value, exact):
    """Errors in units in the last place of float32; infinite where one is finite or NaN and the other not."""
    rounded = exact.astype(np.float32)
    unit = np.spacing(np.abs(rounded)).astype(np.float64)
    with np.errstate(all="ignore"):
        errors = np.abs(value.astype(np.float64) - exact) / unit
    largest = np.finfo(np.float32).max
    beyond = np.isinf(rounded) & (value == np.copysign(np.float32(largest), rounded))
    errors = np.where(np.isfinite(rounded) & np.isfinite(value), errors, np.where(same(rounded, value), 0.0, inf))
    errors[beyond] = 1.0
    return np.where((rounded == 0) & (value == 0) & (np.signbit(rounded) != np.signbit(value)), inf, errors)


@pytest.mark.parametrize("name", SINGLE)
def test_float32_is_within_its_bound_of_float64(name):
    arguments = [single_samples(1)]
    if name in SINGLE_DOMAIN:
        low, high = SINGLE_DOMAIN[name]
        x = arguments[0]
        x = x[(x >= low) & (x <= high)]
        arguments = [x[(x > 0) | (x != np.rint(x))]]
    if vmath.FUNCTIONS[name] == 2:
        other = np.random.default_rng(2).permutation(single_samples(3))
        other[::2] = np.random.default_rng(4).uniform(-30, 30, other[::2].size)
        arguments.append(other)
    with np.errstate(all="ignore"):
        errors = single_errors(run(name, *arguments), SINGLE[name](*(x.astype(np.float64) for x in arguments)))
    worst = errors.argmax()
    assert errors[worst] <= BOUNDS[name][0], [float(x[worst]) for x in arguments]


# --------------------------------------------------------------------------------------- float64 against mpmath


def _mp_sigmoid(x):
    return mpmath.exp(x) / (1 + mpmath.exp(x))


DOUBLE = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log1p": mpmath.log1p, "tanh": mpmath.tanh,
    "sigmoid": _mp_sigmoid, "softplus": lambda x: mpmath.log1p(mpmath.exp(x)), "erf": mpmath.erf, "sin": mpmath.sin,
    "cos": mpmath.cos, "pow": mpmath.power, "exp2": lambda x: mpmath.mpf(2) ** x, "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10, "tan": mpmath.tan, "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan,
    "arctan2": mpmath.atan2, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh, "arctanh": mpmath.atanh, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)), "hypot": mpmath.hypot, "gamma": mpmath.gamma,
    "gammaln": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma,
    "trigamma": lambda x: mpmath.psi(1, x), "erfc": mpmath.erfc, "erfinv": mpmath.erfinv,
}  # fmt: skip
# intervals to draw from, and points whose neighbours are taken: changes of formula, zeros, limits
HALF_PI = 1.5707963267948966
PLACES = {
    "exp": ([(-1, 1), (-745, 709)], [0.0, 0.34657359, -0.34657359, 709.782712893384, -708.4, -745.13]),
    "expm1": ([(-1, 1), (-45, 709)], [0.34657359, -0.34657359, -0.6931471805599453, 709.782, 1e-18]),
    "log": ([(0.6, 1.5), (0, 1e3), (0, 1e-307)], [1.0, 0.7071067811865476, 1.4142135623730951, 5e-324, 1.79e308]),
    "log1p": ([(-1, 1), (0, 1e5)], [-0.2928932188134524, 0.41421356237309503, -0.999999999999, 1e-300, 1e300]),
    "tanh": ([(-1, 1), (-20, 20)], [0.55, -0.55, 19.0, 1e-300, 5e-324]),
    "sigmoid": ([(-5, 5), (-745, 40)], [0.0, -709.0, -745.13, 36.7]),
    "softplus": ([(-5, 5), (-745, 40)], [0.0, -709.0, -745.13, 36.7]),
    "erf": ([(-1.1, 1.1), (1, 6)], [1.0, -1.0, 5.9, 1e-300]),
    "sin": ([(-4, 4), (-1e5, 1e5)], [HALF_PI, 2 * HALF_PI, 1e5 * HALF_PI, 2.0**30, 1e22, 1e300, 1e-8, 710 * HALF_PI]),
    "cos": ([(-4, 4), (-1e5, 1e5)], [HALF_PI, 2 * HALF_PI, 3e5 * HALF_PI, 2.0**30, 1e22, 1e300, 6381956970095103.0]),
    "exp2": ([(-1, 1), (-1074, 1023)], [0.5, -0.5, 1023.9, -1022.0, -1074.0]),
    "log2": ([(0.6, 1.5), (0, 1e3)], [1.0, 0.7071067811865476, 5e-324, 1024.0]),
    "log10": ([(0.6, 1.5), (0, 1e3)], [1.0, 0.7071067811865476, 5e-324, 1000.0]),
    "tan": ([(-4, 4), (-1e5, 1e5)], [HALF_PI, 2 * HALF_PI, 0.7853981633974483, 1e22]),
    "arcsin": ([(-1, 1)], [0.5, -0.5, 0.9999999999, 1e-300]),
    "arccos": ([(-1, 1)], [0.5, -0.5, 0.9999999999, -0.9999999999, 1e-300]),
    "arctan": ([(-1.2, 1.2), (-20, 20)], [0.41421356237309503, 1.0, 2.414213562373095, 1e300, 1e-300]),
    "sinh": ([(-1.2, 1.2), (-710, 710)], [1.0, 710.47, -710.47, 1e-300]),
    "cosh": ([(-1.2, 1.2), (-710, 710)], [0.0, 710.47, -710.47]),
    "arcsinh": ([(-2, 2), (-1e5, 1e5)], [1e17, 1e300, 1e-300]),
    "arccosh": ([(1, 2), (1, 1e5)], [1e17, 1e300, 1.0000000001]),
    "arctanh": ([(-1, 1)], [0.9999999999, 1e-300]),
    "sqrt": ([(0, 4)], [5e-324, 1e300, 1.0]),
    "rsqrt": ([(0, 4)], [5e-324, 1e300, 1.0]),
    "cbrt": ([(-8, 8)], [5e-324, 1e300, 1.0, 27.0, 1e-310]),
    "rcbrt": ([(-8, 8)], [5e-324, 1e300, 1.0, 27.0, 1e-310]),
    "gamma": ([(-5, 5), (5, 170)], [1e-300, 171.6]),
    "gammaln": ([(0.01, 5), (5, 1e5)], [1e-300, 1e300]),
    "digamma": ([(0.01, 3), (3, 30)], [1.4616321449683622, 2.0, 1.0, 10.0, 1e-300, 1e300]),
    "trigamma": ([(0.01, 3), (3, 30), (-6, 0)], [1.0, 12.0, 1e-100, 1e300]),
    "erfc": ([(-1, 1), (1, 27)], [0.0, 26.5]),
    "erfinv": ([(-1, 1)], [0.5, 0.9999999999, 1e-300]),
}  # fmt: skip
POWERS = ([(0.5, 2, 20), (0.9, 1.1, 5000), (0, 10, 300), (0, 1e-300, 1)], [1.0, 0.7071067811865476, 1.4142135623730951])


def double_arguments(name):
    generator = np.random.default_rng(7)
    if name == "pow":
        x = [generator.uniform(low, high, 60) for low, high, _ in POWERS[0]]
        y = [generator.uniform(-size, size, 60) for _, _, size in POWERS[0]]
        near = neighbours(POWERS[1], np.float64)
        return [np.concatenate([*x, near]), np.concatenate([*y, generator.uniform(-1500, 1500, near.size)])]
    if name in ("hypot", "arctan2"):
        x, y = generator.uniform(-3, 3, (2, 200))
        x[:60] *= np.exp(generator.uniform(-300, 300, 60))
        y[30:90] *= np.exp(generator.uniform(-300, 300, 60))
        return [x, y]
    intervals, points = PLACES[name]
    near = neighbours(points, np.float64)
    near = near[np.array([_in_domain(name, value) for value in near])]
    return [np.concatenate([*(generator.uniform(low, high, 80) for low, high in intervals), near])]


def _in_domain(name, value):
    limits = {"log": (0, inf), "log2": (0, inf), "log10": (0, inf), "sqrt": (0, inf), "rsqrt": (0, inf)}
    low, high = limits.get(name, (-inf, inf))
    return low < value < high and value != 0


def double_error(value, exact):
    """Error in units in the last place of float64 of the exact value."""
    if abs(exact) > mpmath.mpf(2) ** 1024:
        return 0.0 if value == np.copysign(inf, float(mpmath.sign(exact))) else inf
    exponent = max(mpmath.frexp(exact)[1] - 53, -1074) if exact else -1074
    if not np.isfinite(value):
        return 1.0 if abs(exact) >= mpmath.mpf(2) ** 1024 - mpmath.mpf(2) ** 970 and np.isinf(value) else inf
    return float(abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(2) ** exponent)


@pytest.mark.parametrize("name", DOUBLE)
def test_float64_is_within_its_bound_of_mpmath(name):
    arguments = double_arguments(name)
    values = run(name, *arguments)
    worst = 0.0, ()
    with mpmath.workprec(160):
        for value, *x in zip(values, *arguments):
            exact = DOUBLE[name](*(mpmath.mpf(float(each)) for each in x))
            worst = max(worst, (double_error(value, exact), tuple(map(float, x))))
    assert worst[0] <= BOUNDS[name][1], worst[1]


def test_digamma_of_negative_arguments_to_the_size_of_its_terms():
    x = np.random.default_rng(3).uniform(-20, 0, 200)
    exact = scipy.special.psi(1 - x) - np.pi / np.tan(np.pi * (x - np.rint(x)))
    np.testing.assert_allclose(run("digamma", x), exact, rtol=2e-15, atol=2e-14)


# -------------------------------------------------------------------------------------------------- special values

SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (inf, inf), (-inf, 0), (nan, nan), (1e4, inf), (-1e4, 0)],
    "expm1": [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -1), (nan, nan), (1e4, inf), (-1e4, -1)],
    "exp2": [(0, 1), (10, 1024), (-3, 0.125), (inf, inf), (-inf, 0), (nan, nan), (1e4, inf), (-1e4, 0)],
    "log": [(1, 0), (0, -inf), (-0.0, -inf), (-1, nan), (-inf, nan), (inf, inf), (nan, nan)],
    "log2": [(1, 0), (8, 3), (0.25, -2), (0, -inf), (-0.0, -inf), (-1, nan), (-inf, nan), (inf, inf), (nan, nan)],
    "log10": [(1, 0), (1000, 3), (0, -inf), (-0.0, -inf), (-1, nan), (-inf, nan), (inf, inf), (nan, nan)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -inf), (-2, nan), (-inf, nan), (inf, inf), (nan, nan)],
    "tanh": [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1), (nan, nan), (50, 1)],
    "sigmoid": [(0, 0.5), (-0.0, 0.5), (inf, 1), (-inf, 0), (nan, nan), (-1e4, 0), (1e4, 1)],
    "softplus": [(inf, inf), (-inf, 0), (nan, nan), (1e30, 1e30), (-1e30, 0)],
    "erf": [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1), (nan, nan), (50, 1)],
    "erfc": [(0, 1), (inf, 0), (-inf, 2), (nan, nan)],
    "erfinv": [(0, 0), (-0.0, -0.0), (1, inf), (-1, -inf), (1.5, nan), (-1.5, nan), (inf, nan), (nan, nan)],
    "sin": [(0, 0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
    "cos": [(0, 1), (-0.0, 1), (inf, nan), (-inf, nan), (nan, nan)],
    "tan": [(0, 0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
    "arcsin": [(0, 0), (-0.0, -0.0), (1.5, nan), (-1.5, nan), (inf, nan), (nan, nan)],
    "arccos": [(1, 0), (1.5, nan), (-1.5, nan), (-inf, nan), (nan, nan)],
    "arctan": [(0, 0), (-0.0, -0.0), (nan, nan)],
    "sinh": [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan), (1e4, inf), (-1e4, -inf)],
    "cosh": [(0, 1), (-0.0, 1), (inf, inf), (-inf, inf), (nan, nan), (-1e4, inf)],
    "arcsinh": [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan)],
    "arccosh": [(1, 0), (0.5, nan), (-3, nan), (-inf, nan), (inf, inf), (nan, nan)],
    "arctanh": [(0, 0), (-0.0, -0.0), (1, inf), (-1, -inf), (1.5, nan), (-inf, nan), (nan, nan)],
    "sqrt": [(0, 0), (-0.0, -0.0), (4, 2), (-1, nan), (inf, inf), (-inf, nan), (nan, nan)],
    "rsqrt": [(0, inf), (-0.0, -inf), (4, 0.5), (-1, nan), (inf, 0), (nan, nan)],
    "cbrt": [(0, 0), (-0.0, -0.0), (-27, -3), (inf, inf), (-inf, -inf), (nan, nan)],
    "rcbrt": [(0, inf), (-0.0, -inf), (-8, -0.5), (inf, 0), (-inf, -0.0), (nan, nan)],
    "gamma": [(0, inf), (-0.0, -inf), (1, 1), (5, 24), (-1, nan), (inf, inf), (nan, nan), (200, inf)],
    "gammaln": [(0, inf), (-0.0, inf), (1, 0), (2, 0), (-1, inf), (inf, inf), (-inf, inf), (nan, nan)],
    "digamma": [(0, -inf), (-0.0, inf), (-1, nan), (inf, inf), (-inf, nan), (nan, nan)],
    "trigamma": [(0, inf), (-0.0, inf), (-1, inf), (inf, 0), (-inf, nan), (nan, nan)],
    "floor": [(1.5, 1), (-1.5, -2), (-0.0, -0.0), (inf, inf), (nan, nan)],
    "ceil": [(1.5, 2), (-1.5, -1), (-0.5, -0.0), (-inf, -inf), (nan, nan)],
    "trunc": [(1.5, 1), (-1.5, -1), (-0.5, -0.0), (inf, inf), (nan, nan)],
    "rint": [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, -0.0), (-1.5, -2), (1e30, 1e30), (inf, inf), (nan, nan)],
    "round": [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (-2.5, -3), (0.4, 0), (1e30, 1e30), (-inf, -inf), (nan, nan)],
    "sign": [(3, 1), (-3, -1), (0, 0), (-0.0, 0), (inf, 1), (-inf, -1), (nan, nan)],
}


def test_the_special_values_cover_every_function_of_one_argument():
    assert set(SPECIAL) == {name for name, arity in vmath.FUNCTIONS.items() if arity == 1}
    assert set(SINGLE) == set(DOUBLE) == set(BOUNDS)
    assert set(CORE) <= set(vmath.FUNCTIONS)


@pytest.mark.parametrize("dtype", DTYPES.values())
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    # a vector body and a scalar rest of the loop
    x, expected = (np.tile(np.array(column, dtype), 9) for column in zip(*SPECIAL[name]))
    value = run(name, x)
    assert same(value, expected).all(), list(zip(x, value, expected))[: len(SPECIAL[name])]


@pytest.mark.parametrize("dtype", DTYPES.values())
@pytest.mark.parametrize(
    ("name", "numpy"),
    [
        ("pow", np.power), ("arctan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign), ("mod", np.mod),
        ("floordiv", np.floor_divide),
    ],
)  # fmt: skip
def test_two_arguments_at_special_values_as_numpy(name, numpy, dtype):
    info = np.finfo(dtype)
    points = np.array(
        [0, 1, 2, 3, 0.5, 1.5, inf, 2.0**24 - 1, 1e5 + 1, info.max, info.tiny, info.smallest_subnormal, 7.25], dtype
    )
    points = np.concatenate([points, -points, np.array([nan], dtype)])
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(points, points))
    with np.errstate(all="ignore"):
        expected = numpy(x, y)
    value = run(name, x, y)
    near = np.isfinite(expected) & (expected != 0)
    assert same(value, expected)[~near].all(), [(x[i], y[i]) for i in np.where(~near & ~same(value, expected))[0]]
    exact = name in ("mod", "floordiv", "copysign")
    np.testing.assert_allclose(value[near], expected[near], rtol=0 if exact else 4 * info.eps, atol=0)


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_mod_and_floordiv_are_those_of_numpy(dtype):
    generator = np.random.default_rng(5)
    x = np.concatenate([generator.uniform(-10, 10, 5000), generator.uniform(-1e6, 1e6, 5000)]).astype(dtype)
    y = np.concatenate([generator.uniform(-3, 3, 5000), generator.uniform(-1e-3, 1e-3, 5000)]).astype(dtype)
    x[::5], y[::5] = np.rint(x[::5]), np.rint(y[::5]) + (np.rint(y[::5]) == 0)
    assert same(run("mod", x, y), np.mod(x, y)).all()
    assert same(run("floordiv", x, y), np.floor_divide(x, y)).all()


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_rounding_is_exact_everywhere(dtype):
    integer = np.int32 if dtype is np.float32 else np.int64
    bits = np.random.default_rng(6).integers(np.iinfo(integer).min, np.iinfo(integer).max, 20_000, dtype=integer)
    x = bits.view(dtype)
    x = np.concatenate([x[~np.isnan(x)], np.linspace(-5, 5, 81).astype(dtype), neighbours([0.5, 1.5, 2.5], dtype)])
    for name in ("floor", "ceil", "trunc", "rint"):
        assert same(run(name, x), getattr(np, name)(x)).all(), name
    away = np.copysign(np.floor(np.abs(x).astype(np.longdouble) + np.longdouble(0.5)), x).astype(dtype)
    moderate = np.abs(x) < 2.0**52
    assert same(run("round", x), away)[moderate].all()
    assert same(run("round", x), x)[~moderate].all()


def test_softplus_never_overflows_and_never_vanishes_early():
    x = np.array([-700.0, -100.0, 0.0, 100.0, 800.0, 1e300])
    np.testing.assert_allclose(run("softplus", x), [np.exp(-700.0), np.exp(-100.0), np.log(2.0), 100, 800, 1e300])
    small = run("softplus", np.array([-100.0], np.float32))
    assert 0 < small[0] < np.finfo(np.float32).tiny


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_tanh_and_erf_stay_within_one(dtype):
    x = np.linspace(0, 25, 20_000).astype(dtype)
    for name, largest in (("tanh", 1.0), ("erf", 1.0), ("sigmoid", 1.0 - 2e-11 if dtype is np.float64 else 1.0)):
        values = run(name, x)
        assert largest <= values.max() <= 1.0
        assert (np.diff(values) >= -np.finfo(dtype).eps).all()


# ------------------------------------------------------------------------------- one helper, many callers and modes


def core_arguments(dtype):
    x = np.random.default_rng(11).uniform(-6, 6, 4099).astype(dtype)
    return x, np.abs(x) + dtype(0.125), np.roll(x, 1)


def core_kernel(dtype, flags):
    """All core functions in one kernel; sums around them, so that REASSOCIATE has something to do."""
    functions = [getattr(vmath, f"{name}_{dtype}") for name in CORE]
    exp, expm1, log, log1p, tanh, sigmoid, softplus, erf, sin, cos, power = functions

    @njit(fastmath=flags)
    def loop(x, positive, y, out):
        n = x.size
        for i in range(n):
            out[i] = exp(x[i])
            out[n + i] = expm1(x[i])
            out[2 * n + i] = tanh(x[i])
            out[3 * n + i] = sigmoid(x[i])
            out[4 * n + i] = softplus(x[i])
            out[5 * n + i] = erf(x[i])
            out[6 * n + i] = sin(x[i])
            out[7 * n + i] = cos(x[i])
        for i in range(n):
            out[8 * n + i] = log(positive[i])
            out[9 * n + i] = log1p(positive[i])
            out[10 * n + i] = power(positive[i], y[i])

    return loop


def core_bits(dtype, flags):
    x, positive, y = core_arguments(DTYPES[dtype])
    out = np.empty(len(CORE) * x.size, DTYPES[dtype])
    core_kernel(dtype, flags)(x, positive, y, out)
    return out


def subprocess_of(code, tmp_path, **environment):
    environment = {**os.environ, "NUMBAGRAD_CACHE_DIR": str(tmp_path / "cache"), **environment}
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_order_of_compilation_and_the_flags_of_the_caller_change_no_bit(tmp_path):
    code = (
        "import numpy as np, test_vmath as t\n"
        f"first = [t.core_bits(d, t.REASSOCIATE) for d in t.DTYPES]\n"
        "second = [t.core_bits(d, ('nsz',)) for d in t.DTYPES]\n"
        f"np.savez({str(tmp_path / 'bits.npz')!r}, *first, *second)\n"
    )
    subprocess_of(code, tmp_path)  # REASSOCIATE first, on an empty cache; here the plain kernels came first
    with np.load(tmp_path / "bits.npz") as archive:
        there = [archive[key] for key in archive.files]
    for index, dtype in enumerate(DTYPES):
        x, positive, y = core_arguments(DTYPES[dtype])
        alone = [run(name, x) for name in "exp expm1 tanh sigmoid softplus erf sin cos".split()]
        alone = np.concatenate([*alone, run("log", positive), run("log1p", positive), run("pow", positive, y)])
        for other in (core_bits(dtype, REASSOCIATE), there[index], there[2 + index]):
            np.testing.assert_array_equal(alone.view(np.uint8), other.view(np.uint8), strict=True)


def python_points(name):
    if vmath.FUNCTIONS[name] == 2:
        return [(0.75, 2.5), (-7.5, 2.0), (3.0, -0.7)]
    return [(value,) for value in (0.3, -0.45, 1.25, 0.875, 3.7, 40.0)]


def test_plain_python_agrees(tmp_path):
    code = (
        "import json, numpy as np, test_vmath as t\n"
        "from numbagrad.native import vmath\n"
        "values = {}\n"
        "with np.errstate(all='ignore'):\n"
        "    for name in vmath.FUNCTIONS:\n"
        "        for dtype, kind in t.DTYPES.items():\n"
        "            results = [getattr(vmath, name)(*map(kind, p)) for p in t.python_points(name)]\n"
        "            kinds = kind if kind is np.float32 else float\n"
        "            assert all(isinstance(r, kinds) for r in results), (name, results)\n"
        "            values[name + dtype] = [float(r).hex() for r in results]\n"
        "print(json.dumps(values))\n"
    )
    there = json.loads(subprocess_of(code, tmp_path, NUMBA_DISABLE_JIT="1"))
    for name in vmath.FUNCTIONS:
        points = np.array(python_points(name))
        for dtype, kind in DTYPES.items():
            here = run(name, *(np.ascontiguousarray(column) for column in points.T.astype(kind)))
            plain = np.array([float.fromhex(value) for value in there[name + dtype]])
            if name in ("gamma", "gammaln", "erfc"):  # SciPy's there, the C library's here
                np.testing.assert_allclose(here, plain, rtol=8 * np.finfo(kind).eps)
            else:
                np.testing.assert_array_equal(here.astype(np.float64), plain, err_msg=name)


# ------------------------------------------------------------------------------------------------- generic doors


@njit
def through_doors(x, out):
    for i in range(x.size):
        out[i] = vmath.pow(vmath.exp(x[i]), vmath.log1p(x[i]))


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_a_door_calls_the_function_of_the_dtype(dtype):
    x = np.linspace(0, 2, 37).astype(dtype)
    out = np.empty_like(x)
    through_doors(x, out)
    np.testing.assert_array_equal(out, run("pow", run("exp", x), run("log1p", x)))


@pytest.mark.parametrize("x", [np.arange(3), np.array([True]), np.arange(3, dtype=np.int8)])
def test_a_door_refuses_what_is_no_float(x):
    @njit
    def loop(x):
        return vmath.exp(x[0])

    with pytest.raises(TypingError, match="exp"):
        loop(x)


def test_a_door_refuses_mixed_dtypes():
    @njit
    def mixed(x, y):
        return vmath.pow(x[0], y[0])

    with pytest.raises(TypingError, match="pow"):
        mixed(np.ones(1), np.ones(1, np.float32))
    with pytest.raises(TypeError, match="pow: arguments must be all float32 or all float64"):
        vmath.pow(1.0, np.float32(1.0))


def test_an_edited_implementation_changes_the_fingerprint_of_what_uses_the_door():
    def caller(single, double):
        stub = door("probe", single, double)

        def use(x):
            return stub(x)

        return fingerprint(use)

    def one(x):
        return x + 1.0

    def two(x):
        return x + 2.0

    assert caller(one, two) == caller(one, two)
    assert len({caller(one, two), caller(one, one), caller(two, two)}) == 3
    assert vmath.exp.implementations == (vmath.exp_float32, vmath.exp_float64)
