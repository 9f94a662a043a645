"""Layers and containers."""

from numbagrad.gluon.block import Block, HybridBlock
from numbagrad.gluon.nn.activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, Swish
from numbagrad.gluon.nn.basic import (
    Dense,
    Dropout,
    Embedding,
    Flatten,
    HybridLambda,
    HybridSequential,
    Lambda,
    Sequential,
)
from numbagrad.gluon.nn.norm import BatchNorm, GroupNorm, InstanceNorm, LayerNorm
from numbagrad.nd.refusal import guarded as _guarded

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Activation",
    "BatchNorm",
    "Block",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridBlock",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "LeakyReLU",
    "PReLU",
    "Sequential",
    "Swish",
]

for _name in __all__:
    if globals()[_name] not in (Block, HybridBlock):  # programs derive from these, and word their own
        _guarded(globals()[_name])
