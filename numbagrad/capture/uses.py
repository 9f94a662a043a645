"""What passes know: the calls' buffers by use, and what is true of the run as a whole."""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from numbagrad.capture.recorder import Buffer, Call, Slot


@dataclass(frozen=True)
class Facts:
    """What the passes know besides the calls."""

    inner: Set[Buffer]
    """Buffers that nobody can see from outside."""
    arguments: Set[Buffer]
    """Buffers that each call brings; they may share memory with others that are not written."""
    gradients: dict[Buffer, Buffer]
    """The gradient buffers of leaves that want them overwritten, and the buffers of their fresh flags."""
    rows: Callable[[Slot], Any]
    """The values of a float64 slot, now."""


class Uses:
    """Which rows use a buffer, and how: (row, slot, role) in order."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._by_buffer: dict[Buffer, list[tuple[int, Slot, str]]] = {}
        for row, call in enumerate(calls):
            for role, value in zip(call.kernel.roles, call.arguments, strict=True):
                if isinstance(value, Slot):
                    self._by_buffer.setdefault(value.buffer, []).append((row, value, role))

    def of(self, buffer: Buffer, after: int = -1, before: int | None = None) -> list[tuple[int, Slot, str]]:
        """The uses in rows after `after` and before `before`."""
        uses = self._by_buffer.get(buffer, [])
        start = bisect_left(uses, after + 1, key=itemgetter(0))
        return uses[start:] if before is None else uses[start : bisect_left(uses, before, key=itemgetter(0))]

    def written(self, buffer: Buffer, after: int, before: int) -> bool:
        """Whether a row after `after` and before `before` writes to it."""
        return any(role != "in" for _, _, role in self.of(buffer, after, before))
