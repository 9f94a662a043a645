"""``scipy.special`` for the references of ops, imported at the first call: it would double our import time."""

from collections.abc import Callable
from typing import Any


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__} has no attribute {name}")

    def function(*args: Any, **kwargs: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*args, **kwargs)

    function.__name__ = name
    return function
