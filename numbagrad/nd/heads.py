"""MXNet's loss heads: outputs whose gradient is that of a loss, whatever gradient comes to them."""

from collections.abc import Callable
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array, expect_choice
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import heads
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import floating
from numbagrad.ops.layout import size_of
from numbagrad.ops.shaping import reshape

_NORMALIZATIONS = ("null", "batch", "valid")


def _given(name: str, data: Any, label: Any) -> tuple[Any, Any]:
    """Both arrays, the data in a floating dtype and the label in the same."""
    expect_array(name, data, label)
    if not data._shape:
        raise MXNetError(f"{name}: data must have at least one axis")
    dtype = floating(data._flat.dtype)
    return cast(data, dtype=dtype), cast(label, dtype=dtype)


def _misfit(name: str, data: Any, label: Any) -> MXNetError:
    return MXNetError(f"{name}: labels of shape {label._shape} do not fit data of shape {data._shape}")


def SoftmaxOutput(
    data: Any,
    label: Any,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: str = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The softmax of `data`; its gradient is that of cross entropy, ``softmax - one_hot(label)``.

    Parameters
    ----------
    data : NDArray of shape (n, ...)
        The classes are all axes but the first as one; with `multi_output` axis 1, with `preserve_shape` the last axis.
    label : NDArray
        Class numbers, one for each softmax; a number that is no class is subtracted nowhere. With the shape of `data`:
        probabilities, to which only `grad_scale` and `out_grad` apply.
    grad_scale : float
        A factor of the gradient.
    use_ignore, ignore_label : bool, float
        Whether the gradient is 0 where the label is `ignore_label`.
    normalization : {"null", "batch", "valid"}
        What the gradient is divided by: 1, the number of softmaxes, or the number of labels that are not
        `ignore_label`. With `multi_output`, ``null`` divides by their number in each of the n.
    out_grad : bool
        Whether the gradient is multiplied by the one that comes to the output, which counts for nothing otherwise.
    smooth_alpha : float
        What is taken from the label's class and spread over the others; not with `multi_output`.

    Returns
    -------
    NDArray of the shape of `data`

    Raises
    ------
    MXNetError
        Where shapes do not fit, for another normalization, or a `smooth_alpha` outside [0, 1].
    """
    expect_choice("SoftmaxOutput", "normalization", normalization, _NORMALIZATIONS)
    if not 0 <= smooth_alpha <= 1:
        raise MXNetError(f"SoftmaxOutput: smooth_alpha must lie between 0 and 1, not {smooth_alpha}")
    data, label = _given("SoftmaxOutput", data, label)
    shape = data._shape
    n = shape[0]
    if multi_output:
        if len(shape) < 2:
            raise MXNetError(f"SoftmaxOutput: multi_output needs classes on axis 1, data of shape {shape} has none")
        inner = size_of(shape[2:])
        form = (n, shape[1], inner)
        fits = label._shape in ((n, inner), (n, *shape[2:]), (n, 1, *shape[2:]))
    else:
        inner = 1
        form = (size_of(shape[:-1]), shape[-1], 1) if preserve_shape else (n, size_of(shape[1:]), 1)
        fits = label._flat.size == form[0]
    if label._shape == shape:
        label = reshape(label, shape=form)
    elif fits:
        label = reshape(label, shape=(form[0], inner))
    else:
        raise _misfit("SoftmaxOutput", data, label)
    result = heads.softmax_output(
        reshape(data, shape=form),
        label,
        scale=float(grad_scale),
        ignores=bool(use_ignore),
        ignored=float(ignore_label),
        normalization=normalization,
        smooth=0.0 if multi_output else float(smooth_alpha),
        takes_head=bool(out_grad),
    )
    return deliver(reshape(result, shape=shape), out)


def _regression(name: str, kind: str, data: Any, label: Any, grad_scale: float, out: Any) -> NDArray:
    data, label = _given(name, data, label)
    shape = data._shape
    if label._shape != shape:
        if not label._shape or label._shape[0] != shape[0] or label._flat.size != data._flat.size:
            raise _misfit(name, data, label)
        label = reshape(label, shape=shape)
    scale = grad_scale / max(1, size_of(shape[1:]))
    return deliver(heads.regression_output(data, label, kind=kind, scale=float(scale)), out)


def LinearRegressionOutput(
    data: Any, label: Any, grad_scale: float = 1.0, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of `data`; its gradient is ``grad_scale (data - label)`` over the number of outputs an example.

    Raises
    ------
    MXNetError
        Unless label and data have as many elements, and as many examples on axis 0.
    """
    return _regression("LinearRegressionOutput", "linear", data, label, grad_scale, out)


def LogisticRegressionOutput(
    data: Any, label: Any, grad_scale: float = 1.0, out: Any = None, name: str | None = None
) -> NDArray:
    """``sigmoid(data)``; its gradient is ``grad_scale (sigmoid - label)`` over the number of outputs an example.

    Errors as for :func:`LinearRegressionOutput`.
    """
    return _regression("LogisticRegressionOutput", "logistic", data, label, grad_scale, out)


def MAERegressionOutput(
    data: Any, label: Any, grad_scale: float = 1.0, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of `data`; its gradient is ``grad_scale`` over the number of outputs, negative unless data > label.

    Errors as for :func:`LinearRegressionOutput`.
    """
    return _regression("MAERegressionOutput", "absolute", data, label, grad_scale, out)


def MakeLoss(
    data: Any,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: str = "null",
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """A copy of `data`; its gradient is `grad_scale` everywhere.

    Parameters
    ----------
    normalization : {"null", "batch", "valid"}
        What the gradient is divided by: 1, the length of axis 0, or the number of elements above `valid_thresh`.

    Raises
    ------
    MXNetError
        For another normalization.
    """
    expect_choice("MakeLoss", "normalization", normalization, _NORMALIZATIONS)
    expect_array("MakeLoss", data)
    if not data._shape:
        data = reshape(data, shape=(1,))
    data = cast(data, dtype=floating(data._flat.dtype))
    params = {"scale": float(grad_scale), "normalization": normalization, "threshold": float(valid_thresh)}
    return deliver(heads.scaled_loss(data, **params), out)


def SVMOutput(
    data: Any,
    label: Any,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """A copy of the scores `data`; its gradient is that of the one-against-all hinge loss.

    With t = 1 for the label's class and -1 for the others, the loss is ``regularization_coefficient`` times the sum of
    ``max(0, margin - t data)``, squared unless `use_linear`.

    Parameters
    ----------
    data : NDArray of shape (..., classes)
    label : NDArray
        A class number for each row of scores.

    Raises
    ------
    MXNetError
        Where shapes do not fit.
    """
    data, label = _given("SVMOutput", data, label)
    shape = data._shape
    rows = size_of(shape[:-1])
    if label._flat.size != rows:
        raise _misfit("SVMOutput", data, label)
    params = {"margin": float(margin), "regularization": float(regularization_coefficient), "linear": bool(use_linear)}
    result = heads.svm_output(reshape(data, shape=(rows, shape[-1])), reshape(label, shape=(rows,)), **params)
    return deliver(reshape(result, shape=shape), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LinearRegressionOutput": LinearRegressionOutput,
    "LogisticRegressionOutput": LogisticRegressionOutput,
    "MAERegressionOutput": MAERegressionOutput,
    "MakeLoss": MakeLoss,
    "SVMOutput": SVMOutput,
    "Softmax": SoftmaxOutput,
    "SoftmaxOutput": SoftmaxOutput,
}
"""The functions by name."""
