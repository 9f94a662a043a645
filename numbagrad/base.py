"""MXNet's home of its error class, and of the types that programs compare arguments with."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError

string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)
mx_real_t = np.float32
"""The default dtype."""


def py_str(text: Any) -> str:
    """`text`, str or bytes in UTF-8, as a str."""
    return text if isinstance(text, str) else text.decode("utf-8")


def _as_list(value: Any) -> list[Any] | tuple[Any, ...]:
    """`value` itself if it is a list or tuple, else a list of it."""
    return value if isinstance(value, (list, tuple)) else [value]


__all__ = ["MXNetError", "integer_types", "mx_real_t", "numeric_types", "py_str", "string_types"]
