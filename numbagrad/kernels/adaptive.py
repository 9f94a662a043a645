"""Steps of the optimisers beyond SGD and Adam, as rules from which the kernels over one array and over tables follow.

A rule is ``rule(w, g, *states, hyper, rescale)``; see ``kernels.optimizer`` for tables, rows of `hyper` and clipping.
C clips, G is the rescaled gradient, a mean is a moving one.

nag       g = C(G) + wd w;  m = momentum m - lr g;  w += momentum m - lr g  (Nesterov)
adagrad   g = C(G);  h += g^2;  w -= lr (g / sqrt(h + eps) + wd w)  (Duchi, Hazan and Singer 2011)
rmsprop   g = C(G + wd w);  n = mean of g^2;  w -= lr g / sqrt(n + eps)  (Tieleman and Hinton 2012)
centered  a = mean of g too;  d = gamma2 d - lr g / sqrt(n - a^2 + eps);  w += d  (Graves 2013, equations 38 to 45)
adadelta  g = C(G);  a = mean of g^2;  s = sqrt(d + eps) / sqrt(a + eps) g;  d = mean of s^2;
          w -= s + wd w  (Zeiler 2012)
ftrl      g = C(G);  z += g - (sqrt(n + g^2) - sqrt(n)) w / lr;  n += g^2;
          w = (sign(z) lamda1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0  (McMahan et al. 2013)
adamax    g = C(G + wd w);  m = mean of g;  u = max(beta2 u, |g|);  w -= lr / (1 - beta1^t) m / u, 0 where u is 0
signum    m = momentum m - (1 - momentum) (C(G) + wd w);  w = (1 - lr wd_lh) w + lr sign(m)  (Bernstein et al. 2018)
signsgd   w = (1 - lr wd) w - lr sign(G)
ftml      g = C(G + wd w);  v = mean of g^2;  e = (1 - beta1^t) / lr (sqrt(v / (1 - beta2^t)) + eps);
          z = beta1 z + (1 - beta1) g - (e - beta1 d) w;  d = e;  w = -z / d  (Zheng and Kwok 2017)
"""

from typing import Any, NamedTuple

import numpy as np

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import njit
from numbagrad.native.memory import ARRAY_AT, piece


@njit(inline=True)
def _clip(x: Any, high: Any) -> Any:
    return high if x > high else (-high if x < -high else x)


@njit(inline=True)
def _bound(clip: float) -> float:
    return clip if clip > 0 else np.inf


@njit
def _nag(w: Any, g: Any, m: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale, momentum = number(hyper[0]), number(hyper[1]), number(rescale_grad), number(hyper[3])
    high = number(_bound(hyper[2]))
    for i in range(w.size):
        step = lr * (_clip(rescale * g[i], high) + wd * w[i])
        m[i] = momentum * m[i] - step
        w[i] += momentum * m[i] - step
    hyper[4] += 1.0


@njit
def _adagrad(w: Any, g: Any, h: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale, eps = number(hyper[0]), number(hyper[1]), number(rescale_grad), number(hyper[3])
    high = number(_bound(hyper[2]))
    for i in range(w.size):
        clipped = _clip(rescale * g[i], high)
        h[i] += clipped * clipped
        w[i] -= lr * (clipped / np.sqrt(h[i] + eps) + wd * w[i])
    hyper[4] += 1.0


@njit
def _rmsprop(w: Any, g: Any, n: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(rescale_grad)
    gamma, rest, eps = number(hyper[3]), number(1 - hyper[3]), number(hyper[5])
    high, limit = number(_bound(hyper[2])), number(_bound(hyper[6]))
    for i in range(w.size):
        clipped = _clip(rescale * g[i] + wd * w[i], high)
        n[i] = gamma * n[i] + rest * (clipped * clipped)
        w[i] = _clip(w[i] - lr * clipped / np.sqrt(n[i] + eps), limit)
    hyper[7] += 1.0


@njit
def _rmsprop_centered(w: Any, g: Any, n: Any, a: Any, d: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(rescale_grad)
    gamma, rest, momentum, eps = number(hyper[3]), number(1 - hyper[3]), number(hyper[4]), number(hyper[5])
    high, limit = number(_bound(hyper[2])), number(_bound(hyper[6]))
    for i in range(w.size):
        clipped = _clip(rescale * g[i] + wd * w[i], high)
        n[i] = gamma * n[i] + rest * (clipped * clipped)
        a[i] = gamma * a[i] + rest * clipped
        d[i] = momentum * d[i] - lr * clipped / np.sqrt(n[i] - a[i] * a[i] + eps)
        w[i] = _clip(w[i] + d[i], limit)
    hyper[7] += 1.0


@njit
def _adadelta(w: Any, g: Any, a: Any, d: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    wd, rescale = number(hyper[1]), number(rescale_grad)
    rho, rest, eps = number(hyper[3]), number(1 - hyper[3]), number(hyper[4])
    high = number(_bound(hyper[2]))
    for i in range(w.size):
        clipped = _clip(rescale * g[i], high)
        a[i] = rho * a[i] + rest * (clipped * clipped)
        step = np.sqrt(d[i] + eps) / np.sqrt(a[i] + eps) * clipped
        d[i] = rho * d[i] + rest * (step * step)
        w[i] -= step + wd * w[i]
    hyper[5] += 1.0


@njit
def _ftrl(w: Any, g: Any, z: Any, n: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(rescale_grad)
    lamda, beta = number(hyper[3]), number(hyper[4])
    high, zero = number(_bound(hyper[2])), number(0)
    for i in range(w.size):
        clipped = _clip(rescale * g[i], high)
        root = np.sqrt(n[i])
        n[i] += clipped * clipped
        after = np.sqrt(n[i])
        z[i] += clipped - (after - root) * w[i] / lr
        pull = lamda if z[i] > zero else -lamda
        w[i] = zero if abs(z[i]) <= lamda else (pull - z[i]) / ((beta + after) / lr + wd)
    hyper[5] += 1.0


@njit
def _adamax(w: Any, g: Any, m: Any, u: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    hyper[5] += 1.0
    wd, rescale = number(hyper[1]), number(rescale_grad)
    beta1, rest, beta2 = number(hyper[3]), number(1 - hyper[3]), number(hyper[4])
    lr = number(hyper[0] / (1 - hyper[3] ** hyper[5]))
    high, zero = number(_bound(hyper[2])), number(0)
    for i in range(w.size):
        clipped = _clip(rescale * g[i] + wd * w[i], high)
        m[i] = beta1 * m[i] + rest * clipped
        size, kept = abs(clipped), beta2 * u[i]
        u[i] = kept if kept > size else size
        w[i] -= zero if u[i] == zero else lr * m[i] / u[i]


@njit
def _signum(w: Any, g: Any, m: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(rescale_grad)
    momentum, rest, shrink = number(hyper[3]), number(1 - hyper[3]), number(1 - hyper[0] * hyper[4])
    high = number(_bound(hyper[2]))
    for i in range(w.size):
        m[i] = momentum * m[i] - rest * (_clip(rescale * g[i], high) + wd * w[i])
        w[i] = shrink * w[i] + lr * np.sign(m[i])
    hyper[5] += 1.0


@njit
def _signsgd(w: Any, g: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, shrink, rescale = number(hyper[0]), number(1 - hyper[0] * hyper[1]), number(rescale_grad)
    for i in range(w.size):
        w[i] = shrink * w[i] - lr * np.sign(rescale * g[i])
    hyper[5] += 1.0


@njit
def _ftml(w: Any, g: Any, d: Any, v: Any, z: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    hyper[6] += 1.0
    wd, rescale = number(hyper[1]), number(rescale_grad)
    beta1, rest1, beta2, rest2 = number(hyper[3]), number(1 - hyper[3]), number(hyper[4]), number(1 - hyper[4])
    scale, made, eps = number((1 - hyper[3] ** hyper[6]) / hyper[0]), number(1 - hyper[4] ** hyper[6]), number(hyper[5])
    high = number(_bound(hyper[2]))
    for i in range(w.size):
        clipped = _clip(rescale * g[i] + wd * w[i], high)
        v[i] = beta2 * v[i] + rest2 * (clipped * clipped)
        e = scale * (np.sqrt(v[i] / made) + eps)
        z[i] = beta1 * z[i] + rest1 * clipped - (e - beta1 * d[i]) * w[i]
        d[i] = e
        w[i] = -z[i] / e


# ------------------------------------------------------------------------------------------- kernels of a rule


def _over_array(rule: Any, states: int) -> Kernel:
    """The kernel ``(w, g, *states, hyper, rescale)`` over one array."""
    if states == 0:

        @kernel("inout in inout scalar")
        def update(w: Any, g: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, hyper, rescale)
            return 0

    elif states == 1:

        @kernel("inout in inout inout scalar")
        def update(w: Any, g: Any, a: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, hyper, rescale)
            return 0

    elif states == 2:

        @kernel("inout in inout inout inout scalar")
        def update(w: Any, g: Any, a: Any, b: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, b, hyper, rescale)
            return 0

    else:

        @kernel("inout in inout inout inout inout scalar")
        def update(w: Any, g: Any, a: Any, b: Any, c: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, b, c, hyper, rescale)
            return 0

    return update


def _over_table(rule: Any, states: int, width: int, at: Any) -> Kernel:
    """The kernel ``(table, hyper, count, rescale)``; `width` is the length of a row of `hyper`."""
    if states == 0:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                row = piece(table, 3 * i, 3)
                rule(at(row[0], row[2]), at(row[1], row[2]), piece(hyper, width * i, width), rescale)
            return 0

    elif states == 1:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                row = piece(table, 4 * i, 4)
                w, g = at(row[0], row[3]), at(row[1], row[3])
                rule(w, g, at(row[2], row[3]), piece(hyper, width * i, width), rescale)
            return 0

    elif states == 2:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                row = piece(table, 5 * i, 5)
                w, g = at(row[0], row[4]), at(row[1], row[4])
                rule(w, g, at(row[2], row[4]), at(row[3], row[4]), piece(hyper, width * i, width), rescale)
            return 0

    else:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                row = piece(table, 6 * i, 6)
                w, g = at(row[0], row[5]), at(row[1], row[5])
                a, b, c = at(row[2], row[5]), at(row[3], row[5]), at(row[4], row[5])
                rule(w, g, a, b, c, piece(hyper, width * i, width), rescale)
            return 0

    return update


class Rule(NamedTuple):
    """The kernels of a rule."""

    columns: tuple[str, ...]
    """What a row of `hyper` holds."""
    array: Kernel
    tables: dict[str, Kernel]
    """By dtype."""


def _rule(name: str, rule: Any, states: int, *columns: str) -> Rule:
    columns = ("lr", "wd", "clip", *columns, "t")
    array = _over_array(rule, states)
    tables = {dtype: _over_table(rule, states, len(columns), ARRAY_AT[dtype]) for dtype in ("float32", "float64")}
    array.name = f"{name}_array"
    for each in tables.values():
        each.name = f"{name}_table"
    return Rule(columns, array, tables)


NAG = _rule("nag", _nag, 1, "momentum")
ADAGRAD = _rule("adagrad", _adagrad, 1, "eps")
RMSPROP = _rule("rmsprop", _rmsprop, 1, "gamma1", "gamma2", "epsilon", "clip_weights")
RMSPROP_CENTERED = _rule("rmsprop_centered", _rmsprop_centered, 3, "gamma1", "gamma2", "epsilon", "clip_weights")
ADADELTA = _rule("adadelta", _adadelta, 2, "rho", "epsilon")
FTRL = _rule("ftrl", _ftrl, 2, "lamda1", "beta")
ADAMAX = _rule("adamax", _adamax, 2, "beta1", "beta2")
SIGNUM = _rule("signum", _signum, 1, "momentum", "wd_lh")
SIGNSGD = _rule("signsgd", _signsgd, 0, "momentum", "wd_lh")
FTML = _rule("ftml", _ftml, 3, "beta1", "beta2", "epsilon")
