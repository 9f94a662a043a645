"""Optimiser steps over all parameters in one call, through tables of addresses, and over one array.

A table is an int64 array with a row of addresses a parameter; since an address carries no dtype, there is one kernel a
dtype.
What changes from step to step is in `hyper`, a flat float64 array with one row a parameter, so that a captured step
reads the new values. The caller answers for the addresses being alive, aligned and contiguous, and for the versions
of what is written.

`rescale` multiplies every gradient; a step adds 1 to the step count of each row.

SGD, a row of :data:`SGD_COLUMNS`:  g = clip(rescale grad) + wd w;  m = momentum m - lr g;  w += m
(w -= lr g without momentum).

Adam, a row of :data:`ADAM_COLUMNS`:  g = clip(rescale grad + wd w);  m, v = moving averages of g, g^2;
w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)  (Kingma and Ba 2015, section 2, last paragraph).

A `clip` <= 0 is off; NaN passes through it.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import njit
from numbagrad.native.memory import ARRAY_AT, piece

SGD_COLUMNS = ("lr", "wd", "clip", "momentum", "t")
"""The columns of `hyper` for SGD."""

ADAM_COLUMNS = ("lr", "wd", "clip", "beta1", "beta2", "epsilon", "t")
"""The columns of `hyper` for Adam; `t` counts the steps made before."""


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


def _sgd_table(at: Any) -> Kernel:
    @kernel("in inout size scalar")
    def sgd_table(table: Any, hyper: Any, count: int, rescale: float) -> int:
        for i in range(count):
            row = piece(table, 3 * i, 3)
            _sgd(at(row[0], row[2]), at(row[1], row[2]), piece(hyper, 5 * i, 5), rescale)
        return 0

    return sgd_table


def _sgd_momentum_table(at: Any) -> Kernel:
    @kernel("in inout size scalar")
    def sgd_momentum_table(table: Any, hyper: Any, count: int, rescale: float) -> int:
        for i in range(count):
            row = piece(table, 4 * i, 4)
            _sgd_momentum(at(row[0], row[3]), at(row[1], row[3]), at(row[2], row[3]), piece(hyper, 5 * i, 5), rescale)
        return 0

    return sgd_momentum_table


def _adam_table(at: Any) -> Kernel:
    @kernel("in inout size scalar")
    def adam_table(table: Any, hyper: Any, count: int, rescale: float) -> int:
        for i in range(count):
            row = piece(table, 5 * i, 5)
            w, g = at(row[0], row[4]), at(row[1], row[4])
            _adam(w, g, at(row[2], row[4]), at(row[3], row[4]), piece(hyper, 7 * i, 7), rescale)
        return 0

    return adam_table


SGD_TABLE = {dtype: _sgd_table(ARRAY_AT[dtype]) for dtype in ("float32", "float64")}
"""By dtype: ``kernel(table, hyper, count, rescale)``; a row of the table is the addresses of a weight and its gradient,
and their size."""

SGD_MOMENTUM_TABLE = {dtype: _sgd_momentum_table(ARRAY_AT[dtype]) for dtype in ("float32", "float64")}
"""The same with the address of the momentum before the size."""

ADAM_TABLE = {dtype: _adam_table(ARRAY_AT[dtype]) for dtype in ("float32", "float64")}
"""The same with the addresses of the two moving averages before the size."""
