"""``x[key]`` and ``x[key] = value``: values against NumPy over many keys, gradients, views, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbagrad import autograd, nd
from numbagrad.errors import InPlaceError, MXNetError
from numbagrad.nd import NDArray

SHAPE = (3, 4, 5)
MASK = np.array([[True, False, True, True], [False] * 4, [True] * 4])
BASIC = [0, -1, np.int64(1), slice(None), slice(1, 3), slice(None, None, -2), slice(3, 0, -1), slice(5, 9), None, ...]
ADVANCED = [np.array([0, 2, -1]), [1, 0, 1], np.array([[0], [1]]), range(2), [True, False, True], MASK, "float array"]


def array(values, dtype="float32"):
    return nd.array(values, dtype=dtype)


def variable(values):
    result = array(values)
    result.attach_grad()
    return result


def ours(part):
    """A part of a NumPy key as we take it: index arrays and masks as NDArrays."""
    if isinstance(part, str):
        return array([1.9, 2.0])  # fractions are cut off
    if isinstance(part, np.ndarray):
        return array(part, bool if part.dtype == bool else "int64")
    return part


def theirs(part):
    return np.array([1, 2]) if isinstance(part, str) else part


def check_key(parts, write, as_ndarray):
    numpy_key = tuple(theirs(part) for part in parts)
    key = tuple((ours if as_ndarray or isinstance(part, str) else theirs)(part) for part in parts)
    source = np.arange(60, dtype="float32").reshape(SHAPE)
    try:
        expected = source[numpy_key]
    except IndexError:
        with pytest.raises(IndexError):
            array(source)[key]
        with pytest.raises(IndexError):
            array(source)[key] = 1
        return
    if expected.ndim == 0:
        expected = expected.reshape(1)
    got = array(source)[key]
    assert got.shape == expected.shape, parts
    np.testing.assert_array_equal(got.asnumpy(), expected, err_msg=str(parts))
    if not write:
        return
    values = np.random.default_rng(0).random(expected.shape).astype("float32")
    changed = source.copy()
    changed[numpy_key] = values.reshape(changed[numpy_key].shape)
    for value in (array(values), values, values.tolist()):
        if np.size(value) or not isinstance(value, list):
            x = array(source)
            x[key] = value
            np.testing.assert_array_equal(x.asnumpy(), changed, err_msg=str(parts))
    changed[numpy_key] = -3
    x = array(source)
    x[key] = -3
    np.testing.assert_array_equal(x.asnumpy(), changed, err_msg=str(parts))


def test_every_key_of_up_to_two_parts():
    for parts in itertools.chain(
        itertools.product(BASIC + ADVANCED, repeat=1), itertools.product(BASIC + ADVANCED, repeat=2)
    ):
        if sum(part is ... for part in parts) < 2:
            check_key(parts, True, True)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(BASIC + ADVANCED), min_size=3, max_size=4), st.booleans())
def test_keys_of_more_parts(parts, as_ndarray):
    if sum(part is ... for part in parts) < 2:
        check_key(tuple(parts), True, as_ndarray)


@given(st.data())
def test_slices(data):
    bound = st.one_of(st.none(), st.integers(-8, 8))
    step = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    parts = [slice(data.draw(bound), data.draw(bound), data.draw(step)) for _ in range(data.draw(st.integers(1, 3)))]
    check_key(tuple(parts), True, False)


def test_float16_is_moved_as_it_is():
    dtype = "float16"
    source = (np.arange(12) % 3).astype(dtype).reshape(3, 4)
    for key in (1, (slice(None), 1), np.array([2, 0]), (slice(None), np.array([3, 1])), source > 0):
        x = array(source, dtype)
        expected = source.copy()
        assert x[key].dtype == np.dtype(dtype).type
        np.testing.assert_array_equal(x[key].asnumpy(), expected[key])
        x[key] = 1
        expected[key] = 1
        np.testing.assert_array_equal(x.asnumpy(), expected)
        value = np.ones_like(source[key]) * 2
        x[key] = value
        expected[key] = value
        np.testing.assert_array_equal(x.asnumpy(), expected)


# --------------------------------------------------------------------------------------- conventions of MXNet


def test_a_single_element_has_shape_1():
    x = array(np.arange(24).reshape(2, 3, 4))
    for result, value in ((x[1, 2, 3], 23), (x[1, 2, 3, ...], 23), (x[array([1], "int64"), 0, 0], 12), (x[0, 0][2], 2)):
        assert result.shape == (1,)
        assert result.asscalar() == value
    assert x[1, 2, 3, None].shape == (1,)


def test_the_whole_array_is_itself():
    x = array([[1, 2]])
    assert x[:] is x
    assert x[()] is x
    assert x[...] is x
    zero_d = array(3)
    assert zero_d[()] is zero_d
    zero_d[:] = 4
    assert zero_d.asscalar() == 4
    zero_d[()] = 5
    assert zero_d.asscalar() == 5


def test_contiguous_regions_are_views():
    x = array(np.arange(24).reshape(2, 3, 4))
    for key in (1, slice(0, 1), (0, slice(1, 3)), (1, 2, 3), (slice(1, 2), 0), (None, 1), (0, 1, slice(1, 2))):
        view = x[key]
        view[:] = -1
        assert (x[key].asnumpy() == -1).all()
        x[key] = 7
        assert (view.asnumpy() == 7).all()
    for key in ((slice(None), 1), (slice(None), slice(0, 2)), slice(None, None, -1), array([0, 1]), [0]):
        copy = x[key]
        copy[:] = -5
        assert not (x.asnumpy() == -5).any()


def test_an_empty_range_is_empty():
    x = array([[1, 2], [3, 4]])
    assert x[1:0].shape == (0, 2)
    assert x[5:7].shape == (0, 2)
    assert x[:, 2:].shape == (2, 0)
    x[1:0] = 9
    x[np.array([], "int64")] = 9
    assert x.asnumpy().max() == 4


def test_numbers_and_lists_as_values():
    x = array([[1, 2], [3, 4]])
    x[0] = True
    x[1] = [5, 6.5]
    np.testing.assert_array_equal(x.asnumpy(), [[1, 1], [5, 6.5]])
    x[1, 1] = None
    assert np.isnan(x.asnumpy()[1, 1])
    x[:] = np.float64(2)
    x[:, 1] = [[[8, 9]]]
    np.testing.assert_array_equal(x.asnumpy(), [[2, 8], [2, 9]])
    whole = array([[1, 2]], "int32")
    whole[:] = 2.7
    np.testing.assert_array_equal(whole.asnumpy(), [[2, 2]])
    whole[:] = array([[1.9, -1.9]])
    np.testing.assert_array_equal(whole.asnumpy(), [[1, -1]])
    whole[:] = array([5])
    np.testing.assert_array_equal(whole.asnumpy(), [[5, 5]])


def test_of_several_writes_the_last_one_stays():
    x = array(np.zeros((3, 2)))
    x[array([1, 1, 0, 1])] = array([[1, 1], [2, 2], [3, 3], [4, 5]])
    np.testing.assert_array_equal(x.asnumpy(), [[3, 3], [4, 5], [0, 0]])


def test_source_and_target_may_share_memory():
    source = np.arange(6, dtype="float32")
    x = array(source)
    x[1:] = x[:-1]
    np.testing.assert_array_equal(x.asnumpy(), [0, 0, 1, 2, 3, 4])
    x = array(source)
    x[::-1] = x
    np.testing.assert_array_equal(x.asnumpy(), source[::-1])
    x = array(source)
    x[array([5, 4, 3, 2, 1, 0])] = x
    np.testing.assert_array_equal(x.asnumpy(), source[::-1])
    index = array([2, 0, 1], "int64")
    index[index] = index
    np.testing.assert_array_equal(index.asnumpy(), [0, 1, 2])


# ---------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (1.0, ValueError),
        ("a", ValueError),
        (True, ValueError),
        (np.float32(1), ValueError),
        ((0, 0, 0), IndexError),
        (2, IndexError),
        ((0, -4), IndexError),
        ((..., ...), IndexError),
        (slice(None, None, 0), ValueError),
        ((0, slice(None, None, 0)), ValueError),
        ([0, 2], IndexError),
        (np.array([-3]), IndexError),
        (([0, 1], [0, 1, 2]), IndexError),
        (([0, 1], [0, 3]), IndexError),
        ([True, False, True], IndexError),
        (np.ones((2, 2), bool), IndexError),
    ],
)
def test_bad_keys(key, error):
    values = np.arange(6).reshape(2, 3)
    x = array(values)
    with pytest.raises(error):
        x[key]
    for value in (1, np.ones(3)):
        with pytest.raises(error):
            x[key] = value
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (slice(None), np.ones((2, 2)), ValueError),
        (slice(None), [[1, 2]], ValueError),
        (0, [1, 2], ValueError),
        ([0, 1], np.ones((2, 2, 3)), ValueError),
        ((slice(None), 1), np.ones(3), ValueError),
        (0, "text", TypeError),
        (0, [[1], [2, 3]], TypeError),
        (0, object(), TypeError),
        (slice(None), {}, TypeError),
    ],
)
def test_bad_values(key, value, error):
    values = np.arange(6).reshape(2, 3)
    x = array(values)
    with pytest.raises(error):
        x[key] = value
    with pytest.raises(error):
        x[key] = array(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(x.asnumpy(), values)


def test_no_nan_in_an_int_array():
    x = array([1], "int32")
    with pytest.raises(ValueError, match="int32"):
        x[0] = None
    assert x.asscalar() == 1


# --------------------------------------------------------------------------------------------------- recording

GRADIENT_KEYS = [
    1,
    slice(0, 2),
    (slice(None), 1),
    (slice(None, None, -1), slice(3, None, -2)),
    (..., None, 2),
    (1, 2, 3),
    [0, 0, 2, 0],
    (slice(None), np.array([[1, 1], [0, 3]])),
    ([0, 0, 2], slice(None), [1, 1, 0]),
    (0, slice(1, 3), [2, 2]),
    MASK,
    (slice(None), [True, False, True, False]),
]


@pytest.mark.parametrize("key", GRADIENT_KEYS, ids=str)
def test_gradients_scatter_back_and_add(key):
    rng = np.random.default_rng(3)
    values = rng.normal(size=SHAPE)
    x = variable(values)
    weight = rng.normal(size=np.shape(values[key]) or (1,))
    expected = np.zeros(SHAPE)
    np.add.at(expected, key, weight.reshape(np.shape(values[key])))
    with autograd.record():
        y = x[key]
    y.backward(array(weight))
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)
    # sum of w * x[key]**3: first gradient 3 w x**2 scattered, its own gradient 6 w x scattered.
    with autograd.record():
        y = x[key] * x[key] * x[key] * array(weight)
        (first,) = autograd.grad(y, [x], create_graph=True)
        picked = first[key]
    np.testing.assert_allclose(first.asnumpy(), 3 * values**2 * expected, rtol=1e-5)
    picked.backward()
    times = np.zeros(SHAPE)
    np.add.at(times, key, 1.0)
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * values * expected * times, rtol=1e-5)


def test_views_record_only_while_recording():
    x = variable([1.0, 2.0])
    before = x[0]
    with autograd.record():
        y = x[1] * before
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 1])


def test_writes_that_would_break_the_graph_are_refused_and_write_nothing():
    leaf = variable([1.0, 2.0])
    plain = array([[0.0, 1.0], [2.0, 3.0]])
    message = r"Inplace operations \(\+=, -=, x\[:\]=, etc\) are not supported when recording with"
    with autograd.record():
        result = leaf * 2
        for target, key, value in (
            (leaf, 0, 5.0),
            (leaf, slice(None), 5.0),
            (leaf, slice(None), np.ones(2)),
            (leaf, [0], 5.0),
            (result, 0, 5.0),
            (result, slice(None), plain[0]),
            (plain, 1, leaf),
            (plain, (slice(None), 0), result),
            (plain, [0], leaf),
            (plain, plain > 0, leaf),
            (plain, 0, [leaf[0], leaf[1]]),
        ):
            before = target.asnumpy()
            with pytest.raises(InPlaceError, match=message) as caught:
                target[key] = value
            assert isinstance(caught.value, MXNetError)
            np.testing.assert_array_equal(target.asnumpy(), before)
        plain[0] = 7.0  # nothing on the tape takes part
    np.testing.assert_array_equal(plain.asnumpy()[0], [7, 7])
    leaf[0] = 5.0
    assert leaf.asnumpy()[0] == 5


def test_writing_a_whole_array_is_recorded():
    x = variable([1.0, 2.0])
    y = array([0.0, 0.0])
    wide = array(np.zeros((3, 2)))
    with autograd.record():
        y[:] = x
        wide[:] = x * y
        loss = wide * wide
    loss.backward()
    # loss = 3 sum x**4
    np.testing.assert_allclose(x.grad.asnumpy(), [12, 96])


def test_a_write_after_recording_is_noticed():
    x = variable([1.0, 2.0])
    for write in (lambda a: a.__setitem__(0, 3.0), lambda a: a.__setitem__((slice(None, None, 2)), [3.0])):
        c = array([3.0, 4.0])
        with autograd.record():
            y = x * c
        write(c)
        with pytest.raises(MXNetError, match="written"):
            y.backward()
    for key in ([0], array([1, 0]), array([True, False], bool)):
        c = array([3.0, 4.0])
        with autograd.record():
            y = x * c
        c[key] = 1.0
        with pytest.raises(MXNetError, match="written"):
            y.backward()


def test_comparisons_index_but_masks_select():
    x = array([[1, 2], [3, 4]])
    assert x[x[0] > 1].shape == (2, 2)  # a float array of 0 and 1: rows 0 and 1, as in MXNet
    np.testing.assert_array_equal(x[(x > 2).astype(bool)].asnumpy(), [3, 4])
    x[(x > 2).astype(bool)] = 0
    np.testing.assert_array_equal(x.asnumpy(), [[1, 2], [0, 0]])
    mask = array([True, False], bool)
    mask[mask] = False
    assert not mask.asnumpy().any()


def test_int64_masked_write_is_exact():
    x = array([2**53 + 1, 5], "int64")
    x[array([False, True], bool)] = 2**60 + 1
    np.testing.assert_array_equal(x.asnumpy(), [2**53 + 1, 2**60 + 1])


def test_indexing_a_class_of_results():
    assert type(array([1, 2])[0]) is NDArray
