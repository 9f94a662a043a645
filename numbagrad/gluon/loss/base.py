"""What losses share: weights, and labels in the shape of predictions."""

from typing import Any

import numpy as np

from numbagrad.gluon.block import HybridBlock
from numbagrad.nd.ndarray import NDArray

FLOAT32 = np.dtype("float32")
FLOAT64 = np.dtype("float64")


def refuse(name: str, pred: Any, label: Any) -> ValueError:
    """The error for a label that does not fit the prediction."""
    return ValueError(
        f"{name}: a label of shape {label.shape} ({label.size} elements) does not fit a prediction of shape "
        f"{pred.shape} ({pred.size} elements): the sizes must agree"
    )


def expect_label(name: str, label: Any) -> None:
    """Refuse a label that is no array; predictions are looked at by the call of the block."""
    if not isinstance(label, NDArray):
        raise TypeError(f"{name}: the label must be an NDArray, not {type(label).__name__}; use nd.array")


def like(label: NDArray, pred: NDArray, name: str) -> NDArray:
    """`label` in the shape of `pred`.

    Raises
    ------
    ValueError
        If their sizes differ.
    """
    expect_label(name, label)
    if label.shape == pred.shape:
        return label
    if label.size != pred.size:
        raise refuse(name, pred, label)
    return label.reshape(pred.shape)


def apply_weighting(F: Any, loss: NDArray, weight: float | None = None, sample_weight: Any = None) -> NDArray:
    """`loss` times `sample_weight`, which broadcasts, times the number `weight`.

    Raises
    ------
    AssertionError
        If `weight` is no number.
    """
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        assert isinstance(weight, (int, float, np.number)), f"weight must be a number, not {type(weight).__name__}"
        loss = loss * weight
    return loss


class Loss(HybridBlock):
    """The base class of losses; called as ``loss(pred, label)`` they give one number an example.

    Parameters
    ----------
    weight : float or None
        Multiplies the loss.
    batch_axis : int
        The axis of the examples; the loss is averaged over all others.
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight = weight
        self._batch_axis = batch_axis
        self._factor = 1.0 if weight is None else float(weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _average(self, F: Any, loss: NDArray, sample_weight: Any, weight: float | None) -> NDArray:
        """Weigh, and average over all axes but the batch axis."""
        loss = apply_weighting(F, loss, weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)
