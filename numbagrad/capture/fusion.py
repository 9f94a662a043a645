"""Chains of elementwise calls made into one loop each.

A call joins the group of calls whose results it reads element by element, if nothing that stands between them would
notice: the group runs where its last call stood. What only the group reads is never stored. The loop is printed from
the composed expressions, so it is the same code for every program, depth and size in which the chain occurs, compiled
once and cached on disk. Each operation is rounded as in separate loops, so bits stay but for the signs of zeros (the
one liberty that these loops are compiled with is ``nsz``).
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

from numbagrad.capture.recorder import Buffer, Call, Slot
from numbagrad.capture.uses import Facts, Uses
from numbagrad.kernels.kernel import Kernel, LoopForm
from numbagrad.native.expr import Expr, compose, symbol
from numbagrad.native.source import compile_loop, loop_source, loops_of

FUSED_FROM = 16384
"""Elements from which a chain is fused. Below it a step saves less than a microsecond, while the loop may have to be
compiled first, which takes 0.1 to 0.2 s; from about here on what is saved is traffic through the caches."""

_MOST_CALLS = 24
_MOST_ARRAYS = 32

_kernels: dict[str, Kernel] = {}
"""By source."""


class _Group:
    """Calls that become one loop, and what they read and write."""

    def __init__(self, call: Call) -> None:
        form = call.kernel.loop
        assert form is not None
        sizes = _sizes(call)
        self.rows: list[int] = []
        self.dtype = form.dtype
        self.size = _size(call)
        self.split = sizes if len(sizes) == 2 else None
        self.reads = {slot.buffer for slot in call.slots("in")}
        self.writes = {slot.buffer for slot in call.slots("out")}
        self.open = True

    def agrees(self, other: "_Group") -> bool:
        """Whether one loop can do both; what `other` reads of this one's results is seen to by :meth:`takes`."""
        return (
            (self.dtype, self.size) == (other.dtype, other.size)
            and (self.split is None or other.split is None or self.split == other.split)
            and not other.writes & (self.reads | self.writes)
            and not self.writes & other.writes
            and len(self.rows) + len(other.rows) < _MOST_CALLS
            and len(self.reads | self.writes | other.reads | other.writes) <= _MOST_ARRAYS
        )

    def takes(self, call: Call) -> bool:
        """Whether all that `call` reads of the group's results it reads element by element."""
        return all(
            value.buffer not in self.writes or (letter == "s" and _whole(value, self.size))
            for _, letter, value, _ in _inputs(call)
            if isinstance(value, Slot)
        )

    def union(self, other: "_Group") -> "_Group":
        """A group of both, for questions."""
        both = copy(self)
        both.rows = self.rows + other.rows
        both.split = self.split or other.split
        both.reads, both.writes = self.reads | other.reads, self.writes | other.writes
        return both

    def absorb(self, other: "_Group") -> None:
        """Take over the calls of another group, which is closed and empty then."""
        both = self.union(other)
        self.rows, self.split, self.reads, self.writes = both.rows, both.split, both.reads, both.writes
        other.rows, other.open = [], False

    def add(self, row: int, call: Call) -> None:
        """Add a call."""
        self.absorb(_Group(call))
        self.rows.append(row)


def fuse_elementwise(calls: Sequence[Call], facts: Facts) -> list[Call]:
    """Make chains of elementwise calls one loop each; see the module's docstring."""
    groups: list[_Group] = []
    touching: dict[Buffer, list[_Group]] = {}
    outside: list[_Group] = []  # open groups that read memory which others see
    for row, call in enumerate(calls):
        joined = _joined(call, touching) if _fits(call) else None
        for value, role in zip(call.arguments, call.kernel.roles, strict=True):
            if isinstance(value, Slot):
                for group in touching.get(value.buffer, ()):
                    if group is not joined and (role != "in" or value.buffer in group.writes):
                        group.open = False
                if role != "in" and value.buffer in facts.arguments:  # another name, perhaps, for what a group reads
                    for group in outside:
                        group.open = group.open and group is joined
                    outside = [group for group in outside if group.open]
        if joined is None:
            continue
        if not joined.rows:
            groups.append(joined)
        joined.add(row, call)
        for buffer in joined.reads | joined.writes:
            known = touching.setdefault(buffer, [])
            if joined not in known:
                known[:] = [group for group in known if group.open] + [joined]
        if joined not in outside and any(buffer not in facts.inner for buffer in joined.reads):
            outside.append(joined)
    result: list[Call | None] = list(calls)
    chains = [group for group in groups if len(group.rows) > 1]
    uses = Uses(calls if chains else [])
    for group in chains:
        group.rows.sort()
        fused = _fused([calls[row] for row in group.rows], group, facts, uses)
        if fused is not None:
            for row in group.rows:
                result[row] = None
            result[group.rows[-1]] = fused
    return [call for call in result if call is not None]


def _fits(call: Call) -> bool:
    form = call.kernel.loop
    return (
        form is not None
        and form.dtype in ("float32", "float64")
        and "S" not in form.pattern
        and loops_of(form.pattern) < 3
        and _size(call) >= FUSED_FROM
    )


def _sizes(call: Call) -> tuple[int, ...]:
    return tuple(call.arguments[: call.kernel.roles.count("size")])


def _size(call: Call) -> int:
    total = 1
    for n in _sizes(call):
        total *= n
    return total


def _inputs(call: Call) -> list[tuple[int, str, Any, str]]:
    """(symbol, letter, value, kind) of each input."""
    form = call.kernel.loop
    assert form is not None
    letters = [(i, letter) for i, letter in enumerate(form.pattern) if letter != "-"]
    first = len(_sizes(call))
    return [(*letters[j], call.arguments[first + j], call.kinds[first + j]) for j in range(len(letters))]


def _outputs(call: Call) -> list[Slot]:
    return list(call.arguments[len(_sizes(call)) + len(_inputs(call)) :])


def _joined(call: Call, touching: dict[Buffer, list[_Group]]) -> _Group:
    """The group that `call` joins: the open ones whose results it reads, made one, or a new one."""
    own = _Group(call)
    joined: _Group | None = None
    for _, letter, value, _ in _inputs(call):
        if letter != "s" or not isinstance(value, Slot):
            continue
        for group in touching.get(value.buffer, ()):
            if not group.open or value.buffer not in group.writes or group is joined or not group.takes(call):
                continue
            if joined is None:
                if group.agrees(own):
                    joined = group
            elif joined.agrees(group) and joined.union(group).agrees(own):
                joined.absorb(group)
    return own if joined is None else joined


def _whole(slot: Slot, size: int) -> bool:
    return slot.offset == 0 and slot.size == size and slot.buffer.nbytes == size * (8 if slot.dtype == "float64" else 4)


def _add(group: _Group, row: int, call: Call) -> None:
    group.rows.append(row)
    group.reads.update(slot.buffer for slot in call.slots("in"))
    group.writes.update(slot.buffer for slot in call.slots("out"))
    sizes = _sizes(call)
    if len(sizes) == 2:
        group.split = (sizes[0], sizes[1])


def _fused(members: list[Call], group: _Group, facts: Facts, uses: Uses) -> Call | None:
    """The one call for `members`; None where nobody sees any of their results."""
    rows = set(group.rows)
    values: dict[Buffer, Expr] = {}
    letters: list[str] = []
    inputs: list[Any] = []
    kinds: list[str] = []
    known: dict[tuple[Any, ...], Expr] = {}

    def take(letter: str, value: Any, kind: str) -> Expr:
        if isinstance(value, Slot):
            if value.buffer in values:
                return values[value.buffer]
            key = (value.buffer, value.offset, value.size, letter)
            if key in known:
                return known[key]
            known[key] = symbol(len(letters))
        letters.append(letter)
        inputs.append(value)
        kinds.append(kind)
        return symbol(len(letters) - 1)

    stores: list[tuple[Slot, Expr, str]] = []
    for call in members:
        form = call.kernel.loop
        assert form is not None
        given = {i: take(letter, value, kind) for i, letter, value, kind in _inputs(call)}
        results = [compose(root, given) for root in form.roots]
        for slot, root, dtype in zip(_outputs(call), results, form.out_dtypes, strict=True):
            if dtype == group.dtype and _whole(slot, group.size):
                values[slot.buffer] = root
            private = slot.buffer in facts.inner and all(row in rows for row, _, _ in uses.of(slot.buffer))
            if not private or slot.buffer not in values:
                stores.append((slot, root, dtype))
    if not stores:
        return None
    pattern = "".join(letters)
    sizes: tuple[int, ...] = (group.size,) if group.split is None else group.split
    if group.split is not None and not ("r" in pattern or "c" in pattern):
        sizes = (group.size,)
    roots = [root for _, root, _ in stores]
    out_dtypes = tuple(dtype for _, _, dtype in stores)
    kernel = _kernel(members, roots, group.dtype, pattern, out_dtypes)
    slots = [slot for slot, _, _ in stores]
    return Call(
        kernel,
        (*["word"] * len(sizes), *kinds, *[slot.dtype for slot in slots]),
        (*sizes, *inputs, *slots),
        ", ".join(dict.fromkeys(call.line for call in members)),
    )


def _kernel(members: list[Call], roots: list[Expr], dtype: str, pattern: str, out_dtypes: tuple[str, ...]) -> Kernel:
    text = loop_source(roots, dtype, pattern, out_dtypes)
    found = _kernels.get(text)
    if found is None:
        function, roles = compile_loop("fused", roots, dtype, pattern, out_dtypes)
        # Tables alone call it: what Python would need is not compiled.
        name = f"fused[{' '.join(call.kernel.name for call in members)}]"
        found = _kernels[text] = Kernel(name, function, roles, {})
        found.loop = LoopForm(tuple(roots), dtype, pattern, out_dtypes)
    return found
