"""The tape: what was recorded.

Nodes carry increasing ids and point to their parents only, so there are no cycles, an unused graph is freed by
reference counting, and going through the ids downwards is a topological order. A node keeps storages, never arrays.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad.array import Array, Storage


class _State(threading.local):
    """Whether this thread records, and whether it trains."""

    recording = False
    training = False


state = _State()

next_id = itertools.count(1).__next__

new: Callable[..., Any] = Array
"""The class of arrays that ops return; ``numbagrad.nd`` sets it to NDArray."""


class RebindEpoch:
    """Counts how often an existing array got another storage, node or mark; captured programs watch it."""

    value = 0


class Leaf:
    """The place of a marked array on the tape: where its gradient goes.

    ``request`` is ``write``, ``add`` or ``null``; ``gradient`` the buffer as an array; ``flag``, an array of one element so
    that a captured step can set it too, whether a backward wrote the gradient since the flag was last reset.
    """

    __slots__ = ("__weakref__", "flag", "gradient", "id", "request")

    parents = ()

    def __init__(self, gradient: Any, request: str) -> None:
        self.id = next_id()
        self.gradient = gradient
        self.request = request
        self.flag = np.zeros(1, np.int8)


Saved = tuple[Storage | None, int, Any]
"""A storage, its version when it was saved, and the flat array; or (None, 0, a number)."""


def save(array: Any) -> Saved:
    """Keep `array` for a VJP."""
    storage = array._storage
    storage.pinned = True
    return storage, storage.version, array._flat


class Node:
    """One recorded call.

    ``parents`` holds a Node, a Leaf or None an input, and None altogether once the node is freed. What ``saved`` and
    ``params`` hold is for the op's VJP to say.
    """

    __slots__ = ("__weakref__", "aux", "id", "op", "outputs", "params", "parents", "saved", "shapes")

    def __init__(
        self, op: Any, parents: tuple[Any, ...], saved: Sequence[Saved | None], shapes: Any, params: Any
    ) -> None:
        self.id = next_id()
        self.op = op
        self.parents: tuple[Any, ...] | None = parents
        self.saved: Sequence[Saved | None] | None = saved
        self.shapes = shapes
        self.params = params

    # The Context that VJP rules see.

    def x(self, i: int) -> Any:
        """The i-th input, with its place on the tape."""
        assert self.saved is not None and self.parents is not None
        storage, _, flat = self.saved[i]  # type: ignore[misc]
        if storage is None:
            return flat
        array = new(flat, self.shapes[i], storage)
        array._node = self.parents[i]
        return array

    def y(self, i: int = 0) -> Any:
        """The i-th output, with its place on the tape."""
        assert self.saved is not None and self.parents is not None
        k = len(self.parents) + i
        storage, _, flat = self.saved[k]  # type: ignore[misc]
        array = new(flat, self.shapes[k], storage)
        array._node = Projection(self, i) if self.op.multi else self
        return array

    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of the i-th input (outputs follow the inputs)."""
        return self.shapes[i]

    def wants(self, i: int) -> bool:
        """Whether the i-th input is on the tape."""
        assert self.parents is not None
        return self.parents[i] is not None


class ProjectionOp:
    """What the walk asks of a projection's op."""

    name = "an output of a several-output op"
    kind = "projection"
    may_fail = False


class Projection:
    """One output of a call that has several: a node of its own, so that every array has one node."""

    __slots__ = ("__weakref__", "aux", "id", "index", "parents", "saved")

    op = ProjectionOp

    def __init__(self, node: Node, index: int) -> None:
        self.id = next_id()
        self.parents: tuple[Any, ...] | None = (node,)
        self.index = index
        self.saved: Any = ()


def place(array: Any) -> Any:
    """The node or leaf of `array`, or None; an array whose graph was freed is a constant from then on."""
    node = array._node
    if node is not None and node.parents is None:
        node = array._node = None
    return node
