"""Boxes inside arrays, and arrays inside margins."""

from typing import Any

import numpy as np

from numbagrad.kernels import strided
from numbagrad.launch import launch
from numbagrad.ops.casting import raw
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import fill_flat
from numbagrad.ops.slicing import strided_slice

Widths = tuple[int, ...]


def crop(x: Any, *, begin: Widths, shape: Shape) -> Any:
    """The box of `shape` that starts at `begin`, inside `x`."""
    own = strided.contiguous_strides(x._shape)
    offset = sum(b * step for b, step in zip(begin, own, strict=True))
    return strided_slice(x, offset=offset, shape=shape, strides=own)


def _pad_vjp(context: Context, g: Any) -> Any:
    return crop(g, begin=context.params["before"], shape=context.shape(0))


@composed(
    "pad_constant",
    _pad_vjp,
    float16=True,
    samples=lambda: [
        Sample(
            (np.linspace(-1.0, 2.0, 6).reshape(2, 3),),
            {"before": (1, 0), "after": (0, 2), "value": 0.5},
            lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=0.5),
        )
    ],
)
def pad_constant(x: ArrayLike, *, before: Widths, after: Widths, value: float) -> Output:
    """`x` inside margins of `value`: `before` and `after` say how wide along each axis."""
    shape = tuple(n + a + b for n, a, b in zip(x._shape, before, after, strict=True))
    out = np.empty(size_of(shape), x._flat.dtype)
    fill_flat(out, value)
    own = strided.contiguous_strides(shape)
    view = strided.layout(sum(b * step for b, step in zip(before, own, strict=True)), x._shape, own)
    if view.count:
        launch(strided.scatter, raw(x._flat), raw(out), view.meta, view.ndim, view.count)
    return out, shape
