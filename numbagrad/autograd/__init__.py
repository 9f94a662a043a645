"""Automatic differentiation: what is recorded, and gradients of it."""

from numbagrad.autograd.function import Function
from numbagrad.autograd.gradients import attach_grad, backward, grad, mark_variables
from numbagrad.autograd.scopes import (
    is_recording,
    is_training,
    pause,
    predict_mode,
    record,
    set_recording,
    set_training,
    train_mode,
)

__all__ = [
    "Function",
    "attach_grad",
    "backward",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]
