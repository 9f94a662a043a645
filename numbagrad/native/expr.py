"""Scalar expression graphs: what an elementwise function is once it has been called with symbols.

A graph is printed as source (:mod:`numbagrad.native.source`), differentiated (:mod:`numbagrad.native.derivatives`)
or evaluated on whatever has the same operations (:func:`evaluate`). Nodes are interned, so equal expressions are
one object and common terms are shared by construction.
"""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError

UNARY = (
    "neg abs sign exp expm1 exp2 log log1p log2 log10 sqrt rsqrt cbrt rcbrt sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh arccosh arctanh sigmoid softplus erf erfc erfinv gamma gammaln digamma trigamma floor ceil trunc "
    "rint round logical_not"
).split()
BINARY = "add sub mul mul0 div floordiv mod pow polygamma lt le gt ge eq ne logical_and logical_or".split()
BOOLEAN = frozenset("lt le gt ge eq ne logical_and logical_or logical_not".split())
"""Operations whose value is true or false; used as a number they are 1 or 0."""

_ARITY = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), "where": 3}


class TracingError(MXNetError, TypeError):
    """Something in an elementwise function that cannot become part of an expression graph."""


_USE_OURS = (
    "an elementwise function works on symbols: use numbagrad's scalar functions (from numbagrad.scalar import exp, "
    "tanh, ...) instead of math, numpy, nd or methods"
)


class Expr:
    """A node: an operation on other nodes, the i-th input, or a constant."""

    __slots__ = ("__weakref__", "args", "op", "value")
    __hash__ = object.__hash__

    def __init__(self, op: str, args: tuple["Expr", ...], value: float | int | None) -> None:
        self.op = op
        self.args = args
        self.value = value

    def __repr__(self) -> str:
        if self.op == "input":
            return f"x{self.value}"
        return repr(self.value) if self.op == "const" else f"{self.op}({', '.join(map(repr, self.args))})"

    def __bool__(self) -> bool:
        raise TracingError(
            "an elementwise function cannot branch on its argument, which is a symbol: use where(condition, a, b) "
            "instead of if, maximum and minimum instead of max and min, & | ~ instead of and, or, not, and "
            "(a < x) & (x < b) instead of a < x < b"
        )

    def _number(self) -> Any:
        raise TracingError(_USE_OURS)

    __float__ = __int__ = __index__ = __complex__ = _number

    def __array__(self, *unused: Any, **ignored: Any) -> Any:
        return self._number()

    __array_ufunc__ = None

    def __neg__(self) -> "Expr":
        return node("neg", self)

    def __pos__(self) -> "Expr":
        return self

    def __abs__(self) -> "Expr":
        return node("abs", self)

    def __add__(self, other: Any) -> "Expr":
        return node("add", self, other)

    def __radd__(self, other: Any) -> "Expr":
        return node("add", other, self)

    def __sub__(self, other: Any) -> "Expr":
        return node("sub", self, other)

    def __rsub__(self, other: Any) -> "Expr":
        return node("sub", other, self)

    def __mul__(self, other: Any) -> "Expr":
        return node("mul", self, other)

    def __rmul__(self, other: Any) -> "Expr":
        return node("mul", other, self)

    def __truediv__(self, other: Any) -> "Expr":
        return node("div", self, other)

    def __rtruediv__(self, other: Any) -> "Expr":
        return node("div", other, self)

    def __floordiv__(self, other: Any) -> "Expr":
        return node("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> "Expr":
        return node("floordiv", other, self)

    def __mod__(self, other: Any) -> "Expr":
        return node("mod", self, other)

    def __rmod__(self, other: Any) -> "Expr":
        return node("mod", other, self)

    def __pow__(self, other: Any) -> "Expr":
        return node("mul", self, self) if type(other) is int and other == 2 else node("pow", self, other)

    def __rpow__(self, other: Any) -> "Expr":
        return node("pow", other, self)

    def __lt__(self, other: Any) -> "Expr":
        return node("lt", self, other)

    def __le__(self, other: Any) -> "Expr":
        return node("le", self, other)

    def __gt__(self, other: Any) -> "Expr":
        return node("gt", self, other)

    def __ge__(self, other: Any) -> "Expr":
        return node("ge", self, other)

    def __eq__(self, other: Any) -> "Expr":  # type: ignore[override]
        return node("eq", self, other)

    def __ne__(self, other: Any) -> "Expr":  # type: ignore[override]
        return node("ne", self, other)

    def __and__(self, other: Any) -> "Expr":
        return node("logical_and", self, other)

    def __or__(self, other: Any) -> "Expr":
        return node("logical_or", self, other)

    def __invert__(self) -> "Expr":
        return node("logical_not", self)


class _Key(tuple):
    """An interning key: compares its nodes by identity, since ``==`` of nodes builds a node."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(id(item) if isinstance(item, Expr) else (type(item), repr(item)) for item in self))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key)
            and len(self) == len(other)
            and all(
                a is b
                or (not isinstance(a, Expr) and not isinstance(b, Expr) and type(a) is type(b) and repr(a) == repr(b))
                for a, b in zip(self, other, strict=True)
            )
        )


_interned: weakref.WeakValueDictionary[_Key, Expr] = weakref.WeakValueDictionary()


def _intern(op: str, args: tuple[Expr, ...], value: float | int | None) -> Expr:
    key = _Key((op, value, *args))
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Expr(op, args, value)
    return found


def constant(value: Any) -> Expr:
    """A number as a node; printed in the dtype of the kernel."""
    if isinstance(value, bool):
        value = int(value)
    found = value.item() if isinstance(value, np.generic) else value
    if type(found) is not int and type(found) is not float:
        raise TracingError(
            f"an elementwise function met a {type(value).__name__}; it can use its arguments and numbers only: make "
            "the array another argument"
        )
    return _intern("const", (), found)


def symbol(index: int) -> Expr:
    """The i-th input."""
    return _intern("input", (), index)


def node(op: str, *args: Any) -> Expr:
    """The operation `op` on nodes and numbers."""
    if len(args) != _ARITY[op]:
        raise TracingError(f"{op} takes {_ARITY[op]} arguments, got {len(args)}")
    nodes = tuple(arg if isinstance(arg, Expr) else constant(arg) for arg in args)
    if op == "mul" or op == "mul0":
        for one, other in (nodes, nodes[::-1]):
            if one.op == "const" and one.value == 1:
                return other
    if op == "neg" and nodes[0].op == "neg":
        return nodes[0].args[0]
    return _intern(op, nodes, None)


def trace(function: Callable[..., Any], inputs: int) -> Expr:
    """Call `function` once with `inputs` symbols; the graph of what it returns.

    Raises
    ------
    TracingError
        Where the function branches on a symbol or hands it to ``math`` or NumPy.
    """
    try:
        result = function(*[symbol(i) for i in range(inputs)])
    except TracingError:
        raise
    except (TypeError, AttributeError) as error:
        # Python's, NumPy's and numbagrad.nd's own words for an object that does not have what they need
        if "ufunc" in str(error) or "Expr" in str(error):
            raise TracingError(f"{_USE_OURS} ({error})") from error
        raise
    if isinstance(result, Expr):
        return result
    if isinstance(result, (int, float)):
        return constant(result)
    raise TracingError(f"an elementwise function must return one expression, not {type(result).__name__}")


def inputs_of(*roots: Expr) -> set[int]:
    """The indices of the inputs that `roots` depend on."""
    found: set[int] = set()
    for each in order(*roots):
        if each.op == "input":
            found.add(each.value)  # type: ignore[arg-type]
    return found


def order(*roots: Expr) -> list[Expr]:
    """Every node below `roots`, each once, arguments first."""
    seen: set[int] = set()
    result: list[Expr] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        item, ready = stack.pop()
        if ready:
            result.append(item)
        elif id(item) not in seen:
            seen.add(id(item))
            stack.append((item, True))
            stack.extend((arg, False) for arg in reversed(item.args))
    return result


def substitute(root: Expr, old: Expr, new: Expr) -> Expr:
    """`root` with `new` wherever `old` stands."""
    done: dict[int, Expr] = {id(old): new}
    for each in order(root):
        if id(each) not in done:
            if any(done[id(arg)] is not arg for arg in each.args):
                done[id(each)] = node(each.op, *[done[id(arg)] for arg in each.args])
            else:
                done[id(each)] = each
    return done[id(root)]


def compose(root: Expr, inputs: Mapping[int, Expr]) -> Expr:
    """`root` with `inputs` for its symbols, all at once."""
    done: dict[int, Expr] = {}
    for each in order(root):
        if each.op == "input":
            done[id(each)] = inputs[each.value]  # type: ignore[index]
        else:
            done[id(each)] = node(each.op, *[done[id(arg)] for arg in each.args]) if each.args else each
    return done[id(root)]


def evaluate(root: Expr, inputs: Mapping[int, Any], operations: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of `root` with `inputs` for its symbols, computed by `operations` (arrays, floats, ...)."""
    values: dict[int, Any] = {}
    for each in order(root):
        if each.op == "input":
            values[id(each)] = inputs[each.value]  # type: ignore[index]
        elif each.op == "const":
            values[id(each)] = each.value
        else:
            values[id(each)] = operations[each.op](*[values[id(arg)] for arg in each.args])
    return values[id(root)]
