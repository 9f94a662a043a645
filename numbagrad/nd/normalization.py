"""Normalization with MXNet's signatures."""

from operator import index
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import check_out, expect_array, expect_choice
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic as a
from numbagrad.ops.layout import size_of
from numbagrad.ops.normalization import batch_norm, layer_norm
from numbagrad.ops.reduction import mean, sum_
from numbagrad.ops.shaping import identity, normal_axis, reshape
from numbagrad.tape import state


def _statistics(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """The mean and 1 / sqrt(biased variance + eps) over `axes`, kept as 1."""
    average = mean(x, axes=axes, keepdims=True)
    variance = mean(a.square(a.subtract(x, average)), axes=axes, keepdims=True)
    return average, a.rsqrt(a.add(variance, eps))


def BatchNorm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """``(data - mean) / sqrt(variance + eps) gamma + beta``, each channel by itself.

    Parameters
    ----------
    data : NDArray
        Channels are on `axis`.
    gamma, beta, moving_mean, moving_var : NDArray of shape (channels,)
    momentum : float
        In training ``moving = momentum moving + (1 - momentum) batch``, written in place in the forward pass; the
        variance is the biased one.
    fix_gamma : bool
        Count gamma as 1 (MXNet's default); its gradient is then 0.
    use_global_stats : bool
        Normalize with the moving statistics in training also, and do not move them.
    output_mean_var : bool
        Return ``[y, mean, 1 / sqrt(variance + eps)]``, of what `y` was normalized with.
    cudnn_off, min_calib_range, max_calib_range
        Accepted for MXNet's sake.

    Raises
    ------
    MXNetError
        Where shapes do not fit, before anything is written.
    """
    expect_array("BatchNorm", data, gamma, beta, moving_mean, moving_var)
    axis = normal_axis("BatchNorm", axis, len(data._shape))
    if out is not None:
        check_out("BatchNorm", data._shape, out)
    training = state.training and not use_global_stats
    result = batch_norm(
        data,
        gamma,
        beta,
        moving_mean,
        moving_var,
        axis=axis,
        eps=float(eps),
        momentum=float(momentum),
        fix_gamma=bool(fix_gamma),
        training=training,
        recording=state.recording,
        moving=not state.recomputing,
    )
    result = deliver(result, out)
    if not output_mean_var:
        return result
    if training:
        axes = tuple(k for k in range(len(data._shape)) if k != axis)
        statistics = _statistics(data, axes, eps)
        n = (data._shape[axis],)
        return [result, *[reshape(each, shape=n) for each in statistics]]
    return [result, identity(moving_mean), a.rsqrt(a.add(moving_var, eps))]


def LayerNorm(
    data: Any,
    gamma: Any,
    beta: Any,
    axis: int = -1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """``(data - mean) / sqrt(variance + eps) gamma + beta`` along `axis`, the variance being the biased one.

    Parameters
    ----------
    gamma, beta : NDArray of shape (data.shape[axis],)
    output_mean_var : bool
        Return ``[y, mean, sqrt(variance + eps)]``, the last two with `axis` kept as 1.

    Raises
    ------
    MXNetError
        Where shapes do not fit.
    """
    expect_array("LayerNorm", data, gamma, beta)
    axis = normal_axis("LayerNorm", axis, len(data._shape))
    result = deliver(layer_norm(data, gamma, beta, axis=axis, eps=float(eps)), out)
    if not output_mean_var:
        return result
    average, inverse = _statistics(data, (axis,), eps)
    return [result, average, a.reciprocal(inverse)]


def _group_norm(name: str, data: Any, gamma: Any, beta: Any, groups: int, eps: float, out: Any) -> NDArray:
    expect_array(name, data, gamma, beta)
    shape = data._shape
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise MXNetError(f"{name}: data of shape {shape} have no channels on axis 1 that make {groups} equal groups")
    n = gamma._flat.size
    if gamma._shape != beta._shape or len(gamma._shape) != 1 or n not in (groups, shape[1]):
        raise MXNetError(
            f"{name}: gamma {gamma._shape} and beta {beta._shape} must have one element for each channel or group "
            f"of data of shape {shape}"
        )
    rows = reshape(data, shape=(shape[0] * groups, size_of(shape[1:]) // groups))
    z = layer_norm(rows, None, None, axis=1, eps=float(eps))
    # (batch, what gamma is for, the rest): as broadcasting takes a column.
    z = reshape(z, shape=(shape[0], n, size_of(shape[1:]) // n))
    z = a.add(a.multiply(z, reshape(gamma, shape=(n, 1))), reshape(beta, shape=(n, 1)))
    return deliver(reshape(z, shape=shape), out)


def GroupNorm(
    data: Any,
    gamma: Any,
    beta: Any,
    num_groups: int = 1,
    eps: float = 1e-5,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """Normalize groups of channels of each example (Y. Wu, K. He, 2018).

    Parameters
    ----------
    data : NDArray of shape (batch, channels, ...)
    gamma, beta : NDArray of shape (channels,) or (num_groups,)

    Raises
    ------
    MXNetError
        Where shapes do not fit.
    """
    return _group_norm("GroupNorm", data, gamma, beta, index(num_groups), eps, out)


def InstanceNorm(
    data: Any, gamma: Any, beta: Any, eps: float = 1e-3, out: Any = None, name: str | None = None
) -> NDArray:
    """Normalize each channel of each example; gamma and beta have the shape (channels,)."""
    expect_array("InstanceNorm", data)
    groups = data._shape[1] if len(data._shape) > 1 else 0
    return _group_norm("InstanceNorm", data, gamma, beta, groups, eps, out)


def L2Normalization(
    data: Any, eps: float = 1e-10, mode: str = "instance", out: Any = None, name: str | None = None
) -> NDArray:
    """``data / sqrt(sum(data**2) + eps)``.

    Parameters
    ----------
    mode : {"instance", "channel", "spatial"}
        Sum over all axes but the first, over axis 1, or over all from axis 2 on.

    Raises
    ------
    MXNetError
        For another mode, or too few axes for it.
    """
    expect_array("L2Normalization", data)
    ndim = len(data._shape)
    expect_choice("L2Normalization", "mode", mode, ("instance", "channel", "spatial"))
    if ndim < (3 if mode == "spatial" else 2):
        raise MXNetError(f"L2Normalization: data of shape {data._shape} have too few axes for mode={mode!r}")
    axes = (1,) if mode == "channel" else tuple(range(1 if mode == "instance" else 2, ndim))
    squares = sum_(a.square(data), axes=axes, keepdims=True)
    return deliver(a.multiply(data, a.rsqrt(a.add(squares, float(eps)))), out)


__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "L2Normalization", "LayerNorm"]
