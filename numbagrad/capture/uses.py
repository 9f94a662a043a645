"""What passes know: the calls' buffers by use, what is true of the run as a whole, and which buffers became one."""

from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from numbagrad.capture.recorder import Buffer, Call, Slot
from numbagrad.kernels.gemm import TOO_LARGE


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


def whole(slot: Slot) -> bool:
    """Whether a slot is all of its buffer."""
    return slot.offset == 0 and slot.buffer.nbytes == slot.size * np.dtype(slot.dtype).itemsize


def may_fail(call: Call) -> bool:
    """Whether a replay of a call can fail: not for its sizes, which are those of the capture."""
    return bool(call.kernel.failures) and call.kernel.failures != TOO_LARGE


class Placing:
    """Buffers put where their contents go: what one row would copy, or change on the way, is made there at once.

    Rows keep the names that they have until :meth:`applied` gives the buffers that were put elsewhere their new ones.
    """

    def __init__(self, calls: Sequence[Call], facts: Facts) -> None:
        self.uses = Uses(calls)
        self._facts = facts
        self._failing = [row for row, call in enumerate(calls) if may_fail(call)]
        self._places: dict[Buffer, Slot] = {}
        self._first: dict[Buffer, int] = {}

    def first(self, buffer: Buffer) -> int:
        """The row from which on the memory is in use."""
        return self._first.get(buffer, self.uses.of(buffer)[0][0])

    def last(self, buffer: Buffer) -> int:
        """The last row that uses what a buffer holds."""
        return self.uses.of(buffer)[-1][0]

    def put(self, source: Slot, target: Slot, row: int, last: int | None = None) -> bool:
        """Put the buffer of `source` at `target`, which `row` writes; False, with nothing done, if that would show.

        `row` must be the last that uses `source`, or `last` says what is by now. From the first use of `source` until
        then nothing else may use the target's buffer, and it must be known under no other name, as an argument may be.
        Where others see the target, no row between may fail, or it would have been written although the call raises.
        """
        start = self.first(source.buffer)
        if (
            source.buffer not in self._facts.inner
            or not whole(source)
            or (source.size, source.dtype) != (target.size, target.dtype)
            or (self.last(source.buffer) if last is None else last) != row
            or target.buffer in self._facts.arguments
            or self.uses.of(target.buffer, start - 1, row)
            or (target.buffer not in self._facts.inner and self._fails(start, row))
        ):
            return False
        self._first[target.buffer] = min(start, self.first(target.buffer))
        self._places[source.buffer] = target
        return True

    def _fails(self, after: int, before: int) -> bool:
        at = bisect_left(self._failing, after + 1)
        return at < len(self._failing) and self._failing[at] < before

    def applied(self, calls: Sequence[Call | None]) -> list[Call]:
        """The calls with buffers as they were put, without those that have become None."""
        left = [call for call in calls if call is not None]
        if not self._places:
            return left
        return [Call(call.kernel, call.kinds, tuple(map(self._placed, call.arguments)), call.line) for call in left]

    def _placed(self, value: Any) -> Any:
        while isinstance(value, Slot) and value.buffer in self._places:
            target = self._places[value.buffer]
            value = Slot(target.buffer, target.offset + value.offset, value.size, value.dtype)
        return value
