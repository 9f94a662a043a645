"""Largest and smallest elements along the middle axis of (outer, n, inner): values, positions, gradients.

A NaN wins, as in NumPy; the first of equal elements is the position.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import intrinsic, njit

_U = np.uintp  # unsigned positions cannot mean "from the end", so LLVM sees plain loops
_BLOCK = 1024
_RUN = 512  # elements of a line whose largest is found at once, before its place is; more in long lines
_SHORT = 32  # a line below that is gone through once; above, pieces of that length leave no rest to vector code
_FOLD = 128  # narrow rows are taken several at once as one line about this wide


def _extreme_intrinsic(name: str) -> Any:
    """``maximum`` or ``minimum`` of two numbers of one type; LLVM knows how to vectorise a loop over either."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        left, right = arguments
        if isinstance(kind, types.Boolean):
            return (builder.or_ if name == "maximum" else builder.and_)(left, right)
        if isinstance(kind, types.Integer):
            compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
            return builder.select(compare(">" if name == "maximum" else "<", left, right), left, right)
        declared = builder.module.declare_intrinsic(
            f"llvm.{name}", [left.type], ir.FunctionType(left.type, [left.type, left.type])
        )
        # nsz: either zero may win, so no code for the order of -0 and 0
        return builder.call(declared, [left, right], fastmath=("nsz",))

    @intrinsic(np.maximum if name == "maximum" else np.minimum)
    def extreme(typingctx: Any, left: Any, right: Any) -> Any:
        return left(left, left), build

    return extreme


def _hole_twin(like: Any) -> Any:
    return like.dtype.type(np.nan) if like.dtype.kind == "f" else like


@intrinsic(_hole_twin)
def _hole(typingctx: Any, like: Any) -> Any:
    """NaN in the type of `like`; of a type that has none, `like` itself."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(like, types.Float):
            return ir.Constant(arguments[0].type, float("nan"))
        return arguments[0]

    return like(like), build


_larger = _extreme_intrinsic("maximum")
_smaller = _extreme_intrinsic("minimum")


@njit(inline=True)
def _above(value: Any, best: Any) -> bool:
    return value > best


@njit(inline=True)
def _below(value: Any, best: Any) -> bool:
    return value < best


@njit(inline=True)
def _ties(value: Any, best: Any) -> bool:
    return (value == best) | ((value != value) & (best != best))


def _extreme_kernels(name: str, word: str, pick: Any, beats: Any) -> tuple[Kernel, Kernel]:
    @njit
    def run_extreme(x: Any, start: int, count: int) -> Any:
        first = _U(start)
        best = x[first]
        whole = count // _SHORT * _SHORT
        for i in range(_U(whole)):
            best = pick(best, x[first + i])
        if whole < count:
            rest = _U(_SHORT if whole > 0 else count)  # with some that were seen before, where there are
            first = _U(start + count) - rest
            for i in range(rest):
                best = pick(best, x[first + i])
        return best

    @njit
    def first_of(x: Any, start: int, count: int, best: Any) -> int:
        """The first place from `start` on that holds `best`, a number that is there; `count` is _SHORT or more."""
        none = np.int32(min(count, _SHORT))  # _SHORT; a literal LLVM would unroll, and then not vectorise
        for top in range(0, count, _SHORT):
            begin = min(top, count - none)
            first = _U(start + begin)
            place = none
            for i in range(none):
                place = min(place, np.int32(i) if x[first + _U(i)] == best else none)
            if place < none:
                return begin + place
        return 0

    @njit
    def pick_rows(x: Any, start: int, pitch: int, rows: int, best: Any, width: int) -> None:
        """Take into the first `width` of `best` what wins in `rows` rows, `pitch` elements apart."""
        step = _U(pitch)
        for group in range((rows + 3) // 4):
            row = max(min(group * 4, rows - 4), 0)  # the last rows once more where 4 do not divide them
            a = _U(start + row * pitch)
            b = a + step if rows > 1 else a
            c = b + step if rows > 2 else a
            d = c + step if rows > 3 else a
            for i in range(_U(width)):
                # Comparisons drop a NaN but are one instruction each, `pick` is three: NaNs are looked for apart.
                p, q, r, s = x[a + i], x[b + i], x[c + i], x[d + i]
                hole = _hole(p)
                missing = (p != p) | (q != q) | (r != r) | (s != s)
                p = p if beats(p, q) else q
                r = r if beats(r, s) else s
                p = p if beats(p, r) else r
                p = p if beats(p, best[i]) else best[i]
                best[i] = hole if missing else p

    @njit
    def pick_columns(x: Any, start: int, n: int, inner: int, best: Any, held: Any) -> None:
        """Write into `best` the winner of each of the `inner` columns of `n` rows; narrow rows by way of `held`."""
        fold = held.size // inner
        if n < 4 * fold:
            fold = 1
        lines = n // max(fold, 1)
        line = max(fold, 1) * inner
        into = held if fold > 1 else best
        first = _U(start)
        for i in range(_U(line)):
            into[i] = x[first + i]
        pick_rows(x, start, line, lines, into, line)
        for i in range(inner if fold > 1 else 0):
            winner = held[i]
            for copy in range(1, fold):
                winner = pick(winner, held[copy * inner + i])
            for row in range(lines * fold, n):
                winner = pick(winner, x[start + row * inner + i])
            best[i] = winner

    def extreme(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        if inner == 1:
            for o in range(outer):
                out[o] = run_extreme(x, o * n, n)
            return 0
        if inner == 0:
            return 0
        held = np.full(_FOLD if inner <= _FOLD // 2 else 0, x.dtype.type(0))
        for o in range(outer):
            pick_columns(x, o * n * inner, n, inner, out[o * inner : (o + 1) * inner], held)
        return 0

    @njit(inline=True)
    def where_ties(x: Any, position: int, step: int, best: Any) -> int:
        """The first position that holds `best`, which is known to be there."""
        if best == best:
            while x[_U(position)] != best:
                position += step
        else:
            while x[_U(position)] == x[_U(position)]:
                position += step
        return position

    def arg_extreme(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        if inner == 1 and n < _SHORT:
            for o in range(outer):
                first = _U(o * n)
                best = x[first]
                place = 0
                for k in range(1, n):
                    value = x[first + _U(k)]
                    wins = beats(value, best) | ((value != value) & (best == best))
                    best = value if wins else best
                    place = k if wins else place
                out[o] = place
            return 0
        if inner == 1:
            run = min(max(_RUN, n // 32), 16 * _RUN)
            for o in range(outer):
                best = x[o * n]
                home = o * n
                for start in range(o * n, (o + 1) * n, run):
                    winner = run_extreme(x, start, min(run, (o + 1) * n - start))
                    if beats(winner, best) or (winner != winner and best == best):
                        home = start
                        best = winner
                home = min(home, (o + 1) * n - _SHORT)
                if best == best:
                    home += first_of(x, home, (o + 1) * n - home, best)
                else:
                    home = where_ties(x, home, 1, best)
                out[o] = home - o * n
            return 0
        narrow = inner <= _FOLD // 2
        leaders = np.full(min(inner, _BLOCK), x.dtype.type(0))
        winners = np.full(inner if narrow else 0, x.dtype.type(0))
        held = np.full(_FOLD if narrow else 0, x.dtype.type(0))
        index = np.empty(leaders.size, np.int64)
        for o in range(outer if narrow else 0):
            base = o * n * inner
            for top in range(0, n, _BLOCK):
                pick_columns(x, base + top * inner, min(_BLOCK, n - top), inner, winners, held)
                for i in range(inner):
                    winner, best = winners[i], leaders[i]
                    if top == 0 or beats(winner, best) or (winner != winner and best == best):
                        leaders[i] = winner
                        index[i] = top
            for i in range(inner):
                position = base + index[i] * inner + i
                index[i] += (where_ties(x, position, inner, leaders[i]) - position) // inner
                out[o * inner + i] = index[i]
        for o in range(0 if narrow else outer):
            for left in range(0, inner, _BLOCK):
                width = min(_BLOCK, inner - left)
                for k in range(n):
                    a = _U((o * n + k) * inner + left)
                    for i in range(_U(width)):
                        value = x[a + i]
                        best = leaders[i]
                        wins = (k == 0) | beats(value, best) | ((value != value) & (best == best))
                        leaders[i] = value if wins else best
                        index[i] = k if wins else index[i]
                for i in range(width):
                    out[o * inner + left + i] = index[i]
        return 0

    extreme.__name__ = extreme.__qualname__ = f"{name}_"
    extreme.__doc__ = f"``out[o, i] =`` the {word} of ``x[o, :, i]``; NaN where there is one; n must not be 0."
    arg_extreme.__name__ = arg_extreme.__qualname__ = f"arg{name}"
    arg_extreme.__doc__ = f"``out[o, i] =`` where the {word} of ``x[o, :, i]`` first stands, in any dtype; n not 0."
    roles = kernel("in out size size size")
    return roles(extreme), roles(arg_extreme)


max_, argmax = _extreme_kernels("max", "largest", _larger, _above)
min_, argmin = _extreme_kernels("min", "smallest", _smaller, _below)


@kernel("in in in out size size size")
def extreme_vjp(g: Any, x: Any, y: Any, dx: Any, outer: int, n: int, inner: int) -> int:
    """The VJP of `max_` and `min_`: `g` shared equally among the elements that equal `y` (NaN equals NaN)."""
    shares = np.full(inner, dx.dtype.type(0))
    nothing = dx.dtype.type(0)
    for o in range(outer):
        top = _U(o * inner)
        for i in range(inner):
            shares[i] = nothing
        for k in range(n):
            a = _U((o * n + k) * inner)
            for i in range(_U(inner)):
                shares[i] += _ties(x[a + i], y[top + i])
        for i in range(_U(inner)):
            shares[i] = g[top + i] / max(shares[i], 1)
        for k in range(n):
            a = _U((o * n + k) * inner)
            for i in range(_U(inner)):
                dx[a + i] = shares[i] if _ties(x[a + i], y[top + i]) else nothing
    return 0
