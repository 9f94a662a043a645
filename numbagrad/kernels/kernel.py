"""What a kernel is: a compiled function on flat arrays that says what it does with each argument."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from numbagrad.errors import MXNetError
from numbagrad.native.compiler import PLAIN, PYTHON_MODE, njit
from numbagrad.native.thunk import RAISED

ROLES = frozenset({"in", "out", "inout", "size", "scalar", "static"})


class LoopForm(NamedTuple):
    """The expressions of an elementwise kernel, as they were given to ``native.source.compile_loop``."""

    roots: tuple[Any, ...]
    dtype: str
    pattern: str
    out_dtypes: tuple[str, ...]

    @property
    def one_signature(self) -> bool:
        """Whether all calls have arguments of the same types: a large Python int is another type than a small one.

        Such a kernel is called without Numba's dispatcher, which would look at the type of each argument.
        """
        return "k" not in self.pattern or self.dtype.startswith("float")


class Kernel:
    """A compiled function with declared arguments; run it through :func:`numbagrad.launch.launch` only.

    Parameters
    ----------
    function : compiled function
        Takes flat, aligned, C-contiguous arrays, int sizes and numbers; returns int 0, or the code of a failure,
        which it must find before its first write.
    roles : tuple of str
        One an argument: ``in``, ``out`` (written whole, never read), ``inout``, ``size`` (int), ``scalar`` (a
        number that depends on an op's own parameters only) or ``static`` (part of the code's identity).
    failures : mapping of int to (exception class, str)
        What a nonzero return value means: up to 255 codes. To a code a kernel may add 256 times the index of what
        failed, which then stands in the message for ``{index}``.
    """

    __slots__ = ("_function", "failures", "function", "loop", "name", "parts", "roles")

    def __init__(
        self, name: str, function: Any, roles: tuple[str, ...], failures: Mapping[int, tuple[type[Exception], str]]
    ) -> None:
        unknown = set(roles) - ROLES
        if unknown:
            raise ValueError(f"{name}: unknown argument roles {sorted(unknown)}")
        self.name = name
        self._function = function
        self.function: Callable[..., int] = self._first_call
        """What is called with the arguments."""
        self.roles = roles
        self.failures = dict(failures)
        self.parts: Callable[..., list[tuple[Kernel, tuple[Any, ...]]]] | None = None
        """The finer kernel calls that a call with these arguments is made of, for capture to take apart."""
        self.loop: LoopForm | None = None
        """What an elementwise kernel computes, for capture to fuse."""

    def _first_call(self, *arguments: Any) -> int:
        """Stands for `function` until its dispatcher is made; with `__getattr__` instead, all attributes are slow."""
        dispatcher = self.function = self.compiled
        status = dispatcher(*arguments)
        if self.loop is not None and self.loop.one_signature and not PYTHON_MODE:
            compiled = dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, arguments)))
            if compiled is not None:
                self.function = compiled.entry_point
        return status

    @property
    def compiled(self) -> Any:
        """The dispatcher of the function."""
        return getattr(self._function, "dispatcher", self._function)

    @property
    def callee(self) -> Any:
        """The function as other kernels' code calls it; nothing is made for that before they are compiled."""
        return self._function

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(self.roles)})>"

    def failure(self, status: int) -> Exception:
        """The exception for a nonzero return value."""
        index, code = divmod(status, 256)
        if code == RAISED:
            return MemoryError(f"{self.name}: no memory for what it works with")
        kind, message = self.failures.get(code, (MXNetError, f"{self.name}: failed with the unknown status {status}"))
        return kind(message.replace("{index}", str(index)))


def kernel(
    roles: str,
    *,
    failures: Mapping[int, tuple[type[Exception], str]] | None = None,
    fastmath: Iterable[str] = PLAIN,
    apart: bool = False,
) -> Callable[[Callable[..., int]], Kernel]:
    """Declare the decorated function a kernel, its argument roles in one string: ``@kernel("in in out size")``.

    `apart` is for a kernel that others call too, in code of their own; see :func:`numbagrad.native.compiler.njit`.
    """

    def declare(function: Callable[..., int]) -> Kernel:
        compiled = njit(function, fastmath=fastmath, apart=apart)
        return Kernel(function.__name__, compiled, tuple(roles.split()), failures or {})

    return declare
