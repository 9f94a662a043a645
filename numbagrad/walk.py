"""The walk over the tape that turns head gradients into gradients."""

from collections.abc import Iterable, Sequence
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
from numbagrad.native.expr import evaluate
from numbagrad.ops.arithmetic import SCALAR_OPERATIONS, add
from numbagrad.ops.layout import size_of
from numbagrad.ops.dtypes import floating
from numbagrad.ops.registry import WRITTEN, Composed, Fused
from numbagrad.ops.shaping import identity
from numbagrad.ops.broadcasting import sum_to
from numbagrad.tape import Leaf, Node, Projection

_by_id = attrgetter("id")


def _collect(heads: Iterable[Any]) -> tuple[list[Any], list[Leaf], bool]:
    """The nodes below `heads` by falling id, their leaves, and whether user code takes part.

    Every saved version is checked here, before anything is written.
    """
    seen: set[Any] = set()
    nodes: list[Any] = []
    leaves: list[Leaf] = []
    fails = False
    stack = list(heads)
    serial = memory.serial
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if type(node) is Leaf:
            leaves.append(node)
            continue
        parents = node.parents
        if parents is None:
            raise MXNetError(
                f"backward: part of the graph was freed by an earlier backward (at {node.op.name}); "
                "pass retain_graph=True to the earlier one to go through it again: no inputs require gradients"
            )
        if node.stamp != serial:
            _check_unchanged(node)
        if node.op.may_fail:
            fails = True
        nodes.append(node)
        for parent in parents:
            if parent is not None:
                stack.append(parent)
    if len(nodes) > 1:
        nodes.sort(key=_by_id, reverse=True)
    return nodes, leaves, fails


def _check_unchanged(node: Any) -> None:
    """Refuse to go on where memory that `node` reads was written after the call was recorded."""
    stamp = node.stamp
    saved = [(a._storage, a._flat, a._shape) for a in node.arrays if hasattr(a, "_storage")]
    for storage, flat, shape in [*saved, *[entry for entry in node.out if entry is not None]]:
        if storage.version > stamp:
            raise MXNetError(
                f"backward: {node.op.name} needs an array of shape {shape} and dtype {flat.dtype} that was written in place "
                "after it was recorded; write to a copy, or write after backward"
            )


class Walk:
    """One pass over the tape.

    Parameters
    ----------
    heads : list of (node, head gradient)
    create_graph : bool
        Record the computation of the gradients.
    retain : bool
        Keep what was saved, for another pass.
    targets : list of nodes, optional
        Deliver the gradients of these in :attr:`found` instead of writing to the buffers of the leaves.
    """

    __slots__ = ("create_graph", "direct", "grads", "owned", "reached", "retain", "targets", "touched")

    def __init__(self, create_graph: bool, retain: bool, targets: Sequence[Any] | None = None) -> None:
        self.create_graph = create_graph
        self.retain = retain
        self.targets = targets
        self.grads: dict[Any, Any] = {}
        self.owned: set[Any] = set()
        self.reached: list[Leaf] = []
        self.touched: set[Leaf] = set()
        self.direct = False

    def run(self, heads: Sequence[tuple[Any, Any]]) -> None:
        """Walk from `heads` (pairs of a node and its head gradient) to the leaves."""
        nodes, leaves, fails = _collect([node for node, _ in heads])
        targets = self.targets
        live = None
        keep: Any = ()
        if targets is None:
            wanted = [leaf for leaf in leaves if leaf.request != "null"]
            if not wanted:
                raise MXNetError("backward: no inputs require gradients: no array below the heads is marked for one")
            if len(wanted) < len(leaves):
                live = self._live(nodes, set(wanted))
            self.direct = not fails
        else:
            keep = set(targets)
            live = self._live(nodes, set(targets))
        grads = self.grads
        new = tape.new
        for node, gradient in heads:
            self.give(node, gradient)
        for node in nodes:
            if node not in grads:
                continue
            if live is not None and node not in live:
                del grads[node]
                continue
            gradient = grads[node] if node in keep else grads.pop(node)
            if gradient is None:
                for parent in node.parents:
                    if parent is not None and parent not in grads:
                        self.give(parent, None)
            elif type(node) is Projection:
                self._project(node, gradient)
            else:
                op = node.op
                kind = op.kind
                if kind == "elementwise":
                    results = self._elementwise(node, gradient)
                elif kind == "fused" and not self.create_graph:
                    if op.multi:
                        results = op.vjp(node, *_several(node, gradient), self)
                    else:
                        results = op.vjp(node, gradient, self)
                else:
                    results = self._general(node, op, gradient)
                i = 0
                for parent in node.parents:
                    if parent is not None:
                        result = results[i]
                        if result is not WRITTEN and (live is None or parent in live):
                            if type(result) is tuple:
                                result = new(*result)
                            if parent in grads or type(parent) is Leaf:
                                self.give(parent, result)
                            else:
                                grads[parent] = result
                    i += 1
        if targets is None:
            self._finish()
        if not self.retain:
            for node in nodes:
                node.free()

    def _project(self, node: Projection, gradient: Any) -> None:
        """Hand the gradient of one output to the call that has several."""
        parent = node.parents[0]  # type: ignore[index]
        slots = self.grads.get(parent)
        if slots is None:
            slots = self.grads[parent] = [None] * len(parent.outputs)
        have = slots[node.index]
        slots[node.index] = gradient if have is None else add(have, gradient)

    def _live(self, nodes: list[Any], wanted: set[Any]) -> set[Any]:
        """The nodes from which one of `wanted` can be reached."""
        live = set(wanted)
        for node in reversed(nodes):
            if node not in live and any(parent in live for parent in node.parents if parent is not None):
                live.add(node)
        return live

    def _elementwise(self, node: Node, gradient: Any) -> Sequence[Any]:
        """The VJP of an elementwise call: one fused loop, or its expressions evaluated on arrays."""
        vjp, sizes = node.params
        shapes = node.shapes
        parents = node.parents
        full = gradient._shape
        derivative = vjp.derivative
        results: list[Any] = [None] * len(shapes)
        kernel = vjp.kernel
        new = tape.new
        if self.create_graph or (gradient._flat.dtype is not vjp.dtype and gradient._flat.dtype != vjp.dtype):
            values = {}
            for array, i in zip(node.arrays, derivative.takes, strict=True):
                if hasattr(array, "_node") and array._node is not parents[i]:
                    array = tape.new(array._flat, array._shape, array._storage)
                    array._node = parents[i]
                values[i] = array
            if derivative.takes_output:
                values[len(shapes)] = node.y()
            values[len(shapes) + 1] = gradient
            for i, expression in enumerate(derivative.expressions):
                if expression is not None:
                    results[i] = evaluate(expression, values, SCALAR_OPERATIONS)
        elif kernel is None:
            for i, expression in enumerate(derivative.expressions):
                if expression is not None:
                    results[i] = gradient
        else:
            flat = gradient._flat
            outs = []
            for i in vjp.computed:
                offered = self.buffer(parents[i], False) if shapes[i] == full else None  # type: ignore[index]
                if offered is None:
                    out = np.empty(flat.size, flat.dtype)
                    results[i] = tape.new(out, full)
                else:
                    out = offered[0]
                    results[i] = WRITTEN
                outs.append(out)
            saved = [array._flat if type(array) is new else array for array in node.arrays]
            for _, out, _ in node.out:
                saved.append(out)
            launch(kernel, *sizes, *saved, flat, *outs)
            if len(vjp.computed) < vjp.wanted:
                for i, expression in enumerate(derivative.expressions):
                    if expression is not None and results[i] is None:
                        results[i] = gradient
        for i, result in enumerate(results):
            if result is not None and result is not WRITTEN and result._shape != shapes[i]:
                results[i] = sum_to(result, shape=shapes[i])
        return results

    def _general(self, node: Node, op: Composed, gradient: Any) -> Sequence[Any]:
        """The VJP of a composed op by its rule; of a fused one, to be differentiated again, by its reference."""
        gradients = _several(node, gradient) if op.multi else (gradient,)
        if op.kind == "fused":
            return self._by_reference(node, op, gradients)  # type: ignore[arg-type]
        results = op.vjp(node, *gradients)  # type: ignore[misc]
        return results if type(results) in (tuple, list) else (results,)

    def _by_reference(self, node: Node, op: Fused, gradient: Sequence[Any]) -> Sequence[Any]:
        """The VJP of a fused op through its reference, recorded."""
        assert node.parents is not None
        arguments: list[Any] = []
        for i, argument in enumerate(node.arrays):
            if argument is not None:
                argument = node.x(i)
                if argument._node is not None:
                    # A place of its own for this argument, so that the inner walk ends here.
                    argument = identity(argument)
            arguments.append(argument)
        outputs = op.reference(*arguments, **node.params)
        outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
        inner = [argument._node for argument, parent in zip(arguments, node.parents, strict=True) if parent is not None]
        walk = Walk(True, True, inner)
        walk.run([(out._node, g) for out, g in zip(outputs, gradient, strict=True) if out._node is not None])
        results = []
        for argument, parent in zip(arguments, node.parents, strict=True):
            results.append(walk.grads.get(argument._node) if parent is not None else None)
        return results

    # ------------------------------------------------------------------------------------------- deliveries

    def buffer(self, parent: Any, can_add: bool) -> tuple[np.ndarray, bool] | None:
        """Where a rule may write the gradient of `parent` at once, and whether it must add; None: nowhere."""
        if not self.direct or type(parent) is not Leaf or parent.request == "null":
            return None
        storage = parent.gradient._storage
        if storage.pinned:
            return None
        seen = parent in self.touched
        accumulate = seen or parent.request == "add"
        if accumulate and not can_add:
            return None
        if not seen:
            self.touched.add(parent)
            self.reached.append(parent)
        wrote(storage)
        return parent.gradient._flat, accumulate

    def give(self, parent: Any, gradient: Any) -> None:
        """Add `gradient` (None: zero) to what `parent` has got so far."""
        if type(parent) is Leaf and self.targets is None:
            if parent.request == "null":
                return
            if self.direct and not parent.gradient._storage.pinned:
                self._deliver(parent, gradient)
                return
        grads = self.grads
        if parent not in grads or grads[parent] is None:
            grads[parent] = gradient
            if type(parent) is Leaf and self.targets is None and parent not in self.touched:
                self.touched.add(parent)
                self.reached.append(parent)
        elif gradient is not None:
            have = grads[parent]
            if parent in self.owned:
                launch(add_into, gradient._flat, have._flat, have._flat.size)
            else:
                grads[parent] = add(have, gradient)
                if not self.create_graph:
                    self.owned.add(parent)

    def _deliver(self, leaf: Leaf, gradient: Any) -> None:
        target = leaf.gradient
        flat = target._flat
        seen = leaf in self.touched
        if seen or leaf.request == "add":
            if gradient is not None:
                _check_gradient(leaf, gradient)
                launch(add_into, gradient._flat, flat, flat.size)
        elif gradient is None:
            launch(fill, 0, flat, flat.size)
        else:
            _check_gradient(leaf, gradient)
            launch(copy, gradient._flat, flat, flat.size)
        wrote(target._storage)
        if not seen:
            self.touched.add(leaf)
            self.reached.append(leaf)

    def _finish(self) -> None:
        """Write what was held back, once nothing can fail any more; then mark the gradients fresh."""
        if self.grads:
            held = [(leaf, self.grads.pop(leaf)) for leaf in self.reached if leaf in self.grads]
            for leaf, gradient in held:
                if gradient is not None:
                    _check_gradient(leaf, gradient)
            for leaf, gradient in held:
                self.touched.discard(leaf)
                self._deliver(leaf, gradient)
        if door.mode is None:
            for leaf in self.reached:
                leaf.flag[0] = 1
        else:
            for leaf in self.reached:
                launch(fill, 1, leaf.flag, 1)


def _check_gradient(leaf: Leaf, gradient: Any) -> None:
    target = leaf.gradient
    if gradient._shape != target._shape or gradient._flat.dtype != target._flat.dtype:
        raise MXNetError(
            f"backward: a gradient of shape {gradient._shape} and dtype {gradient._flat.dtype} arrived for an array "
            f"of shape {target._shape} and dtype {target._flat.dtype}"
        )


def _several(node: Node, gradients: Sequence[Any]) -> list[Any]:
    """The head gradients of a call with several outputs, zeros for those that reach no head."""
    return [zeros(*kind) if g is None else g for g, kind in zip(gradients, node.outputs, strict=True)]


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A new array of zeros."""
    flat = np.empty(size_of(shape), dtype)
    launch(fill, 0, flat, flat.size)
    return tape.new(flat, shape)
