"""What is done to a log before it becomes a table: pure functions from calls to calls, each with its own switch."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from numbagrad.capture.recorder import Buffer, Call, Slot
from numbagrad.kernels import optimizer
from numbagrad.kernels.gemm import gemm, gemm_update
from numbagrad.kernels.strided import fill
from numbagrad.tape import FOLDED


@dataclass(frozen=True)
class Facts:
    """What the passes know besides the calls."""

    inner: Set[Buffer]
    """Buffers that nobody can see from outside."""
    gradients: dict[Buffer, Buffer]
    """The gradient buffers of leaves that want them overwritten, and the buffers of their fresh flags."""
    rows: Callable[[Slot], Any]
    """The values of a float64 slot, now."""


def _touches(call: Call, buffer: Buffer, *roles: str) -> bool:
    return any(slot.buffer is buffer for slot in call.slots(*roles))


def fold_updates(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Make ``gradient = A' B`` and ``weight -= lr gradient`` one product, where nothing else reads the gradient.

    The product moves behind the last row that reads the weight. The gradient is then in no buffer; its fresh flag says
    so.
    """
    result: list[Call | None] = list(calls)
    moved: list[tuple[int, Call]] = []
    for at, call in enumerate(calls):
        if call.kernel is not optimizer.sgd_array:
            continue
        weight, gradient, hyper, scale = call.arguments
        row = facts.rows(hyper)
        flag = facts.gradients.get(gradient.buffer)
        if flag is None or row[1] != 0 or row[2] > 0 or gradient.size != weight.size:
            continue
        users = [
            i for i, other in enumerate(calls) if i != at and _touches(other, gradient.buffer, "in", "out", "inout")
        ]
        if len(users) != 1 or users[0] > at or calls[users[0]].kernel is not gemm:
            continue
        source = calls[users[0]]
        a, b, c, m, n, k, ta, tb, alpha = source.arguments
        if c.buffer is not gradient.buffer or c.size != weight.size or alpha != 1.0 or c.offset != gradient.offset:
            continue
        place = users[0]
        for i in range(users[0] + 1, at):
            if _touches(calls[i], weight.buffer, "in", "out", "inout"):
                place = i
        between = calls[users[0] + 1 : place + 1]
        if any(_touches(other, slot.buffer, "out", "inout") for other in between for slot in (a, b)):
            continue
        folded = (a, b, weight, hyper, m, n, k, ta, tb, scale)
        kinds = (*source.kinds[:2], weight.dtype, hyper.dtype, *source.kinds[3:8], "scalar")
        moved.append((place, Call(gemm_update, kinds, folded, call.line)))
        result[users[0]] = result[at] = None
        for i, other in enumerate(calls):
            if other.kernel is fill and other.arguments[1].buffer is flag:
                value, slot, size = other.arguments
                result[i] = Call(fill, other.kinds, (value if value else FOLDED, slot, size), other.line)
    final: list[Call] = []
    for i, kept in enumerate(result):
        if kept is not None:
            final.append(kept)
        final += [call for place, call in moved if place == i]
    return final


def drop_dead_rows(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Leave out rows whose results are overwritten or dropped before anybody reads them."""
    needed: list[Call] = []
    overwritten: set[tuple[int, int, int, str]] = set()
    read: set[Buffer] = set()
    for call in reversed(calls):
        outs = call.slots("out", "inout")
        dead = (
            bool(outs)
            and not call.kernel.failures
            and "inout" not in call.kernel.roles
            and all(
                (slot.buffer.index, slot.offset, slot.size, slot.dtype) in overwritten
                or (slot.buffer in facts.inner and slot.buffer not in read)
                for slot in outs
            )
        )
        if dead:
            continue
        needed.append(call)
        for slot in call.slots("out"):
            overwritten.add((slot.buffer.index, slot.offset, slot.size, slot.dtype))
        for slot in call.slots("in", "inout"):
            read.add(slot.buffer)
            overwritten = {key for key in overwritten if key[0] != slot.buffer.index}
    return needed[::-1]


PASSES: dict[str, Callable[[Sequence[Call], Facts], list[Call]]] = {
    "fold_updates": fold_updates,
    "drop_dead_rows": drop_dead_rows,
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
