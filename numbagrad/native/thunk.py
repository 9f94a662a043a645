"""Compiled functions in the one form that a table can call: ``int64 thunk(int64* words, float64* scalars)``.

A thunk reads the arguments of its function in order - an array is two words (address, length), a number of a table
one word or one scalar - and calls the machine code that is there already. It is so small that it is written down as
LLVM's intermediate code in each process: two milliseconds, where a function of Numba's takes sixty.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock

from numbagrad.native.pipeline import Library

RAISED = 255
"""What a thunk returns where its function raises an exception; functions that tables call do so for want of memory."""

_libraries: list[Any] = []
"""Keeps the machine code of thunks."""

_WORD = ir.IntType(64)
_SCALAR = ir.DoubleType()


def _argument(context: Any, builder: Any, kind: Any, take: Any) -> Any:
    """The value of one argument; `take` gives the next number of a list."""
    if not isinstance(kind, types.Array):
        return take(kind)
    # Not by Numba's own functions for arrays: they would load all that it knows about NumPy, which takes 0.3 s.
    address, size = take(types.int64), take(types.int64)
    item = _WORD(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    model = context.data_model_manager[kind]
    parts = {
        "nitems": size,
        "itemsize": item,
        "data": builder.inttoptr(address, context.get_value_type(model.get_member_fe_type("data"))),
        "shape": cgutils.pack_array(builder, [size]),
        "strides": cgutils.pack_array(builder, [item]),
    }
    value = ir.Constant(model.get_value_type(), None)
    for name, part in parts.items():
        value = builder.insert_value(value, part, model.get_field_position(name))
    return value


@global_compiler_lock
def thunk(compiled: Any, signature: tuple[Any, ...]) -> int:
    """The address of a new thunk of `compiled`, a function that returns int64.

    Parameters
    ----------
    compiled : dispatcher
        Compiled for `signature` if it is not yet; must stay alive.
    signature : tuple of Numba types
        Flat contiguous arrays, int64 (a word) and float64 (a scalar).
    """
    compiled.compile(signature)
    result = compiled.overloads[signature]
    context = result.target_context
    name = f"thunk{len(_libraries)}_{result.fndesc.llvm_func_name}"
    library = Library(context.codegen(), name)
    module = library.create_ir_module(name)
    function = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer(), _SCALAR.as_pointer()]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    used = {types.int64: 0, types.float64: 0}

    def take(kind: Any) -> Any:
        place = builder.gep(function.args[0 if kind == types.int64 else 1], [_WORD(used[kind])])
        used[kind] += 1
        return builder.load(place)

    values = [_argument(context, builder, kind, take) for kind in signature]
    convention = context.call_conv
    returned = result.signature.return_type
    address = _WORD(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
    callee = builder.inttoptr(address, convention.get_function_type(returned, signature).as_pointer())
    status, value = convention.call_function(builder, callee, returned, signature, values)
    builder.ret(builder.select(status.is_error, _WORD(RAISED), value))
    library.add_ir_module(module)
    library.finalize()
    _libraries.append(library)
    return library.get_pointer_to_function(name)
