"""Addresses as arrays and calls: what a table of kernels needs that Numba has no words for."""

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from numbagrad.native.compiler import intrinsic


def _array_at(dtype: Any) -> Any:
    """An intrinsic: the flat array of `dtype` at an address, with so many elements."""
    numpy = np.dtype(str(dtype) if dtype is not types.boolean else "bool")

    def twin(address: int, size: int) -> Any:
        if size == 0:
            return np.empty(0, numpy)
        kind = ctypes.c_char * (int(size) * numpy.itemsize)
        return np.frombuffer(memoryview(kind.from_address(int(address))), numpy)

    @intrinsic(twin)
    def array_at(typing_context, address, size):
        signature = types.Array(dtype, 1, "C")(types.int64, types.int64)

        def generate(context, builder, signature, arguments):
            address, size = arguments
            array = context.make_array(signature.return_type)(context, builder)
            item = context.get_constant(types.intp, numpy.itemsize)
            context.populate_array(
                array,
                data=builder.inttoptr(address, array.data.type),
                shape=cgutils.pack_array(builder, [size]),
                strides=cgutils.pack_array(builder, [item]),
                itemsize=item,
                meminfo=None,
            )
            return array._getvalue()

        return signature, generate

    return array_at


ARRAY_AT = {
    name: _array_at(kind)
    for name, kind in {
        "float32": types.float32,
        "float64": types.float64,
        "int8": types.int8,
        "uint8": types.uint8,
        "uint16": types.uint16,
        "int32": types.int32,
        "int64": types.int64,
        "uint32": types.uint32,
        "uint64": types.uint64,
        "bool": types.boolean,
    }.items()
}
"""By dtype name: ``array(address, size)``, a flat array on memory that somebody else owns."""


def _scratch_twin(size: int, dtype: Any) -> Any:
    return np.empty(size, dtype)


@intrinsic(_scratch_twin)
def scratch(typing_context, size, dtype):
    """``np.empty(size, dtype)`` for a flat array, an eighth of the time to compile."""
    kind = getattr(dtype, "dtype", None)
    if not isinstance(size, types.Integer) or kind is None:
        return None
    signature = types.Array(kind, 1, "C")(types.int64, dtype)

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.return_type)(context, builder)
        item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind)))
        align = context.get_constant(types.uint32, 32)
        meminfo = context.nrt.meminfo_alloc_aligned(builder, builder.mul(arguments[0], item), align)
        with builder.if_then(cgutils.is_null(builder, meminfo), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("Allocation failed",))
        context.populate_array(
            array,
            data=builder.bitcast(context.nrt.meminfo_data(builder, meminfo), array.data.type),
            shape=cgutils.pack_array(builder, [arguments[0]]),
            strides=cgutils.pack_array(builder, [item]),
            itemsize=item,
            meminfo=meminfo,
        )
        return array._getvalue()

    return signature, generate


def _piece_twin(array: Any, start: int, size: int) -> Any:
    return array[start : start + size]


@intrinsic(_piece_twin)
def piece(typing_context, array, start, size):
    """``array[start : start + size]`` of a flat array, which must hold it: no clipping, no counting from the end.

    It takes a third of a slice's time to compile, but keeps no memory alive: take pieces of arguments, not of arrays
    that the same function makes.
    """
    if not (isinstance(array, types.Array) and isinstance(start, types.Integer) and isinstance(size, types.Integer)):
        return None
    signature = types.Array(array.dtype, 1, "C")(array, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        value, start, size = arguments
        whole = context.make_array(signature.args[0])(context, builder, value)
        array = context.make_array(signature.return_type)(context, builder)
        context.populate_array(
            array,
            data=builder.gep(whole.data, [start]),
            shape=cgutils.pack_array(builder, [size]),
            strides=cgutils.pack_array(builder, [whole.itemsize]),
            itemsize=whole.itemsize,
            meminfo=None,
        )
        return array._getvalue()

    return signature, generate


def _address_twin(array: Any) -> int:
    return array.ctypes.data


@intrinsic(_address_twin)
def address(typing_context, array):
    """The address of an array's first element, as int64: ``array.ctypes.data`` without its objects."""
    if not isinstance(array, types.Array):
        return None

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


def _itemsize_twin(array: Any) -> int:
    return array.itemsize


@intrinsic(_itemsize_twin)
def itemsize(typing_context, array):
    """The bytes of an element as a constant: LLVM drops the branches for other dtypes."""
    if not isinstance(array, types.Array):
        return None

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.int64, context.get_abi_sizeof(context.get_data_type(array.dtype)))

    return types.int64(array), generate


_THUNK_C = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def _call_twin(function: int, words: int, scalars: int) -> int:
    return _THUNK_C(int(function))(int(words), int(scalars))


@intrinsic(_call_twin)
def call_thunk(typing_context, function, words, scalars):
    """Call the thunk at an address with the addresses of its words and scalars."""
    signature = types.int64(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointers = [word.as_pointer(), ir.DoubleType().as_pointer()]
        kind = ir.FunctionType(word, pointers)
        function, words, scalars = arguments
        return builder.call(
            builder.inttoptr(function, kind.as_pointer()),
            [builder.inttoptr(words, pointers[0]), builder.inttoptr(scalars, pointers[1])],
        )

    return signature, generate
