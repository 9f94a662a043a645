"""MXNet's imperative training API - autograd, nd, gluon - on Numba kernels."""

from numbagrad import attribute, autograd, context, gluon, initializer, lr_scheduler, name, nd, optimizer, random
from numbagrad.attribute import AttrScope
from numbagrad.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from numbagrad.errors import MXNetError

init = initializer
ndarray = nd
rnd = random

__version__ = "0.1.0"
__all__ = [
    "AttrScope",
    "Context",
    "MXNetError",
    "attribute",
    "autograd",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gluon",
    "gpu",
    "init",
    "initializer",
    "lr_scheduler",
    "name",
    "nd",
    "ndarray",
    "num_gpus",
    "optimizer",
    "random",
    "rnd",
]
