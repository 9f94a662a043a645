"""Dtype rules: which there are, and what mixed arithmetic gives.

By category, bool < int < float; inside a category the wider wins; int with float32 is float32. Numbers never widen: a
float number makes an int array float32 and leaves float arrays as they are.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

NAMES = ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool")
FLOAT32 = np.dtype("float32")
_KNOWN = {np.dtype(name): np.dtype(name) for name in NAMES}
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


def as_dtype(dtype: Any) -> np.dtype:
    """`dtype` (name, NumPy class, dtype; None: float32) as a NumPy dtype, the same object for the same dtype.

    Raises
    ------
    TypeError
        If it is not one of :data:`NAMES`.
    """
    if dtype is None:
        return FLOAT32
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"unknown dtype {dtype!r}; there are {', '.join(NAMES)}") from None
    known = _KNOWN.get(found)
    if known is None:
        raise TypeError(f"unsupported dtype {found}; there are {', '.join(NAMES)}")
    return known


def adopted(values: np.ndarray) -> np.ndarray:
    """`values`, of which our arrays are to be made, with the one dtype object that stands for its dtype here.

    Unpickled NumPy arrays have another one, equal but not the same.

    Raises
    ------
    TypeError
        For an unsupported dtype.
    """
    dtype = as_dtype(values.dtype)
    return values if values.dtype is dtype else values.view(dtype)


def _category(number: Any) -> int:
    if isinstance(number, (bool, np.bool_)):
        return 0
    return 1 if isinstance(number, (int, np.integer)) else 2


@lru_cache(maxsize=1024)
def _promote(dtypes: frozenset[np.dtype], number: int) -> np.dtype:
    top = max(_CATEGORY[dtype.kind] for dtype in dtypes)
    if number > top:
        return FLOAT32 if number == 2 else np.dtype("int64")
    widest = np.result_type(*[dtype for dtype in dtypes if _CATEGORY[dtype.kind] == top])
    return np.dtype("int32") if widest == np.int16 else widest


def promote(dtypes: Iterable[np.dtype], numbers: Iterable[Any] = ()) -> np.dtype:
    """The dtype of an op on arrays of `dtypes` and Python or NumPy `numbers`."""
    return _promote(frozenset(dtypes), max((_category(number) for number in numbers), default=-1))


def floating(dtype: np.dtype) -> np.dtype:
    """`dtype` if it is a floating-point one, else float32."""
    return dtype if dtype.kind == "f" else FLOAT32
