"""Arrays to and from other libraries: NumPy's ``__array__`` and DLPack, without a copy where that is asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.launch import reading
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.outside import borrowed, lend
from numbagrad.ops.dtypes import adopted


def _array(self: NDArray, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """The elements as a NumPy array: a copy, or with ``copy=False`` a read-only view."""
    if copy is not False:
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype, copy=False)
    if dtype is not None and np.dtype(dtype) != self._flat.dtype:
        raise ValueError(f"an array of {self._flat.dtype} cannot become one of {np.dtype(dtype)} without a copy")
    return _view(self, writeable=False)


def _view(array: NDArray, writeable: bool) -> np.ndarray:
    reading()
    lend(array)
    view = array._flat.reshape(array._shape)
    if not writeable:
        view.flags.writeable = False
    return view


def _dlpack(self: NDArray, **kwargs: Any) -> Any:
    """A capsule on the array's memory, for ``from_dlpack`` of another library.

    The keywords are those of the array API standard. Who asks for version 1.0 or later is told that the memory is
    read-only: writes that numbagrad does not see would make gradients wrong. See :func:`to_dlpack_for_write`.
    """
    asked = {key: value for key, value in kwargs.items() if value is not None}
    versioned = tuple(asked.get("max_version", (0, 0))) >= (1, 0)
    return _view(self, writeable=not versioned).__dlpack__(**asked)


def _dlpack_device(self: NDArray) -> tuple[int, int]:
    """The CPU, in DLPack's numbers."""
    return 1, 0


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule on the memory of `data`; what takes it must not write there."""
    expect_array("to_dlpack_for_read", data)
    return _view(data, writeable=True).__dlpack__()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule on the memory of `data`, to be written to.

    It counts as one write, now: a graph recorded before cannot go backward through `data`. Write before you record
    again; later writes are not seen.

    Raises
    ------
    MXNetError
        While recording, where `data` is part of the graph.
    """
    expect_array("to_dlpack_for_write", data)
    check_writable(data, "to_dlpack_for_write")
    capsule = _view(data, writeable=True).__dlpack__()
    wrote(data._storage)
    return capsule


class _Capsule:
    """A capsule as NumPy takes it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Memory:
    """The memory of an array that NumPy takes for read-only because its capsule, older than DLPack 1.0, cannot say."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        interface = values.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _capsule_of(exporter: Any) -> Any:
    try:
        return exporter.__dlpack__(max_version=(1, 0))
    except TypeError:  # it knows no versions
        return exporter.__dlpack__()


def from_dlpack(dlpack: Any) -> NDArray:
    """An array on the memory of an array of another library.

    Parameters
    ----------
    dlpack : object with ``__dlpack__``, or capsule
        On the CPU, of a dtype that there is here. What is read-only or not C-contiguous is copied. Writes by others are
        not seen by the tape, but for those through an array that was made of the same memory here.

    Examples
    --------
    >>> import numpy as np
    >>> from numbagrad import nd
    >>> source = np.zeros(3)
    >>> x = nd.from_dlpack(source)
    >>> x += 1
    >>> source.tolist()
    [1.0, 1.0, 1.0]
    """
    capsule = _capsule_of(dlpack) if hasattr(dlpack, "__dlpack__") else dlpack
    unversioned = '"dltensor"' in repr(capsule)  # NumPy renames it
    values = np.from_dlpack(_Capsule(capsule))
    if unversioned:
        values = np.asarray(_Memory(values))
    values = adopted(values if values.flags.carray else np.array(values, order="C"))
    return borrowed("from_dlpack", values)


METHODS: dict[str, Any] = {
    "__array__": _array,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "to_dlpack_for_read": to_dlpack_for_read,
    "to_dlpack_for_write": to_dlpack_for_write,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "from_dlpack": from_dlpack,
    "to_dlpack_for_read": to_dlpack_for_read,
    "to_dlpack_for_write": to_dlpack_for_write,
}
