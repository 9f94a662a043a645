"""The one way in which numbagrad compiles: Numba's ``njit`` with every flag stated and our own disk cache.

A flag left unset is inherited from whichever caller compiles first and then stays in the cache, so that the
accuracy of a helper would depend on the order of calls. Hence no bare ``numba.njit`` anywhere else; a test
sees to it.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numba
from numba import config
from numba.core.errors import NumbaError as CompilationError
from numba.extending import intrinsic as _numba_intrinsic

from numbagrad.native.cache import KernelCache, fingerprint
from numbagrad.native.deferred import Deferred

__all__ = ["PLAIN", "PYTHON_MODE", "REASSOCIATE", "CompilationError", "address_of", "intrinsic", "njit"]

PLAIN = ("nsz",)
"""Fast-math flags of elementwise code: a fused loop gives the bits of separate ones."""

REASSOCIATE = ("nsz", "reassoc", "contract")
"""Fast-math flags of sums and dot products, in functions of their own."""

PYTHON_MODE = bool(config.DISABLE_JIT)
"""True under ``NUMBA_DISABLE_JIT=1``: kernels then run as plain Python, intrinsics as their twins."""


_told_apart: "weakref.WeakSet[Callable[..., Any]]" = weakref.WeakSet()


def njit(function: Any = None, *, fastmath: Iterable[str] = PLAIN, inline: bool = False, c_form: bool = False) -> Any:
    """Compile `function` in nopython mode, without the GIL, every flag explicit, cached on disk.

    Parameters
    ----------
    fastmath : iterable of str
        LLVM fast-math flags; never ``nnan`` or ``ninf``.
    inline : bool
        Ask LLVM to inline calls (for scalar helpers); the helper keeps its own flags.
    c_form : bool
        Also compile the form that :func:`address_of` gives the address of; an eighth of the time it takes to compile.
    """
    flags = set(fastmath)
    if flags & {"nnan", "ninf", "fast"}:
        raise ValueError(f"fast-math flags {sorted(flags)} would change what NaN and infinity do")
    if function is None:
        return lambda named: njit(named, fastmath=flags, inline=inline, c_form=c_form)
    options: dict[str, Any] = {
        "fastmath": flags,
        "error_model": "numpy",
        "nogil": True,
        "boundscheck": False,
        "parallel": False,
        "looplift": False,
        "inline": "never",
        "forceinline": inline,
        "debug": False,
        "no_cfunc_wrapper": not c_form,
    }
    if PYTHON_MODE:
        return function

    def make(from_python: bool) -> Any:
        # Functions of one factory, and lambdas, share a qualified name. Numba tells them apart by a number that counts
        # within a process, and kernels from disk bring the numbers of others: two could be linked as one.
        if "<" in function.__qualname__ and function not in _told_apart:
            function.__qualname__ += f".{fingerprint(function, sorted(flags), inline)[:20]}"
            _told_apart.add(function)
        chosen = {**options, "no_cpython_wrapper": not from_python}
        compiled = numba.njit(**chosen)(function)
        compiled._cache = KernelCache(function, chosen)
        return compiled

    return Deferred(function, options, make)


def intrinsic(twin: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare a Numba intrinsic together with `twin`, the plain Python that stands for it in Python mode."""

    def declare(definition: Callable[..., Any]) -> Any:
        return twin if PYTHON_MODE else _numba_intrinsic(definition)

    return declare


def address_of(compiled: Any, signature: tuple[Any, ...]) -> int:
    """The address of the C form of a function compiled with `c_form`, for one signature, made if need be."""
    compiled.compile(signature)
    result = compiled.overloads[signature]
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
