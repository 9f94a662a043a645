"""MXNet's array functions over the ops, with the rules of MXNet 1.x that programs rely on."""

from numbagrad.nd.indexing import getitem, setitem
from numbagrad.nd.ndarray import NDArray
from numbagrad import dispatch, walk  # noqa: F401 - ops run once dispatch is there

NDArray.__getitem__ = getitem  # type: ignore[attr-defined]
NDArray.__setitem__ = setitem  # type: ignore[attr-defined]

__all__ = ["NDArray"]
