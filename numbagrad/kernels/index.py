"""Reading and writing by positions: take, pick, one-hot, advanced indexing, boolean masks.

Positions are int64. Every kernel looks at all of them before its first write, and answers 1 where one is out of
range. `mode` says what becomes of a position outside an axis of length n: CLIP moves it to the nearest end, WRAP
counts round, RAISE takes -n to -1 as counted from the end and refuses the rest.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import kernel
from numbagrad.native.compiler import njit

CLIP, WRAP, RAISE = 0, 1, 2

_U = np.uintp  # unsigned positions cannot mean "from the end", so LLVM sees plain loops
_OUT_OF_RANGE = {1: (IndexError, "an index is out of the range of its axis, or the axis has length 0")}


@njit
def _refused(index: Any, count: int, n: int, mode: int) -> bool:
    """Whether some index means no element."""
    if n == 0:
        return count > 0
    bad = False
    if mode == RAISE:
        for k in range(_U(count)):
            bad |= (index[k] < -n) | (index[k] >= n)
    return bad


@njit(inline=True)
def _resolved(position: Any, n: int, mode: int) -> int:
    if mode == WRAP:
        return position - position // n * n
    if mode == RAISE:
        return position + n if position < 0 else position
    return min(max(position, 0), n - 1)


@kernel("in in out size size size size size", failures=_OUT_OF_RANGE)
def take(x: Any, index: Any, out: Any, outer: int, n: int, inner: int, count: int, mode: int) -> int:
    """``out[o, k, :] = x[o, index[k], :]``: `x` (outer, n, inner), `out` (outer, count, inner)."""
    if _refused(index, count, n, mode):
        return 1
    for o in range(outer):
        if inner == 1:
            for k in range(count):
                out[_U(o * count + k)] = x[_U(o * n + _resolved(index[k], n, mode))]
        else:
            for k in range(count):
                source = _U((o * n + _resolved(index[k], n, mode)) * inner)
                target = _U((o * count + k) * inner)
                for i in range(_U(inner)):
                    out[target + i] = x[source + i]
    return 0


@kernel("in in inout size size size size size", failures=_OUT_OF_RANGE)
def take_add(g: Any, index: Any, dx: Any, outer: int, n: int, inner: int, count: int, mode: int) -> int:
    """``dx[o, index[k], :] += g[o, k, :]``: the VJP of `take`, into a `dx` that the caller has filled."""
    if _refused(index, count, n, mode):
        return 1
    for o in range(outer):
        if inner == 1:
            for k in range(count):
                dx[_U(o * n + _resolved(index[k], n, mode))] += g[_U(o * count + k)]
        else:
            for k in range(count):
                target = _U((o * n + _resolved(index[k], n, mode)) * inner)
                source = _U((o * count + k) * inner)
                for i in range(_U(inner)):
                    dx[target + i] += g[source + i]
    return 0


@kernel("in in inout size size size size size", failures=_OUT_OF_RANGE)
def assign(x: Any, index: Any, out: Any, outer: int, n: int, inner: int, count: int, mode: int) -> int:
    """``out[o, index[k], :] = x[o, k, :]``; of two writes to one place the last one stays."""
    if _refused(index, count, n, mode):
        return 1
    for o in range(outer):
        if inner == 1:
            for k in range(count):
                out[_U(o * n + _resolved(index[k], n, mode))] = x[_U(o * count + k)]
        else:
            for k in range(count):
                target = _U((o * n + _resolved(index[k], n, mode)) * inner)
                source = _U((o * count + k) * inner)
                for i in range(_U(inner)):
                    out[target + i] = x[source + i]
    return 0


@kernel("in inout size size size", failures=_OUT_OF_RANGE)
def flat_index(index: Any, flat: Any, count: int, dim: int, stride: int) -> int:
    """``flat[k] += index[k] * stride``, one axis of length `dim` at a time: NumPy's rule, negative from the end."""
    if _refused(index, count, dim, RAISE):
        return 1
    for k in range(_U(count)):
        position = index[k]
        flat[k] += (position + dim if position < 0 else position) * stride
    return 0


@kernel("in in out size size size size", failures=_OUT_OF_RANGE)
def pick(x: Any, index: Any, out: Any, outer: int, n: int, inner: int, mode: int) -> int:
    """``out[o, i] = x[o, index[o, i], i]``: one element out of each line along the middle axis."""
    if _refused(index, outer * inner, n, mode):
        return 1
    for o in range(outer):
        for i in range(inner):
            at = _U(o * inner + i)
            out[at] = x[_U((o * n + _resolved(index[at], n, mode)) * inner + i)]
    return 0


@kernel("in in inout size size size size", failures=_OUT_OF_RANGE)
def pick_add(g: Any, index: Any, dx: Any, outer: int, n: int, inner: int, mode: int) -> int:
    """``dx[o, index[o, i], i] += g[o, i]``: the VJP of `pick`, into a `dx` that the caller has filled."""
    if _refused(index, outer * inner, n, mode):
        return 1
    for o in range(outer):
        for i in range(inner):
            at = _U(o * inner + i)
            dx[_U((o * n + _resolved(index[at], n, mode)) * inner + i)] += g[at]
    return 0


@kernel("in out size size scalar scalar")
def one_hot(index: Any, out: Any, count: int, depth: int, on: Any, off: Any) -> int:
    """Row k of `out` (count, depth) is `off` everywhere but `on` at ``index[k]``; all `off` out of range."""
    lit = out.dtype.type(on)
    dark = out.dtype.type(off)
    for i in range(_U(count * depth)):
        out[i] = dark
    for k in range(count):
        if 0 <= index[k] < depth:
            out[_U(k * depth + index[k])] = lit
    return 0


@kernel("in out size")
def count_true(mask: Any, count: Any, n: int) -> int:
    """``count[0]`` (int64) = how many of `n` elements are not 0."""
    total = 0
    for i in range(_U(n)):
        total += mask[i] != 0
    count[0] = total
    return 0


@kernel("in out size size")
def true_positions(mask: Any, positions: Any, n: int, count: int) -> int:
    """The positions (int64, ascending) of the first `count` elements of `mask` that are not 0."""
    found = 0
    for i in range(n):
        if found == count:
            break
        positions[_U(found)] = i  # written always and kept if true: no branch to mispredict
        found += mask[_U(i)] != 0
    return 0
