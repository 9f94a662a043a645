"""MXNet's binary file format for arrays (``.params``): reading all its versions, writing the current one.

A file is little-endian: the number 0x112 and a reserved 0 (both uint64), the count and the records of the arrays, the
count (0 or that of the arrays) and the names. A record of version 2 or 3 is a magic number, the storage type, the shape
(int32 count, int64 lengths), the device (two int32), the dtype code (int32) and the elements in C order. Version 1 has
no storage type; version 0 begins with the count of its uint32 lengths.
"""

import os
import struct
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.files import write_whole
from numbagrad.launch import reading
from numbagrad.nd.creation import hosted
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.layout import Shape

_LIST = 0x112
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DTYPES = tuple(
    np.dtype(name).newbyteorder("<")
    for name in ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
)
_CODES = {dtype.newbyteorder("="): code for code, dtype in enumerate(_DTYPES)}
_MOST_AXES = 64


class _Reader:
    """Takes numbers off a buffer and never believes a length that the buffer does not hold."""

    def __init__(self, data: Any, source: str) -> None:
        self.data = memoryview(data).cast("B")
        self.at = 0
        self.source = source

    def fail(self, why: str) -> NoReturn:
        raise MXNetError(f"load: {self.source} is no array file of MXNet, or a damaged one: {why}")

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        if size > len(self.data) - self.at:
            self.fail(f"it ends at byte {len(self.data)}, {size} more were expected at byte {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> int:
        """One number of the struct format `form`."""
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def lengths(self, count: int, form: str) -> Shape:
        """A shape of `count` numbers."""
        if not 0 <= count <= _MOST_AXES:
            self.fail(f"an array of {count} axes at byte {self.at}")
        shape = struct.unpack(f"<{count}{form}", self.take(count * struct.calcsize(form)))
        if any(n < 0 for n in shape):
            self.fail(f"an array of shape {shape}")
        return shape

    def array(self) -> NDArray:
        """The next record."""
        magic = self.number("I")
        if magic in (_V2, _V3):
            if storage := self.number("i"):
                self.fail(f"an array of storage type {storage}; only dense ones (0) are supported")
            ndim = self.number("i")
            if (magic == _V2 and ndim == 0) or (magic == _V3 and ndim == -1):
                return hosted(np.empty(0, np.float32), (0,))
            shape = self.lengths(ndim, "q")
        else:
            ndim = self.number("I") if magic == _V1 else magic
            if ndim == 0:
                return hosted(np.empty(0, np.float32), (0,))
            shape = self.lengths(ndim, "q" if magic == _V1 else "I")
        self.take(8)  # the device: everything comes to cpu(0)
        code = self.number("i")
        if not 0 <= code < len(_DTYPES):
            self.fail(f"an array of the unknown dtype code {code}")
        dtype = _DTYPES[code]
        size = 1
        for n in shape:
            size *= n
        flat = np.frombuffer(self.take(size * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
        return hosted(flat, shape)

    def name(self) -> str:
        """The next name."""
        raw = bytes(self.take(self.number("Q")))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.fail(f"a name that is no UTF-8: {raw[:40]!r}")

    def all(self) -> list[NDArray] | dict[str, NDArray]:
        """The arrays of a file."""
        if self.number("Q") != _LIST:
            self.fail("it does not begin with 0x112")
        self.take(8)
        count = self.number("Q")
        if count * 4 > len(self.data):
            self.fail(f"it claims {count} arrays in {len(self.data)} bytes")
        arrays = [self.array() for _ in range(count)]
        named = self.number("Q")
        if named not in (0, count):
            self.fail(f"{named} names for {count} arrays")
        if not named:
            return arrays
        return dict(zip([self.name() for _ in range(count)], arrays, strict=True))


def _version(arrays: Iterable[NDArray]) -> int:
    """Version 2; 3 where an array has no axes, which version 2 cannot tell from no array. MXNet reads no mixtures."""
    return _V2 if all(array._shape for array in arrays) else _V3


def _record(array: NDArray, version: int) -> bytes:
    """The record of one array."""
    shape = array._shape
    head = struct.pack(f"<Iii{len(shape)}qiii", version, 0, len(shape), *shape, 1, 0, _CODES[array._flat.dtype])
    return head + np.ascontiguousarray(array._flat, array._flat.dtype.newbyteorder("<")).tobytes()


def _chunks(arrays: list[NDArray], names: list[str]) -> Iterable[bytes]:
    yield struct.pack("<QQQ", _LIST, 0, len(arrays))
    version = _version(arrays)
    for array in arrays:
        yield _record(array, version)
    yield struct.pack("<Q", len(names))
    for name in names:
        raw = name.encode()
        yield struct.pack("<Q", len(raw)) + raw


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write arrays to a file that MXNet reads too.

    Parameters
    ----------
    fname : str or path
        The file is written aside and renamed: there is the old one or the whole new one, never half of it.
    data : NDArray, list of NDArray, or dict of str to NDArray

    Raises
    ------
    ValueError, TypeError
        For other data.
    """
    if isinstance(data, NDArray):
        data = [data]
    if isinstance(data, dict):
        names, arrays = list(data.keys()), list(data.values())
        if not all(isinstance(name, str) for name in names):
            raise TypeError("save: the keys of a dict must be str")
    elif isinstance(data, list):
        names, arrays = [], data
    else:
        raise ValueError(f"save: takes an NDArray, a list of them or a dict of str to them, not {type(data).__name__}")
    for array in arrays:
        if not isinstance(array, NDArray):
            raise TypeError(f"save: takes NDArrays, not {type(array).__name__}")
    reading()
    write_whole(fname, _chunks(arrays, names))


def load(fname: str | os.PathLike[str]) -> list[NDArray] | dict[str, NDArray]:
    """The arrays of a file: a list, or a dict in the order of the file where they have names.

    Raises
    ------
    MXNetError
        If the file is missing, damaged or of another kind; the message names it.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError(f"load: takes the name of a file, not {type(fname).__name__}")
    try:
        with open(fname, "rb") as file:
            data = file.read()
    except OSError as error:
        raise MXNetError(f"load: cannot read {os.fspath(fname)}: {error.strerror}") from None
    return _Reader(data, os.fspath(fname)).all()


def load_frombuffer(buf: Any) -> list[NDArray] | dict[str, NDArray]:
    """The arrays in the bytes of a file; see :func:`load`."""
    try:
        view = memoryview(buf)
    except TypeError:
        raise TypeError(f"load_frombuffer: takes bytes, not {type(buf).__name__}") from None
    return _Reader(view, "the buffer").all()


def _getstate(self: NDArray) -> dict[str, Any]:
    """The state that MXNet pickles: the record of the array."""
    reading()
    return {"handle": bytearray(_record(self, _version([self])))}


def _setstate(self: NDArray, state: dict[str, Any]) -> None:
    read = _Reader(state["handle"], "the pickled array").array()
    NDArray.__init__(self, read._flat, read._shape)


FUNCTIONS: dict[str, Callable[..., Any]] = {"load": load, "load_frombuffer": load_frombuffer, "save": save}
