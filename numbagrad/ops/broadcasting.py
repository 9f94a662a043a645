"""Repeating an array to a larger shape, and the sum that undoes it: each the other's VJP."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import reduce as kernels
from numbagrad.kernels import strided
from numbagrad.ops.folding import reduce
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import gather


def _x(*shape: int) -> np.ndarray:
    return np.linspace(-1.0, 2.0, size_of(shape)).reshape(shape)


def _broadcast_to_vjp(context: Context, g: Any) -> Any:
    return sum_to(g, shape=context.shape(0))


@composed(
    "broadcast_to",
    _broadcast_to_vjp,
    float16=True,
    samples=lambda: [
        Sample((_x(3, 1),), {"shape": (2, 3, 4)}, lambda x: np.broadcast_to(x, (2, 3, 4))),
        Sample((_x(1),), {"shape": (2, 3)}, lambda x: np.broadcast_to(x, (2, 3))),
    ],
)
def broadcast_to(x: ArrayLike, *, shape: Shape) -> Output:
    """`x` repeated to `shape` by NumPy's rules."""
    lead = len(shape) - len(x._shape)
    fits = lead >= 0 and all(m in (1, n) for m, n in zip(x._shape, shape[lead:], strict=True))
    if not fits or any(n < 0 for n in shape):
        raise MXNetError(f"broadcast_to: {x._shape} does not broadcast to {shape}")
    own = strided.contiguous_strides(x._shape)
    strides = [0] * lead + [0 if m == 1 else step for m, step in zip(x._shape, own, strict=True)]
    return gather(x, 0, shape, strides), shape


@composed(
    "sum_to",
    lambda context, g: broadcast_to(g, shape=context.shape(0)),
    samples=lambda: [
        Sample((_x(2, 3, 4),), {"shape": (3, 1)}, lambda x: x.sum(axis=(0, 2)).reshape(3, 1)),
        Sample((_x(3, 4),), {"shape": (1,)}, lambda x: x.sum().reshape(1)),
        Sample((_x(3, 4),), {"shape": (4,)}, lambda x: x.sum(axis=0)),
    ],
)
def sum_to(x: ArrayLike, *, shape: Shape) -> Output:
    """The sum that undoes broadcasting `shape` to the shape of `x`."""
    lead = len(x._shape) - len(shape)
    axes = tuple(k for k, n in enumerate(x._shape) if k < lead or (shape[k - lead] == 1 and n != 1))
    return reduce(kernels.sum_, x, axes, x._flat.dtype, kernels.sum_), shape
