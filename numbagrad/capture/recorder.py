"""The log of one run: every kernel call and host effect, with the memory they touch."""

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numbagrad import array as arrays
from numbagrad.array import root_of
from numbagrad.errors import CaptureError
from numbagrad.kernels.kernel import Kernel
from numbagrad.ops.random import STATE
from numbagrad.tape import next_id

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> str:
    """``file:line`` of the nearest caller outside numbagrad."""
    frame: Any = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or "_generated" in frame.f_globals.get("__name__", "")
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


_names: dict[np.dtype, str] = {}
"""The names of dtypes: NumPy takes 2 us to make one up."""


class Buffer:
    """A piece of memory of the log: ``root`` is the NumPy array that owns it while the log is made."""

    __slots__ = ("address", "first", "index", "line", "nbytes", "root", "written")

    def __init__(self, index: int, root: np.ndarray, line: str) -> None:
        self.index = index
        self.root: np.ndarray | None = root
        self.address = root.__array_interface__["data"][0]
        self.nbytes = root.nbytes
        self.first = ""
        """How it was first used: ``in``, ``out`` or ``inout``."""
        self.written = False
        self.line = line


@dataclass(slots=True)
class Slot:
    """An array argument: so many elements of a buffer from a byte offset on."""

    buffer: Buffer
    offset: int
    size: int
    dtype: str


@dataclass(slots=True)
class Call:
    """A logged kernel call.

    ``arguments`` holds Slots for arrays, and numbers; ``kinds`` what each is: the dtype name of an array, ``word`` or
    ``scalar``.
    """

    kernel: Kernel
    kinds: tuple[str, ...]
    arguments: tuple[Any, ...]
    line: str

    def slots(self, *roles: str) -> list[Slot]:
        """The array arguments in one of `roles`."""
        return [
            value
            for role, value in zip(self.kernel.roles, self.arguments, strict=True)
            if isinstance(value, Slot) and role in roles
        ]


@dataclass(slots=True)
class Effect:
    """A logged host effect, to run before or after the kernels of a replay."""

    function: Callable[[], None]
    before: bool
    epoch: Any = None
    """What has a ``value`` that rises when there may be something to do; None for an effect of each replay."""


class _TrackedStorage(arrays.Storage):
    """A storage made during a capture."""

    __slots__ = ()

    born: "list[Any] | None" = None
    thread = 0

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array)
        if _TrackedStorage.born is not None and threading.get_ident() == _TrackedStorage.thread:
            _TrackedStorage.born.append(self)


@dataclass
class Log:
    """What a run did, in order."""

    calls: list[Call] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)


class Recorder:
    """Stands at the launch door, runs everything and logs it.

    Memory that existed before is copied before its first write, so that a run that fails can be undone.
    """

    def __init__(self) -> None:
        self.log = Log()
        self._thread = threading.get_ident()
        self._by_root: dict[int, Buffer] = {}
        self._before: list[tuple[Any, np.ndarray]] = []
        self._stream = STATE.copy()
        self.first = next_id()
        """The id that a node has at least if it was recorded in the run."""
        self.leaves: list[Any] = []
        """The leaves that backward has reached."""
        self.born: list[Any] = []
        """The storages made during the run."""
        self.wrote: list[tuple[Any, int]] = []
        """The storages written during the run, in order, and their versions before."""

    def buffer(self, root: np.ndarray) -> Buffer:
        """The buffer of a root array."""
        found = self._by_root.get(id(root))
        if found is None:
            found = self._by_root[id(root)] = Buffer(len(self.log.buffers), root, user_line())
            self.log.buffers.append(found)
        return found

    def slot(self, value: np.ndarray) -> Slot:
        """The place of an array argument."""
        root = root_of(value)
        buffer = self.buffer(root)
        offset = 0 if root is value else value.__array_interface__["data"][0] - buffer.address
        dtype = value.dtype
        name = _names.get(dtype)
        if name is None:
            name = _names[dtype] = dtype.name
        return Slot(buffer, offset, value.size, name)

    # -------------------------------------------------------------------------------- the Watcher interface

    def kernel(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        """Run a kernel and log it, or the parts it is made of."""
        if threading.get_ident() != self._thread:
            _run(kernel, arguments)
            return
        parts = [(kernel, arguments)] if kernel.parts is None else kernel.parts(*arguments)
        line = user_line()
        calls = [self._call(part, values, line) for part, values in parts]
        for part, values in parts:  # which gives the same bits, and needs no other code than the replays
            _run(part, values)
        self.log.calls += calls

    def _call(self, kernel: Kernel, arguments: tuple[Any, ...], line: str) -> Call:
        values: list[Any] = []
        kinds: list[str] = []
        for role, value in zip(kernel.roles, arguments, strict=True):
            if isinstance(value, np.ndarray):
                slot = self.slot(value)
                buffer = slot.buffer
                if not buffer.first:
                    buffer.first = role
                if role != "in" and not buffer.written:
                    buffer.written = True
                    root = buffer.root
                    assert root is not None
                    self._before.append((weakref.ref(root), root.copy()))
                values.append(slot)
                kinds.append(slot.dtype)
            else:
                values.append(value)
                number = role == "scalar" and isinstance(value, (float, np.floating))
                kinds.append("scalar" if number else "word")
        return Call(kernel, tuple(kinds), tuple(values), line)

    def delivered(self, leaf: Any) -> None:
        """Note that backward has written the gradient of a leaf."""
        if threading.get_ident() == self._thread:
            self.leaves.append(leaf)

    def host(self, effect: Callable[[], None], before: bool = False, epoch: Any = None) -> None:
        """Run an effect and log it."""
        effect()
        if threading.get_ident() == self._thread:
            self.log.effects.append(Effect(effect, before, epoch))

    def mine(self) -> bool:
        """Whether the caller's thread is the one that is being captured."""
        return threading.get_ident() == self._thread

    def walking(self, nodes: Sequence[Any]) -> None:
        """Refuse a backward through a graph that was there before the run: it is another one in a replay."""
        if threading.get_ident() == self._thread and any(node.id < self.first for node in nodes):
            raise CaptureError(
                f"a captured function cannot go backward through what was recorded before the call ({user_line()}): "
                "record it inside, or call backward outside"
            )

    def read(self) -> None:
        """Refuse that Python reads a value."""
        if threading.get_ident() == self._thread:
            raise CaptureError(
                f"a captured function cannot read the value of an array ({user_line()}): what Python does with it "
                "would not happen again in a replay. Return the array and read it outside, or use nd.where, not if"
            )

    # ------------------------------------------------------------------------------------- around the run

    def start(self) -> None:
        """Watch the storages that are made and written from now on."""
        arrays.Storage = _TrackedStorage  # type: ignore[misc]
        arrays.watch = self.wrote
        _TrackedStorage.born = self.born
        _TrackedStorage.thread = self._thread

    def stop(self) -> None:
        """Watch no longer."""
        arrays.Storage = _TrackedStorage.__base__  # type: ignore[misc,assignment]
        arrays.watch = None
        _TrackedStorage.born = None

    def forget(self) -> None:
        """Let go of everything but the log and what :meth:`undo` needs, so that memory of the run alone is freed."""
        made = {id(storage) for storage in self.born}
        self.wrote[:] = [(storage, version) for storage, version in self.wrote if id(storage) not in made]
        self.born.clear()
        self.leaves.clear()

    def undo(self) -> None:
        """Put back what the run has overwritten."""
        for reference, before in reversed(self._before):
            root = reference()
            if root is not None:
                root[...] = before
        STATE[...] = self._stream
        for storage, version in reversed(self.wrote):
            storage.version = version


def _run(kernel: Kernel, arguments: tuple[Any, ...]) -> None:
    status = kernel.function(*arguments)
    if status:
        raise kernel.failure(status)
