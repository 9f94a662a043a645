"""Factorizations and solves as kernels over batches of matrices, each flat and row-major, float32 or float64.

LAPACK is column-major: what it sees in the same memory is the transpose. So a lower triangle is its upper one, LQ of a
matrix is QR of what it sees, and eigenvectors come as rows. A kernel that may fail works in memory of its own first;
its status is 256 times the number of the matrix that failed plus a code.
"""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import njit
from numbagrad.native.fortran import lapack
from numbagrad.native.memory import scratch

_potrf = lapack("potrf", "ciaie")  # uplo, n, a, lda
_trsm = lapack("trsm", "cccciixaiai")  # side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb
_getrf = lapack("getrf", "iiaiae")  # m, n, a, lda, pivots
_getri = lapack("getri", "iaiaaie")  # n, a, lda, pivots, work, lwork
_geqrf = lapack("geqrf", "iiaiaaie")  # m, n, a, lda, tau, work, lwork
_orgqr = lapack("orgqr", "iiiaiaaie")  # m, n, k, a, lda, tau, work, lwork
_syevd = lapack("syevd", "cciaiaaiaie")  # jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork

_L, _R, _U, _N, _T, _V = (ord(letter) for letter in "LRUNTV")
_BLOCK = 64  # columns that LAPACK works on at a time: the workspace it asks for


@njit
def _copy(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = x[i]


@njit
def _copy_lower(x: Any, out: Any, n: int, pitch: int) -> None:
    """Copy the lower triangle of the first n columns of n rows `pitch` apart; 0 above it."""
    for i in range(n):
        for j in range(n):
            out[i * n + j] = x[i * pitch + j] if j <= i else x.dtype.type(0)


@kernel("in out size size size size size")
def triangle(x: Any, out: Any, batch: int, rows: int, columns: int, lower: int, offset: int) -> int:
    """Each matrix on and below (`lower` 1), or on and above (0), its diagonal number `offset`; 0 elsewhere."""
    for i in range(batch * rows):
        turn = min(max(i % rows + offset + (1 if lower else 0), 0), columns)
        first = i * columns
        for j in range(turn):
            out[first + j] = x[first + j] if lower else x.dtype.type(0)
        for j in range(turn, columns):
            out[first + j] = x.dtype.type(0) if lower else x[first + j]
    return 0


@kernel("in out size size", failures={1: (MXNetError, "potrf: matrix {index} of the batch is not positive definite")})
def potrf(a: Any, out: Any, batch: int, n: int) -> int:
    """Lower Cholesky factors; of each matrix the lower triangle is read."""
    size = n * n
    if size == 0:
        return 0
    work = scratch(batch * size, a.dtype)
    _copy(a, work)
    for i in range(batch):
        factor = work[i * size : (i + 1) * size]
        failed = _potrf((_U, n, factor, n)) != 0
        for k in range(n):  # a NaN goes through some LAPACKs, and ends in the diagonal
            failed |= not factor[k * (n + 1)] > 0
        if failed:
            return 256 * i + 1
    for i in range(batch):
        _copy_lower(work[i * size : (i + 1) * size], out[i * size : (i + 1) * size], n, n)
    return 0


@kernel(
    "in in out size size size size size size size scalar",
    failures={1: (MXNetError, "potri: matrix {index} of the batch is singular: its diagonal has a zero")},
)
def trsm(
    a: Any, b: Any, out: Any, batch: int, n: int, m: int, right: int, lower: int, flipped: int, strict: int, alpha: Any
) -> int:
    """Solve op(A) X = alpha B, or with `right` X op(A) = alpha B, for triangular A of n rows; B has m columns or rows.

    op transposes with `flipped` 1. With `strict` 1 a zero on a diagonal fails; else infinities or NaN come of it.
    """
    size = n * n
    if strict:
        for i in range(batch * n):
            if a[(i // n) * size + (i % n) * (n + 1)] == 0:
                return 256 * (i // n) + 1
    _copy(b, out)
    if n == 0 or m == 0:
        return 0
    side, rows, columns = (_L, n, m) if right else (_R, m, n)
    uplo = _U if lower else _L
    trans = _T if flipped else _N
    for i in range(batch):
        triangular, solution = a[i * size : (i + 1) * size], out[i * n * m : (i + 1) * n * m]
        _trsm((side, uplo, trans, _N, rows, columns, a.dtype.type(alpha), triangular, n, solution, rows))
    return 0


@kernel("in out size size size", failures={1: (MXNetError, "inverse: matrix {index} of the batch is singular")})
def inverse(a: Any, out: Any, batch: int, n: int, strict: int) -> int:
    """Inverses; a singular matrix fails with `strict` 1, else its place is filled with zeros."""
    size = n * n
    if size == 0:
        return 0
    factors = scratch(batch * size, a.dtype)
    _copy(a, factors)
    pivots = scratch(n, np.int32)
    work = scratch(n * _BLOCK, a.dtype)
    for i in range(batch):
        matrix = factors[i * size : (i + 1) * size]
        if _getrf((n, n, matrix, n, pivots)) == 0:
            _getri((n, matrix, n, pivots, work, n * _BLOCK))
        elif strict:
            return 256 * i + 1
        else:
            matrix[:] = a.dtype.type(0)
    _copy(factors, out)
    return 0


@njit
def _factors(a: Any, factors: Any, pivots: Any, n: int) -> Any:
    """The LU factors of one matrix, written to `factors`; returns the sign of its permutation."""
    _copy(a, factors)
    sign = a.dtype.type(1)
    if n > 0:
        _getrf((n, n, factors, n, pivots))
        for k in range(n):
            if pivots[k] != k + 1:
                sign = -sign
    return sign


@kernel("in out size size")
def det(a: Any, out: Any, batch: int, n: int) -> int:
    """Determinants."""
    factors, pivots = scratch(n * n, a.dtype), scratch(n, np.int32)
    for i in range(batch):
        product = _factors(a[i * n * n : (i + 1) * n * n], factors, pivots, n)
        for k in range(n):
            product *= factors[k * (n + 1)]
        out[i] = product
    return 0


@kernel("in out out size size")
def slogdet(a: Any, sign: Any, logabs: Any, batch: int, n: int) -> int:
    """Signs of determinants and logarithms of their magnitudes; 0 and -inf for a singular matrix."""
    factors, pivots = scratch(n * n, a.dtype), scratch(n, np.int32)
    for i in range(batch):
        s = _factors(a[i * n * n : (i + 1) * n * n], factors, pivots, n)
        total = a.dtype.type(0)
        for k in range(n):
            pivot = factors[k * (n + 1)]
            s *= np.sign(pivot)
            total += np.log(abs(pivot))
        sign[i] = s
        logabs[i] = total
    return 0


@kernel("in out out size size size")
def gelqf(a: Any, q: Any, l: Any, batch: int, m: int, n: int) -> int:  # noqa: E741 - the field's name
    """A = L Q with lower triangular L (m, m) and orthonormal rows Q (m, n), m being at most n."""
    if m == 0:
        return 0
    _copy(a, q)
    tau, work = scratch(m, a.dtype), scratch(m * _BLOCK, a.dtype)
    for i in range(batch):
        matrix = q[i * m * n : (i + 1) * m * n]
        _geqrf((n, m, matrix, n, tau, work, m * _BLOCK))
        _copy_lower(matrix, l[i * m * m : (i + 1) * m * m], m, n)
        _orgqr((n, m, m, matrix, n, tau, work, m * _BLOCK))
    return 0


@njit
def _sign_rows(u: Any, n: int) -> None:
    """Turn each row so that its element of largest magnitude, the first of several, is positive."""
    for i in range(n):
        row = u[i * n : (i + 1) * n]
        largest = row[0]
        for j in range(n):
            if abs(row[j]) > abs(largest):
                largest = row[j]
        if largest < 0:
            for j in range(n):
                row[j] = -row[j]


@kernel(
    "in out out size size",
    failures={1: (MXNetError, "syevd: found no eigenvalues of matrix {index} of the batch: is it finite?")},
)
def syevd(a: Any, u: Any, w: Any, batch: int, n: int) -> int:
    """Eigenvectors of symmetric matrices as rows, and eigenvalues, ascending; of each the lower triangle is read."""
    size = n * n
    if size == 0:
        return 0
    vectors, values = scratch(batch * size, a.dtype), scratch(batch * n, a.dtype)
    _copy(a, vectors)
    lwork, liwork = 1 + 6 * n + 2 * size, 3 + 5 * n
    work, iwork = scratch(lwork, a.dtype), scratch(liwork, np.int32)
    for i in range(batch):
        matrix, row = vectors[i * size : (i + 1) * size], values[i * n : (i + 1) * n]
        finite = True
        for j in range(n):
            for k in range(j + 1):  # with others LAPACK fails for some n and returns numbers for some
                finite &= matrix[j * n + k] - matrix[j * n + k] == 0
        if not finite or _syevd((_V, _U, n, matrix, n, row, work, lwork, iwork, liwork)) != 0:
            return 256 * i + 1
        _sign_rows(matrix, n)
    _copy(vectors, u)
    _copy(values, w)
    return 0
