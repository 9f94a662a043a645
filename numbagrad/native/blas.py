"""Matrix products inside compiled code: BLAS, called by symbol.

Everything is row-major on flat arrays; a matrix that starts elsewhere is passed as a slice.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from numbagrad.native.compiler import intrinsic, njit
from numbagrad.native.fortran import PRECISIONS, emit_call, emit_integer

LONGEST = 2**31 - 1
"""SciPy's BLAS counts in int32: whoever calls :func:`gemm` or :func:`gemv` has checked that no size is larger.

The number is all ones, so that ``m | n | k`` is above it exactly if one of the sizes is.
"""


def _letter(builder: Any, flag: Any) -> Any:
    """A reference to 'T' where `flag` is nonzero, else to 'N'."""
    byte = ir.IntType(8)
    chosen = builder.select(cgutils.is_not_null(builder, flag), byte(ord("T")), byte(ord("N")))
    return cgutils.alloca_once_value(builder, chosen)


def _matrices_known(*arrays: Any) -> bool:
    """Whether all are contiguous arrays of one dtype that BLAS has."""
    return all(
        isinstance(array, types.Array)
        and array.layout == "C"
        and array.dtype in PRECISIONS
        and array.dtype == arrays[0].dtype
        for array in arrays
    )


def _gemm_twin(ta: int, tb: int, m: int, n: int, k: int, alpha: Any, a: Any, b: Any, beta: Any, c: Any) -> None:
    left = a[: m * k].reshape(k, m).T if ta else a[: m * k].reshape(m, k)
    right = b[: k * n].reshape(n, k).T if tb else b[: k * n].reshape(k, n)
    product = (alpha * (left @ right)).reshape(-1)
    c[: m * n] = product if beta == 0 else product + beta * c[: m * n]


@intrinsic(_gemm_twin)
def _blas_gemm(typing_context, ta, tb, m, n, k, alpha, a, b, beta, c):
    """Row-major gemm is the column-major one of the transposed product: C' = op(B)' op(A)'."""
    if not _matrices_known(a, b, c):
        return None
    size = types.int64
    signature = types.void(types.boolean, types.boolean, size, size, size, a.dtype, a, b, a.dtype, c)

    def generate(context, builder, signature, arguments):
        ta, tb, m, n, k, alpha, a, b, beta, c = arguments
        a, b, c = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip((signature.args[6], signature.args[7], signature.args[9]), (a, b, c), strict=True)
        )
        lda = builder.select(cgutils.is_not_null(builder, ta), m, k)
        ldb = builder.select(cgutils.is_not_null(builder, tb), k, n)
        alpha, beta = (cgutils.alloca_once_value(builder, value) for value in (alpha, beta))
        flag_a, flag_b = _letter(builder, ta), _letter(builder, tb)
        m, n, k, lda, ldb = (emit_integer(builder, "gemm", value) for value in (m, n, k, lda, ldb))
        references = [flag_b, flag_a, n, m, k, alpha, b, ldb, a, lda, beta, c, n]
        return emit_call(context, builder, "gemm", signature.args[5], references)

    return signature, generate


def _gemv_twin(ta: int, m: int, n: int, alpha: Any, a: Any, x: Any, beta: Any, y: Any) -> None:
    matrix = a[: m * n].reshape(n, m).T if ta else a[: m * n].reshape(m, n)
    product = alpha * (matrix @ x[:n])
    y[:m] = product if beta == 0 else product + beta * y[:m]


@intrinsic(_gemv_twin)
def _blas_gemv(typing_context, ta, m, n, alpha, a, x, beta, y):
    """A row-major matrix is a transposed column-major one."""
    if not _matrices_known(a, x, y):
        return None
    size = types.int64
    signature = types.void(types.boolean, size, size, a.dtype, a, x, a.dtype, y)

    def generate(context, builder, signature, arguments):
        ta, m, n, alpha, a, x, beta, y = arguments
        a, x, y = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip((signature.args[4], signature.args[5], signature.args[7]), (a, x, y), strict=True)
        )
        flag = _letter(builder, builder.not_(ta))
        rows = builder.select(ta, m, n)
        columns = builder.select(ta, n, m)
        one = emit_integer(builder, "gemv", ir.IntType(64)(1))
        alpha, beta = (cgutils.alloca_once_value(builder, value) for value in (alpha, beta))
        rows, columns = emit_integer(builder, "gemv", rows), emit_integer(builder, "gemv", columns)
        references = [flag, rows, columns, alpha, a, rows, x, one, beta, y, one]
        return emit_call(context, builder, "gemv", signature.args[3], references)

    return signature, generate


@njit
def gemv(ta: int, m: int, n: int, alpha: Any, a: Any, x: Any, beta: Any, y: Any) -> None:
    """Compute y = alpha op(A) x + beta y; op(A) is (m, n), all flat and row-major, float32 or float64.

    Parameters
    ----------
    ta : int
        1 if `a` holds the transpose, (n, m), else 0.
    m, n : int
        Sizes of y and of x, at most :data:`LONGEST`.
    alpha, beta : number of the dtype of the arrays
        What `y` holds is not read for beta 0.
    """
    out = y[:m]
    if beta == 0:
        for i in range(m):
            out[i] = 0
    elif beta != 1:
        for i in range(m):
            out[i] *= beta
    if m > 0 and n > 0:
        _blas_gemv(ta != 0, m, n, alpha, a, x, a.dtype.type(1), out)


@njit(apart=True)
def gemm(ta: int, tb: int, m: int, n: int, k: int, alpha: Any, a: Any, b: Any, beta: Any, c: Any) -> None:
    """Compute C = alpha op(A) op(B) + beta C, all flat and row-major, float32 or float64.

    Parameters
    ----------
    ta, tb : int
        1 if `a` holds the transpose (k, m), and if `b` holds the transpose (n, k), else 0. A variable: a literal in
        the call would have the function compiled for that literal.
    m, n, k : int
        op(A) is (m, k), op(B) is (k, n), C is (m, n); at most :data:`LONGEST`. With k 0 the product is 0.
    alpha, beta : number of the dtype of the arrays
        What `c` holds is not read for beta 0.
    a, b, c : 1-D arrays of one dtype
        At least as long as the matrices; pass slices for matrices that start elsewhere. `c` overlaps neither.
    """
    if m == 0 or n == 0:
        return
    if m > 1 and n > 1 and k > 0:
        _blas_gemm(ta != 0, tb != 0, m, n, k, alpha, a, b, beta, c)
        return
    if beta != 1:
        for i in range(m * n):
            c[i] = beta * c[i] if beta != 0 else beta
    if k == 0:
        return
    if n == 1:
        _blas_gemv(ta != 0, m, k, alpha, a, b, a.dtype.type(1), c)
    else:  # op(B)' a
        _blas_gemv(tb == 0, n, k, alpha, b, a, a.dtype.type(1), c)
