"""The functions that networks are made of, with MXNet's signatures."""

from collections.abc import Callable
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.kernels import random as random_kernels
from numbagrad.nd.arguments import check_out, expect_array, expect_choice
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.normalization import BatchNorm, GroupNorm, InstanceNorm, L2Normalization, LayerNorm
from numbagrad.nd.output import deliver
from numbagrad.ops import activation as act
from numbagrad.ops import arithmetic as a
from numbagrad.ops import dropout as drop
from numbagrad.ops import softmax as soft
from numbagrad.ops.casting import cast
from numbagrad.ops.dense import ACTIVATIONS, fully_connected
from numbagrad.ops.dtypes import FLOAT32, as_dtype, floating
from numbagrad.ops.layout import size_of
from numbagrad.ops.loss import softmax_ce
from numbagrad.ops.random import draw
from numbagrad.ops.reduction import sum_
from numbagrad.ops.shaping import identity, normal_axis, reshape
from numbagrad.tape import state

# ------------------------------------------------------------------------------------------------ dense layers


def FullyConnected(
    data: Any,
    weight: Any,
    bias: Any = None,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """``data weight' + bias``.

    Parameters
    ----------
    data : NDArray
        With `flatten` all axes but the first are taken as one (an array of one axis as a column); without, the last
        axis is multiplied and the others stay.
    weight : NDArray of shape (num_hidden, in)
    bias : NDArray of shape (num_hidden,)
        None with `no_bias`.
    num_hidden : int, optional
        What the weight must have; taken from the weight where left out.

    Returns
    -------
    NDArray of shape (data.shape[0], num_hidden), or (*data.shape[:-1], num_hidden)

    Raises
    ------
    MXNetError
        Where shapes do not fit, or bias and `no_bias` contradict each other.
    """
    expect_array("FullyConnected", data)
    expect_array("FullyConnected", weight)
    if (bias is None) is not bool(no_bias):
        raise MXNetError(
            "FullyConnected: a bias is missing; pass one, or no_bias=True"
            if bias is None
            else "FullyConnected: a bias does not go with no_bias=True"
        )
    if bias is not None:
        expect_array("FullyConnected", bias)
    if len(weight._shape) != 2 or (num_hidden is not None and weight._shape[0] != num_hidden):
        raise MXNetError(
            f"FullyConnected: a weight of shape {weight._shape} is not of shape (num_hidden, in)"
            + ("" if num_hidden is None else f" with num_hidden={num_hidden}")
        )
    shape = data._shape
    if not shape:
        raise MXNetError("FullyConnected: data must have at least one axis")
    units = weight._shape[0]
    rows = shape[:1] if flatten else shape[:-1]
    width = size_of(shape[1:]) if flatten else shape[-1]
    flat = (size_of(rows), width)
    result = fully_connected(data if shape == flat else reshape(data, shape=flat), weight, bias)
    if len(rows) != 1:
        result = reshape(result, shape=(*rows, units))
    return deliver(result, out)


# ------------------------------------------------------------------------------------------------- activations


def Activation(data: Any, act_type: str, out: Any = None, name: str | None = None) -> NDArray:
    """An activation by name: relu, sigmoid, tanh, softrelu (log(1 + exp(x))) or softsign (x / (1 + abs(x))).

    Raises
    ------
    MXNetError
        For another name.
    """
    expect_array("Activation", data)
    expect_choice("Activation", "act_type", act_type, ACTIVATIONS)
    return deliver(ACTIVATIONS[act_type][1](data), out)


def _prelu_slope(data: Any, gamma: Any) -> Any:
    """The slopes in a shape that broadcasts over `data`: channels are on axis 1 (of a vector: on its only axis)."""
    expect_array("LeakyReLU", gamma)
    shape, n = data._shape, gamma._flat.size
    if n == 1:
        return reshape(gamma, shape=(1,) * max(1, len(shape)))
    axis = min(1, len(shape) - 1)
    if len(gamma._shape) != 1 or axis < 0 or shape[axis] != n:
        raise MXNetError(
            f"LeakyReLU: gamma of shape {gamma._shape} does not fit data of shape {shape}: "
            "it must have one element, or one for each channel on axis 1"
        )
    return reshape(gamma, shape=(n,) + (1,) * (len(shape) - axis - 1))


def LeakyReLU(
    data: Any,
    gamma: Any = None,
    act_type: str = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The family of rectifiers.

    Parameters
    ----------
    gamma : NDArray of shape (1,) or (channels,)
        The slopes of ``prelu``; channels are on axis 1.
    act_type : {"leaky", "prelu", "elu", "selu", "gelu", "rrelu"}
        ``leaky`` and ``prelu`` multiply what is not positive by `slope` or gamma; ``elu`` is ``slope (exp(x) - 1)``
        there; ``selu`` has its published constants; ``gelu`` is x times the normal distribution function; ``rrelu``
        draws each element's slope from [lower_bound, upper_bound) in training and takes their mean otherwise.

    Raises
    ------
    MXNetError
        For another `act_type`, or a gamma that is missing, not wanted or does not fit.
    """
    expect_array("LeakyReLU", data)
    expect_choice("LeakyReLU", "act_type", act_type, ("leaky", "prelu", "elu", "selu", "gelu", "rrelu"))
    if (act_type == "prelu") is not (gamma is not None):
        raise MXNetError("LeakyReLU: gamma goes with act_type='prelu', and with that alone")
    if out is not None:
        check_out("LeakyReLU", data._shape, out)
    if act_type == "leaky":
        result = act.leaky_relu(data, float(slope))
    elif act_type == "prelu":
        result = act.leaky_relu(data, _prelu_slope(data, gamma))
        if result._shape != data._shape:
            result = reshape(result, shape=data._shape)
    elif act_type == "elu":
        result = act.elu(data, float(slope))
    elif act_type == "selu":
        result = act.selu(data)
    elif act_type == "gelu":
        result = act.gelu(data)
    elif state.training:
        if not lower_bound <= upper_bound:
            raise MXNetError(f"LeakyReLU: lower_bound {lower_bound} is above upper_bound {upper_bound}")
        flat = draw(
            random_kernels.uniform,
            data._flat.size,
            floating(data._flat.dtype),
            float(lower_bound),
            float(upper_bound),
        )
        result = act.leaky_relu(data, NDArray(flat, data._shape))
    else:
        result = act.leaky_relu(data, (lower_bound + upper_bound) / 2)
    return deliver(result, out)


# ----------------------------------------------------------------------------------------------------- softmax


def _softmax(
    name: str,
    op: Callable[..., Any],
    data: Any,
    axis: int,
    temperature: float | None,
    dtype: Any,
    length: Any,
    use_length: bool,
    out: Any,
) -> Any:
    expect_array(name, data)
    if data._flat.dtype.kind != "f":
        raise MXNetError(f"{name}: takes floating-point data, not {data._flat.dtype}; cast it first")
    if length is not None or use_length:
        raise MXNetError(f"{name}: lengths are not supported; mask the data instead")
    axis = normal_axis(name, axis, len(data._shape))
    if temperature is None:
        temperature = 1.0
    elif not temperature > 0:
        raise MXNetError(f"{name}: the temperature must be positive, not {temperature}")
    if dtype is not None:
        target = as_dtype(dtype)
        if target.kind != "f":
            raise MXNetError(f"{name}: the result's dtype must be a floating-point one, not {target}")
        if target.itemsize > data._flat.dtype.itemsize:
            data = cast(data, dtype=target)
        result = cast(op(data, axis=axis, temperature=float(temperature)), dtype=target)
    else:
        result = op(data, axis=axis, temperature=float(temperature))
    return deliver(result, out)


def softmax(
    data: Any,
    length: Any = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """``exp(data / temperature)`` over its sum along `axis`, safe from overflow.

    Parameters
    ----------
    temperature : float, optional
        1 where left out.
    dtype : dtype, optional
        Of the result; that of the data where left out.

    Raises
    ------
    MXNetError
        For int data, an axis out of range, a temperature that is not positive, or lengths.
    """
    return _softmax("softmax", soft.softmax, data, axis, temperature, dtype, length, use_length, out)


def log_softmax(
    data: Any,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The logarithm of :func:`softmax`, safe from underflow; parameters and errors as there."""
    return _softmax("log_softmax", soft.log_softmax, data, axis, temperature, dtype, None, use_length, out)


def softmin(
    data: Any,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The :func:`softmax` of the negative data."""

    def op(x: Any, **params: Any) -> Any:
        return soft.softmax(a.negative(x), **params)

    return _softmax("softmin", op, data, axis, temperature, dtype, None, use_length, out)


def SoftmaxActivation(data: Any, mode: str = "instance", out: Any = None, name: str | None = None) -> NDArray:
    """Softmax over all axes but the first as one (``instance``), or along axis 1 (``channel``)."""
    expect_array("SoftmaxActivation", data)
    expect_choice("SoftmaxActivation", "mode", mode, ("instance", "channel"))
    if mode == "channel":
        return softmax(data, axis=1, out=out)
    shape = data._shape
    flat = reshape(data, shape=(shape[0], size_of(shape[1:])))
    return deliver(reshape(softmax(flat), shape=shape), out)


# ----------------------------------------------------------------------------------------------------- dropout


def Dropout(
    data: Any,
    p: float = 0.5,
    mode: str = "training",
    axes: tuple[int, ...] = (),
    cudnn_off: bool = False,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """Set elements to 0 with probability `p` and divide the others by ``1 - p``.

    Parameters
    ----------
    mode : {"training", "always"}
        Only in training mode (recording or not), or always.
    axes : tuple of int
        Axes along which all elements share one draw.
    cudnn_off : bool
        Accepted for MXNet's sake.

    Raises
    ------
    MXNetError
        If `p` lies outside [0, 1], for another mode, or an axis out of range.

    Notes
    -----
    The draws come from the stream that :func:`numbagrad.random.seed` seeds. With p = 1 all is 0.
    """
    expect_array("Dropout", data)
    if not 0 <= p <= 1:
        raise MXNetError(f"Dropout: p must lie between 0 and 1, not {p}")
    expect_choice("Dropout", "mode", mode, ("training", "always"))
    if axes:
        axes = tuple(normal_axis("Dropout", axis, len(data._shape)) for axis in axes)
    if out is not None:
        check_out("Dropout", data._shape, out)
    if p == 0 or not (state.training or mode == "always"):
        result = identity(data)
    else:
        if data._flat.dtype.kind != "f":
            data = cast(data, dtype=FLOAT32)
        p = float(p)
        result = drop.dropout_along(data, p=p, axes=axes) if axes else drop.dropout(data, p=p)
    return deliver(result, out)


# ------------------------------------------------------------------------------------------------------ losses


def softmax_cross_entropy(data: Any, label: Any, out: Any = None, name: str | None = None) -> NDArray:
    """The sum over the batch of ``-log softmax(data)[label]``.

    Parameters
    ----------
    data : NDArray of shape (batch, classes)
    label : NDArray of shape (batch,)
        Class numbers, of any dtype.

    Returns
    -------
    NDArray of shape (1,)

    Raises
    ------
    MXNetError
        Where shapes do not fit, or for a label that is no class.
    """
    expect_array("softmax_cross_entropy", data, label)
    if data._flat.dtype.kind != "f":
        data = cast(data, dtype=FLOAT32)
    loss = softmax_ce(data, label, weight=1.0)
    return deliver(reshape(sum_(loss, axes=(0,), keepdims=True), shape=(1,)), out)


__all__ = [
    "Activation",
    "BatchNorm",
    "Dropout",
    "FullyConnected",
    "GroupNorm",
    "InstanceNorm",
    "L2Normalization",
    "LayerNorm",
    "LeakyReLU",
    "SoftmaxActivation",
    "log_softmax",
    "softmax",
    "softmax_cross_entropy",
    "softmin",
]

FUNCTIONS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in __all__}
"""The functions by name."""
