"""Random shapes and arrays, from NumPy's global generator, so that ``numpy.random.seed`` repeats them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad import nd
from numbagrad.context import Context
from numbagrad.errors import MXNetError


def default_dtype() -> type:
    """The dtype of random arrays: float32."""
    return np.float32


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Normal numbers in NumPy arrays of float32: a list of them, or of one shape the array."""
    arrays: list[np.ndarray] = [np.asarray(np.random.randn(*shape), dtype=default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(
    *shapes: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = None
) -> list[np.ndarray]:
    """Uniform numbers from [low, high) in a list of NumPy arrays."""
    return [np.asarray(np.random.uniform(low, high, size=shape), dtype or default_dtype()) for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> Sequence[Any]:
    """`k` different elements of a sequence, in random order."""
    assert 0 <= k <= len(population), f"cannot choose {k} of {len(population)}"
    shuffled = population[:]
    np.random.shuffle(shuffled)
    return shuffled[:k]


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
) -> nd.NDArray:
    """An NDArray of normal numbers; `density` is for MXNet's sparse arrays, which numbagrad does not have."""
    if stype != "default":
        raise MXNetError(f"rand_ndarray: arrays of storage type {stype!r} are not supported")
    return nd.array(random_arrays(shape), dtype=dtype, ctx=ctx)


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of two axes, of lengths up to `dim0` and `dim1`."""
    return _shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of three axes, of lengths up to `dim0`, `dim1` and `dim2`."""
    return _shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of `num_dim` axes, of lengths up to `dim`."""
    return _shape((dim,) * num_dim, allow_zero_size)


def _shape(longest: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    return tuple(int(np.random.randint(0 if allow_zero_size else 1, length + 1)) for length in longest)
