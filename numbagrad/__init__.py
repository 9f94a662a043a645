"""MXNet's imperative training API - autograd, nd, gluon - on Numba kernels."""

from numbagrad import autograd, nd, random
from numbagrad.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from numbagrad.errors import MXNetError

__version__ = "0.1.0"
__all__ = [
    "Context",
    "MXNetError",
    "autograd",
    "cpu",
    "cpu_pinned",
    "current_context",
    "gpu",
    "nd",
    "num_gpus",
    "random",
]
