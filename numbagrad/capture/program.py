"""A log lowered to a table, and its replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numbagrad.capture.arena import places
from numbagrad.capture.recorder import Buffer, Call, Effect, Slot
from numbagrad.capture.thunks import thunk_address
from numbagrad.capture.walker import HEADER, ROW, entry
from numbagrad.tape import RebindEpoch

_ALIGN = 64


@dataclass(slots=True)
class Span:
    """Where a buffer of the program lives: the arena, an array of the call, or memory that stays."""

    kind: str
    """``arena``, ``call`` or ``outer``."""
    place: int
    """The byte offset in the arena, the number of the call's array, or the address."""
    base: int = 0
    """In an array of the call: the address, when the call was captured, that the array's beginning stands for."""


@dataclass(slots=True)
class Brought:
    """An array that each call brings, of so many buffers: what was at ``bases[buffer]`` is at its beginning."""

    dtype: str
    bases: dict[Buffer, int]


class Program:
    """Kernel calls laid out as a table.

    Parameters
    ----------
    calls : list of Call
    effects : list of Effect
    brought : list of Brought
        The arrays that each call brings, arguments and then results: those of :attr:`run`.
    inner : list of Buffer
        The buffers that only this program uses; they get places in an arena.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        effects: Sequence[Effect],
        brought: Sequence[Brought],
        inner: Sequence[Buffer],
    ) -> None:
        self.calls = list(calls)
        self.before = [effect for effect in effects if effect.before]
        self.after = [effect.function for effect in effects if not effect.before]
        self.spans: dict[Buffer, Span] = {}
        for j, array in enumerate(brought):
            for buffer, base in array.bases.items():
                self.spans[buffer] = Span("call", j, base)
        self.arena_bytes = self._place(inner)
        self.arena = np.empty(self.arena_bytes + _ALIGN, np.uint8)
        start = self.arena.__array_interface__["data"][0]
        self._arena_start = start + -start % _ALIGN
        self.outer: list[Any] = []
        for call in self.calls:
            for value in call.arguments:
                if isinstance(value, Slot) and value.buffer not in self.spans:
                    buffer = value.buffer
                    self.hold([buffer.root])
                    self.spans[buffer] = Span("outer", buffer.address)
        self._assemble(len(brought))
        self.run = entry(tuple(array.dtype for array in brought))
        """Takes :attr:`code` and the arrays that the call brings, of just those dtypes."""

    def hold(self, roots: Sequence[Any]) -> None:
        """Keep arrays alive, whose addresses the table has, and hear when they are marked or replaced."""
        self.outer += roots
        known = RebindEpoch.known
        for root in roots:
            known[id(root)] = known.get(id(root), 0) + 1

    def __del__(self) -> None:
        known = RebindEpoch.known
        for root in getattr(self, "outer", ()):
            left = known.get(id(root), 1) - 1
            if left:
                known[id(root)] = left
            else:
                known.pop(id(root), None)

    def _place(self, inner: Sequence[Buffer]) -> int:
        """Give every inner buffer a place; buffers that are never in use together may share it."""
        first: dict[Buffer, int] = {}  # in order
        last: dict[Buffer, int] = {}
        wanted = set(inner)
        for row, call in enumerate(self.calls):
            for value in call.arguments:
                if isinstance(value, Slot) and value.buffer in wanted:
                    first.setdefault(value.buffer, row)
                    last[value.buffer] = row
        need = [buffer.nbytes + -buffer.nbytes % _ALIGN or _ALIGN for buffer in first]
        offsets, top = places([(first[b], last[b], size) for b, size in zip(first, need, strict=True)])
        for buffer, offset in zip(first, offsets, strict=True):
            self.spans[buffer] = Span("arena", offset)
        return top

    def _assemble(self, count: int) -> None:
        """Write the table; see ``walker`` for its form."""
        rows: list[int] = []
        words: list[int] = []
        scalars: list[float] = []
        patches: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        start = HEADER + 3 * len(self.calls)
        for call in self.calls:
            rows += [thunk_address(call.kernel, call.kinds), start + len(words), len(scalars)]
            for kind, value in zip(call.kinds, call.arguments, strict=True):
                if isinstance(value, Slot):
                    span = self.spans[value.buffer]
                    if span.kind == "call":
                        offset = value.buffer.address + value.offset - span.base
                        patches[span.place].append((start + len(words), offset))
                        words.append(0)
                    elif span.kind == "arena":
                        words.append(self._arena_start + span.place + value.offset)
                    else:
                        words.append(span.place + value.offset)
                    words.append(value.size)
                elif kind == "scalar":
                    scalars.append(float(value))
                else:
                    words.append(int(value))
        bounds = start + len(words)
        code = [len(self.calls), HEADER, 0, bounds, bounds + count + 1, *rows, *words]
        at = 0
        for part in patches:
            code.append(at)
            at += len(part)
        code.append(at)
        for part in patches:
            for target, offset in part:
                code += [target, offset]
        self.scalars = np.array([*scalars, 0.0])
        self.code = np.array(code, np.int64)
        self.code[2] = self.scalars.__array_interface__["data"][0]

    def written_roots(self) -> list[np.ndarray]:
        """The arrays that stay and are written."""
        found: dict[Buffer, Any] = {}
        for call in self.calls:
            for slot in call.slots("out", "inout"):
                if self.spans[slot.buffer].kind == "outer":
                    found[slot.buffer] = slot.buffer.root
        return list(found.values())

    def failure(self, status: int) -> Exception:
        """The exception for what :attr:`run` returned."""
        row, own = divmod(status, ROW)
        call = self.calls[row - 1]
        error = call.kernel.failure(own)
        return type(error)(f"{error} (captured at {call.line})")
