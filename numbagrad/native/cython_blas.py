"""SciPy's module of BLAS routines for compiled code, without the package that it lies in.

``import scipy.linalg`` takes longer than all of our own import, and Numba, too, asks for the module before it first
compiles; so the extension module is loaded by itself.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import scipy

NAME = "scipy.linalg.cython_blas"


@cache
def _module() -> ModuleType | None:
    """The module loaded by itself, which SciPy's does once a process; None for a layout of SciPy's that we do not know.

    It enters itself into `sys.modules`.
    """
    try:
        spec = PathFinder.find_spec(NAME, [str(Path(path) / "linalg") for path in scipy.__path__])
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception:  # who needs the module then imports it in the common way
        sys.modules.pop(NAME, None)
    return sys.modules.get(NAME)


@contextmanager
def alone() -> Iterator[None]:
    """A scope in which the module is there, and ``scipy.linalg`` is not imported for it.

    The module is taken out of `sys.modules` at the end, for a later import to find it in the common way.
    """
    if NAME in sys.modules:
        yield
        return
    module = _module()
    if module is not None:
        sys.modules[NAME] = module
    try:
        yield
    finally:
        if "scipy.linalg" not in sys.modules:
            sys.modules.pop(NAME, None)
