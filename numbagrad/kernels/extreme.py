"""Largest and smallest elements along the middle axis of (outer, n, inner): values, positions, gradients.

A NaN wins, as in NumPy; the first of equal elements is the position.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import intrinsic, njit

_BLOCK = 1024
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


_larger = _extreme_intrinsic("maximum")
_smaller = _extreme_intrinsic("minimum")


@njit(inline=True)
def _above(value: Any, best: Any) -> bool:
    return value > best


@njit(inline=True)
def _below(value: Any, best: Any) -> bool:
    return value < best


def _extreme_kernels(name: str, word: str, pick: Any, beats: Any) -> tuple[Kernel, Kernel]:
    @njit
    def block_extreme(x: Any) -> Any:
        best = x[0]
        for i in range(x.size):
            best = pick(best, x[i])
        return best

    @njit
    def pick_rows(x: Any, best: Any, rows: int, pitch: int) -> None:
        """Take into `best` what wins in `rows` rows, `pitch` elements apart."""
        width = best.size
        groups = rows // 4
        for group in range(groups):
            at = group * 4 * pitch
            a = x[at : at + width]
            b = x[at + pitch : at + pitch + width]
            c = x[at + 2 * pitch : at + 2 * pitch + width]
            d = x[at + 3 * pitch : at + 3 * pitch + width]
            for i in range(width):
                best[i] = pick(best[i], pick(pick(a[i], b[i]), pick(c[i], d[i])))
        for row in range(rows - groups * 4):
            at = (groups * 4 + row) * pitch
            a = x[at : at + width]
            for i in range(width):
                best[i] = pick(best[i], a[i])

    def extreme(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        if inner == 1 and n < 32:
            at = 0
            for o in range(outer):
                best = x[at]
                for k in range(n):
                    best = pick(best, x[at + k])
                out[o] = best
                at += n
        elif inner == 1:
            for o in range(outer):
                out[o] = block_extreme(x[o * n : (o + 1) * n])
        elif inner <= _FOLD // 2 and n >= 4 * (_FOLD // inner):
            fold = _FOLD // inner
            lines = n // fold
            line = fold * inner
            best_line = np.full(line, x.dtype.type(0))
            for o in range(outer):
                part = x[o * n * inner : (o + 1) * n * inner]
                best_line[:] = part[:line]
                pick_rows(part, best_line, lines, line)
                result = out[o * inner : (o + 1) * inner]
                for i in range(inner):
                    result[i] = best_line[i]
                pick_rows(best_line, result, fold, inner)
                pick_rows(part[lines * line :], result, n - lines * fold, inner)
        else:
            for o in range(outer):
                part = x[o * n * inner : (o + 1) * n * inner]
                result = out[o * inner : (o + 1) * inner]
                for i in range(inner):
                    result[i] = part[i]
                pick_rows(part[inner:], result, n - 1, inner)
        return 0

    @njit
    def position(x: Any) -> int:
        best = x[0]
        home = 0
        for start in range(0, x.size, _BLOCK):
            winner = block_extreme(x[start : min(start + _BLOCK, x.size)])
            if winner != winner:
                home = start
                best = winner
                break
            if beats(winner, best):
                home = start
                best = winner
        block = x[home : min(home + _BLOCK, x.size)]
        for i in range(block.size):
            if block[i] == best or (best != best and block[i] != block[i]):
                return home + i
        return home

    def arg_extreme(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        if inner == 1 and n < 32:
            at = 0
            for o in range(outer):
                best = x[at]
                index = 0
                for k in range(n):
                    value = x[at + k]
                    if beats(value, best) or (value != value and best == best):
                        best = value
                        index = k
                out[o] = index
                at += n
        elif inner == 1:
            for o in range(outer):
                out[o] = position(x[o * n : (o + 1) * n])
        else:
            leaders = np.full(min(inner, _BLOCK), x.dtype.type(0))
            for o in range(outer):
                for left in range(0, inner, _BLOCK):
                    width = min(_BLOCK, inner - left)
                    leader = leaders[:width]
                    index = out[o * inner + left : o * inner + left + width]
                    leader[:] = x[o * n * inner + left : o * n * inner + left + width]
                    index[:] = 0
                    for k in range(1, n):
                        at = (o * n + k) * inner + left
                        row = x[at : at + width]
                        for i in range(width):
                            value = row[i]
                            best = leader[i]
                            wins = beats(value, best) | ((value != value) & (best == best))
                            leader[i] = value if wins else best
                            index[i] = k if wins else index[i]
        return 0

    extreme.__name__ = extreme.__qualname__ = f"{name}_"
    extreme.__doc__ = f"``out[o, i] =`` the {word} of ``x[o, :, i]``; NaN where there is one; n must not be 0."
    arg_extreme.__name__ = arg_extreme.__qualname__ = f"arg{name}"
    arg_extreme.__doc__ = f"``out[o, i]`` (int64) = where the {word} of ``x[o, :, i]`` first stands; n must not be 0."
    roles = kernel("in out size size size")
    return roles(extreme), roles(arg_extreme)


max_, argmax = _extreme_kernels("max", "largest", _larger, _above)
min_, argmin = _extreme_kernels("min", "smallest", _smaller, _below)


@njit(inline=True)
def _ties(value: Any, best: Any) -> bool:
    return (value == best) | ((value != value) & (best != best))


@kernel("in in in out size size size")
def extreme_vjp(g: Any, x: Any, y: Any, dx: Any, outer: int, n: int, inner: int) -> int:
    """The VJP of `max_` and `min_`: `g` shared equally among the elements that equal `y` (NaN equals NaN)."""
    shares = np.full(inner, dx.dtype.type(0))
    for o in range(outer):
        head = g[o * inner : (o + 1) * inner]
        best = y[o * inner : (o + 1) * inner]
        if inner == 1:
            row = x[o * n : (o + 1) * n]
            slope = dx[o * n : (o + 1) * n]
            count = 0
            for k in range(n):
                count += _ties(row[k], best[0])
            share = dx.dtype.type(head[0] / max(count, 1))
            nothing = dx.dtype.type(0)
            for k in range(n):
                slope[k] = share if _ties(row[k], best[0]) else nothing
        else:
            shares[:] = 0
            for k in range(n):
                row = x[(o * n + k) * inner : (o * n + k + 1) * inner]
                for i in range(inner):
                    shares[i] += _ties(row[i], best[i])
            for i in range(inner):
                shares[i] = head[i] / max(shares[i], 1)
            for k in range(n):
                row = x[(o * n + k) * inner : (o * n + k + 1) * inner]
                slope = dx[(o * n + k) * inner : (o * n + k + 1) * inner]
                for i in range(inner):
                    slope[i] = shares[i] if _ties(row[i], best[i]) else 0
    return 0
