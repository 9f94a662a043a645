"""Functions whose gradient the user writes."""

import gc

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError


def leaf(*values, request="write"):
    x = nd.array(values)
    x.attach_grad(request)
    return x


class Sigmoid(autograd.Function):
    def forward(self, x):
        assert not autograd.is_recording()
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        assert not autograd.is_recording()
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class Given(autograd.Function):
    """A product by 1 whose backward is what the test says."""

    def __init__(self, run, outputs=1):
        super().__init__()
        self.run, self.outputs = run, outputs

    def forward(self, *inputs):
        return inputs[0] * 1 if self.outputs == 1 else tuple(inputs[0] * (k + 1) for k in range(self.outputs))

    def backward(self, *gradients):
        return self.run(*gradients)


@pytest.mark.parametrize("request_", ["write", "add"])
def test_values(request_):
    x = leaf(0.0, 2.0, request=request_)
    x.grad[:] = 1
    with autograd.record():
        y = Sigmoid()(x * 1)
        z = y * 3
    z.backward()
    s = 1 / (1 + np.exp(-np.array([0.0, 2.0])))
    np.testing.assert_allclose(y.asnumpy(), s, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * s * (1 - s) + (request_ == "add"), rtol=1e-6)


def test_one_call_an_instance():
    f = Sigmoid()
    assert f.saved_tensors == ()
    f(nd.ones((1,)))
    with pytest.raises(AssertionError, match="Sigmoid"):
        f(nd.ones((1,)))


def test_a_constructor_that_forgets_super():
    class Careless(Sigmoid):
        def __init__(self):
            pass

    x = leaf(0.0)
    with autograd.record():
        y = Careless()(x)
    y.backward()
    assert x.grad.asscalar() == 0.25


def test_nothing_is_recorded_outside_record_or_without_a_graph():
    x = leaf(1.0)
    y = Sigmoid()(x)
    with autograd.record():
        z = Sigmoid()(nd.ones((1,)))
    for head in (y, z):
        with pytest.raises(MXNetError, match="not in a graph"):
            head.backward()


def test_inputs_must_be_arrays_while_recording():
    with autograd.record(), pytest.raises(AttributeError):
        Given(lambda g: g)(leaf(1.0), 3.0)
    assert not autograd.is_recording()


@pytest.mark.parametrize("outputs", [2, 3])
@pytest.mark.parametrize("used", [0, 1])
def test_several_outputs_zeros_for_the_unused(outputs, used):
    seen = []

    def back(*gradients):
        seen.extend(g.asnumpy().tolist() for g in gradients)
        return gradients[0] + 2 * gradients[1]

    x = leaf(1.0, 2.0)
    with autograd.record():
        y = Given(back, outputs)(x)
        assert type(y) is tuple
        z = y[used] * 5
    z.backward()
    assert seen == [[5.0, 5.0] if k == used else [0.0, 0.0] for k in range(outputs)]
    assert x.grad.asnumpy().tolist() == [5.0 * (used + 1)] * 2


def test_a_list_comes_back_as_a_list():
    class Both(autograd.Function):
        def forward(self, x):
            return [x * 2, x * 3]

        def backward(self, a, b):
            return [2 * a + 3 * b]

    x = leaf(1.0)
    with autograd.record():
        y = Both()(x)
    assert type(y) is list
    autograd.backward(y)
    assert x.grad.asscalar() == 5.0


def test_several_inputs_of_which_some_are_constants_or_ints():
    class Product(autograd.Function):
        def forward(self, a, b, c):
            self.save_for_backward(a, b, c)
            return a * b * c

        def backward(self, g):
            a, b, c = self.saved_tensors
            return (g * b * c).astype("float64"), g * a * c, g * a * b

    a, b, c = nd.array([2.0]), leaf(3.0), nd.array([4], dtype="int32")
    c.attach_grad()
    with autograd.record():
        y = Product()(a, b, c)
    y.backward()
    assert (b.grad.asscalar(), c.grad.asscalar()) == (8.0, 6.0)
    assert c.grad.dtype is np.float32


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda g: None, "NoneType"),
        (lambda g: (g, None), "NoneType instead of an NDArray for input 1"),
        (lambda g: g, "1 gradients for 2 inputs"),
        (lambda g: (g, g, g), "3 gradients for 2 inputs"),
        (lambda g: (g, np.ones(2)), "ndarray"),
        (lambda g: (g, nd.ones((3,))), r"\(3,\)"),
        (lambda g: 1 / 0, "Given.backward raised ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_bad_backward_raises_and_leaves_no_half_written_gradient(run, message, request_):
    x, w, early = (leaf(1.0, 2.0, request=request_) for _ in range(3))
    for a in (x, w, early):
        a.grad[:] = 7
    with autograd.record():
        # The product is walked before the function.
        y = Given(run if message != "NoneType" else lambda g: None)(x, w) * early
        with pytest.raises(MXNetError, match=message if message != "NoneType" else "for 2 inputs") as caught:
            y.backward()
        assert autograd.is_recording()
    for a in (x, w, early):
        assert a.grad.asnumpy().tolist() == [7.0, 7.0]
        assert a._fresh_grad == 0
    if "ZeroDivision" in message:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)


def test_recording_is_restored_when_forward_raises():
    class Broken(autograd.Function):
        def forward(self, x):
            raise ValueError("mine")

    with autograd.record():
        with pytest.raises(ValueError, match="mine"):
            Broken()(leaf(1.0))
        assert autograd.is_recording()


def test_forward_must_return_arrays_of_its_own():
    class Same(autograd.Function):
        def forward(self, x):
            return x

    class Numpy(autograd.Function):
        def forward(self, x):
            return x.asnumpy()

    x = leaf(1.0)
    with autograd.record():
        with pytest.raises(MXNetError, match="return a copy"):
            Same()(x)
        with pytest.raises(TypeError, match=r"Numpy\.forward returned ndarray"):
            Numpy()(x)
    with pytest.raises(NotImplementedError, match="Function"):
        autograd.Function()(x)


def test_the_training_flag_is_that_of_the_pass():
    seen = []

    def back(g):
        seen.append(autograd.is_training())
        return g

    x = leaf(1.0)
    for mode in (True, False):
        with autograd.record():
            y = Given(back)(x)
        y.backward(train_mode=mode)
    assert seen == [True, False]


def test_user_code_may_write_to_what_it_gets_and_keeps():
    kept = []

    def back(g):
        g *= 2
        kept.append(g)
        return g

    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    head = nd.array([1.0, 1.0])
    with autograd.record():
        y = Given(back)(x) + w
    y.backward(head)
    kept[0][:] = 0
    assert x.grad.asnumpy().tolist() == [2.0, 2.0]
    assert w.grad.asnumpy().tolist() == head.asnumpy().tolist() == [1.0, 1.0]
    with autograd.record():
        y = Given(back)(x)
    (dx,) = autograd.grad(y, x)
    kept[1][:] = 0
    assert dx.asnumpy().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_backward_inside_backward_through_a_leaf_of_the_outer_graph(before, request_):
    w, x = leaf(1.0, 2.0, request=request_), leaf(1.0, 2.0)

    def back(g):
        with autograd.record():
            inner = (w * 3).sum()
        inner.backward()
        return g

    with autograd.record():
        if before:
            h = w * 5
            y = Given(back)(x) + h
        else:
            y = Given(back)(x) + w * 5
    y.backward()
    assert x.grad.asnumpy().tolist() == [1.0, 1.0]
    assert w.grad.asnumpy().tolist() == [5.0 + 3.0 * (request_ == "add")] * 2
    with autograd.record():
        y = Given(back)(x) * w
    (dw,) = autograd.grad(y, w)
    assert dw.asnumpy().tolist() == [1.0, 2.0]


def test_record_inside_forward_on_detached_arrays():
    class Slope(autograd.Function):
        def forward(self, x):
            a = x.detach()
            a.attach_grad()
            with autograd.record():
                y = a * a
            y.backward()
            return a.grad * 1

        def backward(self, g):
            return g * 2

    x = leaf(3.0)
    with autograd.record():
        y = Slope()(x) * 1
    y.backward()
    assert (y.asscalar(), x.grad.asscalar()) == (6.0, 2.0)


def test_no_second_order():
    x = leaf(1.0)
    with autograd.record():
        y = Sigmoid()(x)
    with pytest.raises(MXNetError, match="cannot be differentiated again"):
        autograd.grad(y, x, create_graph=True)
    assert not autograd.is_recording()


def test_functions_leave_no_reference_cycles():
    x = leaf(1.0)

    def use():
        with autograd.record():
            y = Sigmoid()(x)
        y.backward()

    use()  # compiling makes cycles, some of which hold others
    while gc.collect():
        pass
    gc.disable()
    try:
        for _ in range(3):
            use()
        assert gc.collect() == 0
    finally:
        gc.enable()
