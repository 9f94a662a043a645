"""Losses and their gradients against MXNet 1.9.1's own numbers for the same inputs (kl: float64 NumPy)."""

import numpy as np
import pytest

from numbagrad import autograd, gluon, nd

L = gluon.loss
P = np.array([[0.3, -1.2, 2.0], [0.5, 0.1, -0.4]])
Z = np.array([[1.0, 0.0, 0.5], [0.2, 1.0, -1.0]])
S = np.array([[0.5], [2.0]])
BINARY = np.array([[1, 0, 1], [0, 0, 1]])
SIGN = np.sign(Z)
EXP = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
SIGMOID = 1 / (1 + np.exp(-P))
POSITIVE = np.array([[2, 3, 0.5]])

# loss, prediction, other inputs, value, gradient of the prediction
CASES = {
    "l2": (L.L2Loss(), P, (Z,), [0.6966667, 0.21], [[-7 / 30, -0.4, 0.5], [0.1, -0.3, 0.2]]),
    "l2 weights": (L.L2Loss(), P, (Z, S), [0.3483334, 0.42], [[-7 / 60, -0.2, 0.25], [0.2, -0.6, 0.4]]),
    "l2 batch axis": (
        L.L2Loss(batch_axis=1),
        P,
        (Z,),
        [0.145, 0.5625, 0.6525],
        [[-0.35, -0.6, 0.75], [0.15, -0.45, 0.3]],
    ),
    "l1": (L.L1Loss(weight=3), P, (Z,), [3.4, 1.8], [[-1, -1, 1], [1, -1, 1]]),
    "huber": (
        L.HuberLoss(rho=0.7, weight=2),
        P,
        (Z, S),
        [0.7833333, 1.1619047],
        [[-1 / 3, -1 / 3, 1 / 3], [0.5714286, -4 / 3, 1.1428571]],
    ),
    "bce": (
        L.SigmoidBCELoss(),
        P,
        (BINARY,),
        [0.31485525, 0.87716293],
        [[-0.1418525, 0.07715841, -0.03973431], [0.20748645, 0.17499307, -0.19956255]],
    ),
    "bce weights": (
        L.SigmoidBCELoss(),
        P,
        (BINARY, S),
        [0.15742762, 1.7543259],
        [[-0.07092625, 0.0385792, -0.01986715], [0.4149729, 0.34998614, -0.3991251]],
    ),
    "bce pos_weight": (
        L.SigmoidBCELoss(),
        P,
        (BINARY, None, POSITIVE),
        [0.47848567, 0.7249937],
        [[-0.283705, 0.07715842, -0.01986715], [0.20748645, 0.17499307, -0.09978127]],
    ),
    "bce of probabilities": (
        L.SigmoidBCELoss(from_sigmoid=True),
        SIGMOID,
        (BINARY, S, POSITIVE),
        [0.23924284, 1.4499875],
        [[-0.5802728, 0.2168657, -0.09461128], [1.7658143, 1.4034474, -0.83060825]],
    ),
    "ce": (
        L.SoftmaxCELoss(),
        P,
        ([2, 0],),
        [0.20167199, 0.7308749],
        [[0.14931875, 0.03331751, -0.18263704], [-0.5185125, 0.32275078, 0.19575824]],
    ),
    "ce weights": (
        L.SoftmaxCELoss(weight=3),
        P,
        ([2, 0], S),
        [0.302508, 4.385249],
        [[0.22397813, 0.04997627, -0.27395558], [-3.1110747, 1.9365046, 1.1745495]],
    ),
    "ce of probabilities": (
        L.SoftmaxCELoss(sparse_label=False),
        P,
        (EXP,),
        [1.6589247, 1.0601571],
        [[-0.35716164, -0.15300623, 0.5101671], [0.19793919, -0.30829772, 0.11035511]],
    ),
    "ce along axis 0": (
        L.SoftmaxCELoss(axis=0, batch_axis=1),
        P,
        ([1, 0, 0],),
        [0.5981389, 1.5410085, 0.08683611],
        [[0.450166, -0.785835, -0.08317268], [-0.450166, 0.785835, 0.08317269]],
    ),
    "ce of log-probabilities": (L.SoftmaxCELoss(from_logits=True), P, ([2, 0],), [-2, -0.5], [[0, 0, -1], [-1, 0, 0]]),
    "kl": (
        L.KLDivLoss(from_logits=False),
        P,
        (EXP,),
        [0.63873249, 0.20213615],
        [[-0.35716164, -0.15300623, 0.5101671], [0.19793919, -0.30829772, 0.11035511]],
    ),
    "kl weights": (
        L.KLDivLoss(),
        P,
        (EXP, S),
        [-0.78146934, -2.0574706],
        [[-0.2532402, -0.09316187, -0.15359794], [-0.5670967, -1.2620971, -0.17080626]],
    ),
    "hinge": (
        L.HingeLoss(),
        P,
        (SIGN,),
        [0.56666666, 0.6666667],
        [[-1 / 3, 0, 0], [-1 / 3, -1 / 3, 1 / 3]],
    ),
    "squared hinge": (
        L.SquaredHingeLoss(margin=0.5),
        P,
        (SIGN,),
        [0.09666666, 0.05666667],
        [[-0.13333333, 0, 0], [0, -0.26666668, 0.06666666]],
    ),
    "logistic": (
        L.LogisticLoss(),
        P,
        (SIGN,),
        [0.51485527, 0.5438296],
        [[-0.1418525, -0.08950827, -0.03973431], [-0.1258469, -0.15834028, 0.1337708]],
    ),
    "logistic binary": (
        L.LogisticLoss(label_format="binary"),
        P,
        (BINARY,),
        [0.31485525, 0.87716293],
        [[-0.1418525, 0.07715841, -0.03973431], [0.20748645, 0.17499307, -0.19956255]],
    ),
    "triplet": (L.TripletLoss(margin=3), P, (Z, Z[::-1]), [0, 3.19], [[0, 0, 0], [1.6, -2, 3]]),
    "poisson": (
        L.PoissonNLLLoss(),
        P,
        (abs(Z),),
        [1.8940536],
        [[0.05830981, 0.05019903, 1.1481761], [0.24145356, 0.01752849, -0.05494666]],
    ),
    "cosine": (
        L.CosineEmbeddingLoss(margin=0.1),
        P,
        (Z, [1, -1]),
        [[0.5055461], [0.5482037]],
        [[-0.35352525, -0.10729561, -0.01134858], [-0.5556031, 0.92600524, -0.46300268]],
    ),
    "sdml": (
        L.SDMLLoss(),
        P,
        (Z,),
        [2.2901976, 0.12478752],
        [[0.47990093, -0.5998703, 0.8998063], [0.39577252, -0.49471453, 0.74207336]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    loss, pred, others, value, gradient = CASES[name]
    x = nd.array(pred)
    x.attach_grad()
    others = [None if other is None else nd.array(other) for other in others]
    with autograd.record():
        y = loss(x, *others)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), gradient, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["l2", "l1", "bce", "ce", "ce of probabilities"])
def test_fused_and_composed_agree(name):
    dtype = "float64"
    loss, pred, others, _, _ = CASES[name]
    results = []
    for weights in (None, nd.ones((2, 1), dtype=dtype)):
        x = nd.array(pred, dtype=dtype)
        x.attach_grad()
        with autograd.record():
            y = loss(x, nd.array(others[0], dtype=dtype), weights)
        y.backward()
        assert y.dtype == np.dtype(dtype)
        results.append((y.asnumpy(), x.grad.asnumpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("l2", "int64"),
        ("l1", "uint8"),
        ("bce", "int32"),
        ("bce", "bool"),
        ("ce", "int32"),
        ("logistic binary", "int32"),
    ],
)
def test_labels_of_any_dtype(name, dtype):
    loss, pred, _, _, _ = CASES[name]
    label = [1, 0] if name == "ce" else BINARY
    expected = loss(nd.array(pred), nd.array(label)).asnumpy()
    found = loss(nd.array(pred), nd.array(label, dtype=dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def test_full_poisson_skips_small_targets():
    target = nd.array([[3, 2, 1.5], [4, 1, 7]])
    loss = L.PoissonNLLLoss(from_logits=False, compute_full=True)
    assert loss(nd.array(np.exp(P)), target).asscalar() == pytest.approx(4.330101, rel=1e-6)
    # A target of 0 has no logarithm; its rate alone counts.
    x = nd.array([[2.0]])
    x.attach_grad()
    with autograd.record():
        y = loss(x, nd.array([[0.0]]))
    y.backward()
    assert y.asscalar() == 2
    assert x.grad.asscalar() == 1


def test_gradient_of_logits_at_zero_is_half_minus_label():
    for loss, weights in ((L.SigmoidBCELoss(), ()), (L.SigmoidBCELoss(), (nd.ones((2, 1)),))):
        x = nd.zeros((2, 1))
        x.attach_grad()
        with autograd.record():
            y = loss(x, nd.array([0, 1]), *weights)
        y.backward()
        assert x.grad.tolist() == [[0.5], [-0.5]]


def test_large_logits_stay_finite():
    x = nd.array([[1000.0, -1000.0]])
    assert L.SigmoidBCELoss()(x, nd.array([[0, 1]])).tolist() == [1000]
    assert L.SigmoidBCELoss()(x, nd.array([[0, 1]]), None, nd.array([[2.0, 3.0]])).tolist() == [2000]
    assert L.SoftmaxCELoss()(x, nd.array([1])).tolist() == [2000]


@pytest.mark.parametrize("loss", [L.L2Loss(), L.L1Loss(), L.HuberLoss(), L.SigmoidBCELoss(), L.HingeLoss()])
def test_labels_take_the_shape_of_predictions(loss):
    column, row = nd.array([[1.0], [2], [3]]), nd.array([1.0, -2, 5])
    assert loss(column, row).tolist() == loss(column, row.reshape((3, 1))).tolist()
    with pytest.raises(ValueError, match=r"\(4,\).*\(3, 1\)"):
        loss(column, nd.ones(4))


def test_sparse_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(3,\).*\(2, 3\)"):
        L.SoftmaxCELoss()(nd.array(P), nd.array([0, 1, 2]))
    with pytest.raises(RuntimeError, match="the label of example 1 is out of range"):
        L.SoftmaxCELoss()(nd.array(P), nd.array([0, 3]))


def test_sequences_of_classes():
    scores = np.sin(np.arange(24.0)).reshape(2, 3, 4)
    label = np.array([[0, 1, 2], [3, 0, 1]])
    logp = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    expected = -np.take_along_axis(logp, label[..., None], -1)[..., 0].mean(1)
    np.testing.assert_allclose(L.SoftmaxCELoss()(nd.array(scores), nd.array(label)).asnumpy(), expected, rtol=1e-5)
    moved = L.SoftmaxCELoss(axis=1)(nd.array(scores.transpose(0, 2, 1)), nd.array(label))
    np.testing.assert_allclose(moved.asnumpy(), expected, rtol=1e-5)


def test_a_loss_of_ones_own():
    class Cubic(L.Loss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):
            loss = L._apply_weighting(F, (pred - label) ** 3, self._weight, sample_weight)
            return F.mean(loss, axis=self._batch_axis, exclude=True)

    assert Cubic(2.0, 0)(nd.array([[1.0, 3.0]]), nd.zeros((1, 2))).tolist() == [28]

    class Doubled(L.L2Loss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):
            return 2 * super().hybrid_forward(F, pred, label, sample_weight)

    assert Doubled()(nd.array([[2.0]]), nd.zeros((1, 1))).tolist() == [4]


def test_repr_and_errors():
    assert repr(L.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"
    assert repr(L.SoftmaxCELoss(batch_axis=1)) == "SoftmaxCrossEntropyLoss(batch_axis=1, w=None)"
    with pytest.raises(ValueError, match="signed or binary"):
        L.LogisticLoss(label_format="x")
    with pytest.raises(AssertionError, match="number"):
        L._apply_weighting(nd, nd.ones(1), "2")
