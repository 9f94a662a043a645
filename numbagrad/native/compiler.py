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

from numbagrad.native.apart import Apart
from numbagrad.native.cache import KernelCache
from numbagrad.native.deferred import Deferred
from numbagrad.native.fingerprint import fingerprint
from numbagrad.native.pipeline import LinkedPipeline, Pipeline

__all__ = ["PLAIN", "PYTHON_MODE", "REASSOCIATE", "CompilationError", "intrinsic", "njit"]

PLAIN = ("nsz",)
"""Fast-math flags of elementwise code: a fused loop gives the bits of separate ones."""

REASSOCIATE = ("nsz", "reassoc", "contract")
"""Fast-math flags of sums and dot products, in functions of their own."""

PYTHON_MODE = bool(config.DISABLE_JIT)
"""True under ``NUMBA_DISABLE_JIT=1``: kernels then run as plain Python, intrinsics as their twins."""


_told_apart: "weakref.WeakSet[Callable[..., Any]]" = weakref.WeakSet()


def njit(function: Any = None, *, fastmath: Iterable[str] = PLAIN, inline: bool = False, apart: bool = False) -> Any:
    """Compile `function` in nopython mode, without the GIL, every flag explicit, cached on disk.

    Parameters
    ----------
    fastmath : iterable of str
        LLVM fast-math flags; never ``nnan`` or ``ninf``.
    inline : bool
        Ask LLVM to inline calls (for scalar helpers); the helper keeps its own flags.
    apart : bool
        Have compiled code call it by symbol, never put its code into callers (for functions of a module, with loops of
        their own); see :mod:`numbagrad.native.apart`.
    """
    flags = set(fastmath)
    if flags & {"nnan", "ninf", "fast"}:
        raise ValueError(f"fast-math flags {sorted(flags)} would change what NaN and infinity do")
    if function is None:
        return lambda named: njit(named, fastmath=flags, inline=inline, apart=apart)
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
        "no_cfunc_wrapper": True,
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
        linked = not (from_python or apart)
        compiled = numba.njit(**chosen, pipeline_class=LinkedPipeline if linked else Pipeline)(function)
        compiled._cache = KernelCache(function, chosen, linked)
        return compiled

    return (Apart if apart else Deferred)(function, options, make)


def intrinsic(twin: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare a Numba intrinsic together with `twin`, the plain Python that stands for it in Python mode."""

    def declare(definition: Callable[..., Any]) -> Any:
        return twin if PYTHON_MODE else _numba_intrinsic(definition)

    return declare
