"""Steps of the optimisers beyond SGD and Adam; see ``kernels.rule`` for tables, rows of `hyper` and clipping.

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

from typing import Any

import numpy as np

from numbagrad.kernels.rule import kernels_of
from numbagrad.native.compiler import njit


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


NAG = kernels_of("nag", _nag, 1, "momentum")
ADAGRAD = kernels_of("adagrad", _adagrad, 1, "eps")
RMSPROP = kernels_of("rmsprop", _rmsprop, 1, "gamma1", "gamma2", "epsilon", "clip_weights")
RMSPROP_CENTERED = kernels_of("rmsprop_centered", _rmsprop_centered, 3, "gamma1", "gamma2", "epsilon", "clip_weights")
ADADELTA = kernels_of("adadelta", _adadelta, 2, "rho", "epsilon")
FTRL = kernels_of("ftrl", _ftrl, 2, "lamda1", "beta")
ADAMAX = kernels_of("adamax", _adamax, 2, "beta1", "beta2")
SIGNUM = kernels_of("signum", _signum, 1, "momentum", "wd_lh")
SIGNSGD = kernels_of("signsgd", _signsgd, 0, "momentum", "wd_lh")
FTML = kernels_of("ftml", _ftml, 3, "beta1", "beta2", "epsilon")
