"""Losses over (batch, inner) predictions, one number a sample, flat and row-major, float32 or float64.

Labels have any number dtype and are cast element by element. `weight` multiplies a loss.
"""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.kernels.softmax import block_sum, softmax_rows
from numbagrad.native import vmath
from numbagrad.native.compiler import njit
from numbagrad.native.memory import piece, scratch

LABEL_FAILURES = {
    1: (MXNetError, "SoftmaxCrossEntropyLoss: label out of range: every label must be an integer in [0, classes)"),
    2: (MXNetError, "SoftmaxCrossEntropyLoss: label is NaN or no whole number: it must be an integer in [0, classes)"),
}


@kernel("in in out out size size scalar", failures=LABEL_FAILURES)
def softmax_ce(x: Any, label: Any, loss: Any, p: Any, n: int, classes: int, weight: float) -> int:
    """Compute loss[i] = -weight log(softmax(x[i])[label[i]]), and p (n, classes) = softmax(x) for the VJP."""
    for i in range(n):
        if label[i] != np.floor(label[i]):
            return 2
        if label[i] < 0 or label[i] >= classes:
            return 1
    factor = x.dtype.type(weight)
    shifts = scratch(n, x.dtype)
    softmax_rows(x, p, shifts, loss, classes, x.dtype.type(1))
    for i in range(n):
        loss[i] = vmath.log(loss[i])
    for i in range(n):
        row = piece(x, i * classes, classes)
        loss[i] = factor * (loss[i] - (row[int(label[i])] - shifts[i]))
    return 0


@kernel("in in in out size size scalar")
def softmax_ce_vjp(g: Any, p: Any, label: Any, dx: Any, n: int, classes: int, weight: float) -> int:
    """Compute dx = weight g (p - onehot(label)); the labels have been checked by :data:`softmax_ce`."""
    for i in range(n):
        row = piece(p, i * classes, classes)
        out = piece(dx, i * classes, classes)
        factor = p.dtype.type(weight) * g[i]
        for j in range(classes):
            out[j] = factor * row[j]
        k = int(label[i])
        out[k] = factor * (row[k] - p.dtype.type(1))
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


@njit
def _bce_terms(x: Any, z: Any, out: Any) -> None:
    zero = x.dtype.type(0)
    for i in range(x.size):
        positive = zero if x[i] <= zero else x[i]
        out[i] = positive - x[i] * x.dtype.type(z[i]) + vmath.log1p(vmath.exp(-abs(x[i])))


@njit
def _l2_terms(x: Any, z: Any, out: Any) -> None:
    half = x.dtype.type(0.5)
    for i in range(x.size):
        difference = x.dtype.type(z[i]) - x[i]
        out[i] = half * (difference * difference)


@njit
def _l1_terms(x: Any, z: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = abs(x.dtype.type(z[i]) - x[i])


@njit
def _mean(terms: Any, inner: int, weight: float) -> Any:
    return terms.dtype.type(block_sum(terms) * weight / np.float64(inner))


@njit
def _scale_by(factor: float, loss: Any) -> None:
    for i in range(loss.size):
        loss[i] *= loss.dtype.type(factor)


@kernel("in in out size size scalar")
def sigmoid_bce(x: Any, z: Any, loss: Any, batch: int, inner: int, weight: float) -> int:
    """Compute loss[i] = the mean over j of weight (max(x, 0) - x z + log(1 + exp(-|x|))); a NaN label gives NaN."""
    if inner == 1:
        _bce_terms(x[:batch], z[:batch], loss[:batch])
        _scale_by(weight, loss[:batch])
        return 0
    terms = scratch(inner, x.dtype)
    for i in range(batch):
        _bce_terms(piece(x, i * inner, inner), piece(z, i * inner, inner), terms)
        loss[i] = _mean(terms, inner, weight)
    return 0


@kernel("in in in out size size scalar")
def sigmoid_bce_vjp(g: Any, x: Any, z: Any, dx: Any, batch: int, inner: int, weight: float) -> int:
    """Compute dx = weight g / inner (sigmoid(x) - z), at x = 0 too."""
    scale = x.dtype.type(weight / np.float64(inner))
    if inner == 1:
        for i in range(batch):
            dx[i] = scale * g[i] * (vmath.sigmoid(x[i]) - x.dtype.type(z[i]))
        return 0
    for i in range(batch):
        logits = piece(x, i * inner, inner)
        labels = piece(z, i * inner, inner)
        out = piece(dx, i * inner, inner)
        factor = scale * g[i]
        for j in range(inner):
            out[j] = factor * (vmath.sigmoid(logits[j]) - x.dtype.type(labels[j]))
    return 0


@kernel("in in out size size scalar")
def sigmoid_bce_label_vjp(g: Any, x: Any, dz: Any, batch: int, inner: int, weight: float) -> int:
    """Compute dz = -weight g / inner x."""
    scale = x.dtype.type(weight / np.float64(inner))
    for i in range(batch):
        logits = piece(x, i * inner, inner)
        out = piece(dz, i * inner, inner)
        factor = scale * g[i]
        for j in range(inner):
            out[j] = -(factor * logits[j])
    return 0


@kernel("in in out size size scalar")
def l2(x: Any, z: Any, loss: Any, batch: int, inner: int, weight: float) -> int:
    """Compute loss[i] = the mean over j of weight / 2 (z - x)^2."""
    if inner == 1:
        _l2_terms(x[:batch], z[:batch], loss[:batch])
        _scale_by(weight, loss[:batch])
        return 0
    terms = scratch(inner, x.dtype)
    for i in range(batch):
        _l2_terms(piece(x, i * inner, inner), piece(z, i * inner, inner), terms)
        loss[i] = _mean(terms, inner, weight)
    return 0


@kernel("in in in out size size scalar")
def l2_vjp(g: Any, x: Any, z: Any, dx: Any, batch: int, inner: int, weight: float) -> int:
    """Compute dx = weight g / inner (x - z); exchange x and z for the gradient of the label."""
    scale = x.dtype.type(weight / np.float64(inner))
    for i in range(batch):
        predictions = piece(x, i * inner, inner)
        labels = piece(z, i * inner, inner)
        out = piece(dx, i * inner, inner)
        factor = scale * g[i]
        for j in range(inner):
            out[j] = factor * (predictions[j] - x.dtype.type(labels[j]))
    return 0


@kernel("in in out size size scalar")
def l1(x: Any, z: Any, loss: Any, batch: int, inner: int, weight: float) -> int:
    """Compute loss[i] = the mean over j of weight |z - x|."""
    if inner == 1:
        _l1_terms(x[:batch], z[:batch], loss[:batch])
        _scale_by(weight, loss[:batch])
        return 0
    terms = scratch(inner, x.dtype)
    for i in range(batch):
        _l1_terms(piece(x, i * inner, inner), piece(z, i * inner, inner), terms)
        loss[i] = _mean(terms, inner, weight)
    return 0


@kernel("in in in out size size scalar")
def l1_vjp(g: Any, x: Any, z: Any, dx: Any, batch: int, inner: int, weight: float) -> int:
    """Compute dx = weight g / inner sign(x - z), 0 where they agree; exchange x and z for the gradient of the label."""
    scale = x.dtype.type(weight / np.float64(inner))
    zero = x.dtype.type(0)
    for i in range(batch):
        predictions = piece(x, i * inner, inner)
        labels = piece(z, i * inner, inner)
        out = piece(dx, i * inner, inner)
        factor = scale * g[i]
        for j in range(inner):
            difference = predictions[j] - x.dtype.type(labels[j])
            # difference itself is the sign of 0 and of NaN
            out[j] = factor if difference > zero else (-factor if difference < zero else difference)
    return 0
