"""One right call of every function in ``nd``, ``nd.random``, ``nd.linalg`` and ``nd.contrib``, family by family.

Arguments are given by name, ``*`` holding those without one; a NumPy array stands for an NDArray of its values.
"""

import itertools

import numpy as np

from numbagrad import nd
from numbagrad.nd import elementwise, linalg


def x(*shape, dtype="float32"):
    """Numbers between 0 and 1, as most functions take."""
    size = int(np.prod(shape))
    return (np.linspace(0.2, 0.8, size) if dtype[0] == "f" else np.arange(size) % 2).astype(dtype).reshape(shape)


def definite(n=2):
    """A positive definite matrix."""
    return np.eye(n, dtype="float32") * 2 + np.float32(0.5)


def _updates():
    """The steps of optimisers: a weight, a gradient, and as many states as there are before the rate."""
    for name, function in nd.FUNCTIONS.items():
        if name.endswith("_update"):
            states = itertools.takewhile(lambda p: p != "lr", function.__signature__.parameters)
            yield name, {**{state: x(3) for state in states}, "lr": 0.1, **({"t": 1} if "ftml" in name else {})}


_HEAD = {"data": x(2, 3), "label": x(2, dtype="int32")}
_SAME = {"data": x(2, 3), "label": x(2, 3)}
_NORM = {"gamma": x(3), "beta": x(3)}
_REDUCED = {"data": x(2, 3), "axis": 1, "keepdims": False}
_ORDERED = {"data": x(2, 3), "axis": 1}
_SEQUENCES = {"data": x(3, 2), "sequence_length": x(2) + 1, "use_sequence_length": True, "axis": 0}
_DRAWN = {"shape": (2, 3), "dtype": "float32"}

FAMILIES = {
    "elementwise unary": {name: {"data": x(2, 3)} for name in elementwise.UNARY},
    "elementwise binary": {
        name: {"lhs": x(2, 3), "rhs": x(2, 3)} for name in (*elementwise.BINARY, *elementwise.ARRAYS)
    },
    "elementwise with parameters": {
        "clip": {"data": x(2, 3), "a_min": 0.0, "a_max": 1.0},
        "hard_sigmoid": {"data": x(2, 3), "alpha": 0.2, "beta": 0.5},
        "smooth_l1": {"data": x(2, 3), "scalar": 1.0},
        "cast": {"data": x(2, 3), "dtype": "float64"},
        "identity": {"data": x(2, 3)},
        "stop_gradient": {"data": x(2, 3)},
        "make_loss": {"data": x(2, 3)},
        "add_n": {"*": (x(2, 3), x(2, 3))},
        "where": {"condition": x(2, 3), "x": x(2, 3), "y": x(2, 3)},
        "contrib.isfinite": {"data": x(2, 3)},
        "contrib.isinf": {"data": x(2, 3)},
        "contrib.isnan": {"data": x(2, 3)},
        "contrib.quadratic": {"data": x(2, 3), "a": 1.0, "b": 1.0, "c": 1.0},
        "contrib.div_sqrt_dim": {"data": x(2, 3)},
        "contrib.gradientmultiplier": {"data": x(2, 3), "scalar": 2.0},
        "contrib.allclose": {"a": x(2, 3), "b": x(2, 3), "rtol": 1e-5, "atol": 1e-8},
    },
    "reductions": {
        **dict.fromkeys("sum nansum mean prod nanprod max min norm".split(), _REDUCED),
        "moments": {"data": x(2, 3), "axes": 1},
        "cumsum": {"data": x(2, 3), "axis": 1, "dtype": "float32"},
        "all_finite": {"data": x(2, 3)},
        "multi_all_finite": {"*": (x(2), x(3)), "num_arrays": 2},
        "multi_sum_sq": {"*": (x(2), x(3)), "num_arrays": 2},
        "histogram": {"a": x(6), "bins": 3, "range": (0.0, 1.0)},
    },
    "sorting": {
        "argmax": _REDUCED,
        "argmin": _REDUCED,
        "argmax_channel": {"data": x(2, 3)},
        "argsort": {**_ORDERED, "is_ascend": True, "dtype": "float32"},
        "sort": {**_ORDERED, "is_ascend": True},
        "topk": {**_ORDERED, "k": 2, "ret_typ": "both", "dtype": "float32"},
    },
    "shaping": {
        "reshape": {"data": x(2, 3), "shape": (3, 2)},
        "reshape_like": {"lhs": x(2, 3), "rhs": x(3, 2), "lhs_begin": 0, "lhs_end": 2, "rhs_begin": 0, "rhs_end": 2},
        "flatten": {"data": x(2, 3)},
        "expand_dims": {"data": x(2, 3), "axis": 1},
        "squeeze": {"data": x(2, 1), "axis": 1},
        "transpose": {"data": x(2, 3), "axes": (1, 0)},
        "swapaxes": {"data": x(2, 3), "dim1": 0, "dim2": 1},
        "flip": {"data": x(2, 3), "axis": 1},
        "depth_to_space": {"data": x(1, 4, 1, 1), "block_size": 2},
        "space_to_depth": {"data": x(1, 1, 2, 2), "block_size": 2},
        "broadcast_to": {"data": x(1, 3), "shape": (2, 3)},
        "broadcast_like": {"lhs": x(1, 3), "rhs": x(2, 3), "lhs_axes": (0,), "rhs_axes": (0,)},
        "broadcast_axis": {"data": x(1, 3), "axis": 0, "size": 2},
        "tile": {"data": x(2, 3), "reps": (2, 1)},
        "repeat": {"data": x(2, 3), "repeats": 2, "axis": 1},
        "pad": {"data": x(2, 3), "mode": "constant", "pad_width": (1, 1, 0, 0), "constant_value": 0.0},
        "concat": {"*": (x(2, 3), x(2, 3)), "dim": 1},
        "concatenate": {"arrays": [x(2, 3), x(2, 3)], "axis": 1},
        "stack": {"*": (x(2, 3), x(2, 3)), "axis": 1},
        "split": {"data": x(2, 4), "num_outputs": 2, "axis": 1},
        "split_v2": {"ary": x(2, 4), "indices_or_sections": 2, "axis": 1},
        "moveaxis": {"tensor": x(2, 3), "source": 0, "destination": 1},
        "shape_array": {"data": x(2, 3)},
        "size_array": {"data": x(2, 3)},
        "contrib.index_array": {"data": x(2, 3), "axes": (1,)},
        "to_dlpack_for_read": {"data": x(2, 3)},
    },
    "indexing": {
        "take": {"a": x(2, 3), "indices": x(2), "axis": 1, "mode": "clip"},
        "batch_take": {"a": x(2, 3), "indices": x(2)},
        "pick": {"data": x(2, 3), "index": x(2), "axis": 1, "mode": "clip"},
        "fill_element_0index": {"lhs": x(2, 3), "mhs": x(2), "rhs": x(2)},
        "one_hot": {"indices": x(2), "depth": 3, "on_value": 1.0, "off_value": 0.0, "dtype": "float32"},
        "onehot_encode": {"indices": x(2), "out": x(2, 3)},
        "gather_nd": {"data": x(2, 3), "indices": x(2, 2)},
        "scatter_nd": {"data": x(2), "indices": x(2, 2), "shape": (2, 3)},
        "Embedding": {"data": x(2), "weight": x(4, 3), "input_dim": 4, "output_dim": 3},
        "unravel_index": {"data": x(3), "shape": (2, 3)},
        "ravel_multi_index": {"data": x(2, 3), "shape": (2, 3)},
        "slice": {"data": x(2, 3), "begin": (0, 1), "end": (2, 3), "step": (1, 1)},
        "slice_axis": {"data": x(2, 3), "axis": 1, "begin": 0, "end": 2},
        "slice_like": {"data": x(2, 3), "shape_like": x(1, 2), "axes": (0, 1)},
        "diag": {"data": x(2, 3), "k": 0, "axis1": 0, "axis2": 1},
        "boolean_mask": {"data": x(2, 3), "index": x(3), "axis": 1},
        "contrib.boolean_mask": {"data": x(2, 3), "index": x(3), "axis": 1},
        "contrib.index_copy": {"old_tensor": x(3, 2), "index_vector": x(1, dtype="int64"), "new_tensor": x(1, 2)},
        "SequenceMask": {**_SEQUENCES, "value": 0.0},
        "SequenceLast": _SEQUENCES,
        "SequenceReverse": _SEQUENCES,
    },
    "products": {
        "dot": {"lhs": x(2, 3), "rhs": x(3, 2)},
        "batch_dot": {"lhs": x(2, 2, 3), "rhs": x(2, 3, 2)},
        "matmul": {"lhs": x(2, 3), "rhs": x(3, 2)},
        "khatri_rao": {"*": (x(2, 3), x(2, 3))},
        "einsum": {"*": ("ij,jk->ik", x(2, 3), x(3, 2))},
        "FullyConnected": {"data": x(2, 3), "weight": x(4, 3), "bias": x(4), "num_hidden": 4},
    },
    "linalg": {
        **{f"linalg.{name}": {"A": definite()} for name in linalg.FUNCTIONS},
        "linalg.maketrian": {"A": x(3), "offset": 0},
        "linalg.extractdiag": {"A": definite(), "offset": 0},
        "linalg.extracttrian": {"A": definite(), "offset": 0},
        "linalg.makediag": {"A": x(3), "offset": 0},
        "linalg.gemm": {"A": x(2, 3), "B": x(3, 2), "C": x(2, 2), "alpha": 1.0, "beta": 1.0, "axis": -2},
        "linalg.gemm2": {"A": x(2, 3), "B": x(3, 2), "alpha": 1.0, "axis": -2},
        "linalg.syrk": {"A": x(2, 3), "alpha": 1.0},
        "linalg.trmm": {"A": definite(), "B": x(2, 3), "alpha": 1.0},
        "linalg.trsm": {"A": definite(), "B": x(2, 3), "alpha": 1.0},
    },
    "softmax": {
        **{
            name: {**_ORDERED, "temperature": 1.0, "dtype": "float32"} for name in ("softmax", "log_softmax", "softmin")
        },
        "SoftmaxActivation": {"data": x(2, 3), "mode": "channel"},
        "softmax_cross_entropy": _HEAD,
        "SoftmaxOutput": {**_HEAD, "grad_scale": 1.0, "normalization": "batch", "smooth_alpha": 0.1},
    },
    "losses": {
        **{f"{name}RegressionOutput": {**_SAME, "grad_scale": 1.0} for name in ("Linear", "Logistic", "MAE")},
        "MakeLoss": {"data": x(2, 3), "grad_scale": 1.0, "valid_thresh": 0.0, "normalization": "batch"},
        "SVMOutput": {**_HEAD, "margin": 1.0, "regularization_coefficient": 1.0},
    },
    "layers": {
        "Activation": {"data": x(2, 3), "act_type": "relu"},
        "LeakyReLU": {"data": x(2, 3), "gamma": x(3), "act_type": "prelu"},
        "Dropout": {"data": x(2, 3), "p": 0.5, "mode": "always", "axes": (1,)},
        "BatchNorm": {
            "data": x(2, 3),
            **_NORM,
            "moving_mean": x(3),
            "moving_var": x(3),
            "eps": 1e-3,
            "momentum": 0.9,
            "axis": 1,
        },
        "LayerNorm": {"data": x(2, 3), **_NORM, "axis": 1, "eps": 1e-5},
        "GroupNorm": {"data": x(2, 3, 2), **_NORM, "num_groups": 3, "eps": 1e-5},
        "InstanceNorm": {"data": x(2, 3, 2), **_NORM, "eps": 1e-3},
        "L2Normalization": {"data": x(2, 3), "eps": 1e-10, "mode": "instance"},
    },
    "random": {
        "random.uniform": {"low": 0.0, "high": 1.0, **_DRAWN},
        "random.normal": {"loc": 0.0, "scale": 1.0, **_DRAWN},
        "random.gamma": {"alpha": 1.0, "beta": 1.0, **_DRAWN},
        "random.exponential": {"scale": 1.0, **_DRAWN},
        "random.poisson": {"lam": 1.0, **_DRAWN},
        "random.negative_binomial": {"k": 1, "p": 0.5, **_DRAWN},
        "random.generalized_negative_binomial": {"mu": 1.0, "alpha": 1.0, **_DRAWN},
        "random.bernoulli": {"prob": 0.5, **_DRAWN},
        "random.randint": {"low": 0, "high": 3, "shape": (2, 3), "dtype": "int32"},
        "random.randn": {"*": (2, 3), "loc": 0.0, "scale": 1.0},
        "random_uniform": {"low": 0.0, "high": 1.0, **_DRAWN},
        "random_normal": {"loc": 0.0, "scale": 1.0, **_DRAWN},
        "random_gamma": {"alpha": 1.0, "beta": 1.0, **_DRAWN},
        "random_exponential": {"lam": 1.0, **_DRAWN},
        "random_poisson": {"lam": 1.0, **_DRAWN},
        "random_negative_binomial": {"k": 1, "p": 0.5, **_DRAWN},
        "random_generalized_negative_binomial": {"mu": 1.0, "alpha": 1.0, **_DRAWN},
        "random_randint": {"low": 0, "high": 3, "shape": (2, 3), "dtype": "int32"},
        "sample_uniform": {"low": x(2), "high": x(2) + 1, **_DRAWN},
        "sample_normal": {"mu": x(2), "sigma": x(2), **_DRAWN},
        "sample_gamma": {"alpha": x(2), "beta": x(2), **_DRAWN},
        "sample_exponential": {"lam": x(2), **_DRAWN},
        "sample_poisson": {"lam": x(2), **_DRAWN},
        "sample_negative_binomial": {"k": x(2) + 1, "p": x(2), **_DRAWN},
        "sample_generalized_negative_binomial": {"mu": x(2), "alpha": x(2), **_DRAWN},
        "sample_multinomial": {"data": x(2, 3), "shape": 2, "dtype": "int32"},
        "shuffle": {"data": x(2, 3)},
        "random.uniform_like": {"data": x(2, 3), "low": 0.0, "high": 1.0},
        "random.normal_like": {"data": x(2, 3), "loc": 0.0, "scale": 1.0},
        "random.gamma_like": {"data": x(2, 3), "alpha": 1.0, "beta": 1.0},
        "random.exponential_like": {"data": x(2, 3), "lam": 1.0},
        "random.poisson_like": {"data": x(2, 3), "lam": 1.0},
        "random.negative_binomial_like": {"data": x(2, 3), "k": 1, "p": 0.5},
        "random.generalized_negative_binomial_like": {"data": x(2, 3), "mu": 1.0, "alpha": 1.0},
    },
    "creation": {
        "arange": {"start": 0.0, "stop": 3.0, "step": 1.0, "repeat": 1, "dtype": "float32"},
        "array": {"source_array": [[1, 2], [3, 4]], "dtype": "float32"},
        "empty": {"shape": (2, 3), "dtype": "float32"},
        "eye": {"N": 2, "M": 3, "k": 0, "dtype": "float32"},
        "full": {"shape": (2, 3), "val": 7, "dtype": "float32"},
        "full_like": {"data": x(2, 3), "fill_value": 7.0},
        "linspace": {"start": 0.0, "stop": 1.0, "num": 3, "dtype": "float32"},
        "ones": {"shape": (2, 3), "dtype": "float32"},
        "ones_like": {"data": x(2, 3)},
        "zeros": {"shape": (2, 3), "dtype": "float32"},
        "zeros_like": {"data": x(2, 3)},
        "contrib.arange_like": {"data": x(2, 3), "start": 0.0, "step": 1.0, "axis": 1},
    },
    "updates": {
        **dict(_updates()),
        "lamb_update_phase1": {"weight": x(3), "grad": x(3), "mean": x(3), "var": x(3), "t": 1, "wd": 0.0},
        "lamb_update_phase2": {"weight": x(3), "g": x(3), "r1": x(1), "r2": x(1), "lr": 0.1},
        "reset_arrays": {"*": (x(3), x(3)), "num_arrays": 2},
    },
}
"""Family -> function -> arguments."""

ELSEWHERE = """
    load load_frombuffer save from_numpy from_dlpack to_dlpack_for_write waitall
    contrib.cond contrib.foreach contrib.while_loop
""".split()
"""What takes files, memory of others, functions, or nothing."""


def function(name):
    """The function of a dotted name in ``nd``."""
    home, _, last = name.rpartition(".")
    return getattr(getattr(nd, home) if home else nd, last)


def arrays(value):
    """An argument, with new NDArrays for NumPy arrays."""
    if isinstance(value, np.ndarray):
        return nd.array(value, dtype=value.dtype)
    return [arrays(each) for each in value] if isinstance(value, list) else value
