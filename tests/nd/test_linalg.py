"""nd.linalg: values by NumPy and of MXNet 1.9.1, derivatives, and what is refused."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.nd import linalg

RNG = np.random.default_rng(7)
TRIANGLE = [[2.0, 7.0], [0.5, 2.0]]
WIDE = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]
TALL = [[1.0, 4.0], [2.0, 5.0], [3.0, 7.0]]
DEFINITE = [[4.0, 1.0], [1.0, 4.25]]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
SYMMETRIC = [[2.0, 1.0, 0.5], [1.0, 3.0, 0.7], [0.5, 0.7, 5.0]]


def double(x):
    return nd.array(np.array(x), dtype="float64")


def draw(*shape):
    return RNG.standard_normal(shape)


def definite(*shape):
    x = draw(*shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])


def close(got, expected, rtol=1e-12):
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=rtol, atol=rtol)


def gradients(function, *values):
    """Of the outputs against cos(k + number of the output), as the numbers of MXNet below were computed."""
    arrays = [double(x) for x in values]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        outputs = function(*arrays)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        heads = [double(np.cos(np.arange(y.size) + k).reshape(y.shape)) for k, y in enumerate(outputs)]
    autograd.backward(outputs, heads)
    return [x.grad for x in arrays]


# -------------------------------------------------------------------------------------------- MXNet's numbers

GRADIENTS = {
    "potrf": (
        linalg.potrf,
        [DEFINITE],
        [[[0.26054054452481445, -0.04216217809925776], [-0.04216217809925776, -0.24749812415011135]]],
    ),
    "potri": (
        linalg.potri,
        [TRIANGLE],
        [[[-0.2617451415837188, 0.0], [0.04698056633487532, 0.23963284098267365]]],
    ),
    "trsm, transposed": (
        lambda a, b: linalg.trsm(a, b, transpose=True),
        [TRIANGLE, WIDE],
        [
            [[0.028739204070705796, 0.0], [-0.9471209183776756, 1.5474184277137335]],
            [
                [0.5, 0.2701511529340699, -0.2080734182735712],
                [-0.6199962483002227, -0.39435959866532344, 0.19384944730000592],
            ],
        ],
    ),
    "trsm, upper": (
        lambda a, b: linalg.trsm(a, b, lower=False),
        [TRIANGLE, WIDE],
        [
            [[3.1068821887981515, -0.9471209183776756], [0.0, 4.625561412441178]],
            [
                [0.5, 0.2701511529340699, -0.2080734182735712],
                [-2.2449962483002226, -1.2723508457010506, 0.8700880566891124],
            ],
        ],
    ),
    "trsm, on the right": (
        lambda a, b: linalg.trsm(a, b, rightside=True, transpose=True),
        [TRIANGLE, TALL],
        [
            [[0.41151262573733816, 0.0], [0.14717403273576807, 0.16398598213782906]],
            [
                [0.43246221176648253, 0.2701511529340699],
                [-0.08432435619851553, -0.4949962483002227],
                [-0.36227958361470924, 0.14183109273161312],
            ],
        ],
    ),
    "trmm": (
        lambda a, b: linalg.trmm(a, b, alpha=2.0),
        [TRIANGLE, WIDE],
        [
            [[1.6643282041897045, 0.0], [-2.892586363875981, -10.485105584954516]],
            [
                [3.010007503399555, 1.5075656026089472, -1.3809251607253434],
                [-3.9599699864017817, -2.6145744834544478, 1.134648741852905],
            ],
        ],
    ),
    "syrk": (
        linalg.syrk,
        [WIDE],
        [
            [
                [2.4966218772839897, 4.620777346604987, 6.869088285246981],
                [-7.795784503482565, -9.65161402736246, -13.487428544443244],
            ]
        ],
    ),
    "gemm": (
        lambda a, b, c: linalg.gemm(a, b, c, alpha=2.0, beta=3.0),
        [TRIANGLE, WIDE, WIDE],
        [
            [[1.6643282041897045, 7.576967347021405], [-2.892586363875981, -10.485105584954516]],
            [
                [3.010007503399555, 1.5075656026089472, -1.3809251607253434],
                [10.04003001359822, 4.9496577986995085, -4.691406969807089],
            ],
            [
                [3.0, 1.6209069176044193, -1.2484405096414273],
                [-2.9699774898013365, -1.960930862590836, 0.8509865563896788],
            ],
        ],
    ),
    "inverse": (
        linalg.inverse,
        [TRIANGLE],
        [[[26.452236734833523, -8.188660043744882], [-98.68048237502617, 30.43222172803441]]],
    ),
    "det": (linalg.det, [TRIANGLE], [[[2.0, -0.5], [-7.0, 2.0]]]),
    "slogdet": (
        linalg.slogdet,
        [TRIANGLE],
        [[[2.16120922347256, -0.54030230586814], [-7.56423228215396, 2.16120922347256]]],
    ),
    "det, singular": (linalg.det, [SINGULAR], [np.zeros((2, 2))]),
    "slogdet, singular": (linalg.slogdet, [SINGULAR], [np.zeros((2, 2))]),
    "sumlogdiag": (linalg.sumlogdiag, [TRIANGLE], [[[0.5, 0.0], [0.0, 0.5]]]),
    "gelqf": (
        linalg.gelqf,
        [WIDE],
        [
            [
                [1.5079967834843047, 0.3053835572684063, -1.3801300039545452],
                [-0.2989688034623907, 0.24644645623701533, 1.1700962095813976],
            ]
        ],
    ),
    "syevd": (
        linalg.syevd,
        [SYMMETRIC],
        [
            [
                [-0.006930051885496881, -0.5423837561587133, 0.1533549241821013],
                [-0.5423837561587133, 0.26231954176355554, -0.12971822687730875],
                [0.1533549241821013, -0.12971822687730875, -1.1212265171575064],
            ]
        ],
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_mxnet(name):
    function, values, expected = GRADIENTS[name]
    for got, value in zip(gradients(function, *values), expected, strict=True):
        close(got, value, 1e-11)


def test_values_of_mxnet():
    q, l = linalg.gelqf(double(WIDE))  # noqa: E741
    close(
        q,
        [[-0.2672612419124243, -0.5345224838248488, -0.8017837257372732], [0.9486832980505139, 0, -0.316227766016838]],
    )
    close(l, [[-3.7416573867739413, 0], [-9.354143466934854, 1.5811388300841915]])
    u, w = linalg.syevd(double(SYMMETRIC))
    close(w, [1.3809674882345, 3.20745725632693, 5.411575255438569])
    close(u[0], [0.8540163990743435, -0.5199543889867211, -0.017419055242395058])
    close(u[2], [0.23783987067875437, 0.36043153898341873, 0.901954157161858])
    close(linalg.syevd(double(SINGULAR))[0][0], [0.8944271909999159, -0.4472135954999579])  # it rose to 5


# --------------------------------------------------------------------------------------- values and keywords


def test_the_flat_names():
    for name in linalg.FUNCTIONS:
        assert getattr(nd, f"linalg_{name}") is getattr(linalg, name)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_gemm(ta, tb):
    a, b = draw(2, 1, *((4, 3) if ta else (3, 4))), draw(2, 1, *((5, 4) if tb else (4, 5)))
    c = draw(2, 1, 3, 5)
    left, right = a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b
    got = linalg.gemm2(double(a), double(b), transpose_a=ta, transpose_b=tb, alpha=-0.5)
    close(got, -0.5 * left @ right)
    close(linalg.gemm(double(a), double(b), double(c), ta, tb, 2.0, 0.25), 2 * left @ right + 0.25 * c)


@pytest.mark.parametrize("axis", [0, 1, -4, -3, -2, 2])
def test_gemm_with_rows_along_another_axis(axis):
    a, b, c = draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 4, 6)
    back = [double(x.swapaxes(axis, -2)) for x in (a, b, c)]
    expected = (a @ b.swapaxes(-1, -2)).swapaxes(axis, -2)
    close(linalg.gemm2(*back[:2], transpose_b=True, axis=axis), expected)
    close(linalg.gemm(*back, transpose_b=True, axis=axis), expected + c.swapaxes(axis, -2))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("flipped", [True, False])
def test_triangular_products_and_solves_read_one_triangle(lower, right, flipped):
    a = draw(2, 2, 4, 4) + 3 * np.eye(4)
    b = draw(2, 2, *((3, 4) if right else (4, 3)))
    matrix = np.tril(a) if lower else np.triu(a)
    matrix = matrix.swapaxes(-1, -2) if flipped else matrix
    a[~(np.tril(np.ones_like(a)) if lower else np.triu(np.ones_like(a))).astype(bool)] = np.nan
    keywords = {"transpose": flipped, "rightside": right, "lower": lower, "alpha": 0.5}
    close(linalg.trmm(double(a), double(b), **keywords), 0.5 * (b @ matrix if right else matrix @ b))
    solution = linalg.trsm(double(a), double(b), **keywords).asnumpy()
    np.testing.assert_allclose(2 * (solution @ matrix if right else matrix @ solution), b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factorizations(dtype):
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    a, x = definite(2, 3, 5, 5), draw(2, 3, 4, 6)
    array = nd.array(a, dtype=dtype)
    lower, upper = linalg.potrf(array), linalg.potrf(array, lower=False)
    assert lower.dtype is upper.dtype is np.dtype(dtype).type
    close(lower, np.linalg.cholesky(a), tolerance)
    close(upper, np.linalg.cholesky(a).swapaxes(-1, -2), tolerance)
    close(linalg.potri(lower), np.linalg.inv(a), 10 * tolerance)
    close(linalg.potri(upper, lower=False), np.linalg.inv(a), 10 * tolerance)
    close(2 * linalg.sumlogdiag(lower), np.linalg.slogdet(a)[1], tolerance)
    close(linalg.inverse(array), np.linalg.inv(a), 10 * tolerance)
    sign, logabs = linalg.slogdet(array)
    close(sign, np.ones((2, 3)))
    close(logabs, np.linalg.slogdet(a)[1], tolerance)
    np.testing.assert_allclose(linalg.det(array).asnumpy(), np.linalg.det(a), rtol=tolerance)
    q, l = linalg.gelqf(nd.array(x, dtype=dtype))  # noqa: E741
    assert (l.shape, q.shape) == ((2, 3, 4, 4), (2, 3, 4, 6))
    close(nd.linalg.gemm2(q, q, transpose_b=True), np.broadcast_to(np.eye(4), (2, 3, 4, 4)), tolerance)
    close(nd.linalg.gemm2(l, q), x, tolerance)
    assert (np.triu(l.asnumpy(), 1) == 0).all()
    u, w = linalg.syevd(array)
    close(w, np.linalg.eigvalsh(a), 10 * tolerance)
    close(linalg.gemm2(u, u, transpose_b=True), np.broadcast_to(np.eye(5), a.shape), tolerance)
    close(linalg.gemm2(u * w.expand_dims(-1), u, transpose_a=True), a, 10 * tolerance)


def test_a_single_matrix_gives_a_shape_of_one():
    a = double(TRIANGLE)
    assert linalg.det(a).shape == linalg.sumlogdiag(a).shape == (1,)
    assert [x.shape for x in linalg.slogdet(a)] == [(1,), (1,)]
    close(linalg.det(a), [0.5])


def test_singular_matrices():
    a = double([SINGULAR, DEFINITE])
    assert linalg.det(a).asnumpy().tolist() == [0, 16]
    sign, logabs = linalg.slogdet(a)
    assert sign.asnumpy().tolist() == [0, 1]
    assert logabs.asnumpy()[0] == -np.inf
    assert np.isposinf(linalg.trsm(double([[0.0]]), double([[1.0]])).asnumpy()).all()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_diagonals_and_triangles(n):
    x = draw(2, 3, n, n)
    for k in range(1 - n, n):
        line = np.diagonal(x, k, -2, -1)
        got = linalg.extractdiag(double(x), offset=k)
        close(got, line)
        close(linalg.makediag(got, offset=k), np.triu(np.tril(x, k), k))
        for lower in (True, False):
            below = k < 0 or (k == 0 and lower)
            rows, columns = np.tril_indices(n, k) if below else np.triu_indices(n, k)
            packed = linalg.extracttrian(double(x), offset=k, lower=lower)
            close(packed, x[..., rows, columns])
            close(linalg.maketrian(packed, offset=k, lower=lower), np.tril(x, k) if below else np.triu(x, k))


def test_sizes_of_zero():
    for shape in ((0, 2, 2), (2, 0, 0)):
        empty = nd.zeros(shape)
        for name in ("potrf", "potri", "inverse", "syrk"):
            assert getattr(linalg, name)(empty).shape == shape
        assert linalg.trsm(empty, empty).shape == linalg.trmm(empty, empty).shape == shape
        assert [x.shape for x in linalg.gelqf(empty)] == [shape, shape]
        assert [x.shape for x in linalg.syevd(empty)] == [shape, shape[:-1]]
        assert linalg.det(empty).asnumpy().tolist() == [1] * shape[0]
        assert [x.asnumpy().tolist() for x in linalg.slogdet(empty)] == [[1] * shape[0], [0] * shape[0]]


def test_half_precision_and_mixed_dtypes():
    half = nd.array(DEFINITE, dtype="float16")
    assert linalg.potrf(half).asnumpy().tolist() == [[2, 0], [0.5, 2]]
    assert linalg.potrf(half).dtype is linalg.potri(half).dtype is np.float16
    assert linalg.gemm2(nd.array(TRIANGLE), double(TRIANGLE)).dtype is np.float64


def test_out():
    out = nd.zeros((2, 2))
    assert linalg.potrf(nd.array(DEFINITE), out=out) is out
    assert out.asnumpy().tolist() == [[2, 0], [0.5, 2]]
    pair = [nd.zeros((3, 3)), nd.zeros(3)]
    linalg.syevd(nd.array(SYMMETRIC), out=pair)
    close(pair[1], np.linalg.eigvalsh(SYMMETRIC), 1e-5)


def test_khatri_rao():
    a, b, c = draw(2, 3), draw(4, 3), draw(1, 3)
    arrays = [double(x) for x in (a, b, c)]
    for x in arrays:
        x.attach_grad()
    expected = np.einsum("ik,jk,lk->ijlk", a, b, c).reshape(8, 3)
    head = draw(8, 3)
    with autograd.record():
        y = nd.khatri_rao(*arrays)
    close(y, expected)
    y.backward(double(head))
    cube = head.reshape(2, 4, 1, 3)
    close(arrays[0].grad, np.einsum("ijlk,jk,lk->ik", cube, b, c))
    close(arrays[1].grad, np.einsum("ijlk,ik,lk->jk", cube, a, c))
    close(nd.khatri_rao(double(a)), a)
    known = nd.khatri_rao(nd.array([[1, -1], [2, -3]]), nd.array([[1, 4], [2, 5], [3, 6]]))  # MXNet's documentation
    assert known.asnumpy().tolist() == [[1, -4], [2, -5], [3, -6], [2, -12], [4, -15], [6, -18]]


# ------------------------------------------------------------------------------------------- what is refused


def test_what_cannot_be_factored_is_named_and_nothing_is_written():
    batch = np.stack([np.eye(2), np.eye(2), SINGULAR, np.eye(2)])
    out = nd.full((4, 2, 2), 7.0)
    for function, name in ((linalg.potrf, "potrf"), (linalg.inverse, "inverse")):
        with pytest.raises(mx.MXNetError, match=f"{name}: matrix 2 of the batch is (not positive definite|singular)"):
            function(nd.array(batch), out=out)
        assert (out.asnumpy() == 7).all()
    with pytest.raises(mx.MXNetError, match="potri: matrix 0 of the batch is singular"):
        linalg.potri(nd.array([[0.0, 0], [1, 1]]))
    with pytest.raises(mx.MXNetError, match="potrf: matrix 300 of the batch"):
        linalg.potrf(nd.array(np.where(np.arange(400)[:, None, None] == 300, -1.0, 1.0)))
    with pytest.raises(mx.MXNetError, match="syevd: found no eigenvalues of matrix 1 of"):
        linalg.syevd(nd.array([np.eye(3), np.full((3, 3), np.nan)]))
    with pytest.raises(mx.MXNetError, match="potrf: matrix 0 of the batch"):
        linalg.potrf(nd.array([[np.nan]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.potrf(nd.ones((2, 3))), r"potrf: takes square matrices; the last two axes of \(2, 3\)"),
        (lambda: linalg.det(nd.ones(3)), r"det: takes matrices, in the last two axes; the array has shape \(3,\)"),
        (lambda: linalg.inverse(nd.ones((2, 2), dtype="int32")), "inverse: takes floats, not int32"),
        (lambda: linalg.gelqf(nd.ones((3, 2))), "gelqf: takes matrices with no more rows than columns, not 3 by 2"),
        (lambda: linalg.trsm(nd.ones((2, 2)), nd.ones((3, 2))), r"trsm: .*must have 2 rows"),
        (lambda: linalg.trsm(nd.ones((2, 2)), nd.ones((2, 3)), rightside=True), r"trsm: .*must have 2 columns"),
        (lambda: linalg.trsm(nd.ones((1, 2, 2)), nd.ones((2, 2, 2))), "trsm: .*axes before"),
        (lambda: linalg.trmm(nd.ones((2, 3)), nd.ones((3, 2))), "trmm: takes square"),
        (lambda: linalg.gemm2(nd.ones((2, 2)), nd.ones((3, 2))), "cannot multiply"),
        (
            lambda: linalg.gemm(nd.ones((2, 2)), nd.ones((2, 3)), nd.ones((1, 3))),
            r"gemm: the product has shape \(2, 3\)",
        ),
        (lambda: linalg.gemm2(nd.ones((2, 2)), nd.ones((2, 2)), axis=-1), "gemm2: axis -1 cannot be that of the rows"),
        (lambda: linalg.extractdiag(nd.ones((2, 2)), offset=2), "extractdiag: .*no diagonal 2"),
        (lambda: linalg.extracttrian(nd.ones((2, 2)), offset=-2), "extracttrian: .*no diagonal -2"),
        (lambda: linalg.maketrian(nd.ones(2)), "maketrian: 2 elements make no triangle"),
        (lambda: linalg.makediag(nd.array(1.0).sum().reshape(())), "makediag"),
        (lambda: nd.khatri_rao(), "khatri_rao: takes at least one"),
        (lambda: nd.khatri_rao(nd.ones((2, 2)), nd.ones((2, 3))), r"khatri_rao: .*\(2, 2\), \(2, 3\)"),
    ],
)
def test_shapes_and_dtypes_that_do_not_fit(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call()


def test_what_is_no_array_or_keyword():
    for name in ("potrf", "inverse", "sumlogdiag", "gelqf", "makediag", "extracttrian", "syrk"):
        with pytest.raises(TypeError, match=f"{name}: takes an NDArray, not list"):
            getattr(linalg, name)([[1.0]])
    with pytest.raises(TypeError, match="keyword"):
        linalg.potrf(nd.ones((2, 2)), upper=True)
    with pytest.raises(AttributeError, match=r"nd\.linalg\.gesvd is not in numbagrad yet"):
        linalg.gesvd  # noqa: B018


# ------------------------------------------------------------------------------------- third order, and captured


def third_derivative(function, values, direction):
    """The third derivative of ``t -> function(values + t direction)`` at 0 by the tape, function giving one number."""
    t = double([0.0])
    t.attach_grad()
    with autograd.record():
        y = function(double(values) + t.reshape((1, 1)) * double(direction)).sum()
        for _ in range(2):
            y = autograd.grad(y, t, create_graph=True)
            y = y[0] if isinstance(y, list) else y
    y.backward()
    return t.grad.asscalar()


def polynomial_third(function, step=0.02):
    """The third derivative at 0 by a polynomial through nine points."""
    places = step * np.arange(-4, 5)
    return 6 * np.polyfit(places, [function(t) for t in places], 8)[-4]


@pytest.mark.parametrize(
    ("ours", "numpy"),
    [
        (linalg.det, np.linalg.det),
        (lambda a: linalg.inverse(a) ** 2, lambda a: np.linalg.inv(a) ** 2),
        (lambda a: linalg.potrf(a) ** 2 * linalg.potrf(a), lambda a: np.linalg.cholesky(a) ** 3),
        (
            lambda a: linalg.trsm(a, a**2, transpose=True, alpha=0.5),
            lambda a: 0.5 * np.linalg.solve(np.tril(a).T, a**2),
        ),
        (lambda a: linalg.slogdet(a)[1] ** 2, lambda a: np.linalg.slogdet(a)[1] ** 2),
        (lambda a: linalg.syevd(a)[1] ** 3, lambda a: np.linalg.eigvalsh(a) ** 3),
        (lambda a: linalg.gelqf(a)[1] ** 3, lambda a: np.linalg.qr(a.T)[1] ** 3),
        (lambda a: linalg.potri(a) ** 2, lambda a: np.linalg.inv(np.tril(a) @ np.tril(a).T) ** 2),
    ],
    ids="det inverse potrf trsm slogdet syevd gelqf potri".split(),
)
def test_third_order(ours, numpy):
    a = np.array([[3.0, 0.4, -0.3], [0.4, 2.0, 0.5], [-0.3, 0.5, 4.0]])
    direction = np.array([[0.5, 0.3, 0.2], [0.3, -0.4, 0.6], [0.2, 0.6, 0.7]])
    expected = polynomial_third(lambda t: numpy(a + t * direction).sum())
    assert abs(expected) > 1e-3
    assert third_derivative(ours, a, direction) == pytest.approx(expected, rel=1e-5)


def test_captured():
    a, b = nd.array(definite(2, 3, 3)), nd.array(draw(2, 3, 2))
    a.attach_grad()

    def step(b):
        with autograd.record():
            factor = linalg.potrf(a)
            z = linalg.trsm(factor, b)
            _, w = linalg.syevd(a)
            y = (z * z).sum() + 2 * linalg.sumlogdiag(factor).sum() + linalg.det(a).sum() + (w * w).sum()
            y = y + (linalg.maketrian(linalg.extracttrian(linalg.inverse(a))) ** 2).sum()
        y.backward()
        return y

    captured = mx.jit(step)
    for factor in (1.0, 1.5, 0.7):
        a[:] = nd.array(a.asnumpy() * factor)
        y, gradient = step(b).asscalar(), a.grad.asnumpy()
        assert captured(b).asscalar() == y
        np.testing.assert_array_equal(a.grad.asnumpy(), gradient)
    a[1, 0, 0] = -1
    with pytest.raises(mx.MXNetError, match=r"potrf: matrix 1 of the batch is not positive definite \(captured at"):
        captured(b)
