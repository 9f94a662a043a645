"""Samplers: seeds, shapes, moments, what is refused."""

import subprocess
import sys

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd

N = 20_000
SAMPLERS = {
    # parameters, mean, variance
    "uniform": ((1.0, 3.0), 2.0, 1 / 3),
    "normal": ((1.0, 2.0), 1.0, 4.0),
    "exponential": ((2.0,), 2.0, 4.0),
    "gamma": ((2.0, 1.5), 3.0, 4.5),
    "poisson": ((3.0,), 3.0, 3.0),
    "negative_binomial": ((3.0, 0.5), 3.0, 6.0),
    "generalized_negative_binomial": ((2.0, 0.5), 2.0, 4.0),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_moments_shapes_and_dtypes(name):
    parameters, mean, variance = SAMPLERS[name]
    sample = getattr(nd.random, name)
    flat = sample(*parameters, shape=(N,)).asnumpy()
    rows = sample(*[nd.array([p, p]) for p in parameters], shape=(N // 2,)).asnumpy()
    assert flat.dtype == np.float32
    assert rows.shape == (2, N // 2)
    for values in (flat, rows):
        assert abs(values.mean() - mean) < 6 * np.sqrt(variance / N)
        assert abs(values.var() / variance - 1) < 0.15
    assert sample(*parameters).shape == (1,)
    assert sample(*parameters, shape=3).shape == (3,)
    assert sample(*parameters, shape=(0, 2)).shape == (0, 2)
    assert sample(*[nd.array([p, p]) for p in parameters]).shape == (2,)
    assert sample(*parameters, dtype="float64").dtype is np.float64
    assert sample(*parameters, dtype="float16").dtype is np.float16
    out = nd.zeros((2, 2), dtype="float64")
    assert sample(*parameters, out=out) is out
    with pytest.raises(mx.MXNetError, match=f"{name}.*int32"):
        sample(*parameters, dtype="int32")
    with pytest.raises(TypeError, match="colour"):
        sample(*parameters, colour=1)


def test_aliases():
    assert nd.uniform is nd.random_uniform
    assert mx.random.normal is nd.random.normal
    assert nd.gamma(nd.array([5.0])).asscalar() == pytest.approx(24, rel=1e-6)  # the function, no sampler


def test_the_same_seed_gives_the_same_numbers():
    def draw():
        return [
            nd.random.randn(3, 2).asnumpy().tolist(),
            nd.random.randint(0, 100, 5).asnumpy().tolist(),
            nd.random.gamma(2, 1, 4).asnumpy().tolist(),
            nd.random.shuffle(nd.arange(10)).asnumpy().tolist(),
        ]

    mx.random.seed(5)
    first = draw()
    assert draw() != first
    mx.random.seed(5)
    assert draw() == first
    mx.random.seed(-1)
    assert draw() != first
    with pytest.raises(ValueError, match="int"):
        mx.random.seed(1.5)


def test_a_fresh_process_starts_at_seed_0():
    code = "from numbagrad import nd; print(nd.random.uniform(shape=4).asnumpy().tolist())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mx.random.seed(0)
    assert found.stdout.strip() == str(nd.random.uniform(shape=4).asnumpy().tolist())


def test_the_streams_of_numpy_and_ours_are_apart():
    np.random.seed(3)
    nd.random.uniform(shape=10)
    after = np.random.rand()
    np.random.seed(3)
    assert np.random.rand() == after


def test_randint():
    values = nd.random.randint(-2, 3, (N,))
    assert values.dtype is np.int32
    assert np.abs(np.bincount(values.asnumpy() + 2) / N - 0.2).max() < 0.015
    assert nd.random.randint(0, 2**40, 3, dtype="int64").dtype is np.int64
    assert nd.random.randint(7, 8).asnumpy().tolist() == [7]
    with pytest.raises(mx.MXNetError, match="below"):
        nd.random.randint(3, 3)
    with pytest.raises(mx.MXNetError, match="beyond int32"):
        nd.random.randint(0, 2**40)
    with pytest.raises(mx.MXNetError, match="float32"):
        nd.random.randint(0, 3, dtype="float32")


def test_parameters_are_checked_before_the_stream_moves():
    mx.random.seed(1)
    expected = nd.random.uniform().asscalar()
    mx.random.seed(1)
    for call in (
        lambda: nd.random.uniform(2, 1),
        lambda: nd.random.normal(0, -1),
        lambda: nd.random.normal(0, np.nan),
        lambda: nd.random.exponential(-1),
        lambda: nd.random.gamma(nd.array([1, -1]), nd.array([1, 1])),
        lambda: nd.random.randn(),
        lambda: nd.random.normal(nd.ones(2), nd.ones(3)),
    ):
        with pytest.raises(mx.MXNetError):
            call()
    with pytest.raises(AssertionError, match="NDArray"):
        nd.random.normal(0, nd.ones(2))
    assert nd.random.uniform().asscalar() == expected
    assert nd.random.normal(3, 0, 2).asnumpy().tolist() == [3, 3]


def test_multinomial():
    p = nd.array([[0.1, 0.9], [0.5, 0.5]])
    p.attach_grad()
    with autograd.record():
        samples, log_p = nd.random.multinomial(p, shape=2000, get_prob=True)
    log_p.backward()
    chosen = samples.asnumpy()
    assert samples.shape == (2, 2000)
    assert samples.dtype is np.int32
    assert abs(chosen[0].mean() - 0.9) < 0.04
    rows = np.arange(2)[:, None]
    np.testing.assert_allclose(log_p.asnumpy(), np.log(p.asnumpy()[rows, chosen]), rtol=1e-6)
    counts = np.stack([(chosen == 0).sum(1), (chosen == 1).sum(1)], 1)
    np.testing.assert_allclose(p.grad.asnumpy(), counts / p.asnumpy(), rtol=1e-4)
    assert nd.random.multinomial(nd.array([0, 1.0])).asnumpy().tolist() == [1]
    assert nd.random.multinomial(p).shape == (2,)
    assert nd.random.multinomial(p, dtype="float32", shape=(2, 3)).shape == (2, 2, 3)
    assert nd.random.multinomial(nd.one_hot(nd.array([255]), 256)[0], dtype="uint8").asscalar() == 255
    with pytest.raises(mx.MXNetError, match=r"multinomial: uint8 cannot hold the numbers of 257 classes"):
        nd.random.multinomial(nd.ones((257,)), dtype="uint8")
    with pytest.raises(mx.MXNetError, match="multinomial"):
        nd.random.multinomial(nd.array([0.5, -0.5]))


def test_shuffle_and_bernoulli():
    x = nd.arange(30).reshape((10, 3))
    y = nd.random.shuffle(x).asnumpy()
    assert sorted(y[:, 0].tolist()) == x.asnumpy()[:, 0].tolist()
    assert (y[:, 1] - y[:, 0] == 1).all()
    assert y.tolist() != x.asnumpy().tolist()
    flips = nd.random.bernoulli(0.3, shape=N).asnumpy()
    assert set(np.unique(flips)) == {0, 1}
    assert abs(flips.mean() - 0.3) < 0.02


def test_operators_spell_parameters_their_own_way():
    def drawn(function, *args, **kwargs):
        mx.random.seed(3)
        return function(*args, **kwargs).asnumpy().tolist()

    number, one, four = nd.random.normal, nd.array([1.0]), nd.array([4.0])
    assert drawn(nd.random_normal, 1, 4, (3,)) == drawn(number, 1, 4, (3,))
    assert drawn(nd.normal, 1, 4, (3,), mx.cpu(0), "float64") == drawn(number, 1, 4, (3,), "float64")
    assert drawn(nd.sample_normal, mu=one, sigma=four) == drawn(number, one, four)
    assert drawn(nd.random_exponential, lam=4, shape=3) == drawn(nd.random.exponential, 0.25, 3)
    assert drawn(nd.sample_exponential, lam=four, shape=(3,)) == drawn(nd.random.exponential, nd.array([0.25]), 3)
    like = nd.zeros((2, 3), dtype="float64")
    assert drawn(nd.random.normal_like, like, loc=1, scale=4) == drawn(number, 1, 4, (2, 3), "float64")
    assert nd.random.uniform_like(like, 3, 4).dtype == np.float64
    assert drawn(nd.random_randint, low=0, high=9, shape=3) == drawn(nd.random.randint, 0, 9, 3)


@pytest.mark.parametrize(
    ("shape", "expected"), [(None, (1,)), ((), (1,)), (1, (1, 1)), ((1,), (1, 1)), ((2, 3), (1, 2, 3))]
)
def test_sample_operators_draw_one_for_each_parameter(shape, expected):
    assert nd.sample_normal(mu=nd.array([10.0]), sigma=nd.array([0.5]), shape=shape).shape == expected


def test_operators_refuse_what_they_do_not_know():
    with pytest.raises(TypeError, match=r"random_uniform.*loc"):
        nd.random_uniform(loc=1)
    with pytest.raises(TypeError, match="sample_uniform: takes an NDArray"):
        nd.sample_uniform(0, 1)
    with pytest.raises(TypeError, match=r"sample_uniform.*high"):
        nd.sample_uniform(nd.array([1.0]))
