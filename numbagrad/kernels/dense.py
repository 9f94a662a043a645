"""A whole Dense layer in one kernel each way, and the parts that make it up.

y (n, units) = act(x W' + b) with x (n, in_units), W (units, in_units), b (units,), everything flat and row-major.
A graph compiler that fuses for itself takes :func:`dense_parts` and :func:`dense_vjp_parts` instead: the same
loops as separate kernels, with the same bits.

Each composite exists twice: for all activations, and, quicker to compile, for none and relu alone. :data:`DENSE` and
:data:`DENSE_VJP` choose.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.gemm import TOO_LARGE, gemm, gemm_into
from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native import blas, vmath
from numbagrad.native.compiler import njit
from numbagrad.native.memory import piece, scratch

ACTIVATIONS = {None: 0, "relu": 1, "sigmoid": 2, "tanh": 3, "softrelu": 4, "softsign": 5}
"""MXNet's name of an activation -> the code that the kernels take as `act`."""

_BLOCK = 1024
"""Elements that get their bias and then their activation while they are in the cache."""

_NO, _YES = np.int64(0), np.int64(1)
"""Flags that Numba does not take for literals, with a copy of the callee for each."""

WANT_X, WANT_W, WANT_B, ADD_W, ADD_B = 1, 2, 4, 8, 16
"""What a VJP is to do, as a sum: the gradients that are wanted, and those of them that are added to what is there."""

Part = tuple[Kernel, tuple[Any, ...]]


@kernel("inout in size size static static", apart=True)
def bias_act(y: Any, b: Any, n: int, units: int, has_bias: int, act: int) -> int:
    """Compute y (n, units) = relu(y + b) in place for `act` 1, y + b for 0; b is not read if has_bias is 0.

    NaN stays NaN.
    """
    low = y.dtype.type(0) if act else y.dtype.type(-np.inf)
    for i in range(n):
        row = piece(y, i * units, units)
        for j in range(units):
            value = row[j] + b[j] if has_bias else row[j]
            row[j] = low if value <= low else value
    return 0


@njit(apart=True)
def _smooth(y: Any, size: int, act: int) -> None:
    """Compute y = act(y) for an `act` from 2 on; apart, for in a loop over blocks LLVM makes it a quarter slower."""
    one = y.dtype.type(1)
    if act == 2:
        for i in range(size):
            y[i] = vmath.sigmoid(y[i])
    elif act == 3:
        for i in range(size):
            y[i] = vmath.tanh(y[i])
    elif act == 4:
        for i in range(size):
            y[i] = vmath.softplus(y[i])
    else:
        for i in range(size):
            y[i] = y[i] / (one + abs(y[i]))


_bias_piecewise = bias_act.callee  # as other kernels call it


@njit
def _bias_smooth(y: Any, b: Any, n: int, units: int, has_bias: int, act: int) -> None:
    """Compute y = act(y + b) by blocks of rows, for an `act` from 2 on."""
    rows = max(1, _BLOCK // max(1, units))
    for start in range(0, n, rows):
        count = min(n - start, rows)
        block = piece(y, start * units, count * units)
        if has_bias:
            for i in range(count):
                row = piece(block, i * units, units)
                for j in range(units):
                    row[j] += b[j]
        _smooth(block, count * units, act)


@njit
def _bias_any(y: Any, b: Any, n: int, units: int, has_bias: int, act: int) -> None:
    if act < 2:
        _bias_piecewise(y, b, n, units, has_bias, act)
    else:
        _bias_smooth(y, b, n, units, has_bias, act)


@kernel("in in out size static", apart=True)
def act_vjp(g: Any, y: Any, gz: Any, size: int, act: int) -> int:
    """Compute gz = g relu'(x), from the head gradient g and the result y = relu(x).

    relu'(0) is 0, and a unit that is off passes nothing on, not even NaN.
    """
    zero = y.dtype.type(0)
    for i in range(size):
        gz[i] = g[i] if y[i] > zero else (zero if y[i] <= zero else y[i])
    return 0


_vjp_piecewise = act_vjp.callee


@njit
def _vjp_smooth(g: Any, y: Any, gz: Any, size: int, act: int) -> None:
    """Compute gz = g act'(x), written in y = act(x), for an `act` from 2 on."""
    one = y.dtype.type(1)
    if act == 2:
        for i in range(size):
            gz[i] = g[i] * (y[i] * (one - y[i]))
    elif act == 3:
        for i in range(size):
            gz[i] = g[i] * (one - y[i] * y[i])
    elif act == 4:  # sigmoid(x) = 1 - exp(-y)
        for i in range(size):
            gz[i] = g[i] * -vmath.expm1(-y[i])
    else:  # 1 / (1 + |x|) = 1 - |y|
        for i in range(size):
            rest = one - abs(y[i])
            gz[i] = g[i] * (rest * rest)


@njit
def _vjp_any(g: Any, y: Any, gz: Any, size: int, act: int) -> None:
    if act < 2:
        _vjp_piecewise(g, y, gz, size, act)
    else:
        _vjp_smooth(g, y, gz, size, act)


@njit(apart=True)
def _column_sums(g: Any, out: Any, n: int, units: int, add: int) -> None:
    """The sum over rows, in float64: its error does not grow with n."""
    sums = scratch(units, np.float64)
    for j in range(sums.size):
        sums[j] = np.float64(out[j]) if add else 0.0
    for i in range(n):
        row = piece(g, i * units, units)
        for j in range(sums.size):
            sums[j] += row[j]
    for j in range(sums.size):
        out[j] = sums[j]


@kernel("inout in size size static static")
def bias_act_smooth(y: Any, b: Any, n: int, units: int, has_bias: int, act: int) -> int:
    """Compute y (n, units) = act(y + b) in place for an `act` from 2 on; b is not read if has_bias is 0."""
    _bias_smooth(y, b, n, units, has_bias, act)
    return 0


@kernel("in in out size static")
def act_vjp_smooth(g: Any, y: Any, gz: Any, size: int, act: int) -> int:
    """Compute gz = g act'(x), from the head gradient g and the result y = act(x), for an `act` from 2 on."""
    _vjp_smooth(g, y, gz, size, act)
    return 0


@kernel("in out size size")
def column_sum(g: Any, out: Any, n: int, units: int) -> int:
    """Compute out (units,) = the sum of the rows of g (n, units)."""
    _column_sums(g, out, n, units, _NO)
    return 0


@kernel("in inout size size")
def column_sum_into(g: Any, out: Any, n: int, units: int) -> int:
    """Compute out (units,) += the sum of the rows of g (n, units)."""
    _column_sums(g, out, n, units, _YES)
    return 0


def _dense(bias_act: Any) -> Kernel:
    @kernel("in in in out size size size static static", failures=TOO_LARGE)
    def dense(x: Any, w: Any, b: Any, y: Any, n: int, units: int, in_units: int, has_bias: int, act: int) -> int:
        if n | units | in_units > blas.LONGEST:
            return 1
        blas.gemm(_NO, _YES, n, units, in_units, y.dtype.type(1), x, w, y.dtype.type(0), y)
        if has_bias or act:
            bias_act(y, b, n, units, has_bias, act)
        return 0

    return dense


dense = _dense(_bias_any)
"""y = act(x W' + b): ``dense(x, w, b, y, n, units, in_units, has_bias, act)``.

Without bias `b` is any array of the dtype.
"""

dense_piecewise = _dense(_bias_piecewise)
""":data:`dense` for the codes 0 and 1 alone."""


def dense_parts(
    x: Any, w: Any, b: Any, y: Any, n: int, units: int, in_units: int, has_bias: int, act: int
) -> list[Part]:
    """What :data:`dense` does with these arguments, as kernel calls in order."""
    parts: list[Part] = [(gemm, (x, w, y, n, units, in_units, 0, 1, 1.0))]
    if has_bias or act:
        parts.append((bias_act if act < 2 else bias_act_smooth, (y, b, n, units, has_bias, act)))
    return parts


def _dense_vjp(act_vjp: Any) -> Kernel:
    roles = "in in in in out out inout inout size size size static static"

    @kernel(roles, failures=TOO_LARGE)
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
        what: int,
    ) -> int:
        if n | units | in_units > blas.LONGEST:
            return 1
        one = g.dtype.type(1)
        zero = g.dtype.type(0)
        gz = g
        if act:
            gz = scratch
            act_vjp(g, y, scratch, n * units, act)
        if what & WANT_B:
            _column_sums(gz, db, n, units, what & ADD_B)
        if what & WANT_W:
            blas.gemm(_YES, _NO, units, in_units, n, one, gz, x, one if what & ADD_W else zero, dw)
        if what & WANT_X:
            blas.gemm(_NO, _NO, n, in_units, units, one, gz, w, zero, dx)
        return 0

    return dense_vjp


dense_vjp = _dense_vjp(_vjp_any)
"""dx = gz W, dw = gz' x, db = the column sums of gz, where gz = g act'(x W' + b).

``dense_vjp(g, x, w, y, scratch, dx, dw, db, n, units, in_units, act, what)``

`scratch` (n, units) receives gz unless `act` is 0; `what` is a sum of :data:`WANT_X` and its kin. What is not wanted or
not needed is any array of the dtype, and is neither read nor written.
"""

dense_vjp_piecewise = _dense_vjp(_vjp_piecewise)
""":data:`dense_vjp` for the codes 0 and 1 alone."""

DENSE = (dense_piecewise, dense_piecewise, dense, dense, dense, dense)
"""By `act`: the forward kernel that is quickest to compile."""

DENSE_VJP = (dense_vjp_piecewise, dense_vjp_piecewise, dense_vjp, dense_vjp, dense_vjp, dense_vjp)
"""By `act`: the VJP kernel that is quickest to compile."""


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
    what: int,
) -> list[Part]:
    """What :data:`dense_vjp` does with these arguments, as kernel calls in order."""
    parts: list[Part] = []
    gz = g
    if act and what & (WANT_X | WANT_W | WANT_B):
        gz = scratch
        parts.append((act_vjp if act < 2 else act_vjp_smooth, (g, y, scratch, n * units, act)))
    if what & WANT_B:
        parts.append((column_sum_into if what & ADD_B else column_sum, (gz, db, n, units)))
    if what & WANT_W:
        parts.append((gemm_into if what & ADD_W else gemm, (gz, x, dw, units, in_units, n, 1, 0, 1.0)))
    if what & WANT_X:
        parts.append((gemm, (gz, w, dx, n, in_units, units, 0, 0, 1.0)))
    return parts


for _kernel in {dense, dense_piecewise}:
    _kernel.parts = dense_parts
for _kernel in {dense_vjp, dense_vjp_piecewise}:
    _kernel.parts = dense_vjp_parts
