"""The VJP of one recorded call: by a fused loop, a hand-written kernel, other ops, or a reference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
from numbagrad.tape import Node

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
    vjp, sizes = node.params
    shapes = node.shapes
    parents = node.parents
    full = gradient._shape
    derivative = vjp.derivative
    results: list[Any] = [None] * len(shapes)
    kernel = vjp.kernel
    new = tape.new
    if create_graph or (gradient._flat.dtype is not vjp.dtype and gradient._flat.dtype != vjp.dtype):
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
        for i, expression in enumerate(derivative.expressions):
            if expression is not None:
                results[i] = gradient
    else:
        flat = gradient._flat
        outs = []
        for i in vjp.computed:
            offered = into(parents[i], False) if shapes[i] == full else None
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
