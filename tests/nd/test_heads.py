"""The loss heads: outputs, and the gradients that MXNet 1.9.1 gives for them."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, jit, nd

X = np.array([[1.0, 2, -1], [0.5, 0, 3], [2, 2, 1]])
LABEL = np.array([2.0, 0, -1])
P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
TARGET = np.array([[0.5, 2, 3], [1, 0, -1], [2, 1, 0]])
HEAD = np.arange(9.0).reshape(3, 3)


def run(f, x, *others, head=HEAD):
    """The output and the gradient of x, under a head gradient that must not matter."""
    x, others = nd.array(x), [nd.array(each) for each in others]
    for each in (x, *others):
        each.attach_grad()
    with autograd.record():
        y = f(x, *others)
    y.backward(None if head is None else nd.array(head))
    for each in others:
        assert not each.grad.asnumpy().any()
    return y.asnumpy(), x.grad.asnumpy()


# Gradients from MXNet 1.9.1.
SOFTMAX = [
    ({}, [[0.259496, 0.705385, -0.964881], [-0.927479, 0.043986, 0.883492], [0.422319, 0.422319, 0.155362]]),
    (
        {"grad_scale": 2.0, "use_ignore": True},
        [[0.518993, 1.410769, -1.929762], [-1.854957, 0.087973, 1.766984], [0, 0, 0]],
    ),
    (
        {"use_ignore": True, "ignore_label": 0},
        [[0.259496, 0.705385, -0.964881], [0, 0, 0], [0.422319, 0.422319, 0.155362]],
    ),
    (
        {"normalization": "batch"},
        [[0.086499, 0.235128, -0.321627], [-0.30916, 0.014662, 0.294497], [0.140773, 0.140773, 0.051787]],
    ),
    (
        {"normalization": "valid"},
        [[0.129748, 0.352692, -0.48244], [-0.463739, 0.021993, 0.441746], [0.211159, 0.211159, 0.077681]],
    ),
    (
        {"smooth_alpha": 0.1},
        [[0.209496, 0.655385, -0.864881], [-0.827479, -0.006014, 0.833492], [0.372319, 0.372319, 0.105362]],
    ),
    (
        {"smooth_alpha": 0.1, "use_ignore": True, "normalization": "valid", "grad_scale": 3},
        [[0.314245, 0.983077, -1.297321], [-1.241218, -0.00902, 1.250238], [0, 0, 0]],
    ),
]


@pytest.mark.parametrize(("keywords", "expected"), SOFTMAX, ids=lambda value: str(value)[:60])
def test_softmax_output(keywords, expected):
    y, gradient = run(lambda x, label: nd.SoftmaxOutput(x, label, **keywords), X, LABEL)
    np.testing.assert_allclose(y, P, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected, atol=2e-6)


@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
@pytest.mark.parametrize("shape", [(2, 4), (2, 2, 2), (2, 1, 2, 2)])
def test_softmax_output_of_many_positions(shape, normalization):
    x = np.sin(np.arange(24.0)).reshape(2, 3, 2, 2)
    label = np.array([[0, 1, 2, 0], [1, -1, 2, 2]])
    y, gradient = run(
        lambda x, label: nd.SoftmaxOutput(
            x, label, multi_output=True, use_ignore=True, normalization=normalization, smooth_alpha=0.5
        ),
        x,
        label.reshape(shape),
        head=None,
    )
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, p, rtol=1e-6)
    expected = p.reshape(2, 3, 4) - (label[:, None] == np.arange(3)[:, None])
    expected *= (label != -1)[:, None]
    expected /= {"null": 4, "batch": 8, "valid": 7}[normalization]  # MXNet smooths nothing here
    np.testing.assert_allclose(gradient, expected.reshape(x.shape), atol=1e-6)


def test_softmax_output_along_the_last_axis():
    x = np.sin(np.arange(24.0)).reshape(2, 3, 4)
    label = np.array([[0.0, 3, 2], [1, 1, 0]])
    keywords = {"preserve_shape": True, "normalization": "valid", "use_ignore": True, "ignore_label": 0}
    y, gradient = run(lambda x, label: nd.SoftmaxOutput(x, label, **keywords), x, label, head=None)
    p = np.exp(x) / np.exp(x).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(y, p, rtol=1e-6)
    expected = (p - (label[..., None] == np.arange(4))) * (label != 0)[..., None] / 4
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    np.testing.assert_allclose(gradient[0, 1], [0.033155, 0.027087, 0.053441, -0.113683], atol=2e-6)  # MXNet's


def test_softmax_output_of_probabilities_and_of_the_head_gradient():
    target = np.array([[0.2, 0.3, 0.5], [0, 1, 0], [0.1, 0.1, 0.8]])
    keywords = {"grad_scale": 2.0, "normalization": "batch", "smooth_alpha": 0.1}
    _, gradient = run(lambda x, z: nd.SoftmaxOutput(x, z, **keywords), X, target)
    np.testing.assert_allclose(gradient, 2 * (P - target), atol=2e-6)
    _, gradient = run(lambda x, label: nd.SoftmaxOutput(x, label, out_grad=True), X, LABEL)
    np.testing.assert_allclose(gradient, HEAD * np.array(SOFTMAX[0][1]), atol=1e-5)


def test_regression_heads():
    y, gradient = run(nd.LinearRegressionOutput, X, TARGET)
    assert (y == X).all()
    np.testing.assert_allclose(gradient, (X - TARGET) / 3, rtol=1e-6)
    y, gradient = run(lambda x, z: nd.LogisticRegressionOutput(x, z, grad_scale=2), X, TARGET)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-X)), rtol=1e-6)
    np.testing.assert_allclose(gradient, (1 / (1 + np.exp(-X)) - TARGET) * 2 / 3, rtol=1e-5)
    y, gradient = run(lambda x, z: nd.MAERegressionOutput(x, z, grad_scale=6), X, TARGET)
    assert (y == X).all()
    assert gradient.tolist() == [[2, -2, -2], [-2, -2, 2], [-2, 2, 2]]
    _, gradient = run(nd.LinearRegressionOutput, X[:, :1], TARGET[:, 0], head=None)
    np.testing.assert_allclose(gradient, (X - TARGET)[:, :1], rtol=1e-6)


def test_make_loss():
    for keywords, expected in [
        ({}, 1.0),
        ({"grad_scale": 2.0}, 2.0),
        ({"normalization": "batch"}, 1 / 3),
        ({"normalization": "valid"}, 1 / 7),
        ({"normalization": "valid", "valid_thresh": 1.5, "grad_scale": 3}, 3 / 4),
        ({"normalization": "valid", "valid_thresh": 9}, 1.0),
    ]:
        y, gradient = run(lambda x, keywords=keywords: nd.MakeLoss(x, **keywords), X)
        assert (y == X).all()
        np.testing.assert_allclose(gradient, np.full((3, 3), expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, [[2.8, 3.6, -2.8], [-1.6, 2, 4.4], [3.6, 3.6, 2.8]]),
        ({"use_linear": True}, [[1, 1, -1], [-1, 1, 1], [1, 1, 1]]),
        (
            {"margin": 0.5, "regularization_coefficient": 2.0},
            [[3.6, 5.2, -3.6], [-1.2, 2, 6.8], [5.2, 5.2, 3.6]],
        ),
        (
            {"margin": 0.3, "regularization_coefficient": 0.5, "use_linear": True},
            [[0.5, 0.5, -0.5], [-0.5, 0.5, 0.5], [0.5, 0.5, 0.5]],
        ),
    ],
    ids=str,
)
def test_svm_output(keywords, expected):
    y, gradient = run(lambda x, label: nd.SVMOutput(x, label, **keywords), 0.4 * X, LABEL)  # numbers of MXNet 1.9.1
    np.testing.assert_allclose(y, 0.4 * X, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_svm_output_beyond_the_margin():
    scores = np.array([[3.0, -3, 0.5]])
    for linear, expected in ((False, [[0, 0, 3]]), (True, [[0, 0, 1]])):
        _, gradient = run(
            lambda x, label, linear=linear: nd.SVMOutput(x, label, use_linear=linear), scores, [0], head=None
        )
        assert gradient.tolist() == expected


def test_a_network_trains_with_a_head_captured_or_not():
    rng = np.random.default_rng(3)
    x = nd.array(rng.normal(size=(32, 4)))
    label = nd.array(rng.integers(0, 3, 32))

    def train(wrap):
        w = nd.zeros((4, 3))
        w.attach_grad()

        def step(x, label):
            with autograd.record():
                p = nd.SoftmaxOutput(nd.dot(x, w), label, normalization="valid", use_ignore=True)
            p.backward()
            w[:] = w - 0.5 * w.grad
            return p

        call = wrap(step)
        for _ in range(5):
            p = call(x, label)
        return p.asnumpy(), w.asnumpy()

    for ours, theirs in zip(train(jit), train(lambda f: f), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def labels():
    return nd.array([2, 0, 1])


def sides():
    return nd.array([[-1, -1, 1], [1, -1, -1], [-1, 1, -1]], dtype="float64")


@pytest.mark.parametrize(
    ("head", "loss"),
    [
        (lambda x: nd.SoftmaxOutput(x, labels()), lambda x: -nd.pick(nd.log_softmax(x), labels()).sum()),
        (lambda x: nd.LinearRegressionOutput(x, x * 0 + 1), lambda x: ((x - 1) ** 2).sum() / 6),
        (lambda x: nd.LogisticRegressionOutput(x, x * 0 + 1), lambda x: nd.Activation(-x, "softrelu").sum() / 3),
        (lambda x: nd.SVMOutput(x, labels()), lambda x: (nd.relu(1 - sides() * x) ** 2).sum()),
    ],
    ids=["softmax", "linear", "logistic", "svm"],
)
def test_gradients_of_gradients_are_those_of_the_loss(head, loss):
    found = []
    for f in (head, loss):
        x = nd.array(0.1 * X, dtype="float64")
        x.attach_grad()
        with autograd.record():
            (gradient,) = autograd.grad(f(x), [x], create_graph=True)
            weighted = (gradient * nd.array(HEAD, dtype="float64")).sum()
        weighted.backward()
        found.append((gradient.asnumpy(), x.grad.asnumpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_what_does_not_fit_is_refused():
    x = nd.array(X)
    with pytest.raises(mx.MXNetError, match=r"SoftmaxOutput: labels of shape \(2,\) do not fit data of shape \(3, 3\)"):
        nd.SoftmaxOutput(x, nd.ones(2))
    with pytest.raises(mx.MXNetError, match="labels of shape"):
        nd.SoftmaxOutput(nd.ones((2, 3, 4)), nd.ones(8), multi_output=True)
    with pytest.raises(mx.MXNetError, match="normalization must be one of batch, null, valid"):
        nd.SoftmaxOutput(x, nd.ones(3), normalization="mean")
    with pytest.raises(mx.MXNetError, match="smooth_alpha"):
        nd.SoftmaxOutput(x, nd.ones(3), smooth_alpha=2)
    with pytest.raises(mx.MXNetError, match="MAERegressionOutput: labels of shape"):
        nd.MAERegressionOutput(x, nd.ones((3, 2)))
    with pytest.raises(mx.MXNetError, match="SVMOutput: labels of shape"):
        nd.SVMOutput(x, nd.ones(2))
    with pytest.raises(TypeError, match="takes an NDArray"):
        nd.SVMOutput(x, np.ones(3))
    with pytest.raises(mx.MXNetError, match="normalization must be"):
        nd.MakeLoss(x, normalization="sum")
