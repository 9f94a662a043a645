"""Expression graphs: interning, what cannot be traced, printed loops, derivatives."""

import math
import random

import mpmath
import numpy as np
import pytest

from numbagrad.native import scalar as s
from numbagrad.native.derivatives import RULES, gradients
from numbagrad.native.expr import (
    BINARY,
    UNARY,
    TracingError,
    constant,
    evaluate,
    inputs_of,
    node,
    order,
    substitute,
    symbol,
    trace,
)
from numbagrad.native.source import compile_loop, loop_source

x, y, z = symbol(0), symbol(1), symbol(2)


# ----------------------------------------------------------------------------------------------------- graphs


def test_equal_expressions_are_one_object():
    assert symbol(0) is x
    assert s.tanh(x * y + 1) is s.tanh(x * y + 1)
    assert x + y is not y + x
    assert constant(np.float32(0.5)) is constant(0.5)
    assert constant(np.float64(2)) is constant(2.0)
    assert constant(True) is constant(1)


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (0.0, -0.0), (2, 3), (float("inf"), float("-inf"))])
def test_different_constants_are_different(a, b):
    assert constant(a) is not constant(b)


def test_what_is_simplified_and_what_is_not():
    assert x * 1 is x
    assert 1.0 * x is x
    negative = -x
    assert -negative is x
    assert +x is x
    assert x**2 is x * x
    assert (x * 0).op == "mul"  # 0 * inf is NaN
    assert (x + 0).op == "add"  # -0.0 + 0.0 is 0.0


def test_repr_and_order_and_inputs():
    graph = s.exp(x * 2) + x * 2
    assert repr(graph) == "add(exp(mul(x0, 2)), mul(x0, 2))"
    assert [each.op for each in order(graph)] == ["input", "const", "mul", "exp", "add"]
    assert inputs_of(graph, z) == {0, 2}


def test_substitute_and_evaluate():
    graph = s.exp(x) * s.exp(x) + y
    assert substitute(graph, s.exp(x), z) is z * z + y
    assert substitute(graph, graph, x) is x
    assert substitute(graph, s.sin(x), z) is graph
    operations = {"mul": lambda a, b: a * b, "add": lambda a, b: a + b, "exp": math.exp}
    assert evaluate(graph, {0: 0.0, 1: 2.5}, operations) == 3.5


def test_a_deep_graph_needs_no_recursion():
    graph = trace(lambda x: sum((x * k for k in range(2, 5002)), x), 1)
    assert len(order(graph)) == 1 + 3 * 5000
    assert gradients(graph, symbol(2), [x])[0] is not None


# ---------------------------------------------------------------------------------------------------- tracing


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x > 0 else -x,
        lambda x: max(x, 0),
        lambda x: x > 0 and x < 1,
        lambda x: 0 < x < 1,
        lambda x: not x,
        lambda x: [v for v in (1, x) if v],
    ],
)
def test_branching_is_refused_with_advice(function):
    with pytest.raises(TracingError, match="where"):
        trace(function, 1)


@pytest.mark.parametrize(
    "function",
    [math.exp, float, int, np.exp, lambda x: np.maximum(x, 0), lambda x: np.asarray(x), lambda x: range(3)[x]],
)
def test_math_and_numpy_are_refused_with_advice(function):
    with pytest.raises(TracingError, match="numbagrad's scalar functions"):
        trace(function, 1)


@pytest.mark.parametrize("other", ["a", None, np.ones(2), [1], 1j])
def test_other_objects_are_refused(other):
    with pytest.raises(TracingError, match=type(other).__name__):
        trace(lambda x: x + other, 1)


def test_errors_of_the_function_itself_pass():
    with pytest.raises(TypeError, match="argument"):
        trace(lambda a, b: a, 1)
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: x + 1 / 0, 1)


def test_what_a_function_may_return():
    assert trace(lambda x: 3, 1) is constant(3)
    assert trace(lambda x: x, 1) is x
    assert repr(trace(lambda x: np.float64(2) * x, 1)) == "mul(2.0, x0)"
    for bad in (lambda x: None, lambda x: (x, x)):
        with pytest.raises(TracingError, match="one expression"):
            trace(bad, 1)
    with pytest.raises(TracingError, match="where takes 3"):
        node("where", x, y)


# ---------------------------------------------------------------------------------------------- printed source


def test_source_of_a_flat_loop():
    assert loop_source([s.where(x > 0, x, 0.5 * x)], "float32", "s", ["float32"]) == (
        "import numpy as np\n\nfrom numbagrad.native.compiler import njit\n\n\n@njit\n"
        "def loop(n, x0, o0):\n"
        "    for i in range(n):\n"
        "        a0 = x0[i]\n"
        "        t0 = a0 > np.float32(0.0)\n"
        "        t1 = np.float32(0.5) * a0\n"
        "        t2 = a0 if t0 else t1\n"
        "        o0[i] = t2\n"
        "    return 0\n"
    )


def test_source_of_rows_columns_numbers_and_in_place():
    text = loop_source([x * y + z], "float64", "Src", ["float64"])
    assert "def loop(rows, columns, x0, x1, x2):" in text
    assert "q0 = piece(x0, i * columns, columns)" in text
    assert "a1 = x1[j]" in text
    assert "a2 = x2[i]" in text
    text = loop_source([y * 2, y], "float32", "-k", ["float32"] * 2)
    assert "def loop(n, x1, o0, o1):" in text
    assert "a1 = np.float32(x1)" in text


def test_common_terms_are_computed_once_and_texts_are_the_same_each_time():
    graph = s.exp(x) + s.exp(x) * s.exp(x)
    text = loop_source([graph, s.exp(x)], "float64", "s", ["float64"] * 2)
    assert text.count("exp_float64(") == 1
    assert text == loop_source([graph, s.exp(x)], "float64", "s", ["float64"] * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_literal_is_of_the_dtype(dtype):
    text = loop_source([s.where(x < math.inf, 0.1 * x, -math.inf) + math.nan], dtype, "s", [dtype])
    assert f"np.{dtype}(np.inf)" in text
    assert f"np.{dtype}(-np.inf)" in text
    assert f"np.{dtype}(np.nan)" in text
    assert f"np.{dtype}(0.1) * a0" in text


def test_patterns_compute_what_numpy_does():
    rows, columns = 2, 3
    graph = x * y - z * 2.5
    a = np.arange(6.0)
    row, column, one = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([4.0])
    for pattern, p, q, expected in [
        ("src", row, column, a.reshape(2, 3) * row - column[:, None] * 2.5),
        ("s0k", one, 3, a.reshape(2, 3) * 4 - 7.5),
    ]:
        function, roles = compile_loop("t", [graph], "float64", pattern, ["float64"])
        out = np.empty(6)
        sizes = (rows, columns) if "r" in pattern else (6,)
        assert function(*sizes, a, p, q, out) == 0
        np.testing.assert_array_equal(out, expected.reshape(-1))
        kinds = ["size"] * len(sizes) + ["in", "in", "scalar" if "k" in pattern else "in", "out"]
        assert list(roles) == kinds


def test_patterns_over_planes_compute_what_numpy_does():
    planes, rows, columns = 2, 3, 4
    graph = x * y - z
    a = np.arange(24.0).reshape(2, 3, 4)
    for pattern, second, third in [
        ("sme", (1, 3, 1), (2, 1, 4)),
        ("spq", (2, 1, 1), (1, 3, 4)),
        ("scm", (2, 3, 1), (1, 3, 1)),
        ("qpr", (2, 1, 1), (1, 1, 4)),
    ]:
        first = a[:1] if pattern[0] == "q" else a
        p, q = a.ravel()[: math.prod(second)] + 2, a.ravel()[: math.prod(third)] * 0.5
        function, roles = compile_loop("t", [graph], "float64", pattern, ["float64"])
        out = np.empty(24)
        assert function(planes, rows, columns, first.ravel(), p, q, out) == 0
        np.testing.assert_array_equal(out.reshape(a.shape), first * p.reshape(second) - q.reshape(third))
        assert roles == ("size", "size", "size", "in", "in", "in", "out")


def test_two_outputs_one_of_them_in_place_one_bool():
    function, roles = compile_loop("t", [x + y, x > y], "float32", "Ss", ["float32", "bool"])
    a, b, out = np.array([1, 5], np.float32), np.array([3, 2], np.float32), np.empty(2, np.bool_)
    function(2, a, b, out)
    assert a.tolist() == [4.0, 7.0]
    assert out.tolist() == [False, True]
    assert roles == ("size", "inout", "in", "out")


def test_small_ints_wrap_as_arrays_do():
    function, _ = compile_loop("t", [x * y + 1], "int32", "ss", ["int32"])
    a, b = np.array([2**30, 7], np.int32), np.array([4, -3], np.int32)
    out = np.empty(2, np.int32)
    function(2, a, b, out)
    assert out.tolist() == [1, -20]


# ------------------------------------------------------------------------------------------------- derivatives

_MP = {
    "neg": lambda a: -a,
    "abs": abs,
    "sign": mpmath.sign,
    "exp2": lambda a: mpmath.mpf(2) ** a,
    "log2": lambda a: mpmath.log(a, 2),
    "log1p": lambda a: mpmath.log(1 + a),
    "expm1": lambda a: mpmath.exp(a) - 1,
    "rsqrt": lambda a: 1 / mpmath.sqrt(a),
    "cbrt": mpmath.cbrt,
    "rcbrt": lambda a: 1 / mpmath.cbrt(a),
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "sigmoid": lambda a: 1 / (1 + mpmath.exp(-a)),
    "softplus": lambda a: mpmath.log(1 + mpmath.exp(a)),
    "gammaln": mpmath.loggamma,
    "digamma": mpmath.digamma,
    "trigamma": lambda a: mpmath.psi(1, a),
    "polygamma": lambda n, a: mpmath.psi(round(n), a),
    "trunc": lambda a: mpmath.mpf(int(a)),
    "rint": mpmath.nint,
    "round": mpmath.nint,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mul0": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: mpmath.floor(a / b),
    "mod": lambda a, b: a - b * mpmath.floor(a / b),
    "pow": lambda a, b: a**b,
    "where": lambda c, a, b: a if c else b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_not": lambda a: not a,
}
_MP.update({name: getattr(mpmath, name) for name in UNARY if name not in _MP})


@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_every_rule_is_the_derivative(op):
    """Against finite differences in 50 digits, at places where the function is smooth."""
    count = 2 if op in BINARY else 1
    at = {"arccosh": (1.7,), "erfinv": (0.3,), "arctanh": (0.3,), "mod": (5.3, 1.7), "polygamma": (2, 1.31)}.get(
        op, (0.37, 1.31)[:count]
    )
    inputs = [symbol(i) for i in range(count)]
    found = gradients(node(op, *inputs), symbol(9), inputs)
    with mpmath.workdps(50):
        point = [mpmath.mpf(v) for v in at]
        values = {**dict(enumerate(point)), 9: mpmath.mpf("1.25")}
        for i, expression in enumerate(found):
            step = mpmath.mpf(10) ** -20

            def moved(h, i=i):
                return mpmath.mpf(_MP[op](*[p + h * (k == i) for k, p in enumerate(point)]))

            expected = mpmath.mpf("1.25") * (moved(step) - moved(-step)) / (2 * step)
            got = mpmath.mpf(0) if expression is None else evaluate(expression, values, _MP)
            # constants such as log(2) are float64 numbers in the expressions
            assert abs(got - expected) <= 1e-15 * max(1, abs(expected)), (op, i)


def test_every_operation_has_a_rule_or_says_so(monkeypatch):
    assert set(RULES) == {*UNARY, *BINARY, "where"}
    monkeypatch.delitem(RULES, "tanh")
    with pytest.raises(NotImplementedError, match="tanh"):
        gradients(s.tanh(x), y, [x])


def test_gradients_of_shared_terms_add_up_and_absent_inputs_have_none():
    head = symbol(9)
    dx, dy, dz = gradients(x * x + s.sin(x) * y, head, [x, y, z])
    assert dz is None
    values = {0: mpmath.mpf("0.3"), 1: mpmath.mpf(2), 9: mpmath.mpf(1)}
    assert evaluate(dx, values, _MP) == pytest.approx(0.6 + math.cos(0.3) * 2, rel=1e-15)
    assert evaluate(dy, values, _MP) == pytest.approx(math.sin(0.3), rel=1e-15)
    assert gradients(x, head, [x])[0] is head
    assert gradients(x > y, head, [x, y]) == [None, None]


def _float(op):
    """The operation in float64, with infinities, as the printed loops do it."""

    def run(*args):
        with np.errstate(all="ignore"):
            a = [np.float64(v) for v in args]
            special = {
                "mul": lambda a, b: a * b,
                "mul0": lambda a, b: a * b if a != 0 else np.float64(0),
                "div": lambda a, b: a / b,
                "sub": lambda a, b: a - b,
                "add": lambda a, b: a + b,
                "neg": lambda a: -a,
                "pow": np.power,
                "log": np.log,
                "sqrt": np.sqrt,
                "eq": lambda a, b: a == b,
                "le": lambda a, b: a <= b,
                "gt": lambda a, b: a > b,
                "ge": lambda a, b: a >= b,
                "ne": lambda a, b: a != b,
                "logical_or": lambda a, b: bool(a) or bool(b),
                "where": lambda c, a, b: a if c else b,
            }
            return special[op](*a)

    return run


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x, y: s.where(x > 0, s.sqrt(x), 0), (0.0, 0.0), (0.0, None)),
        (lambda x, y: s.where(x > 0, s.log(x), y), (-1.0, 2.0), (0.0, 1.0)),
        (lambda x, y: s.where(x > 0, 1 / x, y), (0.0, 2.0), (0.0, 1.0)),
        (lambda x, y: s.maximum(x, y), (1.0, 1.0), (1.0, 0.0)),
        (lambda x, y: s.minimum(x, y), (1.0, 1.0), (1.0, 0.0)),
        (lambda x, y: s.power(x, y), (0.0, 0.0), (0.0, 0.0)),
        (lambda x, y: s.power(x, y), (0.0, 2.0), (0.0, 0.0)),
        (lambda x, y: s.power(x, y), (-2.0, 3.0), (12.0, math.nan)),
    ],
)
def test_derivatives_at_singular_places(function, at, expected):
    operations = {op: _float(op) for op in [*UNARY, *BINARY, "where"]}
    found = gradients(trace(function, 2), symbol(9), [x, y])
    for expression, right in zip(found, expected, strict=True):
        if right is None:
            assert expression is None
        else:
            got = evaluate(expression, {0: at[0], 1: at[1], 9: 1.0}, operations)
            np.testing.assert_equal(float(got), right)


def test_gradients_of_random_graphs_match_finite_differences():
    generator = random.Random(5)
    for _ in range(20):
        pool = [x, y, constant(0.7)]
        for _ in range(8):
            op = generator.choice(["add", "sub", "mul", "tanh", "exp", "sigmoid", "sin"])
            count = 2 if op in BINARY else 1
            pool.append(node(op, *[generator.choice(pool) for _ in range(count)]))
        root = s.tanh(pool[-1] + pool[-2])
        dx, dy = gradients(root, symbol(9), [x, y])
        with mpmath.workdps(60):
            at = {0: mpmath.mpf("0.31"), 1: mpmath.mpf("-0.47"), 9: mpmath.mpf(1)}
            step = mpmath.mpf(10) ** -20
            for i, expression in ((0, dx), (1, dy)):
                high, low = ({**at, i: at[i] + sign * step} for sign in (1, -1))
                expected = (evaluate(root, high, _MP) - evaluate(root, low, _MP)) / (2 * step)
                got = evaluate(expression, at, _MP) if expression is not None else mpmath.mpf(0)
                assert abs(got - expected) < mpmath.mpf(10) ** -30 * max(1, abs(expected))
