"""Derivatives of functions of NDArrays, as functions: they nest, and record where recording is on."""

from numbagrad.transforms.checkpointing import checkpoint
from numbagrad.transforms.gradients import elementwise_grad, grad, hvp, jvp, value_and_grad, vjp
from numbagrad.transforms.matrices import hessian, jacobian

__all__ = [
    "checkpoint",
    "elementwise_grad",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
]
