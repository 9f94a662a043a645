"""The dense layer, bias and activation included, as one kernel each way."""

from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.dense import ADD_B, ADD_W, DENSE, DENSE_VJP, WANT_B, WANT_W, WANT_X
from numbagrad.launch import launch
from numbagrad.ops import arithmetic as a
from numbagrad.ops import registry
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import FLOAT32, floating, promote
from numbagrad.ops.linalg import dot
from numbagrad.ops.registry import WRITTEN, ArrayLike, Elementwise, Output, Sample, fused

ACTIVATIONS: dict[str, tuple[int, Elementwise]] = {
    "relu": (1, a.relu),
    "sigmoid": (2, a.sigmoid),
    "tanh": (3, a.tanh),
    "softrelu": (4, a.softplus),
    "softsign": (5, a.softsign),
}
"""The activations by name: their code in the kernels, and the op."""

_BY_CODE = dict(ACTIVATIONS.values())
_UNUSED = {np.dtype(name): np.zeros(1, name) for name in ("float32", "float64")}
_UNUSED_SINGLE = _UNUSED[FLOAT32]


def _reference(x: Any, weight: Any, bias: Any, *, activation: int) -> Any:
    y = dot(x, weight, ta=0, tb=1)
    if bias is not None:
        y = a.add(y, bias)
    return _BY_CODE[activation](y) if activation else y


def _vjp(context: Any, g: Any, into: Any) -> list[Any]:
    x, w, _ = context.arrays
    at_x, at_w, at_b = context.parents
    n, k = x._shape
    units = w._shape[0]
    act = context.params["activation"]
    flat = g._flat
    dtype = flat.dtype
    dx = dw = db = scratch = _UNUSED_SINGLE if dtype is FLOAT32 else _UNUSED[dtype]
    what = 0
    results: list[Any] = [None, None, None]
    if at_x is not None:
        what = WANT_X
        dx = np.empty(n * k, dtype)
        results[0] = (dx, (n, k))
    if at_w is not None:
        what |= WANT_W
        offered = into(at_w, True)
        if offered is None:
            dw = np.empty(units * k, dtype)
            results[1] = (dw, (units, k))
        else:
            dw, add = offered
            if add:
                what |= ADD_W
            results[1] = WRITTEN
    if at_b is not None:
        what |= WANT_B
        offered = into(at_b, True)
        if offered is None:
            db = np.empty(units, dtype)
            results[2] = (db, (units,))
        else:
            db, add = offered
            if add:
                what |= ADD_B
            results[2] = WRITTEN
    if act:
        scratch = np.empty(n * units, dtype)
    y = context.out[0][1]
    launch(DENSE_VJP[act], flat, x._flat, w._flat, y, scratch, dx, dw, db, n, units, k, act, what)
    return results


def _samples() -> list[Sample]:
    x = np.sin(np.arange(12.0) * 1.3).reshape(4, 3)
    w = np.cos(np.arange(6.0) * 0.9).reshape(2, 3)
    b = np.array([0.3, -0.2])
    numpy: dict[int, Any] = {0: lambda z: z, **{code: op.numpy for code, op in _BY_CODE.items()}}
    found = [Sample((x, w, b), {"activation": code}, lambda x, w, b, f=f: f(x @ w.T + b)) for code, f in numpy.items()]
    found.append(Sample((x, w, None), {"activation": 3}, lambda x, w, b: np.tanh(x @ w.T)))
    return found


@fused("dense", _vjp, _reference, saves="y0", samples=_samples)
def dense(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None, *, activation: int) -> Output:
    """act(x weight' + bias): x (n, k), weight (units, k), bias (units,) or None, one floating dtype."""
    shape = x._shape
    units, k = weight._shape
    if len(shape) != 2 or shape[1] != k:
        raise MXNetError(
            f"FullyConnected: an input of shape {shape} does not fit a weight of shape {weight._shape}: "
            f"the last axis must be {k}"
        )
    flat = x._flat
    dtype = flat.dtype
    n = shape[0]
    out = np.empty(n * units, dtype)
    if bias is None:
        launch(DENSE[activation], flat, weight._flat, _UNUSED[dtype], out, n, units, k, 0, activation)
    else:
        if bias._shape != (units,):
            raise MXNetError(f"FullyConnected: a bias of shape {bias._shape} does not fit {units} units")
        launch(DENSE[activation], flat, weight._flat, bias._flat, out, n, units, k, 1, activation)
    return out, (n, units)


_PARAMS = [{"activation": code} for code in range(len(ACTIVATIONS) + 1)]
_forward = dense.forward


def fully_connected(x: Any, weight: Any, bias: Any, activation: int = 0) -> Any:
    """:data:`dense` after the dtypes have been lined up."""
    flat = x._flat
    dtype = flat.dtype
    arrays: tuple[Any, ...] = (x, weight, bias)
    if (
        (dtype is FLOAT32 or dtype in _UNUSED)
        and dtype is weight._flat.dtype
        and (bias is None or dtype is bias._flat.dtype)
    ):
        shape = x._shape
        units, k = weight._shape
        if bias is not None and bias._shape == (units,) and len(shape) == 2 and shape[1] == k:  # the common case
            n = shape[0]
            out = np.empty(n * units, dtype)
            launch(DENSE[activation], flat, weight._flat, bias._flat, out, n, units, k, 1, activation)
            return registry.finish(dense, arrays, _PARAMS[activation], out, (n, units))
        return registry.finish(dense, arrays, _PARAMS[activation], *_forward(*arrays, activation=activation))
    target = floating(promote([array._flat.dtype for array in arrays if array is not None]))
    arrays = tuple([None if array is None else cast(array, dtype=target) for array in arrays])
    return registry.executor(dense, arrays, _PARAMS[activation])
