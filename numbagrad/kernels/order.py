"""Stable sorting along the middle axis of (outer, n, inner): lower position first on ties, NaN last, both ways.

Every element becomes an int64 key whose order is the order asked for: an int is its own key; the bits of a float,
taken as int64, order as the float does once those of negative numbers are flipped. Short lines are merged, long
ones go through a radix sort a byte at a time that skips the bytes all keys share.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import njit

_U = np.uintp  # unsigned positions cannot mean "from the end", so LLVM sees plain loops
_ONE = np.uintp(1)
_WIDEN = np.int64(0)  # x + _WIDEN is float64 for floats and int64 for ints
_RUN = 16  # runs this short are sorted by insertion before they are merged
_RADIX = 128  # from here on the histograms cost less than merging (measured)
_LAST = np.int64(0x7FFFFFFFFFFFFFFF)


@njit
def _load_keys(x: Any, start: int, step: int, values: Any, keys: Any, descending: int) -> None:
    """Keys of the line of `x` at `start`; `values` is scratch of the wide dtype."""
    is_float = x.dtype.type(0.5) == 0.5
    for k in range(_U(keys.size)):
        values[k] = x[_U(start) + k * _U(step)] + _WIDEN
    bits = values.view(np.int64)
    for k in range(_U(keys.size)):
        key = bits[k]
        if is_float:
            if values[k] == 0:
                key = np.int64(0)  # -0 ties with 0
            elif key < 0:
                key ^= _LAST
        if descending:
            key = ~key
        if values[k] != values[k]:
            key = _LAST
        keys[k] = key


@njit
def _insert_runs(keys: Any, order: Any) -> None:
    n = keys.size
    for first in range(0, n, _RUN):
        for k in range(first + 1, min(first + _RUN, n)):
            key = keys[k]
            place = order[k]
            hole = _U(k)
            while hole > _U(first) and keys[hole - _ONE] > key:
                keys[hole] = keys[hole - _ONE]
                order[hole] = order[hole - _ONE]
                hole -= _ONE
            keys[hole] = key
            order[hole] = place


@njit
def _merge(keys: Any, order: Any, other_keys: Any, other_order: Any) -> bool:
    """Merge sorted runs pair by pair; True where the result ends in the other arrays."""
    n = keys.size
    width = _RUN
    swapped = False
    while width < n:
        for first in range(0, n, 2 * width):
            left = _U(first)
            middle = _U(min(first + width, n))
            right = middle
            end = _U(min(first + 2 * width, n))
            for k in range(left, end):
                if right >= end or (left < middle and keys[left] <= keys[right]):
                    other_keys[k] = keys[left]
                    other_order[k] = order[left]
                    left += _ONE
                else:
                    other_keys[k] = keys[right]
                    other_order[k] = order[right]
                    right += _ONE
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
        swapped = not swapped
        width *= 2
    return swapped


@njit(inline=True)
def _digit(key: Any, shift: Any) -> Any:
    return (_U(key) >> shift) & _U(255)


@njit
def _radix(keys: Any, order: Any, other_keys: Any, other_order: Any, counts: Any) -> bool:
    """Radix sort by bytes from the lowest; True where the result ends in the other arrays."""
    n = keys.size
    least = keys[0]
    for k in range(_U(n)):
        least = min(least, keys[k])
    differing = np.int64(0)
    for k in range(_U(n)):
        keys[k] -= least  # unsigned from here on; a narrow range of ints has few bytes
        differing |= keys[k]
    for i in range(_U(counts.size)):
        counts[i] = 0
    for k in range(_U(n)):
        for byte in range(8):
            counts[_U(256 * byte) + _digit(keys[k], _U(8 * byte))] += 1
    swapped = False
    for byte in range(8):
        shift = _U(8 * byte)
        if _digit(differing, shift) == 0:
            continue
        table = counts[byte * 256 : (byte + 1) * 256]
        total = 0
        for digit in range(_U(256)):
            here = table[digit]
            table[digit] = total
            total += here
        for k in range(_U(n)):
            key = keys[k]
            digit = _digit(key, shift)
            target = table[digit]
            table[digit] = target + 1
            other_keys[_U(target)] = key
            other_order[_U(target)] = order[k]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
        swapped = not swapped
    return swapped


@njit
def _sort_line(x: Any, start: int, step: int, descending: int, values: Any, keys: Any, order: Any, counts: Any) -> int:
    """Sort one line; `keys` and `order` hold two halves, and the answer is where in `order` the result begins."""
    n = values.size
    _load_keys(x, start, step, values, keys[:n], descending)
    for k in range(n):
        order[k] = k
    if n >= _RADIX:
        swapped = _radix(keys[:n], order[:n], keys[n:], order[n:], counts)
    else:
        _insert_runs(keys[:n], order[:n])
        swapped = _merge(keys[:n], order[:n], keys[n:], order[n:])
    return n if swapped else 0


@kernel("in out size size size size")
def argsort(x: Any, out: Any, outer: int, n: int, inner: int, descending: int) -> int:
    """``out[o, :, i]`` (int64) = the positions that sort ``x[o, :, i]``."""
    values = np.full(n, x.dtype.type(0) + _WIDEN)
    keys = np.empty(2 * n, np.int64)
    order = np.empty(2 * n, np.int64)
    counts = np.empty(2048 if n >= _RADIX else 0, np.int64)
    for o in range(outer):
        for i in range(inner):
            start = o * n * inner + i
            first = _sort_line(x, start, inner, descending, values, keys, order, counts)
            for k in range(n):
                out[_U(start + k * inner)] = order[_U(first + k)]
    return 0


@kernel("in out size size size size")
def sort(x: Any, out: Any, outer: int, n: int, inner: int, descending: int) -> int:
    """``out[o, :, i]`` = the elements of ``x[o, :, i]`` in order."""
    values = np.full(n, x.dtype.type(0) + _WIDEN)
    keys = np.empty(2 * n, np.int64)
    order = np.empty(2 * n, np.int64)
    counts = np.empty(2048 if n >= _RADIX else 0, np.int64)
    for o in range(outer):
        for i in range(inner):
            start = o * n * inner + i
            first = _sort_line(x, start, inner, descending, values, keys, order, counts)
            for k in range(n):
                out[_U(start + k * inner)] = x[_U(start + order[_U(first + k)] * inner)]
    return 0
