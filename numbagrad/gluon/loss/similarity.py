"""Losses of how near vectors are to each other."""

from typing import Any

import numpy as np

from numbagrad.gluon.loss.base import Loss, apply_weighting, like
from numbagrad.gluon.loss.classification import KLDivLoss
from numbagrad.nd.ndarray import NDArray


class TripletLoss(Loss):
    """``max(0, sum((positive - pred)^2 - (negative - pred)^2) + margin)``: a vector is to be nearer to its like.

    Parameters
    ----------
    margin : float
    weight : float or None
    batch_axis : int

    Inputs
    ------
    pred, positive, negative : NDArray
        Of one size.

    Returns
    -------
    NDArray of shape (batch,)
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        positive, negative = like(positive, pred, self.name), like(negative, pred, self.name)
        distance = F.sum(F.square(positive - pred) - F.square(negative - pred), axis=self._batch_axis, exclude=True)
        return apply_weighting(F, F.relu(distance + self._margin), self._weight, sample_weight)


class CosineEmbeddingLoss(Loss):
    """1 - cos of the angle of two vectors for label 1, ``max(0, cos - margin)`` for label -1.

    Parameters
    ----------
    weight : float or None
    batch_axis : int
    margin : float

    Inputs
    ------
    input1, input2 : NDArray of shape (batch, features)
    label : NDArray of shape (batch,)

    Returns
    -------
    NDArray of shape (batch, 1)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        input1 = like(input1, input2, self.name)
        dot = F.sum(input1 * input2, axis=-1).reshape((-1, 1))
        lengths = F.norm(input1, axis=-1).reshape((-1, 1)) * F.norm(input2, axis=-1).reshape((-1, 1))
        cosine = dot / F.maximum(lengths, 1e-12)
        label = label.reshape((-1, 1))
        loss = F.where(label == 1, 1.0 - cosine, F.relu(cosine - self._margin))
        return apply_weighting(F, loss, self._weight, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: each row of the first is to be nearest to its row of the second.

    Parameters
    ----------
    smoothing_parameter : float
        The probability that is spread over the other rows.
    weight : float or None
    batch_axis : int

    Inputs
    ------
    x1, x2 : NDArray of shape (batch, features)

    Returns
    -------
    NDArray of shape (batch,)
    """

    def __init__(
        self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> NDArray:
        """The loss of each example."""
        n = x1.shape[0]
        differences = F.expand_dims(x1, axis=1) - F.expand_dims(x2, axis=0)
        logp = F.log_softmax(-F.sum(F.square(differences), axis=2), axis=1)
        labels = np.full((n, n), self.smoothing_parameter / max(n - 1, 1))
        np.fill_diagonal(labels, 1 - self.smoothing_parameter)
        return self.kl_loss(logp, F.array(labels, dtype=x1.dtype))
