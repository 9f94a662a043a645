"""Softmax and its logarithm along the middle axis of (outer, n, inner), flat and row-major.

Both shift by the largest element, so that no finite input overflows; a row with NaN or +inf gives NaN.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native import vmath
from numbagrad.native.compiler import REASSOCIATE, njit
from numbagrad.native.memory import piece
from numbagrad.native.vmath.intrinsics import greater

_BLOCK = 1024
"""Elements summed in their own dtype before float64 takes over."""


@njit
def largest(x: Any) -> Any:
    """The largest element; NaN if there is one, -inf of nothing."""
    best = x.dtype.type(-np.inf)
    for i in range(x.size):
        best = greater(best, x[i])
    return best


@njit(fastmath=REASSOCIATE)
def block_sum(x: Any) -> float:
    """The sum in float64 of sums of :data:`_BLOCK` elements in the dtype of x."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        rest = x.size - start
        block = piece(x, start, rest if rest < _BLOCK else _BLOCK)
        part = x.dtype.type(0)
        for i in range(block.size):
            part += block[i]
        total += np.float64(part)
    return total


@njit(fastmath=REASSOCIATE)
def block_dot(x: Any, y: Any) -> float:
    """The sum of x y, as :func:`block_sum`."""
    total = np.float64(0)
    for start in range(0, x.size, _BLOCK):
        rest = x.size - start
        size = rest if rest < _BLOCK else _BLOCK
        left = piece(x, start, size)
        right = piece(y, start, size)
        part = x.dtype.type(0)
        for i in range(left.size):
            part += left[i] * right[i]
        total += np.float64(part)
    return total


@njit(apart=True)
def softmax_rows(x: Any, p: Any, shifts: Any, sums: Any, n: int, scale: Any) -> None:
    """Compute p = softmax(scale x) of rows of n elements, the shift of each row and the sum of its exponentials."""
    rows = shifts.size
    for i in range(rows):
        row = piece(x, i * n, n)
        out = piece(p, i * n, n)
        shift = largest(row)
        shifts[i] = shift
        for j in range(n):
            out[j] = (row[j] - shift) * scale
    for i in range(rows * n):  # across the rows: a short row leaves no vectors
        p[i] = vmath.exp(p[i])
    for i in range(rows):
        out = piece(p, i * n, n)
        total = x.dtype.type(block_sum(out))
        sums[i] = total
        for j in range(n):
            out[j] /= total


@njit
def _log_softmax_rows(x: Any, y: Any, shifts: Any, sums: Any, n: int, scale: Any) -> None:
    softmax_rows(x, y, shifts, sums, n, scale)
    for i in range(sums.size):
        sums[i] = vmath.log(sums[i])
    for i in range(sums.size):
        row = piece(x, i * n, n)
        out = piece(y, i * n, n)
        for j in range(n):
            out[j] = (row[j] - shifts[i]) * scale - sums[i]


@njit
def _softmax_vjp_rows(g: Any, y: Any, dx: Any, rows: int, n: int, scale: Any) -> None:
    for i in range(rows):
        head = piece(g, i * n, n)
        row = piece(y, i * n, n)
        out = piece(dx, i * n, n)
        mean = y.dtype.type(block_dot(head, row))
        for j in range(n):
            out[j] = row[j] * (head[j] - mean) * scale


@njit
def _log_softmax_vjp_rows(g: Any, y: Any, dx: Any, rows: int, n: int, scale: Any) -> None:
    for i in range(rows):
        head = piece(g, i * n, n)
        row = piece(y, i * n, n)
        out = piece(dx, i * n, n)
        total = y.dtype.type(block_sum(head))
        for j in range(n):
            out[j] = (head[j] - vmath.exp(row[j]) * total) * scale


@njit
def _transpose(rows: int, columns: int, x: Any, y: Any) -> None:
    """Compute y (columns, rows) = the transpose of x (rows, columns)."""
    for j in range(columns):
        out = piece(y, j * rows, rows)
        for i in range(rows):
            out[i] = x[i * columns + j]


@kernel("in out size size size scalar")
def softmax(x: Any, y: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """Compute y = softmax(x / temperature) for a positive temperature."""
    scale = x.dtype.type(1.0 / temperature)
    rows = outer if inner == 1 else inner
    shifts = np.empty(rows, x.dtype)
    sums = np.empty(rows, x.dtype)
    if inner == 1:
        softmax_rows(x, y, shifts, sums, n, scale)
        return 0
    turned = np.empty(inner * n, x.dtype)
    result = np.empty(inner * n, x.dtype)
    for i in range(outer):
        _transpose(n, inner, piece(x, i * n * inner, n * inner), turned)
        softmax_rows(turned, result, shifts, sums, n, scale)
        _transpose(inner, n, result, piece(y, i * n * inner, n * inner))
    return 0


@kernel("in out size size size scalar")
def log_softmax(x: Any, y: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """Compute y = log(softmax(x / temperature)) for a positive temperature."""
    scale = x.dtype.type(1.0 / temperature)
    rows = outer if inner == 1 else inner
    shifts = np.empty(rows, x.dtype)
    sums = np.empty(rows, x.dtype)
    if inner == 1:
        _log_softmax_rows(x, y, shifts, sums, n, scale)
        return 0
    turned = np.empty(inner * n, x.dtype)
    result = np.empty(inner * n, x.dtype)
    for i in range(outer):
        _transpose(n, inner, piece(x, i * n * inner, n * inner), turned)
        _log_softmax_rows(turned, result, shifts, sums, n, scale)
        _transpose(inner, n, result, piece(y, i * n * inner, n * inner))
    return 0


@kernel("in in out size size size scalar")
def softmax_vjp(g: Any, y: Any, dx: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """Compute dx = y (g - sum(g y)) / temperature, y being the result of :data:`softmax`."""
    scale = y.dtype.type(1.0 / temperature)
    if inner == 1:
        _softmax_vjp_rows(g, y, dx, outer, n, scale)
        return 0
    heads = np.empty(inner * n, y.dtype)
    turned = np.empty(inner * n, y.dtype)
    result = np.empty(inner * n, y.dtype)
    for i in range(outer):
        _transpose(n, inner, piece(g, i * n * inner, n * inner), heads)
        _transpose(n, inner, piece(y, i * n * inner, n * inner), turned)
        _softmax_vjp_rows(heads, turned, result, inner, n, scale)
        _transpose(inner, n, result, piece(dx, i * n * inner, n * inner))
    return 0


@kernel("in in out size size size scalar")
def log_softmax_vjp(g: Any, y: Any, dx: Any, outer: int, n: int, inner: int, temperature: float) -> int:
    """Compute dx = (g - exp(y) sum(g)) / temperature, y being the result of :data:`log_softmax`."""
    scale = y.dtype.type(1.0 / temperature)
    if inner == 1:
        _log_softmax_vjp_rows(g, y, dx, outer, n, scale)
        return 0
    heads = np.empty(inner * n, y.dtype)
    turned = np.empty(inner * n, y.dtype)
    result = np.empty(inner * n, y.dtype)
    for i in range(outer):
        _transpose(n, inner, piece(g, i * n * inner, n * inner), heads)
        _transpose(n, inner, piece(y, i * n * inner, n * inner), turned)
        _log_softmax_vjp_rows(heads, turned, result, inner, n, scale)
        _transpose(inner, n, result, piece(dx, i * n * inner, n * inner))
    return 0
