"""Losses of scores and probabilities against classes."""

from typing import Any

from numbagrad import nd
from numbagrad.gluon.loss.base import FLOAT32, FLOAT64, Loss, apply_weighting, expect_label, like
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.casting import cast
from numbagrad.ops.loss import sigmoid_bce, softmax_ce, softmax_ce_dense


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of independent yes-or-no labels z against predictions x, averaged over an example.

    ``log(1 + exp(x)) - x z``, computed without overflow; its derivative is ``sigmoid(x) - z`` everywhere.

    Parameters
    ----------
    from_sigmoid : bool
        Predictions are probabilities already: ``-(z log(x + 1e-12) + (1 - z) log(1 - x + 1e-12))``.
    weight : float or None
    batch_axis : int

    Inputs
    ------
    pred : NDArray
    label : NDArray
        As many elements as `pred`, of any dtype, from 0 to 1.
    sample_weight : NDArray, optional
        Multiplies the losses; it must broadcast to the shape of `pred`.
    pos_weight : NDArray, optional
        Multiplies the part of the positive labels.

    Returns
    -------
    NDArray of shape (batch,)

    Raises
    ------
    ValueError
        If label and prediction differ in size.
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid
        self._fused = not from_sigmoid and batch_axis == 0

    def forward(self, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> NDArray:
        """The loss of each example; one fused op for logits without weights."""
        if (
            sample_weight is None
            and pos_weight is None
            and self._fused
            and type(pred) is NDArray
            and type(label) is NDArray
        ):
            flat = pred._flat
            dtype = flat.dtype
            if (dtype is FLOAT32 or dtype is FLOAT64) and flat.size == label._flat.size and pred._shape:
                return sigmoid_bce(pred, label, weight=self._factor)
        return self.hybrid_forward(nd, pred, label, sample_weight, pos_weight)

    def hybrid_forward(
        self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None
    ) -> NDArray:
        """The same of other ops."""
        label = like(label, pred, self.name)
        if not self._from_sigmoid:
            if pos_weight is None:
                loss = F.Activation(pred, act_type="softrelu") - pred * label
            else:
                factor = 1 + F.broadcast_mul(pos_weight - 1, label)
                loss = pred - pred * label + factor * F.Activation(-pred, act_type="softrelu")
        else:
            positive = F.log(pred + 1e-12) * label
            if pos_weight is not None:
                positive = F.broadcast_mul(positive, pos_weight)
            loss = -(positive + F.log(1.0 - pred + 1e-12) * (1.0 - label))
        return self._average(F, loss, sample_weight, self._weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy of classes against scores: ``-log softmax(pred)[label]``.

    Parameters
    ----------
    axis : int
        The axis of the classes.
    sparse_label : bool
        Labels are numbers of classes, in the shape of `pred` without that axis (or with length 1 there); else
        probabilities in the shape of `pred`.
    from_logits : bool
        Predictions are logarithms of probabilities already.
    weight : float or None
    batch_axis : int

    Inputs
    ------
    pred : NDArray
    label : NDArray
        Of any dtype.
    sample_weight : NDArray, optional
        Must broadcast to the shape of `pred` with length 1 along `axis`: for (batch, classes) it is (batch, 1).

    Returns
    -------
    NDArray of shape (batch,)
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits
        self._fused = not from_logits and batch_axis == 0 and axis in (-1, 1)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example; one fused op for (batch, classes) without sample weights."""
        if sample_weight is None and self._fused and type(pred) is NDArray and type(label) is NDArray:
            shape = pred._shape
            dtype = pred._flat.dtype
            if len(shape) == 2 and (dtype is FLOAT32 or dtype is FLOAT64):
                if self._sparse_label:
                    if label._flat.size == shape[0]:
                        return softmax_ce(pred, label, weight=self._factor)
                elif label._flat.size == pred._flat.size:
                    return softmax_ce_dense(pred, cast(like(label, pred, ""), dtype=dtype), weight=self._factor)
        return self.hybrid_forward(nd, pred, label, sample_weight)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The same of other ops."""
        axis = self._axis
        expect_label(self.name, label)
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=axis)
        if self._sparse_label:
            length = pred.shape[axis]
            if label.size * length != pred.size:
                raise ValueError(
                    f"{self.name}: labels of shape {label.shape} do not fit predictions of shape {pred.shape} with "
                    f"classes on axis {axis}: {pred.size // length if length else 0} are needed"
                )
            loss = -F.pick(pred, label, axis=axis, keepdims=True)
        else:
            loss = -F.sum(pred * like(label, pred, self.name), axis=axis, keepdims=True)
        return self._average(F, loss, sample_weight, self._weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of predictions from labels, ``sum label (log label - pred)`` over an example.

    Parameters
    ----------
    from_logits : bool
        Predictions are logarithms of probabilities; else scores that log_softmax along `axis` makes them of.
    axis : int
    weight : float or None
    batch_axis : int
    """

    def __init__(
        self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        expect_label(self.name, label)
        loss = label * (F.log(label + 1e-12) - pred)
        loss = apply_weighting(F, loss, self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class HingeLoss(Loss):
    """``max(0, margin - pred label)`` for labels of -1 and 1, averaged over an example."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        loss = F.relu(self._margin - pred * like(label, pred, self.name))
        return self._average(F, loss, sample_weight, self._weight)


class SquaredHingeLoss(Loss):
    """The square of :class:`HingeLoss`, averaged over an example."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        loss = F.square(F.relu(self._margin - pred * like(label, pred, self.name)))
        return self._average(F, loss, sample_weight, self._weight)


class LogisticLoss(Loss):
    """Logistic regression's loss, ``log(1 + exp(-pred label))`` for labels of -1 and 1, averaged over an example.

    Parameters
    ----------
    weight : float or None
    batch_axis : int
    label_format : {"signed", "binary"}
        Labels of -1 and 1, or of 0 and 1.

    Raises
    ------
    ValueError
        For another format.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, received {label_format}.")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> NDArray:
        """The loss of each example."""
        label = like(label, pred, self.name)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.Activation(pred, act_type="softrelu") - pred * label
        return self._average(F, loss, sample_weight, self._weight)
