"""Triangles of matrices, solves with them, and the Cholesky factor."""

from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.kernels import lapack as kernels
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import add, multiply
from numbagrad.ops.indexing import take_, take_add
from numbagrad.ops.layout import size_of
from numbagrad.ops.linalg import batch_dot
from numbagrad.ops.matrices import matrices, square, symmetric
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed


def _x(*shape: int) -> np.ndarray:
    return np.sin(np.arange(size_of(shape)) * 0.7 + 0.2).reshape(shape)


def _triangular(*shape: int) -> np.ndarray:
    """Matrices that are well conditioned as either triangle; the other is not zero."""
    return 0.4 * _x(*shape) + np.linspace(1.0, 2.0, shape[-1]) * np.eye(shape[-1])


def _definite(*shape: int) -> np.ndarray:
    factor = _x(*shape)
    return factor @ factor.swapaxes(-1, -2) + np.eye(shape[-1])


# ------------------------------------------------------------------------------------------------- triangles


def _triangle_vjp(context: Context, g: Any) -> Any:
    return triangle(g, **context.params)


@composed(
    "triangle",
    _triangle_vjp,
    samples=lambda: [
        Sample((_x(2, 3, 3),), {"lower": 1, "offset": 0}, np.tril),
        Sample((_x(3, 3),), {"lower": 0, "offset": 0}, np.triu),
        Sample((_x(2, 4),), {"lower": 1, "offset": -1}, lambda x: np.tril(x, -1)),
        Sample((_x(3, 2),), {"lower": 0, "offset": 1}, lambda x: np.triu(x, 1)),
    ],
)
def triangle(x: ArrayLike, *, lower: int, offset: int) -> Output:
    """Each matrix on and below (`lower` 1), or on and above (0), its diagonal number `offset`; 0 elsewhere."""
    batch, rows, columns = matrices("triangle", x)
    out = np.empty_like(x._flat)
    launch(kernels.triangle, x._flat, out, batch, rows, columns, lower, offset)
    return out, x._shape


def _places(n: int, offset: int, lower: bool) -> Any:
    """The positions in a matrix of n rows of the elements of a triangle, row by row."""
    below = offset < 0 or (offset == 0 and lower)
    rows, columns = np.tril_indices(n, offset) if below else np.triu_indices(n, offset)
    places = rows * n + columns
    return tape.new(places, places.shape)


def extract_triangle(x: Any, *, offset: int, lower: bool) -> Any:
    """The elements of a triangle of each square matrix, row by row, as the last axis.

    The triangle is on and below diagonal number `offset` where that is negative, on and above it where it is positive;
    `lower` decides for 0.

    Raises
    ------
    MXNetError
        If the matrices are not square, or have no such diagonal.
    """
    _, n = square("extracttrian", x)
    if abs(offset) >= max(n, 1):
        raise MXNetError(f"extracttrian: matrices of shape {x._shape[-2:]} have no diagonal {offset}")
    ndim = len(x._shape)
    return take_(x, _places(n, offset, lower), first=ndim - 2, last=ndim, mode="clip")


def make_triangle(x: Any, *, offset: int, lower: bool) -> Any:
    """Square matrices with the last axis of `x` as the triangle that :func:`extract_triangle` takes out, else 0.

    Raises
    ------
    MXNetError
        If the length of the last axis is none of 1, 3, 6, 10, ...
    """
    if not x._shape:
        raise MXNetError("maketrian: an array without axes has no triangle")
    count = x._shape[-1]
    k = int((np.sqrt(8 * count + 1) - 1) / 2)
    if k * (k + 1) // 2 != count:
        raise MXNetError(
            f"maketrian: {count} elements make no triangle (1, 3, 6, 10, ... do): the array has shape {x._shape}"
        )
    n = k + abs(offset)
    lead = x._shape[:-1]
    first = len(lead)
    return take_add(x, _places(n, offset, lower), first=first, last=first + 2, mode="clip", shape=(*lead, n, n))


# ---------------------------------------------------------------------------------------------------- solves


def _trsm_vjp(context: Context, g: Any) -> tuple[Any, Any]:
    # With H = op(A)^-T G the gradients are -H X' and alpha H; on the right -X' H, with H = G op(A)^-T.
    params = context.params
    right, flipped = params["right"], params["transposed"]
    h = trsm(context.x(0), g, **{**params, "transposed": 1 - flipped, "alpha": 1.0})
    da = None
    if context.wants(0):
        x = context.y(0)
        first, second = (h, x) if right == flipped else (x, h)
        product = batch_dot(first, second, ta=right, tb=1 - right)
        da = multiply(triangle(product, lower=params["lower"], offset=0), -1.0)
    return da, multiply(h, params["alpha"]) if context.wants(1) else None


def _trsm_samples() -> list[Sample]:
    def sample(right: int, lower: int, flipped: int, alpha: float, batch: tuple[int, ...] = ()) -> Sample:
        def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            inverse = np.linalg.inv(np.tril(a) if lower else np.triu(a))
            inverse = inverse.swapaxes(-1, -2) if flipped else inverse
            return alpha * (b @ inverse if right else inverse @ b)

        params = {"right": right, "lower": lower, "transposed": flipped, "strict": 0, "alpha": alpha}
        return Sample((_triangular(*batch, 3, 3), _x(*batch, *((2, 3) if right else (3, 2)))), params, expected)

    return [
        sample(0, 1, 0, 1.0, (2,)),
        *[sample(right, lower, flipped, -0.5) for right in (0, 1) for lower in (0, 1) for flipped in (0, 1)],
    ]


@composed("trsm", _trsm_vjp, saves="x0 y0", samples=_trsm_samples)
def trsm(a: ArrayLike, b: ArrayLike, *, right: int, lower: int, transposed: int, strict: int, alpha: float) -> Output:
    """Solve op(A) X = alpha B, or with `right` X op(A) = alpha B; of each matrix A one triangle is read.

    A zero on the diagonal raises with `strict` 1; else what it leads to is infinite or NaN.
    """
    batch, n = square("trsm", a)
    _, rows, columns = matrices("trsm", b)
    if a._shape[:-2] != b._shape[:-2] or n != (columns if right else rows):
        side = "columns" if right else "rows"
        raise MXNetError(
            f"trsm: a matrix of shape {a._shape} cannot be solved with {b._shape} on the other side: the axes before "
            f"the last two must be equal, and the second must have {n} {side}"
        )
    out = np.empty_like(b._flat)
    m = rows if right else columns
    launch(kernels.trsm, a._flat, b._flat, out, batch, n, m, right, lower, transposed, strict, alpha)
    return out, b._shape


# -------------------------------------------------------------------------------------------------- Cholesky


def _potrf_vjp(context: Context, g: Any) -> Any:
    # Murray, Differentiation of the Cholesky decomposition (2016), eq. 10: the symmetric part of L^-T P(L' G) L^-1,
    # P taking the lower triangle with half the diagonal.
    factor = context.y(0)
    product = batch_dot(factor, g, ta=1, tb=0)
    below = add(triangle(product, lower=1, offset=0), triangle(product, lower=1, offset=-1))
    inner = multiply(below, 0.5)
    for right in (0, 1):
        inner = trsm(factor, inner, right=right, lower=1, transposed=1 - right, strict=0, alpha=1.0)
    return symmetric(inner)


@composed(
    "potrf",
    _potrf_vjp,
    saves="y0",
    samples=lambda: [
        Sample((_definite(2, 3, 3),), {}, np.linalg.cholesky, through=symmetric),
        Sample((_definite(1, 1),), {}, np.linalg.cholesky, through=symmetric),
    ],
)
def potrf(a: ArrayLike) -> Output:
    """The lower Cholesky factor of each matrix; its lower triangle is read, its gradient is symmetric.

    Raises
    ------
    MXNetError
        If a matrix is not positive definite.
    """
    batch, n = square("potrf", a)
    out = np.empty_like(a._flat)
    launch(kernels.potrf, a._flat, out, batch, n)
    return out, a._shape
