"""A whole Dense layer in one kernel each way, and the parts that make it up.

y (n, units) = act(x W' + b) with x (n, in_units), W (units, in_units), b (units,), everything flat and row-major.
A graph compiler that fuses for itself takes :func:`dense_parts` and :func:`dense_vjp_parts` instead: the same
loops as separate kernels, with the same bits.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.gemm import TOO_LARGE, gemm, gemm_into
from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native import blas, vmath
from numbagrad.native.compiler import njit

ACTIVATIONS = {None: 0, "relu": 1, "sigmoid": 2, "tanh": 3, "softrelu": 4, "softsign": 5}
"""MXNet's name of an activation -> the code that the kernels take as `act`."""

_BLOCK = 1024
"""Elements that get their bias and then their activation while they are in the cache."""

Part = tuple[Kernel, tuple[Any, ...]]


@njit
def _activate(y: Any, act: int) -> None:
    """y = act(y) in place; NaN stays NaN."""
    one = y.dtype.type(1)
    zero = y.dtype.type(0)
    if act == 1:
        for i in range(y.size):
            y[i] = zero if y[i] <= zero else y[i]
    elif act == 2:
        for i in range(y.size):
            y[i] = vmath.sigmoid(y[i])
    elif act == 3:
        for i in range(y.size):
            y[i] = vmath.tanh(y[i])
    elif act == 4:
        for i in range(y.size):
            y[i] = vmath.softplus(y[i])
    elif act == 5:
        for i in range(y.size):
            y[i] = y[i] / (one + abs(y[i]))


@njit
def _add_bias(y: Any, b: Any) -> None:
    for j in range(b.size):
        y[j] += b[j]


@njit
def _add_bias_relu(y: Any, b: Any) -> None:
    zero = y.dtype.type(0)
    for j in range(b.size):
        value = y[j] + b[j]
        y[j] = zero if value <= zero else value


@njit
def _bias_act(y: Any, b: Any, n: int, units: int, act: int) -> None:
    bias = b[:units]
    if act == 1:
        for i in range(n):
            _add_bias_relu(y[i * units : i * units + units], bias)
        return
    rows = max(1, _BLOCK // max(1, units))
    for start in range(0, n, rows):
        block = y[start * units : min(n, start + rows) * units]
        for i in range(min(n, start + rows) - start):
            _add_bias(block[i * units : i * units + units], bias)
        if act:
            _activate(block, act)


@njit
def _act_vjp(g: Any, y: Any, gz: Any, act: int) -> None:
    """gz = g act'(x), written in y = act(x); relu'(0) is 0 and a unit that is off passes nothing on, not even NaN."""
    one = y.dtype.type(1)
    zero = y.dtype.type(0)
    if act == 0:
        for i in range(g.size):
            gz[i] = g[i]
    elif act == 1:
        for i in range(g.size):
            gz[i] = g[i] if y[i] > zero else (zero if y[i] <= zero else y[i])
    elif act == 2:
        for i in range(g.size):
            gz[i] = g[i] * (y[i] * (one - y[i]))
    elif act == 3:
        for i in range(g.size):
            gz[i] = g[i] * (one - y[i] * y[i])
    elif act == 4:  # sigmoid(x) = 1 - exp(-y)
        for i in range(g.size):
            gz[i] = g[i] * -vmath.expm1(-y[i])
    elif act == 5:  # 1 / (1 + |x|) = 1 - |y|
        for i in range(g.size):
            rest = one - abs(y[i])
            gz[i] = g[i] * (rest * rest)


@njit
def _add_four_rows(rows: Any, sums: Any) -> None:
    width = sums.size
    for j in range(width):
        sums[j] += np.float64((rows[j] + rows[width + j]) + (rows[2 * width + j] + rows[3 * width + j]))


@njit
def _add_row(row: Any, sums: Any) -> None:
    for j in range(sums.size):
        sums[j] += np.float64(row[j])


@njit
def _column_sums(g: Any, out: Any, n: int, units: int, add: int) -> None:
    """The sum over rows, four rows at a time in the dtype of g and float64 across: error does not grow with n."""
    sums = np.zeros(units, np.float64)
    fours = n // 4
    for i in range(fours):
        _add_four_rows(g[4 * i * units : 4 * (i + 1) * units], sums)
    for i in range(n - 4 * fours):
        _add_row(g[(4 * fours + i) * units : (4 * fours + i + 1) * units], sums)
    if add:
        for j in range(units):
            out[j] += out.dtype.type(sums[j])
    else:
        for j in range(units):
            out[j] = sums[j]


@kernel("inout in size size static")
def bias_act(y: Any, b: Any, n: int, units: int, act: int) -> int:
    """y (n, units) = act(y + b) in place."""
    _bias_act(y, b, n, units, act)
    return 0


@kernel("inout size static")
def activate(y: Any, size: int, act: int) -> int:
    """y = act(y) in place."""
    _activate(y[:size], act)
    return 0


@kernel("in in out size static")
def act_vjp(g: Any, y: Any, gz: Any, size: int, act: int) -> int:
    """gz = g act'(x), from the head gradient g and the result y = act(x)."""
    _act_vjp(g[:size], y[:size], gz[:size], act)
    return 0


@kernel("in out size size")
def column_sum(g: Any, out: Any, n: int, units: int) -> int:
    """out (units,) = the sum of the rows of g (n, units)."""
    _column_sums(g, out, n, units, 0)
    return 0


@kernel("in inout size size")
def column_sum_into(g: Any, out: Any, n: int, units: int) -> int:
    """out (units,) += the sum of the rows of g (n, units)."""
    _column_sums(g, out, n, units, 1)
    return 0


@kernel("in in in out size size size static static", failures=TOO_LARGE)
def dense(x: Any, w: Any, b: Any, y: Any, n: int, units: int, in_units: int, has_bias: int, act: int) -> int:
    """y = act(x W' + b); without bias `b` is any array of the dtype."""
    if not blas.fits(n, units, in_units):
        return 1
    out = y[: n * units]
    blas.gemm(0, 1, n, units, in_units, y.dtype.type(1), x, w, y.dtype.type(0), out)
    if has_bias:
        _bias_act(out, b, n, units, act)
    elif act:
        _activate(out, act)
    return 0


def dense_parts(
    x: Any, w: Any, b: Any, y: Any, n: int, units: int, in_units: int, has_bias: int, act: int
) -> list[Part]:
    """What :data:`dense` does with these arguments, as kernel calls in order."""
    parts: list[Part] = [(gemm, (x, w, y, n, units, in_units, 0, 1, 1.0))]
    if has_bias:
        parts.append((bias_act, (y, b, n, units, act)))
    elif act:
        parts.append((activate, (y, n * units, act)))
    return parts


@kernel("in in in in out out inout inout size size size static static static static static static", failures=TOO_LARGE)
def dense_vjp(
    g: Any,
    x: Any,
    w: Any,
    y: Any,
    scratch: Any,
    dx: Any,
    dw: Any,
    db: Any,
    n: int,
    units: int,
    in_units: int,
    act: int,
    want_x: int,
    want_w: int,
    want_b: int,
    add_w: int,
    add_b: int,
) -> int:
    """dx = gz W, dw = gz' x, db = the column sums of gz, where gz = g act'(x W' + b).

    `scratch` (n, units) receives gz unless `act` is 0. `want_*` say which gradients are wanted, `add_w` and `add_b` that
    dw and db are added to what is there. Whatever is not wanted or not needed is any array of the dtype, and is neither
    read nor written.
    """
    if not blas.fits(n, units, in_units):
        return 1
    one = g.dtype.type(1)
    zero = g.dtype.type(0)
    gz = g[: n * units]
    if act:
        gz = scratch[: n * units]
        _act_vjp(g[: n * units], y[: n * units], gz, act)
    if want_b:
        _column_sums(gz, db, n, units, add_b)
    if want_w:
        blas.gemm(1, 0, units, in_units, n, one, gz, x, one if add_w else zero, dw)
    if want_x:
        blas.gemm(0, 0, n, in_units, units, one, gz, w, zero, dx)
    return 0


def dense_vjp_parts(
    g: Any,
    x: Any,
    w: Any,
    y: Any,
    scratch: Any,
    dx: Any,
    dw: Any,
    db: Any,
    n: int,
    units: int,
    in_units: int,
    act: int,
    want_x: int,
    want_w: int,
    want_b: int,
    add_w: int,
    add_b: int,
) -> list[Part]:
    """What :data:`dense_vjp` does with these arguments, as kernel calls in order."""
    parts: list[Part] = []
    gz = g
    if act and (want_x or want_w or want_b):
        gz = scratch
        parts.append((act_vjp, (g, y, scratch, n * units, act)))
    if want_b:
        parts.append((column_sum_into if add_b else column_sum, (gz, db, n, units)))
    if want_w:
        parts.append((gemm_into if add_w else gemm, (gz, x, dw, units, in_units, n, 1, 0, 1.0)))
    if want_x:
        parts.append((gemm, (gz, w, dx, n, in_units, units, 0, 0, 1.0)))
    return parts
