"""The process's stream of random numbers, and fills from it."""

from collections.abc import Sequence

import numpy as np

from numbagrad import launch as door
from numbagrad.kernels import random as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.launch import launch
from numbagrad.native import rng
from numbagrad.ops.casting import cast_flat
from numbagrad.ops.dtypes import FLOAT32

STATE = rng.seed_state(0)
"""Key and next block of the stream that every random op draws from; kernels advance it. A process starts at seed 0."""


def stream() -> np.ndarray:
    """The stream that kernels draw from."""
    return STATE


def seed(value: int) -> None:
    """Start the stream anew from `value`, any integer."""
    door.host(lambda: rng.reseed(STATE, value), before=True)


def draw(kernel: Kernel, size: int, dtype: np.dtype, *scalars: float) -> np.ndarray:
    """A new flat array that ``kernel(stream, out, size, *scalars)`` fills; float16 is drawn in float32."""
    out = np.empty(size, FLOAT32 if dtype == np.float16 else dtype)
    launch(kernel, STATE, out, size, *scalars)
    return cast_flat(out, dtype) if dtype == np.float16 else out


def draw_rows(kernel: Kernel, parameters: Sequence[np.ndarray], per_row: int, dtype: np.dtype) -> np.ndarray:
    """As :func:`draw` for kernels whose parameters are float64 arrays; `per_row` numbers from each parameter."""
    rows = parameters[0].size
    out = np.empty(rows * per_row, FLOAT32 if dtype == np.float16 else dtype)
    launch(kernel, STATE, *parameters, out, rows, per_row)
    return cast_flat(out, dtype) if dtype == np.float16 else out


def draw_classes(probabilities: np.ndarray, rows: int, classes: int, per_row: int) -> np.ndarray:
    """`per_row` class numbers (int64) by each row of `probabilities`, a flat (rows, classes)."""
    if probabilities.dtype.name not in ("float32", "float64"):
        probabilities = cast_flat(probabilities, FLOAT32)
    out = np.empty(rows * per_row, np.int64)
    launch(kernels.multinomial, STATE, probabilities, out, rows, classes, per_row)
    return out
