"""``python -m numbagrad``: what each command prints and returns, mistakes included."""

import os
import pathlib
import subprocess
import sys

import pytest

import numbagrad
from numbagrad import nd
from numbagrad.command import main
from numbagrad.native import cache

ROOT = pathlib.Path(numbagrad.__file__).resolve().parent.parent


def command(*arguments, cwd=None, **environment):
    """``python -m numbagrad`` with `arguments`, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | environment
    return subprocess.run(
        [sys.executable, "-m", "numbagrad", *arguments], env=environment, cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture
def program(tmp_path):
    """Writes a program, and runs it with ``numbagrad run``."""

    def run(text, *arguments):
        (tmp_path / "program.py").write_text(text, encoding="utf-8")
        return command("run", "program.py", *arguments, cwd=tmp_path)

    return run


# -------------------------------------------------------------------------------------------------------- run


def test_a_program_finds_itself_as_under_python(program, tmp_path):
    (tmp_path / "beside.py").write_text("value = 41\n")
    done = program(
        "import sys, beside\n"
        "import mxnet as mx\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].beside is beside\n"
        "print(sys.argv, sys.path[0] == __file__.rpartition('/')[0].replace('/', '/'), beside.value)\n"
        "print((mx.nd.array([1, 2]) * 2).asnumpy())\n"
        "raise SystemExit(7)\n",
        "--epochs",
        "3",
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["['program.py', '--epochs', '3'] True 41", "[2. 4.]"]
    assert done.returncode == 7


def test_a_traceback_is_the_programs_own(program):
    done = program("import mxnet as mx\n\ndef work():\n    return 1 / 0\n\nwork()\n")
    assert done.returncode == 1
    frames = [line.split(", ", 1)[1] for line in done.stderr.splitlines() if line.startswith("  File")]
    assert frames == ["line 6, in <module>", "line 4, in work"]
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_a_missing_name_is_said_at_the_programs_line(program):
    done = program("from mxnet.gluon import nn, rnnn\n")
    assert done.returncode == 1
    assert [line.split(", ", 1)[1] for line in done.stderr.splitlines() if line.startswith("  File")] == [
        "line 1, in <module>"
    ]
    assert done.stderr.splitlines()[-1] == "ImportError: gluon.rnnn is not in numbagrad yet; near: gluon.nn"


def test_a_program_with_a_syntax_error(program):
    done = program("print('a'\n")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "SyntaxError: '(' was never closed" in done.stderr


def test_an_exception_hook_of_the_program_is_used(program):
    done = program(
        "import sys, traceback\n"
        "sys.excepthook = lambda kind, error, trace: print(kind.__name__, len(traceback.extract_tb(trace)))\n"
        "raise ValueError\n"
    )
    assert (done.stdout, done.returncode) == ("ValueError 1\n", 1)


@pytest.mark.parametrize(("name", "reason"), [("none.py", "No such file"), (".", "s a directory")])
def test_a_file_that_cannot_be_read(name, reason, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    assert main(["run", name]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"numbagrad run: cannot read {name}: ")
    assert reason in message
    assert sys.path == path


# ------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"], ["cache", "burn"], ["demo", "--epochs", "0"]])
def test_mistakes_in_the_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: numbagrad" in capsys.readouterr().err


def test_version_and_help(capsys):
    for flag, words in [("--version", f"numbagrad {numbagrad.__version__}\n"), ("--help", "run a program written for")]:
        with pytest.raises(SystemExit) as stop:
            main([flag])
        assert stop.value.code == 0
        assert words in capsys.readouterr().out


# ----------------------------------------------------------------------------------------------------- others


def test_info(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBAGRAD_CACHE_DIR", str(tmp_path / "here"))
    assert main(["info"]) == 0
    said = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    said = {name: value.strip() for name, value in said.items()}
    assert said["numbagrad"] == numbagrad.__version__
    assert said["NumPy"] == __import__("numpy").__version__
    assert said["Numba"] == __import__("numba").__version__
    assert said["cache directory"] == str(tmp_path / "here")
    assert {"SciPy", "llvmlite", "BLAS", "BLAS threads", "CPU", "CPUs", "CPU features"} <= said.keys()
    assert all(said.values())


def test_info_without_threadpoolctl(monkeypatch):
    from numbagrad.command import info

    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    library, threads = info.blas()
    assert library[0] == "BLAS"
    assert library[1] != "unknown"
    assert "OPENBLAS_NUM_THREADS=3" in threads[1]


def test_cache_info_and_clear(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBAGRAD_CACHE_DIR", str(tmp_path))
    for folder, name, size in [("kernels", "a.bin", 1000), ("kernels", "b.bin", 500), ("generated", "c.py", 12)]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(bytes(size))
    (tmp_path / "mine.txt").write_text("keep")
    assert main(["cache", "info"]) == 0
    said = capsys.readouterr().out.split()
    assert str(tmp_path) in said
    assert "1,512 bytes" in " ".join(said)
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 2 kernels and 1 modules, 1,512 bytes")
    assert cache.usage()[1:] == (0, 0, 0)
    assert (tmp_path / "mine.txt").read_text() == "keep"


ONE_JOB = """
from numbagrad import nd
from numbagrad.command import cache
cache._jobs = lambda: [("joining", lambda: nd.concat(nd.ones((2, 3)), nd.zeros((1, 3)), dim=0))]
raise SystemExit(cache.warm())
"""


def test_what_cache_warm_compiled_is_there_for_the_next_process(tmp_path):
    said = []
    for _ in range(2):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBAGRAD_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", ONE_JOB], env=environment, capture_output=True, text=True)
        assert (done.stderr, done.returncode) == ("", 0)
        said.append(done.stdout.splitlines())
    first, again = ([line.split() for line in lines] for lines in said)
    assert first[0][:-2] == again[0][:-2] == ["joining"]
    assert int(first[0][-2]) > 1
    assert (again[0][-2], again[1][0]) == ("0", "0")


# ------------------------------------------------------------------------------------------------------- demo


def test_demo(capsys, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    from numbagrad.command import demo

    out = tmp_path / "new" / "folder"
    assert main(["demo", "--epochs", "12", "--seed", "3", "--out", str(out)]) == 0
    said = capsys.readouterr()
    lines = {line[:15].strip(): line[15:].split() for line in said.out.splitlines()}
    assert lines[""] == ["eager", "captured", "ratio"]
    eager, captured = (float(share.rstrip("%")) / 100 for share in lines["test accuracy"])
    assert eager == captured >= 0.97
    slow, fast, ratio = (float(number.replace(",", "")) for number in lines["steps a second"])
    assert min(slow, fast, ratio) > 0
    assert " ".join(lines["agreement"]) == "all 540 losses and all parameters are equal, bit for bit"
    assert "training: 100%" in said.err
    picture = (out / "curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) > 20_000
    # The parameters are those of the accuracy that was reported.
    net = demo.network()
    net.load_parameters(str(out / "digits.params"))
    _, images, _, labels = demo.digits()
    assert images.shape == (360, 64)
    assert demo.accuracy(net, nd.array(images), nd.array(labels)) == pytest.approx(captured, abs=5e-5)
    # The same seed, the same network.
    written = (out / "digits.params").read_bytes()
    assert main(["demo", "--epochs", "12", "--seed", "3", "--out", str(out)]) == 0
    assert (out / "digits.params").read_bytes() == written


def test_the_demo_compares_its_two_runs():
    from numbagrad.command import demo

    eager, captured = (demo.Run(mode, 4) for mode in (lambda step: step, numbagrad.jit))
    for run in (eager, captured):
        numbagrad.random.seed(2)
        for _ in range(4):
            run.history.losses.append(float(run.step(nd.ones((3, 64)), nd.array([1, 2, 3])).mean().asscalar()))
    assert demo.difference(eager, captured) == "all 4 losses and all parameters are equal, bit for bit"
    captured.history.losses[2] += 0.25
    weight = next(iter(captured.net.collect_params().values()))
    weight.set_data(weight.data() + 0.5)
    assert demo.difference(eager, captured) == "losses differ by up to 2.5e-01, parameters by up to 5.0e-01"


def test_speeds_of_the_demo_leave_out_the_first_epoch():
    from numbagrad.command import demo

    eager, captured = (demo.History([], [], [], speeds) for speeds in ([1.0, 100, 200, 150], [2.0, 200, 600, 450]))
    assert demo.speeds(eager, captured) == (150, 450, 3)
    first = [history._replace(steps_per_second=history.steps_per_second[:1]) for history in (eager, captured)]
    assert demo.speeds(*first) == (1, 2, 2)


@pytest.mark.parametrize("package", ["sklearn", "matplotlib", "tqdm"])
def test_demo_without_the_extra(package, capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert f"needs {package}" in message
    assert 'pip install "numbagrad[examples]"' in message
    assert not (tmp_path / "out").exists()


def test_demo_that_cannot_write(capsys, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write to" in capsys.readouterr().err
