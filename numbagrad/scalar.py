"""The scalar functions for :func:`numbagrad.elementwise`, named as in NumPy.

They work on the symbols that an elementwise function is called with, not on arrays::

    from numbagrad.scalar import exp, where

    @numbagrad.elementwise
    def elu(x):
        return where(x > 0, x, exp(x) - 1)
"""

from typing import TYPE_CHECKING, Any

from numbagrad.native import scalar as _scalar

__all__ = list(_scalar.__all__)
globals().update({name: getattr(_scalar, name) for name in __all__})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
