"""Handles of hooks."""

import itertools
from collections.abc import Callable
from typing import Any

_next_id = itertools.count().__next__


class HookHandle:
    """What registering a hook returns.

    ``detach()`` takes the hook off again, and so does leaving it as a ``with`` block.
    """

    def __init__(self, block: Any, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._block = block
        self._hooks = hooks
        self._id = _next_id()
        hooks[self._id] = hook

    def detach(self) -> None:
        """Take the hook off; nothing the second time."""
        self._hooks.pop(self._id, None)
        self._block._hooks_changed()

    def __enter__(self) -> "HookHandle":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.detach()
