"""The loop that runs a table.

A table is one int64 array: a header, rows, words and patches (offsets count from its beginning).

====================  =====================================================================================
``code[0]``           number of rows
``code[1]``           offset of the rows; a row is (thunk address, offset of its words, offset of its scalars)
``code[2]``           address of the float64 scalars
``code[3]``           offset of the patch bounds: patches of array j are number bounds[j] to bounds[j + 1]
``code[4]``           offset of the patches; a patch is (offset of the word, bytes to add)
====================  =====================================================================================

Arrays that differ from call to call - arguments and results - reach the table by their patches: each writes the
address of the array, plus an offset, into a word. The walk stops at the first row with a nonzero status.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

from numbagrad.native.cache import generated_module
from numbagrad.native.compiler import PYTHON_MODE, njit
from numbagrad.native.memory import address, call_thunk

HEADER = 5

FIRST = np.int64(0)
"""A number that Numba does not take for a literal, with a copy of the callee for each."""

ROW = 2**40
"""Statuses are below this."""


@njit
def patch(code: Any, which: int, address: int) -> int:
    """Write the address of array number `which` into the words that name it; returns the next number."""
    bounds = code[3] + which
    first = code[bounds]
    at = code[4] + 2 * first
    for _ in range(code[bounds + 1] - first):
        code[code[at]] = address + code[at + 1]
        at += 2
    return which + 1


@njit
def walk(code: Any) -> int:
    """Run the rows; 0, or :data:`ROW` times the number of the row that failed (from 1) plus its status."""
    base = address(code)
    at = code[1]
    scalars = code[2]
    for row in range(code[0]):
        status = call_thunk(code[at], base + 8 * code[at + 1], scalars + 8 * code[at + 2])
        if status != 0:
            return ROW * (row + 1) + status
        at += 3
    return 0


@cache
def entry(dtypes: tuple[str, ...]) -> Any:
    """``entry(code, array, ...)``: patch the arrays, of these dtypes, and walk; one compiled form a set of dtypes.

    What is returned is the compiled form itself, not Numba's dispatcher, which takes 0.7 us to find it: the arrays must
    be flat, aligned, contiguous and of these dtypes.
    """
    names = [f"x{j}" for j in range(len(dtypes))]
    lines = [
        f"# {' '.join(dtypes)}",
        "from numbagrad.capture.walker import FIRST, patch, walk",
        "from numbagrad.native.compiler import njit",
        "from numbagrad.native.memory import address",
        "",
        "",
        "@njit",
        f"def run({', '.join(['code', *names])}):",
        "    which = FIRST",
        *[f"    which = patch(code, which, address({name}))" for name in names],
        "    return walk(code)",
        "",
    ]
    run = generated_module("entry", "\n".join(lines)).run
    if PYTHON_MODE:
        return run
    return run.compile(tuple(types.Array(from_dtype(np.dtype(name)), 1, "C") for name in ("int64", *dtypes)))
