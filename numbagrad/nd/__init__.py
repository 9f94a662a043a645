"""MXNet's array functions over the ops, with the rules of MXNet 1.x that programs rely on."""

import sys
from typing import TYPE_CHECKING, Any

from numbagrad import dispatch, walk  # noqa: F401 - ops run once dispatch is there
from numbagrad.nd import (
    _internal,
    contraction,
    contrib,
    copying,
    creation,
    elementwise,
    exchange,
    heads,
    linalg,
    nn,
    numpy_functions,
    ordering,
    products,
    random,
    reduction,
    selection,
    sequences,
    serialization,
    shape,
    ufuncs,
    updates,
)
from numbagrad.nd.indexing import getitem, setitem
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.refusal import door, doors

FUNCTIONS: dict[str, Any] = {
    **contraction.FUNCTIONS,
    **creation.FUNCTIONS,
    **elementwise.FUNCTIONS,
    **heads.FUNCTIONS,
    **exchange.FUNCTIONS,
    **{f"linalg_{name}": function for name, function in linalg.FUNCTIONS.items()},
    **nn.FUNCTIONS,
    **ordering.FUNCTIONS,
    **products.FUNCTIONS,
    **random.FUNCTIONS,
    **reduction.FUNCTIONS,
    **selection.FUNCTIONS,
    **sequences.FUNCTIONS,
    **serialization.FUNCTIONS,
    **shape.FUNCTIONS,
    **updates.FUNCTIONS,
}
"""The functions by name."""

FUNCTIONS = {**doors(FUNCTIONS), **elementwise.HOT}
globals().update(FUNCTIONS)
for _module in (contrib, linalg, random, _internal):
    vars(_module).update(
        doors({_name: getattr(_module, _name) for _name in _module.__all__ if _name not in contrib.LOOPS})
    )
op = sys.modules[__name__]
"""MXNet's home of the functions alone."""

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


METHODS = (
    # elementwise
    "abs sign round rint fix floor ceil trunc sqrt rsqrt cbrt rcbrt square reciprocal exp expm1 log log2 log10 log1p "
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians relu sigmoid clip "
    # reductions
    "sum nansum prod nanprod mean max min norm argmax argmin argmax_channel cumsum "
    # order, indexing
    "sort topk argsort pick one_hot take slice slice_axis slice_like diag "
    # shapes
    "split split_v2 expand_dims squeeze flatten reshape_like tile repeat pad broadcast_like broadcast_axes swapaxes "
    "flip depth_to_space space_to_depth zeros_like ones_like shape_array size_array "
    # products, layers
    "dot batch_dot softmax log_softmax softmin"
).split()
"""The functions that are methods of NDArray too, with the array as their first argument."""

_ATTACHED: dict[str, Any] = {
    **{_name: FUNCTIONS[_name] for _name in METHODS},
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__matmul__": products._matmul,
    "__getstate__": serialization._getstate,
    "__setstate__": serialization._setstate,
    "broadcast_to": shape._broadcast_to_method,
    "tostype": creation._tostype,
    "transpose": shape._transpose_method,
    **copying.METHODS,
    **exchange.METHODS,
    **numpy_functions.METHODS,
    **ufuncs.METHODS,
}
for _name in ("reshape", "astype", "copyto", "as_in_context", "broadcast_to", "tostype", "transpose"):
    _function = _ATTACHED.get(_name) or getattr(NDArray, _name)
    _ATTACHED[_name] = door(_function, _name)
for _name, _function in _ATTACHED.items():
    setattr(NDArray, _name, _function)

__all__ = ["NDArray", "contrib", "linalg", "random", *FUNCTIONS]
