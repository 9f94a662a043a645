"""Symbols by which compiled code reaches other code: entered into LLVM's table before it is made or loaded.

LLVM ends the process where a symbol is missing, so code on disk is kept with a list of what it needs.
"""

from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm

Need = tuple[str, str, tuple[Any, ...]]
"""A symbol, a provider by name, and what that is to be called with for the symbol to be there."""

_providers: dict[str, Callable[..., Any]] = {}
_entered: dict[str, Need] = {}


def provider(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function that sees to it that a symbol is entered."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        _providers[name] = function
        return function

    return declare


def enter(symbol: str, address: int, name: str, *arguments: Any) -> None:
    """Let compiled code find `address` by `symbol`; another process calls the provider `name` for that."""
    llvm.add_symbol(symbol, address)
    _entered[symbol] = symbol, name, arguments


def needs(library: Any) -> list[Need]:
    """What a compiled library reaches by symbol."""
    return [
        _entered[function.name]
        for function in library._final_module.functions
        if function.is_declaration and function.name in _entered
    ]


def provide(found: Iterable[Need]) -> None:
    """Make sure that what code from disk needs is there.

    Raises
    ------
    KeyError
        If a provider does not know (any more) what it is asked for.
    """
    for symbol, name, arguments in found:
        if symbol not in _entered:
            _providers[name](*arguments)
            _entered[symbol]
