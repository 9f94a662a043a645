"""Device labels. There is one device, the CPU; labels keep MXNet programs and replicas apart."""

import threading
from typing import Any, ClassVar


class _Current(threading.local):
    stack: tuple["Context", ...] = ()


class _Labels(type):
    """The class of Context: ``Context.default_ctx`` can be read and set, each thread its own."""

    @property
    def default_ctx(cls) -> "Context":
        """The label that new arrays get in this thread."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, context: "Context") -> None:
        if not isinstance(context, Context):
            raise TypeError(f"default_ctx: takes a Context, not {type(context).__name__}")
        # A with block that is open gets its label exchanged, and takes the new one along when it ends.
        Context._current.stack = (*Context._current.stack[:-1], context)


class Context(metaclass=_Labels):
    """A device label, ``Context("cpu", 0)``; as a ``with`` block it becomes the default of new arrays.

    Parameters
    ----------
    device_type : str or Context
        ``cpu``, ``gpu``, ``cpu_pinned`` or ``cpu_shared``; a Context is copied.
    device_id : int

    Raises
    ------
    KeyError
        For an unknown device type.
    """

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}
    _current: ClassVar[_Current] = _Current()
    device_typeid: int
    device_id: int

    def __init__(self, device_type: "str | Context", device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self.device_typeid, self.device_id = device_type.device_typeid, device_type.device_id
        else:
            if device_type not in self.devstr2type:
                raise KeyError(f"Context: unknown device type {device_type!r}; there are {', '.join(self.devstr2type)}")
            self.device_typeid, self.device_id = self.devstr2type[device_type], device_id

    @property
    def device_type(self) -> str:
        """The name of the device type."""
        return self.devtype2str[self.device_typeid]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Context)
            and self.device_typeid == other.device_typeid
            and self.device_id == other.device_id
        )

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> "Context":
        Context._current.stack = (*Context._current.stack, self)
        return self

    def __exit__(self, *exception: Any) -> None:
        Context._current.stack = Context._current.stack[:-1]

    def empty_cache(self) -> None:
        """Nothing is cached; part of MXNet's interface."""


def cpu(device_id: int = 0) -> Context:
    """The label of CPU number `device_id`."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """The label of page-locked memory; plain memory here."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """The label of a GPU; arrays cannot be made on it."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """The number of GPUs: 0."""
    return 0


CPU0 = Context("cpu", 0)


def current_context() -> Context:
    """The label that new arrays get in this thread."""
    stack = Context._current.stack
    return stack[-1] if stack else CPU0
