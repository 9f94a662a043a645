"""MXNet's array functions over the ops, with the rules of MXNet 1.x that programs rely on."""

from numbagrad.nd.ndarray import NDArray
from numbagrad import dispatch, walk  # noqa: F401 - ops run once dispatch is there

__all__ = ["NDArray"]
