"""The VJP of one recorded call: by a fused loop, a hand-written kernel, other ops, or a reference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.kernels.strided import fill
from numbagrad.launch import launch
from numbagrad.native.expr import evaluate
from numbagrad.ops.arithmetic import SCALAR_OPERATIONS
from numbagrad.ops.broadcasting import sum_to
from numbagrad.ops.casting import raw
from numbagrad.ops.layout import size_of
from numbagrad.ops.registry import WRITTEN
from numbagrad.ops.shaping import full_like, identity
from numbagrad.tape import Leaf, Node, made

_empty = np.empty

Into = Callable[[Any, bool], "tuple[np.ndarray, bool] | None"]
"""``into(parent, can_add)``: the buffer that the gradient of `parent` may be written to at once and whether it must be
added to what is there; or None, then the rule returns the gradient."""


def vjp(node: Node, gradient: Any, into: Into, walk: Callable[..., Any] | None) -> Sequence[Any]:
    """The gradients of the inputs of `node`: an array, ``(flat, shape)``, None or WRITTEN each.

    With `walk` the computation is being recorded, and fused ops go through their references with a walk of their own.
    """
    op = node.op
    kind = op.kind
    if kind == "elementwise":
        return elementwise_vjp(node, gradient, into, walk is not None)
    gradients = several(node, gradient) if op.multi else (gradient,)
    if kind == "fused":
        if walk is not None:
            return reference_vjp(node, gradients, walk)
        return op.vjp(node, *gradients, into)
    if kind == "captured":
        return op.vjp(node, *gradients, into) if walk is None else op.again(node, gradients, walk)
    results = op.vjp(node, *gradients)
    return results if type(results) in (tuple, list) else (results,)


def elementwise_vjp(node: Node, gradient: Any, into: Into, create_graph: bool) -> Sequence[Any]:
    """The VJP of an elementwise call: one fused loop, or its expressions evaluated on arrays."""
    vjp = node.params
    shapes = node.shapes
    parents = node.parents
    full = gradient._shape
    flat = gradient._flat
    kernel = vjp.kernel
    if len(shapes) == 1 and kernel is not None and door.mode is None and flat.dtype is vjp.dtype and not create_graph:
        return (_vjp_of_one(node, kernel.function, full, flat, into),)
    results: list[Any] = [None] * len(shapes)
    if create_graph or (flat.dtype is not vjp.dtype and flat.dtype != vjp.dtype):
        derivative = vjp.derivative
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
                result = evaluate(expression, values, SCALAR_OPERATIONS)
                results[i] = result if hasattr(result, "_flat") else full_like(gradient, value=result)
    elif kernel is None:
        for i, expression in enumerate(vjp.derivative.expressions):
            if expression is not None:
                results[i] = gradient
    else:
        new = tape.new
        n = len(flat)
        arguments: list[Any] = [n] if node.aux is None else [*node.aux]
        for array in node.arrays:
            arguments.append(array._flat if type(array) is new else array)
        for _, out, _ in node.out:
            arguments.append(out)
        arguments.append(flat)
        for i in vjp.computed:
            parent = parents[i]
            offered = into(parent, False) if type(parent) is Leaf and shapes[i] == full else None
            if offered is None:
                out = _empty(n, flat.dtype)
                results[i] = made(out, full, None)
            else:
                out = offered[0]
                results[i] = WRITTEN
            arguments.append(out)
        if door.mode is None:
            kernel.function(*arguments)
        else:
            launch(kernel, *arguments)
        if len(vjp.computed) < vjp.wanted:
            for i, expression in enumerate(vjp.derivative.expressions):
                if expression is not None and results[i] is None:
                    results[i] = gradient
    for i, result in enumerate(results):
        if result is not None and result is not WRITTEN and result._shape != shapes[i]:
            results[i] = sum_to(result, shape=shapes[i])
    return results


def _vjp_of_one(node: Node, run: Callable[..., int], full: tuple[int, ...], head: np.ndarray, into: Into) -> Any:
    """The gradient of the input of an elementwise call that has one; a loop over it is flat."""
    n = len(head)
    parent = node.parents[0]
    offered = into(parent, False) if type(parent) is Leaf else None
    out = _empty(n, head.dtype) if offered is None else offered[0]
    arrays = node.arrays
    if not node.out:
        if arrays:
            run(n, arrays[0]._flat, head, out)
        else:
            run(n, head, out)
    elif arrays:
        run(n, arrays[0]._flat, node.out[0][1], head, out)
    else:
        run(n, node.out[0][1], head, out)
    return made(out, full, None) if offered is None else WRITTEN


def reference_vjp(node: Node, gradients: Sequence[Any], walk: Callable[..., Any]) -> Sequence[Any]:
    """The VJP of a fused op through its reference, recorded."""
    arguments: list[Any] = []
    for i, argument in enumerate(node.arrays):
        if argument is not None:
            argument = node.x(i)
            if argument._node is not None:
                # A place of its own for this argument, where the inner walk ends.
                argument = identity(argument)
        arguments.append(argument)
    outputs = node.op.reference(*arguments, **node.params)
    outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
    places = [None if argument is None else argument._node for argument in arguments]
    heads = [(out._node, g) for out, g in zip(outputs, gradients, strict=True) if out._node is not None]
    wanted = [place for place in places if place is not None]
    found = dict(zip(map(id, wanted), walk(heads, True, True, wanted), strict=True))
    return [found[id(place)] if place is not None and hasattr(found[id(place)], "_flat") else None for place in places]


def several(node: Node, gradients: Sequence[Any]) -> list[Any]:
    """The head gradients of a call with several outputs, zeros for those that reach no head."""
    return [zeros(*kind) if g is None else g for g, kind in zip(gradients, node.outputs, strict=True)]


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A new array of zeros."""
    flat = np.empty(size_of(shape), dtype)
    launch(fill, 0, raw(flat), flat.size)
    return tape.new(flat, shape)
