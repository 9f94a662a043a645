"""Datasets, samplers, the loader."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import gluon, nd
from numbagrad.gluon import data as gdata


def batches(loader):
    return [[part.tolist() for part in batch] if isinstance(batch, list) else batch.tolist() for batch in loader]


class Plain:
    """A dataset that is no array, so that examples are asked for one by one."""

    def __init__(self, items):
        self.items = items
        self.asked = []

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        self.asked.append(i)
        return self.items[i]


def test_array_dataset():
    features, labels = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([7, 8, 9], dtype="int32")
    dataset = gluon.data.dataset.ArrayDataset(features, labels, ["a", "b", "c"])
    x, y, name = dataset[1]
    assert (x.tolist(), y, type(y), name) == ([3, 4], 8, np.int32, "b")
    assert len(dataset) == 3
    assert gdata.ArrayDataset([5, 6])[1] == 6
    with pytest.raises(AssertionError, match="same length"):
        gdata.ArrayDataset(features, [1, 2])
    with pytest.raises(AssertionError, match="at least 1"):
        gdata.ArrayDataset()


def test_transforms():
    pairs = gdata.SimpleDataset([(1, 2), (3, 4), (5, 6)])
    assert list(pairs.transform(lambda a, b: a + b)) == [3, 7, 11]
    assert list(pairs.transform_first(lambda a: -a)) == [(-1, 2), (-3, 4), (-5, 6)]
    singles = gdata.SimpleDataset([1, 2, 3, 4, 5])
    assert list(singles.transform_first(lambda a: 10 * a)) == [10, 20, 30, 40, 50]
    calls = []
    eager = singles.transform(lambda a: calls.append(a) or a, lazy=False)
    assert calls == [1, 2, 3, 4, 5]
    assert (list(eager), calls) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert list(singles.filter(lambda a: a % 2)) == [1, 3, 5]
    assert [list(singles.shard(2, i)) for i in (0, 1)] == [[1, 2, 3], [4, 5]]
    assert [list(singles.take(n)) for n in (2, 9, None)] == [[1, 2], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert list(singles.sample(gdata.SequentialSampler(2, start=3))) == [4, 5]
    with pytest.raises(TypeError, match="sampler"):
        singles.sample([1])
    with pytest.raises(AssertionError, match="shard"):
        singles.shard(2, 2)


def test_samplers():
    assert list(gdata.SequentialSampler(3)) == [0, 1, 2]
    np.random.seed(3)
    order = list(gdata.RandomSampler(10))
    np.random.seed(3)
    expected = np.arange(10)
    np.random.shuffle(expected)
    assert order == expected.tolist()
    assert list(gdata.FilterSampler(lambda a: a > 1, [0, 2, 1, 3])) == [1, 3]
    assert list(gdata.IntervalSampler(5, 2)) == [0, 2, 4, 1, 3]
    assert list(gdata.IntervalSampler(5, 2, rollover=False)) == [0, 2, 4]


def test_batch_sampler():
    def sizes(last, n=5):
        sampler = gdata.BatchSampler(gdata.SequentialSampler(n), 2, last)
        return [(len(sampler), list(sampler)) for _ in range(2)]

    assert sizes("keep") == [(3, [[0, 1], [2, 3], [4]])] * 2
    assert sizes("discard") == [(2, [[0, 1], [2, 3]])] * 2
    assert sizes("rollover") == [(2, [[0, 1], [2, 3]]), (3, [[4, 0], [1, 2], [3, 4]])]
    with pytest.raises(ValueError, match="'keep', 'discard', or 'rollover', but got kep"):
        gdata.BatchSampler(gdata.SequentialSampler(1), 1, "kep")


ROWS = np.arange(10.0, dtype="float32").reshape(5, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_arrays_and_single_examples_give_the_same(workers):
    labels = np.array([5, 4, 3, 2, 1])
    fast = gdata.ArrayDataset(nd.array(ROWS), labels)
    slow = Plain([(nd.array(row), label) for row, label in zip(ROWS, labels)])
    for last in ("keep", "discard", "rollover"):
        loaders = [gdata.DataLoader(each, 2, last_batch=last, num_workers=workers) for each in (fast, slow)]
        for _ in range(2):
            assert [len(loader) for loader in loaders] == [len(loaders[0])] * 2
            first, second = map(batches, loaders)
            assert first == second
    x, y = next(iter(gdata.DataLoader(fast, 2)))
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((2, 2), np.float32, (2,), np.int64)
    assert (x.tolist(), y.tolist()) == ([[0, 1], [2, 3]], [5, 4])


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (nd.array(ROWS), ROWS[:2].tolist()),
        (ROWS[::-1], ROWS[:2:-1].tolist()),
        (nd.array([1, 2, 3]), [[1], [2]]),
        (np.array([1, 2, 3]), [1, 2]),
        ([1, 2, 3], [1, 2]),
        (gdata.ArrayDataset(nd.array([1, 2, 3])), [1, 2]),
        (gdata.SimpleDataset(nd.array([1, 2, 3])), [[1], [2]]),
        ([(1, [2, 3]), (4, [5, 6])], [[1, 4], [[2, 3], [5, 6]]]),
        (gdata.SimpleDataset([1, 2, 3]).transform(lambda a: 2 * a), [2, 4]),
    ],
)
def test_first_batch(dataset, expected):
    assert batches(gdata.DataLoader(dataset, 2))[0] == expected


def test_dtypes_are_kept():
    for values in (ROWS, ROWS.astype("float64"), ROWS.astype("float16"), ROWS > 3, ROWS.astype("uint8")):
        batch = next(iter(gdata.DataLoader(gdata.ArrayDataset(values), 3)))
        assert batch.dtype == values.dtype
        assert batch.tolist() == values[:3].tolist()
    (floats,) = gdata.DataLoader([0.5, 1.5], 2)
    assert floats.dtype == np.float64
    for wrong in (["a", "b"], [{"a": 1}, {"a": 2}]):
        with pytest.raises(KeyError):
            next(iter(gdata.DataLoader(wrong, 2)))


def test_a_batch_owns_its_values():
    rows = nd.array(ROWS)
    batch = next(iter(gdata.DataLoader(rows, 2)))
    batch[:] = -1
    assert rows.tolist() == ROWS.tolist()
    rows[0] = 9
    assert next(iter(gdata.DataLoader(rows, 2))).tolist() == [[9, 9], [2, 3]]


@pytest.mark.parametrize("workers", [0, 3])
def test_shuffling(workers):
    dataset = gdata.ArrayDataset(nd.array(np.arange(20)), np.arange(20) * 2)
    loader = gdata.DataLoader(dataset, 6, shuffle=True, num_workers=workers)
    epochs = []
    for _ in range(2):
        order = []
        for x, y in loader:
            assert y.tolist() == (2 * x).tolist()
            order += x.tolist()
        assert sorted(order) == list(range(20))
        epochs.append(order)
    assert epochs[0] != epochs[1]
    np.random.seed(7)
    expected = np.arange(20)
    np.random.shuffle(expected)
    np.random.seed(7)
    assert [i for x, _ in loader for i in x.tolist()] == expected.tolist()


def test_samplers_of_ones_own():
    rows = nd.array(ROWS)
    assert batches(gdata.DataLoader(rows, 2, sampler=[4, -5, 1])) == [[[8, 9], [0, 1]], [[2, 3]]]
    assert batches(gdata.DataLoader(rows, batch_sampler=[[0], [1, 2]])) == [[[0, 1]], [[2, 3], [4, 5]]]
    with pytest.raises(IndexError):
        next(iter(gdata.DataLoader(rows, 1, sampler=[5])))


def test_batchify():
    loader = gdata.DataLoader([[1], [2, 3]], 2, batchify_fn=lambda examples: [len(one) for one in examples])
    assert list(loader) == [[1, 2]]


def test_workers_keep_order_and_pass_errors_on():
    class Rows(Plain):
        def __getitem__(self, i):
            if i == 5:
                raise ValueError("row 5 is bad")
            return super().__getitem__(i)

    iterator = iter(gdata.DataLoader(Rows(list(range(8))), 2, num_workers=3))
    assert [next(iterator).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="row 5"):
        next(iterator)
    dataset = Plain(list(range(100)))
    iterator = iter(gdata.DataLoader(dataset, 1, num_workers=1, prefetch=3))
    next(iterator)
    del iterator
    assert len(dataset.asked) <= 5


def test_pinned_batches_are_labelled():
    x, y = next(iter(gdata.DataLoader(gdata.ArrayDataset(ROWS, ROWS), 2, pin_memory=True, pin_device_id=1)))
    assert x.context == y.context == mx.cpu_pinned(1)


def test_contradictions():
    rows = nd.array(ROWS)
    for kwargs, message in (
        ({}, "batch_size must be specified"),
        ({"batch_size": 0}, "at least 1"),
        ({"batch_size": 2, "shuffle": True, "sampler": [1]}, "shuffle must not"),
        ({"batch_size": 2, "batch_sampler": [[1]]}, "must not be specified if batch_sampler"),
        ({"batch_size": 2, "last_batch": "x"}, "last_batch"),
    ):
        with pytest.raises(ValueError, match=message):
            gdata.DataLoader(rows, **kwargs)


def test_split_data():
    x = nd.array(np.arange(10).reshape(5, 2))
    parts = gluon.utils.split_data(x, 3, even_split=False)
    assert [part.tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9]]]
    parts = gluon.utils.split_data(x, 2, batch_axis=1)
    assert [part.tolist() for part in parts] == [[[0], [2], [4], [6], [8]], [[1], [3], [5], [7], [9]]]
    with pytest.raises(ValueError, match=r"shape \(5, 2\) cannot be evenly split into 2"):
        gluon.utils.split_data(x, 2)
    first, second = gluon.utils.split_and_load([[1, 2], [3, 4]], [mx.cpu(0), mx.cpu(1)])
    assert (first.tolist(), second.tolist(), second.context) == ([[1, 2]], [[3, 4]], mx.cpu(1))


def test_clip_global_norm():
    arrays = [nd.array([3.0, 0.0]), nd.array([[4.0]])]
    norm = gluon.utils.clip_global_norm(arrays, 1.0)
    assert (norm, type(norm)) == (5, np.float32)
    np.testing.assert_allclose(arrays[0].asnumpy(), [0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(arrays[1].asnumpy(), [[0.8]], rtol=1e-6)
    before = arrays[0].tolist()
    assert gluon.utils.clip_global_norm(arrays, 9.0) == pytest.approx(1, rel=1e-6)
    assert arrays[0].tolist() == before
    assert gluon.utils.clip_global_norm(arrays, 9.0, check_isfinite=False).shape == (1,)
    with pytest.warns(UserWarning, match="nan or inf"):
        gluon.utils.clip_global_norm([nd.array([np.inf])], 1.0)
