"""Training steps of all systems side by side, in interleaved rounds so that drift of the machine cancels."""

import json
import os
import pathlib
import subprocess
import sys

from benchmarks.systems import SYSTEMS
from benchmarks.workloads import WORKLOADS

CHECKED_STEPS = 5
TOLERANCE = 1e-3
ROOT = pathlib.Path(__file__).resolve().parent.parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Worker:
    """A process that runs the steps of one system."""

    def __init__(self, key, python, threads, optimizer):
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.key = key
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", key, str(threads), optimizer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def ask(self, request, argument):
        """Send one request and wait for its answer."""
        try:
            print(request, argument, file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RuntimeError(f"{self.key} failed at {request} {argument}; its messages stand above")
        return json.loads(answer)

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def steps_a_round(worker, budget):
    """How many steps fill `budget` seconds, after a warm-up."""
    worker.ask("time", 2)
    seconds = worker.ask("time", 1)["seconds"]
    count = max(1, min(int(budget / seconds), 200))
    seconds = worker.ask("time", count)["seconds"]
    return max(1, int(budget / seconds))


def compare(keys, names, *, optimizer="sgd", threads=1, rounds=7, budget=0.15, pythons=(), say=print):
    """Measure the systems `keys` on the workloads `names`.

    Parameters
    ----------
    optimizer : str
        ``sgd`` or ``adam``; systems that have not got it are left out.
    rounds, budget : int, float
        Each round gives every system `budget` seconds in turn; the minimum over the rounds counts.
    pythons : mapping of str to str
        Interpreters for systems that do not live in this one.

    Returns
    -------
    dict
        ``{name: {key: {"microseconds": float, "first_seconds": float}}}``.
    """
    workers, results = [], {}
    try:
        for key in keys:
            worker = Worker(key, dict(pythons).get(key, sys.executable), threads, optimizer)
            workers.append(worker)
            reason = worker.ask("check", "now")["missing"]
            if reason:
                say(f"{SYSTEMS[key].title}: left out, {reason}")
                workers.pop().close()
        if not workers:
            raise RuntimeError("none of the systems can run here")
        for name in names:
            results[name] = _compare_one(workers, name, rounds, budget)
    finally:
        for worker in workers:
            worker.close()
    return results


def _compare_one(workers, name, rounds, budget):
    first = {worker.key: worker.ask("build", name)["first"] for worker in workers}
    losses = {worker.key: worker.ask("losses", CHECKED_STEPS)["losses"] for worker in workers}
    expected = losses[workers[0].key]
    for key, got in losses.items():
        if any(abs(a - b) > TOLERANCE * abs(b) for a, b in zip(got, expected)):
            raise RuntimeError(
                f"workload {name}: the losses of {key} {got} are not those of {workers[0].key} {expected}"
            )
    counts = {worker.key: steps_a_round(worker, budget) for worker in workers}
    best = dict.fromkeys(counts, float("inf"))
    for _ in range(rounds):
        for worker in workers:
            seconds = worker.ask("time", counts[worker.key])["seconds"]
            best[worker.key] = min(best[worker.key], seconds)
    return {key: {"microseconds": seconds * 1e6, "first_seconds": first[key]} for key, seconds in best.items()}


def table(results):
    """The results as text: microseconds a step, and the ratios to NumPy by hand and to the limit."""
    keys = list(next(iter(results.values())))
    names = list(results)
    width = max(len(SYSTEMS[key].title) for key in keys)
    lines = []

    def block(title, cell):
        lines.append(f"{title:<{width}}" + "".join(f"{name:>12}" for name in names))
        for key in keys:
            lines.append(f"{SYSTEMS[key].title:<{width}}" + "".join(f"{cell(key, name):>12}" for name in names))
        lines.append("")

    def microseconds(key, name):
        us = results[name][key]["microseconds"]
        return f"{us:.1f}" if us < 1000 else f"{us:.0f}"

    block("microseconds a step", microseconds)
    for reference in ("numpy", "limit"):
        if reference in keys:
            block(
                f"ratio to {reference}",
                lambda key, name, base=reference: (
                    f"{results[name][key]['microseconds'] / results[name][base]['microseconds']:.2f}"
                ),
            )
    lines += [f"{name}: {WORKLOADS[name].stands_for}, batch {WORKLOADS[name].batch}" for name in names]
    return "\n".join(lines)
