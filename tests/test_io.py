"""NDArrayIter."""

import numpy as np
import pytest

import numbagrad as mx

X = np.arange(10).reshape(5, 2)


def rounds(it, n=3):
    """The labels and the padding of each batch of `n` rounds."""
    found = []
    for _ in range(n):
        found.append([(batch.label[0].asnumpy().tolist(), batch.pad) for batch in it])
        it.reset()
    return found


PAD = [([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]
DISCARD = [([0, 1], 0), ([2, 3], 0)]
ROLLED = [([4, 0], 0), ([1, 2], 0), ([3, 4], 0)]


@pytest.mark.parametrize(
    ("handle", "expected"),
    [("pad", [PAD, PAD, PAD]), ("discard", [DISCARD] * 3), ("roll_over", [DISCARD, ROLLED, DISCARD])],
)
def test_last_batches(handle, expected):
    it = mx.io.NDArrayIter(X, np.arange(5), batch_size=2, last_batch_handle=handle)
    assert rounds(it) == expected


def test_data_and_labels_belong_together():
    it = mx.io.NDArrayIter(X, np.arange(5), batch_size=2)
    for batch in it:
        assert (batch.data[0].asnumpy()[:, 0] == 2 * batch.label[0].asnumpy()).all()
        assert batch.data[0].dtype == np.float32


def test_shuffling_is_another_order_each_round():
    np.random.seed(3)
    it = mx.io.NDArrayIter(X, np.arange(5), batch_size=1, shuffle=True)
    orders = [[label for (label,), _ in one] for one in rounds(it, 4)]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_reset_in_the_middle():
    it = mx.io.NDArrayIter(X, np.arange(5), batch_size=2, last_batch_handle="roll_over")
    it.next()
    it.reset()
    assert rounds(it, 1) == [DISCARD]
    it.hard_reset()
    assert rounds(it, 1) == [DISCARD]


@pytest.mark.parametrize(
    ("handle", "expected"),
    [
        ("pad", [[([0, 1, 2, 3, 4, 0, 1], 2)]] * 3),
        ("discard", [[], [], []]),
        ("roll_over", [[], [([0, 1, 2, 3, 4, 0, 1], 0)], [([2, 3, 4, 0, 1, 2, 3], 0)]]),
    ],
)
def test_fewer_examples_than_a_batch_takes(handle, expected):
    assert rounds(mx.io.NDArrayIter(X, np.arange(5), batch_size=7, last_batch_handle=handle)) == expected


def test_names_and_shapes():
    it = mx.io.NDArrayIter({"b": mx.nd.ones((4, 3), dtype="int32")}, [np.ones(4), np.ones((4, 2))], batch_size=2)
    assert [tuple(each) for each in it.provide_data] == [("b", (2, 3))]
    assert it.provide_data[0].dtype == np.int32
    assert [tuple(each) for each in it.provide_label] == [("_0_softmax_label", (2,)), ("_1_softmax_label", (2, 2))]
    batch = it.next()
    assert batch.provide_data == it.provide_data
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,), (2, 2)]"
    assert mx.io.DataDesc.get_batch_axis("TNC") == 1
    assert mx.io.NDArrayIter(X, batch_size=5).next().label == []


def test_what_is_refused():
    with pytest.raises(ValueError, match="last_batch_handle"):
        mx.io.NDArrayIter(X, last_batch_handle="drop")
    with pytest.raises(AssertionError, match="batch_size"):
        mx.io.NDArrayIter(X, batch_size=0)
    with pytest.raises(AssertionError, match="lengths"):
        mx.io.NDArrayIter(X, np.ones(4))
    with pytest.raises(TypeError):
        mx.io.NDArrayIter(3)


def test_own_iterators_state_next():
    class Two(mx.io.DataIter):
        def __init__(self):
            super().__init__(1)
            self.count = 0

        def iter_next(self):
            self.count += 1
            return self.count <= 2

        def getdata(self):
            return [mx.nd.array([self.count])]

        def getlabel(self):
            return []

        def getpad(self):
            return 0

    assert [batch.data[0].asscalar() for batch in Two()] == [1, 2]
