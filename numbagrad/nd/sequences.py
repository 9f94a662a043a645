"""Functions on batches of sequences of different lengths: of shape (time, batch, ...), or (batch, time, ...)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic, indexing
from numbagrad.ops.casting import cast
from numbagrad.ops.shaping import identity, reshape
from numbagrad.ops.slicing import strided_slice

_BOOL = np.dtype(bool)
_INT64 = np.dtype("int64")


def _check(name: str, data: Any, lengths: Any, use_lengths: bool, axis: int) -> None:
    """See that lengths, where they are used, fit the data."""
    expect_array(name, data)
    shape = data._shape
    if axis not in (0, 1) or len(shape) < 2:
        raise MXNetError(f"{name}: data of shape {shape} cannot have time on axis {axis}, and a batch")
    if not use_lengths:
        return
    expect_array(name, lengths)
    if lengths._shape != (shape[1 - axis],):
        raise MXNetError(
            f"{name}: lengths of shape {lengths._shape} do not fit data of shape {shape} with time on axis {axis}"
        )


def SequenceMask(
    data: NDArray,
    sequence_length: NDArray | None = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """`data` with `value` beyond the length of each sequence.

    Parameters
    ----------
    data : NDArray
        Of shape (time, batch, ...), or (batch, time, ...) with ``axis=1``.
    sequence_length : NDArray
        The length of each sequence of the batch.
    use_sequence_length : bool
        False: a copy of `data`.

    Raises
    ------
    MXNetError
        For other shapes.
    """
    if not use_sequence_length:
        expect_array("SequenceMask", data)
        return deliver(identity(data), out)
    _check("SequenceMask", data, sequence_length, True, axis)
    assert sequence_length is not None
    shape = data._shape
    lengths = sequence_length if sequence_length._flat.dtype.kind in "fi" else cast(sequence_length, dtype="int64")
    steps = NDArray(np.arange(shape[axis]).astype(lengths._flat.dtype), (shape[axis], 1))
    if axis == 0:
        inside = arithmetic.lesser(steps, reshape(lengths, shape=(1, shape[1])))
    else:
        inside = arithmetic.lesser(reshape(steps, shape=(1, shape[1])), reshape(lengths, shape=(shape[0], 1)))
    inside = reshape(cast(inside, dtype=_BOOL), shape=inside._shape + (1,) * (len(shape) - 2))
    return deliver(arithmetic.where(inside, data, value), out)


def SequenceLast(
    data: NDArray,
    sequence_length: NDArray | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The last element of each sequence, of shape (batch, ...).

    Parameters
    ----------
    data : NDArray
        Of shape (time, batch, ...), or (batch, time, ...) with ``axis=1``.
    sequence_length : NDArray
        The length of each sequence, at least 1.
    use_sequence_length : bool
        False: all are as long as `data`.

    Raises
    ------
    IndexError
        For a length of 0, or beyond the data.
    MXNetError
        For other shapes.
    """
    _check("SequenceLast", data, sequence_length, use_sequence_length, axis)
    shape = data._shape
    steps, batch = shape[axis], shape[1 - axis]
    if not use_sequence_length:
        if not steps:
            raise MXNetError(f"SequenceLast: data of shape {shape} has no last element")
        inner = data._flat.size // max(1, steps * batch)
        rest: list[int] = [1] * (len(shape) - 2)
        for k in range(len(rest) - 2, -1, -1):
            rest[k] = rest[k + 1] * shape[k + 3]
        stride, step = (inner, inner * batch) if axis == 0 else (inner * steps, inner)
        last = strided_slice(data, offset=step * (steps - 1), shape=(batch, *shape[2:]), strides=(stride, *rest))
        return deliver(last, out)
    assert sequence_length is not None
    at = arithmetic.subtract(cast(sequence_length, dtype=_INT64), 1)
    at = arithmetic.where(arithmetic.lesser(at, 0), steps, at)  # -1 would count from the end
    which = NDArray(np.arange(batch), (batch,))
    pair, lengths = ((at, which), (steps, batch)) if axis == 0 else ((which, at), (batch, steps))
    position = indexing.positions(*pair, lengths=lengths, strides=(lengths[1], 1))
    return deliver(indexing.take_(data, position, first=0, last=2, mode="clip"), out)


def SequenceReverse(
    data: NDArray,
    sequence_length: NDArray | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """Each sequence in reverse order; what is beyond its length stays.

    Parameters
    ----------
    data : NDArray
        Of shape (time, batch, ...).
    sequence_length : NDArray
        The length of each sequence.
    use_sequence_length : bool
        False: all are as long as `data`.
    axis : int
        0.

    Raises
    ------
    IndexError
        For a length beyond the data.
    MXNetError
        For other shapes, or another axis.
    """
    if axis != 0:
        raise MXNetError(f"SequenceReverse: time is on axis 0, not {axis}")
    _check("SequenceReverse", data, sequence_length, use_sequence_length, axis)
    steps, batch = data._shape[:2]
    if use_sequence_length:
        assert sequence_length is not None
        lengths = reshape(cast(sequence_length, dtype=_INT64), shape=(1, batch))
    else:
        lengths = NDArray(np.full(batch, steps), (1, batch))
    time = NDArray(np.arange(steps), (steps, 1))
    mirrored = arithmetic.subtract(arithmetic.subtract(lengths, 1), time)
    inside = cast(arithmetic.lesser(time, lengths), dtype=_BOOL)
    at = arithmetic.where(inside, mirrored, arithmetic.add(time, arithmetic.multiply(lengths, 0)))
    which = NDArray(np.tile(np.arange(batch), steps), (steps, batch))
    position = indexing.positions(at, which, lengths=(steps, batch), strides=(batch, 1))
    return deliver(indexing.take_(data, position, first=0, last=2, mode="clip"), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SequenceLast": SequenceLast,
    "SequenceMask": SequenceMask,
    "SequenceReverse": SequenceReverse,
}
