"""Ops applied to arrays: dtypes and shapes are lined up, kernels launched, and the call recorded."""

from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.array import wrote
from numbagrad.errors import InPlaceError, MXNetError
from numbagrad.launch import launch
from numbagrad.ops import registry
from numbagrad.ops.broadcasting import broadcast_to
from numbagrad.ops.casting import cast, write_cast
from numbagrad.ops.dtypes import FLOAT32, floating, promote
from numbagrad.ops.layout import Layout, layout
from numbagrad.ops.registry import Composed, Elementwise, Loop, Plan
from numbagrad.tape import Node, Projection, made, place, record, state

_FLOAT16 = np.dtype("float16")
_NUMBERS = (int, float, np.generic)
_empty = np.empty


def run_elementwise(op: Elementwise, args: tuple[Any, ...]) -> Any:
    """Apply an elementwise op to arrays and numbers."""
    if len(args) == 1:
        return run_unary(op, args[0])
    if len(args) == 2:
        return run_binary(op, args[0], args[1])
    return _run_floats(op, args)


def run_unary(op: Elementwise, x: Any) -> Any:
    """Apply an elementwise op of one argument."""
    if type(x) is tape.new:
        flat = x._flat
        loop = op.same.get(flat.dtype)
        if loop is not None:
            n = len(flat)
            out = _empty(n, loop.out_dtype)
            if door.mode is None:
                loop.kernel.function(n, flat, out)
            else:
                launch(loop.kernel, n, flat, out)
            shape = x._shape
            result = made(out, shape, x._context)
            node = x._node
            if node is not None and state.recording:
                if node.parents is None or type(node) is Projection:
                    node = place(x)  # its graph may have been freed
                if node is not None:
                    _record(loop, (x,), (node,), (n,), (shape,), result)
            return result
    return _run_elementwise_any(op, (x,))


def run_binary(op: Elementwise, x: Any, y: Any) -> Any:
    """Apply an elementwise op of two arguments."""
    new = tape.new
    if type(x) is new:
        if type(y) is new:
            flat, other = x._flat, y._flat
            dtype, shape = flat.dtype, x._shape
            if other.dtype is dtype or other.dtype == dtype:
                if shape == y._shape:
                    loop = op.same.get(dtype)
                    if loop is not None:
                        n = len(flat)
                        out = _empty(n, loop.out_dtype)
                        if door.mode is None:
                            loop.kernel.function(n, flat, other, out)
                        else:
                            launch(loop.kernel, n, flat, other, out)
                        result = made(out, shape, x._context)
                        if (x._node is not None or y._node is not None) and state.recording:
                            node = None if x._node is None else place(x)
                            second = node if y is x else None if y._node is None else place(y)
                            if node is not None or second is not None:
                                _record(loop, (x, y), (node, second), (n,), (shape, shape), result)
                        return result
                plan = op.plans.get((dtype, shape, y._shape)) or _plan(op, dtype, shape, y._shape)
                if plan is not None:
                    return _run_broadcast(plan, x, y)
        elif type(y) is float or type(y) is int:
            return _with_number(op, x, y, op.right, x)
    elif type(y) is new and (type(x) is float or type(x) is int):
        return _with_number(op, x, y, op.left, y)
    return _run_elementwise_any(op, (x, y))


def _plan(op: Elementwise, dtype: np.dtype, *shapes: tuple[int, ...]) -> Plan | None:
    """How two float arrays of different shapes go through one loop, kept for the next call; None where they do not."""
    if dtype.kind != "f" or dtype is _FLOAT16 or op.arity != 2:
        return None
    lines = layout(op.name, shapes)
    if lines.expand:
        return None
    if len(op.plans) >= 1024:
        op.plans.clear()
    found = op.plans[dtype, shapes[0], shapes[1]] = (op.loop(dtype, lines.pattern), lines)
    return found


def _run_broadcast(plan: Plan, x: Any, y: Any) -> Any:
    """Apply a binary op to arrays of different shapes as `plan` says."""
    loop, lines = plan
    sizes = lines.sizes
    out = _empty(lines.size, loop.out_dtype)
    if door.mode is None:
        loop.kernel.function(*sizes, x._flat, y._flat, out)
    else:
        launch(loop.kernel, *sizes, x._flat, y._flat, out)
    result = made(out, lines.shape, x._context)
    if (x._node is not None or y._node is not None) and state.recording:
        first, second = place(x), place(y)
        if first is not None or second is not None:
            _record(loop, (x, y), (first, second), sizes, (x._shape, y._shape), result)
    return result


def _with_number(op: Elementwise, x: Any, y: Any, loops: dict[np.dtype, Loop], array: Any) -> Any:
    """Apply a binary op to an array and a Python number, which does not widen."""
    flat, shape = array._flat, array._shape
    dtype = flat.dtype
    loop = loops.get(dtype)
    if loop is None:
        if dtype.kind != "f" or dtype is _FLOAT16 or op.arity != 2:
            return _run_elementwise_any(op, (x, y))
        loop = loops[dtype] = op.loop(dtype, "sk" if array is x else "ks")
    n = len(flat)
    out = _empty(n, loop.out_dtype)
    if array is x:
        y = float(y)
        launch(loop.kernel, n, flat, y, out)
    else:
        x = float(x)
        launch(loop.kernel, n, x, flat, out)
    result = made(out, shape, array._context)
    if array._node is not None and state.recording:
        node = place(array)
        if node is not None:
            if array is x:
                _record(loop, (x, y), (node, None), (n,), (shape, None), result)
            else:
                _record(loop, (x, y), (None, node), (n,), (None, shape), result)
    return result


def _run_floats(op: Elementwise, args: tuple[Any, ...]) -> Any:
    """Apply an elementwise op to arrays of one float dtype and Python numbers; others go the longer way."""
    new = tape.new
    dtype = None
    shapes = []
    for arg in args:
        kind = type(arg)
        if kind is new:
            if dtype is None:
                dtype = arg._flat.dtype
            elif arg._flat.dtype is not dtype:
                break
            shapes.append(arg._shape)
        elif kind is float or kind is int:
            shapes.append(None)
        else:
            break
    else:
        if dtype is not None and dtype.kind == "f" and dtype is not _FLOAT16 and op.arity == len(args):
            plan = layout(op.name, tuple(shapes))
            if not plan.expand:
                return _run_planned(op, dtype, plan, tuple([float(a) if type(a) is int else a for a in args]))
    return _run_elementwise_any(op, args)


def _run_elementwise_any(op: Elementwise, args: tuple[Any, ...]) -> Any:
    if len(args) != op.arity:
        raise TypeError(f"{op.name}: takes {op.arity} arguments, got {len(args)}")
    new = tape.new
    arrays = [arg for arg in args if type(arg) is new]
    numbers = [arg for arg in args if type(arg) is not new]
    for number in numbers:
        if not isinstance(number, _NUMBERS):
            raise TypeError(f"{op.name}: takes arrays and numbers, not {type(number).__name__}")
    if not arrays:
        if op.numpy is None:
            raise TypeError(f"{op.name}: at least one argument must be an array")
        return np.asarray(op.numpy(*args)).item()
    dtype = promote([array._flat.dtype for array in arrays], numbers)
    if op.result == "float":
        dtype = floating(dtype)
    if dtype == _FLOAT16:
        widened = [cast(arg, dtype=FLOAT32) if type(arg) is new else arg for arg in args]
        result = run_elementwise(op, tuple(widened))
        return result if op.result == "bool" else cast(result, dtype=_FLOAT16)
    args = tuple(cast(arg, dtype=dtype) if type(arg) is new and arg._flat.dtype != dtype else arg for arg in args)
    shapes = tuple(arg._shape if type(arg) is new else None for arg in args)
    plan = layout(op.name, shapes)
    if plan.expand:
        args = tuple(broadcast_to(arg, shape=plan.shape) if i in plan.expand else arg for i, arg in enumerate(args))
    convert = int if dtype.kind in "iub" else float
    return _run_planned(op, dtype, plan, tuple([arg if type(arg) is new else convert(arg) for arg in args]))


def _run_planned(op: Elementwise, dtype: np.dtype, plan: Layout, args: tuple[Any, ...]) -> Any:
    """Apply an elementwise op to arrays of `dtype` and numbers that line up as `plan` says."""
    new = tape.new
    loop = op.loop(dtype, plan.pattern)
    sizes = plan.sizes
    out = _empty(plan.size, loop.out_dtype)
    launch(loop.kernel, *sizes, *[arg._flat if type(arg) is new else arg for arg in args], out)
    for first in args:
        if type(first) is new:
            break
    result = made(out, plan.shape, first._context)
    if state.recording:
        parents = tuple([place(arg) if type(arg) is new else None for arg in args])
        if any(parent is not None for parent in parents):
            shapes = tuple([arg._shape if type(arg) is new else None for arg in args])
            _record(loop, args, parents, sizes, shapes, result)
    return result


def _record(
    loop: Loop, args: tuple[Any, ...], parents: tuple[Any, ...], sizes: tuple[int, ...], shapes: Any, result: Any
) -> None:
    """Put an elementwise call on the tape: what its VJP reads is kept in the order its kernel takes it."""
    if len(parents) == 1:
        vjp = loop.vjp_of_one or loop.vjp((True,))
    elif len(parents) == 2:
        vjp = loop.vjp((parents[0] is not None, parents[1] is not None))
    else:
        vjp = loop.vjp(tuple([parent is not None for parent in parents]))
    derivative = vjp.derivative
    takes = derivative.takes
    saved = () if not takes else args if len(takes) == len(args) else tuple([args[i] for i in takes])
    out = ((result._storage, result._flat, result._shape),) if derivative.takes_output else ()
    loops = vjp.loops
    if loops < len(sizes):
        sizes = (sizes[0] * sizes[1], sizes[-1])  # of planes and rows, where there are two loops
    record(result, loop.op, parents, saved, out, shapes, vjp, sizes if loops > 1 else None)


def run(op: Composed, arrays: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply a composed or fused op to arrays (None for one left out)."""
    new = tape.new
    for array in arrays:
        if type(array) is new:
            if array._flat.dtype is _FLOAT16 and not op.float16:
                return _run_half(op, arrays, params)
        elif array is not None:
            raise TypeError(f"{op.name}: takes arrays, not {type(array).__name__}")
    try:
        output = op.forward(*arrays, **params)
    except TypeError as error:
        if "keyword argument" in str(error) or "positional argument" in str(error):
            raise TypeError(f"{op.name}: {error}") from None
        raise
    if not op.multi:
        return finish(op, arrays, params, *output)
    results = [new(flat, shape) for flat, shape in output]
    if arrays and arrays[0]._context is not None:
        for result in results:
            result._context = arrays[0]._context
    parents = [None if array is None else place(array) for array in arrays] if state.recording else []
    if any(parent is not None for parent in parents):
        kept, out, shapes = _kept(op, arrays, results)
        node = Node(op, parents, kept, out, shapes, params, None)
        node.outputs = [(result._shape, result._flat.dtype) for result in results]
        for i, result in enumerate(results):
            result._node = tape.Projection(node, i)
    return results


def finish(
    op: Composed, arrays: tuple[Any, ...], params: dict[str, Any], flat: Any, shape: tuple[int, ...], aux: Any = None
) -> Any:
    """Make the array of a call with one output, and record the call."""
    if not arrays:
        return made(flat, shape, None)
    first = arrays[0]
    if op.view:
        result = tape.new(flat, shape, first._storage)
        result._context = first._context
    else:
        result = made(flat, shape, first._context)
    if state.recording:
        parents: list[Any] = []
        found = False
        for array in arrays:
            if array is None:
                parents.append(None)
                continue
            node = array._node
            if node is not None:
                if node.parents is None or type(node) is Projection:
                    node = place(array)  # its graph may have been freed
                if node is not None:
                    found = True
            parents.append(node)
        if found:
            if op.direct:
                out = ((result._storage, flat, shape),) if op.saves_y else ()
                record(result, op, parents, arrays, out, None, params, aux)
            else:
                record(result, op, parents, *_kept(op, arrays, (result,)), params, aux)
    return result


def _kept(op: Composed, arrays: tuple[Any, ...], results: Any) -> tuple[Any, Any, Any]:
    """The inputs and outputs that the rule of a composed op reads, and the shapes of all inputs."""
    kept = [array if i in op.saves_x else None for i, array in enumerate(arrays)]
    out = [(r._storage, r._flat, r._shape) if i in op.saves_y else None for i, r in enumerate(results)]
    return kept, out, [None if array is None else array._shape for array in arrays]


def _run_half(op: Composed, arrays: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """float16 computes in float32 and is rounded once at the end."""
    new = tape.new
    widened = [
        cast(array, dtype=FLOAT32) if type(array) is new and array._flat.dtype == _FLOAT16 else array
        for array in arrays
    ]
    result = run(op, tuple(widened), params)
    if op.multi:
        return [cast(one, dtype=_FLOAT16) if one._flat.dtype == FLOAT32 else one for one in result]
    return cast(result, dtype=_FLOAT16) if result._flat.dtype == FLOAT32 else result


def check_writable(array: Any, what: str) -> None:
    """Refuse to write to an array on the tape while recording; nothing has been written yet.

    Raises
    ------
    InPlaceError
    """
    if state.recording and place(array) is not None:
        raise InPlaceError(
            f"{what}: Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd "
            f"on an array that is part of the graph (shape {array._shape})"
        )


def update(op: Elementwise, array: Any, other: Any, sign: str) -> Any:
    """Apply a binary elementwise op in place, ``array <sign>= other``; returns `array`.

    Raises
    ------
    InPlaceError
        While recording, if either is on the tape.
    MXNetError
        If the result would have another shape.
    """
    new = tape.new
    check_writable(array, sign)
    is_array = type(other) is new
    if is_array and state.recording and place(other) is not None:
        raise InPlaceError(
            f"{sign}: Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd "
            f"with an operand that is part of the graph (shape {other._shape})"
        )
    flat = array._flat
    dtype = flat.dtype
    if dtype.kind == "f" and dtype != _FLOAT16 and (is_array or isinstance(other, _NUMBERS)):
        if not is_array:
            launch(op.loop(dtype, "Sk").kernel, flat.size, flat, float(other))
            wrote(array._storage)
            return array
        if other._shape == array._shape and other._flat.dtype == dtype and other._storage is not array._storage:
            launch(op.loop(dtype, "Ss").kernel, flat.size, flat, other._flat)
            wrote(array._storage)
            return array
    result = run_elementwise(op, (array, other))
    if result._shape != array._shape:
        raise MXNetError(
            f"{op.name}: the result of shape {result._shape} cannot be written to an array of {array._shape}"
        )
    write_cast(result._flat, flat)
    wrote(array._storage)
    return array


registry.executor = run
registry.finish = finish
registry.elementwise_executor = run_elementwise
