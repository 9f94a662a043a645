"""The walk over the tape that turns head gradients into gradients."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from numbagrad import array as memory
from numbagrad import launch as door
from numbagrad import tape
from numbagrad.array import wrote
from numbagrad.errors import MXNetError
from numbagrad.kernels.strided import add_into, copy, fill
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import add
from numbagrad.ops.casting import cast, raw
from numbagrad.ops.registry import WRITTEN
from numbagrad.tape import Leaf, Node, Projection, next_id, state
from numbagrad.vjp import elementwise_vjp, vjp

NOTHING = object()
"""The gradient of a node that none has reached; None is a gradient of zero."""

_HALF = np.dtype("float16")
_by_id = attrgetter("id")


def walk(
    heads: Sequence[tuple[Any, Any]],
    retain: bool,
    create_graph: bool = False,
    targets: Sequence[Any] | None = None,
    since: int = 0,
) -> list[Any]:
    """Go from `heads` to the leaves, once.

    Parameters
    ----------
    heads : list of (node, head gradient)
    retain : bool
        Keep what the nodes saved, for another pass.
    create_graph : bool
        The computation is being recorded: use rules that can be differentiated again.
    targets : list of nodes or leaves, optional
        Return their gradients (None: zero everywhere; NOTHING: no head depends on it) and write to no buffer; the walk
        ends at them.
    since : int
        With `targets`: they were recorded from this id on, so nodes before it that are no targets are left alone.

    Raises
    ------
    MXNetError
        Before anything is written: for a freed node, memory that was overwritten since it was recorded, a graph without
        a leaf that wants a gradient.
    """
    mark = next_id()
    serial = memory.serial
    ends = frozenset(targets) if targets is not None else ()
    nodes: list[Any] = []
    leaves: list[Leaf] = []
    user_code = False
    in_order = True
    last = 1 << 62
    stack = []
    for node, _ in heads:
        if node.mark != mark:
            node.mark = mark
            node.grad = NOTHING
            if type(node) is Leaf:
                leaves.append(node)
            elif node not in ends and node.id >= since:
                stack.append(node)
    while stack:
        node = stack.pop()
        parents = node.parents
        if parents is None:
            raise MXNetError(
                f"backward: part of the graph was freed by an earlier backward (at {node.op.name}); "
                "pass retain_graph=True to the earlier one to go through it again: no inputs require gradients"
            )
        if node.stamp != serial:
            _check_unchanged(node)
        if node.op.may_fail:
            user_code = True
        number = node.id
        if number > last:
            in_order = False
        last = number
        nodes.append(node)
        for parent in parents:
            if parent is not None and parent.mark != mark:
                if type(parent) is Leaf:
                    leaves.append(parent)
                elif not ends:
                    stack.append(parent)
                elif parent not in ends:
                    if parent.id < since:
                        continue
                    stack.append(parent)
                parent.mark = mark
                parent.grad = NOTHING
    if door.mode is not None:
        door.mode.walking(nodes)
    if targets is not None and not retain and any(target.mark != mark for target in targets):
        return [None if target.mark == mark else NOTHING for target in targets]
    if not in_order:
        nodes.sort(key=_by_id, reverse=True)
    live = None
    if targets is not None:
        live = _live(nodes, set(targets))
    else:
        for leaf in leaves:
            if not leaf.wants:
                live = _live(nodes, {leaf for leaf in leaves if leaf.wants})
                break
        if not leaves or live == set():
            raise MXNetError("backward: no inputs require gradients: no array below the heads is marked for one")

    direct = targets is None and not user_code
    reached: list[Leaf] = []
    owned: set[Any] = set()
    new = tape.new

    def into(parent: Any, can_add: bool) -> tuple[np.ndarray, bool] | None:
        if not direct or type(parent) is not Leaf or not parent.wants:
            return None
        target = parent.gradient
        if target._storage.pinned:
            return None
        if parent.grad is WRITTEN:
            return (target._flat, True) if can_add else None
        if parent.adds and not can_add:
            return None
        parent.grad = WRITTEN
        reached.append(parent)
        return target._flat, parent.adds

    def give(parent: Any, gradient: Any) -> None:
        have = parent.grad
        if targets is None and type(parent) is Leaf:
            if not parent.wants:
                return
            if have is NOTHING:
                reached.append(parent)
            if direct and (have is WRITTEN or not parent.gradient._storage.pinned):
                _deliver(parent, gradient, have is WRITTEN)
                parent.grad = WRITTEN
                return
        if have is NOTHING or have is None:
            parent.grad = gradient
        elif gradient is not None:
            if parent in owned and have._flat.dtype == gradient._flat.dtype != _HALF:
                launch(add_into, gradient._flat, have._flat, have._flat.size)
            else:
                parent.grad = add(have, gradient)
                if not create_graph:
                    owned.add(parent)

    again = walk if create_graph else None
    for node, gradient in heads:
        if node.grad is NOTHING and type(node) is not Leaf:
            node.grad = gradient
        else:
            give(node, gradient)
    for node in nodes:
        gradient = node.grad
        if gradient is NOTHING:
            continue
        node.grad = None
        if live is not None and node not in live:
            continue
        parents = node.parents
        if gradient is None:
            for parent in parents:
                if parent is not None and (live is None or parent in live) and parent.grad is NOTHING:
                    give(parent, None)
            continue
        op = node.op
        if op.kind == "projection":
            _project(node, gradient)
            continue
        if op.direct and again is None and not op.multi:
            results = op.vjp(node, gradient, into)
        else:
            # The user's code may run a backward of its own, through leaves of ours.
            held = [(leaf, leaf.mark, leaf.grad) for leaf in leaves] if op.may_fail else ()
            results = vjp(node, gradient, into, again)
            for leaf, its_mark, its_grad in held:
                leaf.mark, leaf.grad = its_mark, its_grad
        for i, parent in enumerate(parents):
            if parent is not None:
                result = results[i]
                if result is not WRITTEN and (live is None or parent in live):
                    if type(result) is tuple:
                        result = new(*result)
                    if parent.grad is NOTHING and type(parent) is not Leaf:
                        parent.grad = result
                    else:
                        give(parent, result)
    if targets is None:
        _finish(reached)
        found = []
    else:
        found = [target.grad if target.mark == mark else NOTHING for target in targets]
        for end in (*targets, *leaves):
            end.grad = None
    if not retain:
        for node in nodes:
            node.parents = node.arrays = node.out = node.aux = None
    return found


def chain(node: Any, gradient: Any, retain: bool) -> bool:
    """The walk where each call has one input that was computed and each leaf is used once: no bookkeeping is needed.

    Returns False, with nothing done, for a graph that is no such chain; the general walk sees to it then.
    """
    serial = memory.serial
    recording = state.recording
    nodes = []
    leaves = []
    while node is not None:
        if type(node) is not Node or node.stamp != serial:
            return False
        op = node.op
        parents = node.parents
        if parents is None or not op.chains or (recording and not op.direct):  # others compute with ops
            return False
        nodes.append(node)
        node = None
        for parent in parents:
            if parent is not None:
                if type(parent) is Leaf:
                    if not parent.wants or parent.gradient._storage.pinned:
                        return False
                    leaves.append(parent)
                elif node is None:
                    node = parent
                else:
                    return False
    if not leaves or len({*leaves}) != len(leaves):
        return False
    if door.mode is not None:
        door.mode.walking(nodes)
    new = tape.new
    for node in nodes:
        op = node.op
        parents = node.parents
        if gradient is None:
            # A gradient of zero stays None: a kernel would make NaN of zeros where it meets an infinity.
            results: Any = [None] * len(parents)
        elif op.direct:
            results = op.vjp(node, gradient, _into_once)
        elif op.kind == "elementwise":
            results = elementwise_vjp(node, gradient, _into_once, False)
        else:
            results = vjp(node, gradient, _into_once, None)
        i = -1
        for result in results:
            i += 1
            parent = parents[i]
            if parent is not None and result is not WRITTEN:
                if type(result) is tuple:
                    result = new(*result)
                if type(parent) is Leaf:
                    _deliver(parent, result, False)
                else:
                    gradient = result
        if not retain:
            node.parents = node.arrays = node.out = node.aux = None
    _mark_fresh(leaves)
    return True


def _into_once(parent: Any, can_add: bool) -> tuple[np.ndarray, bool] | None:
    """The ``into`` of a chain, where a leaf gets one gradient."""
    if type(parent) is Leaf and (can_add or not parent.adds):
        return parent.gradient._flat, parent.adds
    return None


def _live(nodes: list[Any], live: set[Any]) -> set[Any]:
    """The nodes from which one of `live` can be reached, and these."""
    if live:
        for node in reversed(nodes):
            if node not in live and any(parent in live for parent in node.parents if parent is not None):
                live.add(node)
    return live


def _check_unchanged(node: Any) -> None:
    """Refuse to go on where memory that `node` reads was written after the call was recorded."""
    stamp = node.stamp
    saved = [(a._storage, a._flat, a._shape) for a in node.arrays if hasattr(a, "_storage")]
    for storage, flat, shape in [*saved, *[entry for entry in node.out if entry is not None]]:
        if storage.version > stamp:
            raise MXNetError(
                f"backward: {node.op.name} needs an array of shape {shape} and dtype {flat.dtype} that was written in "
                "place after it was recorded; write to a copy, or write after backward"
            )


def _project(node: Projection, gradient: Any) -> None:
    """Hand the gradient of one output to the call that has several."""
    parent = node.parents[0]  # type: ignore[index]
    if parent.grad is NOTHING or parent.grad is None:
        parent.grad = [None] * len(parent.outputs)
    have = parent.grad[node.index]
    parent.grad[node.index] = gradient if have is None else add(have, gradient)


def _deliver(leaf: Leaf, gradient: Any, accumulate: bool) -> None:
    """Write `gradient` (None: zero) to the buffer of `leaf`, or add it to what a pass has put there before."""
    target = leaf.gradient
    flat = target._flat
    if gradient is not None:
        _check_gradient(leaf, gradient)
        if gradient._flat.dtype is not flat.dtype:
            gradient = cast(gradient, dtype=flat.dtype)  # of an int leaf it may be wider
    if accumulate or leaf.adds:
        if gradient is not None:
            if flat.dtype.char == "e":
                gradient = add(target, gradient)
                launch(copy, raw(gradient._flat), raw(flat), flat.size)
            else:
                launch(add_into, gradient._flat, flat, flat.size)
    elif gradient is None:
        launch(fill, 0, raw(flat), flat.size)
    else:
        launch(copy, raw(gradient._flat), raw(flat), flat.size)


def _finish(reached: list[Leaf]) -> None:
    """Write what was held back, once nothing can fail any more; then mark the gradients fresh."""
    for leaf in reached:
        if leaf.grad is not WRITTEN and leaf.grad is not None:
            _check_gradient(leaf, leaf.grad)
    for leaf in reached:
        if leaf.grad is not WRITTEN:
            _deliver(leaf, leaf.grad, False)
        leaf.grad = None
    _mark_fresh(reached)


def _mark_fresh(leaves: list[Leaf]) -> None:
    """Note that the gradients of `leaves` were written."""
    if door.mode is None:
        memory.serial = serial = memory.serial + 1
        for leaf in leaves:
            leaf.flag[0] = 1
            leaf.gradient._storage.version = serial
    else:
        for leaf in leaves:
            launch(fill, 1, leaf.flag_memory(), 1)
            door.mode.delivered(leaf)
        wrote(*[leaf.gradient._storage for leaf in leaves])


def _check_gradient(leaf: Leaf, gradient: Any) -> None:
    target = leaf.gradient
    if gradient._shape != target._shape:
        raise MXNetError(
            f"backward: a gradient of shape {gradient._shape} arrived for an array of shape {target._shape}"
        )
