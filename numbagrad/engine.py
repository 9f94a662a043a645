"""MXNet's engine settings. Calls run at once here; the settings are kept so that programs can make them."""

from typing import Any

_size = 15


def set_bulk_size(size: int) -> int:
    """Set how many operations MXNet's engine would run as one; returns what it was. Nothing changes."""
    global _size
    before, _size = _size, int(size)
    return before


class bulk:
    """A ``with`` block under another :func:`set_bulk_size`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._before: list[int] = []

    def __enter__(self) -> "bulk":
        self._before.append(set_bulk_size(self._size))
        return self

    def __exit__(self, *exception: Any) -> None:
        set_bulk_size(self._before.pop())


__all__ = ["bulk", "set_bulk_size"]
