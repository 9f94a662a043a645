"""BLAS, NumPy's own or else SciPy's, and SciPy's LAPACK, called by symbol from compiled code.

A symbol (unlike an address in a constant) may stay in code on disk: it is resolved anew in each process.
"""

import ctypes
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address

from numbagrad.native import cython_blas, openblas
from numbagrad.native.compiler import intrinsic
from numbagrad.native.symbols import enter, provider

PRECISIONS = (types.float32, types.float64)
"""The dtypes that BLAS and LAPACK have."""

_BLAS = frozenset({"gemm", "gemv", "trsm"})


class _Routines:
    """The routines that are entered; a class, since fingerprints of code that calls them stop at its name."""

    _addresses: ClassVar[dict[str, int]] = {}

    @classmethod
    def address(cls, routine: str, dtype_name: str) -> int:
        """The address of a routine for float32 or float64, entered under :func:`_symbol`."""
        symbol = _symbol(routine, dtype_name)
        if symbol not in cls._addresses:
            name = _name(routine, dtype_name)
            if wide(routine):
                address = openblas.address(name) or 0
            elif routine in _BLAS:
                with cython_blas.alone():
                    address = get_cython_function_address(cython_blas.NAME, name)
            else:
                address = get_cython_function_address("scipy.linalg.cython_lapack", name)
            cls._addresses[symbol] = address
            enter(symbol, address, "fortran", routine, dtype_name)
        return cls._addresses[symbol]


provider("fortran")(_Routines.address)


def _name(routine: str, dtype_name: str) -> str:
    return f"{'s' if dtype_name == 'float32' else 'd'}{routine}"


def wide(routine: str) -> bool:
    """Whether the integers of a routine have 64 bits: those of NumPy's BLAS have."""
    return routine in _BLAS and all(openblas.address(_name(routine, dtype.name)) for dtype in PRECISIONS)


def _symbol(routine: str, dtype_name: str) -> str:
    return f"numbagrad_{_name(routine, dtype_name)}{'_64' if wide(routine) else ''}"


def emit_call(context: Any, builder: Any, routine: str, dtype: Any, arguments: list[Any]) -> Any:
    """Emit ``void symbol(pointers...)``: Fortran takes everything by reference."""
    _Routines.address(routine, dtype.name)
    function = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    callee = cgutils.get_or_insert_function(builder.module, function, _symbol(routine, dtype.name))
    builder.call(callee, arguments)
    return context.get_dummy_value()


def emit_integer(builder: Any, routine: str, value: Any) -> Any:
    """A reference to an int64 as an integer of a routine."""
    return cgutils.alloca_once_value(builder, value if wide(routine) else builder.trunc(value, ir.IntType(32)))


def _reference(builder: Any, context: Any, routine: str, kind: Any, letter: str, value: Any) -> Any:
    if letter == "a":
        return context.make_array(kind)(context, builder, value).data
    if letter == "i":
        return emit_integer(builder, routine, value)
    if letter == "c":
        return cgutils.alloca_once_value(builder, builder.trunc(value, ir.IntType(8)))
    return cgutils.alloca_once_value(builder, value)


def lapack(routine: str, letters: str) -> Callable[..., int]:
    """A function for compiled code that calls a routine of BLAS or LAPACK.

    Parameters
    ----------
    routine : str
        Its name without the letter of the precision.
    letters : str
        One an argument: ``c`` a character (given as int64), ``i`` an integer (int64, below 2**31), ``x`` a number of
        the dtype of the arrays, ``a`` an array. A last ``e`` stands for INFO, which LAPACK's routines have and BLAS's
        have not.

    Returns
    -------
    function
        Takes one tuple of the arguments and returns INFO, or 0.
    """
    info = letters.endswith("e")
    inputs = letters.removesuffix("e")
    first = inputs.index("a")

    def twin(arguments: tuple[Any, ...]) -> int:
        dtype = arguments[first].dtype
        number = ctypes.c_float if dtype == np.float32 else ctypes.c_double
        made: list[Any] = []
        for letter, value in zip(inputs, arguments, strict=True):
            if letter == "a":
                made.append(ctypes.c_void_p(value.ctypes.data))
            else:
                integer = ctypes.c_int64 if wide(routine) else ctypes.c_int
                kind = {"c": ctypes.c_byte, "i": integer, "x": number}[letter]
                made.append(ctypes.byref(kind(value)))
        status = ctypes.c_int(0)
        address = _Routines.address(routine, dtype.name)
        kinds = [ctypes.c_void_p] * len(letters)
        ctypes.CFUNCTYPE(None, *kinds)(address)(*made, *([ctypes.byref(status)] if info else []))
        return status.value

    @intrinsic(twin)
    def call(typing_context, arguments):
        if not isinstance(arguments, types.BaseTuple) or len(arguments) != len(inputs):
            return None
        dtype = arguments[first].dtype
        if dtype not in PRECISIONS:
            return None

        def generate(context, builder, signature, values):
            parts = cgutils.unpack_tuple(builder, values[0], len(inputs))
            references = [
                _reference(builder, context, routine, kind, letter, part)
                for kind, letter, part in zip(signature.args[0], inputs, parts, strict=True)
            ]
            if not info:
                emit_call(context, builder, routine, dtype, references)
                return ir.IntType(64)(0)
            status = cgutils.alloca_once_value(builder, ir.IntType(32)(0))
            emit_call(context, builder, routine, dtype, [*references, status])
            return builder.sext(builder.load(status), ir.IntType(64))

        return types.int64(arguments), generate

    return call
