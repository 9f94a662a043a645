"""What functions check of their arguments before anything is computed or written."""

from collections.abc import Iterable
from typing import Any

from numbagrad.array import Array
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import promote


def expect_array(name: str, *arrays: Any) -> None:
    """Refuse what is no array."""
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(f"{name}: takes an NDArray, not {type(array).__name__}")


def in_one_dtype(name: str, *arrays: Any) -> list[Any]:
    """The arrays, cast to their common dtype.

    Raises
    ------
    TypeError
        For what is no array.
    """
    expect_array(name, *arrays)
    dtypes = {array._flat.dtype for array in arrays}
    if len(dtypes) == 1:
        return list(arrays)
    dtype = promote(dtypes)
    return [cast(array, dtype=dtype) for array in arrays]


def expect_choice(name: str, parameter: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is none of `choices`."""
    if value not in choices:
        raise MXNetError(f"{name}: {parameter} must be one of {', '.join(sorted(choices))}, not {value!r}")


def check_out(name: str, shape: tuple[int, ...], out: Any) -> None:
    """Refuse an `out` that cannot take the result: before a random stream or running statistics move."""
    expect_array(name, out)
    check_writable(out, f"{name}(out=)")
    if out._shape != shape:
        raise MXNetError(f"{name}: a result of shape {shape} cannot be written to an array of shape {out._shape}")
