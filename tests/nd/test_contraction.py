"""nd.einsum against NumPy's: every form of subscripts, both orders of products, derivatives, capture, errors."""

import sys

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.nd import contraction
from numbagrad.testing import check_gradients

CASES = [
    # one operand: transposes, sums, diagonals
    ("ij->ij", (2, 3)), ("ij->ji", (2, 3)), ("ji", (2, 3)), ("Ba", (2, 3)), ("ij->", (2, 3)), ("ijk->kj", (2, 3, 4)),
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->j", (3, 3, 2)), ("iji->ij", (3, 2, 3)), ("iii->i", (3, 3, 3)),
    ("ijij->ji", (2, 3, 2, 3)), ("...", (2, 3)), ("...i->i...", (2, 3, 4)), ("i...i", (3, 2, 3)), ("", ()),
    # matrix products with every transpose, batches in every place
    ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("ji,jk->ik", (3, 2), (3, 4)),
    ("ji,kj->ki", (3, 2), (4, 3)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("ibj,bkj->kib", (2, 5, 3), (5, 4, 3)),
    ("ijb,jkb->ikb", (2, 3, 5), (3, 4, 5)), ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ijk,kjl->il", (2, 3, 4), (4, 3, 5)), ("abcd,dcbe->ae", (2, 3, 2, 4), (4, 2, 3, 2)),
    ("ij,j", (2, 3), (3,)), ("i,ij", (2,), (2, 3)), ("i,i", (3,), (3,)), ("ij,ij->", (2, 3), (2, 3)),
    # no sum, sums of one operand alone
    ("i,j->ij", (2,), (3,)), ("i,j->ji", (2,), (3,)), ("i,i->i", (3,), (3,)), ("ij,ik->jki", (2, 3), (2, 4)),
    ("ij,kl->jl", (2, 3), (4, 5)), ("ij,ik->jk", (2, 3), (2, 4)), ("bi,bi->b", (4, 3), (4, 3)), (",ij", (), (2, 3)),
    ("iij,jk->ik", (2, 2, 3), (3, 4)), (" i j , j k -> i k ", (2, 3), (3, 4)),
    # ellipses and lengths of 1
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("a...b,b...->...a", (2, 5, 3), (3, 1, 5)),
    ("...,...", (2, 3), (3,)), ("...i,i", (2, 4, 3), (3,)), ("ij...,j...", (2, 3, 4), (3, 5, 4)),
    ("ij,jk->ik...", (2, 3), (3, 4)), ("ij,ij->ij", (1, 3), (2, 3)), ("ij,ij->", (1, 3), (2, 1)),
    ("ij,jk->ik", (2, 1), (3, 4)), ("ij,jk->ik", (2, 1), (1, 4)),
    # more of them
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ij,jk,ki", (2, 3), (3, 4), (4, 2)), ("i,i,i", (3,), (3,), (3,)),
    ("ij,jk,kl,lm->im", (2, 30), (30, 4), (4, 50), (50, 2)), ("ab,bc,ab->ac", (2, 3), (3, 2), (1, 3)),
    ("pi,qj,ijkl,rk,sl->pqrs", (2, 3), (3, 2), (3, 2, 2, 3), (2, 2), (3, 3)), ("a,b,c->cab", (2,), (1,), (3,)),
    # nothing to sum, or nothing at all
    ("ij,jk", (2, 0), (0, 2)), ("ij,jk", (0, 3), (3, 2)), ("ij->i", (2, 0)),
]  # fmt: skip


def draw(shapes):
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1:]}")
def test_values(case, optimize):
    text, *shapes = case
    arrays = draw(shapes)
    got = nd.einsum(text, *[nd.array(x, dtype="float64") for x in arrays], optimize=optimize)
    expected = np.atleast_1d(np.einsum(text, *arrays))
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-12, atol=1e-12)


def test_random_subscripts():
    rng = np.random.default_rng(11)
    lengths = dict(zip("abcde", (2, 3, 1, 2, 4), strict=True))
    for _ in range(150):
        terms = ["".join(rng.choice(list(lengths), rng.integers(0, 4))) for _ in range(rng.integers(1, 4))]
        known = sorted(set("".join(terms)))
        output = "".join(rng.permutation(known)[: rng.integers(0, len(known) + 1)])
        arrays = draw([tuple(lengths[letter] for letter in term) for term in terms])
        text = f"{','.join(terms)}->{output}"
        got = nd.einsum(text, *[nd.array(x, dtype="float64") for x in arrays]).asnumpy()
        np.testing.assert_allclose(got, np.atleast_1d(np.einsum(text, *arrays)), rtol=1e-11, atol=1e-11, err_msg=text)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("iij->ji", [(2, 2, 3)]),
        ("ibj,bkj->kib", [(2, 2, 3), (2, 2, 3)]),
        ("i...,...j->...j", [(2, 3), (1, 2)]),
        ("ij,jk,ki->", [(2, 3), (3, 2), (2, 2)]),
    ],
)
def test_derivatives_to_second_order(text, shapes):
    check_gradients(lambda *arrays: nd.einsum(text, *arrays), draw(shapes), order=2)


def test_the_same_array_twice():
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        y = nd.einsum("ij,ij->", x, x)
    y.backward()
    assert y.shape == (1,)
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * x.asnumpy())


def test_dtypes_and_copies():
    x = nd.array([[1, 2], [3, 4]], dtype="int32")
    assert nd.einsum("ij,jk", x, x).asnumpy().tolist() == [[7, 10], [15, 22]]
    assert nd.einsum("ij,jk", x, x).dtype is np.int32
    assert nd.einsum("ij,jk", x, nd.ones((2, 2))).dtype is np.float32
    for text in ("ij", "ij->ij", "..."):
        y = nd.einsum(text, x)
        y[:] = 0
        assert x.asnumpy().tolist() == [[1, 2], [3, 4]]
    out = nd.zeros((2, 2), dtype="int32")
    assert nd.einsum("ij->ji", x, out=out) is out
    assert out.asnumpy().tolist() == [[1, 3], [2, 4]]


def test_the_order_of_products(monkeypatch):
    """opt_einsum begins with the product that makes small matrices; without it that on the left comes first."""
    pytest.importorskip("opt_einsum")
    shapes = ((90, 90), (90, 90), (90, 1))

    def first(optimize):
        contraction.plan.cache_clear()
        return contraction.plan("ab,bc,cd->ad", shapes, optimize)[0].arguments

    assert first(True) == (1, 2)
    assert first(False) == (0, 1)
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    assert first(True) == (0, 1)
    contraction.plan.cache_clear()


def test_products_of_matrices_are_one_op():
    """Transposes are flags of the product."""
    for text in ("ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ji,kj->ik", "bij,bkj->bik", "bji,bkj->bik"):
        shape = (3,) * text.index(",")
        assert len(contraction.plan(text, (shape, shape), True)) == 1


def test_captured():
    x, w = nd.array(draw([(4, 3)])[0]), nd.array(draw([(3, 2)])[0])
    w.attach_grad()

    def step(x):
        with autograd.record():
            y = nd.einsum("bi,ij,bj->b", x, w, nd.einsum("bi,ij->bj", x, w)).sum()
        y.backward()
        return y

    captured = mx.jit(step)
    for _ in range(3):
        y, gradient = step(x).asscalar(), w.grad.asnumpy()
        assert captured(x).asscalar() == y
        np.testing.assert_array_equal(w.grad.asnumpy(), gradient)
        x *= 1.5


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "is for 2 operands, not 1"),
        ("ij", [(2, 3), (2, 3)], "is for 1 operands, not 2"),
        ("i", [(2, 3)], r"'i' in 'i' names 1 axes, operand 0 has shape \(2, 3\)"),
        ("ij,jkl...", [(2, 3), (3, 4)], r"names 3 axes, operand 1 has shape \(3, 4\)"),
        ("i..j", [(2, 3)], "'.' in 'i..j' is neither a letter"),
        ("...i...", [(2, 3)], "'.' in"),
        ("i1", [(2, 3)], "'1' in"),
        ("ij->i->", [(2, 3)], "'-' in"),
        ("ij->ii", [(2, 3)], "'i' is twice in the result"),
        ("ij->k", [(2, 3)], "'k' in the result of 'ij->k' is in no operand"),
        ("i...->i", [(2, 3)], "says nothing of the axes of the ellipsis"),
        ("ii", [(2, 3)], r"'i' in 'ii' is 2 and 3 in operand 0 of shape \(2, 3\)"),
        ("ii", [(1, 3)], "is 1 and 3"),
        ("ij,jk", [(2, 3), (4, 2)], r"'j' in 'ij,jk' is 4 in operand 1 of shape \(4, 2\), 3 before"),
        ("...i,...i", [(2, 3), (4, 3)], "is 4 in operand 1"),
    ],
)
def test_subscripts_that_do_not_fit(text, shapes, message):
    with pytest.raises(mx.MXNetError, match=f"einsum: .*{message}"):
        nd.einsum(text, *[nd.ones(shape) for shape in shapes])


def test_what_is_no_array():
    with pytest.raises(TypeError, match="einsum: takes an NDArray, not list"):
        nd.einsum("i,i", nd.ones(2), [1.0, 2.0])
    with pytest.raises(TypeError, match="einsum: subscripts are a str"):
        nd.einsum(nd.ones(2), nd.ones(2))
