"""MXNet's switches for NumPy-like shapes and arrays, and its environment variables.

Arrays without axes or without elements exist here whatever a switch says, and there is no second kind of array; the
switches are kept so that programs that turn and ask them run.
"""

import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from numbagrad.errors import MXNetError

Decorated = TypeVar("Decorated")


class _Switches(threading.local):
    shape = False


_switches = _Switches()


def is_np_shape() -> bool:
    """Whether this thread asked for NumPy's shapes; off at first."""
    return _switches.shape


def set_np_shape(active: bool) -> bool:
    """Set what :func:`is_np_shape` returns in this thread; returns what it was."""
    before = _switches.shape
    _switches.shape = bool(active)
    return before


class np_shape:
    """A ``with`` block in which :func:`is_np_shape` is `active`."""

    def __init__(self, active: bool = True) -> None:
        self._active = active
        self._before: list[bool] = []

    def __enter__(self) -> "np_shape":
        self._before.append(set_np_shape(self._active))
        return self

    def __exit__(self, *exception: Any) -> None:
        set_np_shape(self._before.pop())


def use_np_shape(func: Decorated) -> Decorated:
    """Decorate a function, or all methods of a class, to run inside :class:`np_shape`."""
    if inspect.isclass(func):
        for name, method in list(vars(func).items()):
            if inspect.isfunction(method):
                setattr(func, name, use_np_shape(method))
        return func
    if not callable(func):
        raise TypeError(f"use_np_shape: decorates functions and classes, not {type(func).__name__}")
    wrapped: Callable[..., Any] = func

    @functools.wraps(wrapped)
    def function(*args: Any, **kwargs: Any) -> Any:
        with np_shape(True):
            return wrapped(*args, **kwargs)

    return function  # type: ignore[return-value]


def is_np_array() -> bool:
    """Whether functions return ``mx.np`` arrays: never, there are none."""
    return False


def getenv(name: str) -> str | None:
    """The environment variable `name`, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set the environment variable `name`, or remove it for None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """The number of GPUs: 0."""
    return 0


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """MXNetError: there are no GPUs."""
    raise MXNetError(f"get_gpu_memory: there is no gpu({gpu_dev_id}): numbagrad computes on the CPU")


__all__ = [
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "np_shape",
    "set_np_shape",
    "setenv",
    "use_np_shape",
]
