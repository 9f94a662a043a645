"""Optimiser steps over all parameters in one call, through tables of addresses, and over one array.

A table is an int64 array with one address an array; since an address carries no dtype, there is one kernel a dtype.
What changes from step to step is in `hyper`, a flat float64 array with one row a parameter, so that a captured step
reads the new values. The caller answers for the addresses being alive, aligned and contiguous, and for the versions
of what is written.

SGD, a row of :data:`SGD_COLUMNS`:  g = clip(rescale grad) + wd w;  m = momentum m - lr g;  w += m
(w -= lr g where the address of the momentum is 0).

Adam, a row of :data:`ADAM_COLUMNS`:  g = clip(rescale grad + wd w);  m, v = moving averages of g, g^2;
w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)  (Kingma and Ba 2015, section 2, last paragraph).

A `clip` <= 0 is off; NaN passes through it.
"""

import ctypes
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import intrinsic, njit

SGD_COLUMNS = ("lr", "wd", "rescale", "clip", "momentum", "t")
"""The columns of `hyper` for SGD; `t`, the step count, is not read."""

ADAM_COLUMNS = ("lr", "wd", "rescale", "clip", "beta1", "beta2", "epsilon", "t")
"""The columns of `hyper` for Adam; `t` is 1 in the first step."""


def _array_at(dtype: Any, c_type: Any) -> Any:
    """An intrinsic: the 1-D array of `dtype` at an address, with so many elements."""

    def twin(address: int, size: int) -> Any:
        return np.ctypeslib.as_array((c_type * int(size)).from_address(int(address)))

    @intrinsic(twin)
    def array_at(typing_context, address, size):  # type: ignore[no-untyped-def]
        signature = types.Array(dtype, 1, "C")(types.int64, types.int64)

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            address, size = arguments
            array = make_array(signature.return_type)(context, builder)
            item = context.get_constant(types.intp, dtype.bitwidth // 8)
            populate_array(
                array,
                data=builder.inttoptr(address, array.data.type),
                shape=cgutils.pack_array(builder, [size]),
                strides=cgutils.pack_array(builder, [item]),
                itemsize=item,
                meminfo=None,
            )
            return array._getvalue()

        return signature, generate

    return array_at


_float32_at = _array_at(types.float32, ctypes.c_float)
_float64_at = _array_at(types.float64, ctypes.c_double)


@njit
def _sgd(w: Any, g: Any, hyper: Any) -> None:
    number = w.dtype.type
    lr, wd, rescale = number(hyper[0]), number(hyper[1]), number(hyper[2])
    high = number(hyper[3] if hyper[3] > 0 else np.inf)
    low = -high
    for i in range(w.size):
        scaled = rescale * g[i]
        clipped = high if scaled > high else (low if scaled < low else scaled)
        w[i] -= lr * (clipped + wd * w[i])


@njit
def _sgd_momentum(w: Any, g: Any, m: Any, hyper: Any) -> None:
    number = w.dtype.type
    lr, wd, rescale, momentum = number(hyper[0]), number(hyper[1]), number(hyper[2]), number(hyper[4])
    high = number(hyper[3] if hyper[3] > 0 else np.inf)
    low = -high
    for i in range(w.size):
        scaled = rescale * g[i]
        clipped = high if scaled > high else (low if scaled < low else scaled)
        m[i] = momentum * m[i] - lr * (clipped + wd * w[i])
        w[i] += m[i]


@njit
def _adam(w: Any, g: Any, m: Any, v: Any, hyper: Any) -> None:
    number = w.dtype.type
    wd, rescale = number(hyper[1]), number(hyper[2])
    high = number(hyper[3] if hyper[3] > 0 else np.inf)
    low = -high
    beta1, beta2, epsilon = number(hyper[4]), number(hyper[5]), number(hyper[6])
    rest1, rest2 = number(1 - hyper[4]), number(1 - hyper[5])
    lr = number(hyper[0] * np.sqrt(1 - hyper[5] ** hyper[7]) / (1 - hyper[4] ** hyper[7]))
    for i in range(w.size):
        decayed = rescale * g[i] + wd * w[i]
        clipped = high if decayed > high else (low if decayed < low else decayed)
        m[i] = beta1 * m[i] + rest1 * clipped
        v[i] = beta2 * v[i] + rest2 * (clipped * clipped)
        w[i] -= lr * m[i] / (np.sqrt(v[i]) + epsilon)


@kernel("inout in in")
def sgd_array(w: Any, g: Any, hyper: Any) -> int:
    """SGD without momentum on one array."""
    _sgd(w, g, hyper)
    return 0


@kernel("inout in inout in")
def sgd_momentum_array(w: Any, g: Any, m: Any, hyper: Any) -> int:
    """SGD with momentum on one array."""
    _sgd_momentum(w, g, m, hyper)
    return 0


@kernel("inout in inout inout in")
def adam_array(w: Any, g: Any, m: Any, v: Any, hyper: Any) -> int:
    """Adam on one array."""
    _adam(w, g, m, v, hyper)
    return 0


@kernel("in in in in in size")
def sgd_float32(weights: Any, grads: Any, momenta: Any, sizes: Any, hyper: Any, count: int) -> int:
    """SGD on `count` float32 arrays; a momentum address of 0 means none."""
    for i in range(count):
        w, g = _float32_at(weights[i], sizes[i]), _float32_at(grads[i], sizes[i])
        if momenta[i]:
            _sgd_momentum(w, g, _float32_at(momenta[i], sizes[i]), hyper[6 * i : 6 * i + 6])
        else:
            _sgd(w, g, hyper[6 * i : 6 * i + 6])
    return 0


@kernel("in in in in in size")
def sgd_float64(weights: Any, grads: Any, momenta: Any, sizes: Any, hyper: Any, count: int) -> int:
    """SGD on `count` float64 arrays; a momentum address of 0 means none."""
    for i in range(count):
        w, g = _float64_at(weights[i], sizes[i]), _float64_at(grads[i], sizes[i])
        if momenta[i]:
            _sgd_momentum(w, g, _float64_at(momenta[i], sizes[i]), hyper[6 * i : 6 * i + 6])
        else:
            _sgd(w, g, hyper[6 * i : 6 * i + 6])
    return 0


@kernel("in in in in in in size")
def adam_float32(weights: Any, grads: Any, means: Any, variances: Any, sizes: Any, hyper: Any, count: int) -> int:
    """Adam on `count` float32 arrays."""
    for i in range(count):
        w, g = _float32_at(weights[i], sizes[i]), _float32_at(grads[i], sizes[i])
        m, v = _float32_at(means[i], sizes[i]), _float32_at(variances[i], sizes[i])
        _adam(w, g, m, v, hyper[8 * i : 8 * i + 8])
    return 0


@kernel("in in in in in in size")
def adam_float64(weights: Any, grads: Any, means: Any, variances: Any, sizes: Any, hyper: Any, count: int) -> int:
    """Adam on `count` float64 arrays."""
    for i in range(count):
        w, g = _float64_at(weights[i], sizes[i]), _float64_at(grads[i], sizes[i])
        m, v = _float64_at(means[i], sizes[i]), _float64_at(variances[i], sizes[i])
        _adam(w, g, m, v, hyper[8 * i : 8 * i + 8])
    return 0
