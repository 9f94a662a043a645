"""Whether arrays agree, within tolerances that follow from their dtypes."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad.array import Array

Tolerance = float | dict[np.dtype, float] | None

_BLOCK = 1 << 14
_INTEGERS = "bool int8 uint8 int32 uint32 int64 uint64".split()


def _table(half: float, single: float, double: float) -> dict[np.dtype, float]:
    table = {"float16": half, "float32": single, "float64": double, **dict.fromkeys(_INTEGERS, 0.0)}
    return {np.dtype(name): value for name, value in table.items()}


def default_rtols() -> dict[np.dtype, float]:
    """The relative tolerance of each dtype where none is given."""
    return _table(1e-2, 1e-4, 1e-5)


def default_atols() -> dict[np.dtype, float]:
    """The absolute tolerance of each dtype where none is given."""
    return _table(1e-1, 1e-3, 1e-20)


def get_rtol(rtol: float | None = None, dtype: Any = np.float64) -> float:
    """`rtol`, or the default one of `dtype`."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = np.float64) -> float:
    """`atol`, or the default one of `dtype`."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """`etol`, the share of elements that may be wrong, or 0."""
    return 0.0 if etol is None else etol


def get_tolerance(dat: Any, tol: Tolerance, default_tol: dict[np.dtype, float]) -> float:
    """The tolerance for `dat`: `tol` if it is a number, else the entry for the dtype in `tol` or `default_tol`."""
    if isinstance(tol, numbers.Real):
        return float(tol)
    dtype = np.dtype(dat.dtype)
    return (tol or {}).get(dtype, default_tol.get(dtype, 0.0))  # type: ignore[union-attr]


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """The tolerances for a comparison: of those of the two dtypes the larger."""
    both = [value if hasattr(value, "dtype") else np.asarray(value) for value in (x, y)]
    relative = max(get_tolerance(value, rtol, default_rtols()) for value in both)
    absolute = max(get_tolerance(value, atol, default_atols()) for value in both)
    return relative, absolute


def _numpy(value: Any) -> np.ndarray:
    """The values, which are only read."""
    return value.__array__(copy=False) if isinstance(value, Array) else np.asarray(value)  # type: ignore[attr-defined]


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have one shape and equal elements."""
    return bool(np.array_equal(_numpy(a), _numpy(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two NDArrays lie on the same memory."""
    return array1._shape == array2._shape and array1._flat.ctypes.data == array2._flat.ctypes.data


def _check_shapes(a: np.ndarray, b: np.ndarray) -> None:
    if a.shape != b.shape:
        raise AssertionError(f"the shapes {a.shape} and {b.shape} differ")


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether ``|a - b| <= atol + rtol |b|`` everywhere; the defaults are those of float64.

    Raises
    ------
    AssertionError
        If the shapes differ and `use_broadcast` is off.
    """
    a, b = _numpy(a), _numpy(b)
    if not use_broadcast:
        _check_shapes(a, b)
    return bool(np.allclose(a, b, rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan))


def _report(
    a: np.ndarray, b: np.ndarray, wrong: np.ndarray, rtol: float, atol: float, names: Sequence[str], shown: int
) -> str:
    """What differs, the worst elements first."""
    a, b = np.broadcast_arrays(a, b)
    first, second = (x.astype(np.float64) if x.dtype.kind in "biuf" else x for x in (a, b))
    with np.errstate(all="ignore"):
        error = np.abs(first - second) / (atol + rtol * np.abs(second) + 1e-20)
    error = np.where(wrong, np.where(np.isnan(error), np.inf, error), -1.0)
    lines = [
        f"{wrong.sum()} of {wrong.size} elements differ by more than rtol={rtol:g}, atol={atol:g}; "
        f"the largest error is {error.max():.6g} times what is allowed"
    ]
    for place in np.argsort(-error, axis=None, kind="stable")[: min(shown, int(wrong.sum()))]:
        index = tuple(int(k) for k in np.unravel_index(place, error.shape))
        lines.append(f"  at {index}: {names[0]} = {a[index]!r}, {names[1]} = {b[index]!r}")
    return "\n".join([*lines, f"{names[0]} = {a}", f"{names[1]} = {b}"])


def _all_close(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> bool:
    """Whether ``|a - b| <= atol + rtol |b|`` everywhere, found in blocks that stay in the cache.

    False also where this does not tell: for NaN, infinity, and what is no array of floats.
    """
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return False
    dtype = np.result_type(a.dtype, b.dtype, np.float32)  # halves are slow to compute with
    first, second = a.reshape(-1), b.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, first.size, _BLOCK):
            x, y = first[start : start + _BLOCK], second[start : start + _BLOCK]
            if (x == y).all():
                continue
            x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
            allowed = np.abs(y)
            allowed *= rtol
            allowed += atol
            if not (np.abs(x - y) <= allowed).all():
                return False
    return True


def _compare(
    a: Any,
    b: Any,
    rtol: Tolerance,
    atol: Tolerance,
    names: Sequence[str],
    equal_nan: bool,
    mismatches: tuple[int, int],
    allowed: float,
) -> None:
    relative, absolute = get_tols(a, b, rtol, atol)
    a, b = _numpy(a), _numpy(b)
    if _all_close(a, b, relative, absolute):
        return
    wrong = ~np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=equal_nan)
    if wrong.any() and wrong.mean() > allowed:
        raise AssertionError(_report(a, b, wrong, relative, absolute, names, mismatches[0]))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raise unless ``|a - b| <= atol + rtol |b|`` everywhere.

    Parameters
    ----------
    a, b : NDArray, numpy.ndarray or number
    rtol, atol : float, or dict of dtype to float, optional
        Where left out they follow from the dtypes, and the larger one of the two arrays counts: 1e-2 and 1e-1 for
        float16, 1e-4 and 1e-3 for float32, 1e-5 and 1e-20 for float64, 0 for the others.
    names : pair of str
        What the report calls the arrays.
    equal_nan : bool
        Whether NaN equals NaN.
    use_broadcast : bool
        Whether different shapes may broadcast.
    mismatches : pair of int
        The first: how many wrong elements the report lists.

    Raises
    ------
    AssertionError
        It lists the wrong elements, the worst first.
    """
    if not use_broadcast:
        _check_shapes(_numpy(a), _numpy(b))
    _compare(a, b, rtol, atol, names, equal_nan, mismatches, 0.0)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-7, atol: float = 0.0, equal_nan: bool = True) -> None:
    """:func:`assert_almost_equal` with the tolerances of NumPy's function of this name."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """:func:`assert_almost_equal`, but a share `etol` of the elements may be wrong."""
    _compare(a, b, rtol, atol, names, equal_nan, mismatches, get_etol(etol))


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, names: Sequence[str] = ("a", "b")
) -> None:
    """:func:`assert_almost_equal`, but where either is NaN nothing is compared."""
    a, b = np.copy(_numpy(a)), np.copy(_numpy(b))
    either = np.isnan(a) | np.isnan(b)
    a[either] = b[either] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def np_reduce(dat: np.ndarray, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> Any:
    """Reduce over one axis, several or all by a NumPy function that takes one axis at a time."""
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted({each % dat.ndim for each in axes}, reverse=True)
    result = dat
    for each in axes:
        result = numpy_reduce_func(result, axis=each)
    return np.expand_dims(result, tuple(axes)) if keepdims else result


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """:func:`assert_almost_equal` for arrays in nested tuples of one form; None on either side is not compared."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        assert len(t1) == len(t2), f"tuples of {len(t1)} and {len(t2)}"
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)
