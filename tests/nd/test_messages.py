"""What every function of ``nd`` says of a wrong call: its name and what was wrong; and everything stays as it was."""

import inspect
import re

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.base import MXNetError
from numbagrad.ops.random import stream
from tests.nd.calls import ELSEWHERE, FAMILIES, arrays, function

REFUSALS = (MXNetError, TypeError, ValueError, IndexError, AssertionError)
FOREIGN = re.compile(
    r"has no attribute|\b_flat\b|\b_shape\b|ufunc|[Nn]umba\b|not supported between|unsupported operand|not iterable|"
    r"cannot be interpreted|\b(int|float)\(\)|invalid literal|could not convert|unhashable|len\(\)|too many values"
)
"""What Python, NumPy and Numba say of our inside."""

AXES = "axis axes axis1 axis2 dim dim1 dim2 source destination lhs_axes rhs_axes".split()
CALLS = {name: call for family in FAMILIES.values() for name, call in family.items()}
SHAPES = ((7, 5, 3), (5,), (4, 7), ())


class Thing:
    """What no function takes."""


class Wrong:
    """A wrong call: made while recording, on arrays with gradients, into an array if it takes one."""

    def __init__(self, name, changes, star=None):
        self.name = name
        self.function = function(name)
        given = {**CALLS[name], **changes}
        self.star = [arrays(each) for each in (star or given.get("*", ()))]
        self.named = {key: arrays(value) for key, value in given.items() if key != "*"}
        self.arrays = [x for x in [*self.star, *self.named.values()] if isinstance(x, nd.NDArray)]
        for x in self.arrays:
            if x.dtype == np.float32 and not name.endswith(("_update", "phase1", "onehot_encode", "reset_arrays")):
                x.attach_grad()
                x.grad[:] = 7

    def picture(self):
        values = [
            (x.shape, x.asnumpy().tolist(), None if x.grad is None else x.grad.asnumpy().tolist()) for x in self.arrays
        ]
        return values, stream().tolist(), autograd.is_recording(), autograd.is_training()

    def message(self, *words, kind=REFUSALS):
        """What it says, which is ours and holds `words`; None where the call is not refused."""
        before = self.picture()
        with autograd.record():
            inside = autograd.is_recording(), autograd.is_training()
            try:
                self.function(*self.star, **self.named)
            except Exception as error:
                caught = error
            else:
                return None
            assert (autograd.is_recording(), autograd.is_training()) == inside
        assert self.picture() == before
        message = str(caught)
        assert isinstance(caught, kind), f"{self.name}: {caught!r}"
        names = {self.name.rpartition(".")[2], self.function.__name__}
        assert re.match(r"(\w+)(\(out=\): |: |\(\) )", message)[1] in names, f"{self.name}: {message}"
        assert not FOREIGN.search(message), f"{self.name}: {message}"
        for word in words:
            assert word in message, f"{self.name}: {word!r} is not in {message!r}"
        return message

    def refused(self, *words, kind=REFUSALS):
        message = self.message(*words, kind=kind)
        assert message is not None, f"{self.name} takes {self.star} {self.named}"
        return message


def wrongs(name, choose):
    """For each argument the wrong values that ``choose(parameter, value)`` gives: (parameter, wrong value, call)."""
    for key, value in CALLS[name].items():
        if key == "*":
            for k, one in enumerate(value):
                for wrong in choose(key, one):
                    yield key, wrong, Wrong(name, {}, (*value[:k], wrong, *value[k + 1 :]))
        elif isinstance(value, list) and isinstance(value[0], np.ndarray):
            for wrong in choose(key, value[0]):
                yield key, wrong, Wrong(name, {key: [*value[:-1], wrong]})
        else:
            for wrong in choose(key, value):
                yield key, wrong, Wrong(name, {key: wrong})


def test_every_function_has_its_call():
    called = {id(function(name)) for name in (*CALLS, *ELSEWHERE)}
    homes = {
        "": nd.FUNCTIONS,
        "random.": nd.random.__all__,
        "linalg.": nd.linalg.__all__,
        "contrib.": nd.contrib.__all__,
    }
    missing = [
        home + name for home, names in homes.items() for name in names if id(function(home + name)) not in called
    ]
    assert missing == []


walk = pytest.mark.parametrize("family", FAMILIES)


@walk
def test_the_calls_are_right(family):
    for name in FAMILIES[family]:
        assert Wrong(name, {}).message() is None


@walk
def test_keywords(family):
    for name, call in FAMILIES[family].items():
        Wrong(name, {"wrong_one": 1}).refused("keyword", "wrong_one", kind=TypeError)
        for key, parameter in inspect.signature(function(name)).parameters.items():
            if key in call and parameter.default is parameter.empty:
                left_out = Wrong(name, {})
                del left_out.named[key]
                left_out.refused("missing", key, kind=TypeError)


def parameter(call, key):
    """The parameter of that name; of ``*`` the one that takes the rest."""
    rules = inspect.signature(call.function).parameters
    return rules[key] if key in rules else next(each for each in rules.values() if each.kind is each.VAR_POSITIONAL)


@walk
def test_what_is_no_array(family):
    values = ([[1.0, 2.0]], "abc", Thing(), None)
    for name in FAMILIES[family]:
        for key, wrong, call in wrongs(name, lambda key, value: values if isinstance(value, np.ndarray) else ()):
            if wrong is not None or parameter(call, key).default is not None:
                message = call.refused(kind=TypeError)
                assert repr(wrong) in message or type(wrong).__name__ in message


FITS_ALL = """
    take.a take.indices one_hot.indices multi_all_finite.* multi_sum_sq.* reset_arrays.* broadcast_like.rhs
    reshape_like.lhs Embedding.data slice_like.data LinearRegressionOutput.data gather_nd.data
"""
"""Arguments that fit others of any shape, or of the one tried here."""


@walk
def test_shapes(family):
    for name, given in FAMILIES[family].items():
        values = [*given.values(), *given.get("*", ()), *given.get("arrays", ())]
        if sum(isinstance(value, np.ndarray) for value in values) < 2:
            continue
        wrong = np.full((4, 7), 0.5, "float32")
        for key, _, call in wrongs(
            name, lambda key, value, wrong=wrong: [wrong] if isinstance(value, np.ndarray) else []
        ):
            if f"{name}.{key}" not in FITS_ALL.split():
                call.refused(" before" if name == "einsum" else "(4, 7", kind=(MXNetError, ValueError))


@walk
def test_axes(family):
    for name in FAMILIES[family]:
        for key, wrong, call in wrongs(
            name,
            lambda key, value: (
                []
                if key not in AXES
                else [99, -99, "x", 1.5]
                if isinstance(value, int)
                else [(99,), (-99,), "x", (1.5,)]
            ),
        ):
            far = wrong in (99, -99, (99,), (-99,))
            kind = (MXNetError, ValueError) if far or "Sequence" in name else TypeError
            call.refused("ax" if far else key, str(wrong).strip("(,)"), kind=kind)


@walk
def test_dtypes(family):
    for name in FAMILIES[family]:
        for _, wrong, call in wrongs(name, lambda key, value: ["complex64", "nonsense"] if key == "dtype" else []):
            call.refused(wrong, "dtype", kind=TypeError)


@walk
def test_numbers(family):
    def values(key, value):
        return ["x", Thing(), (1, 2)] if isinstance(value, float) else []

    for name in FAMILIES[family]:
        for key, wrong, call in wrongs(name, values):
            words = () if name == "clip" else (key,)
            message = call.refused(*words, kind=TypeError)
            assert str(wrong) in message or type(wrong).__name__ in message


@walk
def test_whole_numbers(family):
    reals = """
        full.val negative_binomial.k negative_binomial_like.k random_negative_binomial.k
        ftml_update.t lamb_update_phase1.t
    """.split()

    def values(key, value):
        return ["x", 1.5] if isinstance(value, int) and not isinstance(value, bool) and key not in AXES else []

    for name in FAMILIES[family]:
        for key, wrong, call in wrongs(name, values):
            if f"{name.rpartition('.')[2]}.{key}" not in reals:
                call.refused(str(wrong) if key != "*" else "", kind=(TypeError, MXNetError, ValueError))


@walk
def test_choices(family):
    for name, given in FAMILIES[family].items():
        for key, wrong, call in wrongs(
            name, lambda key, value: ["nonsense"] if isinstance(value, str) and key not in ("dtype", "*") else []
        ):
            call.refused(key, given[key], repr(wrong), kind=MXNetError)


@walk
def test_out(family):
    for name in FAMILIES[family]:
        if "out" not in inspect.signature(function(name)).parameters or "out" in FAMILIES[family][name]:
            continue
        other = nd.ones((7, 5, 3))
        Wrong(name, {"out": other}).refused("out", kind=MXNetError)
        assert (other.asnumpy() == 1).all()
        Wrong(name, {"out": "x"}).refused("out", kind=(TypeError, MXNetError))


Z = np.zeros
DTYPES = "float32, float64, float16, uint8, int8, int32, int64, bool"
TEXTS = {
    "elementwise unary": {
        "shape": (
            "exp",
            {"out": Z(5)},
            "exp(out=): a result of shape (2, 3) cannot be written to an array of shape (5,)",
        ),
        "dtype": ("exp", {"data": "x"}, "exp: takes arrays and numbers, not str"),
        "keyword": ("exp", {"base": 2}, "exp: got an unexpected keyword argument 'base'"),
    },
    "elementwise binary": {
        "shape": ("add", {"rhs": Z((3, 2))}, "add: shapes (2, 3) and (3, 2) do not broadcast: 2 against 3 at axis -2"),
        "dtype": ("broadcast_mul", {"rhs": 2}, "broadcast_mul: takes two NDArrays, not NDArray and int"),
        "keyword": ("power", {"exp": 2}, "power: got an unexpected keyword argument 'exp'"),
    },
    "elementwise with parameters": {
        "shape": ("where", {"x": Z(5)}, "where: a condition of shape (2, 3) does not fit (5,) and (2, 3)"),
        "dtype": ("cast", {"dtype": "int16"}, f"cast: unsupported dtype int16; there are {DTYPES}"),
        "range": ("smooth_l1", {"scalar": "x"}, "smooth_l1: scalar must be a number, not 'x'"),
        "keyword": ("clip", {"a_maximum": 1}, "clip: got an unexpected keyword argument 'a_maximum'"),
    },
    "reductions": {
        "shape": (
            "max",
            {"data": Z((2, 0))},
            "max: an array of shape (2, 0) has no max over axes (1,): there are no elements",
        ),
        "dtype": ("norm", {"out_dtype": "object"}, f"norm: unsupported dtype object; there are {DTYPES}"),
        "axis": ("sum", {"axis": 2}, "sum: axis 2 is out of range for 2 dimensions"),
        "range": ("norm", {"ord": 3}, "norm: ord is 1 or 2, not 3"),
        "keyword": ("mean", {"dtype": "float64"}, "mean: got an unexpected keyword argument 'dtype'"),
    },
    "sorting": {
        "shape": ("argmax_channel", {"data": Z(3)}, "argmax_channel: axis 1 is out of range for 1 dimensions"),
        "dtype": ("argsort", {"dtype": "str"}, f"argsort: unsupported dtype <U0; there are {DTYPES}"),
        "axis": ("sort", {"axis": 1.5}, "sort: axis must be an int, not 1.5"),
        "range": ("topk", {"k": 4}, "topk: k is 4, but axis 1 of (2, 3) has 3 elements only"),
        "keyword": ("topk", {"is_ascending": 1}, "topk: got an unexpected keyword argument 'is_ascending'"),
    },
    "shaping": {
        "shape": ("reshape", {"shape": (4, 2)}, "reshape: cannot make (4, 2) of (2, 3): 8 elements against 6"),
        "dtype": ("tile", {"reps": (1, 2.5)}, "tile: reps must be an int or a sequence of ints, not (1, 2.5)"),
        "axis": ("expand_dims", {"axis": 4}, "expand_dims: axis 4 is out of range for 3 dimensions"),
        "range": ("split", {"num_outputs": 3}, "split: axis 1 of (2, 4) cannot be split into 3 equal parts"),
        "keyword": ("transpose", {"axis": 0}, "transpose: got an unexpected keyword argument 'axis'"),
    },
    "indexing": {
        "shape": (
            "pick",
            {"index": Z(5)},
            "pick: an index of shape (5,) does not fit (2, 3) along axis 1; it must be (2,) or (2, 1)",
        ),
        "dtype": ("one_hot", {"depth": 2.5}, "one_hot: depth must be an int, not 2.5"),
        "axis": ("take", {"axis": -3}, "take: axis -3 is out of range for 2 dimensions"),
        "range": (
            "gather_nd",
            {"indices": np.full((2, 1), 9.0)},
            "gather_nd: an index is out of the range of its axis, or the axis has length 0 (array of shape (2, 3))",
        ),
        "keyword": ("slice", {"stride": 2}, "slice: got an unexpected keyword argument 'stride'"),
    },
    "products": {
        "shape": (
            "dot",
            {"rhs": Z((2, 3))},
            "dot: cannot multiply (2, 3) by (2, 3): axis -1 of the first is 3, axis 0 of the second is 2",
        ),
        "dtype": ("dot", {"rhs": [1.0]}, "dot: takes an NDArray, not list"),
        "range": (
            "FullyConnected",
            {"num_hidden": 5},
            "FullyConnected: a weight of shape (4, 3) is not of shape (num_hidden, in) with num_hidden=5",
        ),
        "keyword": ("dot", {"transpose": 1}, "dot: got an unexpected keyword argument 'transpose'"),
    },
    "linalg": {
        "shape": ("linalg.potrf", {"A": Z((2, 3))}, "potrf: takes square matrices; the last two axes of (2, 3) differ"),
        "dtype": ("linalg.det", {"A": np.ones((2, 2), "int32")}, "det: takes floats, not int32; see astype"),
        "axis": ("linalg.gemm2", {"axis": 5}, "gemm2: axis 5 cannot be that of the rows in an array of shape (2, 3)"),
        "range": ("linalg.extractdiag", {"offset": 3}, "extractdiag: (2, 2) has no diagonal 3 along axes 0 and 1"),
        "keyword": ("linalg.syrk", {"lower": 1}, "syrk: got an unexpected keyword argument 'lower'"),
    },
    "softmax": {
        "shape": (
            "softmax_cross_entropy",
            {"label": np.zeros(3, "int32")},
            "softmax_cross_entropy: labels of shape (3,) do not fit predictions of shape (2, 3)",
        ),
        "dtype": (
            "softmax",
            {"data": np.ones((2, 3), "int32")},
            "softmax: takes floating-point data, not int32; cast it first",
        ),
        "axis": ("log_softmax", {"axis": 2}, "log_softmax: axis 2 is out of range for 2 dimensions"),
        "range": (
            "softmax_cross_entropy",
            {"label": np.int32([0, 3])},
            "softmax_cross_entropy: the label of example 1 is out of range: "
            "every label must be an integer in [0, classes)",
        ),
        "keyword": ("softmax", {"dim": 1}, "softmax: got an unexpected keyword argument 'dim'"),
    },
    "losses": {
        "shape": ("SVMOutput", {"label": Z(3)}, "SVMOutput: labels of shape (3,) do not fit data of shape (2, 3)"),
        "dtype": ("MakeLoss", {"data": 1.0}, "MakeLoss: takes an NDArray, not float"),
        "range": (
            "MakeLoss",
            {"normalization": "mean"},
            "MakeLoss: normalization must be one of batch, null, valid, not 'mean'",
        ),
        "keyword": ("SVMOutput", {"scale": 1}, "SVMOutput: got an unexpected keyword argument 'scale'"),
    },
    "layers": {
        "shape": (
            "BatchNorm",
            {"gamma": Z(5)},
            "BatchNorm: gamma of shape (5,) does not fit data of shape (2, 3): axis 1 has 3 elements",
        ),
        "dtype": (
            "BatchNorm",
            {"moving_mean": np.zeros(3, "int32")},
            "BatchNorm: moving_mean must be float32 or float64, not int32",
        ),
        "axis": ("LayerNorm", {"axis": 2}, "LayerNorm: axis 2 is out of range for 2 dimensions"),
        "range": ("Dropout", {"p": 1.5}, "Dropout: p must lie between 0 and 1, not 1.5"),
        "keyword": ("Activation", {"alpha": 1}, "Activation: got an unexpected keyword argument 'alpha'"),
    },
    "random": {
        "shape": ("random.uniform", {"shape": (2, -3)}, "uniform: a shape cannot have a negative length: (2, -3)"),
        "dtype": ("random.normal", {"dtype": "int32"}, "normal: dtype is float16, float32 or float64, not int32"),
        "range": ("random.normal", {"scale": -1.0}, "normal: loc must be finite, and scale finite and not negative"),
        "keyword": ("random_gamma", {"rate": 1}, "random_gamma: got an unexpected keyword argument 'rate'"),
    },
    "creation": {
        "shape": ("zeros", {"shape": (2, 1.5)}, "zeros: shape must be an int or a sequence of ints, not (2, 1.5)"),
        "dtype": ("array", {"dtype": "complex64"}, f"array: unsupported dtype complex64; there are {DTYPES}"),
        "range": ("arange", {"step": 0}, "arange: the step cannot be 0"),
        "keyword": ("full", {"value": 1}, "full: got an unexpected keyword argument 'value'"),
    },
    "updates": {
        "shape": ("sgd_update", {"grad": Z(4)}, "sgd_update: grad of shape (4,) does not fit a weight of shape (3,)"),
        "dtype": (
            "adam_update",
            {"weight": np.ones(3, "int32")},
            "adam_update: a weight is of a floating-point dtype, not int32",
        ),
        "range": ("sgd_update", {"lr": None}, "sgd_update: lr must be a number, not None"),
        "keyword": ("adam_update", {"beta3": 1}, "adam_update: got an unexpected keyword argument 'beta3'"),
    },
}
"""Family -> what is wrong -> function, arguments, the message. A kind that a family cannot get wrong is left out."""


@walk
def test_texts(family):
    for name, changes, text in TEXTS[family].values():
        assert Wrong(name, changes).message().replace("() got", ": got") == text
