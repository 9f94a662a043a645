"""Random arrays, from the one stream of the process.

The same seed gives the same numbers, whatever the number of threads; a process that never calls
:func:`numbagrad.random.seed` starts at seed 0. Parameters of a distribution are numbers, or arrays of one shape: then
each gives `shape` numbers, and the result has the shape of the parameters followed by `shape`.
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from numbagrad.context import Context
from numbagrad.errors import MXNetError
from numbagrad.kernels import random as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.nd.arguments import REQUIRED, check_out, expect_array, spelled
from numbagrad.nd.creation import _check_label, as_shape, hosted, labelled
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import random as stream
from numbagrad.ops.arithmetic import log
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import FLOAT32, as_dtype
from numbagrad.ops.indexing import positions, take, take_
from numbagrad.ops.layout import Shape, size_of

Value = float | NDArray
_FLOAT64 = np.dtype("float64")
_INT64 = np.dtype("int64")


def _left_out(dtype: Any) -> bool:
    """Whether no dtype was given; MXNet spells that "None" too. A NumPy dtype can equal None: float64 does."""
    return dtype is None or (isinstance(dtype, str) and dtype == "None")


def _real(name: str, dtype: Any) -> np.dtype:
    """The dtype of a sampler of real numbers and counts."""
    found = FLOAT32 if _left_out(dtype) else as_dtype(dtype)
    if found.kind != "f":
        raise MXNetError(f"{name}: dtype is float16, float32 or float64, not {found}")
    return found


def _parameters(name: str, values: Sequence[Any]) -> tuple[list[np.ndarray], Shape | None]:
    """The parameters as flat float64 arrays, and their shape; None for numbers."""
    arrays = [isinstance(value, NDArray) for value in values]
    assert all(arrays) or not any(arrays), (
        f"{name}: the parameters must all be numbers or all be NDArrays, not "
        f"{', '.join(type(value).__name__ for value in values)}"
    )
    if not arrays[0]:
        return [np.array([float(value)]) for value in values], None
    shape = values[0]._shape
    for value in values:
        if value._shape != shape:
            raise MXNetError(f"{name}: the parameters have different shapes, {shape} and {value._shape}")
    return [cast(value, dtype=_FLOAT64)._flat for value in values], shape


def _sample(
    name: str, kernel: Kernel, values: Sequence[Any], shape: Any, dtype: np.dtype, ctx: Any, out: Any
) -> NDArray:
    """Draw by a kernel that takes arrays of parameters."""
    _check_label(ctx)
    parameters, lead = _parameters(name, values)
    if shape is None and out is not None and lead is None:
        shape = out._shape
    drawn = as_shape((1,) if shape is None and lead is None else () if shape is None else shape)
    if out is not None:
        check_out(name, (lead or ()) + drawn, out)
    flat = stream.draw_rows(kernel, parameters, size_of(drawn), dtype)
    return deliver(labelled(NDArray(flat, (lead or ()) + drawn), ctx), out)


def _number_sample(
    name: str, kernel: Kernel, a: float, b: float, shape: Any, dtype: np.dtype, ctx: Any, out: Any
) -> NDArray:
    """Draw by a kernel that takes two numbers."""
    _check_label(ctx)
    drawn = as_shape(shape if shape is not None else (1,) if out is None else out._shape)
    if out is not None:
        check_out(name, drawn, out)
    flat = stream.draw(kernel, size_of(drawn), dtype, a, b)
    return deliver(labelled(NDArray(flat, drawn), ctx), out)


def uniform(
    low: Value = 0,
    high: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Uniform numbers on [low, high).

    Parameters
    ----------
    low, high : float or NDArray
    shape : int or tuple of int, optional
        How many: 1 by default; for each element of array parameters, one by default.
    dtype : {"float32", "float64", "float16"}
    ctx : Context, optional
    out : NDArray, optional
        Where to write the result; gives `shape`.

    Raises
    ------
    MXNetError
        If `low` is above `high`, or one is not finite.
    """
    _only_name("uniform", kwargs)
    target = _real("uniform", dtype)
    if isinstance(low, NDArray) or isinstance(high, NDArray):
        return _sample("uniform", kernels.uniform_rows, (low, high), shape, target, ctx, out)
    return _number_sample("uniform", kernels.uniform, float(low), float(high), shape, target, ctx, out)


def normal(
    loc: Value = 0,
    scale: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Normal numbers of mean `loc` and standard deviation `scale`; the arguments are those of :func:`uniform`.

    Raises
    ------
    MXNetError
        For a negative `scale`, or one that is not finite.
    """
    _only_name("normal", kwargs)
    target = _real("normal", dtype)
    if isinstance(loc, NDArray) or isinstance(scale, NDArray):
        return _sample("normal", kernels.normal_rows, (loc, scale), shape, target, ctx, out)
    return _number_sample("normal", kernels.normal, float(loc), float(scale), shape, target, ctx, out)


def randn(
    *shape: int,
    dtype: Any = None,
    loc: Value = 0,
    scale: Value = 1,
    ctx: Context | None = None,
    out: Any = None,
) -> NDArray:
    """Normal numbers of a shape given axis by axis: ``randn(2, 3)``.

    Raises
    ------
    MXNetError
        If no shape is given.
    """
    if not shape and out is None:
        raise MXNetError("randn: at least one length must be given; for a single number use normal(shape=1)")
    return normal(loc, scale, as_shape(shape) if shape else None, dtype, ctx, out)


def randint(
    low: int,
    high: int,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Integers on [low, high), each as likely.

    Parameters
    ----------
    low, high : int
    shape : int or tuple of int, optional
        1 by default.
    dtype : {"int32", "int64"}

    Raises
    ------
    MXNetError
        If `low` is not below `high`, or the range is beyond the dtype.
    """
    _only_name("randint", kwargs)
    _check_label(ctx)
    target = np.dtype("int32") if _left_out(dtype) else as_dtype(dtype)
    if target.name not in ("int32", "int64"):
        raise MXNetError(f"randint: dtype is int32 or int64, not {target}")
    low, high = index(low), index(high)
    limits = np.iinfo(target)
    if low < limits.min or max(low, high - 1) > limits.max or high > np.iinfo(np.int64).max:
        raise MXNetError(f"randint: the range [{low}, {high}) is beyond {target}")
    drawn = as_shape(shape if shape is not None else (1,) if out is None else out._shape)
    if out is not None:
        check_out("randint", drawn, out)
    flat = stream.draw(kernels.randint, size_of(drawn), target, low, high)
    return deliver(labelled(NDArray(flat, drawn), ctx), out)


def exponential(
    scale: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: Any = None,
    **kwargs: Any,
) -> NDArray:
    """Exponential numbers of mean `scale`; the arguments are those of :func:`uniform`."""
    _only_name("exponential", kwargs)
    return _sample("exponential", kernels.exponential, (scale,), shape, _real("exponential", dtype), ctx, out)


def gamma(
    alpha: Value = 1,
    beta: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: Any = None,
    **kwargs: Any,
) -> NDArray:
    """Gamma numbers of shape `alpha` and scale `beta`, of mean alpha beta; arguments as of :func:`uniform`."""
    _only_name("gamma", kwargs)
    return _sample("gamma", kernels.gamma, (alpha, beta), shape, _real("gamma", dtype), ctx, out)


def poisson(
    lam: Value = 1, shape: Any = None, dtype: Any = None, ctx: Context | None = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Poisson numbers of mean `lam`, as floats; the arguments are those of :func:`uniform`."""
    _only_name("poisson", kwargs)
    return _sample("poisson", kernels.poisson, (lam,), shape, _real("poisson", dtype), ctx, out)


def negative_binomial(
    k: Value = 1,
    p: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: Any = None,
    **kwargs: Any,
) -> NDArray:
    """Failures before `k` successes of probability `p`, as floats; arguments as of :func:`uniform`."""
    _only_name("negative_binomial", kwargs)
    target = _real("negative_binomial", dtype)
    return _sample("negative_binomial", kernels.negative_binomial, (k, p), shape, target, ctx, out)


def generalized_negative_binomial(
    mu: Value = 1,
    alpha: Value = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: Any = None,
    **kwargs: Any,
) -> NDArray:
    """Counts of mean `mu` and variance ``mu + alpha mu**2``, as floats; arguments as of :func:`uniform`."""
    name = "generalized_negative_binomial"
    _only_name(name, kwargs)
    return _sample(name, kernels.generalized_negative_binomial, (mu, alpha), shape, _real(name, dtype), ctx, out)


def bernoulli(
    prob: Value = 0.5, shape: Any = None, dtype: Any = None, ctx: Context | None = None, out: Any = None
) -> NDArray:
    """1 with probability `prob`, else 0; of any dtype, float32 by default."""
    return _sample("bernoulli", kernels.bernoulli, (prob,), shape, as_dtype(dtype), ctx, out)


def multinomial(
    data: NDArray, shape: Any = None, get_prob: bool = False, dtype: Any = "int32", out: Any = None, **kwargs: Any
) -> Any:
    """Class numbers drawn by probabilities.

    Parameters
    ----------
    data : NDArray
        Probabilities, classes along the last axis; they need not sum to 1.
    shape : int or tuple of int, optional
        How many are drawn by each row; one by default.
    get_prob : bool
        Also return the logarithm of the probability of each number drawn (the value in `data`), which is
        differentiable in `data`.
    dtype : optional
        Of the class numbers.

    Returns
    -------
    NDArray, or [NDArray, NDArray]
        Of shape ``data.shape[:-1] + shape``; (1,) for one draw by a vector.

    Raises
    ------
    MXNetError
        For a negative probability, a row of zeros, no class at all, or more classes than `dtype` can count.
    """
    _only_name("multinomial", kwargs)
    target = as_dtype(dtype)
    if not isinstance(data, NDArray):
        raise TypeError(f"multinomial: takes an NDArray of probabilities, not {type(data).__name__}")
    if not data._shape or data._shape[-1] == 0:
        raise MXNetError(f"multinomial: an array of shape {data._shape} has no classes along its last axis")
    lead, classes = data._shape[:-1], data._shape[-1]
    most = (
        np.iinfo(target).max if target.kind in "iu" else 2 ** (np.finfo(target).nmant + 1) if target.kind == "f" else 1
    )
    if classes - 1 > most:
        raise MXNetError(f"multinomial: {target} cannot hold the numbers of {classes} classes")
    drawn = as_shape(() if shape is None else shape)
    result_shape = (lead + drawn) or (1,)
    rows, per_row = size_of(lead), size_of(drawn)
    if out is not None and not get_prob:
        check_out("multinomial", result_shape, out)
    drawn_classes = NDArray(stream.draw_classes(data._flat, rows, classes, per_row), result_shape)
    samples = cast(drawn_classes, dtype=target)
    samples._context = data._context
    if not get_prob:
        return deliver(samples, out)
    row = hosted(np.repeat(np.arange(rows), per_row), result_shape)
    at = positions(row, drawn_classes, lengths=(rows, classes), strides=(classes, 1))
    return deliver([samples, log(take_(data, at, first=0, last=len(data._shape), mode="clip"))], out)


def shuffle(data: NDArray, out: Any = None, **kwargs: Any) -> NDArray:
    """A copy of `data` with its first axis in random order."""
    _only_name("shuffle", kwargs)
    if not data._shape:
        raise MXNetError("shuffle: takes an array of at least one axis")
    if out is not None:
        check_out("shuffle", data._shape, out)
    order = stream.draw(kernels.permutation, data._shape[0], _INT64)
    return deliver(take(data, NDArray(order, order.shape)), out)


def _only_name(name: str, kwargs: dict[str, Any]) -> None:
    """Accept ``name=`` for MXNet's sake, and nothing else."""
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"{name}: unexpected keyword {', '.join(kwargs)}")


# ------------------------------------------------------------------------------------------- spelled as operators


class _Spelling(NamedTuple):
    """How MXNet's operators call the parameters of a sampler, with their defaults."""

    sampler: Callable[..., NDArray]
    random: dict[str, Any]
    sample: tuple[str, ...]


def _by_rate(lam: Value = 1, *rest: Any, **more: Any) -> NDArray:
    """Exponential numbers by their rate, one over the mean."""
    return exponential(1 / lam, *rest, **more)


_SPELLINGS = {
    "uniform": _Spelling(uniform, {"low": 0, "high": 1}, ("low", "high")),
    "normal": _Spelling(normal, {"loc": 0, "scale": 1}, ("mu", "sigma")),
    "gamma": _Spelling(gamma, {"alpha": 1, "beta": 1}, ("alpha", "beta")),
    "exponential": _Spelling(_by_rate, {"lam": 1}, ("lam",)),
    "poisson": _Spelling(poisson, {"lam": 1}, ("lam",)),
    "negative_binomial": _Spelling(negative_binomial, {"k": 1, "p": 1}, ("k", "p")),
    "generalized_negative_binomial": _Spelling(generalized_negative_binomial, {"mu": 1, "alpha": 1}, ("mu", "alpha")),
    "randint": _Spelling(randint, {"low": REQUIRED, "high": REQUIRED}, ()),
}


def _kinds(name: str, spelling: _Spelling) -> dict[str, Any]:
    """What the parameters of a distribution are where they are no arrays."""
    return dict.fromkeys(spelling.random, int if name == "randint" else float)


def _random_operator(name: str, spelling: _Spelling) -> Any:
    def draw(shape: Any, ctx: Any, dtype: Any, out: Any, **values: Any) -> NDArray:
        return spelling.sampler(*values.values(), shape=shape, ctx=ctx, dtype=dtype, out=out)

    tail = {"shape": None, "ctx": None, "dtype": None, "out": None, "name": None}
    summary = f"{name} numbers by parameters that are numbers; see ``nd.random.{name}``."
    return spelled(f"random_{name}", summary, {**spelling.random, **tail}, draw, _kinds(name, spelling))


def _sample_operator(name: str, spelling: _Spelling) -> Any:
    def draw(shape: Any, dtype: Any, out: Any, **values: Any) -> NDArray:
        expect_array(f"sample_{name}", *values.values())
        return spelling.sampler(*values.values(), shape=shape, dtype=dtype, out=out)

    summary = f"{name} numbers, `shape` of them for each element of parameters that are arrays of one shape."
    required = dict.fromkeys(spelling.sample, REQUIRED)
    parameters = {**required, "shape": None, "dtype": None, "out": None, "name": None}
    return spelled(f"sample_{name}", summary, parameters, draw, dict.fromkeys(required, NDArray))


def _like_operator(name: str, spelling: _Spelling) -> Any:
    def draw(data: Any, out: Any, **values: Any) -> NDArray:
        expect_array(f"{name}_like", data)
        return spelling.sampler(*values.values(), shape=data._shape, dtype=data._flat.dtype, ctx=data._context, out=out)

    summary = f"{name} numbers in the shape and dtype of `data`; see ``nd.random.{name}``."
    parameters = {"data": REQUIRED, **spelling.random, "out": None, "name": None}
    return spelled(f"{name}_like", summary, parameters, draw, {"data": NDArray, **_kinds(name, spelling)})


_RANDOM = {f"random_{name}": _random_operator(name, spelling) for name, spelling in _SPELLINGS.items()}
_SAMPLE = {f"sample_{name}": _sample_operator(name, one) for name, one in _SPELLINGS.items() if one.sample}
_LIKE = {f"{name}_like": _like_operator(name, one) for name, one in _SPELLINGS.items() if one.sample}

globals().update(_LIKE)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "uniform": _RANDOM["random_uniform"],
    "normal": _RANDOM["random_normal"],
    **_RANDOM,
    **_SAMPLE,
    "sample_multinomial": multinomial,
    "shuffle": shuffle,
}
"""Names in ``nd`` itself."""

__all__ = [
    *_SPELLINGS,
    *_LIKE,
    "bernoulli",
    "multinomial",
    "randn",
    "shuffle",
]
