"""The tape: what was recorded.

Nodes carry increasing ids and point to their parents only, so there are no cycles, an unused graph is freed by
reference counting, and going through the ids downwards is a topological order.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from numbagrad import array as memory
from numbagrad.array import Array, root_of
from numbagrad.errors import CaptureError


class _State(threading.local):
    """Whether this thread records, whether it trains, and whether it runs again what it has run before."""

    recording = False
    training = False
    recomputing = False


state = _State()

next_id = itertools.count(1).__next__

new: Callable[..., Any] = Array
"""The class of arrays that ops return; ``numbagrad.nd`` sets it to NDArray."""


_make = object.__new__
_Storage = memory.Storage


def made(flat: np.ndarray, shape: tuple[int, ...], context: Any) -> Any:
    """What ``new(flat, shape)`` makes, under a device label: every op makes one, and constructors are slow."""
    result = _make(new)  # type: ignore[arg-type]
    result._flat = flat
    result._shape = shape
    if memory.Storage is _Storage:
        storage = result._storage = _make(_Storage)
        storage.array = flat
        storage.version = 0
        storage.pinned = False
    else:
        result._storage = memory.Storage(flat)
    result._node = None
    result._context = context
    return result


class RebindEpoch:
    """Counts how often an array that captured programs know got another storage, node or mark; they watch it."""

    value = 0
    known: ClassVar[dict[int, int]] = {}
    """How many captured programs use, and keep alive, the memory of a NumPy array, by its id."""


def watch(array: Any) -> None:
    """Let :func:`rebound` count `array`, as if a captured program knew it."""
    root = id(root_of(array._flat))
    RebindEpoch.known[root] = RebindEpoch.known.get(root, 0) + 1


def rebound(array: Any) -> None:
    """Note that `array` got another storage, node or mark."""
    if id(root_of(array._flat)) in RebindEpoch.known:
        RebindEpoch.value += 1


class Leaf:
    """The place of a marked array on the tape: where its gradient goes.

    ``request`` is ``write``, ``add`` or ``null``; ``gradient`` the buffer as an array; ``flag``, an array of one
    element so that a captured step can set it too, whether a backward wrote the gradient since the flag was last reset.
    """

    __slots__ = ("__weakref__", "_flag_memory", "adds", "flag", "grad", "gradient", "mark", "request", "wants")

    parents = ()
    grad: Any

    def __init__(self, gradient: Any, request: str) -> None:
        self.mark = 0
        self.gradient = gradient
        self.request = request
        self.wants = request != "null"
        self.adds = request == "add"
        self.flag = bytearray(1)
        self._flag_memory: np.ndarray | None = None

    def flag_memory(self) -> np.ndarray:
        """The flag as an array of one int8, for kernels."""
        if self._flag_memory is None:
            self._flag_memory = np.frombuffer(self.flag, np.int8)
        return self._flag_memory


ONES: set[int] = set()
"""The ids of the memory of head gradients of one that are kept for ever: a rule may know by them what it is to multiply
with."""

FOLDED = 2
"""The flag of a gradient that a captured step has folded into its update: it is in no buffer."""


def readable(leaf: Leaf) -> Any:
    """The gradient buffer of a leaf, for a program to hold: no pass writes straight into it from then on.

    Raises
    ------
    CaptureError
        If the gradient was folded into an update and is not there.
    """
    if leaf.flag[0] == FOLDED:
        raise CaptureError(
            "this gradient was folded into its update by a captured step and is in no buffer; use jit(keep_grads=True)"
        )
    storage = leaf.gradient._storage
    if not storage.pinned:
        storage.pinned = True
        rebound(leaf.gradient)  # captured steps may write straight into it, or fold it away
    return leaf.gradient


class Node:
    """One recorded call.

    ``parents`` holds a Node, a Leaf or None an input, and None altogether once the node is freed. ``arrays`` holds the
    inputs that the VJP reads (of an elementwise op only those, else one an input, None for the others), ``out`` the
    memory ``(storage, flat, shape)`` of the outputs that it reads: not the arrays themselves, which point here.
    ``stamp`` is the serial number of the last write before the call; what was written later must not be read. Of an
    elementwise op ``params`` is its VJP's loop, ``aux`` the sizes of that where it is not flat. ``mark``
    and ``grad`` belong to the pass that goes through the node.
    """

    __slots__ = (
        "__weakref__",
        "arrays",
        "aux",
        "grad",
        "id",
        "mark",
        "op",
        "out",
        "outputs",
        "params",
        "parents",
        "shapes",
        "stamp",
    )

    grad: Any
    outputs: Any

    def __init__(self, op: Any, parents: Any, arrays: Any, out: Any, shapes: Any, params: Any, aux: Any) -> None:
        self.id = next_id()
        self.op = op
        self.parents: Any = parents
        self.arrays: Any = arrays
        self.out: Any = out
        self.shapes = shapes
        self.params = params
        self.aux = aux
        self.stamp = memory.serial
        self.mark = 0

    # The Context that VJP rules see.

    def x(self, i: int) -> Any:
        """The i-th input, with its place on the tape."""
        array = self.arrays[i]
        if array._node is not self.parents[i]:
            array = new(array._flat, array._shape, array._storage)
            array._node = self.parents[i]
        return array

    def y(self, i: int = 0) -> Any:
        """The i-th output, with its place on the tape."""
        storage, flat, shape = self.out[i]
        array = new(flat, shape, storage)
        array._node = Projection(self, i) if self.op.multi else self
        return array

    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of the i-th input."""
        return self.arrays[i]._shape if self.shapes is None else self.shapes[i]

    def wants(self, i: int) -> bool:
        """Whether the i-th input is on the tape."""
        return self.parents[i] is not None


def record(result: Any, op: Any, parents: Any, arrays: Any, out: Any, shapes: Any, params: Any, aux: Any) -> None:
    """Give `result` the place ``Node(op, parents, ...)``; without the constructor, as in :func:`made`."""
    node = result._node = _make(Node)
    node.id = next_id()
    node.op = op
    node.parents = parents
    node.arrays = arrays
    node.out = out
    node.shapes = shapes
    node.params = params
    node.aux = aux
    node.stamp = memory.serial
    node.mark = 0


class Rule:
    """What the walk asks of the op of a node, beside its name and VJP, as it is for most that are no op of ours."""

    kind = "composed"
    multi = False
    """Whether it has several outputs."""
    may_fail = False
    """Whether its VJP is the code of a user."""
    direct = False
    """Whether the VJP takes ``into`` and runs kernels alone."""
    chains = False
    """Whether the short walk of a chain of calls may go through."""


class ProjectionOp(Rule):
    """The op of a projection."""

    name = "an output of a several-output op"
    kind = "projection"


class Projection:
    """One output of a call that has several: a node of its own, so that every array has one node."""

    __slots__ = ("__weakref__", "arrays", "aux", "grad", "id", "index", "mark", "out", "parents", "stamp")

    op = ProjectionOp

    def __init__(self, node: Node, index: int) -> None:
        self.id = next_id()
        self.parents: tuple[Any, ...] | None = (node,)
        self.index = index
        self.arrays: Any = ()
        self.out: Any = ()
        self.stamp = memory.serial
        self.mark = 0


class Argument(Rule):
    """The op of a function's argument: the array itself, at a place of its own."""

    name = "an argument"

    @staticmethod
    def vjp(node: Node, gradient: Any) -> tuple[Any]:
        """The gradient goes through."""
        return (gradient,)


def argument(array: Any) -> Any:
    """`array` as the argument of a function that is to be differentiated.

    The same memory, on the tape whether `array` is or not; what is computed from it while recording reaches `array` in
    turn if that is on the tape.
    """
    result = new(array._flat, array._shape, array._storage)
    result._context = array._context
    parent = place(array) if state.recording else None
    result._node = Node(Argument, (parent,), (), (), (array._shape,), {}, None)
    return result


def place(array: Any) -> Any:
    """The node or leaf of `array`, or None; an array whose graph was freed is a constant from then on."""
    node = array._node
    if node is not None and (node.parents is None or (type(node) is Projection and node.parents[0].parents is None)):
        node = array._node = None
    return node
