"""Elementwise chains as one loop: what joins, what must not, and bits as of separate loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbagrad import autograd, jit, nd
from numbagrad.capture import fusion
from numbagrad.native.cache import compilations

WITHOUT = ("drop_dead_rows", "fold_updates")


@pytest.fixture(autouse=True, scope="module")
def every_size():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "FUSED_FROM", 1)
        yield


def kernels(call):
    """The names of the kernels, in order."""
    return [row.name for row in [c.kernel for c in call._variants[-1].program.calls]]


def arrays(result):
    return [y.asnumpy() for y in (result if isinstance(result, (tuple, list)) else [result])]


def agrees(function, make, rounds=3):
    """The fused capture of `function`, after it gave the bits of eager calls and of a capture without the pass."""
    found, last = [], None
    for wrap in (lambda f: f, lambda f: jit(f, passes=WITHOUT), jit):
        given = make()
        last = wrap(function)
        one = []
        for k in range(rounds):
            one += arrays(last(*given)) + [x.asnumpy() for x in given]
            given[0][:] = given[0] * (1.5 - k)
        found.append(one)
    for eager, plain, fused in zip(*found, strict=True):
        np.testing.assert_array_equal(eager, plain)
        np.testing.assert_array_equal(eager, fused)
    return last


def two(shape=(4, 3), other=None):
    other = shape if other is None else other
    size, others = int(np.prod(shape)), int(np.prod(other))
    return lambda: [
        nd.array(np.cos(np.arange(size) * 1.3).reshape(shape)),
        nd.array(np.sin(np.arange(others) * 0.7 + 1).reshape(other)),
    ]


def test_a_chain_with_branches_is_one_loop_and_says_so():
    def f(x, w):
        y = x * w + 0.5
        return y * y - x * 3.0

    call = agrees(f, two())
    assert kernels(call) == ["fused[multiply add multiply multiply subtract]"]
    assert call._variants[-1].program.arena_bytes == 0  # no intermediate is stored
    source = call.source()
    assert "test_fusion.py" in source
    assert "t1 = t0 + " in source
    assert "fuse_elementwise: 5 rows, then 1" in call.report()


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 1), (1,), (1, 1)])
def test_rows_columns_and_single_elements(shape):
    call = agrees(lambda x, w: (x * w + 0.5) * w - x, two((4, 3), shape))
    assert len(kernels(call)) == 1


def test_forward_and_backward():
    def step(x, w):
        with autograd.record():
            y = (x * w - 0.25) * x
            loss = (y * y * 0.5).sum()
        loss.backward()
        return loss, w.grad + 0

    def make():
        x, w = two((5, 3), (3,))()
        w.attach_grad()
        return [x, w]

    names = kernels(agrees(step, make))
    assert sum(name.startswith("fused") for name in names) >= 2


def test_what_others_read_is_stored():
    def f(x, w):
        y = x + w
        z = y * 2.0
        return y, z - 1.0, y.sum()

    call = agrees(f, two())
    assert kernels(call) == ["fused[add multiply subtract]", "sum_"]


def test_a_sum_between_ends_a_chain():
    def f(x, w):
        y = x * w + 1.0
        total = y.sum()
        return (y - total) * y

    names = kernels(agrees(f, two()))
    assert [name.partition("[")[0] for name in names] == ["fused", "sum_", "fused"]


def test_writes_between_are_seen():
    scale = nd.array([2.0])
    state = nd.zeros((4, 3))

    def f(x, w):
        y = x * scale + 1.0
        state[:] = y
        z = y * state
        state[:] = x
        w += 1.0
        u = z + w * state
        x[:] = 0.5
        return u - x, y

    agrees(f, two())


def test_an_alias_that_is_passed_later():
    c = nd.array([1.0, 2.0, 3.0])

    def f(x):
        y = c * 2.0
        x[:] = 7.0
        return y + 1.0

    found = []
    for call in (f, jit(f)):
        c[:] = nd.array([1.0, 2.0, 3.0])
        found.append([call(each).tolist() for each in (nd.zeros((3,)), c.detach(), nd.zeros((3,)), c)])
    assert found[0] == found[1]


def test_other_dtypes_in_between():
    agrees(lambda x, w: nd.where(x > w, x * 2.0 + w, (x - w) * 0.5).astype("float64") * 3.0 + 1.0, two())


def test_the_same_chain_elsewhere_compiles_nothing():
    first = jit(lambda x, w: (x * w + 0.125) * 8.0 - w)
    first(*two()())
    count = len(compilations)
    second = jit(lambda a, b: nd.concat((b * a + 0.25) * 4.0 - a, a, dim=0))
    second(*two((6, 5))())
    second(*two((7, 5))())
    assert [each.name for each in compilations[count:] if "fused" in each.name] == []
    assert any(name.startswith("fused") for name in kernels(second))


def test_small_chains_stay_apart_by_default(monkeypatch):
    monkeypatch.setattr(fusion, "FUSED_FROM", 16)
    call = jit(lambda x: x * 2.0 + 1.0)
    for n, rows in ((15, 2), (16, 1), (15, 2)):
        call(nd.ones((n,)))
        assert call(nd.ones((n,))).tolist() == [3.0] * n
        assert call._variants[0 if n == 15 else 1].passes["fuse_elementwise"] == (2, rows)


def test_a_long_chain_is_cut():
    def f(x, w):
        for _ in range(60):
            x = x * w
        return x

    assert 3 <= len(kernels(agrees(f, two()))) <= 4


OPS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 0.5,
    lambda a, b: nd.maximum(a, b),
    lambda a, b: a * b.sum(),
    lambda a, b: a * b.mean(axis=0),
    lambda a, b: nd.dot(a, b, transpose_b=True).sum() + a,
]
STEPS = st.tuples(st.sampled_from(range(len(OPS) + 2)), st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=10)
@given(steps=st.lists(STEPS, min_size=3, max_size=9), results=st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_any_program_with_sums_products_and_writes_between(steps, results):
    def f(x, w):
        known = [x, w]
        for op, i, j in steps:
            a, b = known[i % len(known)], known[j % len(known)]
            if op < len(OPS):
                known.append(OPS[op](a, b))
            elif op == len(OPS):
                a[:] = b
            else:
                a += 1.0
        return [known[k % len(known)] + 0 for k in results]

    agrees(f, two())
