"""What a user waits for before the first result: import, and the first step with a cold and a warm kernel cache."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMPORT = "start = time.perf_counter(); import numbagrad; print(time.perf_counter() - start)"
FIRST_STEP = """
import numbagrad
from benchmarks.systems import SYSTEMS
start = time.perf_counter()
SYSTEMS[{key!r}].build({name!r})()
print(time.perf_counter() - start)
"""


def fresh(code, cache):
    """Seconds that `code` prints, run in a new process with the kernel cache `cache`."""
    environment = os.environ | {"NUMBAGRAD_CACHE_DIR": str(cache)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", f"import time\n{code}"]
    done = subprocess.run(command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    return float(done.stdout.split()[-1])


def import_seconds(runs=7):
    """Minimum time of ``import numbagrad`` over `runs` new processes."""
    with tempfile.TemporaryDirectory() as cache:
        return min(fresh(IMPORT, cache) for _ in range(runs))


def first_step_seconds(name="E", key="eager", runs=3):
    """Time to build the network of workload `name` and train its first step, after import.

    Returns
    -------
    cold, warm : float
        Once with an empty kernel cache; minimum over `runs` new processes with the cache it left.
    """
    code = FIRST_STEP.format(key=key, name=name)
    with tempfile.TemporaryDirectory() as cache:
        cold = fresh(code, cache)
        return cold, min(fresh(code, cache) for _ in range(runs))


def measure():
    """All figures of this module, in seconds."""
    figures = {"import": import_seconds()}
    for key, step in (("eager", "first step of E"), ("jit", "first captured step of E")):
        figures[f"{step}, cold cache"], figures[f"{step}, warm cache"] = first_step_seconds(key=key)
    return figures


def table(figures):
    """The figures as text."""
    return "\n".join(f"{name:<38}{seconds:>8.3f} s" for name, seconds in figures.items())
