"""Losses fused into one kernel each way: one loss an example, from predictions (batch, ...) and labels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.kernels import loss as kernels
from numbagrad.kernels.loss import Averaged
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops import registry
from numbagrad.ops.casting import cast
from numbagrad.ops.indexing import pick
from numbagrad.ops.reduction import mean, sum_
from numbagrad.ops.registry import ArrayLike, Output, Sample, fused
from numbagrad.ops.shaping import reshape
from numbagrad.ops.softmax import log_softmax
from numbagrad.tape import state

_HALF = np.dtype("float16")


def _misfit(name: str, x: ArrayLike, label: ArrayLike) -> MXNetError:
    return MXNetError(f"{name}: labels of shape {label._shape} do not fit predictions of shape {x._shape}")


# ------------------------------------------------------------------------------------------- softmax, classes


def _ce_reference(x: Any, label: Any, *, weight: float) -> Any:
    logp = log_softmax(x, axis=1, temperature=1.0)
    return a.multiply(pick(logp, cast(label, dtype="int64"), axis=1, keepdims=False, mode="clip"), -weight)


def _ce_vjp(context: Any, g: Any, into: Any) -> list[Any]:
    x, label = context.arrays
    n, classes = shape = x._shape
    flat = g._flat
    slopes = context.aux
    if slopes is None:  # handed out by an earlier pass
        slopes = np.empty(n * classes, flat.dtype)
        loss, weight = np.empty(n, flat.dtype), context.params["weight"]
        launch(kernels.softmax_ce, x._flat, label._flat, loss, slopes, n, classes, weight)
    if id(flat) in tape.ONES:
        context.aux = None  # who gets it may write to it
        return [(slopes, shape), None]
    dx = np.empty(n * classes, flat.dtype)
    launch(kernels.scale_rows, flat, slopes, dx, n, classes)
    return [(dx, shape), None]


def _ce_samples() -> list[Sample]:
    x = np.sin(np.arange(12.0) * 2.3).reshape(4, 3)
    label = np.array([2, 0, 1, 1])

    def expected(x: np.ndarray, label: np.ndarray) -> np.ndarray:
        logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
        return -0.5 * logp[np.arange(4), label]

    return [Sample((x, label), {"weight": 0.5}, expected)]


@fused("softmax_ce", _ce_vjp, _ce_reference, samples=_ce_samples)
def softmax_ce(x: ArrayLike, label: ArrayLike, *, weight: float) -> tuple[np.ndarray, tuple[int], np.ndarray]:
    """-weight log softmax(x)[label]: x (n, classes), label (n,) of any dtype, result (n,).

    Raises
    ------
    MXNetError
        For a label that is no class, before anything is computed.
    """
    if len(x._shape) != 2 or label._flat.size != x._shape[0]:
        raise _misfit("SoftmaxCrossEntropyLoss", x, label)
    n, classes = x._shape
    dtype = x._flat.dtype
    loss, slopes = np.empty(n, dtype), np.empty(n * classes, dtype)
    launch(kernels.softmax_ce, x._flat, label._flat, loss, slopes, n, classes, weight)
    return loss, (n,), slopes


def _dense_ce_reference(x: Any, label: Any, *, weight: float) -> Any:
    logp = log_softmax(x, axis=1, temperature=1.0)
    return a.multiply(sum_(a.multiply(logp, label), axes=(1,), keepdims=False), -weight)


def _dense_ce_vjp(context: Any, g: Any, into: Any) -> list[Any]:
    x, label = [array._flat for array in context.arrays]
    shape = n, classes = context.shape(0)
    weight = context.params["weight"]
    results: list[Any] = [None, None]
    if context.wants(0):
        dx = np.empty(n * classes, g._flat.dtype)
        launch(kernels.softmax_ce_dense_vjp, g._flat, context.aux, label, dx, n, classes, weight)
        results[0] = (dx, shape)
    if context.wants(1):
        dz = np.empty(n * classes, g._flat.dtype)
        launch(kernels.softmax_ce_dense_label_vjp, g._flat, x, dz, n, classes, weight)
        results[1] = (dz, shape)
    return results


def _dense_ce_samples() -> list[Sample]:
    x = np.sin(np.arange(12.0) * 2.3).reshape(4, 3)
    z = np.cos(np.arange(12.0) * 1.1).reshape(4, 3) ** 2

    def expected(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return -2.0 * (z * (x - np.log(np.exp(x).sum(axis=1, keepdims=True)))).sum(axis=1)

    return [Sample((x, z), {"weight": 2.0}, expected)]


@fused("softmax_ce_dense", _dense_ce_vjp, _dense_ce_reference, samples=_dense_ce_samples)
def softmax_ce_dense(x: ArrayLike, label: ArrayLike, *, weight: float) -> tuple[np.ndarray, tuple[int], np.ndarray]:
    """-weight sum(label log softmax(x)): both (n, classes) of one dtype, result (n,)."""
    if len(x._shape) != 2 or label._shape != x._shape:
        raise _misfit("SoftmaxCrossEntropyLoss", x, label)
    n, classes = x._shape
    dtype = x._flat.dtype
    loss, p = np.empty(n, dtype), np.empty(n * classes, dtype)
    launch(kernels.softmax_ce_dense, x._flat, label._flat, loss, p, n, classes, weight)
    return loss, (n,), p


# --------------------------------------------------------------------- one number against one number, averaged


def _averaged(
    name: str,
    title: str,
    kernels: Averaged,
    elementwise: Callable[[Any, Any], Any],
    numpy: Callable[[Any, Any], Any],
) -> Any:
    """A loss that is the mean over all axes but the first of a function of a prediction and a label."""

    def reference(x: Any, label: Any, *, weight: float) -> Any:
        if label._shape != x._shape:
            label = reshape(label, shape=x._shape)
        if label._flat.dtype != x._flat.dtype:
            label = cast(label, dtype=x._flat.dtype)
        loss = a.multiply(elementwise(x, label), weight)
        return mean(loss, axes=tuple(range(1, len(x._shape))), keepdims=False) if len(x._shape) > 1 else loss

    def rule(context: Any, g: Any, into: Any) -> list[Any]:
        pred, label = context.arrays
        flat = g._flat
        slopes = context.aux
        if slopes is not None and id(flat) in tape.ONES:
            context.aux = None  # who gets it may write to it
            return [(slopes, pred._shape), None]
        x = pred._flat
        size = x.size
        shape = pred._shape
        batch = shape[0]
        inner = size // batch if batch else 1
        weight = context.params["weight"]
        of_pred, of_label = context.parents
        results: list[Any] = [None, None]
        if of_pred is not None:
            dx = np.empty(size, x.dtype)
            launch(kernels.vjp, flat, x, label._flat, dx, batch, inner, weight)
            results[0] = (dx, shape)
        if of_label is not None:
            dz = np.empty(size, x.dtype)
            launch(kernels.label_vjp, flat, x, label._flat, dz, batch, inner, weight)
            results[1] = (dz, label._shape)
        return results

    def samples() -> list[Sample]:
        x = np.sin(np.arange(12.0) * 2.3).reshape(4, 3)
        z = np.cos(np.arange(12.0) * 1.1).reshape(4, 3) ** 2
        return [
            Sample((x, z), {"weight": 0.5}, lambda x, z: 0.5 * numpy(x, z).mean(axis=1)),
            Sample((x[:, :1], z[:, 0]), {"weight": 1.0}, lambda x, z: numpy(x[:, 0], z)),
        ]

    @fused(name, rule, reference, samples=samples)
    def op(x: ArrayLike, label: ArrayLike, *, weight: float) -> Output:
        flat, labels, shape = x._flat, label._flat, x._shape
        size = flat.size
        if not shape or labels.size != size:
            raise _misfit(title, x, label)
        batch = shape[0]
        loss = np.empty(batch, flat.dtype)
        launch(kernels.forward, flat, labels, loss, batch, size // batch if batch else 1, weight)
        return loss, (batch,)

    params_of: dict[float, dict[str, float]] = {}

    def call(x: Any, label: Any, *, weight: float) -> Any:
        """The op on an array of float32 or float64, with axes and as many labels; no more is checked."""
        if label._flat.dtype is _HALF:
            return op(x, label, weight=weight)
        params = params_of.get(weight)
        if params is None:
            params = {"weight": weight}
            if len(params_of) < 64:
                params_of[weight] = params
        flat, labels, shape = x._flat, label._flat, x._shape
        batch = shape[0]
        loss = np.empty(batch, flat.dtype)
        inner = flat.size // batch if batch else 1
        dx = None
        if x._node is not None and label._node is None and state.recording:
            # Backward will most likely ask for the derivatives of these very losses.
            dx = np.empty(flat.size, flat.dtype)
            launch(kernels.both, flat, labels, loss, dx, batch, inner, weight)
        else:
            launch(kernels.forward, flat, labels, loss, batch, inner, weight)
        return registry.finish(op, (x, label), params, loss, (batch,), dx)

    return call


def _bce(x: Any, z: Any) -> Any:
    # softplus(x) - x z: smooth at 0, so that its derivative there is sigmoid(x) - z.
    return a.subtract(a.softplus(x), a.multiply(x, z))


sigmoid_bce = _averaged(
    "sigmoid_bce",
    "SigmoidBinaryCrossEntropyLoss",
    kernels.SIGMOID_BCE,
    _bce,
    lambda x, z: np.logaddexp(x, 0) - x * z,
)
l2 = _averaged(
    "l2",
    "L2Loss",
    kernels.L2,
    lambda x, z: a.multiply(a.square(a.subtract(z, x)), 0.5),
    lambda x, z: (z - x) ** 2 / 2,
)
l1 = _averaged(
    "l1",
    "L1Loss",
    kernels.L1,
    lambda x, z: a.absolute(a.subtract(z, x)),
    lambda x, z: np.abs(z - x),
)
