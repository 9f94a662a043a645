"""Optimisers whose rules are written in array operations: seldom used, or with noise in them.

They update parameter by parameter, and a step with them cannot be captured.
"""

import math
from typing import Any

from numbagrad import nd
from numbagrad.autograd import pause
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array
from numbagrad.optimizer.base import Optimizer, register, zeros_like


class _Composed(Optimizer):
    """An optimiser that states :meth:`step`."""

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update `weight` in place from `grad`; lists update one by one."""
        if isinstance(index, (list, tuple)):
            for each in zip(index, weight, grad, state, strict=True):
                self.update(*each)
            return
        name = type(self).__name__
        expect_array(name, weight, grad)
        if grad._shape != weight._shape:
            raise MXNetError(
                f"{name}: the gradient of parameter {index} must be of its shape, {weight._shape}, not {grad._shape}"
            )
        check_writable(weight, "Optimizer.update")
        self._update_count(index)
        with pause():
            self.step(index, weight, grad * float(self.rescale_grad), state, self._get_lr(index), self._get_wd(index))

    def step(self, index: Any, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update `weight` and `state` in place from the rescaled gradient."""
        raise NotImplementedError

    def clipped(self, grad: Any) -> Any:
        """`grad` within the range of `clip_gradient`."""
        limit = self._clip()
        return grad.clip(-limit, limit) if limit > 0 else grad


def _blend(average: Any, value: Any, decay: float) -> None:
    """Move the moving `average` in place."""
    average[:] = decay * average + (1 - decay) * value


@register
class Nadam(_Composed):
    """Adam with Nesterov's momentum (Dozat 2016).

    ``mu_t = beta1 (1 - 0.96^(t schedule_decay) / 2)``; M is the product of mu up to t and M' up to t + 1;
    ``g = clip(rescale grad + wd w)``, m and v are the moving averages of g and g squared,
    ``w -= lr ((1 - mu_t) g / (1 - M) + mu_(t+1) m / (1 - M')) / (sqrt(v / (1 - beta2^t)) + epsilon)``.

    Parameters
    ----------
    learning_rate : float
        0.001.
    beta1, beta2, epsilon, schedule_decay : float
    **kwargs
        See :class:`Optimizer`.

    Notes
    -----
    Each parameter has a product of its own; MXNet multiplies one for all of them.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self._products: dict[Any, float] = {}

    def create_state(self, index: Any, weight: Any) -> Any:
        """The two moving averages."""
        return zeros_like(weight), zeros_like(weight)

    def _mu(self, t: int) -> float:
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def step(self, index: Any, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update by the formula of the class."""
        t = self._index_update_count[index]
        g = self.clipped(grad + wd * weight)
        m, v = state
        mu, after = self._mu(t), self._mu(t + 1)
        product = self._products[index] = self._products.get(index, 1.0) * mu
        _blend(m, g, self.beta1)
        _blend(v, nd.square(g), self.beta2)
        direction = (1 - mu) / (1 - product) * g + after / (1 - product * after) * m
        weight[:] = weight - lr * direction / (nd.sqrt(v / (1 - self.beta2**t)) + self.epsilon)


@register
class DCASGD(_Composed):
    """SGD that compensates for delayed gradients (Zheng et al. 2017).

    ``g = clip(rescale grad);  d = momentum d - lr (g + wd w + lamda g^2 (w - w_before));  w_before = w;  w += d``.

    Parameters
    ----------
    momentum, lamda : float
    **kwargs
        See :class:`Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lamda = lamda

    def create_state(self, index: Any, weight: Any) -> Any:
        """The momentum, or None, and the weight before."""
        return zeros_like(weight) if self.momentum != 0 else None, weight.copy()

    def step(self, index: Any, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update by the formula of the class."""
        momentum, before = state
        g = self.clipped(grad)
        move = -lr * (g + wd * weight + self.lamda * nd.square(g) * (weight - before))
        if momentum is not None:
            momentum[:] = move = self.momentum * momentum + move
        before[:] = weight
        weight[:] = weight + move


@register
class SGLD(_Composed):
    """Langevin dynamics (Welling and Teh 2011): ``w -= lr / 2 (clip(rescale grad) + wd w)``, and noise of variance lr.

    The noise comes from the stream that :func:`numbagrad.random.seed` seeds.
    """

    def step(self, index: Any, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update by the formula of the class."""
        noise = nd.random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype)
        weight[:] = weight - lr / 2 * (self.clipped(grad) + wd * weight) + noise


@register
class Test(_Composed):
    """``w += rescale grad``, for tests; the state is a copy of the weight."""

    __test__ = False  # nothing for pytest to collect

    def create_state(self, index: Any, weight: Any) -> Any:
        """Zeros."""
        return zeros_like(weight)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update by the formula of the class."""
        weight[:] = weight + grad
        state[:] = weight
