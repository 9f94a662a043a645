"""Arrays on memory that others know too: of one piece of memory there is one storage, whoever handed it over.

The tape tells by a storage what has been written, and a captured step what its arguments share.
"""

import threading
import weakref
from bisect import bisect_left, insort

import numpy as np

from numbagrad import array as memory
from numbagrad.array import Storage, root_of
from numbagrad.errors import MXNetError
from numbagrad.nd.ndarray import NDArray

_lock = threading.Lock()
_starts: list[int] = []
"""Where pieces of such memory begin, in order; they do not overlap."""
_pieces: dict[int, tuple[int, weakref.ref[Storage]]] = {}
"""By its beginning, the end of a piece and its storage."""
_FEW = 64


def bounds(array: np.ndarray) -> tuple[int, int]:
    """The addresses of the first byte of `array` and of that behind the last."""
    return np.lib.array_utils.byte_bounds(array)


def _note(storage: Storage, start: int, end: int) -> None:
    if len(_starts) >= _FEW and not len(_starts) & (len(_starts) - 1):  # now and then, let go of what is gone
        _starts[:] = [first for first in _starts if _pieces[first][1]() is not None]
        for first in _pieces.keys() - set(_starts):
            del _pieces[first]
    if start not in _pieces:
        insort(_starts, start)
    _pieces[start] = end, weakref.ref(storage)


def _met(start: int, end: int) -> list[Storage]:
    """The storages on memory from `start` to `end`; their pieces are taken out."""
    found = []
    at = bisect_left(_starts, end) - 1
    while at >= 0 and _pieces[_starts[at]][0] > start:
        first = _starts.pop(at)
        last, reference = _pieces.pop(first)
        storage = reference()
        if storage is not None:
            found.append((storage, first, last))
        at -= 1
    if len(found) > 1:
        for piece in found:
            _note(*piece)
    elif found:
        _note(found[0][0], min(start, found[0][1]), max(end, found[0][2]))
    return [storage for storage, *_ in found]


def lend(array: NDArray) -> None:
    """Note that somebody else gets to know the memory of `array`."""
    start, end = bounds(array._storage.array)
    with _lock:
        if start < end and not _met(start, end):
            _note(array._storage, start, end)


def borrowed(name: str, values: np.ndarray) -> NDArray:
    """An array on the memory of `values`, which are contiguous and somebody else's, for a function of that name.

    Raises
    ------
    MXNetError
        If the memory overlaps that of several arrays which had nothing to do with each other.
    """
    flat = values.reshape(-1)
    start, end = bounds(root_of(values))
    with _lock:
        met = _met(start, end) if start < end else []
        if not met:
            storage = memory.Storage(flat)
            if start < end:
                _note(storage, start, end)
            return NDArray(flat, values.shape, storage)
    if len(met) > 1:
        raise MXNetError(f"{name}: the memory overlaps that of {len(met)} other arrays in part; copy it first")
    (storage,) = met
    whole = storage.array
    if root_of(whole) is not root_of(flat):
        at = bounds(flat)[0] - bounds(whole)[0]
        if 0 <= at <= whole.nbytes - flat.nbytes:  # what has one root is one buffer of a captured step
            flat = whole.view(np.uint8)[at : at + flat.nbytes].view(flat.dtype)
    return NDArray(flat, values.shape, storage)
