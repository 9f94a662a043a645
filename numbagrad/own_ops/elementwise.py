"""Elementwise ops from scalar functions."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.native.expr import BOOLEAN, Expr, TracingError, order
from numbagrad.ops import registry
from numbagrad.ops.registry import Elementwise

_EXACT = BOOLEAN | frozenset("neg abs sign add sub mul floordiv mod where floor ceil trunc rint round".split())
"""Operations that take integers to integers."""


class OwnElementwise(Elementwise):
    """An elementwise op made of a user's function; call it as the function, with arrays and numbers.

    Keyword parameters of the function are inputs of the op like the others, so numbers for them are handed to the
    kernel by value: another number compiles nothing.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], name: str | None, result: str | None) -> None:
        title = name or str(getattr(function, "__name__", "elementwise"))
        parameters = _parameters(title, function)
        self.positional = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.names = [p.name for p in parameters]
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        name = title if title.isidentifier() else "elementwise"
        try:
            super().__init__(name, lambda *symbols: self._call(function, symbols), len(parameters))
        except TracingError as error:
            raise TracingError(f"{title}: {error}") from error
        self.result = _result_of(self.graph) if result is None else result
        functools.update_wrapper(self, function)

    def _call(self, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        keywords = zip(self.names[self.positional :], values[self.positional :], strict=True)
        return function(*values[: self.positional], **dict(keywords))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Apply the op to arrays and numbers; inside another elementwise function, to symbols."""
        if keywords or len(args) != self.arity or self.positional != self.arity:
            args = self._complete(args, keywords)
        if Expr in map(type, args):
            return self._call(self.__wrapped__, args)
        return registry.elementwise_executor(self, args)

    def _complete(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, defaults filled in."""
        if len(args) > self.positional:
            raise TypeError(f"{self.name}: takes {self.positional} positional arguments, got {len(args)}")
        values = list(args)
        for name in self.names[len(args) :]:
            if name in keywords:
                values.append(keywords.pop(name))
            elif name in self.defaults:
                values.append(self.defaults[name])
            else:
                raise TypeError(f"{self.name}: the argument {name!r} is missing")
        for name in keywords:
            problem = "is given twice" if name in self.names else "is not one of its parameters"
            raise TypeError(f"{self.name}: the argument {name!r} {problem}")
        return tuple(values)

    def __reduce__(self) -> str:
        return self.__qualname__  # by name, as the function would be

    def __repr__(self) -> str:
        return f"<elementwise op {self.name}({', '.join(self.names)})>"


def _parameters(title: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    if not callable(function):
        raise MXNetError(f"elementwise: takes a function, not {type(function).__name__}")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise MXNetError(f"{title}: an elementwise function takes at least one argument")
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise MXNetError(f"{title}: an elementwise function names its arguments; *{parameter.name} stands for any")
        default = parameter.default
        if default is not parameter.empty and not isinstance(default, (int, float)):
            raise MXNetError(f"{title}: the default of {parameter.name!r} must be a number, not {default!r}")
    return parameters


def _result_of(graph: Expr) -> str:
    """The dtype rule: integers stay integers where every operation takes integers to integers."""
    for each in order(graph):
        if each.op == "const":
            exact = isinstance(each.value, int)
        elif each.op == "pow":
            exponent = each.args[1]
            exact = exponent.op == "const" and isinstance(exponent.value, int) and exponent.value >= 0
        else:
            exact = each.op == "input" or each.op in _EXACT
        if not exact:
            return "float"
    return "same"


def elementwise(function: Any = None, *, name: str | None = None, result: str | None = None) -> Any:
    """Make an op of a scalar function: broadcasting, every derivative and capture follow from it.

    The function is called once with symbols. It computes with operators (``+ - * / // % **``, comparisons,
    ``& | ~``), numbers, and the functions of :mod:`numbagrad.scalar` (``exp``, ``where``, ``maximum`` ...); the
    expression that it returns is compiled to one loop for each dtype, and differentiated. Other elementwise ops can be
    called in it.

    Parameters
    ----------
    function : callable
        Takes one symbol an input and returns an expression. All its parameters are inputs of the op: each can be given
        an array or a number; those with a default may be left out.
    name : str, optional
        In messages and profiles; the function's own name where left out.
    result : {"same", "float", "bool"}, optional
        The dtype: that of the inputs (mixed by category, bool < int < float; numbers do not widen); the same with
        float32 for integers; bool. Where left out it is ``same`` if integers give integers, else ``float``.

    Returns
    -------
    callable
        ``op(*arrays)``, an NDArray. Also usable as a decorator, with or without arguments.

    Raises
    ------
    TracingError
        An MXNetError. If the function does what cannot be traced: ``if``, ``and``, ``max``, ``math.exp``, NumPy
        functions; the message says what to write instead.
    MXNetError
        If it takes no arguments, any number of them, or has a default that is no number.

    Examples
    --------
    >>> import numbagrad as mx
    >>> from numbagrad.scalar import exp, where
    >>> @mx.elementwise
    ... def elu(x, alpha=1.0):
    ...     return where(x > 0, x, alpha * (exp(x) - 1))
    >>> x = mx.nd.array([-1.0, 0.0, 2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = elu(x, alpha=0.5)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([0.18393973, 0.5       , 1.        ], dtype=float32)
    """
    if result not in (None, "same", "float", "bool"):
        raise MXNetError(f"elementwise: result is 'same', 'float' or 'bool', not {result!r}")
    if function is None:
        return lambda named: OwnElementwise(named, name, result)
    return OwnElementwise(function, name, result)
