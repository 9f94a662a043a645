"""Optimisers: rules that turn gradients into updates of weights."""

from numbagrad.optimizer.adam import Adam
from numbagrad.optimizer.base import Optimizer, create, register
from numbagrad.optimizer.sgd import SGD
from numbagrad.optimizer.updater import Updater, get_updater

__all__ = ["SGD", "Adam", "Optimizer", "Updater", "create", "get_updater", "register"]
