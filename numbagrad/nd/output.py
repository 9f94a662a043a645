"""The ``out=`` of functions: a result written into an array that exists already."""

from collections.abc import Sequence
from typing import Any

from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.casting import cast, cast_flat, write_cast
from numbagrad.ops.shaping import identity
from numbagrad.tape import Leaf, rebound, state


def deliver(result: Any, out: Any) -> Any:
    """`result` itself where `out` is None; else `out`, with the values of `result` cast into it.

    While recording, `out` takes the place of `result` on the tape.

    Raises
    ------
    MXNetError
        If the shapes differ, or `out` is in the recorded graph; nothing has been written then.
    TypeError
        If `out` is no NDArray.
    """
    if out is None:
        return result
    if isinstance(result, (list, tuple)):
        return _deliver_all(result, out)
    if out is result:
        return out
    _check(result, out)
    recorded = state.recording and result._node is not None
    if recorded:
        held = identity(result) if type(result._node) is Leaf else result
        node = cast(held, dtype=out._flat.dtype)._node
    flat = result._flat
    if result._storage is out._storage:
        flat = cast_flat(flat, flat.dtype)
    write_cast(flat, out._flat)
    wrote(out._storage)
    if recorded:
        out._node = node
        rebound(out)
    return out


def _check(result: Any, out: Any) -> None:
    """Refuse an `out` that cannot take the result."""
    if not isinstance(out, NDArray):
        raise TypeError(f"out=: takes an NDArray, not {type(out).__name__}")
    if out._shape != result._shape:
        raise MXNetError(f"out=: a result of shape {result._shape} cannot be written to an array of shape {out._shape}")
    check_writable(out, "out=")


def _deliver_all(results: Sequence[Any], outs: Any) -> Any:
    if isinstance(outs, NDArray):
        outs = [outs]
    if not isinstance(outs, (list, tuple)):
        raise TypeError(f"out=: takes a list of NDArrays, not {type(outs).__name__}")
    if len(outs) != len(results):
        raise MXNetError(f"out=: {len(results)} results cannot be written to {len(outs)} arrays")
    for result, out in zip(results, outs, strict=True):
        _check(result, out)
    for result, out in zip(results, outs, strict=True):
        deliver(result, out)
    return outs
