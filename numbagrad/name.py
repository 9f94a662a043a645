"""Names of blocks that were given none: a hint and a counter, ``dense0``, ``dense1``."""

import threading
from typing import Any


class _Current(threading.local):
    """The manager of a thread; made at its first use, so that every thread counts for itself."""

    @property
    def value(self) -> "NameManager":
        if "manager" not in self.__dict__:
            self.manager = NameManager()
        return self.manager

    @value.setter
    def value(self, manager: "NameManager") -> None:
        self.manager = manager


class _HasCurrent(type):
    """``NameManager.current``: the manager of the calling thread; can be set."""

    @property
    def current(cls) -> "NameManager":
        return NameManager._current.value

    @current.setter
    def current(cls, manager: "NameManager") -> None:
        NameManager._current.value = manager


class NameManager(metaclass=_HasCurrent):
    """Gives names; as a ``with`` block it becomes the thread's current one."""

    _current = _Current()

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._outer: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """`name` if it is given, else `hint` and how often it was asked for before."""
        if name:
            return name
        count = self._counter.get(hint, 0)
        self._counter[hint] = count + 1
        return f"{hint}{count}"

    def __enter__(self) -> "NameManager":
        self._outer.append(NameManager._current.value)
        NameManager._current.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        NameManager._current.value = self._outer.pop()


class Prefix(NameManager):
    """A :class:`NameManager` that puts `prefix` before every name.

    Examples
    --------
    >>> with Prefix("left_"):
    ...     NameManager.current.get(None, "dense")
    'left_dense0'
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name that :class:`NameManager` gives, after the prefix."""
        return self._prefix + super().get(name, hint)
