"""What functions check of their arguments before anything is computed or written."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from numbagrad.array import Array
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import promote

REQUIRED = Parameter.empty
"""The default of a parameter that has none."""


def spelled(
    function_name: str,
    summary: str,
    parameters: dict[str, Any],
    call: Callable[..., Any],
    takes: dict[str, Any],
) -> Any:
    """A function of `parameters` (name -> default, or REQUIRED), which hands them to `call` by name, but ``name``.

    `takes` says what parameters take, as annotations do.
    """
    kind = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature(
        [Parameter(name, kind, default=value, annotation=takes.get(name, Any)) for name, value in parameters.items()]
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function_name}: {error}") from None
        given.apply_defaults()
        del given.arguments["name"]
        return call(**given.arguments)

    function.__name__ = function.__qualname__ = function_name
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = summary
    return function


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
    expect_array(f"{name}(out=)", out)
    check_writable(out, f"{name}(out=)")
    if out._shape != shape:
        raise MXNetError(f"{name}(out=): a result of shape {shape} cannot be written to an array of shape {out._shape}")
