"""Copies by :mod:`copy` and :mod:`pickle`: values, dtype, shape and device label; no gradient, no history."""

from typing import Any

import numpy as np

from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.casting import cast_flat
from numbagrad.ops.dtypes import adopted


def _copy(self: NDArray) -> NDArray:
    result = NDArray(cast_flat(self._flat, self._flat.dtype), self._shape)
    result._context = self._context
    return result


def _deepcopy(self: NDArray, memo: Any) -> NDArray:
    return _copy(self)


def _reduce(self: NDArray) -> Any:
    return _rebuilt, (self.asnumpy(), self._context)


def _rebuilt(values: np.ndarray, context: Any) -> NDArray:
    # Unpickled memory may belong to somebody else, and may be read-only.
    result = NDArray(adopted(np.array(values.reshape(-1))), values.shape)
    result._context = context
    return result


METHODS: dict[str, Any] = {"__copy__": _copy, "__deepcopy__": _deepcopy, "__reduce__": _reduce}
