"""Figures that tell how good predictions are."""

from numbagrad.metric.base import (
    CompositeEvalMetric,
    CustomMetric,
    EvalMetric,
    Loss,
    check_label_shapes,
    create,
    register,
)
from numbagrad.metric.base import np_metric as np
from numbagrad.metric.classification import (
    F1,
    MCC,
    PCC,
    Accuracy,
    CrossEntropy,
    NegativeLogLikelihood,
    Perplexity,
    TopKAccuracy,
)
from numbagrad.metric.regression import MAE, MSE, RMSE, PearsonCorrelation

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "check_label_shapes",
    "create",
    "np",
    "register",
]
