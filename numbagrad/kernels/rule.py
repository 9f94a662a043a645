"""From the rule of an optimiser, its kernels over one array and over all parameters through a table of addresses.

A rule is ``rule(w, g, *states, hyper, rescale)`` on arrays of one size, with up to three states. A table is an int64
array with a row a parameter: the addresses of weight, gradient and states, and their size. Since an address carries no
dtype, there is one kernel a dtype. What changes from step to step is in `hyper`, a flat float64 array with one row a
parameter, so that a captured step reads the new values; its columns begin with rate, weight decay and clipping and end
with the step count, to which the rule adds 1. A rule may have a beginning, ``begin(hyper, i)``, which writes to row i
what is costly to compute, for parameters in step by a copy of the row before, and counts the step itself; the kernels
over tables run it, the caller of a kernel over one array runs ``Rule.begin`` before. The caller answers for the
addresses being alive, aligned and contiguous, and for the versions of what is written.

`rescale` multiplies every gradient. A `clip` <= 0 is off; NaN passes through it.
"""

from typing import Any, NamedTuple

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import njit
from numbagrad.native.memory import ARRAY_AT, piece


def _over_array(rule: Any, states: int) -> Kernel:
    """The kernel ``(w, g, *states, hyper, rescale)`` over one array."""
    if states == 0:

        @kernel("inout in inout scalar")
        def update(w: Any, g: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, hyper, rescale)
            return 0

    elif states == 1:

        @kernel("inout in inout inout scalar")
        def update(w: Any, g: Any, a: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, hyper, rescale)
            return 0

    elif states == 2:

        @kernel("inout in inout inout inout scalar")
        def update(w: Any, g: Any, a: Any, b: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, b, hyper, rescale)
            return 0

    else:

        @kernel("inout in inout inout inout inout scalar")
        def update(w: Any, g: Any, a: Any, b: Any, c: Any, hyper: Any, rescale: float) -> int:
            rule(w, g, a, b, c, hyper, rescale)
            return 0

    return update


def _over_table(rule: Any, begin: Any, states: int, width: int, at: Any) -> Kernel:
    """The kernel ``(table, hyper, count, rescale)``; `width` is the length of a row of `hyper`."""
    if states == 0:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                begin(hyper, i)
                row = piece(table, 3 * i, 3)
                rule(at(row[0], row[2]), at(row[1], row[2]), piece(hyper, width * i, width), rescale)
            return 0

    elif states == 1:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                begin(hyper, i)
                row = piece(table, 4 * i, 4)
                w, g = at(row[0], row[3]), at(row[1], row[3])
                rule(w, g, at(row[2], row[3]), piece(hyper, width * i, width), rescale)
            return 0

    elif states == 2:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                begin(hyper, i)
                row = piece(table, 5 * i, 5)
                w, g = at(row[0], row[4]), at(row[1], row[4])
                rule(w, g, at(row[2], row[4]), at(row[3], row[4]), piece(hyper, width * i, width), rescale)
            return 0

    else:

        @kernel("in inout size scalar")
        def update(table: Any, hyper: Any, count: int, rescale: float) -> int:
            for i in range(count):
                begin(hyper, i)
                row = piece(table, 6 * i, 6)
                w, g = at(row[0], row[5]), at(row[1], row[5])
                a, b, c = at(row[2], row[5]), at(row[3], row[5]), at(row[4], row[5])
                rule(w, g, a, b, c, piece(hyper, width * i, width), rescale)
            return 0

    return update


def _over_rows(begin: Any) -> Kernel:
    """The kernel ``(hyper, count)``: the beginning of a step for all rows."""

    @kernel("inout size")
    def begin_rows(hyper: Any, count: int) -> int:
        for i in range(count):
            begin(hyper, i)
        return 0

    return begin_rows


@njit
def _nothing(hyper: Any, i: int) -> None:
    """The beginning of a rule that has none."""


class Rule(NamedTuple):
    """The kernels of a rule."""

    columns: tuple[str, ...]
    """What a row of `hyper` holds."""
    array: Kernel
    tables: dict[str, Kernel]
    """By dtype."""
    begin: Kernel | None
    """``(hyper, count)``, to be run before :attr:`array`; None for most."""


def kernels_of(name: str, rule: Any, states: int, *columns: str, begin: Any = None) -> Rule:
    """The kernels of a rule with so many states; `columns` stand between clipping and the step count."""
    columns = ("lr", "wd", "clip", *columns, "t")
    array = _over_array(rule, states)
    first = _nothing if begin is None else begin
    tables = {
        dtype: _over_table(rule, first, states, len(columns), ARRAY_AT[dtype]) for dtype in ("float32", "float64")
    }
    array.name = f"{name}_array"
    for each in tables.values():
        each.name = f"{name}_table"
    rows = None if begin is None else _over_rows(begin)
    if rows is not None:
        rows.name = f"{name}_begin"
    return Rule(columns, array, tables, rows)
