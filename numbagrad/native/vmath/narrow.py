"""float32 functions that are their float64 functions, rounded: where nothing is to be gained by less precision."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.native.compiler import njit


def narrow(double: Any) -> Any:
    """The float32 function of one argument that rounds `double`."""

    def single(x: Any) -> Any:
        return np.float32(double(np.float64(x)))

    return _named(single, double)


def narrow2(double: Any) -> Any:
    """The float32 function of two arguments that rounds `double`."""

    def single(x: Any, y: Any) -> Any:
        return np.float32(double(np.float64(x), np.float64(y)))

    return _named(single, double)


def _named(single: Callable[..., Any], double: Any) -> Any:
    single.__name__ = double.__name__.replace("float64", "float32")
    single.__doc__ = (double.__doc__ or "").replace("float64", "float32")
    return njit(single, inline=True)
