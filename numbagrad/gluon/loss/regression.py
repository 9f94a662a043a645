"""Losses of numbers against numbers."""

import math
from typing import Any

from numbagrad import nd
from numbagrad.gluon.loss.base import FLOAT32, FLOAT64, Loss, apply_weighting, like
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.loss import l1, l2


class L2Loss(Loss):
    r"""Half the squared difference, ``weight / 2 (label - pred)^2``, averaged over an example.

    Parameters
    ----------
    weight : float or None
    batch_axis : int

    Inputs
    ------
    pred : NDArray
    label : NDArray
        As many elements as `pred`, of any dtype.
    sample_weight : NDArray, optional
        Multiplies the losses; it must broadcast to the shape of `pred`.

    Returns
    -------
    NDArray of shape (batch,)

    Raises
    ------
    ValueError
        If label and prediction differ in size.
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example; one fused op where there are no sample weights."""
        if sample_weight is None and self._batch_axis == 0 and type(pred) is NDArray and type(label) is NDArray:
            flat = pred._flat
            dtype = flat.dtype
            if (dtype is FLOAT32 or dtype is FLOAT64) and flat.size == label._flat.size and pred._shape:
                return l2(pred, label, weight=self._factor)
        return self.hybrid_forward(nd, pred, label, sample_weight)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The same of other ops."""
        loss = F.square(like(label, pred, self.name) - pred)
        return self._average(F, loss, sample_weight, self._factor / 2)


class L1Loss(Loss):
    """The absolute difference, ``weight abs(label - pred)``, averaged over an example; see :class:`L2Loss`.

    Its gradient is 0 where label and prediction are equal.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example; one fused op where there are no sample weights."""
        if sample_weight is None and self._batch_axis == 0 and type(pred) is NDArray and type(label) is NDArray:
            flat = pred._flat
            dtype = flat.dtype
            if (dtype is FLOAT32 or dtype is FLOAT64) and flat.size == label._flat.size and pred._shape:
                return l1(pred, label, weight=self._factor)
        return self.hybrid_forward(nd, pred, label, sample_weight)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The same of other ops."""
        loss = F.abs(like(label, pred, self.name) - pred)
        return self._average(F, loss, sample_weight, self._weight)


class HuberLoss(Loss):
    """Squares of small differences d, ``d^2 / (2 rho)``, and the size of large ones, ``abs(d) - rho / 2`` beyond `rho`.

    Parameters
    ----------
    rho : float
        Where the one goes over into the other.
    weight : float or None
    batch_axis : int
    """

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        difference = F.abs(like(label, pred, self.name) - pred)
        loss = F.where(difference > self._rho, difference - 0.5 * self._rho, (0.5 / self._rho) * F.square(difference))
        return self._average(F, loss, sample_weight, self._weight)


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of counts under Poisson distributions, averaged over everything.

    Parameters
    ----------
    weight : float or None
    from_logits : bool
        Predictions are logarithms of rates: ``exp(pred) - target pred``; else rates:
        ``pred - target log(pred + epsilon)``.
    batch_axis : int
    compute_full : bool
        Add Stirling's approximation of log(target!) for targets above 1.

    Inputs
    ------
    pred, target, sample_weight : NDArray
    epsilon : float

    Returns
    -------
    NDArray of shape (1,)
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(
        self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08
    ) -> NDArray:
        """The mean loss."""
        target = like(target, pred, self.name)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            large = target > 1
            safe = F.where(large, target, F.ones_like(target))
            stirling = safe * F.log(safe) - safe + 0.5 * F.log(2 * math.pi * safe)
            loss = loss + F.where(large, stirling, F.zeros_like(stirling))
        return F.mean(apply_weighting(F, loss, self._weight, sample_weight))
