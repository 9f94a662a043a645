"""``nd.linalg``: products, factorizations and solves of batches of matrices, with MXNet's names and rules.

The last two axes hold the matrices; all axes before them count them and are equal for several arguments. float32 and
float64; float16 is computed in float32. Every function has derivatives of every order.
"""

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array, in_one_dtype
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.selection import at_least_1d
from numbagrad.ops import decompositions, triangular
from numbagrad.ops.arithmetic import add, log, multiply
from numbagrad.ops.linalg import batch_dot
from numbagrad.ops.matrices import matrices, square, transposed
from numbagrad.ops.reduction import sum_
from numbagrad.ops.shaping import transpose
from numbagrad.ops.slicing import diag, make_diagonal

_TRSM = {"right": 0, "lower": 1, "transposed": 0, "strict": 1, "alpha": 1.0}

# -------------------------------------------------------------------------------------------------- products


def _scaled(x: NDArray, factor: float) -> NDArray:
    return x if factor == 1 else multiply(x, float(factor))


def _rows_to_front(name: str, x: NDArray, axis: int) -> NDArray:
    """`x` with `axis`, that of the rows, and the last but one exchanged; twice makes once undone."""
    ndim = len(x._shape)
    if ndim < 2 or not -ndim <= axis < ndim or axis % ndim == ndim - 1:
        raise MXNetError(f"{name}: axis {axis} cannot be that of the rows in an array of shape {x._shape}")
    axis %= ndim
    if axis == ndim - 2:
        return x
    axes = list(range(ndim))
    axes[axis], axes[-2] = ndim - 2, axis
    return transpose(x, axes=tuple(axes))


def gemm2(
    A: NDArray,
    B: NDArray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """``alpha * op(A) op(B)``, op being the identity or the transpose.

    Parameters
    ----------
    A, B : NDArray
        Matrices; all axes but those of rows and columns are equal.
    transpose_a, transpose_b : bool
        Whether op transposes.
    alpha : float
    axis : int
        The axis of the rows, in the arguments and the result; the columns are the last one.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or there is no such axis.
    """
    A, B = (_rows_to_front("gemm2", x, axis) for x in in_one_dtype("gemm2", A, B))
    product = batch_dot(A, B, ta=int(bool(transpose_a)), tb=int(bool(transpose_b)))
    return deliver(_rows_to_front("gemm2", _scaled(product, alpha), axis), out)


def gemm(
    A: NDArray,
    B: NDArray,
    C: NDArray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """``alpha * op(A) op(B) + beta * C``, op being the identity or the transpose.

    Parameters
    ----------
    A, B, C : NDArray
        Matrices; all axes but those of rows and columns are equal, and `C` has the shape of the product.
    transpose_a, transpose_b : bool
        Whether op transposes.
    alpha, beta : float
    axis : int
        The axis of the rows, in the arguments and the result; the columns are the last one.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or there is no such axis.
    """
    A, B, C = in_one_dtype("gemm", A, B, C)
    product = gemm2(A, B, transpose_a, transpose_b, alpha, axis)
    if product._shape != C._shape:
        raise MXNetError(f"gemm: the product has shape {product._shape}, C has {C._shape}")
    return deliver(add(product, _scaled(C, beta)), out)


def syrk(
    A: NDArray, transpose: bool = False, alpha: float = 1.0, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """``alpha * A A'``, or with `transpose` ``alpha * A' A``."""
    expect_array("syrk", A)
    matrices("syrk", A)
    flipped = int(bool(transpose))
    return deliver(_scaled(batch_dot(A, A, ta=flipped, tb=1 - flipped), alpha), out)


def trmm(
    A: NDArray,
    B: NDArray,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """``alpha * op(A) B``, or with `rightside` ``alpha * B op(A)``, for triangular `A`.

    Parameters
    ----------
    A : NDArray
        Square matrices, of which the lower (or upper) triangle is read.
    B : NDArray
        Matrices.
    transpose : bool
        Whether op transposes.
    rightside, lower : bool
    alpha : float

    Raises
    ------
    MXNetError
        If the shapes do not fit.
    """
    A, B = in_one_dtype("trmm", A, B)
    square("trmm", A)
    A = triangular.triangle(A, lower=int(bool(lower)), offset=0)
    flipped = int(bool(transpose))
    product = batch_dot(B, A, ta=0, tb=flipped) if rightside else batch_dot(A, B, ta=flipped, tb=0)
    return deliver(_scaled(product, alpha), out)


# ------------------------------------------------------------------------------------ factorizations and solves


def trsm(
    A: NDArray,
    B: NDArray,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The solution X of ``op(A) X = alpha * B``, or with `rightside` of ``X op(A) = alpha * B``, for triangular `A`.

    Parameters
    ----------
    A : NDArray
        Square matrices, of which the lower (or upper) triangle is read. A zero on the diagonal leads to infinities
        or NaN.
    B : NDArray
        Matrices.
    transpose : bool
        Whether op transposes.
    rightside, lower : bool
    alpha : float

    Raises
    ------
    MXNetError
        If the shapes do not fit.
    """
    A, B = in_one_dtype("trsm", A, B)
    params = {"right": int(bool(rightside)), "lower": int(bool(lower)), "transposed": int(bool(transpose))}
    return deliver(triangular.trsm(A, B, **params, strict=0, alpha=float(alpha)), out)


def potrf(A: NDArray, lower: bool = True, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The Cholesky factor L of symmetric positive definite matrices ``A = L L'``, or U of ``A = U' U``.

    Parameters
    ----------
    A : NDArray
        Symmetric matrices, of which the lower (or upper) triangle is read. Gradients are symmetric.
    lower : bool
        Whether the lower factor is asked for.

    Raises
    ------
    MXNetError
        If a matrix is not positive definite.
    """
    expect_array("potrf", A)
    square("potrf", A)
    return deliver(triangular.potrf(A) if lower else transposed(triangular.potrf(transposed(A))), out)


def potri(A: NDArray, lower: bool = True, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The inverse of the symmetric matrices whose Cholesky factors are `A`: of ``A A'``, or of ``A' A``.

    Parameters
    ----------
    A : NDArray
        Triangular matrices, of which the lower (or upper) triangle is read.
    lower : bool
        Whether the factors are lower ones.

    Raises
    ------
    MXNetError
        If a matrix has a zero on its diagonal.
    """
    expect_array("potri", A)
    _, n = square("potri", A)
    dtype = np.dtype("float32") if A._flat.dtype == np.float16 else A._flat.dtype
    ones = NDArray(np.ones(A._flat.size // n if n else 0, dtype), A._shape[:-1])
    inverse = triangular.trsm(A, make_diagonal(ones), **{**_TRSM, "lower": int(bool(lower))})
    flipped = int(bool(lower))
    return deliver(batch_dot(inverse, inverse, ta=flipped, tb=1 - flipped), out)


def gelqf(A: NDArray, out: Any = None, name: str | None = None) -> Any:
    """The LQ factors of matrices with no more rows than columns: ``[Q, L]`` with ``A = L Q``.

    Q has orthonormal rows, L is lower triangular. Derivatives need full rank.

    Raises
    ------
    MXNetError
        If there are more rows than columns.
    """
    expect_array("gelqf", A)
    return deliver(decompositions.gelqf(A), out)


def syevd(A: NDArray, out: Any = None, name: str | None = None) -> Any:
    """Eigenvectors and eigenvalues of symmetric matrices: ``[U, L]`` with ``U A = diag(L) U``.

    The rows of U are the eigenvectors, of length 1, the element of largest magnitude positive; eigenvalues ascend. The
    lower triangle is read, gradients are symmetric. Between equal eigenvalues vectors have no derivative; such pairs
    contribute nothing.

    Raises
    ------
    MXNetError
        If no eigenvalues are found, as for NaN.
    """
    expect_array("syevd", A)
    return deliver(decompositions.syevd(A), out)


def inverse(A: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The inverse of square matrices.

    Raises
    ------
    MXNetError
        If a matrix is singular.
    """
    expect_array("inverse", A)
    return deliver(decompositions.inverse(A, strict=1), out)


def det(A: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The determinants of square matrices; of shape (1,) for a single one. A singular one gets no gradient."""
    expect_array("det", A)
    return deliver(at_least_1d(decompositions.det(A)), out)


def slogdet(A: NDArray, out: Any = None, name: str | None = None) -> Any:
    """The signs of determinants and the logarithms of their magnitudes: ``[sign, logabsdet]``.

    For a singular matrix these are 0 and -inf, and there is no gradient.
    """
    expect_array("slogdet", A)
    return deliver([at_least_1d(x) for x in decompositions.slogdet(A)], out)


# ------------------------------------------------------------------------------------ diagonals and triangles


def sumlogdiag(A: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The sum of the logarithms of the diagonal of square matrices; of shape (1,) for a single one."""
    expect_array("sumlogdiag", A)
    square("sumlogdiag", A)
    diagonal = diag(A, axis1=-2, axis2=-1)
    return deliver(at_least_1d(sum_(log(diagonal), axes=(len(A._shape) - 2,), keepdims=False)), out)


def extractdiag(A: NDArray, offset: int = 0, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """Diagonal number `offset` (positive: above the main one) of square matrices, as the last axis.

    Raises
    ------
    MXNetError
        If there is no such diagonal.
    """
    expect_array("extractdiag", A)
    square("extractdiag", A)
    return deliver(diag(A, k=index(offset), axis1=-2, axis2=-1, name="extractdiag"), out)


def makediag(A: NDArray, offset: int = 0, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """Square matrices with the last axis of `A` as diagonal number `offset`, else 0.

    Raises
    ------
    MXNetError
        For an array without axes.
    """
    expect_array("makediag", A)
    if not A._shape:
        raise MXNetError("makediag: an array without axes has no diagonal")
    return deliver(make_diagonal(A, k=index(offset)), out)


def extracttrian(
    A: NDArray, offset: int = 0, lower: bool = True, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """The elements of a triangle of square matrices, row by row, as the last axis.

    Parameters
    ----------
    A : NDArray
        Square matrices.
    offset : int
        The triangle is on and below this diagonal if it is negative, on and above it if it is positive.
    lower : bool
        Whether it is the lower one for `offset` 0.

    Raises
    ------
    MXNetError
        If there is no such diagonal.
    """
    expect_array("extracttrian", A)
    return deliver(triangular.extract_triangle(A, offset=index(offset), lower=bool(lower)), out)


def maketrian(
    A: NDArray, offset: int = 0, lower: bool = True, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """Square matrices with the last axis of `A` as the triangle that :func:`extracttrian` takes out, else 0.

    Raises
    ------
    MXNetError
        If the length of the last axis is none of 1, 3, 6, 10, ...
    """
    expect_array("maketrian", A)
    return deliver(triangular.make_triangle(A, offset=index(offset), lower=bool(lower)), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "det": det,
    "extractdiag": extractdiag,
    "extracttrian": extracttrian,
    "gelqf": gelqf,
    "gemm": gemm,
    "gemm2": gemm2,
    "inverse": inverse,
    "makediag": makediag,
    "maketrian": maketrian,
    "potrf": potrf,
    "potri": potri,
    "slogdet": slogdet,
    "sumlogdiag": sumlogdiag,
    "syevd": syevd,
    "syrk": syrk,
    "trmm": trmm,
    "trsm": trsm,
}

__all__ = sorted(FUNCTIONS)
