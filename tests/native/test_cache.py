"""The kernel cache: what it survives, and what makes it compile again."""

import hashlib
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path

import numba
import numpy as np
import pytest

from numbagrad.native import cache, pipeline
from numbagrad.native import fingerprint as content
from numbagrad.native.compiler import PLAIN, REASSOCIATE, njit
from numbagrad.native.expr import symbol
from numbagrad.native.fingerprint import fingerprint
from numbagrad.native.source import compile_loop

ROOT = Path(__file__).parents[2]

SOURCE = """
from numbagrad.native.compiler import njit

FACTOR = {factor}

@njit(inline=True)
def helper(x):
    # {comment}
    return {helper}

@njit(fastmath={flags})
def main(x, out):
    for i in range(x.size):
        out[i] = FACTOR * helper(x[i])
"""


def make(helper="x + 1.0", factor=2.0, comment="", flags=PLAIN):
    """A kernel and its helper as a new process would make them."""
    module = types.ModuleType("made_for_a_test")
    exec(
        compile(SOURCE.format(helper=helper, factor=factor, comment=comment, flags=flags), "made", "exec"), vars(module)
    )
    return module.main


def run(main, dtype=np.float64):
    """What the kernel makes of 1 and 2, and whether it was compiled for that."""
    before = len(cache.compilations)
    out = np.zeros(2, dtype)
    main(np.array([1, 2], dtype), out)
    return out.tolist(), [each.name for each in cache.compilations[before:]].count("main")


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBAGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_fallback", None)
    return tmp_path / "cache"


def entries(directory):
    return sorted(path.name for path in directory.glob("kernels/*") if path.name.startswith("main-"))


def test_compiled_once_and_loaded_by_the_next_process(directory):
    assert run(make()) == ([4.0, 6.0], 1)
    loads = len(cache.loads)
    assert run(make()) == ([4.0, 6.0], 0)
    assert "main" in cache.loads[loads:]
    assert len(entries(directory)) == 1
    assert run(make(), np.float32) == ([4.0, 6.0], 1)
    assert len(entries(directory)) == 2
    assert not list(directory.glob("kernels/.writing-*"))


def test_what_is_part_of_the_key(directory):
    run(make())
    assert run(make(comment="says more")) == ([4.0, 6.0], 0)
    assert run(make(helper="x + 2.0")) == ([6.0, 8.0], 1)  # an edited helper
    assert run(make(factor=3.0)) == ([6.0, 9.0], 1)  # an edited constant
    assert run(make(flags=REASSOCIATE)) == ([4.0, 6.0], 1)
    assert run(make()) == ([4.0, 6.0], 0)


def test_another_numba_has_other_entries(directory, monkeypatch):
    run(make())
    monkeypatch.setattr(numba, "__version__", "0.999.0")
    assert run(make()) == ([4.0, 6.0], 1)
    assert run(make()) == ([4.0, 6.0], 0)


@pytest.mark.parametrize("version", ["numba", "llvmlite", "sys", "own", "machine", "door"])
def test_every_version_is_part_of_the_fingerprint(version, monkeypatch):
    before = fingerprint(make())
    assert fingerprint(make()) == before
    if version == "own":
        monkeypatch.setattr(content, "_version", lambda: "9.9")
    elif version == "door":  # other passes give other code from the same function
        assert Path(pipeline.__file__).read_bytes() in content._door()
        monkeypatch.setattr(content, "_door", lambda: b"other passes")
    elif version == "machine":
        monkeypatch.setattr(content.platform, "machine", lambda: "z80")
    elif version == "sys":
        monkeypatch.setattr(sys, "version", "9.9")
    else:
        monkeypatch.setattr(getattr(content, version), "__version__", "9.9")
    assert fingerprint(make()) != before


def test_a_fingerprint_is_the_same_in_every_process():
    script = f"""
import runpy
names = runpy.run_path({__file__!r})
print(names["cache"].fingerprint(names["make"]()))
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {fingerprint(make())}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda content: content[:2000] + b"\xff" + content[2001:],
        lambda content: b"something else",
        lambda content: cache._MAGIC + b"\0" * 32 + pickle.dumps(3),
    ],
)
def test_a_damaged_entry_is_a_miss_and_mended(directory, damage):
    run(make())
    (name,) = entries(directory)
    path = directory / "kernels" / name
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert run(make()) == ([4.0, 6.0], 1)
    assert run(make()) == ([4.0, 6.0], 0)
    assert entries(directory) == [name]


def test_a_sound_entry_of_something_else_is_a_miss(directory):
    import hashlib

    run(make())
    (name,) = entries(directory)
    body = pickle.dumps(("no", "kernel"))
    (directory / "kernels" / name).write_bytes(cache._MAGIC + hashlib.sha256(body).digest() + body)
    assert run(make()) == ([4.0, 6.0], 1)


def test_a_directory_that_cannot_be_made_gives_way_to_a_private_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("NUMBAGRAD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cache, "_fallback", None)
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path / "temporary"))
    assert run(make()) == ([4.0, 6.0], 1)
    assert run(make()) == ([4.0, 6.0], 0)
    (private,) = (tmp_path / "temporary").iterdir()
    assert len(entries(private)) == 1
    if hasattr(os, "getuid"):
        assert private.stat().st_mode & 0o077 == 0
    function, _ = compile_loop("t", [symbol(0) * 3.0], "float64", "s", ["float64"])
    out = np.zeros(1)
    function(1, np.ones(1), out)
    assert out[0] == 3.0


@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_read_only_or_closed_directory(directory, tmp_path, monkeypatch, mode):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path / "temporary"))
    run(make())
    for part in (directory / "kernels", directory):
        part.chmod(mode)
    try:
        if os.access(directory, os.W_OK):
            pytest.skip("this user may write anywhere")
        assert run(make()) == ([4.0, 6.0], 0 if mode else 1)
        assert run(make(factor=5.0)) == ([10.0, 15.0], 1)
        assert run(make(factor=5.0)) == ([10.0, 15.0], 0)
        function, _ = compile_loop("t", [symbol(0) * 5.0], "float64", "s", ["float64"])
        assert function(0, np.ones(1), np.ones(1)) == 0
    finally:
        for part in (directory, directory / "kernels"):
            part.chmod(0o700)


def test_no_directory_at_all(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "cache"
    monkeypatch.setattr(cache, "preferred_directory", lambda: nowhere)
    monkeypatch.setattr(cache, "_fallback_directory", lambda: nowhere)
    assert run(make()) == ([4.0, 6.0], 1)
    assert run(make()) == ([4.0, 6.0], 1)
    assert cache.generated_module("t", "loop = 'kept in memory'\n").loop == "kept in memory"


# ----------------------------------------------------------------------------------------- generated modules


def test_a_generated_module_is_made_once_and_importable_by_name(directory):
    text = "loop = object()\n"
    module = cache.generated_module("t", text)
    assert cache.generated_module("t", text) is module
    assert sys.modules[module.__name__] is module
    assert Path(module.__file__).read_text() == text
    assert cache.generated_module("t", text + "# other\n") is not module


def test_a_generated_module_that_fails_leaves_nothing_behind(directory):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.generated_module("t", "1 / 0\n")
    assert not [name for name in sys.modules if name.startswith("numbagrad._generated.t_") and "1 / 0" in name]


def test_a_damaged_generated_module_is_written_again(directory):
    text = "value = 41\n"
    module = cache.generated_module("t", text)
    Path(module.__file__).write_text("value = 'edited'\n")
    del sys.modules[module.__name__]
    again = cache.generated_module("t", text)
    assert again.value == 41
    assert Path(again.__file__).read_text() == text


def test_threads_never_get_half_a_module(directory):
    text = f"import time\ntime.sleep(0.1)\nloop = {time.time()}\n"
    start = threading.Barrier(4)
    found, failed = [], []

    def work():
        start.wait()
        try:
            found.append(cache.generated_module("t", text).loop)
        except AttributeError as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(found) == 4


# ------------------------------------------------------------------------------------------- several processes

PROGRAM = textwrap.dedent(
    """
    import numpy as np
    from numbagrad import autograd, nd
    from numbagrad.native import cache

    x = nd.array([0.5, -1.0])
    x.attach_grad()
    with autograd.record():
        y = nd.tanh(x * x)
    y.backward()
    t = np.array([0.5, -1.0])
    assert np.allclose(x.grad.asnumpy(), 2 * t * (1 - np.tanh(t * t) ** 2), rtol=1e-5)
    print(len(cache.compilations))
    """
)


def start(directory, *more, text=None):
    environment = {**os.environ, "NUMBAGRAD_CACHE_DIR": str(directory), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *more] if text is None else [sys.executable, "-c", text]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_several_processes_start_cold_at_once(tmp_path):
    processes = [start(tmp_path, text=PROGRAM) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    printed, errors = start(tmp_path, text=PROGRAM).communicate(timeout=120)
    assert printed.strip() == "0", errors
    assert not list(tmp_path.rglob(".writing-*"))


FACTORY = textwrap.dedent(
    """
    import sys

    from numbagrad.native.compiler import njit


    def factory(inner):
        def outer(x):
            return inner(x)

        return njit(outer)


    double = factory(njit(lambda x: x * 2.0))
    triple = factory(njit(lambda x: x * 3.0))
    calls = {
        "double": njit(lambda x: double(x)),
        "triple": njit(lambda x: triple(x)),
        "both": njit(lambda x: (double(x), triple(x))),
    }
    print(calls[sys.argv[1]](10.0))
    """
)


def test_functions_of_one_factory_compiled_by_two_processes_stay_apart(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FACTORY)
    printed = [
        start(tmp_path / "cache", str(program), name).communicate(timeout=120)[0].strip()
        for name in ("double", "triple", "both")
    ]
    assert printed == ["20.0", "30.0", "(20.0, 30.0)"]


SPAWNING = textwrap.dedent(
    """
    import multiprocessing

    import numpy as np

    from numbagrad import nd
    from numbagrad.native.expr import symbol
    from numbagrad.native.source import compile_loop


    def apply(function, array):
        out = np.zeros(2)
        function(2, array.asnumpy(), out)
        return nd.array(out, dtype="float64")


    if __name__ == "__main__":
        function, _ = compile_loop("sent", [symbol(0) * 3.0 + 0.125], "float64", "s", ["float64"])
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(apply, (function, nd.array([1.0, 2.0], dtype="float64")))
        print(found.asnumpy().tolist())
    """
)


def test_a_generated_function_goes_to_a_spawned_worker(tmp_path):
    (tmp_path / "spawning.py").write_text(SPAWNING)
    process = start(tmp_path / "cache", str(tmp_path / "spawning.py"))
    printed, errors = process.communicate(timeout=120)
    assert printed.strip() == "[3.125, 6.125]", errors


def test_a_compiled_function_is_pickled_by_name():
    function, _ = compile_loop("t", [symbol(0) + 7.0], "float64", "s", ["float64"])
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(njit(lambda x: x))


APART = """
from numbagrad.native.compiler import njit


@njit(apart=True)
def sums(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@njit
def mean(x):
    return sums(x) / x.size


@njit
def twice(x):
    return 2 * sums(x)


if __name__ == "__main__":
    import numpy as np

    from numbagrad.native import cache

    x = np.arange(4.0)
    print(mean(x), twice(x), [entry.name for entry in cache.compilations], cache.loads)
"""


def test_a_function_apart_is_compiled_once_and_found_again(tmp_path):
    program = tmp_path / "apart_program.py"
    program.write_text(APART)

    def run_it():
        return start(tmp_path / "cache", str(program)).communicate(timeout=120)[0].strip()

    assert run_it() == "1.5 12.0 ['sums', 'mean', 'twice'] []"
    assert run_it() == "1.5 12.0 [] ['sums', 'mean', 'twice']"
    for entry in (tmp_path / "cache").glob("kernels/sums-*.bin"):
        entry.write_bytes(b"")  # damaged: compiled again, and found by the callers on disk
    assert run_it() == "1.5 12.0 ['sums'] ['mean', 'twice']"
    program.write_text(APART.replace("total = 0.0", "total = 2.0"))
    assert run_it() == "2.0 16.0 ['sums', 'mean', 'twice'] []"


def test_code_on_disk_that_needs_what_nobody_provides_is_a_miss(tmp_path):
    program = tmp_path / "apart_program.py"
    program.write_text(APART)
    directory = tmp_path / "cache"
    start(directory, str(program)).communicate(timeout=120)
    for entry in directory.glob("kernels/mean-*.bin"):
        needs, *parts = pickle.loads(entry.read_bytes()[len(cache._MAGIC) + cache._DIGEST :])
        body = pickle.dumps([[(symbol, "nobody", arguments) for symbol, _, arguments in needs], *parts])
        entry.write_bytes(cache._MAGIC + hashlib.sha256(body).digest() + body)
    printed = start(directory, str(program)).communicate(timeout=120)[0].strip()
    assert printed == "1.5 12.0 ['mean'] ['sums', 'twice']"
