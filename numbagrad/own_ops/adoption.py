"""Users' functions as kernels: compiled with our flags, found again on disk wherever they were defined."""

import dis
import inspect
import types
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.native.compiler import njit
from numbagrad.native.deferred import Deferred


def function_of(what: str, given: Any) -> types.FunctionType:
    """The plain function of `given`, which may be jitted already.

    Raises
    ------
    MXNetError
        If it is no Python function, does not name its arguments, or may return None.
    """
    function = getattr(given, "py_func", given)
    if not isinstance(function, types.FunctionType):
        raise MXNetError(f"{what} must be a function, not {type(given).__name__}")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not parameter.empty:
            raise MXNetError(f"{what} must take plain positional arguments; {parameter} is none")
    if _may_return_none(function):
        raise MXNetError(
            f"{what} must return 0 at its end (or the code of a failure, before it writes anything): add `return 0`"
        )
    return function


def _may_return_none(function: types.FunctionType) -> bool:
    before: Any = None
    for each in dis.get_instructions(function):
        if each.opname == "RETURN_CONST" and each.argval is None:
            return True
        if each.opname == "RETURN_VALUE" and before.opname == "LOAD_CONST" and before.argval is None:
            return True
        before = each
    return False


def adopt(function: types.FunctionType) -> Any:
    """Compile a copy of `function`, and of the jitted helpers that it calls, with every flag ours.

    The copy belongs to this module, which every process can import, so that its code on disk is found again from a
    script, a notebook or the prompt; what it is called holds a digest of its content, so that two functions of one name
    stay apart.
    """
    return _adopt(function, {})


def _adopt(function: types.FunctionType, done: dict[types.FunctionType, Any]) -> Any:
    if function in done:
        found = done[function]
        if found is None:
            raise MXNetError(f"the jitted function {function.__name__} calls itself, which kernels cannot")
    else:
        done[function] = None
        space: dict[str, Any] = {"__name__": __name__}
        for name in _names(function.__code__) & function.__globals__.keys():
            value = function.__globals__[name]
            space[name] = _adopt(value.py_func, done) if _is_foreign(value) else value
        cells = tuple(
            types.CellType(_adopt(cell.cell_contents.py_func, done)) if _is_foreign(cell.cell_contents) else cell
            for cell in function.__closure__ or ()
        )
        copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
        copy.__qualname__ = f"<own>.{function.__qualname__}"  # the sign for njit to add the digest
        found = done[function] = njit(copy)
    return found


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_foreign(value: Any) -> bool:
    """Whether `value` is a function that somebody else has jitted."""
    return (
        isinstance(getattr(value, "py_func", None), types.FunctionType)
        and hasattr(value, "targetoptions")
        and not isinstance(value, Deferred)
    )
