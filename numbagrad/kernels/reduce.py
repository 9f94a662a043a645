"""Reductions of the middle axis of arrays seen as (outer, n, inner), and their vector-Jacobian products.

A sum runs over blocks of 256 terms in the dtype and over blocks in float64 (ints: int64 throughout), so ten
million equal float32 terms stay within 2e-7, and the result depends on the sizes alone. A sum of rows
(``inner > 1``) adds eight rows at a time, so that it goes through the sums an eighth as often.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import REASSOCIATE, njit
from numbagrad.native.memory import piece

_BLOCK = 256  # terms added in the dtype itself: 1,024 equal float32 terms were up to 5e-7 off, 256 stay within 2e-7
_ROWS = 1024  # rows added straight into the result
_STRIP = 1024  # columns whose sums are held at once: they stay in the first-level cache
_FOLD = 128  # narrow rows are taken several at once as one line about this wide, to fill the vector registers
_WIDEN = np.int64(0)  # x + _WIDEN is float64 for floats and int64 for ints
_U = np.uintp  # unsigned positions cannot mean "from the end", so LLVM sees plain loops
_KEEP = np.int16(0)  # x + _KEEP keeps float32 and float64, and takes narrow ints out of unsigned arithmetic

# ---------------------------------------------------------------------------------------------------- terms


@njit(inline=True)
def _itself(value: Any, zero: Any) -> Any:
    return value + _KEEP


@njit(inline=True)
def _square(value: Any, zero: Any) -> Any:
    signed = value + _KEEP
    return signed * signed


@njit(inline=True)
def _magnitude(value: Any, zero: Any) -> Any:
    return abs(value + _KEEP)


@njit(inline=True)
def _number(value: Any, zero: Any) -> Any:
    return value + _KEEP if value == value else zero


@njit(inline=True)
def _nonzero(value: Any, zero: Any) -> Any:
    return zero + (value != 0)


# ----------------------------------------------------------------------------------------------------- sums


def _sum_kernel(name: str, doc: str, term: Any, *, into: bool = False, mean: bool = False) -> Kernel:
    """A kernel that adds ``term(x)``; `into` adds to what `out` holds, `mean` divides by n."""

    @njit(fastmath=REASSOCIATE)
    def block_sum(x: Any, start: int, count: int) -> Any:
        zero = x.dtype.type(0) + _KEEP
        total = zero
        first = _U(start)
        for i in range(_U(count)):
            total += term(x[first + i], zero)
        return total

    def reduce(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        zero = x.dtype.type(0) + _KEEP
        if inner == 1:
            for o in range(outer):
                total = zero + _WIDEN
                for start in range(0, n, _BLOCK):
                    total += block_sum(x, o * n + start, min(_BLOCK, n - start))
                value = total / n if mean else total
                if into:
                    out[o] += value
                else:
                    out[o] = value
            return 0
        if inner == 0:
            return 0
        # Rows are added straight into `out`, or by way of a partial sum in the dtype and a total in float64. Which
        # of the two is said by lengths of loops, and all is one function: LLVM would compile copies of it otherwise.
        fold = _FOLD // inner if inner <= _FOLD // 2 else 1
        if n < 4 * fold:
            fold = 1
        lines = n // fold
        line = fold * inner
        direct = fold == 1 and n <= _ROWS
        strip = max(min(line, _STRIP), 1)
        chunk = max(n, 1) if direct else _BLOCK
        held = 0 if direct else strip
        totals = np.full(held, zero + _WIDEN)
        sums = out if direct else np.empty(held, out.dtype)
        hop = inner if direct else 0
        leap = 1 if direct else 0
        step = _U(line)
        for o in range(outer):
            base = o * n * inner
            for left in range(0, line, strip):
                width = _U(min(strip, line - left))
                kept = min(_U(held), width)
                first = _U(o * hop + left * leap)
                for i in range(kept):
                    totals[i] = 0
                for top in range(0, max(lines, 1), chunk):
                    rows = min(chunk, lines - top)
                    start = base + top * line + left
                    for i in range(kept if into else width):
                        sums[first + i] = 0
                    for group in range(rows // 4):
                        a = _U(start + group * 4 * line)
                        b = a + step
                        c = b + step
                        d = c + step
                        for i in range(width):
                            sums[first + i] += (term(x[a + i], zero) + term(x[b + i], zero)) + (
                                term(x[c + i], zero) + term(x[d + i], zero)
                            )
                    e = _U(start + rows // 4 * 4 * line)
                    for _ in range(rows % 4):
                        for i in range(width):
                            sums[first + i] += term(x[e + i], zero)
                        e += step
                    for i in range(kept):
                        totals[i] += sums[i]
                for i in range(min(_U(inner), kept)):
                    total = totals[i]
                    for copy in range(1, fold):
                        total += totals[_U(copy * inner) + i]
                    for row in range(lines * fold, n):
                        total += term(x[_U(base + row * inner) + i], zero)
                    value = total / n if mean else total
                    if into:
                        out[_U(o * inner + left) + i] += value
                    else:
                        out[_U(o * inner + left) + i] = value
        if mean:
            divisor = out.dtype.type(n)  # exact: no more than _ROWS, so that the quotient is rounded once
            for i in range(_U(outer * inner if direct else 0)):
                out[i] /= divisor
        return 0

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = doc
    return kernel("in inout size size size" if into else "in out size size size")(reduce)


sum_ = _sum_kernel("sum_", "``out[o, i] = sum of x[o, :, i]``; 0 where n is 0.", _itself)
sum_into = _sum_kernel("sum_into", "``out[o, i] += sum of x[o, :, i]``: undoes a broadcast.", _itself, into=True)
mean = _sum_kernel("mean", "``out[o, i] = mean of x[o, :, i]``; NaN where n is 0.", _itself, mean=True)
nansum = _sum_kernel("nansum", "The sum of what is not NaN.", _number)
sum_squares = _sum_kernel("sum_squares", "The sum of squares.", _square)
sum_abs = _sum_kernel("sum_abs", "The sum of magnitudes.", _magnitude)
count_nonzero = _sum_kernel("count_nonzero", "How many elements are not 0 (NaN is not), as int64.", _nonzero)


@kernel("in out size size size")
def expand(g: Any, out: Any, outer: int, n: int, inner: int) -> int:
    """``out[o, :, i] = g[o, i]``: the VJP of a sum."""
    for o in range(outer):
        if inner == 1:
            value = g[o]
            line = piece(out, o * n, n)
            for i in range(n):
                line[i] = value
        else:
            row = piece(g, o * inner, inner)
            for k in range(n):
                line = piece(out, (o * n + k) * inner, inner)
                for i in range(inner):
                    line[i] = row[i]
    return 0


@kernel("in out size size size")
def expand_mean(g: Any, out: Any, outer: int, n: int, inner: int) -> int:
    """``out[o, :, i] = g[o, i] / n``: the VJP of a mean."""
    for o in range(outer):
        if inner == 1:
            value = out.dtype.type(g[o] / n)
            line = piece(out, o * n, n)
            for i in range(n):
                line[i] = value
        else:
            row = piece(g, o * inner, inner)
            for k in range(n):
                line = piece(out, (o * n + k) * inner, inner)
                for i in range(inner):
                    line[i] = row[i] / n
    return 0


# --------------------------------------------------------------------------------------------- any and all


@njit
def _block_holds(x: Any, zero: bool) -> bool:
    found = False
    for i in range(x.size):
        found |= (x[i] == 0) == zero
    return found


@njit
def _search(x: Any, out: Any, outer: int, n: int, inner: int, zero: bool) -> None:
    """Whether a zero (or a nonzero) is found; `out` is set where the answer is as `zero` is not."""
    for o in range(outer):
        if inner == 1:
            row = piece(x, o * n, n)
            found = False
            for start in range(0, n, _STRIP):
                found = _block_holds(row[start : min(start + _STRIP, n)], zero)
                if found:
                    break
            out[o] = found != zero
        else:
            answers = piece(out, o * inner, inner)
            for i in range(inner):
                answers[i] = zero
            for k in range(n):
                row = piece(x, (o * n + k) * inner, inner)
                for i in range(inner):
                    if (row[i] == 0) == zero:
                        answers[i] = not zero


@kernel("in out size size size")
def any_(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
    """Whether some element is not 0, into bool `out`; False where n is 0."""
    _search(x, out, outer, n, inner, False)
    return 0


@kernel("in out size size size")
def all_(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
    """Whether no element is 0, into bool `out`; True where n is 0."""
    _search(x, out, outer, n, inner, True)
    return 0


# -------------------------------------------------------------------------------------------------- products


def _product_kernels(suffix: str, doc: str, skip_nan: bool) -> tuple[Kernel, Kernel]:
    @njit(inline=True)
    def factor(value: Any, one: Any) -> Any:
        if skip_nan:
            return value + _KEEP if value == value else one
        return value + _KEEP

    @njit(fastmath=REASSOCIATE)
    def run_product(x: Any) -> Any:
        one = x.dtype.type(1) + _KEEP
        total = one + _WIDEN
        for i in range(x.size):
            total *= factor(x[i], one) + _WIDEN
        return total

    def prod(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        one = x.dtype.type(1) + _KEEP
        for o in range(outer):
            if inner == 1:
                out[o] = run_product(piece(x, o * n, n))
            else:
                products = piece(out, o * inner, inner)
                for i in range(inner):
                    products[i] = 1
                for k in range(n):
                    row = piece(x, (o * n + k) * inner, inner)
                    for i in range(inner):
                        products[i] *= factor(row[i], one)
        return 0

    def prod_vjp(g: Any, x: Any, dx: Any, outer: int, n: int, inner: int) -> int:
        one = x.dtype.type(1) + _KEEP
        before = np.full(n * inner, one + _WIDEN)  # the product of the elements before each
        after = np.full(inner, one + _WIDEN)
        for o in range(outer):
            base = o * n * inner
            for k in range(1, n):
                row = piece(x, base + (k - 1) * inner, inner)
                last = before[(k - 1) * inner : k * inner]
                here = before[k * inner : (k + 1) * inner]
                for i in range(inner):
                    here[i] = last[i] * factor(row[i], one)
            head = piece(g, o * inner, inner)
            for i in range(inner):
                after[i] = head[i]
            for back in range(n):
                k = n - 1 - back
                row = piece(x, base + k * inner, inner)
                slope = piece(dx, base + k * inner, inner)
                here = before[k * inner : (k + 1) * inner]
                for i in range(inner):
                    if skip_nan and row[i] != row[i]:
                        slope[i] = 0
                    else:
                        slope[i] = here[i] * after[i]
                    after[i] *= factor(row[i], one)
        return 0

    prod.__name__ = prod.__qualname__ = f"{suffix}prod"
    prod.__doc__ = doc
    prod_vjp.__name__ = prod_vjp.__qualname__ = f"{suffix}prod_vjp"
    prod_vjp.__doc__ = (
        f"``dx[o, k, i] = g[o, i] *`` the {suffix}product of the others: products from both sides, exact with zeros."
    )
    return kernel("in out size size size")(prod), kernel("in in out size size size")(prod_vjp)


prod, prod_vjp = _product_kernels("", "``out[o, i] = product of x[o, :, i]``; 1 where n is 0.", False)
nanprod, nanprod_vjp = _product_kernels("nan", "The product of what is not NaN.", True)


@kernel("in out size size size size")
def cumsum(x: Any, out: Any, outer: int, n: int, inner: int, reverse: int) -> int:
    """Running sums along the middle axis, from its end where `reverse` is not 0 (the VJP of the other one)."""
    totals = np.full(inner, x.dtype.type(0) + _WIDEN)
    for o in range(outer):
        if inner == 1:
            row = piece(x, o * n, n)
            sums = piece(out, o * n, n)
            total = x.dtype.type(0) + _WIDEN
            if reverse:
                for k in range(n):
                    total += row[n - 1 - k] + _KEEP
                    sums[n - 1 - k] = total
            else:
                for k in range(n):
                    total += row[k] + _KEEP
                    sums[k] = total
        else:
            totals[:] = 0
            for k in range(n):
                at = (o * n + (n - 1 - k if reverse else k)) * inner
                row = piece(x, at, inner)
                sums = piece(out, at, inner)
                for i in range(inner):
                    totals[i] += row[i] + _KEEP
                    sums[i] = totals[i]
    return 0
