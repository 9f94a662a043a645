"""The recording and training flags: scopes, setters, threads; and what gets recorded."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError


def flags():
    return autograd.is_recording(), autograd.is_training()


def leaf(*values, dtype="float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    return x


@pytest.mark.parametrize(
    ("scope", "inside"),
    [
        (lambda: autograd.record(), (True, True)),
        (lambda: autograd.record(train_mode=False), (True, False)),
        (lambda: autograd.record(None), (True, False)),
        (lambda: autograd.pause(), (False, False)),
        (lambda: autograd.pause(train_mode=True), (False, True)),
        (lambda: autograd.train_mode(), (False, True)),
        (lambda: autograd.predict_mode(), (False, False)),
    ],
)
def test_each_scope_sets_its_flags_and_restores_them(scope, inside):
    assert flags() == (False, False)
    with scope() as nothing:
        assert nothing is None
        assert flags() == inside
    assert flags() == (False, False)


def test_none_leaves_the_training_flag():
    with autograd.train_mode():
        with autograd.record(None):
            assert flags() == (True, True)
        with autograd.pause(None):
            assert flags() == (False, True)


def test_scopes_nest_in_any_order():
    with autograd.pause():
        with autograd.record():
            assert flags() == (True, True)
            with autograd.predict_mode():
                assert flags() == (True, False)
                with autograd.pause(train_mode=True):
                    assert flags() == (False, True)
                assert flags() == (True, False)
            assert flags() == (True, True)
        assert flags() == (False, False)


def test_an_exception_restores_the_flags_and_goes_on():
    with pytest.raises(ZeroDivisionError), autograd.record(), autograd.predict_mode():
        raise ZeroDivisionError
    assert flags() == (False, False)


def test_a_scope_is_entered_again_and_inside_itself():
    scope = autograd.record()
    for _ in range(2):
        with scope:
            assert flags() == (True, True)
        assert flags() == (False, False)
    with scope:
        with autograd.pause():
            with scope:
                assert flags() == (True, True)
            assert flags() == (False, False)
        assert flags() == (True, True)
    assert flags() == (False, False)


def test_a_scope_is_no_decorator():
    with pytest.raises(TypeError):
        autograd.record()(lambda: None)


def test_setters_return_what_was_as_bool():
    assert autograd.set_recording(1) is False
    assert autograd.set_recording(False) is True
    assert autograd.set_training(True) is False
    assert autograd.set_training(0) is True
    assert flags() == (False, False)


def test_leaving_a_scope_undoes_a_setter():
    with autograd.record():
        autograd.set_recording(False)
        autograd.set_training(False)
    assert flags() == (False, False)
    with autograd.pause():
        autograd.set_recording(True)
    assert flags() == (False, False)


def test_a_new_thread_starts_with_both_off_and_changes_only_its_own():
    seen = []

    def other():
        seen.append(flags())
        autograd.set_recording(True)
        autograd.set_training(True)

    with autograd.record(train_mode=False):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert flags() == (True, False)
    assert seen == [(False, False)]


def run_threads(work):
    """Run ``work(k)`` in four threads; an exception in one fails the test."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_four_threads_differentiate_at_once():
    start = threading.Barrier(4)
    found = {}

    def work(k):
        start.wait()
        x = leaf(0.5, k)
        w = leaf(2.0, -1.0)
        for _ in range(30):
            with autograd.record():
                y = (nd.tanh(x * w) + x).sum()
            y.backward()
        found[k] = x.grad.asnumpy(), w.grad.asnumpy()

    run_threads(work)
    for k in range(4):
        x, w = np.array([0.5, k]), np.array([2.0, -1.0])
        slope = 1 - np.tanh(x * w) ** 2
        np.testing.assert_allclose(found[k][0], slope * w + 1, rtol=1e-5)
        np.testing.assert_allclose(found[k][1], slope * x, rtol=1e-5, atol=1e-7)


def test_four_threads_share_a_parameter():
    """Each pass keeps its state on the leaf; a thread is switched as often as can be."""
    w, total = leaf(1.0, 2.0), nd.array([1.0, 2.0])
    total.attach_grad("add")
    wrong = []

    def work(k):
        for _ in range(40):
            with autograd.record():
                y = w * (k + 1.0)
                for _ in range(5):
                    y = y + w * 0.0
            (found,) = autograd.grad(y, w)
            with autograd.record():
                z = total * 1.0 + total * 1.0
            z.backward()
            if found.asnumpy().tolist() != [k + 1.0] * 2:
                wrong.append(found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run_threads(work)
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert total.grad.asnumpy().tolist() == [4 * 40 * 2.0] * 2


# ------------------------------------------------------------------------------------------- what is recorded


def test_separate_and_nested_scopes_join_one_graph():
    x = leaf(2.0)
    with autograd.record():
        y = x * x
        with autograd.record():
            z = y * x
    with autograd.record():
        w = z + y
    w.backward()
    assert x.grad.asnumpy().tolist() == [12.0 + 4.0]


def test_nothing_is_recorded_outside_or_under_pause_or_from_constants():
    x = leaf(2.0)
    constant = nd.array([3.0])
    outside = x * x
    with autograd.record():
        with autograd.pause():
            paused = x * x
        unmarked = constant * constant
    for y in (outside, paused, unmarked):
        with pytest.raises(MXNetError, match="not in a graph"):
            y.backward()


@pytest.mark.parametrize("request_", ["write", "null"])
def test_an_op_is_recorded_also_for_a_null_leaf(request_):
    x, w = nd.array([2.0]), leaf(5.0)
    x.attach_grad(request_)
    with autograd.record():
        y = x * x
        z = y * w
    z.backward()
    assert w.grad.asnumpy().tolist() == [4.0]
    assert x.grad.asnumpy().tolist() == [20.0 if request_ == "write" else 0.0]


@pytest.mark.parametrize(
    "cut",
    [
        lambda y: y.detach(),
        lambda y: nd.stop_gradient(y),
        lambda y: nd.BlockGrad(y),
        lambda y: nd.array(y.asnumpy()),
        lambda y: y.asscalar(),
    ],
)
def test_what_cuts_the_graph(cut):
    x = leaf(3.0)
    with autograd.record():
        z = cut(x * x) * x
    z.backward()
    assert x.grad.asnumpy().tolist() == [9.0]


@pytest.mark.parametrize(
    "keep",
    [
        lambda y: y.copy(),
        lambda y: y.copyto(nd.zeros((2,))),
        lambda y: y.astype("float64").astype("float32"),
        lambda y: nd.array(y),
        lambda y: y.reshape((1, 2)).reshape((2,)),
        lambda y: y[0:2],
        lambda y: nd.identity(y, out=nd.zeros((2,))),
    ],
)
def test_what_keeps_the_graph(keep):
    x = leaf(1.0, 3.0)
    with autograd.record():
        z = keep(x * x) * x
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [3.0, 27.0])


def test_detach_shares_memory_without_history():
    x = leaf(1.0, 2.0)
    d = x.detach()
    d[0] = 7.0
    assert x.asnumpy().tolist() == [7.0, 2.0]
    assert d.grad is None
    assert x.copy().grad is None


def test_an_update_out_of_place_loses_the_mark_and_in_place_keeps_it():
    x = leaf(1.0)
    with autograd.record():
        y = x * 2
    y.backward()
    moved = x - 0.1 * x.grad
    with autograd.record():
        y = moved * 2
    with pytest.raises(MXNetError):
        y.backward()
    x -= 0.1 * x.grad
    x[:] = x * 1
    with autograd.record():
        y = x * 3
    y.backward()
    assert x.grad.asnumpy().tolist() == [3.0]
