"""MXNet's test helpers: what passes and what is reported."""

import contextlib
import os
import sys
import threading

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import nd
from numbagrad import test_utils as tu


def test_tolerances_follow_the_wider_of_the_two():
    tu.assert_almost_equal(np.float32([1.0]), np.float64([1.001]))
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        tu.assert_almost_equal(np.float64([1.0, 2]), np.float64([1.001, 2]))
    tu.assert_almost_equal(nd.array([1.0]), 1.001)
    tu.assert_almost_equal(nd.array([1.0]).astype("float16"), np.float32([1.1]))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.array([1]), np.array([2]))
    tu.assert_almost_equal(np.float32([1.0]), np.float32([1.5]), rtol={np.dtype("float32"): 0.5})
    assert tu.get_tols(nd.zeros(1), 1.0, None, 2.0) == (1e-4, 2.0)


def test_the_report_lists_the_worst_first():
    a, b = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    a[1, 2], a[0, 1] = 5, 1
    with pytest.raises(AssertionError) as caught:
        tu.assert_almost_equal(a, b, names=("ours", "theirs"))
    text = str(caught.value)
    assert "2 of 6" in text
    assert text.index("at (1, 2): ours = ") < text.index("at (0, 1): ours = ")


def test_nan_shapes_and_error_rates():
    nan = np.array([np.nan, 1.0])
    tu.assert_almost_equal(nan, nan, equal_nan=True)
    tu.assert_almost_equal_ignore_nan(nan, np.array([3.0, 1.0]))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(nan, nan)
    tu.assert_almost_equal(np.ones((2, 1)), np.ones(3))
    with pytest.raises(AssertionError, match="shapes"):
        tu.assert_almost_equal(np.ones((2, 1)), np.ones(3), use_broadcast=False)
    tu.assert_almost_equal_with_err(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5]), etol=0.25)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal_with_err(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5]), etol=0.2)
    assert tu.same(nd.array([1, 2]), np.array([1, 2]))
    assert not tu.same(np.ones(2), np.ones(3))
    assert tu.almost_equal(nd.array([1.0]), np.array([1.0]))
    x = nd.zeros((2,))
    assert tu.same_array(x, x.detach())
    assert not tu.same_array(x, x.copy())


def test_random_inputs_repeat_and_have_their_shapes():
    np.random.seed(3)
    one = tu.random_arrays((2, 3)), tu.random_arrays((1,), ()), tu.rand_ndarray((2, 2), dtype="float64")
    np.random.seed(3)
    other = tu.random_arrays((2, 3)), tu.random_arrays((1,), ()), tu.rand_ndarray((2, 2), dtype="float64")
    assert tu.same(one[0], other[0])
    assert [x.shape for x in one[1]] == [(1,), ()]
    assert one[0].dtype == tu.default_dtype()
    assert tu.same(one[2], other[2])
    assert one[2].dtype == np.float64
    for _ in range(20):
        assert all(1 <= n <= 4 for n in tu.rand_shape_nd(3, 4))
        assert tu.rand_shape_2d(1, 1) == (1, 1)
        assert all(0 <= n <= 2 for n in tu.rand_shape_3d(2, 2, 2, allow_zero_size=True))
    (u,) = tu.random_uniform_arrays((100,), low=2, high=3)
    assert u.min() >= 2
    assert u.max() <= 3
    assert sorted(tu.random_sample([3, 1, 2], 3)) == [1, 2, 3]
    with pytest.raises(mx.MXNetError, match="storage type 'csr'"):
        tu.rand_ndarray((2, 2), "csr", density=0.5)


def test_np_reduce():
    x = np.arange(24.0).reshape(2, 3, 4)
    assert tu.same(tu.np_reduce(x, (0, -1), True, np.sum), x.sum(axis=(0, 2), keepdims=True))
    assert tu.same(tu.np_reduce(x, 1, False, np.max), x.max(axis=1))
    assert tu.np_reduce(x, None, False, np.sum) == x.sum()


def test_the_default_context_is_a_threads_own():
    seen = []

    def work():
        tu.set_default_context(mx.cpu(3))
        seen.append(tu.default_context())
        with mx.cpu(4):
            seen.append(mx.Context.default_ctx)
        seen.append(nd.zeros(1).context)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [mx.cpu(3), mx.cpu(4), mx.cpu(3)]
    assert tu.default_context() == mx.cpu(0)
    with mx.cpu(1):
        mx.Context.default_ctx = mx.cpu(2)
        assert mx.current_context() == mx.cpu(2)
    assert mx.current_context() == mx.cpu(0)
    assert tu.list_gpus() == []


def test_exceptions_and_attempts():
    tu.assert_exception(lambda x: nd.dot(x, x), mx.MXNetError, nd.zeros((2, 3)))
    with pytest.raises(AssertionError, match="did not raise"):
        tu.assert_exception(abs, ValueError, 1)
    tries = []

    @tu.retry(3)
    def third():
        tries.append(1)
        assert len(tries) == 3

    third()
    assert len(tries) == 3

    @tu.retry(2)
    def never():
        tries.append(1)
        raise AssertionError("no")

    with pytest.raises(AssertionError, match="no"):
        never()
    assert len(tries) == 5


def test_environment_is_put_back(monkeypatch):
    monkeypatch.setenv("NUMBAGRAD_TEST_A", "old")
    with contextlib.suppress(KeyError), tu.environment({"NUMBAGRAD_TEST_A": None, "NUMBAGRAD_TEST_B": "new"}):
        assert "NUMBAGRAD_TEST_A" not in os.environ
        assert os.environ["NUMBAGRAD_TEST_B"] == "new"
        raise KeyError
    with tu.environment("NUMBAGRAD_TEST_A", "new"):
        assert os.environ["NUMBAGRAD_TEST_A"] == "new"
    assert os.environ["NUMBAGRAD_TEST_A"] == "old"
    assert "NUMBAGRAD_TEST_B" not in os.environ


def test_discard_stderr(capfd):
    with tu.discard_stderr():
        print("lost", file=sys.stderr)
        os.write(2, b"lost too")
    print("kept", file=sys.stderr)
    assert capfd.readouterr().err == "kept\n"


def test_numeric_gradients():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    dx, dy = tu.numeric_grad(lambda x, y: x * x * y, [x, y])
    np.testing.assert_allclose(dx, 2 * x * y, rtol=1e-7)
    np.testing.assert_allclose(dy, x * x, rtol=1e-7)
    found = tu.numeric_grad(lambda x, k: x * k, {"x": x, "k": np.array([2, 3])})
    np.testing.assert_allclose(found["x"], [2, 3], rtol=1e-7)
    tu.check_numeric_gradient(lambda x, y: nd.exp(x) * y, [x, nd.array(y)])
    tu.check_numeric_gradient(lambda a, b: nd.exp(a) * nd.BlockGrad(b), {"a": x, "b": y}, grad_nodes=["a"])
    with pytest.raises(AssertionError, match=r"numeric\['b'\]"):
        tu.check_numeric_gradient(lambda a, b: nd.exp(a) * nd.BlockGrad(b), {"a": x, "b": y})


def test_distributions():
    rng = np.random.default_rng(7)
    buckets, probs = tu.gen_buckets_probs_with_ppf(lambda q: 2 * q - 1, 4)
    assert buckets == [(-1, -0.5), (-0.5, 0), (0, 0.5), (0.5, 1)]
    assert probs == [0.25] * 4
    tu.verify_generator(lambda n: rng.uniform(-1, 1, n), buckets, probs, nsamples=10000)
    with pytest.raises(AssertionError, match="do not have the distribution"):
        tu.verify_generator(lambda n: rng.uniform(-1, 1, n) ** 3, buckets, probs, nsamples=10000)
    with pytest.raises(AssertionError):  # the shares inside are right, but some lie outside
        tu.verify_generator(lambda n: rng.uniform(-1.5, 1.5, n), buckets, probs, nsamples=10000)
    # by hand: 10 samples, (6-5)^2/5 + (4-5)^2/5 = 0.4; P(chi2_1 > 0.4) = erfc(sqrt(0.2))
    p, observed, expected = tu.chi_square_check(lambda n: np.array([0] * 6 + [1] * 4), [0, 1], [0.5, 0.5], 10)
    assert p == pytest.approx(0.5270892568655381)
    assert (observed.tolist(), expected.tolist()) == ([6, 4], [5, 5])
    assert tu.mean_check(lambda n: rng.normal(0.0, 1.0, n), 0.0, 1.0, 10000)
    assert not tu.mean_check(lambda n: rng.normal(0.2, 1.0, n), 0.0, 1.0, 10000)
    assert tu.var_check(lambda n: rng.normal(0.0, 2.0, n), 2.0, 10000)
    assert not tu.var_check(lambda n: rng.normal(0.0, 2.2, n), 2.0, 10000)


def test_compare_optimizer():
    def sgd(rate=0.1, momentum=0.9):
        return mx.optimizer.SGD(learning_rate=rate, momentum=momentum)

    tu.compare_optimizer(sgd(), sgd(), (3, 2), np.float32)
    with pytest.raises(AssertionError):
        tu.compare_optimizer(sgd(), sgd(rate=0.2), (3, 2), np.float32)
    tu.compare_optimizer(
        sgd(), sgd(momentum=0.0), (3, 2), np.float32
    )  # the first step is the same, and one has no state
