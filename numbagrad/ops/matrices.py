"""Batches of matrices: the last two axes are rows and columns, those before count the matrices."""

from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.ops.arithmetic import add, multiply
from numbagrad.ops.layout import size_of
from numbagrad.ops.registry import ArrayLike
from numbagrad.ops.shaping import transpose


def matrices(name: str, x: ArrayLike) -> tuple[int, int, int]:
    """How many matrices `x` holds, their rows and columns.

    Raises
    ------
    MXNetError
        For fewer than two axes, or if `x` is not of floats.
    """
    shape = x._shape
    if len(shape) < 2:
        raise MXNetError(f"{name}: takes matrices, in the last two axes; the array has shape {shape}")
    if x._flat.dtype.kind != "f":
        raise MXNetError(f"{name}: takes floats, not {x._flat.dtype}; see astype")
    return size_of(shape[:-2]), shape[-2], shape[-1]


def square(name: str, x: ArrayLike) -> tuple[int, int]:
    """How many square matrices `x` holds, and their rows.

    Raises
    ------
    MXNetError
        As :func:`matrices`, and for matrices that are not square.
    """
    batch, n, columns = matrices(name, x)
    if n != columns:
        raise MXNetError(f"{name}: takes square matrices; the last two axes of {x._shape} differ")
    return batch, n


def transposed(x: Any) -> Any:
    """Each matrix transposed."""
    ndim = len(x._shape)
    return transpose(x, axes=(*range(ndim - 2), ndim - 1, ndim - 2))


def symmetric(x: Any) -> Any:
    """The symmetric part of each matrix, the mean of it and its transpose."""
    return multiply(add(x, transposed(x)), 0.5)
