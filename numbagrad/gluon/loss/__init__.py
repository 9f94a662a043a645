"""Losses: blocks that are called as ``loss(pred, label)`` and give one number an example."""

from numbagrad.gluon.loss.base import Loss
from numbagrad.gluon.loss.base import apply_weighting as _apply_weighting  # noqa: F401 - its name in MXNet
from numbagrad.gluon.loss.classification import (
    HingeLoss,
    KLDivLoss,
    LogisticLoss,
    SigmoidBCELoss,
    SigmoidBinaryCrossEntropyLoss,
    SoftmaxCELoss,
    SoftmaxCrossEntropyLoss,
    SquaredHingeLoss,
)
from numbagrad.gluon.loss.regression import HuberLoss, L1Loss, L2Loss, PoissonNLLLoss
from numbagrad.gluon.loss.similarity import CosineEmbeddingLoss, SDMLLoss, TripletLoss
from numbagrad.nd.refusal import guarded as _guarded

__all__ = [
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

for _name in __all__:
    if "BCE" not in _name and "CELoss" not in _name:  # short names of what has a long one
        _guarded(globals()[_name])
