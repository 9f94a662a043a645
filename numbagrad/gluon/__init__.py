"""Networks: blocks, parameters, layers, losses, the trainer and data loading."""

from numbagrad.gluon import data, loss, nn, utils
from numbagrad.gluon.block import Block, HybridBlock
from numbagrad.gluon.parameter import Constant, DeferredInitializationError, Parameter
from numbagrad.gluon.parameter_dict import ParameterDict
from numbagrad.gluon.trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "Trainer",
    "data",
    "loss",
    "nn",
    "utils",
]
