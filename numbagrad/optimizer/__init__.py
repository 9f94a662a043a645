"""Optimisers: rules that turn gradients into updates of weights."""

from numbagrad.optimizer.adam import Adam
from numbagrad.optimizer.adaptive import FTML, LAMB, NAG, AdaDelta, AdaGrad, Adamax, Ftrl, RMSProp, Signum
from numbagrad.optimizer.base import Optimizer, create, register
from numbagrad.optimizer.composed import DCASGD, SGLD, Nadam, Test
from numbagrad.optimizer.sgd import SGD
from numbagrad.optimizer.updater import Updater, get_updater

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "create",
    "get_updater",
    "register",
]
