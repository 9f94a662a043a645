"""What is done to a log before it becomes a table: pure functions from calls to calls, each with its own switch."""

from collections.abc import Callable, Sequence

from numbagrad.capture.epilogues import extend_products, fuse_bias, skip_copies
from numbagrad.capture.fusion import fuse_elementwise
from numbagrad.capture.recorder import Buffer, Call, Slot
from numbagrad.capture.uses import Facts, Uses, may_fail
from numbagrad.kernels import optimizer
from numbagrad.kernels.gemm import gemm, gemm_update
from numbagrad.kernels.strided import fill
from numbagrad.tape import FOLDED


def fold_updates(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Make ``gradient = A' B`` and ``weight -= lr gradient`` one product, where nothing else reads the gradient.

    The product moves behind the last row that reads the weight. The gradient is then in no buffer; its fresh flag says
    so.
    """
    uses = Uses(calls)
    result: list[Call | None] = list(calls)
    moved: dict[int, list[Call]] = {}
    updated = {call.arguments[0].buffer for call in calls if call.kernel is optimizer.SGD.array}
    for at, call in enumerate(calls):
        if call.kernel is not optimizer.SGD.array:
            continue
        weight, gradient, hyper, scale = call.arguments
        row = facts.rows(hyper)
        flag = facts.gradients.get(gradient.buffer)
        if flag is None or row[1] != 0 or row[2] > 0 or gradient.size != weight.size:
            continue
        users = [i for i, _, _ in uses.of(gradient.buffer) if i != at]
        if len(users) != 1 or users[0] > at or calls[users[0]].kernel is not gemm:
            continue
        source = calls[users[0]]
        a, b, c, m, n, k, ta, tb, alpha = source.arguments
        if c.buffer is not gradient.buffer or c.size != weight.size or alpha != 1.0 or c.offset != gradient.offset:
            continue
        if a.buffer in updated or b.buffer in updated:  # by a product that may move before this one
            continue
        between = uses.of(weight.buffer, users[0], at)
        place = between[-1][0] if between else users[0]
        if any(uses.written(slot.buffer, users[0], place + 1) for slot in (a, b)):
            continue
        folded = (a, b, weight, hyper, m, n, k, ta, tb, scale)
        kinds = (*source.kinds[:2], weight.dtype, hyper.dtype, *source.kinds[3:8], "scalar")
        moved.setdefault(place, []).append(Call(gemm_update, kinds, folded, call.line))
        result[users[0]] = result[at] = None
        for i, _, _ in uses.of(flag):
            other = calls[i]
            if other.kernel is fill:
                value, slot, size = other.arguments
                result[i] = Call(fill, other.kinds, (value if value else FOLDED, slot, size), other.line)
    final: list[Call] = []
    for i, kept in enumerate(result):
        if kept is not None:
            final.append(kept)
        final += moved.get(i, [])
    return final


def drop_dead_rows(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Leave out rows whose results are overwritten or dropped before anybody reads them."""
    needed: list[Call] = []
    overwritten: dict[Buffer, set[tuple[int, int, str]]] = {}
    read: set[Buffer] = set()
    for call in reversed(calls):
        outs: list[Slot] = []
        ins: list[Slot] = []
        for role, value in zip(call.kernel.roles, call.arguments, strict=True):
            if type(value) is Slot:
                (outs if role == "out" else ins).append(value)
        dead = (
            bool(outs)
            and "inout" not in call.kernel.roles
            and not may_fail(call)
            and all(
                (slot.offset, slot.size, slot.dtype) in overwritten.get(slot.buffer, ())
                or (slot.buffer in facts.inner and slot.buffer not in read)
                for slot in outs
            )
        )
        if dead:
            continue
        needed.append(call)
        for slot in outs:
            overwritten.setdefault(slot.buffer, set()).add((slot.offset, slot.size, slot.dtype))
        for slot in ins:
            read.add(slot.buffer)
            overwritten.pop(slot.buffer, None)
    return needed[::-1]


PASSES: dict[str, Callable[[Sequence[Call], Facts], list[Call]]] = {
    "drop_dead_rows": drop_dead_rows,
    "skip_copies": skip_copies,
    "fold_updates": fold_updates,
    "extend_products": extend_products,
    "fuse_bias": fuse_bias,
    "fuse_elementwise": fuse_elementwise,
}
"""The passes by name, in their order."""


def run_passes(
    calls: Sequence[Call], facts: Facts, names: Sequence[str]
) -> tuple[list[Call], dict[str, tuple[int, int]]]:
    """The calls after the passes `names`, and the rows before and after each."""
    counts = {}
    current = list(calls)
    for name, run in PASSES.items():
        if name in names:
            before = len(current)
            current = run(current, facts)
            counts[name] = (before, len(current))
    return current, counts
