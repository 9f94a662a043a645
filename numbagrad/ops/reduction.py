"""Sums and their kin over axes."""

from typing import Any

import numpy as np

from numbagrad.kernels import reduce as kernels
from numbagrad.ops.arithmetic import multiply
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.dtypes import floating
from numbagrad.ops.folding import Axes, kept_shape, reduce, reduced_shape
from numbagrad.ops.layout import size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import reshape


def _x(*shape: int) -> np.ndarray:
    return np.cos(np.arange(size_of(shape)) * 1.7).reshape(shape) + 0.1


# ------------------------------------------------------------------------------------------------------- sums


def _spread(context: Context, g: Any) -> Any:
    """The gradient of a sum: the head, repeated along what was summed."""
    shape = context.shape(0)
    return broadcast_to(reshape(g, shape=kept_shape(shape, context.params["axes"])), shape=shape)


_AXES_SAMPLES = [((2, 3, 4), (0, 1, 2)), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)), ((5,), (0,)), ((3, 4), (0,))]


def _samples(numpy: Any, shapes: Any = _AXES_SAMPLES, smooth: bool = True) -> Any:
    def make() -> list[Sample]:
        found = []
        for shape, axes in shapes:
            for keepdims in (False, True):
                params = {"axes": axes, "keepdims": keepdims}
                found.append(
                    Sample((_x(*shape),), params, lambda x, a=axes, k=keepdims: numpy(x, axis=a, keepdims=k), smooth)
                )
        return found

    return make


@composed("sum", _spread, samples=_samples(np.sum))
def sum_(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The sum over `axes`; blocks in the dtype, float64 across blocks."""
    return reduce(kernels.sum_, x, axes, x._flat.dtype), reduced_shape(x._shape, axes, keepdims)


def _mean_vjp(context: Context, g: Any) -> Any:
    shape, axes = context.shape(0), context.params["axes"]
    n = size_of(tuple(shape[k] for k in axes))
    return _spread(context, multiply(g, 1.0 / n if n else 0.0))


@composed("mean", _mean_vjp, samples=_samples(np.mean))
def mean(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The mean over `axes`; of ints in float32."""
    return reduce(kernels.mean, x, axes, floating(x._flat.dtype)), reduced_shape(x._shape, axes, keepdims)
