"""Third order over the registry: gradients of gradients of gradients against central differences of second order.

One number a sample: with phi(x) = <h, sin(op(x))>, which leaves no derivative of a linear op at zero, the derivative of
<w, H(x) v> along u, H being the Hessian of phi and u, v, w random directions.
"""

import numpy as np
import pytest

import numbagrad  # noqa: F401 - registers every op
from numbagrad import nd
from numbagrad.ops.registry import REGISTRY, Composed, Elementwise
from numbagrad.transforms import grad, hvp

EPSILON = 1e-5


def array(values):
    return nd.array(values, dtype="float64")


def inner(xs, ys):
    return sum((x * y).sum() for x, y in zip(xs, ys, strict=True))


def check(function, inputs, seed=0):
    """Compare the third order of `function` at `inputs`; arrays of anything but floats, and None, are constants."""
    rng = np.random.default_rng(seed)
    which = [i for i, x in enumerate(inputs) if x is not None and np.asarray(x).dtype.kind == "f"]
    fixed = [None if x is None else nd.array(x, dtype=np.asarray(x).dtype) for x in inputs]

    def outputs(xs):
        arguments = list(fixed)
        for i, x in zip(which, xs, strict=True):
            arguments[i] = x
        found = function(*arguments)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    point = [np.asarray(inputs[i], "float64") for i in which]
    heads = [array(rng.uniform(0.5, 1.5, y.shape)) for y in outputs([array(x) for x in point])]
    u, v, w = ([rng.uniform(-1, 1, x.shape) for x in point] for _ in range(3))
    v, w = ([array(x) for x in xs] for xs in (v, w))

    def phi(*xs):
        return inner(heads, [nd.sin(y) for y in outputs(xs)])

    def second(*xs):
        return inner(w, hvp(phi, xs, v))

    third = grad(second, tuple(range(len(which))))(*[array(x) for x in point])
    got = sum(float((g.asnumpy() * direction).sum()) for g, direction in zip(third, u, strict=True))
    ends = [
        second(*[array(x + step * direction) for x, direction in zip(point, u, strict=True)]).item()
        for step in (EPSILON, -EPSILON)
    ]
    expected = (ends[0] - ends[1]) / (2 * EPSILON)
    scale = max(abs(ends[0]), abs(expected), 1.0)
    assert got == pytest.approx(expected, rel=1e-5, abs=2e-7 * scale)


def drawn(op, shapes, seed):
    rng = np.random.default_rng(seed)
    return [rng.uniform(*domain, shape) for domain, shape in zip(op.domains, shapes, strict=True)]


ELEMENTWISE = sorted(name for name, op in REGISTRY.items() if isinstance(op, Elementwise) and op.differentiable)


def elementwise_cases(op):
    """The functions that are checked for an elementwise op, and their inputs: alike, broadcast, one array twice."""
    yield op, drawn(op, [(2,)] * op.arity, 1)
    if op.arity == 2:
        yield op, drawn(op, [(2, 1), (1, 2)], 2)
        low = max(domain[0] for domain in op.domains)
        high = min(domain[1] for domain in op.domains)
        if low < high:
            yield lambda x: op(x, x * 1.0), [np.random.default_rng(3).uniform(low, high, 2)]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    for function, inputs in elementwise_cases(REGISTRY[name]):
        check(function, inputs)


def smallest(op):
    """The smallest sample of an op that is smooth and has elements, or None."""
    samples = [sample for sample in op.samples() if sample.smooth]
    sizes = [sum(np.size(x) for x in sample.arrays if x is not None) for sample in samples]
    return min(((n, k, samples[k]) for k, n in enumerate(sizes) if n), default=(0, 0, None))[2]


SMALLEST = {
    name: smallest(op) for name, op in sorted(REGISTRY.items()) if isinstance(op, Composed) and op.differentiable
}


def test_what_is_left_out():
    assert [name for name, sample in SMALLEST.items() if sample is None] == ["cast_"]


@pytest.mark.parametrize("name", [name for name, sample in SMALLEST.items() if sample is not None])
def test_general(name):
    op, sample = REGISTRY[name], SMALLEST[name]
    through = sample.through or (lambda x: x)
    check(lambda *xs: op(*[x if x is None else through(x) for x in xs], **sample.params), sample.arrays)


def count():
    """How many directions are checked."""
    elementwise = sum(len(list(elementwise_cases(REGISTRY[name]))) for name in ELEMENTWISE)
    return elementwise + sum(sample is not None for sample in SMALLEST.values())


def test_a_wrong_third_order_is_found():
    def cube(x):
        """x ** 3 whose value and first two derivatives are right."""
        at = x.detach()
        return at**3 + 3 * at**2 * (x - at) + 3 * at * (x - at) ** 2

    x = np.array([0.5, 1.5])
    check(lambda x: x**3, [x])
    with pytest.raises(AssertionError):
        check(cube, [x])
