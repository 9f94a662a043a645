"""MXNet's home of its error class."""

from numbagrad.errors import MXNetError

__all__ = ["MXNetError"]
