"""The sweep: every registered op, forward against NumPy, VJP and second order against finite differences."""

import numpy as np
import pytest

import numbagrad  # noqa: F401 - registers every op
from numbagrad import autograd
from numbagrad.nd import NDArray
from numbagrad.ops.registry import REGISTRY, Composed, Elementwise, Fused
from numbagrad.testing import GradientCheck

ELEMENTWISE = sorted(name for name, op in REGISTRY.items() if isinstance(op, Elementwise))
GENERAL = sorted(name for name, op in REGISTRY.items() if isinstance(op, Composed))
SHAPES = {
    1: [((2, 3),), ((),), ((0, 3),)],
    2: [
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((2, 1), (2, 3)),
        ((2, 3), ()),
        ((2, 1), (1, 3)),
        ((2, 1, 2), (1, 3, 1)),
        ((0, 3), (1, 3)),
        ((), ()),
    ],
    3: [((2, 3), (2, 3), (2, 3)), ((2, 3), (), (3,)), ((3,), (2, 1), (2, 3))],
}


def array(values, dtype=None):
    values = np.array(values, dtype)
    return NDArray(values.reshape(-1).copy(), values.shape)


def variable(values):
    result = array(values)
    result.attach_grad()
    return result


def draw(rng, domain, shape):
    low, high = domain
    return rng.uniform(low, high, shape)


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_forward(name):
    op = REGISTRY[name]
    assert op.numpy is not None, f"{name} has no NumPy reference"
    rng = np.random.default_rng(1)
    both = SHAPES[op.arity] if name == "add" else SHAPES[op.arity][:1]  # broadcasting is printed alike for each dtype
    calls = [("float64", shapes) for shapes in SHAPES[op.arity]] + [("float32", shapes) for shapes in both]
    for dtype, shapes in calls:
        inputs = [draw(rng, d, s).astype(dtype) for d, s in zip(op.domains, shapes, strict=True)]
        expected = op.numpy(*inputs)
        result = op(*[array(x) for x in inputs])
        assert result.shape == np.shape(expected)
        assert result.dtype == np.dtype(dtype).type
        tolerance = {"rtol": 2e-6, "atol": 1e-7} if dtype == "float32" else {"rtol": 1e-13, "atol": 1e-15}
        np.testing.assert_allclose(result.asnumpy(), expected, **tolerance)


def elementwise_cases(op, rng):
    """The functions whose gradients are checked for an elementwise op, and their inputs."""
    for shapes in SHAPES[op.arity]:
        yield op, [draw(rng, d, s) for d, s in zip(op.domains, shapes, strict=True)]
    if op.arity == 2:
        low = max(domain[0] for domain in op.domains)
        high = min(domain[1] for domain in op.domains)
        if low < high:
            yield lambda x: op(x, x * 1.0), [draw(rng, (low, high), (2, 2))]  # the same array twice
            number = float(draw(rng, (low, high), ()))
            yield lambda x: op(x, number), [draw(rng, op.domains[0], (3,))]
            yield lambda x: op(number, x), [draw(rng, op.domains[1], (3,))]


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if REGISTRY[name].differentiable])
def test_elementwise_gradients(name):
    rng = np.random.default_rng(2)
    for function, inputs in elementwise_cases(REGISTRY[name], rng):
        GradientCheck(function, inputs, rng).check()


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if not REGISTRY[name].differentiable])
def test_elementwise_without_gradient_gives_zero(name):
    op = REGISTRY[name]
    rng = np.random.default_rng(3)
    inputs = [variable(draw(rng, d, (2, 3))) for d in op.domains]
    for x in inputs:
        x.grad[:] = 7
    with autograd.record():
        y = op(*inputs)
    y.backward()
    if name == "trigamma":
        return
    for x in inputs:
        assert (x.grad.asnumpy() == 0).all()


def general_cases(op):
    """The functions whose gradients are checked for another op, and their inputs."""
    for sample in op.samples() if op.differentiable else ():
        if sample.smooth:
            through = sample.through or (lambda x: x)
            function = lambda *arrays, sample=sample, through=through: op(*map(through, arrays), **sample.params)  # noqa: E731
            yield function, [x if x is None else np.array(x) for x in sample.arrays]


@pytest.mark.parametrize("name", GENERAL)
def test_general(name):
    op = REGISTRY[name]
    assert op.samples is not None, f"{name} has no samples"
    samples = op.samples()
    assert samples, f"{name} has no samples"
    for k, sample in enumerate(samples):
        expected = as_list(sample.expected(*sample.arrays))
        for dtype in ("float64", "float32"):
            inputs = [x if x is None else array(x.astype(dtype) if x.dtype == np.float64 else x) for x in sample.arrays]
            results = as_list(op(*inputs, **sample.params))
            assert len(results) == len(expected)
            for result, value in zip(results, expected, strict=True):
                assert result.shape == np.shape(value), f"sample {k}"
                tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-14}
                np.testing.assert_allclose(result.asnumpy(), value, err_msg=f"sample {k}", **tolerance)
    for function, inputs in general_cases(op):
        GradientCheck(function, inputs, np.random.default_rng(4)).check()


@pytest.mark.parametrize("name", sorted(name for name, op in REGISTRY.items() if isinstance(op, Fused)))
def test_fused_equals_its_reference(name):
    op = REGISTRY[name]
    for sample in op.samples():
        rng = np.random.default_rng(5)
        inputs = [x if x is None else np.array(x) for x in sample.arrays]
        fused = GradientCheck(lambda *arrays, sample=sample: op(*arrays, **sample.params), inputs, rng)
        plain = GradientCheck(
            lambda *arrays, sample=sample: op.reference(*arrays, **sample.params), inputs, np.random.default_rng(5)
        )
        arguments = [array(x) if x is not None else None for x in inputs]
        for a, b in zip(fused.outputs(arguments), plain.outputs(arguments), strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-12, atol=1e-14)
        for method in ("first", "second"):
            if method == "second" and not op.differentiable:
                continue
            ours, theirs = getattr(fused, method)(), getattr(plain, method)()
            for i in fused.which:
                np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-10, atol=1e-12, err_msg=method)
