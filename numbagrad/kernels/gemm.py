"""Matrix products as kernels; every matrix is flat and row-major.

The flags `ta` and `tb` are ints (0 or 1; a bool would be compiled once more): 1 says that the array holds the
transpose of what is multiplied. Any number dtype; float32 and float64 go to BLAS.
"""

from typing import Any

from numbagrad.kernels.kernel import kernel
from numbagrad.native import blas


@kernel("in in out size size size static static scalar")
def gemm(a: Any, b: Any, c: Any, m: int, n: int, k: int, ta: int, tb: int, alpha: float) -> int:
    """C (m, n) = alpha op(A) op(B), op(A) being (m, k) and op(B) (k, n)."""
    blas.gemm(ta, tb, m, n, k, alpha, a, b, 0, c)
    return 0


@kernel("in in inout size size size static static scalar")
def gemm_into(a: Any, b: Any, c: Any, m: int, n: int, k: int, ta: int, tb: int, alpha: float) -> int:
    """C (m, n) += alpha op(A) op(B)."""
    blas.gemm(ta, tb, m, n, k, alpha, a, b, 1, c)
    return 0


@kernel("in in out size size size size static static")
def batch_gemm(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """C[i] = op(A[i]) op(B[i]) for `batch` matrices that follow each other in a, b and c."""
    for i in range(batch):
        left, right, out = a[i * m * k : (i + 1) * m * k], b[i * k * n : (i + 1) * k * n], c[i * m * n : (i + 1) * m * n]
        blas.gemm(ta, tb, m, n, k, 1, left, right, 0, out)
    return 0


@kernel("in in inout size size size size static static")
def batch_gemm_into(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> int:
    """C[i] += op(A[i]) op(B[i]) for `batch` matrices that follow each other in a, b and c."""
    for i in range(batch):
        left, right, out = a[i * m * k : (i + 1) * m * k], b[i * k * n : (i + 1) * k * n], c[i * m * n : (i + 1) * m * n]
        blas.gemm(ta, tb, m, n, k, 1, left, right, 1, out)
    return 0
