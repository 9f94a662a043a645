"""Stable sorting along the middle axis of (outer, n, inner): lower position first on ties, NaN last, both ways.

Every element becomes an int64 key whose order is the order asked for: an int is its own key; the bits of a float,
taken as int64, order as the float does once those of negative numbers are flipped. Short lines are merged, long
ones go through a radix sort a byte at a time that skips the bytes all keys share.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import njit

_U = np.uintp
_WIDEN = np.int64(0)  # x + _WIDEN is float64 for floats and int64 for ints
_RUN = 8  # lines this short are sorted by insertion before they are merged
_RADIX = 1024  # from here on eight histograms cost less than merging
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
            hole = k
            while hole > first and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                order[hole] = order[hole - 1]
                hole -= 1
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
            left = first
            middle = min(first + width, n)
            right = middle
            end = min(first + 2 * width, n)
            for k in range(first, end):
                if right >= end or (left < middle and keys[left] <= keys[right]):
                    other_keys[k] = keys[left]
                    other_order[k] = order[left]
                    left += 1
                else:
                    other_keys[k] = keys[right]
                    other_order[k] = order[right]
                    right += 1
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
        swapped = not swapped
        width *= 2
    return swapped


@njit
def _radix(keys: Any, order: Any, other_keys: Any, other_order: Any, counts: Any) -> bool:
    """Radix sort by bytes from the lowest; True where the result ends in the other arrays."""
    n = keys.size
    counts[:] = 0
    sign = np.uint64(1 << 63)
    for k in range(n):
        bits = np.uint64(keys[k]) ^ sign
        for byte in range(8):
            counts[byte * 256 + np.int64((bits >> np.uint64(8 * byte)) & np.uint64(255))] += 1
    swapped = False
    for byte in range(8):
        shift = np.uint64(8 * byte)
        table = counts[byte * 256 : (byte + 1) * 256]
        if table[np.int64(((np.uint64(keys[0]) ^ sign) >> shift) & np.uint64(255))] == n:
            continue
        total = 0
        for digit in range(256):
            here = table[digit]
            table[digit] = total
            total += here
        for k in range(n):
            key = keys[k]
            digit = np.int64(((np.uint64(key) ^ sign) >> shift) & np.uint64(255))
            target = table[digit]
            table[digit] = target + 1
            other_keys[target] = key
            other_order[target] = order[k]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
        swapped = not swapped
    return swapped


@njit
def _sort_line(
    x: Any, start: int, step: int, descending: int, values: Any, keys: Any, order: Any, counts: Any
) -> int:
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
                out[start + k * inner] = order[first + k]
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
                out[start + k * inner] = x[start + order[first + k] * inner]
    return 0
