"""Normalising layers."""

from typing import Any

import numpy as np

from numbagrad.gluon.block import HybridBlock
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.shaping import normal_axis


class _Scaling(HybridBlock):
    """A scale gamma and an offset beta, one of each a channel."""

    def __init__(
        self,
        center: bool,
        scale: bool,
        beta_initializer: Any,
        gamma_initializer: Any,
        in_channels: int,
        prefix: str | None,
        params: Any,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._center = center
        self._scale = scale
        self._in_channels = in_channels
        self.gamma = self.params.get(
            "gamma",
            grad_req="write" if scale else "null",
            shape=(in_channels,),
            init=gamma_initializer,
            allow_deferred_init=True,
            differentiable=scale,
        )
        self.beta = self.params.get(
            "beta",
            grad_req="write" if center else "null",
            shape=(in_channels,),
            init=beta_initializer,
            allow_deferred_init=True,
            differentiable=center,
        )

    _channel_axis = 1

    def infer_shape(self, *args: Any) -> None:
        """Take the number of channels from the first input."""
        shape = args[0].shape
        n = shape[normal_axis(type(self).__name__, self._channel_axis, len(shape))]
        for parameter in self._reg_params.values():
            parameter.shape = (n,)


class BatchNorm(_Scaling):
    """Normalises each channel by the mean and variance of the batch in training, by running averages of these
    otherwise.

    Parameters
    ----------
    axis : int
        The axis of the channels.
    momentum : float
        In training ``running = momentum running + (1 - momentum) batch``; the variance is the biased one.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Train an offset beta, a scale gamma; without `scale` gamma is 1.
    use_global_stats : bool
        Use the running averages in training, too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : str or Initializer
    in_channels : int
        0: the first input tells.

    Notes
    -----
    The running averages move in the forward pass of training mode (S. Ioffe and C. Szegedy, 2015).
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(center, scale, beta_initializer, gamma_initializer, in_channels, prefix, params)
        self._axis = self._channel_axis = axis
        self._momentum = momentum
        self._epsilon = epsilon
        self._use_global_stats = use_global_stats
        self.running_mean = self.params.get(
            "running_mean",
            grad_req="null",
            shape=(in_channels,),
            init=running_mean_initializer,
            allow_deferred_init=True,
            differentiable=False,
        )
        self.running_var = self.params.get(
            "running_var",
            grad_req="null",
            shape=(in_channels,),
            init=running_variance_initializer,
            allow_deferred_init=True,
            differentiable=False,
        )

    def cast(self, dtype: Any) -> None:
        """Convert to another dtype; to float32 where that is float16, which is too coarse for statistics."""
        super().cast("float32" if np.dtype(dtype) == np.float16 else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> NDArray:
        """`x` normalised."""
        return F.BatchNorm(
            x,
            gamma,
            beta,
            running_mean,
            running_var,
            eps=self._epsilon,
            momentum=self._momentum,
            fix_gamma=not self._scale,
            use_global_stats=self._use_global_stats,
            axis=self._axis,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(axis={self._axis}, eps={self._epsilon}, momentum={self._momentum}, "
            f"fix_gamma={not self._scale}, use_global_stats={self._use_global_stats}, "
            f"in_channels={self.gamma.shape[0] or None})"  # type: ignore[index]
        )


class LayerNorm(_Scaling):
    """Normalises each example along `axis` (Ba, Kiros and Hinton 2016).

    Parameters
    ----------
    axis : int
    epsilon : float
        Added to the variance.
    center, scale : bool
        Train an offset beta, a scale gamma.
    beta_initializer, gamma_initializer : str or Initializer
    in_channels : int
        0: the first input tells.
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(center, scale, beta_initializer, gamma_initializer, in_channels, prefix, params)
        self._axis = self._channel_axis = axis
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> NDArray:
        """`x` normalised."""
        return F.LayerNorm(x, gamma, beta, axis=self._axis, eps=self._epsilon)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, axis={self._axis}, center={self._center}, "
            f"scale={self._scale}, in_channels={self.gamma.shape[0]})"  # type: ignore[index]
        )


def _normalised(F: Any, x: NDArray, axes: tuple[int, ...], epsilon: float) -> NDArray:
    centred = F.broadcast_sub(x, F.mean(x, axis=axes, keepdims=True))
    variance = F.mean(F.square(centred), axis=axes, keepdims=True)
    return F.broadcast_mul(centred, F.rsqrt(variance + epsilon))


def _along(v: NDArray, axis: int, ndim: int) -> NDArray:
    shape = [1] * ndim
    shape[axis] = -1
    return v.reshape(tuple(shape))


class InstanceNorm(_Scaling):
    """Normalises each channel of each example over its other axes (Ulyanov et al. 2016).

    Parameters
    ----------
    axis : int
        The axis of the channels.
    epsilon : float
    center, scale : bool
        Train an offset beta, a scale gamma.
    beta_initializer, gamma_initializer : str or Initializer
    in_channels : int
        0: the first input tells.
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(center, scale, beta_initializer, gamma_initializer, in_channels, prefix, params)
        self._axis = self._channel_axis = axis
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> NDArray:
        """`x` normalised."""
        axis = self._axis % x.ndim
        axes = tuple(k for k in range(1, x.ndim) if k != axis)
        y = _normalised(F, x, axes, self._epsilon)
        return F.broadcast_add(F.broadcast_mul(y, _along(gamma, axis, x.ndim)), _along(beta, axis, x.ndim))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, axis={self._axis}, center={self._center}, "
            f"scale={self._scale}, in_channels={self.gamma.shape[0]})"  # type: ignore[index]
        )


class GroupNorm(_Scaling):
    """Normalises groups of channels of each example (Wu and He 2018); channels are on axis 1.

    Parameters
    ----------
    num_groups : int
        Must divide the number of channels.
    epsilon : float
    center, scale : bool
        Train an offset beta, a scale gamma, one of each a group.
    beta_initializer, gamma_initializer : str or Initializer
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(center, scale, beta_initializer, gamma_initializer, num_groups, prefix, params)
        self._num_groups = num_groups
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> NDArray:
        """`x` normalised."""
        shape = x.shape
        groups = x.reshape((shape[0], self._num_groups, -1))
        y = _normalised(F, groups, (2,), self._epsilon)
        y = F.broadcast_add(F.broadcast_mul(y, _along(gamma, 1, 3)), _along(beta, 1, 3))
        return y.reshape(shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, num_groups={self._num_groups}, center={self._center}, "
            f"scale={self._scale})"
        )
