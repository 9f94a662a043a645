"""Optimisers whose rules are kernels: Nesterov's momentum, adaptive rates, signs, followed leaders, norms.

The formulas stand in ``kernels.adaptive`` and ``kernels.lamb``.
"""

import math
from typing import Any, ClassVar

from numbagrad.kernels import adaptive, lamb
from numbagrad.kernels import optimizer as kernels
from numbagrad.kernels.rule import Rule
from numbagrad.optimizer.base import Optimizer, register, zeros_like


@register
class NAG(Optimizer):
    """SGD with Nesterov's momentum; see ``SGD`` for what happens without momentum.

    Parameters
    ----------
    momentum : float
        0 keeps no state.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {0: kernels.SGD, 1: adaptive.NAG}
    master_last = True

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: Any) -> Any:
        """The momentum, or None."""
        return zeros_like(weight) if self.momentum != 0 else None

    def row(self) -> tuple[float, ...]:
        """Clipping and momentum."""
        return self._clip(), self.momentum


@register
class AdaGrad(Optimizer):
    """A rate for each weight, over the root of the sum of its squared gradients.

    Parameters
    ----------
    eps : float
        Added to the sum.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {1: adaptive.ADAGRAD}

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: Any) -> Any:
        """The sum of squares."""
        return zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, epsilon."""
        return self._clip(), self.float_stable_eps


@register
class RMSProp(Optimizer):
    """A rate for each weight, over the root of the moving mean of its squared gradients.

    Parameters
    ----------
    learning_rate : float
        0.001.
    gamma1 : float
        The decay of the means.
    gamma2 : float
        The momentum, where `centered`.
    epsilon : float
        Added to the mean square.
    centered : bool
        Subtract the squared mean, and use momentum.
    clip_weights : float, optional
        Weights are clipped to its range.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {1: adaptive.RMSPROP, 3: adaptive.RMSPROP_CENTERED}

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.epsilon = epsilon
        self.centered = centered
        self.clip_weights = clip_weights

    def create_state(self, index: Any, weight: Any) -> Any:
        """The mean square; where centered also the mean and the momentum."""
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def row(self) -> tuple[float, ...]:
        """Clipping, decay, momentum, epsilon, clipping of weights."""
        return self._clip(), self.gamma1, self.gamma2, self.epsilon, self.clip_weights or -1.0


@register
class AdaDelta(Optimizer):
    """Steps in the units of the weights, without a rate.

    Parameters
    ----------
    rho : float
        The decay of the means.
    epsilon : float
        Added to the mean squares of gradients and of steps.
    **kwargs
        See :class:`Optimizer`; the rate means nothing, but weight decay does.
    """

    rules: ClassVar[dict[int, Rule]] = {2: adaptive.ADADELTA}

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """The mean squares of gradients and of steps."""
        return zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, decay, epsilon."""
        return self._clip(), self.rho, self.epsilon


@register
class Ftrl(Optimizer):
    """Follow the regularized leader: weights of 0 where gradients are small.

    Parameters
    ----------
    lamda1 : float
        The weight of the sum of magnitudes.
    learning_rate : float
        0.1.
    beta : float
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {2: adaptive.FTRL}

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta

    def create_state(self, index: Any, weight: Any) -> Any:
        """The two sums, z and n."""
        return zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, lamda1, beta."""
        return self._clip(), self.lamda1, self.beta


@register
class Adamax(Optimizer):
    """Adam with the greatest decayed gradient in place of the root mean square (Kingma and Ba 2015, section 7.1).

    Parameters
    ----------
    learning_rate : float
        0.002.
    beta1, beta2 : float
        The decay of the mean and of the greatest gradient.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {2: adaptive.ADAMAX}

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def create_state(self, index: Any, weight: Any) -> Any:
        """The mean and the greatest gradient."""
        return zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, the two decays."""
        return self._clip(), self.beta1, self.beta2


@register
class Signum(Optimizer):
    """Steps of one size, by the sign of the momentum, or of the gradient where `momentum` is 0.

    Parameters
    ----------
    learning_rate : float
        0.01.
    momentum : float
    wd_lh : float
        Decay of the weights apart from the gradient; of no effect without momentum.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {1: adaptive.SIGNUM, 0: adaptive.SIGNSGD}

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: Any) -> Any:
        """The momentum, or None."""
        return zeros_like(weight) if self.momentum != 0 else None

    def row(self) -> tuple[float, ...]:
        """Clipping, momentum, decay."""
        return self._clip(), self.momentum, self.wd_lh


@register
class FTML(Optimizer):
    """Follow the moving leader.

    Parameters
    ----------
    beta1, beta2 : float
        The decay of the means.
    epsilon : float
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {3: adaptive.FTML}

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """What the formula calls d, v and z."""
        return zeros_like(weight), zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, the two decays, epsilon."""
        return self._clip(), self.beta1, self.beta2, self.epsilon


@register
class LAMB(Optimizer):
    """Adam with a rate for each array, by the norm of its weights over that of its step (You et al. 2020).

    ``g = clip(rescale grad)``, m and v are the moving averages of g and g squared, over ``1 - beta^t`` with
    `bias_correction`; ``u = m / (sqrt(v) + epsilon) + wd w``, ``w -= lr |w| / |u| u``; the norm of the weights is kept
    within the bounds, and where one of the norms is 0 their ratio is 1.

    Parameters
    ----------
    learning_rate : float
        0.001.
    beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
    bias_correction : bool
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {2: lamb.LAMB}

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction

    def create_state(self, index: Any, weight: Any) -> Any:
        """The two moving averages."""
        return zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, decays, epsilon, bounds, and whether averages are corrected."""
        lower, upper = self.lower_bound or 0.0, self.upper_bound or math.inf
        return self._clip(), self.beta1, self.beta2, self.epsilon, lower, upper, float(self.bias_correction)
