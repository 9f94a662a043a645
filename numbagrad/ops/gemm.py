"""The product of two matrices, transposes as flags."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import gemm as kernels
from numbagrad.launch import launch
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed


def _product_vjp(context: Context, g: Any) -> tuple[Any, Any]:
    ta, tb = context.params["transpose_a"], context.params["transpose_b"]
    da = db = None
    if context.wants(0):
        b = context.x(1)
        if ta:
            da = product(b, g, transpose_a=tb, transpose_b=True)
        else:
            da = product(g, b, transpose_a=False, transpose_b=not tb)
    if context.wants(1):
        a = context.x(0)
        if tb:
            db = product(g, a, transpose_a=True, transpose_b=ta)
        else:
            db = product(a, g, transpose_a=not ta, transpose_b=False)
    return da, db


def _samples() -> list[Sample]:
    found = []
    for ta in (False, True):
        for tb in (False, True):
            a = np.sin(np.arange(12.0)).reshape((4, 3) if ta else (3, 4))
            b = np.cos(np.arange(8.0)).reshape((2, 4) if tb else (4, 2))
            params = {"transpose_a": ta, "transpose_b": tb}
            found.append(Sample((a, b), params, lambda a, b, ta=ta, tb=tb: (a.T if ta else a) @ (b.T if tb else b)))
    return found


@composed("product", _product_vjp, saves="x0 x1", samples=_samples)
def product(a: ArrayLike, b: ArrayLike, *, transpose_a: bool, transpose_b: bool) -> Output:
    """op(a) op(b) for matrices of one dtype."""
    if len(a._shape) != 2 or len(b._shape) != 2:
        raise MXNetError(f"dot: takes matrices, not shapes {a._shape} and {b._shape}")
    m, k = a._shape[::-1] if transpose_a else a._shape
    other, n = b._shape[::-1] if transpose_b else b._shape
    if k != other:
        raise MXNetError(
            f"dot: cannot multiply {a._shape}{' transposed' if transpose_a else ''} by "
            f"{b._shape}{' transposed' if transpose_b else ''}: axis {0 if transpose_a else 1} of the first is {k}, "
            f"axis {1 if transpose_b else 0} of the second is {other}"
        )
    if a._flat.dtype != b._flat.dtype:
        raise MXNetError(f"dot: takes one dtype, not {a._flat.dtype} and {b._flat.dtype}")
    out = np.empty(m * n, a._flat.dtype)
    if out.dtype.kind == "f":
        launch(kernels.gemm, a._flat, b._flat, out, m, n, k, int(transpose_a), int(transpose_b), 1.0)
    else:
        launch(kernels.integer_gemm, a._flat, b._flat, out, 1, m, n, k, int(transpose_a), int(transpose_b))
    return out, (m, n)
