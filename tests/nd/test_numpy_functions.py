"""NumPy's functions of NDArrays: values and shapes by NumPy, recording, capture, and what is refused."""

import io

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, nd
from numbagrad.errors import CaptureError, MXNetError
from numbagrad.nd.numpy_functions import FUNCTIONS

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (3, 3)).round(2)
Y = RNG.uniform(0.5, 2.0, (3, 3)).round(2)
V = X[0]

CALLS = {
    "sum": lambda x, y, v: [np.sum(x), np.sum(x, 0), np.sum(x, axis=(0, 1), keepdims=True), np.sum(v, axis=-1)],
    "prod": lambda x, y, v: [np.prod(x), np.prod(x, axis=1)],
    "mean": lambda x, y, v: [np.mean(x), np.mean(x, axis=1, keepdims=True)],
    "nansum": lambda x, y, v: [np.nansum(x), np.nansum(x, axis=0)],
    "nanprod": lambda x, y, v: [np.nanprod(x, axis=0)],
    "max": lambda x, y, v: [np.max(x), np.amax(x, 1), np.max(a=x, axis=0)],
    "min": lambda x, y, v: [np.min(x), np.amin(x, 1), np.min(x, axis=0, keepdims=True)],
    "var": lambda x, y, v: [np.var(x), np.var(x, axis=0, ddof=1)],
    "std": lambda x, y, v: [np.std(x), np.std(x, axis=1, keepdims=True)],
    "argmax": lambda x, y, v: [np.argmax(x), np.argmax(x, axis=1), np.argmax(x, axis=0, keepdims=True)],
    "argmin": lambda x, y, v: [np.argmin(x), np.argmin(x, 0)],
    "cumsum": lambda x, y, v: [np.cumsum(x), np.cumsum(x, axis=1)],
    "norm": lambda x, y, v: [np.linalg.norm(x), np.linalg.norm(v, 1), np.linalg.norm(x, axis=1, keepdims=True)],
    "shape": lambda x, y, v: [np.array(np.shape(x))],
    "ndim": lambda x, y, v: [np.array(np.ndim(x))],
    "size": lambda x, y, v: [np.array([np.size(x), np.size(x, 1)])],
    "reshape": lambda x, y, v: [np.reshape(x, (1, -1)), np.reshape(x, 9), np.reshape(x, (1, 3, -1), order="C")],
    "ravel": lambda x, y, v: [np.ravel(x)],
    "transpose": lambda x, y, v: [np.transpose(x), np.transpose(x, (1, 0)), np.transpose(v)],
    "swapaxes": lambda x, y, v: [np.swapaxes(x, 0, 1)],
    "moveaxis": lambda x, y, v: [np.moveaxis(x, 0, -1)],
    "expand_dims": lambda x, y, v: [np.expand_dims(x, 1)],
    "squeeze": lambda x, y, v: [np.squeeze(x[:1]), np.squeeze(x[:1], axis=0), np.squeeze(np.expand_dims(v, (0)), 0)],
    "broadcast_to": lambda x, y, v: [np.broadcast_to(v, (2, 3))],
    "tile": lambda x, y, v: [np.tile(v, (2, 2))],
    "repeat": lambda x, y, v: [np.repeat(x, 2), np.repeat(x, 2, axis=1)],
    "flip": lambda x, y, v: [np.flip(x), np.flip(x, 0)],
    "concatenate": lambda x, y, v: [
        np.concatenate([x, y]),
        np.concatenate((x, y), axis=1),
        np.concatenate([x, v], None),
    ],
    "stack": lambda x, y, v: [np.stack([x, y]), np.stack([x, y], axis=-1)],
    "vstack": lambda x, y, v: [np.vstack([v, x])],
    "hstack": lambda x, y, v: [np.hstack([x, y]), np.hstack([v, v])],
    "split": lambda x, y, v: [*np.split(x, 3), *np.split(x, [1], axis=1)],
    "where": lambda x, y, v: [np.where(x > y, x, y), np.where(x > 1, x, 0.0), np.where(v > 1, x, y)],
    "clip": lambda x, y, v: [
        np.clip(x, 0.8, 1.2),
        np.clip(x, None, 1.0),
        np.clip(x, v, 2.0),
        np.clip(a=x, a_min=1, a_max=2),
    ],
    "take": lambda x, y, v: [np.take(x, [0, 2], axis=1), np.take(x, np.array([0, 8]))],
    "sort": lambda x, y, v: [np.sort(x), np.sort(x, axis=0), np.sort(x, None)],
    "argsort": lambda x, y, v: [np.argsort(x), np.argsort(x, axis=0)],
    "dot": lambda x, y, v: [np.dot(x, y), np.dot(x, v), np.dot(v, v)],
    "einsum": lambda x, y, v: [np.einsum("ij,jk->ik", x, y), np.einsum("i,i->", v, v), np.einsum("ii->i", x)],
    "outer": lambda x, y, v: [np.outer(v, v), np.outer(x, v)],
    "inv": lambda x, y, v: [np.linalg.inv(x)],
    "det": lambda x, y, v: [np.linalg.det(x)],
    "diag": lambda x, y, v: [np.diag(x), np.diag(v), np.diag(x, 1)],
    "round": lambda x, y, v: [np.round(x), np.round(x * 10, 1), np.around(x, decimals=0)],
    "copy": lambda x, y, v: [np.copy(x)],
    "zeros_like": lambda x, y, v: [np.zeros_like(x), np.zeros_like(x, dtype="int32")],
    "ones_like": lambda x, y, v: [np.ones_like(x)],
    "full_like": lambda x, y, v: [np.full_like(x, 2.5)],
}
"""Calls that NumPy arrays and NDArrays understand alike."""


def test_every_function_is_called():
    aliases = {"amax": "max", "amin": "min", "around": "round"}
    assert {aliases.get(f.__name__, f.__name__) for f in FUNCTIONS} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_shapes_are_numpys(name):
    x, y, v = (nd.array(values, dtype="float64") for values in (X, Y, V))
    for ours, theirs in zip(CALLS[name](x, y, v), CALLS[name](X, Y, V), strict=True):
        assert ours.shape == theirs.shape
        assert np.dtype(ours.dtype) == theirs.dtype
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-14)
        if name not in ("shape", "ndim", "size"):
            assert type(ours) is nd.NDArray


def test_mixed_with_numpy_arrays():
    x = nd.array(X, dtype="float64")
    np.testing.assert_allclose(np.concatenate([X, x]).asnumpy(), np.concatenate([X, X]))
    np.testing.assert_allclose(np.dot(X, x).asnumpy(), X @ X)
    np.testing.assert_allclose(np.where(X > 1, x, X).asnumpy(), X)
    assert np.stack([np.ones(2, "int64"), nd.ones((2,))]).dtype == np.float32


def test_recorded():
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = np.mean(np.concatenate([np.transpose(x), np.clip(x, 0.905, 1.105)], axis=1), axis=1)
        loss = np.sum(np.where(y > 1, y * y, 0.0)) + np.linalg.norm(np.reshape(x, -1)) + np.std(x) + np.max(x)
    loss.backward()

    def value(x):
        y = np.mean(np.concatenate([np.transpose(x), np.clip(x, 0.905, 1.105)], axis=1), axis=1)
        return np.sum(np.where(y > 1, y * y, 0.0)) + np.linalg.norm(np.reshape(x, -1)) + np.std(x) + np.max(x)

    expected = np.zeros_like(X)
    for k in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[k] = 1e-6
        expected[k] = (value(X + step) - value(X - step)) / 2e-6
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-6, atol=1e-8)


def test_out_and_dtype():
    x, out = nd.array(X, dtype="float64"), nd.zeros((3,), dtype="float64")
    assert np.sum(x, axis=0, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), X.sum(0))
    assert np.sum(nd.ones((2,)), dtype="float64").dtype == np.float64
    with pytest.raises(TypeError, match=r"np\.sum: out must be an NDArray .*, not a NumPy array"):
        np.sum(x, axis=0, out=np.zeros(3))


def test_what_is_refused():
    x = nd.array(X)
    with pytest.raises(TypeError, match=r"np\.sum: .*where"):
        np.sum(x, where=X > 1)
    with pytest.raises(TypeError, match=r"np\.max: .*initial"):
        np.max(x, initial=0)
    with pytest.raises(MXNetError, match=r"np\.sum: axis 2"):
        np.sum(x, axis=2)
    with pytest.raises(MXNetError, match="order is C"):
        np.reshape(x, 9, order="F")
    with pytest.raises(MXNetError, match="cannot make"):
        np.reshape(x, (2, -1))
    with pytest.raises(MXNetError, match="ord 2 is not supported for shape"):
        np.linalg.norm(x, 2)
    with pytest.raises(MXNetError, match=r"use np\.matmul"):
        np.dot(x, nd.ones((2, 3, 2)))
    with pytest.raises(ValueError, match="has not length 1"):
        np.squeeze(x, axis=0)


def test_what_has_no_counterpart_is_numpys_but_never_while_recording():
    x = nd.array(X, dtype="float64")
    for function in (lambda x: np.median(x), lambda x: np.percentile(x, 30, axis=0), lambda x: np.where(x > 1)):
        result = function(x)
        np.testing.assert_array_equal(result, function(X))
        assert type(result) is not nd.NDArray
        with autograd.record(), pytest.raises(TypeError, match=r"np\..* has no counterpart in numbagrad"):
            function(x)
        with pytest.raises(CaptureError, match="cannot read the value"):
            numbagrad.jit(function)(x)
    for write in (lambda: np.fill_diagonal(x, 0), lambda: np.copyto(x, 0), lambda: np.put(x, [0], 0)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    np.testing.assert_array_equal(x.asnumpy(), X)


def test_questions_are_answered_while_recording():
    x = nd.array(X, dtype="float64")
    with autograd.record():
        assert np.allclose(x, X)
        assert np.array_equal(x, X)
        assert np.shape(x) == (3, 3)
    buffer = io.BytesIO()
    np.save(buffer, x)
    buffer.seek(0)
    np.testing.assert_array_equal(np.load(buffer), X)
    np.testing.assert_allclose(x, X)
    with pytest.raises(CaptureError, match="cannot read the value"):
        numbagrad.jit(lambda x: np.allclose(x, X))(x)


def test_captured():
    def f(x):
        y = np.concatenate([np.tanh(x), np.stack([x[0], x[1]])], axis=0)
        return np.sum(np.where(y > 1, y, np.mean(y, axis=0)), axis=1)

    captured = numbagrad.jit(f)
    for values in (X, Y):
        expected = f(nd.array(values, dtype="float64")).asnumpy()
        np.testing.assert_allclose(captured(nd.array(values, dtype="float64")).asnumpy(), expected, rtol=1e-14)
