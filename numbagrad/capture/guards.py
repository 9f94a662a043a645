"""When a captured run stands for a new call: what it depended on, noted and compared."""

import functools
import inspect
import math
import sys
import weakref
from bisect import bisect_left
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.array import root_of
from numbagrad.errors import CaptureError
from numbagrad.tape import Leaf, RebindEpoch, state

IMMUTABLE = (int, float, complex, str, bytes, bool, type(None), np.generic)
ON_TAPE = object()
"""In a guard: the argument was computed on the tape."""


def position(array: Any) -> Any:
    """What a guard keeps of the place of an argument: its leaf, ON_TAPE, or None."""
    node = tape.place(array)
    return node if node is None or type(node) is Leaf else ON_TAPE


def flat_of(leaf: Any) -> np.ndarray:
    """The flat memory of an array argument."""
    return leaf._flat if type(leaf) is tape.new else leaf.reshape(-1)


def address_of_array(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


class _Memory:
    """The memory that an argument had: as long as it is there, somebody may reach it."""

    def __init__(self, storage: Any) -> None:
        self.array = weakref.ref(storage.array)
        self.owner = weakref.ref(root_of(storage.array))


class Guard:
    """What a captured run depended on.

    ``leaves`` has one entry an argument: (shape, dtype, position, context) of an array, [shape, dtype] of a NumPy
    array, the number itself otherwise. ``values`` are the immutable values and the arrays that the function reaches as
    closure cells and globals.
    """

    def __init__(self, structure: Any, leaves: list[Any], function: Any) -> None:
        self.structure = structure
        self.recording, self.training = state.recording, state.training
        self.epoch = -1
        self.leaves: list[Any] = []
        for leaf in leaves:
            if type(leaf) is tape.new:
                self.leaves.append((leaf._shape, leaf._flat.dtype, position(leaf), leaf._context))
            elif type(leaf) is np.ndarray:
                self.leaves.append([leaf.shape, leaf.dtype])
            elif isinstance(leaf, IMMUTABLE):
                self.leaves.append(leaf)
            else:
                raise CaptureError(
                    "a captured function takes arrays, numbers, str, None and containers of them, not "
                    f"{type(leaf).__name__}; reach other objects as globals or in a closure"
                )
        self.sharing = _sharing(leaves)
        self.values = _reached(function)
        self._function = function
        self.fixed: dict[int, _Memory] = {
            i: _Memory(leaf._storage)
            for i, leaf in enumerate(leaves)
            if type(leaf) is tape.new and type(tape.place(leaf)) is not Leaf
        }
        """The arguments that must stay what they are as long as the function may reach their memory in another way."""
        self.written: set[Any] = set()
        """The storages that the run writes without them being arguments: no argument may be on one of them."""
        self.written_spans: list[tuple[int, int]] = []
        """Where their memory begins and ends, in order, for NumPy arguments."""

    def fits(self, structure: Any, leaves: list[Any]) -> bool:
        """Whether the run stands for a call with these arguments now."""
        if (
            self.epoch != RebindEpoch.value
            or self.recording != state.recording
            or self.training != state.training
            or self.structure != structure
        ):
            return False
        for guard, leaf in zip(self.leaves, leaves):  # as many, by the structure
            if type(leaf) is tape.new:
                if type(guard) is not tuple or leaf._shape != guard[0] or leaf._flat.dtype != guard[1]:
                    return False
                if leaf._context != guard[3]:
                    return False
                if leaf._node is not guard[2] and position(leaf) is not guard[2]:
                    return False
            elif type(leaf) is np.ndarray:
                if type(guard) is not list or leaf.shape != guard[0] or leaf.dtype != guard[1]:
                    return False
            elif not _equal(guard, leaf):
                return False
        for place, value in self.values:
            if not _equal(_current(place), value):
                return False
        if _sharing(leaves) != self.sharing:
            return False
        if any(self._writes_to(leaf) for leaf in leaves):
            return False
        return all(self._may_change(i) for i in self._changed(leaves))

    def _writes_to(self, leaf: Any) -> bool:
        """Whether the run writes to the memory of an argument without it being there for that."""
        if type(leaf) is not np.ndarray:
            return type(leaf) is tape.new and leaf._storage in self.written
        start, end = np.lib.array_utils.byte_bounds(leaf)
        at = bisect_left(self.written_spans, (end,))
        return at > 0 and self.written_spans[at - 1][1] > start

    def _changed(self, leaves: list[Any]) -> list[int]:
        """The fixed arguments that are on other memory than in the run."""
        return [i for i, memory in self.fixed.items() if leaves[i]._storage.array is not memory.array()]

    def _may_change(self, i: int) -> bool:
        """Whether nothing that the function reaches is on the memory that argument `i` had; noted if so.

        Asked when the argument has changed: by then that memory is gone, as a rule, and nobody needs to look for it.
        """
        owner = self.fixed[i].owner()
        if owner is not None and id(owner) in _held(self._function):
            return False
        del self.fixed[i]
        return True

    def misfit(self, structure: Any, leaves: list[Any]) -> str:
        """Why the run does not stand for a call, in words."""
        if self.structure != structure:
            return "other arguments"
        for i, (guard, leaf) in enumerate(zip(self.leaves, leaves, strict=True)):
            if type(leaf) is tape.new or type(leaf) is np.ndarray:
                if not isinstance(guard, (tuple, list)):
                    return f"argument {i} became an array"
                if leaf.shape != guard[0]:
                    return f"argument {i} has shape {leaf.shape}, was {guard[0]}"
                if np.dtype(leaf.dtype) != guard[1]:
                    return f"argument {i} has dtype {np.dtype(leaf.dtype)}, was {guard[1]}"
                if type(leaf) is tape.new and position(leaf) is not guard[2]:
                    return f"argument {i} was marked, or is on the tape where it was not"
                if type(leaf) is tape.new and leaf._context != guard[3]:
                    return f"argument {i} is on {leaf.context}"
                if self._writes_to(leaf):
                    return f"argument {i} is on memory that the function writes to"
                if type(leaf) is tape.new and i in self._changed(leaves):
                    return f"argument {i} was an array that the function also reaches in another way"
            elif not _equal(guard, leaf):
                return f"argument {i} is {leaf!r}, was {guard!r}"
        if (self.recording, self.training) != (state.recording, state.training):
            return "recording or training changed"
        for place, value in self.values:
            if not _equal(_current(place), value):
                if type(value) is tape.new or type(_current(place)) is tape.new:
                    return f"{_name(place)} is another array"
                return f"{_name(place)} is {_current(place)!r}, was {value!r}"
        if self.epoch != RebindEpoch.value:
            return "an array was marked or got other memory (rebind epoch)"
        return "arrays share memory in another way"


def _sharing(leaves: list[Any]) -> tuple[int, ...]:
    """For each array argument, which is the first on the same memory, and how far in; () if no two share."""
    arrays = [leaf for leaf in leaves if type(leaf) is tape.new or type(leaf) is np.ndarray]
    owners = [id(root_of(leaf._flat if type(leaf) is tape.new else leaf)) for leaf in arrays]
    if len(set(owners)) == len(owners):
        return ()
    starts = [address_of_array(flat_of(leaf)) for leaf in arrays]
    found: list[int] = []
    for owner, start in zip(owners, starts, strict=True):
        first = owners.index(owner)
        found += [first, start - starts[first]]
    return tuple(found)


def _reached(function: Any) -> list[tuple[Any, Any]]:
    """The immutable values and arrays that `function` reaches as closure cells and globals, with where they are."""
    function = _python(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    found: list[tuple[Any, Any]] = []
    for cell in function.__closure__ or ():
        try:
            if _is_watched(cell.cell_contents):
                found.append((cell, cell.cell_contents))
        except ValueError:  # an empty cell
            continue
    space = function.__globals__
    for name in sorted(_names(code)):
        if name in space and _is_watched(space[name]):
            found.append(((space, name), space[name]))
    return found


def _python(function: Any) -> Any:
    function = inspect.unwrap(function)
    return getattr(function, "__func__", function)


def _names(code: Any) -> set[str]:
    """The names that code, and the code of functions made in it, looks up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= _names(constant)
    return names


def _held(function: Any) -> set[int]:
    """The ids of what owns the memory of arrays that `function` reaches: closure, globals, instance, what these hold.

    What has come to be reached since the run was made makes a guard too strict, no more.
    """
    python = _python(function)
    stack: list[Any] = _seen_by(python) if isinstance(python, FunctionType) else [python]
    stack.append(getattr(function, "__self__", None))
    found: set[int] = set()
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if isinstance(value, _LEAST) or id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) is tape.new:
            found.add(id(root_of(value._flat)))
        elif isinstance(value, (list, tuple, set, frozenset)):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, FunctionType):
            if not _is_machinery(value):
                stack += _seen_by(value)
        elif isinstance(value, MethodType):
            stack += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            stack += [value.func, value.args, value.keywords]
        elif isinstance(value, type):
            if not _is_machinery(value):
                stack += vars(value).values()
        elif not type(value).__module__.startswith(_COMPILERS):
            stack.append(type(value))
            # Not getattr: a proxy may make up an attribute for any name.
            try:
                attributes = object.__getattribute__(value, "__dict__")
            except AttributeError:
                continue
            if type(attributes) is dict:
                stack += attributes.values()
    return found


def _seen_by(function: Any) -> list[Any]:
    """What a function's cells and the globals that it names hold."""
    space = function.__globals__
    found = [space[name] for name in _names(function.__code__) if name in space]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    return found


def _is_machinery(value: Any) -> bool:
    """Whether a function or class is no part of a program: its package holds no array of a user."""
    package = (value.__module__ or "").partition(".")[0]
    return package in _LIBRARIES or package in sys.stdlib_module_names


_COMPILERS = ("numba.", "llvmlite", "numbagrad.capture", "numbagrad.kernels", "numbagrad.native", "numbagrad.launch")
"""Modules whose objects hold code, not a program's arrays."""
_LIBRARIES = frozenset({"numbagrad", "numba", "llvmlite", "numpy", "scipy"})
_LEAST = (*IMMUTABLE, np.ndarray, ModuleType, BuiltinFunctionType)


def _is_watched(value: Any) -> bool:
    return type(value) is tape.new or _is_immutable(value)


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_immutable(item) for item in value)
    return isinstance(value, IMMUTABLE)


def _current(place: Any) -> Any:
    return place[0].get(place[1]) if type(place) is tuple else place.cell_contents


def _name(place: Any) -> str:
    return f"global {place[1]}" if type(place) is tuple else "a closure variable"


def _equal(a: Any, b: Any) -> bool:
    """Whether two immutable values, or arrays, make no difference to a run: 0.0 and -0.0, or 1 and True, do."""
    if a is b:
        return True
    if type(a) is not type(b) or type(a) is tape.new:
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float):
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, complex):
        return _equal(a.real, b.real) and _equal(a.imag, b.imag)
    return bool(a == b)
