"""What follows a matrix product, done by the product or in its memory: copies, sums, factors, bias and activation.

Layers that are written out - ``nd.relu(nd.dot(x, w) + b)`` - become the rows that a Dense layer has.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numbagrad.capture import fusion
from numbagrad.capture.recorder import Call, Slot
from numbagrad.capture.uses import Facts, Placing, Uses, whole
from numbagrad.kernels.dense import bias_act, bias_act_smooth
from numbagrad.kernels.gemm import gemm, gemm_into
from numbagrad.kernels.kernel import Kernel
from numbagrad.kernels.strided import add_into, copy
from numbagrad.ops.arithmetic import add, divide, multiply, relu
from numbagrad.ops.dense import ACTIVATIONS


def skip_copies(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Write what is only copied to where it goes at once: gradients to their buffers, above all."""
    if not any(call.kernel is copy for call in calls):
        return list(calls)
    placing = Placing(calls, facts)
    result: list[Call | None] = list(calls)
    for row, call in enumerate(calls):
        if call.kernel is copy:
            source, target, size = call.arguments
            if source.size == target.size == size and placing.put(source, target, row):
                result[row] = None
    return placing.applied(result)


def extend_products(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Let a product whose result is only multiplied by a number, or added to an array, do that itself.

    BLAS computes ``alpha A B + beta C``: a factor is its alpha, the array C. Results differ from separate rows by the
    order of roundings.
    """
    if not _followed(calls, _is_product, _extends):
        return list(calls)
    placing = Placing(calls, facts)
    result: list[Call | None] = list(calls)
    for at, first in enumerate(calls):
        if first.kernel is not gemm:
            continue
        product, out = first, first.arguments[2]
        row = placing.last(out.buffer)
        factor, scaled = _scaled(calls[row], out)
        if scaled is not None and _read_once(placing.uses, out) and placing.put(out, scaled, row):
            product = _product(gemm, product, scaled, product.arguments[8] * factor)
            result[at], result[row] = product, None
            out = scaled
            row = placing.last(out.buffer)
        if not _read_once(placing.uses, out, calls):
            continue
        call = calls[row]
        if call.kernel is add_into and call.arguments[0] == out:
            total = call.arguments[1]
            taken = placing.put(out, total, row)
        else:
            other, total = _operands(call, add.graph, "ss", out)
            earlier = [] if other is None else placing.uses.of(other.buffer, -1, row)
            taken = (
                bool(earlier)
                and earlier[-1][0] < at
                and out.buffer in facts.inner
                and placing.put(other, total, row)
                and placing.put(out, total, row)
            )
        if taken:
            result[at], result[row] = _product(gemm_into, product, total, product.arguments[8]), None
    return placing.applied(result)


class _Step(NamedTuple):
    """An activation that follows: its row and code, its result, and the rows of its derivative."""

    row: int
    code: int
    result: Slot
    derivatives: list[int]


def fuse_bias(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Add a row to what a product has left, in place, and apply the activation that follows in the same row.

    The derivative of relu, which reads its input, is given its result: the same elements of both are above 0. Where
    the chain goes on and is long enough for a loop of its own, it is left to ``fuse_elementwise``.
    """
    written_out = any(call.kernel.loop is not None and _biased(call)[4] is not None for call in calls)
    if not written_out and not _followed(calls, _is_bias, lambda call: call.kernel.loop is not None):
        return list(calls)
    placing = Placing(calls, facts)
    uses = placing.uses
    result: list[Call | None] = list(calls)
    for row, call in enumerate(calls):
        y, bias, n, units, out = _biased(call)
        if out is None:
            continue
        there = call.kernel is bias_act
        if not there:
            before = uses.of(y.buffer, -1, row)
            if not before or calls[before[-1][0]].kernel.loop is not None:
                continue
        step = _activation(calls, facts, uses, out, row)
        if _goes_on(calls, uses, *((out, row) if step is None else (step.result, step.row))):
            continue
        if not there:
            if not placing.put(y, out, row):
                continue
            result[row] = _bias_row(call, out, bias, n, units, 0)
        if step is not None and placing.put(out, step.result, step.row, step.row):
            result[row] = _bias_row(call, out, bias, n, units, step.code)
            result[step.row] = None
            for i in step.derivatives:
                values = [step.result if value is not None and value == out else value for value in calls[i].arguments]
                result[i] = Call(calls[i].kernel, calls[i].kinds, tuple(values), calls[i].line)
    return placing.applied(result)


def _followed(calls: Sequence[Call], first: Callable[[Call], bool], then: Callable[[Call], bool]) -> bool:
    """Whether a call of one kind reads what one of another has written before, so that a pass has something to see."""
    written: set[Any] = set()
    for call in calls:
        if first(call):
            written.update(slot.buffer for slot in call.slots("out", "inout"))
        elif then(call) and any(slot.buffer in written for slot in call.slots("in")):
            return True
    return False


def _is_product(call: Call) -> bool:
    return call.kernel is gemm


def _is_bias(call: Call) -> bool:
    return call.kernel is bias_act and call.arguments[4:] == (1, 0)


def _extends(call: Call) -> bool:
    return call.kernel is add_into or any(_computes(call, op.graph) for op in (add, multiply, divide))


def _read_once(uses: Uses, slot: Slot, calls: Sequence[Call] = ()) -> bool:
    """Whether a buffer is written in one row and read in another, and that is all; but for a bias, given `calls`."""
    found = uses.of(slot.buffer)
    if calls and len(found) == 3 and _biased(calls[found[1][0]])[4] == slot and found[1][2] == "inout":
        del found[1]
    return [role for _, _, role in found] == ["out", "in"]


def _operands(call: Call, graph: Any, letters: str, slot: Slot) -> tuple[Any, Any]:
    """The other operand of an elementwise operation on `slot`, and the result; None for another call.

    `letters` is the pattern, that of `slot` first; either may come first where the operation is commutative.
    """
    form = call.kernel.loop
    if form is None or not _computes(call, graph):
        return None, None
    values = [value for role, value in zip(call.kernel.roles, call.arguments, strict=True) if role != "size"]
    if form.pattern == letters and values[0] == slot:
        return values[1], values[2]
    if form.pattern == letters[::-1] and values[1] == slot and graph is not divide.graph:
        return values[0], values[2]
    return None, None


def _computes(call: Call, graph: Any) -> bool:
    form = call.kernel.loop
    return form is not None and len(form.roots) == 1 and form.roots[0] is graph and form.out_dtypes == (form.dtype,)


def _scaled(call: Call, slot: Slot) -> tuple[float, Any]:
    """The number that a call multiplies `slot` with, and the result; None for another call."""
    number, result = _operands(call, multiply.graph, "sk", slot)
    if result is not None:
        return float(number), result
    number, result = _operands(call, divide.graph, "sk", slot)
    return (1.0 / float(number), result) if number else (1.0, None)


def _product(kernel: Kernel, call: Call, c: Slot, alpha: float) -> Call:
    a, b, _, *sizes, _ = call.arguments
    return Call(kernel, call.kinds, (a, b, c, *sizes, alpha), call.line)


def _biased(call: Call) -> tuple[Any, ...]:
    """(y, bias, rows, columns, result) of a call that adds a row to each row of y; None five times for another."""
    if _is_bias(call):
        y, bias, n, units = call.arguments[:4]
        return y, bias, n, units, y
    form = call.kernel.loop
    if form is not None and form.pattern in ("sr", "rs") and form.dtype in ("float32", "float64"):
        n, units, *arrays = call.arguments
        y, bias = arrays[:2] if form.pattern == "sr" else arrays[1::-1]
        found, out = _operands(call, add.graph, "sr", y)
        if found is not None and isinstance(y, Slot):
            return y, bias, n, units, out
    return None, None, None, None, None


def _bias_row(call: Call, y: Slot, bias: Slot, n: int, units: int, code: int) -> Call:
    kinds = (y.dtype, bias.dtype, "word", "word", "word", "word")
    return Call(bias_act if code < 2 else bias_act_smooth, kinds, (y, bias, n, units, 1, code), call.line)


_RELU, _RELU_VJP = ACTIVATIONS["relu"][0], relu.derivative((True,)).expressions[0]


def _activation(calls: Sequence[Call], facts: Facts, uses: Uses, x: Slot, row: int) -> _Step | None:
    """The activation of `x`, written in `row`, that can be done in place because nobody else needs `x`."""
    readers = uses.of(x.buffer, row)
    if not readers or x.buffer not in facts.inner or not whole(x):
        return None
    at = readers[0][0]
    call = calls[at]
    form = call.kernel.loop
    if form is None or form.pattern != "s" or call.arguments[1] != x:
        return None
    code = next((code for code, op in ACTIVATIONS.values() if _computes(call, op.graph)), None)
    if code is None:
        return None
    result = call.arguments[2]
    rest = readers[1:]
    if rest:
        if code != _RELU or not whole(result) or uses.written(result.buffer, at, rest[-1][0] + 1):
            return None
        for i, slot, _ in rest:
            if not _computes(calls[i], _RELU_VJP) or slot is not calls[i].arguments[1] or slot != x:
                return None
    return _Step(at, code, result, [i for i, _, _ in rest])


def _goes_on(calls: Sequence[Call], uses: Uses, slot: Slot, row: int) -> bool:
    """Whether an elementwise call reads next what `row` has written, and both are long enough to be fused."""
    readers = uses.of(slot.buffer, row)
    return bool(readers) and slot.size >= fusion.FUSED_FROM and calls[readers[0][0]].kernel.loop is not None
