"""Compiled kernels on disk, keyed by what they were compiled from.

Numba's own cache is keyed by file times and misses functions that call other functions. Here the key of a
kernel is a fingerprint of its code and of everything it reaches - helpers, intrinsics, constants - together
with the flags and the versions of numbagrad, Numba, llvmlite, Python and the CPU, so a stale entry cannot be
hit. There is one file per kernel and signature, written aside and renamed: there is no index to race for, and
an entry that is damaged in any way is a miss.
"""

import hashlib
import importlib
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import Any, NamedTuple

from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from numbagrad.files import write_whole
from numbagrad.native import symbols
from numbagrad.native.fingerprint import fingerprint, stable
from numbagrad.native.pipeline import rebuild_linked

_MAGIC = b"numbagrad kernel 1\n"
_DIGEST = 32


class Compilation(NamedTuple):
    """One entry of :data:`compilations`: what was compiled in this process, and how long it took."""

    name: str
    signature: str
    seconds: float


compilations: list[Compilation] = []
"""Every kernel compiled (not loaded) by this process, in order."""

loads: list[str] = []
"""The name of every kernel loaded from disk by this process, in order."""


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "numbagrad"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "numbagrad"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "numbagrad"


def preferred_directory() -> Path:
    """The cache directory asked for: ``NUMBAGRAD_CACHE_DIR``, else the user's cache directory."""
    named = os.environ.get("NUMBAGRAD_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    try:
        return _user_cache()
    except RuntimeError:  # no home directory
        return Path(tempfile.gettempdir()) / "numbagrad-homeless"


_fallback: Path | None = None


def _fallback_directory() -> Path:
    """A private temporary directory: entries are unpickled, so nobody else may write there."""
    global _fallback
    if _fallback is None:
        candidate = Path(tempfile.gettempdir()) / f"numbagrad-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
        try:
            candidate.mkdir(mode=0o700, exist_ok=True)
            found = candidate.lstat()
            private = candidate.is_dir() and not candidate.is_symlink()
            if hasattr(os, "getuid"):
                private = private and found.st_uid == os.getuid() and not found.st_mode & 0o022
        except OSError:
            private = False
        _fallback = candidate if private else Path(tempfile.mkdtemp(prefix="numbagrad-"))
    return _fallback


def directories() -> list[Path]:
    """Where entries are looked for, in order."""
    preferred = preferred_directory()
    return [preferred] if _fallback is None else [preferred, _fallback]


def _write(name: str, content: bytes) -> Path | None:
    """Write an entry so that no reader ever sees half of it; None where no directory takes it."""
    for choose in (preferred_directory, _fallback_directory):
        try:
            target = choose() / name
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, [content])
            return target
        except OSError:
            continue
    return None


def _read(name: str) -> bytes | None:
    for directory in directories():
        try:
            return (directory / name).read_bytes()
        except OSError:
            continue
    return None


# ------------------------------------------------------------------------------------------------- the cache


class KernelCache:
    """What Numba's dispatcher asks for compiled overloads; one a kernel."""

    cache_path = None

    def __init__(self, function: types.FunctionType, flags: dict[str, Any], linked: bool) -> None:
        self._function = function
        self._flags = (*stable(flags), linked)
        self._rebuild = rebuild_linked if linked else CompileResult._rebuild
        self._fingerprint: str | None = None
        self._started: dict[Any, float] = {}

    def _entry(self, signature: Any, magic: tuple[Any, ...]) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self._function, self._flags)
        key = hashlib.sha256(f"{self._fingerprint} {signature} {magic}".encode()).hexdigest()
        return f"kernels/{self._function.__name__}-{key[:40]}.bin"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled overload from disk, or None; every fault is a miss."""
        rtsys.initialize(target)  # all that loaded code needs of target.refresh(), which would take 0.3 s
        try:
            content = _read(self._entry(signature, target.codegen().magic_tuple()))
            if content is not None and content.startswith(_MAGIC):
                body = content[len(_MAGIC) + _DIGEST :]
                if hashlib.sha256(body).digest() == content[len(_MAGIC) : len(_MAGIC) + _DIGEST]:
                    needs, *parts = pickle.loads(body)
                    symbols.provide(needs)
                    result = self._rebuild(target, *parts)
                    loads.append(self._function.__name__)
                    return result
        except Exception:  # whatever is wrong with an entry, compiling again mends it
            pass
        self._started[signature] = time.perf_counter()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a fresh overload, and note in :data:`compilations` that it was compiled."""
        seconds = time.perf_counter() - self._started.pop(signature, time.perf_counter())
        name, module = self._function.__name__, self._function.__module__
        if module.startswith("numbagrad._generated."):  # named by what it was generated for
            name = module.rpartition(".")[2].rpartition("_")[0]
        compilations.append(Compilation(name, str(signature), seconds))
        if result.library.has_dynamic_globals or any(not lifted.can_cache for lifted in result.lifted):
            return
        body = dumps((symbols.needs(result.library), *result._reduce()))
        content = _MAGIC + hashlib.sha256(body).digest() + body
        _write(self._entry(signature, result.codegen.magic_tuple()), content)

    def enable(self) -> None:
        """Part of Numba's interface: the cache is always on."""

    def disable(self) -> None:
        """Part of Numba's interface: the cache is always on."""

    def flush(self) -> None:
        """Part of Numba's interface: entries are never stale."""


# ----------------------------------------------------------------------------------------- generated modules


def generated_paths() -> list[str]:
    """The search path of ``numbagrad._generated``, so that spawned workers import its modules by name."""
    return [str(directory / "generated") for directory in directories()]


_making = threading.RLock()


def generated_module(stem: str, text: str) -> types.ModuleType:
    """The module ``numbagrad._generated.<stem>_<hash of text>``, made from `text` at most once a process."""
    name = f"{stem}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    full = f"numbagrad._generated.{name}"
    with _making:  # another thread must not get hold of half a module
        return sys.modules.get(full) or _make_module(full, f"generated/{name}.py", text)


def _make_module(full: str, entry: str, text: str) -> types.ModuleType:
    content = text.encode()
    path: Path | str | None = None
    for directory in directories():
        try:
            if (directory / entry).read_bytes() == content:
                path = directory / entry
                break
        except OSError:
            continue
    if path is None:
        path = _write(entry, content) or f"<{full}>"
    module = types.ModuleType(full)
    module.__file__ = str(path)
    code = compile(text, str(path), "exec")
    sys.modules[full] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[full]
        raise
    package = importlib.import_module("numbagrad._generated")  # not at the top: it asks this module for its path
    package.__path__ = generated_paths()
    return module


# ------------------------------------------------------------------------------------------------ inspection


class Usage(NamedTuple):
    """What a cache directory holds."""

    directory: Path
    kernels: int
    modules: int
    size: int


def usage() -> Usage:
    """Count the entries of the cache and their bytes."""
    directory = preferred_directory()
    kernels = [path for path in directory.glob("kernels/*.bin") if path.is_file()]
    modules = [path for path in directory.glob("generated/*.py") if path.is_file()]
    return Usage(directory, len(kernels), len(modules), sum(path.stat().st_size for path in kernels + modules))


def clear() -> Usage:
    """Remove every entry of the cache; returns what there was."""
    found = usage()
    for part in ("kernels", "generated"):
        shutil.rmtree(found.directory / part, ignore_errors=True)
    return found
