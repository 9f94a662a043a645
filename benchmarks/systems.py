"""Who is compared: each system builds the step of a workload, and says whether it can run in this interpreter."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def _nothing():
    """Wait for nothing: the system has finished when its step returns."""


def _wait_for_mxnet():
    importlib.import_module("mxnet").nd.waitall()


class System(NamedTuple):
    """One row of the table: ``build(name, optimizer)`` makes the step of a workload.

    `wait` returns when all steps are done, for systems that only queue them; `optimizers` are those it has.
    """

    title: str
    module: str
    build: Callable
    wait: Callable = _nothing
    optimizers: tuple = ("sgd",)


def _from(module, function):
    """`function` of `module`, imported when it is first called: a peer must not slow the others down."""

    def build(name, optimizer="sgd"):
        chosen = {} if optimizer == "sgd" else {"optimizer": optimizer}
        return getattr(importlib.import_module(module), function)(name, **chosen)

    return build


def _gluon(module, compiled=False):
    def build(name, optimizer="sgd"):
        from benchmarks import gluon_program

        return gluon_program.build(importlib.import_module(module), name, compiled, optimizer)

    return build


BOTH = ("sgd", "adam")

SYSTEMS = {
    "limit": System("limit (fused by hand)", "numba", _from("benchmarks.limit", "build"), optimizers=BOTH),
    "numpy": System("NumPy by hand", "numpy", _from("benchmarks.numpy_by_hand", "build")),
    "numpy-out": System("NumPy, preallocated", "numpy", _from("benchmarks.numpy_preallocated", "build")),
    "eager": System("numbagrad, eager", "numbagrad", _gluon("numbagrad"), optimizers=BOTH),
    "jit": System("numbagrad, jit", "numbagrad", _gluon("numbagrad", compiled=True), optimizers=BOTH),
    "torch": System("PyTorch, eager", "torch", _from("benchmarks.peers", "torch_eager"), optimizers=BOTH),
    "jax": System("JAX, jit of the step", "jax", _from("benchmarks.peers", "jax_jit")),
    "mxnet": System("MXNet, gluon", "mxnet", _gluon("mxnet"), _wait_for_mxnet, BOTH),
}


def missing(key, optimizer="sgd"):
    """Why system `key` cannot run in this interpreter, or not with this optimizer, or None."""
    if optimizer not in SYSTEMS[key].optimizers:
        return f"it has no {optimizer}"
    module = SYSTEMS[key].module
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    if key == "eager" and importlib.util.find_spec("numbagrad.gluon") is None:
        return "numbagrad has no gluon yet"
    if key == "jit" and not hasattr(importlib.import_module("numbagrad"), "jit"):
        return "numbagrad has no jit yet"
    return None


def value(loss):
    """The mean loss as a float, whatever array type `loss` is."""
    if hasattr(loss, "asnumpy"):
        loss = loss.asnumpy()
    elif hasattr(loss, "detach"):
        loss = loss.detach()
    return float(np.asarray(loss).mean())
