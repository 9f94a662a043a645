"""The architecture as tests: who may import whom, one compiler door, nothing compiled at import."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "numbagrad"
DOOR = PACKAGE / "native" / "compiler.py"
COMPILING = frozenset(
    "njit jit vectorize guvectorize cfunc stencil jit_module generated_jit intrinsic overload overload_method "
    "overload_attribute register_jitable".split()
)
"""Names of Numba that compile, or that hand code to the compiler with flags unset."""


def bare_compilers(source):
    """Line numbers at which `source` reaches one of Numba's compiling decorators, by whatever name."""
    tree = ast.parse(source)
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.partition(".")[0] == "numba"
    }
    modules |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "numba"
        for alias in node.names
    }
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            if any(alias.name in COMPILING for alias in node.names):
                lines.append(node.lineno)
        elif isinstance(node, ast.Attribute) and node.attr in COMPILING:
            base = node.value
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in modules:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "source",
    [
        "import numba\n@numba.njit\ndef f(): pass",
        "import numba as nb\nf = nb.jit(nopython=True)",
        "from numba import njit",
        "from numba import float32, cfunc as c",
        "from numba.extending import register_jitable",
        "from numba import extending\nextending.intrinsic",
        "import numba.extending\nnumba.extending.intrinsic",
        "def f():\n    import numba\n    return numba.vectorize",
    ],
)
def test_a_bare_compiler_is_found(source):
    assert bare_compilers(source)


@pytest.mark.parametrize(
    "source",
    [
        "from numbagrad.native.compiler import njit\n@njit\ndef f(): pass",
        "from numba import types, carray",
        "import numba\nnumba.float32, numba.__version__",
        "from numba.extending import get_cython_function_address",
        "self.jit, numbagrad.jit",
    ],
)
def test_other_names_are_free(source):
    assert not bare_compilers(source)


def test_numba_compiles_only_through_our_compiler():
    files = sorted(PACKAGE.rglob("*.py"))
    assert DOOR in files
    assert bare_compilers(DOOR.read_text(encoding="utf-8")), "the check no longer sees the one allowed use"
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if path != DOOR
        for line in bare_compilers(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"use njit and intrinsic of numbagrad.native.compiler instead: {', '.join(found)}"


def test_layers_import_only_downwards():
    pytest.importorskip("importlinter")
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


IMPORT_EVERYTHING = """
import importlib, pkgutil
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(str(event.data["dispatcher"]))
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import numbagrad
for module in pkgutil.walk_packages(numbagrad.__path__, "numbagrad."):
    if not module.name.startswith(("numbagrad._generated", "numbagrad.__main__")):
        importlib.import_module(module.name)
print(*compiled, sep="\\n", end="")
"""


def environment(**more):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path} | more


def test_nothing_compiles_or_reaches_the_disk_at_import(tmp_path):
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING],
        env=environment(NUMBAGRAD_CACHE_DIR=str(cache)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert not [path for path in cache.rglob("*") if path.is_file()]
