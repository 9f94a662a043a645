"""NumPy's universal functions of NDArrays: values by NumPy, recording, capture, and what is refused."""

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, nd
from numbagrad.errors import CaptureError, MXNetError
from numbagrad.nd.ufuncs import _TESTS, _VALUES

X = np.array([[0.3, 0.5, 0.9], [0.2, 0.7, 0.6]])
ROW = np.array([0.4, 0.7, 0.1])
ABOVE_ONE = ("arccosh",)


@pytest.mark.parametrize("name", sorted([*_VALUES, *_TESTS, "positive"]))
def test_values_are_numpys(name):
    ufunc = getattr(np, name)
    values = X + 1 if name in ABOVE_ONE else X
    x = nd.array(values, dtype="float64")
    arguments = [(x, ROW), (x, x)] if ufunc.nin == 2 else [(x,)]
    if name in ("subtract", "less"):
        arguments += [(ROW, x), (x, 0.5), (0.5, x)]
    for args in arguments:
        expected = ufunc(*[values if arg is x else arg for arg in args])
        result = ufunc(*args)
        assert type(result) is nd.NDArray
        assert result.dtype == expected.dtype.type
        np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "operation",
    [
        lambda a, b: a - b,
        lambda a, b: a / b,
        lambda a, b: a < b,
        lambda a, b: a == b,
    ],
)
def test_operators_with_numpy_arrays(operation):
    x = nd.array(X, dtype="float64")
    for ours, theirs in ((operation(x, ROW), operation(X, ROW)), (operation(ROW, x), operation(ROW, X))):
        assert type(ours) is nd.NDArray
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-14)
    y = nd.array(X)
    assert type(operation(np.float64(0.5), y)) is nd.NDArray
    assert operation(np.float64(0.5), y).dtype in (np.float32, np.bool_)  # numbers do not widen


def test_matmul():
    a = np.arange(6.0).reshape(2, 3)
    x = nd.array(X.T, dtype="float64")
    for result in (np.matmul(a, x), a @ x):
        np.testing.assert_allclose(result.asnumpy(), a @ X.T)
    np.testing.assert_allclose((x @ a).asnumpy(), X.T @ a)


def test_dtypes_mix_by_category():
    assert (np.ones(2, "int64") + nd.ones((2,))).dtype == np.float32
    assert (np.ones(2) + nd.ones((2,))).dtype == np.float64
    assert np.add(nd.ones((2,), dtype="int32"), 1.5).dtype == np.float32
    assert np.add([1, 2], nd.ones((2,))).tolist() == [2.0, 3.0]


def test_recorded():
    x = nd.array([0.5, 2.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = np.exp(np.array([1.0, 2.0]) * x) + np.maximum(x, 1.0)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.array([1, 2]) * np.exp([0.5, 4.0]) + [0, 1])


def test_out():
    x, out = nd.array([1.0, 4.0]), nd.zeros((2,))
    assert np.sqrt(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    np.add(x, 1, out)
    assert out.tolist() == [2.0, 5.0]
    with pytest.raises(MXNetError, match="shape"):
        np.sqrt(x, out=nd.zeros((3,)))
    values = np.zeros(2)
    with pytest.raises(TypeError, match=r"np\.sqrt: out= must be an NDArray"):
        np.sqrt(x, out=values)
    with pytest.raises(TypeError, match=r"np\.add: out= must be an NDArray"):
        values += x
    x.attach_grad()
    with autograd.record(), pytest.raises(MXNetError, match="Inplace operations"):
        np.sqrt(x * 1, out=x)


def test_what_is_refused():
    x = nd.array([1.0, 2.0])
    with pytest.raises(TypeError, match=r"np\.exp: where= is not supported; use np\.where"):
        np.exp(x, where=np.array([True, False]))
    with pytest.raises(TypeError, match=r"np\.exp: dtype is not supported; use astype"):
        np.exp(x, dtype="float64")
    with pytest.raises(TypeError):
        np.add(x, "1")
    with pytest.raises(TypeError):
        np.add(x, None)
    with pytest.raises(TypeError, match="unsupported dtype complex128"):
        np.add(x, np.ones(2, complex))
    with pytest.raises(TypeError):
        x += np.ones(2)
    with pytest.raises(MXNetError, match="broadcast"):
        np.add(x, np.ones(3))


def test_what_has_no_counterpart_is_numpys_but_never_while_recording():
    x = nd.array([1.0, 2.0])
    for function, expected in (
        (lambda: np.heaviside(x, 0.5), [1.0, 1.0]),
        (lambda: np.add.reduce(x), 3.0),
        (lambda: np.multiply.outer(x, x), [[1.0, 2.0], [2.0, 4.0]]),
    ):
        result = function()
        assert isinstance(result, (np.ndarray, np.generic))
        assert result.tolist() == expected
        with autograd.record(), pytest.raises(TypeError, match=r"np\.[a-z.]* has no counterpart in numbagrad"):
            function()
        with pytest.raises(CaptureError, match="cannot read the value"):
            numbagrad.jit(lambda f=function: f())()
    with pytest.raises(TypeError, match=r"np\.add\.at writes in place"):
        np.add.at(x, [0], 1.0)
    with pytest.raises(TypeError, match=r"numbagrad has no np\.heaviside"):
        np.heaviside(x, 0.5, out=nd.zeros((2,)))
    assert x.tolist() == [1.0, 2.0]


def test_captured():
    constant = np.array([1.0, 2.0], "float32")
    f = numbagrad.jit(lambda x: np.where(x > constant, np.tanh(constant * x), -x))
    for values in ([0.5, 3.0], [4.0, 1.0], [2.0, 2.5]):
        v = np.array(values, "float32")
        expected = np.where(v > constant, np.tanh(constant * v), -v)
        np.testing.assert_allclose(f(nd.array(values)).asnumpy(), expected, rtol=1e-6)
    g = numbagrad.jit(lambda x, a: x + a)
    for value in (1.0, 5.0):
        assert g(nd.ones((2,)), np.full(2, value, "float32")).tolist() == [value + 1, value + 1]


def test_in_format_and_index():
    x = nd.array([1.0, 2.5])
    assert 2.5 in x
    assert 3 not in x
    assert None not in x
    assert nd.array([[2.5]]) in nd.array([[1.0], [2.5]])
    assert f"{x[1]:.3f}" == "2.500"
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match=r"format '\.3f' is for an array of one element, not of shape \(2,\)"):
        f"{x:.3f}"
    assert [10, 20, 30][nd.array([1], dtype="int64")] == 20
    with pytest.raises(TypeError):
        [10, 20][x]
    for use in (
        lambda x: 2.5 in x,
        lambda x: f"{x[0]:.2f}",
        lambda x: bool(x[0]),
        lambda x: [1, 2][x.astype("int32")[0]],
    ):
        with pytest.raises(CaptureError, match="cannot read the value"):
            numbagrad.jit(use)(x)
