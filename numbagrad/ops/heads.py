"""Heads of networks: predictions whose gradient is that of a loss which they do not compute.

The gradient that arrives at them is ignored. What they send on depends on inputs and labels alone. It is written in
other ops on the inputs, not on the outputs, whose derivative would be that of the loss again: so its own derivative is
right.
"""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import softmax as kernels
from numbagrad.kernels.strided import copy
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops.casting import cast, raw
from numbagrad.ops.indexing import one_hot
from numbagrad.ops.reduction import sum_
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import full_like, reshape, transpose
from numbagrad.ops.softmax import softmax


def _copy(x: ArrayLike) -> Output:
    out = np.empty_like(x._flat)
    launch(copy, raw(x._flat), raw(out), out.size)
    return out, x._shape


def _x(*shape: int) -> np.ndarray:
    return np.sin(np.arange(float(np.prod(shape))) * 1.3).reshape(shape)


# ---------------------------------------------------------------------------------------------------- softmax


def _softmax_vjp(context: Context, g: Any) -> tuple[Any, None]:
    label, params = context.x(1), context.params
    p = softmax(context.x(0), axis=1, temperature=1.0)
    if label._shape == p._shape:
        gradient = a.multiply(a.subtract(p, label), params["scale"])
    else:
        n, classes, inner = p._shape
        dtype, smooth = p._flat.dtype, params["smooth"]
        rest = smooth / (classes - 1) if classes > 1 else 0.0
        lit = one_hot(label, depth=classes, on=1.0 - smooth, off=rest, dtype=dtype)
        gradient = a.subtract(p, transpose(lit, axes=(0, 2, 1)))
        if params["ignores"]:
            keep = cast(a.not_equal(label, params["ignored"]), dtype=dtype)
            gradient = a.multiply_zero(reshape(keep, shape=(n, 1, inner)), gradient)
        scale, normalization = params["scale"], params["normalization"]
        if normalization == "valid":
            valid = cast(a.not_equal(a.trunc(label), float(int(params["ignored"]))), dtype=dtype)
            count = a.maximum(sum_(valid, axes=(0, 1), keepdims=True), 1.0)
            gradient = a.divide(gradient, reshape(count, shape=(1, 1, 1)))
        else:
            scale /= max(1, inner) * (max(1, n) if normalization == "batch" else 1)
        gradient = a.multiply(gradient, scale)
    return a.multiply(gradient, g) if params["takes_head"] else gradient, None


def _softmax_samples() -> list[Sample]:
    params = {"scale": 2.0, "ignores": True, "ignored": -1.0, "normalization": "valid", "smooth": 0.1}
    x, label = _x(2, 3, 4), np.array([[0.0, 1, 2, -1], [2, 2, 1, 0]])

    def expected(x: np.ndarray, label: np.ndarray) -> np.ndarray:
        e = np.exp(x)
        return e / e.sum(axis=1, keepdims=True)

    return [
        Sample((x, label), {**params, "takes_head": False}, expected, smooth=False),
        Sample((x, _x(2, 3, 4) ** 2), {**params, "takes_head": True}, expected, smooth=False),
    ]


@composed("softmax_output", _softmax_vjp, saves="x0 x1", differentiable=False, samples=_softmax_samples)
def softmax_output(
    x: ArrayLike,
    label: ArrayLike,
    *,
    scale: float,
    ignores: bool,
    ignored: float,
    normalization: str,
    smooth: float,
    takes_head: bool,
) -> Output:
    """The softmax of x (n, classes, inner) along its second axis, with the gradient of cross entropy.

    Labels (n, inner) are classes: the gradient is softmax - one_hot, smoothed, and 0 for the label that is ignored.
    Those of the shape of x are probabilities: then it is softmax - label.
    """
    n, classes, inner = x._shape
    out = np.empty_like(x._flat)
    launch(kernels.softmax, x._flat, out, n, classes, inner, 1.0)
    return out, x._shape


# ------------------------------------------------------------------------------------------------- regression


def _regression_vjp(context: Context, g: Any) -> tuple[Any, None]:
    x, label, params = context.x(0), context.x(1), context.params
    difference = a.subtract(a.sigmoid(x) if params["kind"] == "logistic" else x, label)
    if params["kind"] == "absolute":
        difference = a.subtract(a.multiply(a.greater(difference, 0.0), 2.0), 1.0)
    return a.multiply(difference, params["scale"]), None


def _regression_samples() -> list[Sample]:
    x, label = _x(2, 3), _x(2, 3) ** 2
    numpy: dict[str, Any] = {"linear": lambda x, z: x, "absolute": lambda x, z: x}
    numpy["logistic"] = lambda x, z: 1 / (1 + np.exp(-x))
    return [Sample((x, label), {"kind": kind, "scale": 0.5}, f, smooth=False) for kind, f in numpy.items()]


@composed("regression_output", _regression_vjp, saves="x0 x1", differentiable=False, samples=_regression_samples)
def regression_output(x: ArrayLike, label: ArrayLike, *, kind: str, scale: float) -> Output:
    """The predictions x, or sigmoid(x), with the gradient scale (y - label), or its sign (-1 at 0).

    `kind` is ``linear``, ``logistic`` or ``absolute``; labels have the shape of x.
    """
    if kind != "logistic":
        return _copy(x)
    out = np.empty_like(x._flat)
    launch(a.sigmoid.loop(x._flat.dtype, "s").kernel, out.size, x._flat, out)
    return out, x._shape


# ------------------------------------------------------------------------------------- support vector machines


def _svm_vjp(context: Context, g: Any) -> tuple[Any, None]:
    x, label, params = context.x(0), context.x(1), context.params
    side = one_hot(label, depth=x._shape[1], on=1.0, off=-1.0, dtype=x._flat.dtype)
    lacking = a.subtract(params["margin"], a.multiply(side, x))
    slope = a.greater(lacking, 0.0) if params["linear"] else a.multiply(a.relu(lacking), 2.0)
    return a.multiply(a.multiply(side, slope), -params["regularization"]), None


def _svm_samples() -> list[Sample]:
    label = np.array([0.0, 2.0])
    return [
        Sample(
            (_x(2, 3), label),
            {"margin": 0.5, "regularization": 2.0, "linear": linear},
            lambda x, z: np.array(x),
            smooth=False,
        )
        for linear in (True, False)
    ]


@composed("svm_output", _svm_vjp, saves="x0 x1", differentiable=False, samples=_svm_samples)
def svm_output(x: ArrayLike, label: ArrayLike, *, margin: float, regularization: float, linear: bool) -> Output:
    """The scores x (n, classes), with the gradient of the one-against-all hinge loss, `linear` or squared.

    Labels (n,) are classes.
    """
    if len(x._shape) != 2 or label._shape != x._shape[:1]:
        raise MXNetError(f"SVMOutput: labels of shape {label._shape} do not fit scores of shape {x._shape}")
    return _copy(x)


# ----------------------------------------------------------------------------------------------- any quantity


def _scaled_loss_vjp(context: Context, g: Any) -> Any:
    x, params = context.x(0), context.params
    gradient = full_like(x, value=params["scale"])
    if params["normalization"] == "batch":
        return a.divide(gradient, float(max(1, x._shape[0])))
    if params["normalization"] == "valid":
        valid = a.greater(x, params["threshold"])
        axes = tuple(range(len(x._shape)))
        return a.divide(gradient, a.maximum(sum_(valid, axes=axes, keepdims=True), 1.0))
    return gradient


@composed(
    "scaled_loss",
    _scaled_loss_vjp,
    saves="x0",
    differentiable=False,
    samples=lambda: [
        Sample((_x(2, 3),), {"scale": 2.0, "normalization": each, "threshold": 0.1}, np.array, smooth=False)
        for each in ("null", "batch", "valid")
    ],
)
def scaled_loss(x: ArrayLike, *, scale: float, normalization: str, threshold: float) -> Output:
    """A copy whose gradient is `scale`: undivided, over the first axis's length, or the number above `threshold`."""
    return _copy(x)
