"""The name ``mxnet`` for numbagrad, so that programs written for MXNet run as they are.

After :func:`install`, ``mxnet`` and its submodules are not copies but the very modules of numbagrad: ``mxnet.nd`` is
``numbagrad.nd``, and a class is the same class under both names.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numbagrad
from numbagrad.absent import message

ELSEWHERE = {
    "gluon.nn.basic_layers": "gluon.nn",
    "ndarray.op": "nd",
    "optimizer.optimizer": "optimizer",
}
"""Modules of MXNet whose names live in another module here."""


def counterpart(name: str) -> ModuleType:
    """The module of numbagrad that answers to `name`, ``mxnet`` or ``mxnet.`` and a path.

    Raises
    ------
    ModuleNotFoundError
        If there is none; the message names what is near.
    """
    inner = name.partition(".")[2]
    module: ModuleType = numbagrad
    for part in filter(None, ELSEWHERE.get(inner, inner).split(".")):
        found = vars(module).get(part)
        if not isinstance(found, ModuleType):
            full = f"{module.__name__}.{part}"
            try:
                found = importlib.import_module(full)
            except ModuleNotFoundError as error:
                if error.name != full and error.name != module.__name__:
                    raise  # something that the module itself needs
                raise ModuleNotFoundError(message(module.__name__, part), name=name) from None
        module = found
    return module


class _Finder:
    """Finds, at the head of ``sys.meta_path``, what begins with ``mxnet``; it is its own loader."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name != "mxnet" and not name.startswith("mxnet."):
            return None
        return ModuleSpec(name, self, is_package=hasattr(counterpart(name), "__path__"))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """None: a plain module, which ``exec_module`` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the counterpart into ``sys.modules``, where the import takes it from."""
        sys.modules[module.__name__] = counterpart(module.__name__)


_finder = _Finder()


def install() -> None:
    """Let ``import mxnet`` mean numbagrad from now on, in this process; a second call changes nothing.

    Examples
    --------
    >>> import numbagrad.mxnet_name
    >>> numbagrad.mxnet_name.install()
    >>> import mxnet as mx
    >>> mx.nd is numbagrad.nd
    True
    >>> numbagrad.mxnet_name.uninstall()

    Raises
    ------
    ImportError
        If another ``mxnet`` has been imported already.
    """
    loaded = sys.modules.get("mxnet")
    if loaded is not None and loaded is not numbagrad:
        raise ImportError(f"another mxnet is imported already: {getattr(loaded, '__file__', loaded)}", name="mxnet")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Take the name back; modules that hold numbagrad as ``mx`` keep it."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name == "mxnet" or name.startswith("mxnet.")]:
        del sys.modules[name]
