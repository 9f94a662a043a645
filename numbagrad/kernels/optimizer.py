"""Optimiser steps over all parameters in one call, through tables of addresses, and over one array.

A table is an int64 array with one address an array; since an address carries no dtype, there is one kernel a dtype.
What changes from step to step is in `hyper`, a flat float64 array with one row a parameter, so that a captured step
reads the new values. The caller answers for the addresses being alive, aligned and contiguous, and for the versions
of what is written.

`rescale` multiplies every gradient; a step adds 1 to the step count of each row.

SGD, a row of :data:`SGD_COLUMNS`:  g = clip(rescale grad) + wd w;  m = momentum m - lr g;  w += m
(w -= lr g where the address of the momentum is 0).

Adam, a row of :data:`ADAM_COLUMNS`:  g = clip(rescale grad + wd w);  m, v = moving averages of g, g^2;
w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)  (Kingma and Ba 2015, section 2, last paragraph).

A `clip` <= 0 is off; NaN passes through it.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import njit
from numbagrad.native.memory import ARRAY_AT

SGD_COLUMNS = ("lr", "wd", "clip", "momentum", "t")
"""The columns of `hyper` for SGD."""

ADAM_COLUMNS = ("lr", "wd", "clip", "beta1", "beta2", "epsilon", "t")
"""The columns of `hyper` for Adam; `t` counts the steps made before."""

_float32_at = ARRAY_AT["float32"]
_float64_at = ARRAY_AT["float64"]


@njit
def _sgd(w: Any, g: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(rescale_grad)
    high = number(hyper[2] if hyper[2] > 0 else np.inf)
    low = -high
    for i in range(w.size):
        scaled = rescale * g[i]
        clipped = high if scaled > high else (low if scaled < low else scaled)
        w[i] -= lr * (clipped + wd * w[i])
    hyper[4] += 1.0


@njit
def _sgd_momentum(w: Any, g: Any, m: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    lr, wd, rescale, momentum = number(hyper[0]), number(hyper[1]), number(rescale_grad), number(hyper[3])
    high = number(hyper[2] if hyper[2] > 0 else np.inf)
    low = -high
    for i in range(w.size):
        scaled = rescale * g[i]
        clipped = high if scaled > high else (low if scaled < low else scaled)
        m[i] = momentum * m[i] - lr * (clipped + wd * w[i])
        w[i] += m[i]
    hyper[4] += 1.0


@njit
def _adam(w: Any, g: Any, m: Any, v: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    hyper[6] += 1.0
    wd, rescale = number(hyper[1]), number(rescale_grad)
    high = number(hyper[2] if hyper[2] > 0 else np.inf)
    low = -high
    beta1, beta2, epsilon = number(hyper[3]), number(hyper[4]), number(hyper[5])
    rest1, rest2 = number(1 - hyper[3]), number(1 - hyper[4])
    lr = number(hyper[0] * np.sqrt(1 - hyper[4] ** hyper[6]) / (1 - hyper[3] ** hyper[6]))
    for i in range(w.size):
        decayed = rescale * g[i] + wd * w[i]
        clipped = high if decayed > high else (low if decayed < low else decayed)
        m[i] = beta1 * m[i] + rest1 * clipped
        v[i] = beta2 * v[i] + rest2 * (clipped * clipped)
        w[i] -= lr * m[i] / (np.sqrt(v[i]) + epsilon)


@kernel("inout in inout scalar")
def sgd_array(w: Any, g: Any, hyper: Any, rescale: float) -> int:
    """SGD without momentum on one array."""
    _sgd(w, g, hyper, rescale)
    return 0


@kernel("inout in inout inout scalar")
def sgd_momentum_array(w: Any, g: Any, m: Any, hyper: Any, rescale: float) -> int:
    """SGD with momentum on one array."""
    _sgd_momentum(w, g, m, hyper, rescale)
    return 0


@kernel("inout in inout inout inout scalar")
def adam_array(w: Any, g: Any, m: Any, v: Any, hyper: Any, rescale: float) -> int:
    """Adam on one array."""
    _adam(w, g, m, v, hyper, rescale)
    return 0


@kernel("in in in in inout size scalar")
def sgd_float32(weights: Any, grads: Any, momenta: Any, sizes: Any, hyper: Any, count: int, rescale: float) -> int:
    """SGD on `count` float32 arrays; a momentum address of 0 means none."""
    for i in range(count):
        w, g = _float32_at(weights[i], sizes[i]), _float32_at(grads[i], sizes[i])
        if momenta[i]:
            _sgd_momentum(w, g, _float32_at(momenta[i], sizes[i]), hyper[5 * i : 5 * i + 5], rescale)
        else:
            _sgd(w, g, hyper[5 * i : 5 * i + 5], rescale)
    return 0


@kernel("in in in in inout size scalar")
def sgd_float64(weights: Any, grads: Any, momenta: Any, sizes: Any, hyper: Any, count: int, rescale: float) -> int:
    """SGD on `count` float64 arrays; a momentum address of 0 means none."""
    for i in range(count):
        w, g = _float64_at(weights[i], sizes[i]), _float64_at(grads[i], sizes[i])
        if momenta[i]:
            _sgd_momentum(w, g, _float64_at(momenta[i], sizes[i]), hyper[5 * i : 5 * i + 5], rescale)
        else:
            _sgd(w, g, hyper[5 * i : 5 * i + 5], rescale)
    return 0


@kernel("in in in in in inout size scalar")
def adam_float32(
    weights: Any, grads: Any, means: Any, variances: Any, sizes: Any, hyper: Any, count: int, rescale: float
) -> int:
    """Adam on `count` float32 arrays."""
    for i in range(count):
        w, g = _float32_at(weights[i], sizes[i]), _float32_at(grads[i], sizes[i])
        m, v = _float32_at(means[i], sizes[i]), _float32_at(variances[i], sizes[i])
        _adam(w, g, m, v, hyper[7 * i : 7 * i + 7], rescale)
    return 0


@kernel("in in in in in inout size scalar")
def adam_float64(
    weights: Any, grads: Any, means: Any, variances: Any, sizes: Any, hyper: Any, count: int, rescale: float
) -> int:
    """Adam on `count` float64 arrays."""
    for i in range(count):
        w, g = _float64_at(weights[i], sizes[i]), _float64_at(grads[i], sizes[i])
        m, v = _float64_at(means[i], sizes[i]), _float64_at(variances[i], sizes[i])
        _adam(w, g, m, v, hyper[7 * i : 7 * i + 7], rescale)
    return 0
