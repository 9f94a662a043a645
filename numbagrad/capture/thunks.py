"""The thunk of a kernel for the dtypes of its arguments."""

from typing import Any

import numba
import numpy as np
from numba import types

from numbagrad.kernels.kernel import Kernel
from numbagrad.native.thunk import thunk

_addresses: dict[tuple[int, tuple[str, ...]], tuple[int, Kernel]] = {}


def _type_of(kind: str) -> Any:
    if kind in ("word", "scalar"):
        return types.int64 if kind == "word" else types.float64
    return types.Array(numba.from_dtype(np.dtype(kind)), 1, "C")


def thunk_address(kernel: Kernel, kinds: tuple[str, ...]) -> int:
    """The address of the thunk of `kernel` for arguments of these kinds."""
    key = (id(kernel), kinds)
    found = _addresses.get(key)
    if found is None:
        found = _addresses[key] = (thunk(kernel.compiled, tuple(map(_type_of, kinds))), kernel)
    return found[0]
