"""The scalar functions that elementwise functions are written with.

They build expression graphs: ``lambda x: where(x > 0, x, 0.1 * (exp(x) - 1))``. Operators (``+ - * / // % **``,
comparisons, ``& | ~``) work on symbols as they are.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numbagrad.native.expr import UNARY, Expr, node


def _function(name: str) -> Callable[[Any], Expr]:
    def build(x: Any) -> Expr:
        return node(name, x)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The scalar function {name} of a symbol."
    return build


globals().update({name: _function(name) for name in UNARY})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[[Any], Expr]: ...


def where(condition: Any, a: Any, b: Any) -> Expr:
    """`a` where `condition` is true (not zero), else `b`; the branch not taken contributes exactly 0."""
    return node("where", condition, a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The greater of two, `a` on a tie, NaN if either is."""
    return where(node("logical_or", node("ge", a, b), node("ne", a, a)), a, b)


def minimum(a: Any, b: Any) -> Expr:
    """The lesser of two, `a` on a tie, NaN if either is."""
    return where(node("logical_or", node("le", a, b), node("ne", a, a)), a, b)


def power(a: Any, b: Any) -> Expr:
    """`a` to the power `b`."""
    return node("pow", a, b)


def square(x: Any) -> Expr:
    """The product of x with itself."""
    return node("mul", x, x)


def mul0(g: Any, k: Any) -> Expr:
    """`g * k`, and 0 where `g` is 0 whatever `k` is: a derivative that may be singular times a head gradient."""
    return node("mul0", g, k)


__all__ = [*UNARY, "maximum", "minimum", "mul0", "power", "square", "where"]
