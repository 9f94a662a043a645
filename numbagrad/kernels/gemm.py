"""Matrix products as kernels; every matrix is flat and row-major.

The flags `ta` and `tb` are ints (0 or 1; a bool would be compiled once more): 1 says that the array holds the
transpose of what is multiplied. float32 and float64 go to BLAS; integers have kernels of their own.
"""

from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.native import blas
from numbagrad.native.compiler import njit
from numbagrad.native.memory import piece

TOO_LARGE = {1: (MXNetError, "gemm: a matrix has more than 2147483647 rows or columns, more than BLAS can count")}


@kernel("in in out size size size static static scalar", failures=TOO_LARGE)
def gemm(a: Any, b: Any, c: Any, m: int, n: int, k: int, ta: int, tb: int, alpha: float) -> int:
    """Compute C (m, n) = alpha op(A) op(B), op(A) being (m, k) and op(B) (k, n); float32 or float64."""
    if m | n | k > blas.LONGEST:
        return 1
    blas.gemm(ta, tb, m, n, k, a.dtype.type(alpha), a, b, a.dtype.type(0), c)
    return 0


@kernel("in in inout size size size static static scalar", failures=TOO_LARGE)
def gemm_into(a: Any, b: Any, c: Any, m: int, n: int, k: int, ta: int, tb: int, alpha: float) -> int:
    """Compute C (m, n) += alpha op(A) op(B); float32 or float64."""
    if m | n | k > blas.LONGEST:
        return 1
    blas.gemm(ta, tb, m, n, k, a.dtype.type(alpha), a, b, a.dtype.type(1), c)
    return 0


@kernel("in in inout inout size size size static static scalar", failures=TOO_LARGE)
def gemm_update(a: Any, b: Any, w: Any, hyper: Any, m: int, n: int, k: int, ta: int, tb: int, rescale: float) -> int:
    """Compute W (m, n) -= lr rescale op(A) op(B): a product that is a gradient, and plain SGD with it, in one.

    `hyper` is a row of ``optimizer.SGD.columns`` without decay and clipping; its step count rises by one.
    """
    if m | n | k > blas.LONGEST:
        return 1
    blas.gemm(ta, tb, m, n, k, a.dtype.type(-(hyper[0] * rescale)), a, b, a.dtype.type(1), w)
    hyper[4] += 1.0
    return 0


@njit
def _each(batch: int, m: int, n: int, k: int, ta: int, tb: int, a: Any, b: Any, beta: Any, c: Any) -> None:
    for i in range(batch):
        left = piece(a, i * m * k, m * k)
        right = piece(b, i * k * n, k * n)
        blas.gemm(ta, tb, m, n, k, a.dtype.type(1), left, right, beta, piece(c, i * m * n, m * n))


@kernel("in in out size size size size static static", failures=TOO_LARGE)
def batch_gemm(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """Compute C[i] = op(A[i]) op(B[i]) for `batch` matrices that follow each other in a, b and c."""
    if m | n | k > blas.LONGEST:
        return 1
    _each(batch, m, n, k, ta, tb, a, b, a.dtype.type(0), c)
    return 0


@kernel("in in inout size size size size static static", failures=TOO_LARGE)
def batch_gemm_into(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """Compute C[i] += op(A[i]) op(B[i]) for `batch` matrices that follow each other in a, b and c."""
    if m | n | k > blas.LONGEST:
        return 1
    _each(batch, m, n, k, ta, tb, a, b, a.dtype.type(1), c)
    return 0


@njit
def _integer_product(batch: int, m: int, n: int, k: int, ta: int, tb: int, a: Any, b: Any, c: Any) -> None:
    step_i, step_p = (1, m) if ta else (k, 1)
    step_q, step_j = (1, k) if tb else (n, 1)
    for i in range(batch * m):
        start = (i // m) * m * k + (i % m) * step_i
        for p in range(k):
            factor = a[start + p * step_p]
            other = (i // m) * k * n + p * step_q
            for j in range(n):
                c[i * n + j] += factor * b[other + j * step_j]


@kernel("in in out size size size size static static")
def integer_gemm(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """Compute C[i] = op(A[i]) op(B[i]) for integers, wrapping as NumPy's do."""
    c[: batch * m * n] = 0
    _integer_product(batch, m, n, k, ta, tb, a, b, c)
    return 0


@kernel("in in inout size size size size static static")
def integer_gemm_into(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """Compute C[i] += op(A[i]) op(B[i]) for integers, wrapping as NumPy's do."""
    _integer_product(batch, m, n, k, ta, tb, a, b, c)
    return 0
