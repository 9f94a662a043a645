"""Inverses and determinants, LQ factors, eigenvectors."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import lapack as kernels
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import add, divide, equal, multiply, subtract, where
from numbagrad.ops.layout import size_of
from numbagrad.ops.linalg import batch_dot
from numbagrad.ops.matrices import matrices, square, symmetric, transposed
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import reshape
from numbagrad.ops.slicing import make_diagonal
from numbagrad.ops.triangular import triangle, trsm


def _x(*shape: int) -> np.ndarray:
    """Matrices that are well conditioned."""
    return np.sin(np.arange(size_of(shape)) * 1.7 + 0.2).reshape(shape) + 1.3 * np.eye(shape[-2], shape[-1])[:, ::-1]


_SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])

# -------------------------------------------------------------------------------------------------- inverses


def _inverse_vjp(context: Context, g: Any) -> Any:
    y = context.y(0)
    return multiply(batch_dot(batch_dot(y, g, ta=1, tb=0), y, ta=0, tb=1), -1.0)


@composed(
    "inverse",
    _inverse_vjp,
    saves="y0",
    samples=lambda: [
        Sample((_x(2, 3, 3),), {"strict": 1}, np.linalg.inv),
        Sample((_x(1, 1),), {"strict": 0}, np.linalg.inv),
        Sample((_SINGULAR,), {"strict": 0}, np.zeros_like, False),
    ],
)
def inverse(a: ArrayLike, *, strict: int) -> Output:
    """The inverse of each matrix; with `strict` 0 zeros for a singular one.

    Raises
    ------
    MXNetError
        With `strict` 1, if a matrix is singular.
    """
    batch, n = square("inverse", a)
    out = np.empty_like(a._flat)
    launch(kernels.inverse, a._flat, out, batch, n, strict)
    return out, a._shape


# ---------------------------------------------------------------------------------------------- determinants


def _spread(g: Any) -> Any:
    """One number a matrix, in the shape that broadcasts against the matrices."""
    return reshape(g, shape=(*g._shape, 1, 1))


def _cofactors(context: Context, g: Any) -> Any:
    """`g` times the transposed inverse; zeros for a singular matrix, as in MXNet."""
    return multiply(transposed(inverse(context.x(0), strict=0)), _spread(g))


def _det_vjp(context: Context, g: Any) -> Any:
    return _cofactors(context, multiply(g, context.y(0)))


@composed(
    "det",
    _det_vjp,
    saves="x0 y0",
    samples=lambda: [
        Sample((_x(2, 3, 3),), {}, np.linalg.det),
        Sample((_x(1, 1),), {}, np.linalg.det),
        Sample((_SINGULAR,), {}, lambda a: np.array(0.0), False),
    ],
)
def det(a: ArrayLike) -> Output:
    """The determinant of each matrix; the gradient is zero for a singular one, as in MXNet."""
    batch, n = square("det", a)
    out = np.empty(batch, a._flat.dtype)
    launch(kernels.det, a._flat, out, batch, n)
    return out, a._shape[:-2]


def _slogdet_vjp(context: Context, g_sign: Any, g: Any) -> Any:
    return _cofactors(context, g)


@composed(
    "slogdet",
    _slogdet_vjp,
    saves="x0",
    multi=True,
    samples=lambda: [
        Sample((_x(2, 3, 3),), {}, np.linalg.slogdet),
        Sample((_x(3, 3)[::-1].copy(),), {}, np.linalg.slogdet),
        Sample((_SINGULAR,), {}, np.linalg.slogdet, False),
    ],
)
def slogdet(a: ArrayLike) -> list[Output]:
    """The sign of the determinant of each matrix, and the logarithm of its magnitude: 0 and -inf for a singular one."""
    batch, n = square("slogdet", a)
    sign, logabs = np.empty(batch, a._flat.dtype), np.empty(batch, a._flat.dtype)
    launch(kernels.slogdet, a._flat, sign, logabs, batch, n)
    return [(sign, a._shape[:-2]), (logabs, a._shape[:-2])]


# -------------------------------------------------------------------------------------------------------- LQ


def _gelqf_vjp(context: Context, g_q: Any, g_l: Any) -> Any:
    # Seeger et al., Auto-differentiating linear algebra (2017), section 4.2: L^-T (G_Q + C(L' G_L - G_Q Q') Q), C
    # copying the lower triangle to the upper one.
    q, l = context.y(0), context.y(1)  # noqa: E741
    product = subtract(batch_dot(l, g_l, ta=1, tb=0), batch_dot(g_q, q, ta=0, tb=1))
    mirrored = add(triangle(product, lower=1, offset=0), transposed(triangle(product, lower=1, offset=-1)))
    inner = add(g_q, batch_dot(mirrored, q, ta=0, tb=0))
    return trsm(l, inner, right=0, lower=1, transposed=1, strict=0, alpha=1.0)


def _lq(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(a.swapaxes(-1, -2))
    return q.swapaxes(-1, -2), r.swapaxes(-1, -2)


@composed(
    "gelqf",
    _gelqf_vjp,
    saves="y0 y1",
    multi=True,
    samples=lambda: [
        Sample((_x(2, 2, 3),), {}, _lq),
        Sample((_x(3, 3),), {}, _lq),
    ],
)
def gelqf(a: ArrayLike) -> list[Output]:
    """Q with orthonormal rows and lower triangular L, each matrix being L Q; it has no more rows than columns."""
    batch, m, n = matrices("gelqf", a)
    if m > n:
        raise MXNetError(f"gelqf: takes matrices with no more rows than columns, not {m} by {n} (shape {a._shape})")
    lead = a._shape[:-2]
    q, l = np.empty_like(a._flat), np.empty(batch * m * m, a._flat.dtype)  # noqa: E741
    launch(kernels.gelqf, a._flat, q, l, batch, m, n)
    return [(q, a._shape), (l, (*lead, m, m))]


# ---------------------------------------------------------------------------------------------- eigenvectors


def _syevd_vjp(context: Context, g_u: Any, g_w: Any) -> Any:
    # Giles, Collected matrix derivative results (2008), section 3.1, made symmetric: U' (F (G_U U') + diag(G_w)) U
    # with F = 1 / (w_i - w_j), and 0 where eigenvalues are equal.
    u, w = context.y(0), context.y(1)
    shape = w._shape
    gaps = subtract(reshape(w, shape=(*shape, 1)), reshape(w, shape=(*shape[:-1], 1, shape[-1])))
    same = equal(gaps, 0.0)
    factors = where(same, 0.0, divide(1.0, where(same, 1.0, gaps)))
    inner = symmetric(multiply(factors, batch_dot(g_u, u, ta=0, tb=1)))
    inner = add(inner, make_diagonal(g_w))
    return batch_dot(batch_dot(u, inner, ta=1, tb=0), u, ta=0, tb=0)


def _eigen(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w, v = np.linalg.eigh(a)
    u = v.swapaxes(-1, -2)
    largest = np.take_along_axis(u, np.abs(u).argmax(-1, keepdims=True), -1)
    return u * np.sign(largest), w


@composed(
    "syevd",
    _syevd_vjp,
    saves="y0 y1",
    multi=True,
    samples=lambda: [
        Sample((_x(2, 3, 3) + _x(2, 3, 3).swapaxes(1, 2),), {}, _eigen, through=symmetric),
        Sample((_x(1, 1),), {}, _eigen, through=symmetric),
    ],
)
def syevd(a: ArrayLike) -> list[Output]:
    """The eigenvectors of each symmetric matrix as rows, and its eigenvalues, ascending.

    The lower triangle is read, the gradient is symmetric. Of each eigenvector the element of largest magnitude is
    positive. Pairs of equal eigenvalues, between which vectors have no derivative, contribute nothing.

    Raises
    ------
    MXNetError
        If LAPACK finds no eigenvalues, as for NaN.
    """
    batch, n = square("syevd", a)
    u, w = np.empty_like(a._flat), np.empty(batch * n, a._flat.dtype)
    launch(kernels.syevd, a._flat, u, w, batch, n)
    return [(u, a._shape), (w, a._shape[:-1])]
