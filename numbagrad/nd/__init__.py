"""MXNet's array functions over the ops, with the rules of MXNet 1.x that programs rely on."""

from numbagrad import dispatch, walk  # noqa: F401 - ops run once dispatch is there
from numbagrad.nd import creation, elementwise, linalg, random, reduction, shape
from numbagrad.nd.creation import (
    arange,
    array,
    empty,
    eye,
    from_numpy,
    full,
    full_like,
    histogram,
    linspace,
    moveaxis,
    ones,
    ones_like,
    waitall,
    zeros,
    zeros_like,
)
from numbagrad.nd.indexing import getitem, setitem
from numbagrad.nd.linalg import batch_dot, dot, matmul
from numbagrad.nd.ndarray import NDArray

FUNCTIONS = {**elementwise.FUNCTIONS, **reduction.FUNCTIONS, **shape.FUNCTIONS, **random.FUNCTIONS}
"""The functions that come from tables, by name."""

globals().update(FUNCTIONS)

METHODS = {
    **{name: name for name in elementwise.UNARY if hasattr(NDArray, name) is False},
    **{
        name: name
        for name in (
            "clip sum nansum mean prod nanprod max min norm cumsum expand_dims squeeze flatten reshape_like tile repeat "
            "pad split split_v2 swapaxes flip broadcast_like broadcast_axes depth_to_space space_to_depth zeros_like "
            "ones_like shape_array size_array dot batch_dot hard_sigmoid"
        ).split()
    },
    # Those of nd.selection and nd.nn.
    **{
        name: name
        for name in (
            "argmax argmin argmax_channel sort topk argsort pick one_hot take slice slice_axis slice_like diag "
            "softmax log_softmax softmin"
        ).split()
    },
}
"""Which function each method of NDArray is; the array is its first argument."""

for _method, _function in METHODS.items():
    if _function in globals():
        setattr(NDArray, _method, globals()[_function])

NDArray.__getitem__ = getitem  # type: ignore[attr-defined]
NDArray.__setitem__ = setitem  # type: ignore[attr-defined]
NDArray.__matmul__ = linalg._matmul  # type: ignore[attr-defined]
NDArray.transpose = shape._transpose_method  # type: ignore[attr-defined]
NDArray.broadcast_to = shape._broadcast_to_method  # type: ignore[attr-defined]
NDArray.tostype = creation._tostype  # type: ignore[attr-defined]

__all__ = [
    *FUNCTIONS,
    "NDArray",
    "arange",
    "array",
    "batch_dot",
    "dot",
    "empty",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "histogram",
    "linspace",
    "matmul",
    "moveaxis",
    "ones",
    "ones_like",
    "random",
    "waitall",
    "zeros",
    "zeros_like",
]
