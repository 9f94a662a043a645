"""Matrix products with MXNet's and with NumPy's rules."""

from collections.abc import Callable
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import in_one_dtype
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import linalg as ops
from numbagrad.ops.arithmetic import multiply
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.layout import broadcast_shape
from numbagrad.ops.shaping import identity, reshape


def dot(
    lhs: NDArray,
    rhs: NDArray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """Contract the last axis of `lhs` with the first axis of `rhs`: the product of matrices.

    Parameters
    ----------
    lhs, rhs : NDArray
        Of at least one axis; ints too.
    transpose_a : bool
        Contract the first axis of `lhs` instead.
    transpose_b : bool
        Contract the last axis of `rhs` instead.
    forward_stype : str, optional
        Accepted for MXNet's sake; results are dense.
    out : NDArray, optional
        Where to write the result.

    Returns
    -------
    NDArray
        The free axes of `lhs`, then those of `rhs`; of shape (1,) for two vectors.

    Raises
    ------
    MXNetError
        If the contracted axes differ in length.
    """
    lhs, rhs = in_one_dtype("dot", lhs, rhs)
    result = ops.dot(lhs, rhs, ta=1 if transpose_a else 0, tb=1 if transpose_b else 0)
    if not result._shape:
        result = reshape(result, shape=(1,))
    return result if out is None else deliver(result, out)


def batch_dot(
    lhs: NDArray,
    rhs: NDArray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    out: NDArray | None = None,
    name: str | None = None,
) -> NDArray:
    """The products of the matrices in the last two axes; all axes before them must be equal.

    Raises
    ------
    MXNetError
        For fewer than three axes, or where shapes do not fit.
    """
    lhs, rhs = in_one_dtype("batch_dot", lhs, rhs)
    if len(lhs._shape) < 3 or len(rhs._shape) < 3:
        raise MXNetError(f"batch_dot: takes arrays of at least 3 axes, not {lhs._shape} and {rhs._shape}; see dot")
    result = ops.batch_dot(lhs, rhs, ta=1 if transpose_a else 0, tb=1 if transpose_b else 0)
    return result if out is None else deliver(result, out)


def matmul(lhs: NDArray, rhs: NDArray) -> NDArray:
    """The matrix product by NumPy's rules, ``lhs @ rhs``.

    Vectors are rows and columns; the axes before the last two broadcast.

    Raises
    ------
    MXNetError
        Where shapes do not fit, or for an array without axes.
    """
    a, b = in_one_dtype("matmul", lhs, rhs)
    if not a._shape or not b._shape:
        raise MXNetError(f"matmul: cannot multiply shapes {a._shape} and {b._shape}: each needs an axis")
    if len(b._shape) <= 2:
        return ops.dot(a, b, ta=0, tb=0)
    row = len(a._shape) == 1
    if row:
        a = reshape(a, shape=(1, *a._shape))
    lead = broadcast_shape("matmul", (a._shape[:-2], b._shape[:-2]))
    a, b = (x if x._shape[:-2] == lead else broadcast_to(x, shape=(*lead, *x._shape[-2:])) for x in (a, b))
    result = ops.batch_dot(a, b, ta=0, tb=0)
    return reshape(result, shape=(*lead, result._shape[-1])) if row else result


def _matmul(self: NDArray, other: Any) -> Any:
    return matmul(self, other) if type(other) is NDArray else NotImplemented


def khatri_rao(*args: NDArray, out: NDArray | None = None, name: str | None = None) -> NDArray:
    """The column-wise Khatri-Rao product: column k is the Kronecker product of the columns k of all matrices.

    Parameters
    ----------
    *args : NDArray
        Matrices with equal numbers of columns, of shapes (m1, n), (m2, n), ...
    out : NDArray, optional
        Where to write the result.

    Returns
    -------
    NDArray
        Of shape (m1 m2 ..., n).

    Raises
    ------
    MXNetError
        If there is no matrix, one has not two axes, or the numbers of columns differ.
    """
    if not args:
        raise MXNetError("khatri_rao: takes at least one matrix")
    first, *rest = in_one_dtype("khatri_rao", *args)
    if any(len(x._shape) != 2 or x._shape[1] != first._shape[-1] for x in args):
        shapes = ", ".join(str(x._shape) for x in args)
        raise MXNetError(f"khatri_rao: takes matrices with equal numbers of columns, not shapes {shapes}")
    result, n = first, first._shape[1]
    for x in rest:
        rows = result._shape[0] * x._shape[0]
        wide = multiply(reshape(result, shape=(result._shape[0], 1, n)), reshape(x, shape=(1, *x._shape)))
        result = reshape(wide, shape=(rows, n))
    return deliver(identity(result) if not rest else result, out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "batch_dot": batch_dot,
    "dot": dot,
    "khatri_rao": khatri_rao,
    "matmul": matmul,
}
