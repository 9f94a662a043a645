"""The steps of SGD and Adam; see ``kernels.rule`` for tables, rows of `hyper` and clipping.

SGD:  g = clip(rescale grad) + wd w;  m = momentum m - lr g;  w += m  (w -= lr g without momentum).

Adam:  g = clip(rescale grad + wd w);  m, v = moving averages of g, g^2;
w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)  (Kingma and Ba 2015, section 2, last paragraph).
"""

from typing import Any

import numpy as np

from numbagrad.kernels.rule import kernels_of
from numbagrad.native.compiler import njit
from numbagrad.native.memory import piece


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
def _adam_begin(hyper: Any, i: int) -> None:
    """Write the correction of the rate at the new count, which takes as long as the update of sixty elements."""
    row = piece(hyper, 8 * i, 8)
    before = piece(hyper, 8 * max(i - 1, 0), 8)
    row[7] += 1.0
    if i > 0 and row[3] == before[3] and row[4] == before[4] and row[7] == before[7]:
        row[6] = before[6]
    else:
        row[6] = np.sqrt(1 - row[4] ** row[7]) / (1 - row[3] ** row[7])


@njit
def _adam(w: Any, g: Any, m: Any, v: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    wd, rescale = number(hyper[1]), number(rescale_grad)
    high = number(hyper[2] if hyper[2] > 0 else np.inf)
    low = -high
    beta1, beta2, epsilon = number(hyper[3]), number(hyper[4]), number(hyper[5])
    rest1, rest2 = number(1 - hyper[3]), number(1 - hyper[4])
    lr = number(hyper[0] * hyper[6])
    for i in range(w.size):
        decayed = rescale * g[i] + wd * w[i]
        clipped = high if decayed > high else (low if decayed < low else decayed)
        m[i] = beta1 * m[i] + rest1 * clipped
        v[i] = beta2 * v[i] + rest2 * (clipped * clipped)
        w[i] -= lr * m[i] / (np.sqrt(v[i]) + epsilon)


SGD = kernels_of("sgd", _sgd, 0, "momentum")
SGD_MOMENTUM = kernels_of("sgd_momentum", _sgd_momentum, 1, "momentum")
ADAM = kernels_of("adam", _adam, 2, "beta1", "beta2", "epsilon", "correction", begin=_adam_begin)
