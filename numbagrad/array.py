"""The array: a flat storage, a shape, and a place on the tape."""

from typing import Any

import numpy as np

# glibc returns large blocks to the system when they are freed, and a new one is then faulted in page by page, several
# times what an elementwise loop over it takes. It keeps blocks (twice as much as the largest, at the end of the heap)
# up to the size of one that was freed before, 32 MB at most. So one of about that size is freed, which nobody touched.
np.empty((1 << 25) - (1 << 16), np.uint8)


class Storage:
    """The memory that arrays share, and when it was last written.

    ``version`` is the serial number of the last write in this process, so that a recorded call needs to keep one
    number, not one for each array that it saves. ``pinned`` is set on a gradient buffer that a program got hold of: it
    may be an input of the graph, so gradients are not written straight into it.
    """

    __slots__ = ("__weakref__", "array", "pinned", "version")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.version = 0
        self.pinned = False


def root_of(array: np.ndarray) -> np.ndarray:
    """The NumPy array that owns the memory of `array`."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


serial = 0
"""The number of writes in place so far."""

watch: list[tuple[Storage, int]] | None = None
"""While a capture runs: the storages that are written, and their versions before."""


def wrote(*storages: Storage) -> None:
    """Note that the elements of `storages` were written."""
    global serial
    serial += 1
    for storage in storages:
        if watch is not None:
            watch.append((storage, storage.version))
        storage.version = serial


class Array:
    """What ops and tape need of an array; :class:`numbagrad.nd.NDArray` adds what a user needs.

    ``_flat`` is the 1-d C-contiguous NumPy array of its elements, all of ``_storage.array`` or a slice of it; ``_node``
    a Node, Projection or Leaf of the tape, or None.
    """

    __slots__ = ("__weakref__", "_context", "_flat", "_node", "_shape", "_storage")

    _flat: np.ndarray
    _shape: tuple[int, ...]
    _storage: Storage
    _node: Any
    _context: Any

    def __init__(self, flat: np.ndarray, shape: tuple[int, ...], storage: Storage | None = None) -> None:
        self._flat = flat
        self._shape = shape
        self._storage = Storage(flat) if storage is None else storage
        self._node = None
        self._context = None
