"""Compiled functions that other compiled code reaches by symbol: one machine code for all callers.

Numba copies the code of a callee into each caller, to be optimised and emitted there once more. That suits scalar
helpers, which are to be inlined; of a matrix product or a loop over an array it only multiplies the time to compile.
A function apart is compiled by itself, once a signature; its callers hold a symbol, named by the content of the
function.
"""

import hashlib
import inspect
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.typing.templates import make_intrinsic_template

from numbagrad.native.deferred import Deferred
from numbagrad.native.fingerprint import fingerprint
from numbagrad.native.symbols import enter, provider

_declared: dict[tuple[str, str], "Apart"] = {}


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
            if self._content is None:
                self._content = fingerprint(self)
            compiled = self._made[True] or self.helper  # what Python calls serves as well
            compiled.compile(signature)
            result = compiled.overloads[signature]
            digest = hashlib.sha256(f"{self._content} {signature}".encode()).hexdigest()[:32]
            symbol = f"numbagrad_apart_{self.__name__}_{digest}"
            address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
            enter(symbol, address, "apart", self.__module__, self.__qualname__, signature)
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


@provider("apart")
def _again(module: str, name: str, signature: tuple[Any, ...]) -> None:
    _declared[module, name].entered(signature)
