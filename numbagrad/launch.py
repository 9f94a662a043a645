"""The one door through which array data is written.

Eager code, forward, backward, optimisers, random fills and copies all run their kernels here, so that capture
(and the profiler) see every one of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from numbagrad.errors import CaptureError
from numbagrad.kernels.kernel import Kernel


class Watcher(Protocol):
    """Who stands at the door while :data:`mode` is set."""

    def kernel(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        """Run, log or time one kernel call."""

    def host(self, effect: Callable[[], None], before: bool = False, epoch: Any = None) -> None:
        """Run or log one effect that is no kernel."""

    def read(self) -> None:
        """Allow or refuse that Python reads a value."""

    def delivered(self, leaf: Any) -> None:
        """Note that backward has written the gradient of a leaf."""

    def mine(self) -> bool:
        """Whether it watches the caller's thread."""

    def walking(self, nodes: Sequence[Any]) -> None:
        """Allow or refuse a backward through these nodes."""

    def start(self) -> None:
        """Watch what arrays are made and written."""

    def stop(self) -> None:
        """Do not watch what arrays are made and written."""


mode: Watcher | None = None
"""None when nobody captures or profiles."""


def launch(kernel: Kernel, *arguments: Any) -> None:
    """Run `kernel`; raises what the kernel declares for a nonzero status."""
    if mode is None:
        status = kernel.function(*arguments)
        if status:
            raise kernel.failure(status)
    else:
        mode.kernel(kernel, arguments)


def host(effect: Callable[[], None], before: bool = False, epoch: Any = None) -> None:
    """Run a Python effect that must happen again at each replay: a schedule, a count, a flag.

    `before`: the kernels of the step read what it writes; else it happens once they have succeeded. `epoch`: the effect
    has nothing to do as long as the number ``epoch.value`` stands.
    """
    if mode is None:
        effect()
    else:
        mode.host(effect, before, epoch)


class aside:  # lower case: it reads as a statement, with aside():
    """A scope whose launches belong to no captured step: states and parameters that are made on first use."""

    def __enter__(self) -> None:
        global mode
        self._mode = mode if mode is not None and mode.mine() else None
        if self._mode is not None:
            mode = None
            self._mode.stop()

    def __exit__(self, *exception: Any) -> None:
        global mode
        if self._mode is not None:
            mode = self._mode
            mode.start()


def reading() -> None:
    """Announce that the value of an array is about to be read by Python."""
    if mode is not None:
        mode.read()


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise CaptureError(
        "a captured function cannot compute with a NumPy argument, or read it: a replay would not do it again. Make an "
        "array of it first (nd.array(x), or y[:] = x), or do it outside"
    )


class Handed(np.ndarray):
    """A NumPy argument as a captured function sees it: it can become an NDArray, and nothing else."""

    __array_ufunc__ = __array_function__ = __setitem__ = __float__ = __int__ = __bool__ = __iter__ = _refuse
    astype = copy = flatten = item = tolist = tobytes = __array__ = __index__ = __complex__ = _refuse

    def __getitem__(self, key: Any) -> Any:
        """A view; a number is refused."""
        found = super().__getitem__(key)
        if not isinstance(found, Handed):
            return _refuse()
        start, at = self.__array_interface__["data"][0], found.__array_interface__["data"][0]
        return found if start <= at <= start + self.nbytes else _refuse()


def plain(array: np.ndarray) -> np.ndarray:
    """`array` as a NumPy array that is no :class:`Handed`, on the same memory.

    Raises
    ------
    CaptureError
        For a view of an argument that is not contiguous.
    """
    if not array.flags.c_contiguous:
        _refuse()
    return np.ndarray.view(array, np.ndarray)
