"""What a module says of a name that it does not have: that numbagrad lacks it so far, and what is near."""

import dis
import importlib
import sys
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]

HOMES = (
    "numbagrad numbagrad.nd numbagrad.nd.contrib numbagrad.nd.linalg numbagrad.nd.random numbagrad.random "
    "numbagrad.autograd numbagrad.gluon numbagrad.gluon.nn numbagrad.gluon.loss "
    "numbagrad.gluon.data numbagrad.gluon.utils numbagrad.initializer numbagrad.optimizer "
    "numbagrad.lr_scheduler numbagrad.metric numbagrad.io numbagrad.context"
).split()
"""The modules whose names programs use: where a name is looked for that was asked of the wrong one."""


def public_names(module: ModuleType) -> list[str]:
    """The names that `module` means to be used: its ``__all__``, else what it defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        own = vars(module).items()
        listed = [name for name, value in own if name[0] != "_" and getattr(value, "__module__", "") == module.__name__]
    return sorted(listed)


def _path(module: str, name: str) -> str:
    inner = module.partition(".")[2]
    return f"{inner}.{name}" if inner else f"mx.{name}"


def near(module: str, name: str) -> list[str]:
    """Up to four names that may have been meant: the same one elsewhere, then alike ones of `module`."""
    found = []
    for home in HOMES:
        other = sys.modules.get(home)
        if other is not None and home != module and name in public_names(other):
            found.append(_path(home, name))
    here = sys.modules.get(module)
    if here is not None:
        spelled = {each.lower(): each for each in public_names(here)}
        import difflib  # not at the top: an error alone needs it

        close = difflib.get_close_matches(name.lower(), spelled, n=4, cutoff=0.6)
        found += [_path(module, spelled[each]) for each in close]
    return list(dict.fromkeys(found))[:4]


def message(module: str, name: str) -> str:
    """The sentence for `name`, asked of `module`."""
    names = near(module, name)
    hint = f"; near: {', '.join(names)}" if names else ""
    return f"{_path(module, name)} is not in numbagrad yet{hint}"


def absent(module: str, later: Collection[str] = ()) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module: imports the submodules `later`, raises with :func:`message` for other names.

    An AttributeError, so that ``hasattr`` works. ``from module import name`` would turn it into an ImportError that
    has lost the message, so to that statement an ImportError is raised at once.
    """

    def __getattr__(name: str) -> Any:
        if name in later:
            found = importlib.import_module(f"{module}.{name}")
            guard(found)
            return found
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        caller: Any = sys._getframe(1)
        importing = caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM
        if importing and f"{module}.{name}" not in sys.modules:  # else: a module that is just being imported
            raise ImportError(message(module, name), name=module)
        raise AttributeError(message(module, name), name=name)  # with a name, Python adds no guess of its own

    return __getattr__


def guard(*modules: ModuleType) -> None:
    """Give each of `modules` the ``__getattr__`` of :func:`absent`."""
    for module in modules:
        module.__getattr__ = absent(module.__name__)  # type: ignore[method-assign]
