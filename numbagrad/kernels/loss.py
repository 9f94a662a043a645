"""Losses over (batch, inner) predictions, one number a sample, flat and row-major, float32 or float64.

Labels have any number dtype and are cast element by element. `weight` multiplies a loss.
"""

from typing import Any, NamedTuple

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.kernels.softmax import block_sum, softmax_rows
from numbagrad.native import vmath
from numbagrad.native.compiler import njit
from numbagrad.native.memory import piece, scratch

LABEL_FAILURES = {
    1: (
        MXNetError,
        "SoftmaxCrossEntropyLoss: the label of example {index} is out of range: "
        "every label must be an integer in [0, classes)",
    ),
    2: (
        MXNetError,
        "SoftmaxCrossEntropyLoss: the label of example {index} is NaN or no whole number: "
        "it must be an integer in [0, classes)",
    ),
}


@kernel("in in out out size size scalar", failures=LABEL_FAILURES)
def softmax_ce(x: Any, label: Any, loss: Any, dx: Any, n: int, classes: int, weight: float) -> int:
    """Compute loss[i] = -weight log(softmax(x[i])[label[i]]) and dx[i] = weight (softmax(x[i]) - onehot(label[i]))."""
    for i in range(n):
        if not (label[i] >= 0 and label[i] < classes):
            return 256 * i + (1 if label[i] == label[i] else 2)
        if label[i] != np.int64(label[i]):
            return 256 * i + 2
    factor = x.dtype.type(weight)
    shifts = scratch(n, x.dtype)
    softmax_rows(x, dx, shifts, loss, classes, x.dtype.type(1))
    for i in range(n):
        loss[i] = vmath.log(loss[i])
    for i in range(n):
        at = i * classes + np.int64(label[i])
        loss[i] = factor * (loss[i] - (x[at] - shifts[i]))
        dx[at] -= x.dtype.type(1)
    if factor != 1:
        for i in range(n * classes):
            dx[i] *= factor
    return 0


@kernel("in in out size size")
def scale_rows(g: Any, x: Any, out: Any, n: int, width: int) -> int:
    """Compute out[i] = g[i] x[i] for x and out of (n, width)."""
    for i in range(n):
        row = piece(x, i * width, width)
        scaled = piece(out, i * width, width)
        for j in range(width):
            scaled[j] = g[i] * row[j]
    return 0


@kernel("in in out out size size scalar")
def softmax_ce_dense(x: Any, z: Any, loss: Any, p: Any, n: int, classes: int, weight: float) -> int:
    """Compute loss[i] = -weight sum_j z[i, j] log(softmax(x[i])[j]); z = 0 counts 0 even at probability 0."""
    factor = x.dtype.type(weight)
    shifts = scratch(n, x.dtype)
    softmax_rows(x, p, shifts, loss, classes, x.dtype.type(1))
    for i in range(n):
        loss[i] = vmath.log(loss[i])
    for i in range(n):
        row = piece(x, i * classes, classes)
        target = piece(z, i * classes, classes)
        shift = shifts[i]
        logarithm = loss[i]
        total = np.float64(0)
        for j in range(classes):
            share = x.dtype.type(target[j])
            if share != 0:
                total += np.float64(share * (logarithm - (row[j] - shift)))
        loss[i] = factor * x.dtype.type(total)
    return 0


@kernel("in in in out size size scalar")
def softmax_ce_dense_vjp(g: Any, p: Any, z: Any, dx: Any, n: int, classes: int, weight: float) -> int:
    """Compute dx = weight g (p sum(z) - z)."""
    for i in range(n):
        row = piece(p, i * classes, classes)
        target = piece(z, i * classes, classes)
        out = piece(dx, i * classes, classes)
        total = np.float64(0)
        for j in range(classes):
            total += np.float64(target[j])
        share = p.dtype.type(total)
        factor = p.dtype.type(weight) * g[i]
        for j in range(classes):
            out[j] = factor * (row[j] * share - p.dtype.type(target[j]))
    return 0


@kernel("in in out size size scalar")
def softmax_ce_dense_label_vjp(g: Any, x: Any, dz: Any, n: int, classes: int, weight: float) -> int:
    """Compute dz = -weight g log(softmax(x))."""
    shifts = scratch(n, x.dtype)
    logarithms = scratch(n, x.dtype)
    softmax_rows(x, dz, shifts, logarithms, classes, x.dtype.type(1))
    for i in range(n):
        logarithms[i] = vmath.log(logarithms[i])
    for i in range(n):
        row = piece(x, i * classes, classes)
        out = piece(dz, i * classes, classes)
        factor = x.dtype.type(weight) * g[i]
        for j in range(classes):
            out[j] = factor * (logarithms[i] - (row[j] - shifts[i]))
    return 0


class Averaged(NamedTuple):
    """The kernels of a loss that is the mean over an example of a function of a prediction x and a label z.

    All take x and z of (batch, inner) and at the end ``batch, inner, weight``; what a label is not, NaN, gives NaN.
    """

    forward: Kernel
    """``(x, z, loss, ...)``: the losses."""
    both: Kernel
    """``(x, z, loss, dx, ...)``: the losses, and their derivatives by x, each of its own loss."""
    vjp: Kernel
    """``(g, x, z, dx, ...)``: g times the derivatives by x."""
    label_vjp: Kernel
    """``(g, x, z, dz, ...)``: g times the derivatives by z."""


def _averaged(name: str, term: Any, slope: Any, label_slope: Any) -> Averaged:
    """The kernels for a loss and its two derivatives, functions of x, z, 0 and 1/2, all numbers of one dtype."""

    @njit
    def terms(x: Any, z: Any, out: Any) -> None:
        zero, half = x.dtype.type(0), x.dtype.type(0.5)
        for i in range(out.size):
            out[i] = term(x[i], x.dtype.type(z[i]), zero, half)

    @njit
    def slopes(x: Any, z: Any, dx: Any, factor: Any) -> None:
        zero, half = x.dtype.type(0), x.dtype.type(0.5)
        for i in range(dx.size):
            dx[i] = factor * slope(x[i], x.dtype.type(z[i]), zero, half)

    def forward(x: Any, z: Any, loss: Any, batch: int, inner: int, weight: float) -> int:
        if inner == 1:
            terms(x, z, loss)
            for i in range(batch):
                loss[i] *= loss.dtype.type(weight)
            return 0
        row = scratch(inner, x.dtype)
        for i in range(batch):
            terms(piece(x, i * inner, inner), piece(z, i * inner, inner), row)
            loss[i] = loss.dtype.type(block_sum(row) * weight / np.float64(inner))
        return 0

    def both(x: Any, z: Any, loss: Any, dx: Any, batch: int, inner: int, weight: float) -> int:
        scale = x.dtype.type(weight / np.float64(inner))
        if inner == 1:  # in one loop, where the two share an exponential
            zero, half = x.dtype.type(0), x.dtype.type(0.5)
            for i in range(batch):
                label = x.dtype.type(z[i])
                loss[i] = term(x[i], label, zero, half) * scale
                dx[i] = scale * slope(x[i], label, zero, half)
            return 0
        slopes(x, z, dx, scale)
        return losses(x, z, loss, batch, inner, weight)

    def vjp(g: Any, x: Any, z: Any, dx: Any, batch: int, inner: int, weight: float) -> int:
        scale = x.dtype.type(weight / np.float64(inner))
        zero, half = x.dtype.type(0), x.dtype.type(0.5)
        if inner == 1:
            for i in range(batch):
                dx[i] = scale * g[i] * slope(x[i], x.dtype.type(z[i]), zero, half)
            return 0
        for i in range(batch):
            start = i * inner
            slopes(piece(x, start, inner), piece(z, start, inner), piece(dx, start, inner), scale * g[i])
        return 0

    def label_vjp(g: Any, x: Any, z: Any, dz: Any, batch: int, inner: int, weight: float) -> int:
        scale = x.dtype.type(weight / np.float64(inner))
        zero, half = x.dtype.type(0), x.dtype.type(0.5)
        for i in range(batch):
            factor = scale * g[i]
            for j in range(i * inner, (i + 1) * inner):
                dz[j] = factor * label_slope(x[j], x.dtype.type(z[j]), zero, half)
        return 0

    def named(function: Any, ending: str, roles: str) -> Kernel:
        function.__name__ = name + ending
        return kernel(f"{roles} size size scalar")(function)

    made = named(forward, "", "in in out")
    losses = made.callee
    return Averaged(
        made,
        named(both, "_both", "in in out out"),
        named(vjp, "_vjp", "in in in out"),
        named(label_vjp, "_label_vjp", "in in in out"),
    )


@njit(inline=True)
def _bce(x: Any, z: Any, zero: Any, half: Any) -> Any:
    positive = zero if x <= zero else x
    return positive - x * z + vmath.log1p(vmath.exp(-abs(x)))


@njit(inline=True)
def _bce_slope(x: Any, z: Any, zero: Any, half: Any) -> Any:
    small = vmath.exp(-abs(x))  # shared with the loss where both are computed
    ratio = (half + half) / (half + half + small)
    return (ratio if x >= zero else small * ratio) - z


@njit(inline=True)
def _bce_label_slope(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return -x


@njit(inline=True)
def _half_square(x: Any, z: Any, zero: Any, half: Any) -> Any:
    difference = z - x
    return half * (difference * difference)


@njit(inline=True)
def _difference(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return x - z


@njit(inline=True)
def _opposite_difference(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return z - x


@njit(inline=True)
def _distance(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return abs(z - x)


@njit(inline=True)
def _sign(difference: Any, zero: Any, half: Any) -> Any:
    one = half + half
    return one if difference > zero else (-one if difference < zero else difference)  # of 0 and NaN, itself


@njit(inline=True)
def _distance_slope(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return _sign(x - z, zero, half)


@njit(inline=True)
def _distance_label_slope(x: Any, z: Any, zero: Any, half: Any) -> Any:
    return _sign(z - x, zero, half)


SIGMOID_BCE = _averaged("sigmoid_bce", _bce, _bce_slope, _bce_label_slope)
"""``max(x, 0) - x z + log(1 + exp(-|x|))``; its derivative is ``sigmoid(x) - z``, at x = 0 too."""

L2 = _averaged("l2", _half_square, _difference, _opposite_difference)
"""``(z - x)^2 / 2``."""

L1 = _averaged("l1", _distance, _distance_slope, _distance_label_slope)
"""``|z - x|``, with derivative 0 where they agree."""
