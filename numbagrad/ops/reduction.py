"""Sums, products, extremes and norms over axes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import extreme
from numbagrad.kernels import reduce as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import absolute, divide, equal, multiply, sqrt, where
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.dtypes import floating
from numbagrad.ops.folding import Axes, fold, kept_shape, reduce, reduced_shape
from numbagrad.ops.joining import concat
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.padding import crop
from numbagrad.ops.piecewise import norm_slope
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed, fused
from numbagrad.ops.shaping import full_like, gather, reshape, stop_gradient


def _x(*shape: int) -> np.ndarray:
    return np.cos(np.arange(size_of(shape)) * 1.7).reshape(shape) + 0.1


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


# ------------------------------------------------------------------------------------------------------- sums


def _head(context: Context, g: Any) -> Any:
    """The head gradient with the reduced axes as 1, so that it broadcasts against the input."""
    kept = kept_shape(context.shape(0), context.params["axes"])
    return g if g._shape == kept else reshape(g, shape=kept)


def _spread(context: Context, g: Any) -> Any:
    """The gradient of a sum: the head, repeated along what was summed."""
    return broadcast_to(_head(context, g), shape=context.shape(0))


@composed("sum", _spread, samples=_samples(np.sum))
def sum_(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The sum over `axes`; blocks in the dtype, float64 across blocks."""
    return reduce(kernels.sum_, x, axes, x._flat.dtype, kernels.sum_), reduced_shape(x._shape, axes, keepdims)


def _mean_vjp(context: Context, g: Any) -> Any:
    shape, axes = context.shape(0), context.params["axes"]
    n = size_of(tuple(shape[k] for k in axes))
    return _spread(context, multiply(g, 1.0 / n if n else 0.0))


@composed("mean", _mean_vjp, samples=_samples(np.mean))
def mean(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The mean over `axes`; of ints in float32."""
    return reduce(kernels.mean, x, axes, floating(x._flat.dtype), kernels.mean), reduced_shape(x._shape, axes, keepdims)


def _nansum_vjp(context: Context, g: Any) -> Any:
    x = context.x(0)
    return where(equal(x, x), _head(context, g), 0.0)


@composed("nansum", _nansum_vjp, saves="x0", samples=_samples(np.nansum))
def nansum(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The sum over `axes` of what is not NaN."""
    return reduce(kernels.nansum, x, axes, x._flat.dtype), reduced_shape(x._shape, axes, keepdims)


def _cumsum_vjp(context: Context, g: Any) -> Any:
    return cumsum(g, axis=context.params["axis"], reverse=1 - context.params["reverse"])


@composed(
    "cumsum",
    _cumsum_vjp,
    samples=lambda: [
        Sample((_x(2, 3, 4),), {"axis": 1, "reverse": 0}, lambda x: np.cumsum(x, 1)),
        Sample((_x(5),), {"axis": 0, "reverse": 0}, np.cumsum),
        Sample((_x(3, 4),), {"axis": 1, "reverse": 1}, lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1]),
    ],
)
def cumsum(x: ArrayLike, *, axis: int, reverse: int) -> Output:
    """Running sums along `axis`, from its end where `reverse` is 1."""
    out = np.empty_like(x._flat)
    _, outer, n, inner = fold(x, (axis,))
    if out.size:
        launch(kernels.cumsum, x._flat, out, outer, n, inner, reverse)
    return out, x._shape


# ------------------------------------------------------------------------------------------------------- norm


def _norm_vjp(context: Context, g: Any) -> Any:
    kept = kept_shape(context.shape(0), context.params["axes"])
    y = context.y(0)
    return norm_slope(_head(context, g), context.x(0), y if y._shape == kept else reshape(y, shape=kept))


@composed(
    "norm",
    _norm_vjp,
    saves="x0 y0",
    samples=_samples(lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))),
)
def norm(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The Euclidean norm over `axes`, of floats; its derivative is 0 at 0."""
    squares = reduce(kernels.sum_squares, x, axes, x._flat.dtype, kernels.sum_)
    out = np.empty_like(squares)
    launch(sqrt.loop(out.dtype, "s").kernel, out.size, squares, out)
    return out, reduced_shape(x._shape, axes, keepdims)


def norm1(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    """The sum of magnitudes over `axes`."""
    return sum_(absolute(x), axes=axes, keepdims=keepdims)


# --------------------------------------------------------------------------------------- products and extremes


def _ungroup(flat: np.ndarray, shape: Shape, axes: Axes) -> np.ndarray:
    """`flat`, laid out as :func:`fold` lays out an array of `shape`, in the order of `shape`."""
    if not axes or axes == tuple(range(axes[0], axes[-1] + 1)):
        return flat
    order = tuple(k for k in range(len(shape)) if k not in axes) + axes
    strides = [0] * len(shape)
    step = 1
    for k in reversed(order):
        strides[k] = step
        step *= shape[k]

    class Grouped:
        _flat, _shape = flat, shape

    return gather(Grouped(), 0, shape, strides)


def _fused_vjp(context: Context, run: Callable[..., None]) -> Any:
    """The gradient that ``run(x, out, outer, n, inner)`` writes, for input 0."""
    x = context.x(0)
    shape, axes = x._shape, context.params["axes"]
    x, outer, n, inner = fold(x, axes)
    out = np.empty_like(x._flat)
    if out.size:
        run(x._flat, out, outer, n, inner)
    return ((_ungroup(out, shape, axes), shape),)


def _product_by_halves(x: Any, axes: Axes, keepdims: bool) -> Any:
    """The product as a tree of multiplications, from which derivatives of every order are exact, zeros or not."""
    shape = x._shape
    for axis in axes:
        while x._shape[axis] > 1:
            n = x._shape[axis]
            half = n // 2

            def part(start: int, length: int, x: Any = x, axis: int = axis) -> Any:
                lengths = tuple(length if k == axis else m for k, m in enumerate(x._shape))
                return crop(x, begin=tuple(start if k == axis else 0 for k in range(len(lengths))), shape=lengths)

            halves = multiply(part(0, half), part(half, half))
            x = concat([halves, part(n - 1, 1)], axis) if n % 2 else halves
    return reshape(x, shape=reduced_shape(shape, axes, keepdims))


def _prod_reference(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    return _product_by_halves(x, axes, keepdims)


def _nanprod_reference(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    return _product_by_halves(where(equal(x, x), x, 1.0), axes, keepdims)


@fused(
    "prod",
    lambda context, g, into: _fused_vjp(context, lambda *rest: launch(kernels.prod_vjp, g._flat, *rest)),
    _prod_reference,
    samples=_samples(np.prod),
)
def prod(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The product over `axes`."""
    return reduce(kernels.prod, x, axes, x._flat.dtype), reduced_shape(x._shape, axes, keepdims)


@fused(
    "nanprod",
    lambda context, g, into: _fused_vjp(context, lambda *rest: launch(kernels.nanprod_vjp, g._flat, *rest)),
    _nanprod_reference,
    samples=_samples(np.nanprod),
)
def nanprod(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The product over `axes` of what is not NaN."""
    return reduce(kernels.nanprod, x, axes, x._flat.dtype), reduced_shape(x._shape, axes, keepdims)


def _extreme_vjp(context: Context, g: Any, into: Any) -> Any:
    def run(x: np.ndarray, out: np.ndarray, outer: int, n: int, inner: int) -> None:
        launch(extreme.extreme_vjp, g._flat, x, context.y(0)._flat, out, outer, n, inner)

    return _fused_vjp(context, run)


def _extreme(name: str, kernel: Kernel, x: ArrayLike, axes: Axes, keepdims: bool) -> Output:
    if 0 in x._shape and any(x._shape[k] == 0 for k in axes) and 0 not in reduced_shape(x._shape, axes, False):
        raise MXNetError(f"{name}: an array of shape {x._shape} has no {name} over axes {axes}: there are no elements")
    return reduce(kernel, x, axes, x._flat.dtype, kernel), reduced_shape(x._shape, axes, keepdims)


def _extreme_reference(op: Any, x: Any, axes: Axes, keepdims: bool) -> Any:
    """The mean of the elements that tie for the extreme: the tied set, as a step function, has no derivative."""
    top = op(stop_gradient(x), axes=axes, keepdims=True)
    tied = where(equal(top, top), equal(x, top), where(equal(x, x), 0.0, full_like(x, value=1)))
    value = sum_(where(tied, x, 0.0), axes=axes, keepdims=keepdims)
    return divide(value, sum_(tied, axes=axes, keepdims=keepdims))


def _max_reference(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    return _extreme_reference(max_, x, axes, keepdims)


def _min_reference(x: Any, *, axes: Axes, keepdims: bool) -> Any:
    return _extreme_reference(min_, x, axes, keepdims)


@fused("max", _extreme_vjp, _max_reference, saves="y0", samples=_samples(np.max))
def max_(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The largest element over `axes`; tied ones share the gradient equally."""
    return _extreme("max", extreme.max_, x, axes, keepdims)


@fused("min", _extreme_vjp, _min_reference, saves="y0", samples=_samples(np.min))
def min_(x: ArrayLike, *, axes: Axes, keepdims: bool) -> Output:
    """The smallest element over `axes`; tied ones share the gradient equally."""
    return _extreme("min", extreme.min_, x, axes, keepdims)
