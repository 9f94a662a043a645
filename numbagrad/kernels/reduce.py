"""Reductions of the middle axis of arrays seen as (outer, n, inner), and their vector-Jacobian products.

A sum runs over blocks of 256 terms in the dtype and over blocks in float64 (ints: int64 throughout), so ten
million equal float32 terms stay within 2e-7, and the result depends on the sizes alone. A sum of rows
(``inner > 1``) adds eight rows at a time, so that it goes through the sums an eighth as often.
"""

from typing import Any

import numpy as np


from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.native.compiler import REASSOCIATE, njit

_BLOCK = 256  # terms added in the dtype itself: 1,024 equal float32 terms were up to 5e-7 off, 256 stay within 2e-7
_ROWS = 1024  # rows added straight into the result
_STRIP = 1024  # columns whose sums are held at once: they stay in the first-level cache
_FOLD = 128  # narrow rows are taken several at once as one line about this wide, to fill the vector registers
_WIDEN = np.int64(0)  # x + _WIDEN is float64 for floats and int64 for ints
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
    def block_sum(x: Any) -> Any:
        zero = x.dtype.type(0) + _KEEP
        total = zero
        for i in range(x.size):
            total += term(x[i], zero)
        return total

    @njit
    def run_sum(x: Any) -> Any:
        total = x.dtype.type(0) + _WIDEN
        blocks = x.size // _BLOCK
        for block in range(blocks):
            total += block_sum(x[block * _BLOCK : (block + 1) * _BLOCK])
        if x.size > blocks * _BLOCK:
            total += block_sum(x[blocks * _BLOCK : x.size])
        return total

    @njit(fastmath=REASSOCIATE)
    def short_rows(x: Any, out: Any, outer: int, n: int) -> None:
        """Rows too short for a vector loop: the processor overlaps them."""
        zero = x.dtype.type(0) + _KEEP
        at = 0
        for o in range(outer):
            total = zero
            for i in range(n):
                total += term(x[at + i], zero)
            at += n
            value = (total + _WIDEN) / n if mean else total + _WIDEN
            if into:
                out[o] += value
            else:
                out[o] = value

    @njit
    def add_rows(x: Any, total: Any, rows: int, pitch: int) -> None:
        """Add `rows` rows, `pitch` elements apart, to `total`."""
        width = total.size
        zero = x.dtype.type(0) + _KEEP
        groups = rows // 8
        for group in range(groups):
            at = group * 8 * pitch
            a = x[at : at + width]
            b = x[at + pitch : at + pitch + width]
            c = x[at + 2 * pitch : at + 2 * pitch + width]
            d = x[at + 3 * pitch : at + 3 * pitch + width]
            e = x[at + 4 * pitch : at + 4 * pitch + width]
            f = x[at + 5 * pitch : at + 5 * pitch + width]
            g = x[at + 6 * pitch : at + 6 * pitch + width]
            h = x[at + 7 * pitch : at + 7 * pitch + width]
            for i in range(width):
                total[i] += (
                    (term(a[i], zero) + term(b[i], zero)) + (term(c[i], zero) + term(d[i], zero))
                ) + ((term(e[i], zero) + term(f[i], zero)) + (term(g[i], zero) + term(h[i], zero)))
        for row in range(rows - groups * 8):
            at = (groups * 8 + row) * pitch
            a = x[at : at + width]
            for i in range(width):
                total[i] += term(a[i], zero)

    @njit
    def store(total: Any, out: Any, n: int) -> None:
        for i in range(total.size):
            value = total[i] / n if mean else total[i]
            if into:
                out[i] += value
            else:
                out[i] = value

    @njit
    def long_columns(x: Any, out: Any, outer: int, n: int, inner: int) -> None:
        """Sums of rows by way of a partial sum in the dtype and a total in float64."""
        fold = 1
        if inner <= _FOLD // 2 and n >= 4 * (_FOLD // inner):
            fold = _FOLD // inner
        lines = n // fold
        line = fold * inner
        partial = np.full(min(line, _STRIP), x.dtype.type(0) + _KEEP)
        total = np.full(min(line, _STRIP), x.dtype.type(0) + _WIDEN)
        for o in range(outer):
            part = x[o * n * inner : (o + 1) * n * inner]
            for left in range(0, line, _STRIP):
                width = min(_STRIP, line - left)
                sums = total[:width]
                sums[:] = 0
                for top in range(0, lines, _BLOCK):
                    partial[:width] = 0
                    add_rows(part[top * line + left :], partial[:width], min(_BLOCK, lines - top), line)
                    for i in range(width):
                        sums[i] += partial[i]
                if fold == 1:
                    store(sums, out[o * inner + left : o * inner + left + width], n)
                else:
                    for copy in range(1, fold):
                        for i in range(inner):
                            sums[i] += sums[copy * inner + i]
                    add_rows(part[lines * line :], sums[:inner], n - lines * fold, inner)
                    store(sums[:inner], out[o * inner : (o + 1) * inner], n)

    def reduce(x: Any, out: Any, outer: int, n: int, inner: int) -> int:
        if inner == 1 and n < 32:
            short_rows(x, out, outer, n)
        elif inner == 1:
            for o in range(outer):
                total = run_sum(x[o * n : (o + 1) * n])
                value = total / n if mean else total
                if into:
                    out[o] += value
                else:
                    out[o] = value
        elif n > _ROWS or (inner <= _FOLD // 2 and n * inner >= 8 * _FOLD):
            long_columns(x, out, outer, n, inner)
        else:
            for o in range(outer):
                sums = out[o * inner : (o + 1) * inner]
                if not into:
                    for i in range(inner):
                        sums[i] = 0
                add_rows(x[o * n * inner : (o + 1) * n * inner], sums, n, inner)
                if mean:
                    for i in range(inner):
                        sums[i] /= n
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
            line = out[o * n : (o + 1) * n]
            for i in range(n):
                line[i] = value
        else:
            row = g[o * inner : (o + 1) * inner]
            for k in range(n):
                line = out[(o * n + k) * inner : (o * n + k + 1) * inner]
                for i in range(inner):
                    line[i] = row[i]
    return 0


@kernel("in out size size size")
def expand_mean(g: Any, out: Any, outer: int, n: int, inner: int) -> int:
    """``out[o, :, i] = g[o, i] / n``: the VJP of a mean."""
    for o in range(outer):
        if inner == 1:
            value = out.dtype.type(g[o] / n)
            line = out[o * n : (o + 1) * n]
            for i in range(n):
                line[i] = value
        else:
            row = g[o * inner : (o + 1) * inner]
            for k in range(n):
                line = out[(o * n + k) * inner : (o * n + k + 1) * inner]
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
            row = x[o * n : (o + 1) * n]
            found = False
            for start in range(0, n, _STRIP):
                found = _block_holds(row[start : min(start + _STRIP, n)], zero)
                if found:
                    break
            out[o] = found != zero
        else:
            answers = out[o * inner : (o + 1) * inner]
            for i in range(inner):
                answers[i] = zero
            for k in range(n):
                row = x[(o * n + k) * inner : (o * n + k + 1) * inner]
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
                out[o] = run_product(x[o * n : (o + 1) * n])
            else:
                products = out[o * inner : (o + 1) * inner]
                for i in range(inner):
                    products[i] = 1
                for k in range(n):
                    row = x[(o * n + k) * inner : (o * n + k + 1) * inner]
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
                row = x[base + (k - 1) * inner : base + k * inner]
                last = before[(k - 1) * inner : k * inner]
                here = before[k * inner : (k + 1) * inner]
                for i in range(inner):
                    here[i] = last[i] * factor(row[i], one)
            head = g[o * inner : (o + 1) * inner]
            for i in range(inner):
                after[i] = head[i]
            for back in range(n):
                k = n - 1 - back
                row = x[base + k * inner : base + (k + 1) * inner]
                slope = dx[base + k * inner : base + (k + 1) * inner]
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
            row = x[o * n : (o + 1) * n]
            sums = out[o * n : (o + 1) * n]
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
                row = x[at : at + inner]
                sums = out[at : at + inner]
                for i in range(inner):
                    totals[i] += row[i] + _KEEP
                    sums[i] = totals[i]
    return 0
