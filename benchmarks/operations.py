"""Single operations, numbagrad's beside NumPy's: what is measured, and ``python -m benchmarks.operations``."""

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SIZES = (65_536, 4_194_304)
SHAPES = ((1000, 1003), (65_537, 3), (3, 65_537))
CUBE = (101, 103, 97)


class Operation(NamedTuple):
    """One operation in both libraries, on float32 arrays of `shapes`."""

    group: str
    name: str
    ours: Callable
    numpy: Callable
    shapes: tuple[tuple[int, ...], ...]

    @property
    def title(self):
        """The name with the shapes, as it stands in tables and ids."""
        return f"{self.name} {' '.join('x'.join(map(str, shape)) for shape in self.shapes)}"

    @property
    def elements(self):
        """How many elements are computed from, broadcast."""
        return math.prod(np.broadcast_shapes(*self.shapes))

    def inputs(self):
        """The same values each time: of both signs for elementwise operations, positive ones for reductions."""
        rng = np.random.default_rng(0)
        if self.group == "reductions":
            return [rng.uniform(0.5, 1.5, shape).astype(np.float32) for shape in self.shapes]
        return [rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]


def operations():
    """All that is measured, in the order of the table."""
    from numbagrad import nd

    unary = {
        "exp": (nd.exp, np.exp),
        "expm1": (nd.expm1, np.expm1),
        "log of |x|": (lambda x: nd.log(nd.abs(x)), lambda x: np.log(np.abs(x))),
        "tanh": (nd.tanh, np.tanh),
        "sigmoid": (nd.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
        "relu": (nd.relu, lambda x: np.maximum(x, 0)),
        "sin": (nd.sin, np.sin),
        "sqrt of |x|": (lambda x: nd.sqrt(nd.abs(x)), lambda x: np.sqrt(np.abs(x))),
        "abs": (nd.abs, np.abs),
        "square": (nd.square, np.square),
        "floor": (nd.floor, np.floor),
        "clip": (lambda x: nd.clip(x, -1, 1), lambda x: np.clip(x, -1, 1)),
        "x + 1": (lambda x: x + 1, lambda x: x + 1),
        "copy": (lambda x: x.copy(), lambda x: x.copy()),
    }
    binary = {
        "add": (lambda x, y: x + y, np.add),
        "mul": (lambda x, y: x * y, np.multiply),
        "div": (lambda x, y: x / y, np.divide),
        "maximum": (nd.maximum, np.maximum),
        "less": (lambda x, y: x < y, lambda x, y: (x < y).astype(np.float32)),
    }
    broadcast = {
        "row": lambda rows, columns: ((rows, columns), (1, columns)),
        "column": lambda rows, columns: ((rows, columns), (rows, 1)),
        "outer": lambda rows, columns: ((rows, 1), (1, columns)),
    }
    reductions = {
        "sum": (nd.sum, np.sum),
        "mean": (nd.mean, np.mean),
        "max": (nd.max, np.max),
        "prod": (nd.prod, np.prod),
        "norm": (nd.norm, lambda x, axis=None: np.sqrt(np.sum(x * x, axis=axis))),
        "argmax": (nd.argmax, lambda x, axis=None: np.argmax(x, axis=axis).astype(np.float32)),
    }
    found = []
    for size in SIZES:
        found += [Operation("elementwise", name, *pair, ((size,),)) for name, pair in unary.items()]
        found += [Operation("elementwise", name, *pair, ((size,), (size,))) for name, pair in binary.items()]
    for kind, shapes in broadcast.items():
        for rows, columns in SHAPES:
            for name in ("add", "mul"):
                ours = getattr(nd, f"broadcast_{name}")
                numpy = binary[name][1]
                found.append(Operation("broadcasting", f"{name}, {kind}", ours, numpy, shapes(rows, columns)))
    middle = (CUBE, (CUBE[0], 1, CUBE[2]))
    found.append(Operation("broadcasting", "add, middle", nd.broadcast_add, np.add, middle))
    for name, (ours, numpy) in reductions.items():
        for size in SIZES:
            found.append(_reduction(name, ours, numpy, (size,), None))
        for shape in SHAPES:
            found += [_reduction(name, ours, numpy, shape, axis) for axis in (0, 1)]
        axes = (0, 1, 2) if name == "argmax" else (0, 1, 2, (0, 2))
        found += [_reduction(name, ours, numpy, CUBE, axis) for axis in axes]
    return found


def _reduction(name, ours, numpy, shape, axis):
    if axis is None:
        return Operation("reductions", name, ours, numpy, (shape,))
    title = f"{name} over {axis} of"
    return Operation("reductions", title, lambda x: ours(x, axis=axis), lambda x: numpy(x, axis=axis), (shape,))


def check(operation, ours, inputs):
    """Compare numbagrad's result with NumPy's in float64."""
    expected = operation.numpy(*[x.astype(np.float64) for x in inputs])
    rtol = 1e-5 if operation.group == "reductions" else 1e-6
    got = operation.ours(*ours).asnumpy()
    np.testing.assert_allclose(np.ravel(got), np.ravel(expected), rtol=rtol, atol=1e-3 * rtol, err_msg=operation.title)


def measure(operation, *, rounds=15, budget=0.002):
    """Seconds a call of NumPy and of numbagrad: the minimum over rounds that give each `budget` seconds in turn."""
    from numbagrad import nd

    inputs = operation.inputs()
    arrays = [nd.array(x) for x in inputs]
    check(operation, arrays, inputs)
    calls = ((operation.numpy, inputs), (operation.ours, arrays))

    def seconds(function, arguments, count):
        start = time.perf_counter()
        for _ in range(count):
            function(*arguments)
        return (time.perf_counter() - start) / count

    counts = [max(1, int(budget / min(seconds(*call, 1) for _ in range(3)))) for call in calls]
    best = [math.inf] * 2
    for _ in range(rounds):
        for i, call in enumerate(calls):
            best[i] = min(best[i], seconds(*call, counts[i]))
    return best


def main():
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="operations whose title contains TEXT")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds; the minimum counts (default: 15)")
    parser.add_argument("--above", type=float, default=0, metavar="RATIO", help="only what is slower than RATIO")
    options = parser.parse_args()
    chosen = [each for each in operations() if options.only in each.title]
    for operation in chosen:  # compiles what is not compiled yet
        measure(operation, rounds=1)
    print(f"one thread, float32, minimum of {options.rounds} interleaved rounds, microseconds a call")
    print(f"{'':<42}{'NumPy':>10}{'numbagrad':>10}{'ratio':>8}{'ns an element':>15}")
    group = None
    for operation in chosen:
        numpy, ours = measure(operation, rounds=options.rounds)
        if ours < options.above * numpy:
            continue
        if operation.group != group:
            group = operation.group
            print(group)
        figures = f"{numpy * 1e6:>10.1f}{ours * 1e6:>10.1f}{ours / numpy:>8.2f}{ours / operation.elements * 1e9:>15.3f}"
        print(f"  {operation.title:<40}{figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
