"""Compiled functions that other compiled code reaches by symbol: one machine code for all callers.

Numba copies the code of a callee into each caller, to be optimised and emitted there once more. That suits scalar
helpers, which are to be inlined; of a matrix product or a loop over an array it only multiplies the time to compile.
A function apart is compiled by itself, once a signature; its callers hold a symbol, named by the content of the
function, which is entered into LLVM's table before their code is loaded.
"""

import hashlib
import inspect
from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import make_intrinsic_template

from numbagrad.native.deferred import Deferred
from numbagrad.native.fingerprint import fingerprint

_PREFIX = "numbagrad_apart_"

_declared: dict[tuple[str, str], "Apart"] = {}

Need = tuple[str, str, tuple[Any, ...]]
"""What code on disk calls: the module and the name of a function apart, and the signature."""

_entered: dict[str, Need] = {}
"""By symbol, all that this process can call."""


class Apart(Deferred):
    """Stands for the dispatcher of a module's function that compiled code calls by symbol."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._type: Any = None
        self._symbols: dict[tuple[Any, ...], tuple[str, Any]] = {}
        self._content: str | None = None
        _declared[self.__module__, self.__qualname__] = self

    @property
    def _numba_type_(self) -> Any:
        if self._type is None:
            self._type = types.Function(make_intrinsic_template(self, self._definition(), self.__name__))
        return self._type

    def entered(self, signature: tuple[Any, ...]) -> tuple[str, Any]:
        """The symbol and the compiled form for one signature; compiled or loaded, and entered, if need be."""
        found = self._symbols.get(signature)
        if found is None:
            compiled = self.helper
            compiled.compile(signature)
            result = compiled.overloads[signature]
            if self._content is None:
                self._content = fingerprint(self)
            digest = hashlib.sha256(f"{self._content} {signature}".encode()).hexdigest()[:32]
            symbol = f"{_PREFIX}{self.__name__}_{digest}"
            llvm.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
            _entered[symbol] = (self.__module__, self.__qualname__, signature)
            found = self._symbols[signature] = (symbol, result.signature.return_type)
        return found

    def _definition(self) -> Any:
        def definition(typing_context, *args):
            signature = tuple(types.unliteral(kind) for kind in args)
            symbol, returned = self.entered(signature)

            def generate(context, builder, signature, values):
                kind = context.call_conv.get_function_type(signature.return_type, signature.args)
                callee = cgutils.get_or_insert_function(builder.module, kind, symbol)
                convention = context.call_conv
                status, value = convention.call_function(builder, callee, returned, signature.args, values)
                with cgutils.if_unlikely(builder, status.is_error):
                    convention.return_status_propagate(builder, status)
                return value

            return returned(*signature), generate

        names = ["typing_context", *inspect.signature(self.py_func).parameters]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        definition.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore
        return definition


def needs(library: Any) -> list[Need]:
    """The functions apart that a compiled library calls."""
    return [
        _entered[function.name]
        for function in library._final_module.functions
        if function.is_declaration and function.name.startswith(_PREFIX)
    ]


def enter(found: list[Need]) -> None:
    """Make sure that what code from disk calls is there.

    Raises
    ------
    KeyError
        If a function is not declared (any more).
    """
    for module, name, signature in found:
        _declared[module, name].entered(signature)
