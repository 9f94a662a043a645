"""softmax and log_softmax along an axis, with a temperature."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.kernels import softmax as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops import special
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.reduction import max_, sum_
from numbagrad.ops.registry import ArrayLike, Output, Sample, fused
from numbagrad.ops.shaping import stop_gradient


def _sizes(shape: Shape, axis: int) -> tuple[int, int, int]:
    return size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


def _shifted(x: Any, axis: int, temperature: float) -> Any:
    # The shift changes no value and no derivative.
    x = a.multiply(x, 1.0 / temperature)
    return a.subtract(x, stop_gradient(max_(x, axes=(axis,), keepdims=True)))


def _softmax_reference(x: Any, *, axis: int, temperature: float) -> Any:
    e = a.exp(_shifted(x, axis, temperature))
    return a.divide(e, sum_(e, axes=(axis,), keepdims=True))


def _log_softmax_reference(x: Any, *, axis: int, temperature: float) -> Any:
    z = _shifted(x, axis, temperature)
    return a.subtract(z, a.log(sum_(a.exp(z), axes=(axis,), keepdims=True)))


def _vjp(kernel: Kernel) -> Callable[..., list[Any]]:
    def rule(context: Any, g: Any, into: Any) -> list[Any]:
        y = context.out[0][1]
        shape = context.shape(0)
        out = np.empty(y.size, y.dtype)
        params = context.params
        launch(kernel, g._flat, y, out, *_sizes(shape, params["axis"]), params["temperature"])
        return [(out, shape)]

    return rule


def _samples(numpy: Callable[..., Any]) -> Callable[[], list[Sample]]:
    x = np.sin(np.arange(24.0) * 1.9).reshape(2, 3, 4)
    return lambda: [
        Sample((x,), {"axis": axis, "temperature": t}, lambda x, axis=axis, t=t: numpy(x / t, axis=axis))
        for axis, t in ((2, 1.0), (1, 0.5), (0, 2.0))
    ]


@fused("softmax", _vjp(kernels.softmax_vjp), _softmax_reference, saves="y0", samples=_samples(special.softmax))
def softmax(x: ArrayLike, *, axis: int, temperature: float) -> Output:
    """exp(x / temperature) over its sum along `axis` (counted from the front)."""
    out = np.empty(x._flat.size, x._flat.dtype)
    launch(kernels.softmax, x._flat, out, *_sizes(x._shape, axis), temperature)
    return out, x._shape


@fused(
    "log_softmax",
    _vjp(kernels.log_softmax_vjp),
    _log_softmax_reference,
    saves="y0",
    samples=_samples(special.log_softmax),
)
def log_softmax(x: ArrayLike, *, axis: int, temperature: float) -> Output:
    """The logarithm of softmax, computed without its underflow."""
    out = np.empty(x._flat.size, x._flat.dtype)
    launch(kernels.log_softmax, x._flat, out, *_sizes(x._shape, axis), temperature)
    return out, x._shape
