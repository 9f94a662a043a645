"""Automatic differentiation: what is recorded, and gradients of it."""

from typing import Any

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
from numbagrad.autograd.symbol import RecordedSymbol, get_symbol

NDArray: Any
"""The class of arrays, for ``from mxnet.autograd import *``; set by ``numbagrad.nd``."""

__all__ = [
    "Function",
    "NDArray",
    "RecordedSymbol",
    "attach_grad",
    "backward",
    "get_symbol",
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
