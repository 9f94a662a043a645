"""Batch normalization in training and in prediction, and layer normalization."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.array import wrote
from numbagrad.errors import MXNetError
from numbagrad.kernels import normalization as kernels
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import floating, promote
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.reduction import mean
from numbagrad.ops.registry import WRITTEN, ArrayLike, Output, Sample, fused
from numbagrad.ops.shaping import identity, reshape, stop_gradient

_UNUSED = {np.dtype(name): np.zeros(1, name) for name in ("float32", "float64")}


def _sizes(shape: Shape, axis: int) -> tuple[int, int, int]:
    return size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


def _check(name: str, x: ArrayLike, axis: int, arrays: dict[str, Any]) -> None:
    n = x._shape[axis]
    for what, array in arrays.items():
        if array._shape != (n,):
            raise MXNetError(
                f"{name}: {what} of shape {array._shape} does not fit data of shape {x._shape}: "
                f"axis {axis} has {n} elements"
            )


def _along(v: Any, ndim: int, axis: int) -> Any:
    """A vector in the shape that broadcasts along `axis`."""
    return reshape(v, shape=(v._flat.size,) + (1,) * (ndim - axis - 1))


def _normalized(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    """(x - mean) / sqrt(variance + eps) over `axes`, of other ops."""
    centred = a.subtract(x, mean(x, axes=axes, keepdims=True))
    variance = mean(a.square(centred), axes=axes, keepdims=True)
    return a.multiply(centred, a.rsqrt(a.add(variance, eps)))


def _scaled(x: Any, gamma: Any, beta: Any, axis: int) -> Any:
    ndim = len(x._shape)
    if gamma is not None:
        x = a.multiply(x, _along(gamma, ndim, axis))
    return x if beta is None else a.add(x, _along(beta, ndim, axis))


def _destination(
    want: bool, context: Any, into: Any, i: int, n: int, unused: np.ndarray
) -> tuple[np.ndarray, bool, Any]:
    """Where the gradient of a vector goes: the buffer, whether to add, and what the VJP returns for it."""
    if not want:
        return unused, False, None
    offered = into(context.parents[i], True)
    if offered is None:
        flat = np.empty(n, unused.dtype)
        return flat, False, (flat, (n,))
    return *offered, WRITTEN


# ------------------------------------------------------------------------------------------------------ batch


def _batch_vjp(context: Any, g: Any, into: Any, statistics: tuple[np.ndarray, np.ndarray], through: bool) -> Any:
    x, gamma = [array._flat for array in context.arrays[:2]]
    shape, params = context.shape(0), context.params
    outer, n, inner = _sizes(shape, params["axis"])
    unused = _UNUSED[x.dtype]
    fix_gamma = params["fix_gamma"]
    want_x, want_gamma, want_beta = context.wants(0), context.wants(1) and not fix_gamma, context.wants(2)
    dx = np.empty(x.size, x.dtype) if want_x else unused
    dgamma, add_gamma, for_gamma = _destination(want_gamma, context, into, 1, n, unused)
    dbeta, add_beta, for_beta = _destination(want_beta, context, into, 2, n, unused)
    launch(
        kernels.batch_norm_vjp,
        g._flat,
        x,
        gamma,
        *statistics,
        dx,
        dgamma,
        dbeta,
        outer,
        n,
        inner,
        int(through),
        int(fix_gamma),
        int(want_x),
        int(want_gamma),
        int(want_beta),
        int(add_gamma) + 2 * int(add_beta),
    )
    return [(dx, shape) if want_x else None, for_gamma, for_beta]


def _training_reference(x: Any, gamma: Any, beta: Any, *, axis: int, eps: float, fix_gamma: bool, **unused: Any) -> Any:
    axes = tuple(k for k in range(len(x._shape)) if k != axis)
    return _scaled(_normalized(x, axes, eps), None if fix_gamma else gamma, beta, axis)


def _x(*shape: int) -> np.ndarray:
    return np.cos(np.arange(size_of(shape)) * 1.7).reshape(shape) + 0.1


def _vectors(n: int, count: int) -> tuple[np.ndarray, ...]:
    return tuple(np.sin(np.arange(n) + 3.0 * k) + 1.5 for k in range(count))


def _expected(axes: tuple[int, ...], axis: int, eps: float, fix_gamma: bool) -> Callable[..., np.ndarray]:
    def value(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
        shape = [1] * x.ndim
        shape[axis] = -1
        z = (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)
        return z * (1 if fix_gamma else gamma.reshape(shape)) + beta.reshape(shape)

    return value


def _training_samples() -> list[Sample]:
    found = []
    for shape, axis in (((4, 3), 1), ((2, 3, 4), 1), ((3, 4), 0)):
        axes = tuple(k for k in range(len(shape)) if k != axis)
        params = {"axis": axis, "eps": 0.1, "fix_gamma": False, "momentum": 0.9, "running": None}
        found.append(Sample((_x(*shape), *_vectors(shape[axis], 2)), params, _expected(axes, axis, 0.1, False)))
    return found


@fused(
    "batch_norm",
    lambda context, g, into: _batch_vjp(context, g, into, context.aux, True),
    _training_reference,
    samples=_training_samples,
)
def _batch_norm(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    *,
    axis: int,
    eps: float,
    fix_gamma: bool,
    momentum: float,
    running: tuple[Any, Any] | None,
) -> tuple[np.ndarray, Shape, tuple[np.ndarray, np.ndarray]]:
    """`x` normalized with its own statistics; `running` (mean, variance), if any, move towards these."""
    _check("BatchNorm", x, axis, {"gamma": gamma, "beta": beta})
    dtype = x._flat.dtype
    outer, n, inner = _sizes(x._shape, axis)
    out, average, inverse = np.empty(x._flat.size, dtype), np.empty(n, dtype), np.empty(n, dtype)
    if running is None:
        moving = np.zeros(n, dtype), np.zeros(n, dtype)
    else:
        _check("BatchNorm", x, axis, {"moving_mean": running[0], "moving_var": running[1]})
        moving = running[0]._flat, running[1]._flat
    launch(
        kernels.batch_norm,
        x._flat,
        gamma._flat,
        beta._flat,
        out,
        average,
        inverse,
        *moving,
        outer,
        n,
        inner,
        eps,
        momentum,
        int(fix_gamma),
    )
    if running is not None:
        for array in running:
            wrote(array._storage)
    return out, x._shape, (average, inverse)


def _inference_reference(
    x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any, *, axis: int, eps: float, fix_gamma: bool
) -> Any:
    ndim = len(x._shape)
    dtype = x._flat.dtype
    middle = _along(cast(stop_gradient(running_mean), dtype=dtype), ndim, axis)
    inverse = _along(a.rsqrt(a.add(cast(stop_gradient(running_var), dtype=dtype), eps)), ndim, axis)
    z = a.multiply(a.subtract(x, middle), inverse)
    return _scaled(z, None if fix_gamma else gamma, beta, axis)


def _inference_vjp(context: Any, g: Any, into: Any) -> Any:
    running_mean, running_var = [array._flat for array in context.arrays[3:5]]
    dtype = g._flat.dtype
    n = running_mean.size
    statistics = np.empty(n, dtype), np.empty(n, dtype)
    launch(kernels.running_statistics, running_mean, running_var, *statistics, n, context.params["eps"])
    return [*_batch_vjp(context, g, into, statistics, False), None, None]


def _inference_samples() -> list[Sample]:
    found = []
    for shape in ((4, 3), (2, 3, 4)):
        along = (3,) + (1,) * (len(shape) - 2)

        def expected(x: Any, gamma: Any, beta: Any, m: Any, v: Any, s: Any = along) -> Any:
            return (x - m.reshape(s)) / np.sqrt(v.reshape(s) + 0.1) * gamma.reshape(s) + beta.reshape(s)

        gamma, beta = _vectors(3, 2)
        # Ints, for running statistics are no variables.
        m = np.arange(3)
        params = {"axis": 1, "eps": 0.1, "fix_gamma": False}
        found.append(Sample((_x(*shape), gamma, beta, m, m + 1), params, expected))
    return found


@fused("batch_norm_inference", _inference_vjp, _inference_reference, samples=_inference_samples)
def _batch_norm_inference(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    running_mean: ArrayLike,
    running_var: ArrayLike,
    *,
    axis: int,
    eps: float,
    fix_gamma: bool,
) -> Output:
    """`x` normalized with running statistics, which count as constants."""
    vectors = {"gamma": gamma, "beta": beta, "moving_mean": running_mean, "moving_var": running_var}
    _check("BatchNorm", x, axis, vectors)
    out = np.empty(x._flat.size, x._flat.dtype)
    launch(
        kernels.batch_norm_inference,
        x._flat,
        gamma._flat,
        beta._flat,
        running_mean._flat,
        running_var._flat,
        out,
        *_sizes(x._shape, axis),
        eps,
        int(fix_gamma),
    )
    return out, x._shape


def _one_dtype(arrays: list[Any]) -> list[Any]:
    dtype = arrays[0]._flat.dtype
    if dtype.kind == "f" and all(array is None or array._flat.dtype is dtype for array in arrays):
        return arrays
    target = floating(promote([array._flat.dtype for array in arrays if array is not None]))
    return [None if array is None else cast(array, dtype=target) for array in arrays]


def batch_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    *,
    axis: int,
    eps: float,
    momentum: float,
    fix_gamma: bool,
    training: bool,
    recording: bool,
    moving: bool = True,
) -> Any:
    """Batch normalization after the dtypes have been lined up.

    Parameters
    ----------
    x : array
    gamma, beta, running_mean, running_var : array of shape (n,)
        n being the length of `axis` (counted from the front).
    training : bool
        Normalize with the statistics of `x` and move the running ones, ``r = momentum r + (1 - momentum) batch``, in
        place; else normalize with the running ones.
    recording : bool
        Whether the call may be recorded: prediction then keeps copies of the running statistics, so that they may move
        before the backward.
    moving : bool
        Whether the running statistics move in training.

    Raises
    ------
    MXNetError
        Where shapes do not fit, before anything is written.
    """
    for what, array in (("moving_mean", running_mean), ("moving_var", running_var)):
        if array._flat.dtype.kind != "f" or array._flat.dtype.itemsize < 4:
            raise MXNetError(f"BatchNorm: {what} must be float32 or float64, not {array._flat.dtype}")
    half = x._flat.dtype == np.float16
    if half:
        # float16 data are normalized in float32, with the parameters as they are.
        x = cast(x, dtype="float32")
    x, gamma, beta = _one_dtype([x, gamma, beta])
    if training:
        running = (running_mean, running_var) if moving else None
        y = _batch_norm(x, gamma, beta, axis=axis, eps=eps, fix_gamma=fix_gamma, momentum=momentum, running=running)
    else:
        if recording:
            running_mean, running_var = identity(running_mean), identity(running_var)
        y = _batch_norm_inference(x, gamma, beta, running_mean, running_var, axis=axis, eps=eps, fix_gamma=fix_gamma)
    return cast(y, dtype="float16") if half else y


# ------------------------------------------------------------------------------------------------------ layer


def _layer_reference(x: Any, gamma: Any, beta: Any, *, axis: int, eps: float) -> Any:
    return _scaled(_normalized(x, (axis,), eps), gamma, beta, axis)


def _layer_vjp(context: Any, g: Any, into: Any) -> Any:
    x, vector = context.arrays[0]._flat, context.arrays[1]
    shape = context.shape(0)
    outer, n, inner = _sizes(shape, context.params["axis"])
    unused = _UNUSED[x.dtype]
    affine = vector is not None
    want_x, want_gamma, want_beta = context.wants(0), context.wants(1), context.wants(2)
    dx = np.empty(x.size, x.dtype) if want_x else unused
    dgamma, add_gamma, for_gamma = _destination(want_gamma, context, into, 1, n, unused)
    dbeta, add_beta, for_beta = _destination(want_beta, context, into, 2, n, unused)
    launch(
        kernels.layer_norm_vjp,
        g._flat,
        x,
        vector._flat if affine else unused,
        *context.aux,
        dx,
        dgamma,
        dbeta,
        outer,
        n,
        inner,
        int(affine),
        int(want_x),
        int(want_gamma),
        int(want_beta),
        int(add_gamma) + 2 * int(add_beta),
    )
    return [(dx, shape) if want_x else None, for_gamma, for_beta]


def _layer_samples() -> list[Sample]:
    found = []
    for shape, axis in (((4, 3), 1), ((2, 3, 4), 1), ((3, 4), 0)):
        arrays = (_x(*shape), *_vectors(shape[axis], 2))
        found.append(Sample(arrays, {"axis": axis, "eps": 0.1}, _expected((axis,), axis, 0.1, False)))
    plain = _expected((1,), 1, 0.1, True)
    found.append(Sample((_x(2, 5), None, None), {"axis": 1, "eps": 0.1}, lambda x, *no: plain(x, None, np.zeros(5))))
    return found


@fused("layer_norm", _layer_vjp, _layer_reference, samples=_layer_samples)
def _layer_norm(
    x: ArrayLike, gamma: ArrayLike | None, beta: ArrayLike | None, *, axis: int, eps: float
) -> tuple[np.ndarray, Shape, tuple[np.ndarray, np.ndarray]]:
    """`x` normalized along `axis`, times gamma plus beta: both given or neither."""
    dtype = x._flat.dtype
    outer, n, inner = _sizes(x._shape, axis)
    out = np.empty(x._flat.size, dtype)
    average, inverse = np.empty(outer * inner, dtype), np.empty(outer * inner, dtype)
    affine = gamma is not None and beta is not None
    if gamma is not None and beta is not None:
        _check("LayerNorm", x, axis, {"gamma": gamma, "beta": beta})
        vectors = gamma._flat, beta._flat
    else:
        vectors = _UNUSED[dtype], _UNUSED[dtype]
    launch(kernels.layer_norm, x._flat, *vectors, out, average, inverse, outer, n, inner, eps, int(affine))
    return out, x._shape, (average, inverse)


def layer_norm(x: Any, gamma: Any, beta: Any, *, axis: int, eps: float) -> Any:
    """Layer normalization along `axis` (from the front) after the dtypes have been lined up.

    gamma and beta have the shape (n,), n being the length of the axis, or are both None.

    Raises
    ------
    MXNetError
        Where shapes do not fit.
    """
    x, gamma, beta = _one_dtype([x, gamma, beta])
    return _layer_norm(x, gamma, beta, axis=axis, eps=eps)
