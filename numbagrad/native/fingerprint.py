"""What the compiled form of a function depends on, as one digest: the key of its code on disk."""

import functools
import hashlib
import importlib.metadata
import platform
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np


def _version() -> str:
    try:
        return importlib.metadata.version("numbagrad")
    except importlib.metadata.PackageNotFoundError:
        return "source"


@functools.cache
def _door() -> bytes:
    """The source of what compiles: the passes and how functions reach each other."""
    here = Path(__file__).parent
    return b"".join((here / name).read_bytes() for name in ("apart.py", "compiler.py", "pipeline.py"))


def stable(options: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The options as text; a set has another order in each process."""
    return tuple(
        sorted((name, str(sorted(option) if isinstance(option, set) else option)) for name, option in options.items())
    )


def _feed(feed: Any, value: Any, seen: set[int]) -> None:
    """Hash `value` as a constant or function that compiled code depends on."""
    if id(value) in seen:
        feed(b"seen")
        return
    function = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # dispatcher, intrinsic
    if function is not None:
        seen.add(id(value))
        feed(repr(stable(getattr(value, "targetoptions", {}))).encode())
        _feed(feed, function, seen)
    elif isinstance(value, types.FunctionType):
        seen.add(id(value))
        feed(b"function")
        _feed_code(feed, value.__code__, value.__globals__, seen)
        for cell in value.__closure__ or ():
            _feed(feed, cell.cell_contents, seen)
        _feed(feed, value.__defaults__, seen)
        _feed(feed, value.__dict__, seen)  # a stub names its implementations there
    elif isinstance(value, types.CodeType):
        _feed_code(feed, value, {}, seen)
    elif isinstance(value, types.ModuleType):
        feed(value.__name__.encode())
        if value.__name__.startswith("numbagrad"):
            source = Path(value.__file__ or "")
            feed(source.read_bytes() if source.is_file() else b"")
    elif isinstance(value, (tuple, list)):
        feed(f"{type(value).__name__} {len(value)}".encode())
        for item in value:
            _feed(feed, item, seen)
    elif isinstance(value, (set, frozenset)):
        feed(repr(sorted(map(repr, value))).encode())
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            _feed(feed, key, seen)
            _feed(feed, value[key], seen)
    elif isinstance(value, np.ndarray):
        feed(repr((value.dtype, value.shape)).encode())
        feed(value.tobytes())
    elif isinstance(value, type) or callable(value):
        feed(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}".encode())
    else:
        feed(f"{type(value).__name__} {value!r}".encode())


def _feed_code(feed: Any, code: types.CodeType, space: dict[str, Any], seen: set[int]) -> None:
    feed(code.co_code)
    feed(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _feed_code(feed, constant, space, seen)
        else:
            _feed(feed, constant, seen)
    for name in code.co_names:
        if name in space:
            feed(name.encode())
            _feed(feed, space[name], seen)
            _feed_attributes(feed, space[name], code.co_names, seen)


def _feed_attributes(feed: Any, module: Any, names: Iterable[str], seen: set[int]) -> None:
    """Hash what code with these `names` may reach through one of our modules, as in ``vmath.log(x)``."""
    if not isinstance(module, types.ModuleType) or not module.__name__.startswith("numbagrad"):
        return
    for name in names:
        value = vars(module).get(name)
        if value is not None and value is not module:
            feed(name.encode())
            _feed(feed, value, seen)
            _feed_attributes(feed, value, [deeper for deeper in names if deeper != name], seen)


def fingerprint(function: Any, *more: Any) -> str:
    """A digest of all that the compiled form of `function` depends on, transitively.

    Comments and line numbers do not count; the code and constants of every function reached do.
    """
    digest = hashlib.sha256()
    seen: set[int] = set()
    for item in (_version(), numba.__version__, llvmlite.__version__, sys.version, platform.machine(), *more):
        digest.update(repr(item).encode())
    digest.update(_door())
    _feed(digest.update, function, seen)
    return digest.hexdigest()
