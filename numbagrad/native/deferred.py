"""Compiled functions whose dispatcher is made when it is needed.

Numba takes 0.3 ms to make a dispatcher, even of a function that is never called, and we have some 350: half of the
time that ``import numbagrad`` would take.
"""

import threading
from collections.abc import Callable
from typing import Any

_lock = threading.RLock()


class Deferred:
    """Stands for the dispatcher of `py_func`, in Python and, by ``_numba_type_``, in code that is being compiled.

    Parameters
    ----------
    py_func : function
    targetoptions : dict
        The flags that it is compiled with; part of the fingerprints of what calls it.
    make : callable
        Makes the dispatcher for calls from Python (its argument is True) or from compiled code alone (False), which
        spares the compilation of a wrapper; called at most once for each.
    """

    def __init__(self, py_func: Callable[..., Any], targetoptions: dict[str, Any], make: Callable[[bool], Any]) -> None:
        self.py_func = py_func
        self.targetoptions = targetoptions
        self._make = make
        self._made: list[Any] = [None, None]
        self.__name__ = py_func.__name__
        self.__qualname__ = py_func.__qualname__
        self.__module__ = py_func.__module__
        self.__doc__ = py_func.__doc__

    def _dispatcher(self, from_python: bool) -> Any:
        made = self._made[from_python]
        if made is None:
            with _lock:
                made = self._made[from_python]
                if made is None:
                    made = self._made[from_python] = self._make(from_python)
        return made

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher."""
        return self._dispatcher(True)

    @property
    def helper(self) -> Any:
        """Numba's dispatcher for calls from compiled code; Python must not call it."""
        return self._dispatcher(False)

    @property
    def _numba_type_(self) -> Any:
        return self.helper._numba_type_

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as the function would be

    def __repr__(self) -> str:
        return f"<compiled {self.py_func.__module__}.{self.py_func.__qualname__}>"
