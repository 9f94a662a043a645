"""Update operators, against MXNet 1.9.1."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

W, G = [0.5, -1.25, 2.0], [0.3, -0.7, 1.9]

# operator, states, keywords, what MXNet 1.9.1 returns, and what it leaves in the states
REAL: list = [
    ("sgd_update", [], {"lr": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.4}, [0.485, -1.215, 1.96], []),
    (
        "sgd_mom_update",
        [[0.2, 0.1, 0.4]],
        {"momentum": 0.9, "lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [0.6625, -1.11875, 2.31],
        [[0.1625, 0.13125, 0.31]],
    ),
    (
        "nag_mom_update",
        [[0.2, 0.1, 0.4]],
        {"momentum": 0.9, "lr": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.4},
        [0.6335, -1.1025, 2.248],
        [[0.165, 0.125, 0.32]],
    ),
    (
        "adam_update",
        [[0.2, 0.1, 0.4], [0.5, 0.3, 0.9]],
        {"lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [0.472056, -1.259131, 1.957819],
        [[0.1975, 0.05, 0.4], [0.499531, 0.29986, 0.89926]],
    ),
    (
        "rmsprop_update",
        [[0.5, 0.3, 0.9]],
        {"clip_weights": 1.5, "lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [0.474649, -1.176103, 1.5],
        [[0.476531, 0.293, 0.863]],
    ),
    (
        "rmspropalex_update",
        [[0.5, 0.3, 0.9], [0.2, 0.1, 0.4], [0.7, 0.6, 0.8]],
        {"lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [1.103528, -0.635383, 2.672293],
        [[0.476531, 0.293, 0.863], [0.19875, 0.075, 0.4], [0.603528, 0.614617, 0.672293]],
    ),
    (
        "ftrl_update",
        [[0.2, 0.1, 0.4], [0.5, 0.3, 0.9]],
        {"lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [-0.015124, -0.061539, 0.039694],
        [[0.271326, 1.028468, -0.817594], [0.5225, 0.4225, 1.06]],
    ),
    (
        "ftml_update",
        [[0.7, 0.6, 0.8], [0.5, 0.3, 0.9], [0.2, 0.1, 0.4]],
        {"t": 3, "lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_grad": 0.4},
        [0.496048, -1.242987, 1.989986],
        [[101.217377, 78.421173, 135.805283], [0.499531, 0.29986, 0.89926], [-50.208691, 97.476463, -270.25058]],
    ),
    (
        "signsgd_update",
        [],
        {"lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [0.3975, -1.14375, 1.89],
        [],
    ),
    (
        "signum_update",
        [[0.2, 0.1, 0.4]],
        {"momentum": 0.8, "wd_lh": 0.1, "lr": 0.1, "rescale_grad": 0.5, "wd": 0.05, "clip_gradient": 0.4},
        [0.595, -1.1375, 2.08],
        [[0.125, 0.1625, 0.22]],
    ),
]


@pytest.mark.parametrize(("name", "states", "keywords", "expected", "left"), REAL)
def test_one_step(name, states, keywords, expected, left):
    operator = getattr(nd, name)
    w, held = nd.array(W), [nd.array(state) for state in states]
    result = operator(w, nd.array(G), *held, **keywords)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=2e-5, atol=1e-6)
    for state, right in zip(held, left, strict=True):
        np.testing.assert_allclose(state.asnumpy(), right, rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(w.asnumpy(), np.float32(W))
    held = [nd.array(state) for state in states]
    assert operator(w, nd.array(G), *held, out=w, **keywords) is w
    np.testing.assert_array_equal(w.asnumpy(), result.asnumpy())
    for bad in (nd.ones((2,)), nd.ones((3, 1))):
        with pytest.raises(MXNetError, match=name):
            operator(w, bad, *held, **keywords)


@pytest.mark.parametrize(("name", "states"), [("sgd_update", 0), ("sgd_mom_update", 1), ("nag_mom_update", 1)])
def test_with_a_wide_copy_of_a_float16_weight(name, states):
    keywords = {"lr": 0.1, "wd": 0.05, **({"momentum": 0.9} if states else {})}
    held = [nd.array([0.2, 0.1, 0.4]) for _ in range(states)]
    wide, narrow = nd.array(W), nd.array(W, dtype="float16")
    expected = getattr(nd, name)(wide, nd.array(G), *[state.copy() for state in held], **keywords)
    getattr(nd, f"mp_{name}")(narrow, nd.array(G, dtype="float16"), *held, wide, out=narrow, **keywords)
    np.testing.assert_allclose(wide.asnumpy(), expected.asnumpy(), rtol=1e-3)
    np.testing.assert_array_equal(narrow.asnumpy(), wide.asnumpy().astype("float16"))
    half = getattr(nd, name)(
        nd.array(W, dtype="float16"), nd.array(G, dtype="float16"), *[nd.array(W, dtype="float16")] * states, **keywords
    )
    assert half.dtype == np.float16


def test_lamb_in_two_phases():
    w, m, v = nd.array(W), nd.array([0.2, 0.1, 0.4]), nd.array([0.5, 0.3, 0.9])
    g = nd.lamb_update_phase1(w, nd.array(G), m, v, t=2, wd=0.05, clip_gradient=0.4, rescale_grad=0.5)
    np.testing.assert_allclose(g.asnumpy(), [0.089924, -0.038864, 0.199258], rtol=2e-5)
    np.testing.assert_allclose(m.asnumpy(), [0.195, 0.055, 0.4], rtol=2e-5)
    result = nd.lamb_update_phase2(w, g, w.norm(), g.norm(), lr=0.1, upper_bound=2.0)
    np.testing.assert_allclose(result.asnumpy(), [0.41900092, -1.2149935, 1.8205183], rtol=1e-6)
    still = nd.lamb_update_phase2(w, nd.zeros((3,)), w.norm(), nd.zeros((1,)), lr=0.1)
    np.testing.assert_array_equal(still.asnumpy(), np.float32(W))


def test_reset_arrays():
    a, b = nd.ones((2,)), nd.ones((3,), dtype="int32")
    nd.reset_arrays(a, b, num_arrays=2)
    assert a.asnumpy().tolist() == [0, 0]
    assert b.asnumpy().tolist() == [0, 0, 0]
    with pytest.raises(MXNetError, match="num_arrays"):
        nd.reset_arrays(a, num_arrays=2)


def test_what_is_refused_leaves_all_as_it_was():
    w, m = nd.array(W), nd.ones((3,))
    with pytest.raises(TypeError, match="number of the step"):
        nd.ftml_update(w, nd.array(G), m, m.copy(), m.copy(), lr=0.1)
    with pytest.raises(TypeError, match=r"sgd_update.*momentum"):
        nd.sgd_update(w, nd.array(G), lr=0.1, momentum=0.9)
    w.attach_grad()
    with autograd.record(), pytest.raises(MXNetError):
        nd.sgd_mom_update(w, nd.array(G), m, lr=0.1, out=w)
    np.testing.assert_array_equal(w.asnumpy(), np.float32(W))
    assert m.asnumpy().tolist() == [1, 1, 1]
