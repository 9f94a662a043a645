"""When a captured run stands for a new call: what it depended on, noted and compared."""

import inspect
from typing import Any

import numpy as np

from numbagrad import tape
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


class Guard:
    """What a captured run depended on.

    ``leaves`` has one entry an argument: (shape, dtype, position) of an array, [shape, dtype] of a NumPy array, the
    number itself otherwise. ``values`` are the immutable values that the function reaches as closure cells and globals.
    """

    def __init__(self, structure: Any, leaves: list[Any], function: Any) -> None:
        self.structure = structure
        self.recording, self.training = state.recording, state.training
        self.epoch = -1
        self.leaves: list[Any] = []
        for leaf in leaves:
            if type(leaf) is tape.new:
                self.leaves.append((leaf._shape, leaf._flat.dtype, position(leaf)))
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
        return _sharing(leaves) == self.sharing

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
            elif not _equal(guard, leaf):
                return f"argument {i} is {leaf!r}, was {guard!r}"
        if (self.recording, self.training) != (state.recording, state.training):
            return "recording or training changed"
        for place, value in self.values:
            if not _equal(_current(place), value):
                return f"{_name(place)} is {_current(place)!r}, was {value!r}"
        if self.epoch != RebindEpoch.value:
            return "an array was marked or got other memory (rebind epoch)"
        return "arrays share memory in another way"


def _sharing(leaves: list[Any]) -> tuple[int, ...]:
    """For each array argument, which is the first on the same memory, and how far in; () if no two share."""
    arrays = [leaf for leaf in leaves if type(leaf) is tape.new or type(leaf) is np.ndarray]
    owners = [id(leaf._storage) if type(leaf) is tape.new else id(leaf) for leaf in arrays]
    if len(set(owners)) == len(owners):
        return ()
    starts = [address_of_array(flat_of(leaf)) for leaf in arrays]
    found: list[int] = []
    for owner, start in zip(owners, starts, strict=True):
        first = owners.index(owner)
        found += [first, start - starts[first]]
    return tuple(found)


def _reached(function: Any) -> list[tuple[Any, Any]]:
    """The immutable values that `function` reaches as closure cells and globals, with where they are."""
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    found: list[tuple[Any, Any]] = []
    for cell in function.__closure__ or ():
        try:
            if _is_immutable(cell.cell_contents):
                found.append((cell, cell.cell_contents))
        except ValueError:  # an empty cell
            continue
    names = set(code.co_names)
    for constant in code.co_consts:
        names |= set(getattr(constant, "co_names", ()))
    space = function.__globals__
    for name in sorted(names):
        if name in space and _is_immutable(space[name]):
            found.append(((space, name), space[name]))
    return found


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_immutable(item) for item in value)
    return isinstance(value, IMMUTABLE)


def _current(place: Any) -> Any:
    return place[0].get(place[1]) if type(place) is tuple else place.cell_contents


def _name(place: Any) -> str:
    return f"global {place[1]}" if type(place) is tuple else "a closure variable"


def _equal(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))
