"""Functions that move elements: NumPy's values, gradients that sum over copies."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

X = np.arange(24.0).reshape(2, 3, 4)
WEIGHTS = np.cos(np.arange(500.0))

CASES = {
    "tile": (lambda x: nd.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tile short": (lambda x: nd.tile(x, 2), lambda x: np.tile(x, 2)),
    "tile long": (lambda x: nd.tile(x, (2, 1, 1, 1)), lambda x: np.tile(x, (2, 1, 1, 1))),
    "repeat all": (lambda x: nd.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "repeat": (lambda x: x.repeat(2, axis=-2), lambda x: np.repeat(x, 2, 1)),
    "pad constant": (
        lambda x: nd.pad(x, mode="constant", pad_width=(2, 0, 1, 2, 0, 1)),
        lambda x: np.pad(x, ((2, 0), (1, 2), (0, 1))),
    ),
    "pad edge": (
        lambda x: nd.pad(x, mode="edge", pad_width=(2, 0, 1, 2, 0, 1)),
        lambda x: np.pad(x, ((2, 0), (1, 2), (0, 1)), mode="edge"),
    ),
    "pad reflect": (
        lambda x: nd.pad(x, mode="reflect", pad_width=(1, 0, 1, 2, 3, 1)),
        lambda x: np.pad(x, ((1, 0), (1, 2), (3, 1)), mode="reflect"),
    ),
    "concat": (lambda x: nd.concat(x, x * 2, dim=2), lambda x: np.concatenate([x, x * 2], 2)),
    "concat default": (lambda x: nd.concat(x, x), lambda x: np.concatenate([x, x], 1)),
    "concatenate": (lambda x: nd.concatenate([x, x]), lambda x: np.concatenate([x, x])),
    "stack": (lambda x: nd.stack(x, x, axis=-1), lambda x: np.stack([x, x], -1)),
    "transpose": (lambda x: x.transpose((2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "transpose ints": (lambda x: x.transpose(1, 0, 2), lambda x: x.transpose(1, 0, 2)),
    "reversed axes": (lambda x: nd.transpose(x), np.transpose),
    "swapaxes": (lambda x: nd.swapaxes(x, 0, -1), lambda x: x.swapaxes(0, 2)),
    "flip": (lambda x: nd.flip(x, axis=1), lambda x: np.flip(x, 1)),
    "reverse": (lambda x: nd.reverse(x, axis=(0, -1)), lambda x: np.flip(x, (0, 2))),
    "flatten": (lambda x: x.flatten(), lambda x: x.reshape(2, 12)),
    "expand_dims": (lambda x: nd.expand_dims(x, axis=-1), lambda x: x[..., None]),
    "squeeze": (lambda x: nd.squeeze(nd.expand_dims(x, 1)), lambda x: x),
    "reshape": (lambda x: nd.reshape(x, shape=(0, -1)), lambda x: x.reshape(2, 12)),
    "reshape_like": (lambda x: nd.reshape_like(x, nd.ones((4, 6))), lambda x: x.reshape(4, 6)),
    "part of reshape_like": (
        lambda x: nd.reshape_like(x, nd.ones((7, 12)), 1, 3, 1, 2),
        lambda x: x.reshape(2, 12),
    ),
    "broadcast_axis": (
        lambda x: nd.broadcast_axis(x.reshape((2, 3, 4, 1)), axis=3, size=5),
        lambda x: np.broadcast_to(x[..., None], (2, 3, 4, 5)),
    ),
    "broadcast_to": (
        lambda x: nd.broadcast_to(x.reshape((1, 2, 12)), shape=(3, 0, 0)),
        lambda x: np.broadcast_to(x.reshape(1, 2, 12), (3, 2, 12)),
    ),
    "broadcast_like": (
        lambda x: nd.broadcast_like(x.reshape((1, 24)), nd.ones((3, 5)), lhs_axes=(0,), rhs_axes=(1,)),
        lambda x: np.broadcast_to(x.reshape(1, 24), (5, 24)),
    ),
    "space_to_depth": (
        lambda x: nd.space_to_depth(x.reshape((1, 1, 4, 6)), 2),
        lambda x: x.reshape(1, 1, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 2, 3),
    ),
    "depth and space": (
        lambda x: nd.depth_to_space(nd.space_to_depth(x.reshape((1, 2, 2, 6)), 2), 2),
        lambda x: x.reshape(1, 2, 2, 6),
    ),
    "a part": (lambda x: nd.split(x, 2, axis=2)[1], lambda x: np.split(x, 2, 2)[1]),
    "all parts": (lambda x: nd.concat(*nd.split_v2(x, (1, 1, 3), axis=2), dim=2), lambda x: x),
    "squeezed part": (lambda x: nd.split(x, 3, squeeze_axis=True)[2], lambda x: x[:, 2]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    ours, numpy = CASES[name]
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    expected = numpy(X)
    weights = WEIGHTS[: expected.size].reshape(expected.shape)
    with autograd.record():
        y = ours(x)
        head = (y * nd.array(weights, dtype="float64")).sum()
    assert y.shape == expected.shape
    assert (y.asnumpy() == expected).all()
    head.backward()
    # All are linear: column k of the Jacobian is the image of the k-th unit array.
    columns = [(numpy(unit.reshape(X.shape)) * weights).sum() for unit in np.eye(24)]
    np.testing.assert_allclose(x.grad.asnumpy().ravel(), columns, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bool"])
def test_other_dtypes_move_as_they_are(dtype):
    values = (X % 3).astype(dtype)
    x = nd.array(values, dtype=dtype)
    for name in ("tile", "stack", "flip", "squeezed part"):
        ours, numpy = CASES[name]
        got = ours(x)
        assert got.dtype is np.dtype(dtype).type
        assert (got.asnumpy() == numpy(values)).all()


def test_copies_and_views():
    x = nd.array([[1.0, 2.0]])
    for copy in (nd.reshape(x, shape=(2,)), x.flatten(), x.expand_dims(0), x.squeeze(), x.T, x.transpose()):
        copy[:] = 9
    assert x.asnumpy().tolist() == [[1, 2]]
    x.flatten(inplace=True)[:] = 3
    x.expand_dims(0, inplace=True)[0, 0, 0] = 4
    assert x.asnumpy().tolist() == [[4, 3]]


def test_shapes_of_mxnet():
    # MXNet 1.9.1
    assert nd.flatten(nd.ones((3,))).shape == (3, 1)
    assert nd.squeeze(nd.ones((1, 1))).shape == (1,)
    assert nd.split(nd.ones((2, 1)), 1).shape == (2, 1)
    assert nd.shape_array(nd.ones((2, 3))).asnumpy().tolist() == [2, 3]
    assert nd.size_array(nd.ones((2, 3))).asnumpy().tolist() == [6]
    assert nd.depth_to_space(nd.arange(16).reshape((1, 4, 2, 2)), 2).asnumpy().tolist() == [
        [[[0, 4, 1, 5], [8, 12, 9, 13], [2, 6, 3, 7], [10, 14, 11, 15]]]
    ]


def test_concat_mixes_dtypes_and_sizes():
    joined = nd.concat(nd.array([1, 2], dtype="int32"), nd.zeros((0,)), nd.array([0.5]), dim=0)
    assert joined.dtype is np.float32
    assert joined.asnumpy().tolist() == [1, 2, 0.5]
    x = nd.ones(2)
    assert nd.concatenate([x], always_copy=False) is x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nd.concat(x, nd.ones((3, 3)), dim=1), r"concat.*\(2, 3\).*\(3, 3\)"),
        (lambda x: nd.stack(x, nd.ones((3, 3))), r"stack.*\(3, 3\)"),
        (lambda x: nd.split(x, 2, axis=1), "split.*2 equal parts"),
        (lambda x: nd.split_v2(x, (2, 1), axis=1), "do not increase"),
        (lambda x: nd.squeeze(x, axis=0), "squeeze.*length 2"),
        (lambda x: nd.expand_dims(x, axis=4), "expand_dims.*axis 4"),
        (lambda x: nd.pad(x, mode="reflect", pad_width=(0, 0, 3, 0)), "too short"),
        (lambda x: nd.pad(x, mode="edge", pad_width=(1, 1)), "4 widths"),
        (lambda x: nd.pad(x, mode="wrap", pad_width=(0, 0, 1, 1)), "mode"),
        (lambda x: nd.broadcast_to(x, shape=(2, 4)), "broadcast"),
        (lambda x: nd.flip(x, axis=2), "flip.*axis 2"),
        (lambda x: nd.depth_to_space(x, 2), "depth_to_space.*4 axes"),
        (lambda x: nd.concat(), "concat"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call(nd.ones((2, 3)))


def test_the_method_broadcast_to_raises_value_error():
    assert nd.ones((2, 1)).broadcast_to((2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        nd.ones((2, 1)).broadcast_to((3, 3))


def test_broadcast_to_as_a_method():
    x = nd.array([[1], [2]])
    for result in (x.broadcast_to((2, 3)), x.broadcast_to(2, 3), x.broadcast_to(shape=(2, 3))):
        assert result.asnumpy().tolist() == [[1, 1, 1], [2, 2, 2]]
    with pytest.raises(ValueError, match="broadcast_to"):
        x.broadcast_to((3, 2))
    for wrong in ({}, {"shape": None}):
        with pytest.raises(TypeError):
            x.broadcast_to(**wrong)


def test_broadcast_like_needs_axes_if_it_is_given_any():
    for axes in ((), (0, 1)):
        with pytest.raises(MXNetError, match="broadcast_like"):
            nd.broadcast_like(nd.ones((1, 2)), nd.ones((3,)), lhs_axes=axes, rhs_axes=axes[:1])
