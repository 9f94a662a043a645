"""Stochastic gradient descent."""

from typing import Any, ClassVar

from numbagrad.kernels import optimizer as kernels
from numbagrad.kernels.rule import Rule
from numbagrad.optimizer.base import Optimizer, register, zeros_like


@register
class SGD(Optimizer):
    """``g = clip(rescale grad) + wd w;  m = momentum m - lr g;  w += m``; without momentum ``w -= lr g``.

    Parameters
    ----------
    momentum : float
        0 (or less) keeps no state.
    lazy_update : bool
        Accepted for MXNet's sake; gradients are dense.
    **kwargs
        See :class:`Optimizer`.
    """

    rules: ClassVar[dict[int, Rule]] = {0: kernels.SGD, 1: kernels.SGD_MOMENTUM}
    master_last = True

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: Any) -> Any:
        """The momentum, or None."""
        return zeros_like(weight) if self.momentum > 0 else None

    def row(self) -> tuple[float, ...]:
        """Clipping and momentum."""
        return self._clip(), self.momentum
