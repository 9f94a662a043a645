"""Scopes of string attributes, kept for programs that use them."""

import threading
from typing import Any


class _Current(threading.local):
    @property
    def value(self) -> "AttrScope":
        if "scope" not in self.__dict__:
            self.scope = AttrScope()
        return self.scope

    @value.setter
    def value(self, scope: "AttrScope") -> None:
        self.scope = scope


class _HasCurrent(type):
    """``AttrScope.current``: the scope of the calling thread; can be set."""

    @property
    def current(cls) -> "AttrScope":
        return AttrScope._current.value

    @current.setter
    def current(cls, scope: "AttrScope") -> None:
        AttrScope._current.value = scope


class AttrScope(metaclass=_HasCurrent):
    """String attributes that hold in a ``with`` block, on top of those of the blocks around it.

    Raises
    ------
    ValueError
        For a value that is not a string.
    """

    _current = _Current()

    def __init__(self, **kwargs: str) -> None:
        for name, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"AttrScope: attribute {name} must be a string, not {type(value).__name__}")
        self._attr: dict[str, str] = dict(kwargs)
        self._outer: list[tuple[AttrScope, dict[str, str]]] = []

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """The attributes of the scope with those of `attr` on top."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> "AttrScope":
        outer = AttrScope._current.value
        self._outer.append((outer, self._attr))
        self._attr = {**outer._attr, **self._attr}
        AttrScope._current.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        outer, self._attr = self._outer.pop()
        AttrScope._current.value = outer
