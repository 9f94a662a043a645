"""Adam."""

from typing import Any, ClassVar

from numbagrad.kernels import optimizer as kernels
from numbagrad.kernels.rule import Rule
from numbagrad.optimizer.base import Optimizer, register, zeros_like


@register
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015), with the bias correction in the rate.

    ``g = clip(rescale grad + wd w)``, m and v the moving averages of g and g squared,
    ``w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)``.

    Parameters
    ----------
    learning_rate : float
        0.001.
    beta1, beta2 : float
        The decay of the two averages.
    epsilon : float
    lazy_update : bool
        Accepted for MXNet's sake; gradients are dense.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {2: kernels.ADAM}

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: Any) -> Any:
        """The two moving averages."""
        return zeros_like(weight), zeros_like(weight)

    def row(self) -> tuple[float, ...]:
        """Clipping, the decays of the averages, epsilon; the correction of the rate, which is the kernels' to write."""
        return self._clip(), self.beta1, self.beta2, self.epsilon, 0.0
