"""The step of LAMB (You et al. 2020); see ``kernels.rule`` for tables, rows of `hyper` and clipping.

g = clip(rescale grad);  m, v = moving averages of g, g^2;  u = M / (sqrt(V) + epsilon) + wd w, where M and V are m and
v over 1 - beta^t if `bias` is not 0;  w -= lr |w| / |u| u, the norm of w within [lower, upper], the ratio 1 where one
of the norms is 0.

The array is read twice, for the norms and for the step, so that u needs no memory of the array's size.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.rule import kernels_of
from numbagrad.kernels.softmax import block_dot
from numbagrad.native.compiler import njit

_BLOCK = 1024  # elements that are in the cache for both norms


@njit
def _lamb(w: Any, g: Any, m: Any, v: Any, hyper: Any, rescale_grad: float) -> None:
    number = w.dtype.type
    hyper[9] += 1.0
    wd, rescale = number(hyper[1]), number(rescale_grad)
    high = number(hyper[2] if hyper[2] > 0 else np.inf)
    low = -high
    beta1, beta2, epsilon = number(hyper[3]), number(hyper[4]), number(hyper[5])
    rest1, rest2 = number(1 - hyper[3]), number(1 - hyper[4])
    corrected = hyper[8] != 0
    made1 = number(1 - hyper[3] ** hyper[9] if corrected else 1.0)
    made2 = number(1 - hyper[4] ** hyper[9] if corrected else 1.0)
    n = w.size
    u = np.empty(min(n, _BLOCK), w.dtype)
    size = length = 0.0
    for start in range(0, n, _BLOCK):
        count = min(_BLOCK, n - start)
        wb, gb = w[start : start + count], g[start : start + count]
        mb, vb = m[start : start + count], v[start : start + count]
        for i in range(count):
            scaled = rescale * gb[i]
            clipped = high if scaled > high else (low if scaled < low else scaled)
            mb[i] = beta1 * mb[i] + rest1 * clipped
            vb[i] = beta2 * vb[i] + rest2 * (clipped * clipped)
            u[i] = mb[i] / made1 / (np.sqrt(vb[i] / made2) + epsilon) + wd * wb[i]
        size += block_dot(wb, wb)
        length += block_dot(u[:count], u[:count])
    size, length = min(max(np.sqrt(size), hyper[6]), hyper[7]), np.sqrt(length)
    lr = number(hyper[0] * (size / length if size * length != 0 else 1.0))
    for i in range(n):
        w[i] -= lr * (m[i] / made1 / (np.sqrt(v[i] / made2) + epsilon) + wd * w[i])


LAMB = kernels_of("lamb", _lamb, 2, "beta1", "beta2", "epsilon", "lower", "upper", "bias")
