"""Changes of dtype."""

from typing import Any

import numpy as np

from numbagrad.kernels import cast as kernels
from numbagrad.kernels.strided import copy
from numbagrad.launch import launch
from numbagrad.ops.dtypes import FLOAT32, as_dtype
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed

_HALF = np.dtype("float16")


def cast_flat(flat: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`flat` in another dtype, as a new array; floats to ints truncate towards zero."""
    out = np.empty(flat.size, dtype)
    write_cast(flat, out)
    return out


def write_cast(flat: np.ndarray, out: np.ndarray) -> None:
    """Write `flat` to `out`, whose dtype may be another."""
    n = flat.size
    if flat.dtype == out.dtype:
        launch(copy, raw(flat), raw(out), n)
    elif flat.dtype == _HALF:
        if out.dtype.kind == "f":
            launch(kernels.half_to_float, flat.view(np.uint16), out, n)
        else:
            launch(kernels.cast, cast_flat(flat, FLOAT32), out, n)
    elif out.dtype == _HALF:
        if flat.dtype.kind != "f":
            flat = cast_flat(flat, FLOAT32)
        kernel = kernels.float_to_half if flat.dtype == FLOAT32 else kernels.double_to_half
        launch(kernel, flat, out.view(np.uint16), n)
    else:
        launch(kernels.cast, flat, out, n)


def raw(flat: np.ndarray) -> np.ndarray:
    """`flat` as kernels that only move data take it: float16 as uint16."""
    return flat.view(np.uint16) if flat.dtype.char == "e" else flat  # to compare dtypes takes longer


def _cast_vjp(context: Context, g: Any) -> Any:
    # The gradient of an integer array stays floating: it would lose its fraction.
    dtype = context.params["dtype_in"]
    return g if dtype.kind != "f" else cast(g, dtype=dtype)


@composed(
    "cast_",
    _cast_vjp,
    float16=True,
    samples=lambda: [
        Sample(
            (np.array([[0.5, -1.5, 2.0]]),),
            {"dtype": np.dtype("float32"), "dtype_in": np.dtype("float64")},
            lambda x: x.astype("float32"),
            smooth=False,
        )
    ],
)
def _cast(x: ArrayLike, *, dtype: np.dtype, dtype_in: np.dtype) -> Output:
    return cast_flat(x._flat, dtype), x._shape


def cast(x: Any, *, dtype: Any) -> Any:
    """`x` in another dtype; itself, not copied, where it has that dtype already."""
    dtype = as_dtype(dtype)
    if x._flat.dtype == dtype:
        return x
    return _cast(x, dtype=dtype, dtype_in=x._flat.dtype)
