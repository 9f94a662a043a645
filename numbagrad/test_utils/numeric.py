"""Numeric gradients of functions, under the names that MXNet has for those of symbols."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numbagrad import autograd, nd
from numbagrad.test_utils.comparison import Tolerance, assert_almost_equal
from numbagrad.testing import GradientCheck, slopes

Location = Mapping[str, Any] | Sequence[Any]


def default_numeric_eps() -> dict[np.dtype, float]:
    """Steps for differences, powers of two, by dtype."""
    return {np.dtype("float16"): 2.0**-6, np.dtype("float32"): 2.0**-9, np.dtype("float64"): 2.0**-14}


def _call(f: Callable[..., Any], location: Location) -> tuple[Callable[..., Any], list[Any], list[np.ndarray]]:
    """`f` of positional arguments, the names (or positions) of these, and their values."""
    if isinstance(location, Mapping):
        names = list(location)
        values = list(location.values())

        def call(*arrays: Any) -> Any:
            return f(**dict(zip(names, arrays, strict=True)))
    else:
        call, values = f, list(location)
        names = list(range(len(values)))  # type: ignore[arg-type]
    return call, names, [x.asnumpy() if isinstance(x, nd.NDArray) else np.asarray(x) for x in values]


def numeric_grad(f: Callable[..., Any], location: Location, eps: float = 1e-4, use_forward_train: bool = True) -> Any:
    """The gradient of the sum of what a function returns, by central differences in float64.

    Parameters
    ----------
    f : callable
        Takes NDArrays, returns one.
    location : list or dict of arrays
        The arguments, positional or by name; those of a floating dtype are varied.
    eps : float
        How far apart the two points are.
    use_forward_train : bool
        The training flag.

    Returns
    -------
    list or dict of numpy.ndarray
        As `location`; zeros for arguments that are not varied.
    """
    call, names, values = _call(f, location)
    values = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in values]

    def terms(inputs: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
        with autograd.pause(use_forward_train):
            y = call(*[nd.array(x, dtype=x.dtype) for x in inputs]).asnumpy()
        return [(y, np.ones_like(y))]

    found = [
        slopes(terms, values, i, eps / 2) if x.dtype.kind == "f" else np.zeros(x.shape) for i, x in enumerate(values)
    ]
    return dict(zip(names, found, strict=True)) if isinstance(location, Mapping) else found


def check_numeric_gradient(
    f: Callable[..., Any],
    location: Location,
    numeric_eps: float | None = None,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    grad_nodes: Sequence[Any] | None = None,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> None:
    """Compare the gradients of a function, computed in `dtype`, with central differences in float64.

    Parameters
    ----------
    f : callable
        Takes NDArrays, returns one or several.
    location : list or dict of arrays
        The arguments, positional or by name.
    numeric_eps : float, optional
        How far apart the two points are; 1e-6 where left out.
    rtol, atol : optional
        As for :func:`assert_almost_equal`, whose defaults follow from the dtypes.
    grad_nodes : sequence, optional
        The names, or positions, of the arguments whose gradients are compared; all where left out.
    use_forward_train : bool
        The training flag.
    dtype : dtype
        The floating dtype in which the gradients are computed.

    Raises
    ------
    AssertionError
        Where they differ.

    See Also
    --------
    numbagrad.testing.check_gradients : for the rules rather than the rounding, and for the second order.
    """
    call, names, values = _call(f, location)
    values = [x.astype(dtype) if x.dtype.kind == "f" else x for x in values]
    check = GradientCheck(call, values, train_mode=use_forward_train)
    expected = check.differences(1, (1e-6 if numeric_eps is None else numeric_eps) / 2)
    for i, got in check.first(values).items():
        if grad_nodes is None or names[i] in grad_nodes:
            assert_almost_equal(
                expected[i].astype(dtype), got, rtol, atol, (f"numeric[{names[i]!r}]", f"gradient[{names[i]!r}]")
            )
