"""Matrix products; their VJPs are matrix products again, with transposes as flags."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import gemm as kernels
from numbagrad.launch import launch
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import fill_flat, reshape


def _x(*shape: int) -> np.ndarray:
    return np.sin(np.arange(size_of(shape)) * 0.7 + 0.2).reshape(shape)


def _sides(shape: Shape, last: bool) -> tuple[Shape, int]:
    """The free axes and the length of the contracted axis, which is the last or the first one."""
    return (shape[:-1], shape[-1]) if last else (shape[1:], shape[0])


def _product(a: np.ndarray, b: np.ndarray, batch: int, m: int, n: int, k: int, ta: int, tb: int) -> np.ndarray:
    out = np.empty(batch * m * n, a.dtype)
    if not out.size:
        return out
    if k == 0:
        fill_flat(out, 0)
    elif a.dtype.kind != "f":
        launch(kernels.integer_gemm, a, b, out, batch, m, n, k, ta, tb)
    elif batch == 1:
        launch(kernels.gemm, a, b, out, m, n, k, ta, tb, 1.0)
    else:
        launch(kernels.batch_gemm, a, b, out, batch, m, n, k, ta, tb)
    return out


def _adjoints(product: Any, a: Any, b: Any, g: Any, ta: int, tb: int, want_a: bool, want_b: bool) -> tuple[Any, Any]:
    """The gradients of op(A) op(B), by the product itself."""
    if ta:
        da = product(b, g, ta=tb, tb=1) if want_a else None
    else:
        da = product(g, b, ta=0, tb=1 - tb) if want_a else None
    if tb:
        db = product(g, a, ta=1, tb=ta) if want_b else None
    else:
        db = product(a, g, ta=1 - ta, tb=0) if want_b else None
    return da, db


# ---------------------------------------------------------------------------------------------------------- dot


def _matrix(x: Any, last: bool) -> Any:
    """`x` as a matrix whose last (or first) axis is the contracted one."""
    if len(x._shape) == 2:
        return x
    free, k = _sides(x._shape, last)
    return reshape(x, shape=(size_of(free), k) if last else (k, size_of(free)))


def _dot_vjp(context: Context, g: Any) -> tuple[Any, Any]:
    ta, tb = context.params["ta"], context.params["tb"]
    a, b = _matrix(context.x(0), not ta), _matrix(context.x(1), bool(tb))
    m, n = a._shape[1 if ta else 0], b._shape[0 if tb else 1]
    if g._shape != (m, n):
        g = reshape(g, shape=(m, n))
    found = _adjoints(dot, a, b, g, ta, tb, context.wants(0), context.wants(1))
    da, db = (
        d if d is None or d._shape == context.shape(i) else reshape(d, shape=context.shape(i))
        for i, d in enumerate(found)
    )
    return da, db


@composed(
    "dot",
    _dot_vjp,
    saves="x0 x1",
    samples=lambda: [
        Sample((_x(2, 3), _x(3, 4)), {"ta": 0, "tb": 0}, np.dot),
        Sample((_x(3, 2), _x(3, 4)), {"ta": 1, "tb": 0}, lambda a, b: a.T @ b),
        Sample((_x(2, 3), _x(4, 3)), {"ta": 0, "tb": 1}, lambda a, b: a @ b.T),
        Sample((_x(3, 2), _x(4, 3)), {"ta": 1, "tb": 1}, lambda a, b: a.T @ b.T),
        Sample((_x(3), _x(3)), {"ta": 0, "tb": 0}, np.dot),
        Sample((_x(2, 3), _x(3)), {"ta": 0, "tb": 0}, np.dot),
        Sample((_x(3), _x(3, 2)), {"ta": 0, "tb": 0}, np.dot),
        Sample((_x(2, 2, 3), _x(3, 2, 2)), {"ta": 0, "tb": 0}, lambda a, b: np.tensordot(a, b, 1)),
        Sample((_x(3, 2, 2), _x(2, 2, 3)), {"ta": 1, "tb": 1}, lambda a, b: np.tensordot(a, b, (0, 2))),
    ],
)
def dot(a: ArrayLike, b: ArrayLike, *, ta: int, tb: int) -> Output:
    """Contract the last axis of `a` (the first with `ta`) with the first of `b` (the last with `tb`); one dtype."""
    if not a._shape or not b._shape:
        raise MXNetError(f"dot: cannot multiply shapes {a._shape} and {b._shape}: each needs an axis to contract")
    free_a, k = _sides(a._shape, not ta)
    free_b, other = _sides(b._shape, bool(tb))
    if k != other:
        raise MXNetError(
            f"dot: cannot multiply {a._shape} by {b._shape}: axis {0 if ta else -1} of the first is {k}, "
            f"axis {-1 if tb else 0} of the second is {other}"
        )
    return _product(a._flat, b._flat, 1, size_of(free_a), size_of(free_b), k, ta, tb), free_a + free_b


# ---------------------------------------------------------------------------------------------------- batches


def _batch_dot_vjp(context: Context, g: Any) -> tuple[Any, Any]:
    ta, tb = context.params["ta"], context.params["tb"]
    return _adjoints(batch_dot, context.x(0), context.x(1), g, ta, tb, context.wants(0), context.wants(1))


@composed(
    "batch_dot",
    _batch_dot_vjp,
    saves="x0 x1",
    samples=lambda: [
        Sample((_x(2, 2, 3), _x(2, 3, 2)), {"ta": 0, "tb": 0}, np.matmul),
        Sample((_x(2, 3, 2), _x(2, 3, 2)), {"ta": 1, "tb": 0}, lambda a, b: a.swapaxes(1, 2) @ b),
        Sample((_x(2, 2, 3), _x(2, 2, 3)), {"ta": 0, "tb": 1}, lambda a, b: a @ b.swapaxes(1, 2)),
        Sample((_x(2, 3, 2), _x(2, 2, 3)), {"ta": 1, "tb": 1}, lambda a, b: a.swapaxes(1, 2) @ b.swapaxes(1, 2)),
    ],
)
def batch_dot(a: ArrayLike, b: ArrayLike, *, ta: int, tb: int) -> Output:
    """Matrix products over the last two axes; all axes before them are equal."""
    lead = a._shape[:-2]
    if len(a._shape) < 2 or len(b._shape) < 2 or b._shape[:-2] != lead:
        raise MXNetError(f"batch_dot: cannot multiply {a._shape} by {b._shape}: the axes before the last two differ")
    m, k = a._shape[-1:-3:-1] if ta else a._shape[-2:]
    other, n = b._shape[-1:-3:-1] if tb else b._shape[-2:]
    if k != other:
        raise MXNetError(
            f"batch_dot: cannot multiply {a._shape} by {b._shape}: axis {-2 if ta else -1} of the first is {k}, "
            f"axis {-1 if tb else -2} of the second is {other}"
        )
    return _product(a._flat, b._flat, size_of(lead), m, n, k, ta, tb), (*lead, m, n)
