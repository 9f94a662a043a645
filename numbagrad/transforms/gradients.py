"""Gradients and products with Jacobians and Hessians."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numbagrad.autograd.gradients import ones
from numbagrad.containers import flatten
from numbagrad.errors import MXNetError
from numbagrad.tape import argument, state
from numbagrad.transforms.run import Argnums, Run, check_argnums, chosen, is_array, pulled


def value_and_grad(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns the value of `function` and its gradient.

    Parameters
    ----------
    function : callable
        Takes NDArrays, in tuples, lists and dicts too, and what else it likes; returns one float array of one element.
    argnums : int or tuple of int
        The arguments to differentiate for, of float arrays; negative ones count from the last.
    has_aux : bool
        `function` returns a pair of that array and something else, which is handed through.

    Returns
    -------
    callable
        Takes what `function` takes; returns ``(value, gradient)`` or ``((value, aux), gradient)``. The gradient has the
        form of the argument, or is a tuple of such where `argnums` is one; zeros where the value does not depend on an
        array. No argument is marked or written to. What the call computes is recorded where recording is on.

    Raises
    ------
    MXNetError
        When called, for a value of another size or of ints.
    TypeError, ValueError
        When called, for an argument of ints or no NDArray, a value that is none; an `argnums` out of range.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import value_and_grad
    >>> value, gradient = value_and_grad(lambda x: (x * x).sum())(nd.array([1, 2]))
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    numbers = check_argnums("value_and_grad", argnums)
    return _differentiated("value_and_grad", function, numbers, isinstance(argnums, int), has_aux)


def grad(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns the gradient of `function`; see :func:`value_and_grad`.

    With `has_aux` it returns ``(gradient, aux)``.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import grad
    >>> cube = lambda x: x * x * x
    >>> grad(cube)(nd.array([2])).item(), grad(grad(cube))(nd.array([2])).item()
    (12.0, 12.0)
    """
    numbers = check_argnums("grad", argnums)
    both = _differentiated("grad", function, numbers, isinstance(argnums, int), has_aux)

    @functools.wraps(function, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _differentiated(
    name: str, function: Callable[..., Any], numbers: tuple[int, ...], single: bool, has_aux: bool
) -> Callable[..., Any]:
    @functools.wraps(function, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        run = Run(name, function, args, chosen(name, numbers, len(args)), has_aux, kwargs)
        value = run.scalar()
        found = run.packed(run.gradients([value], [ones(value)], run.create_graph), single)
        value = run.outcome(value)
        return ((value, run.outcome(run.aux)) if has_aux else value), found

    return both


def elementwise_grad(function: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns the gradient of the sum of all that `function` returns.

    Of a function whose result at a place depends on its argument at that place alone, this is its derivative at each
    place; see :func:`grad`.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import elementwise_grad
    >>> elementwise_grad(nd.square)(nd.array([1, 2, 3])).tolist()
    [2.0, 4.0, 6.0]
    """
    numbers = check_argnums("elementwise_grad", argnums)

    @functools.wraps(function, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        places = chosen("elementwise_grad", numbers, len(args))
        run = Run("elementwise_grad", function, args, places, kwargs=kwargs)
        found = run.gradients(run.outputs, [ones(output) for output in run.outputs], run.create_graph)
        return run.packed(found, isinstance(argnums, int))

    return gradient


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `function` and the function that multiplies with its transposed Jacobian.

    Parameters
    ----------
    function : callable
        Of float arrays and containers of them, returning such; with `has_aux` a pair of that and something else.
    *primals : NDArray or container of NDArray
        Its arguments.

    Returns
    -------
    value : what `function` returns
    pull : callable
        ``pull(cotangent)``, of the form of the value, returns a tuple of one gradient an argument; as often as wanted.
        It is recorded where recording is on when it is called.
    aux
        With `has_aux`.

    Raises
    ------
    MXNetError
        By ``pull``, for a cotangent of another form, shape or dtype.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import vjp
    >>> value, pull = vjp(lambda x, y: x * y, nd.array([1, 2]), nd.array([3, 4]))
    >>> [gradient.tolist() for gradient in pull(nd.array([1, 10]))]
    [[3.0, 40.0], [1.0, 20.0]]
    """
    run = Run("vjp", function, primals, range(len(primals)), has_aux)

    def pull(cotangent: Any) -> Any:
        leaves = _like("vjp", "cotangent", cotangent, run.value)
        return run.packed(run.gradients(run.outputs, leaves, state.recording), False)

    value = run.outcome(run.value)
    return (value, pull, run.outcome(run.aux)) if has_aux else (value, pull)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `function` and its derivative along a direction.

    Parameters
    ----------
    function : callable
        Of float arrays and containers of them, returning such.
    primals, tangents : tuple or list
        The arguments, and the direction: one of the form of each argument.

    Returns
    -------
    value, derivative : what `function` returns

    Notes
    -----
    The VJP is linear in the cotangent, so its own VJP, for the cotangent, is the JVP (J. Townsend, "A new trick for
    calculating Jacobian vector products", 2017): two passes backward, and no rules of their own.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import jvp
    >>> value, slope = jvp(nd.square, (nd.array([1, 2]),), (nd.array([1, 10]),))
    >>> value.tolist(), slope.tolist()
    ([1.0, 4.0], [2.0, 40.0])
    """
    run, directions = _along("jvp", function, primals, tangents)
    dual = [argument(ones(output)) for output in run.outputs]
    found = run.gradients(run.outputs, dual, True)
    slope = pulled(found, directions, dual, run.create_graph, run.since)
    return run.outcome(run.value), run.like_value(slope)


def hvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The product of the Hessian of `function` with a direction: no Hessian is made.

    Parameters
    ----------
    function : callable
        Returns one float array of one element.
    primals, tangents : tuple or list
        The arguments, and the direction: one of the form of each argument.

    Returns
    -------
    tuple
        One of the form of each argument.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import hvp
    >>> x, v = nd.array([1, 2]), nd.array([1, 10])
    >>> hvp(lambda x: (x * x * x).sum(), (x,), (v,))[0].tolist()
    [6.0, 120.0]
    """
    run, directions = _along("hvp", function, primals, tangents)
    value = run.scalar()
    found = run.gradients([value], [ones(value)], True)
    return run.packed(run.gradients(found, directions, run.create_graph), False)


def _along(
    name: str, function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Run, list[Any]]:
    """A run, and the arrays of a direction."""
    for what, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise TypeError(f"{name}: {what} is a tuple of the arguments, not a {type(values).__name__}")
    directions = _like(name, "tangents", tuple(tangents), tuple(primals))
    return Run(name, function, primals, range(len(primals))), [v for v in directions if v is not None]


def _like(name: str, what: str, values: Any, pattern: Any) -> list[Any]:
    """The leaves of `values`, checked to have the form, shapes and dtypes of `pattern`.

    Raises
    ------
    MXNetError
    """
    ours: list[Any] = []
    theirs: list[Any] = []
    if flatten(values, ours) != flatten(pattern, theirs):
        raise MXNetError(f"{name}: {what} must come in the containers that it belongs to")
    for value, like in zip(ours, theirs, strict=True):
        if is_array(value) and is_array(like):
            if value._shape != like._shape or value._flat.dtype != like._flat.dtype:
                raise MXNetError(
                    f"{name}: {what} of shape {value._shape} and dtype {value._flat.dtype} for an array of shape "
                    f"{like._shape} and dtype {like._flat.dtype}"
                )
        elif is_array(like) or value is not None:
            raise TypeError(f"{name}: {what} are NDArrays, not {type(value).__name__}")
    return ours
