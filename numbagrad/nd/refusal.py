"""What a function of ``nd`` says when it refuses a call: the name it was called by, the argument, what it takes.

The functions are written for right calls. Where one fails, its door looks for what was wrong with the call, by the
signature's annotations, and raises an error that says so; a right call pays for nothing but the door.
"""

import types
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np

from numbagrad.array import Array
from numbagrad.context import Context
from numbagrad.errors import MXNetError
from numbagrad.ops.dtypes import as_dtype

_INT64 = np.iinfo(np.int64)
_Class = TypeVar("_Class", bound=type)
_UNIONS = (Union, types.UnionType)
_OURS = (MXNetError, TypeError, ValueError, IndexError, AssertionError)
CAUGHT = (*_OURS, AttributeError, ArithmeticError, MemoryError)
"""What may come out of a function for a wrong call."""
_BY_NAME: dict[str, Any] = {"shape": int | Sequence[int], "ctx": Context, "out": Array | Sequence[Array]}
"""What stands behind ``Any`` for parameters of these names."""


def door(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """`function`, which says of a call that it refuses what is wrong with it.

    Errors that begin with its name (`name`, where it is known by another) are its own and stay as they are.
    """
    known = name or function.__name__

    @wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CAUGHT as error:
            raise worded(error, known, function, *args, **kwargs) from error.__cause__

    return entered


def worded(error: Exception, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception:
    """The error to raise instead of `error`, or that itself, which ``function(*args, **kwargs)`` has raised.

    For functions on the hot path, which have no door before them and catch :data:`CAUGHT` themselves.
    """
    if isinstance(error, _OURS) and str(error).startswith((f"{name}: ", f"{name}(")):
        return error
    better = _explained(name, signature(function), args, kwargs, error)
    return error if better is None else better.with_traceback(error.__traceback__)


_DOORS: dict[Callable[..., Any], Callable[..., Any]] = {}


def doors(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The functions behind doors, one door for all names of a function."""
    for function in functions.values():
        if function not in _DOORS:
            _DOORS[function] = door(function)
    return {name: _DOORS[function] for name, function in functions.items()}


def guarded(klass: _Class) -> _Class:
    """A class decorator: making an object refuses arguments that are not what the constructor's annotations say.

    A class keeps its settings for later, so that here nothing would fail for a wrong one.
    """
    init = vars(klass).get("__init__")
    if init is None:
        return klass

    @wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        wrong = _misfit(signature(init), (self, *args), kwargs)
        if wrong is not None:
            raise TypeError(f"{name}: {wrong}")
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            _, found, rest = str(error).partition("__init__() ")  # of a class further down
            if not found:
                raise
            raise TypeError(f"{name}: {rest}") from None

    klass.__init__ = checked  # type: ignore[misc]
    return klass


def _misfit(rules: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What is wrong with a call, as far as the signature says."""
    try:
        given = rules.bind(*args, **kwargs)
    except TypeError as misfit:
        return str(misfit)
    found = (_wrong(rules.parameters[parameter], value) for parameter, value in given.arguments.items())
    return next((wrong for wrong in found if wrong is not None), None)


def _explained(
    name: str, rules: Signature, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """The error to raise instead of `error`; None where it says nothing of the call."""
    if isinstance(error, MXNetError):
        return type(error)(renamed(name, str(error)))
    wrong = _misfit(rules, args, kwargs)
    if wrong is not None:
        return TypeError(f"{name}: {wrong}")
    if isinstance(error, AttributeError):
        return None
    kind = next((kind for kind in (*_OURS, MemoryError) if isinstance(error, kind)), MXNetError)
    return kind(renamed(name, str(error)))


def renamed(name: str, message: str) -> str:
    """`message`, which may name an op within, in the name of the function."""
    within, colon, rest = message.partition(": ")
    inner, out, _ = within.partition("(out=)")
    if colon and (out or within == "out="):
        return f"{name}(out=): {rest}"
    return f"{name}: {rest if colon and inner.isidentifier() else message}"


def _wrong(parameter: Parameter, value: Any) -> str | None:
    """What is wrong with an argument, if it is not what its parameter takes."""
    title, takes = parameter.name, parameter.annotation
    if parameter.kind is Parameter.VAR_KEYWORD or (parameter.default is None and value is None):
        return None
    if title == "dtype":
        try:
            as_dtype(value)
        except TypeError as error:
            return str(error)
        return None
    if takes in (Any, Parameter.empty):
        takes = _BY_NAME.get(title, Any)
    values = value if parameter.kind is Parameter.VAR_POSITIONAL else (value,)
    for one in values:
        if not _fits(takes, one):
            return f"{title} must be {described(takes)}, not {shown(one)}"
    return None


def _fits(takes: Any, value: Any) -> bool:
    """Whether `value` is of the kind that an annotation says."""
    if get_origin(takes) in _UNIONS:
        return any(_fits(one, value) for one in get_args(takes))
    if get_origin(takes) is not None:
        if get_origin(takes) not in (Sequence, tuple, list):
            return True
        element = get_args(takes)[0]
        return isinstance(value, (tuple, list, range, np.ndarray)) and all(_fits(element, one) for one in value)
    if takes is int:
        return isinstance(value, (int, np.integer)) and _INT64.min <= int(value) <= _INT64.max
    if takes is float:
        return isinstance(value, (int, float, np.number, np.bool_))
    if takes in (Any, bool) or not isinstance(takes, type):
        return True
    return isinstance(value, takes)


def described(takes: Any, plural: bool = False) -> str:
    """An annotation in words."""
    origin = get_origin(takes)
    if origin in _UNIONS:
        return " or ".join(described(one, plural) for one in get_args(takes) if one is not type(None))
    if origin is not None:
        return f"a sequence of {described(get_args(takes)[0], plural=True)}"
    if takes is int:
        return "ints" if plural else "an int"
    if takes is float:
        return "numbers" if plural else "a number"
    title = "NDArray" if issubclass(takes, Array) else takes.__name__
    return f"{title}s" if plural else _one(title)


def shown(value: Any) -> str:
    """A value in a message: what it is, and itself where it is short."""
    if isinstance(value, Array):
        return f"an NDArray of shape {value._shape}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}"
    if value is None or isinstance(value, (bool, int, float, str, tuple, list, np.generic)):
        text = repr(value)
        if len(text) <= 40:
            return text
    return _one(type(value).__name__)


def _one(title: str) -> str:
    return f"an {title}" if title[0] in "aeiouAEIO" or title.startswith("ND") else f"a {title}"
