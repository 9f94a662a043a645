"""Dropout (N. Srivastava et al., JMLR 2014): elements set to 0 with probability p, the others divided by 1 - p.

The mask is drawn from the stream of the process inside the kernel and kept for the VJP. As a function of its input,
dropout under a given mask is linear and its own transpose, so one op, :data:`dropout_apply`, is the VJP at every order.
"""

from typing import Any

import numpy as np

from numbagrad.kernels import dropout as kernels
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.random import STATE
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed


def _x(*shape: int) -> np.ndarray:
    return np.cos(np.arange(size_of(shape)) * 1.7).reshape(shape)


def _mask() -> np.ndarray:
    return (np.arange(6) % 3 != 1).astype(np.uint8).reshape(2, 3)


def _apply_vjp(context: Context, g: Any) -> Any:
    return dropout_apply(g, context.x(1), p=context.params["p"]), None


@composed(
    "dropout_apply",
    _apply_vjp,
    saves="x1",
    samples=lambda: [Sample((_x(2, 3), _mask()), {"p": 0.2}, lambda x, mask: np.where(mask, x / 0.8, 0))],
)
def dropout_apply(x: ArrayLike, mask: ArrayLike, *, p: float) -> Output:
    """`x` / (1 - p) where `mask` (uint8, of the same shape) is 1, else 0."""
    out = np.empty(x._flat.size, x._flat.dtype)
    launch(kernels.dropout_vjp, x._flat, mask._flat, out, out.size, p)
    return out, x._shape


def _vjp(context: Context, g: Any) -> Any:
    return dropout_apply(g, type(g)(context.aux, context.shape(0)), p=context.params["p"])


@composed(
    "dropout",
    _vjp,
    samples=lambda: [
        Sample((_x(3, 4),), {"p": 0.0}, np.array),
        Sample((_x(3, 4),), {"p": 1.0}, np.zeros_like),
    ],
)
def dropout(x: ArrayLike, *, p: float) -> tuple[np.ndarray, Shape, np.ndarray]:
    """`x` / (1 - p) with probability 1 - p, else 0, each element by itself; zeros for p = 1."""
    n = x._flat.size
    out, mask = np.empty(n, x._flat.dtype), np.empty(n, np.uint8)
    launch(kernels.dropout, STATE, x._flat, out, mask, n, p)
    return out, x._shape, mask


@composed(
    "dropout_mask",
    lambda context, g: None,
    differentiable=False,
    samples=lambda: [Sample((_x(3, 4),), {"shape": (3, 1), "p": 0.0}, lambda x: np.ones((3, 1)))],
)
def dropout_mask(like: ArrayLike, *, shape: Shape, p: float) -> Output:
    """1 with probability 1 - p, else 0, in the dtype of `like`."""
    out = np.empty(size_of(shape), like._flat.dtype)
    launch(kernels.dropout_mask, STATE, out, out.size, p)
    return out, shape


def dropout_along(x: Any, *, p: float, axes: tuple[int, ...]) -> Any:
    """Dropout with one mask shared along `axes` (counted from the front)."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(x._shape))
    kept = a.multiply(x, 1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return a.where(dropout_mask(x, shape=shape, p=p), kept, 0)
