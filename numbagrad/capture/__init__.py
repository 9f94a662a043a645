"""Capture: a function's kernels logged once, and replayed natively from a table."""

from numbagrad.capture.jit import jit

__all__ = ["jit"]
