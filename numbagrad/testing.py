"""Gradients against central differences, in float64: for users' functions and for the sweep over our own ops."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numbagrad import autograd
from numbagrad.errors import MXNetError
from numbagrad.nd import NDArray
from numbagrad.ops.shaping import identity

Inputs = Sequence[Any]
Terms = list[tuple[np.ndarray, np.ndarray]]


class GradientError(AssertionError):
    """A gradient that is not the slope of its function.

    Attributes
    ----------
    order : int
        1 for a gradient, 2 for the gradient of a gradient.
    input : int
        Which input.
    index : tuple of int
        The element of it with the largest error.
    expected, got : float
        By central differences, and by the tape.
    """

    def __init__(self, message: str, order: int, which: int, index: tuple[int, ...], expected: float, got: float):
        super().__init__(message)
        self.order = order
        self.input = which
        self.index = index
        self.expected = expected
        self.got = got


def _array(values: np.ndarray) -> NDArray:
    return NDArray(np.array(values).reshape(-1), values.shape)


def _plain(value: Any) -> Any:
    """An input as the check keeps it: float arrays as float64 copies, other arrays as copies, the rest as it is."""
    if isinstance(value, NDArray):
        value = value.asnumpy()
    if not isinstance(value, np.ndarray):
        return value
    return value.astype(np.float64) if value.dtype.kind == "f" else value.copy()


def _list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def slopes(terms: Callable[[Inputs], Terms], inputs: Inputs, which: int, epsilon: float) -> np.ndarray:
    """The derivative of a weighted sum for every element of one input, by central differences.

    Parameters
    ----------
    terms : callable
        ``terms(inputs)`` returns pairs of arrays: values, and the weights that they are summed with.
    inputs : sequence
        NumPy arrays of float64 are copied before they are moved.
    which : int
        The input that is moved, element by element.
    epsilon : float
        How far, to both sides.
    """
    found = np.zeros(inputs[which].shape)
    for place in np.ndindex(*found.shape):
        around = []
        for step in (epsilon, -epsilon):
            moved = list(inputs)
            moved[which] = inputs[which].copy()
            moved[which][place] += step
            around.append(terms(moved))
        # Subtracted element by element: what does not change with this input cancels exactly.
        pairs = zip(*around, strict=True)
        found[place] = sum(float((weight * (above - below)).sum()) for (above, weight), (below, _) in pairs)
    return found / (2 * epsilon)


class GradientCheck:
    """A function of arrays with fixed inputs, and the derivatives of it by the tape and by differences.

    The derivatives are those of one number: the sum of the outputs times random positive weights (`head`). Of second
    order, they are those of the gradients' sum times random weights (`directions`).

    Parameters
    ----------
    function : callable
        Of as many arguments as there are inputs; returns an array or a list of them.
    inputs : sequence
        NDArrays, NumPy arrays, numbers, None. Those of a floating dtype are converted to float64 and varied.
    seed : int or numpy.random.Generator
        Of the weights.
    train_mode : bool
        The training flag while the function runs.

    Raises
    ------
    MXNetError
        If no input is an array of floats, an output is of another dtype than float64 although it is one of floats, or
        a second call gives other values.
    """

    def __init__(self, function: Callable[..., Any], inputs: Inputs, seed: Any = 0, train_mode: bool = True) -> None:
        self.function = function
        self.inputs = [_plain(value) for value in inputs]
        self.train_mode = train_mode
        self.which = [i for i, x in enumerate(self.inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        if not self.which:
            raise MXNetError("check_gradients: none of the inputs is an array of floats")
        rng = np.random.default_rng(seed)
        values = self.values(self.inputs)
        for value, again in zip(values, self.values(self.inputs), strict=True):
            if value.dtype != np.float64:
                raise MXNetError(
                    f"check_gradients: the function computes in {value.dtype} although its inputs are float64; "
                    "differences need float64 throughout"
                )
            if not np.array_equal(value, again, equal_nan=True):
                raise MXNetError(
                    "check_gradients: the function gave other values when it was called again; seed what it draws "
                    "inside it"
                )
        self.head = [rng.uniform(0.5, 1.5, value.shape) for value in values]
        self.directions = {i: rng.uniform(-1, 1, self.inputs[i].shape) for i in self.which}

    def outputs(self, arguments: Sequence[Any]) -> list[NDArray]:
        """The outputs that have a floating dtype."""
        results = _list(self.function(*arguments))
        for y in results:
            if not isinstance(y, NDArray):
                raise MXNetError(f"check_gradients: the function must return NDArrays, not {type(y).__name__}")
        outputs = [y for y in results if np.dtype(y.dtype).kind == "f"]
        if not outputs:
            raise MXNetError("check_gradients: the function returns no array of floats")
        return outputs

    def values(self, inputs: Inputs) -> list[np.ndarray]:
        """The outputs as NumPy arrays, computed without recording."""
        with autograd.pause(self.train_mode):
            return [y.asnumpy() for y in self.outputs([_array(x) if isinstance(x, np.ndarray) else x for x in inputs])]

    def _recorded(self, inputs: Inputs) -> tuple[list[Any], list[NDArray], list[NDArray]]:
        """The arguments with the varied ones marked, the outputs that depend on them, and the head gradients."""
        arguments = [_array(x) if isinstance(x, np.ndarray) else x for x in inputs]
        for i in self.which:
            arguments[i].attach_grad()
        with autograd.record(self.train_mode):
            outputs = self.outputs(arguments)
        live = [(y, _array(h.astype(y.dtype))) for y, h in zip(outputs, self.head, strict=True) if y._node is not None]
        return arguments, [y for y, _ in live], [h for _, h in live]

    def _gradients(self, arguments: Sequence[Any], heads: list[NDArray], gradients: Any) -> dict[int, np.ndarray]:
        if heads:
            autograd.backward(heads, gradients, train_mode=self.train_mode)
        return {i: arguments[i].grad.asnumpy() for i in self.which}

    def first(self, inputs: Inputs | None = None) -> dict[int, np.ndarray]:
        """The gradient of each varied input by the tape, at `inputs` of any floating dtype where they are given."""
        return self._gradients(*self._recorded(self.inputs if inputs is None else inputs))

    def second(self) -> dict[int, np.ndarray]:
        """The gradients of the sum over inputs of <direction, gradient>, by going through the tape twice."""
        arguments, outputs, head = self._recorded(self.inputs)
        live: list[NDArray] = []
        if outputs:
            variables = [arguments[i] for i in self.which]
            with autograd.record(self.train_mode):
                for v in variables:  # an input that no output depends on has the gradient 0 and is no error
                    outputs.append(identity(v))
                    head.append(_array(np.zeros(v.shape)))
                gradients = autograd.grad(outputs, variables, head, create_graph=True, train_mode=self.train_mode)
                parts = [g * _array(self.directions[i]) for g, i in zip(gradients, self.which, strict=True)]
            live = [part for part in parts if part._node is not None]
        return self._gradients(arguments, live, None)

    def differences(self, order: int, epsilon: float) -> dict[int, np.ndarray]:
        """What :meth:`first` or :meth:`second` must be, by central differences."""

        def terms(inputs: Inputs) -> Terms:
            return list(self._terms(inputs, order))

        return {i: slopes(terms, self.inputs, i, epsilon) for i in self.which}

    def _terms(self, inputs: Inputs, order: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What is differentiated, as pairs of values and weights."""
        if order == 1:
            yield from zip(self.values(inputs), self.head, strict=True)
        else:
            for i, gradient in self.first(inputs).items():
                yield gradient, self.directions[i]

    def _name(self, which: int) -> str:
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        named = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters[: which + 1]) and which < len(parameters)
        return f"input {which} ({parameters[which].name})" if named else f"input {which}"

    def check(self, order: int = 2, epsilon: float = 1e-6, rtol: float = 2e-5, atol: float = 2e-7) -> None:
        """Compare the derivatives up to `order`; see :func:`check_gradients`."""
        for each in range(1, order + 1):
            expected = self.differences(each, epsilon)
            for i, got in (self.first() if each == 1 else self.second()).items():
                self._compare(each, i, expected[i], got, rtol, atol)

    def _compare(self, order: int, which: int, expected: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> None:
        name = self._name(which)
        if got.shape != expected.shape:
            message = f"the gradient of {name} has the shape {got.shape}, the input {expected.shape}"
            raise GradientError(message, order, which, (), np.nan, np.nan)
        excess = np.abs(got - expected) - (atol + rtol * np.abs(expected))
        wrong = ~(excess <= 0)
        if not wrong.any():
            return
        index = tuple(
            int(k) for k in np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), got.shape)
        )
        what = "the gradient" if order == 1 else "the second-order gradient"
        message = (
            f"{what} of {name} at {index}: expected {expected[index]:.9g} by central differences, got "
            f"{got[index]:.9g}; {wrong.sum()} of {wrong.size} elements are wrong (rtol={rtol:g}, atol={atol:g})"
        )
        raise GradientError(message, order, which, index, float(expected[index]), float(got[index]))


def check_gradients(
    fn: Callable[..., Any],
    inputs: Any,
    order: int = 1,
    *,
    epsilon: float = 1e-6,
    rtol: float = 2e-5,
    atol: float = 2e-7,
    train_mode: bool = True,
    seed: int = 0,
) -> None:
    """Check the gradients that autograd finds for a function against central differences in float64.

    Parameters
    ----------
    fn : callable
        ``fn(*inputs)`` returns an array or a list of arrays. It must give the same values each time. What is
        differentiated is their sum with random weights between 0.5 and 1.5.
    inputs : array or sequence
        NDArrays, NumPy arrays, numbers or None. Arrays of floats are converted to float64 and varied, element by
        element; all others are handed on as they are. An array alone is the only input.
    order : {1, 2}
        Up to which order; 2 also checks the gradients of the gradients.
    epsilon : float
        The step; the slope is ``(f(x + epsilon) - f(x - epsilon)) / (2 epsilon)``.
    rtol, atol : float
        The error allowed, ``atol + rtol |expected|``.
    train_mode : bool
        The training flag while `fn` runs.
    seed : int
        Of the weights with which outputs, and gradients for the second order, are summed to one number.

    Raises
    ------
    GradientError
        An AssertionError. It names the input, the index with the largest error, and what was expected and got there.
    MXNetError
        If nothing can be checked: no input of floats, a result that is not float64, values that change from call to
        call, or a function without second order.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.testing import check_gradients
    >>> check_gradients(lambda x, y: nd.sin(x) * y, [nd.array([1, 2]), nd.array([3, 4])], order=2)
    >>> check_gradients(lambda x: nd.BlockGrad(x) * x, nd.array([1.0, 2.0]))
    Traceback (most recent call last):
        ...
    numbagrad.testing.GradientError: the gradient of input 0 (x) at (1,): expected 3.07914686 by central \
differences, got 1.53957343; 2 of 2 elements are wrong (rtol=2e-05, atol=2e-07)
    """
    if order not in (1, 2):
        raise MXNetError(f"check_gradients: order must be 1 or 2, not {order}")
    if isinstance(inputs, (NDArray, np.ndarray)):
        inputs = [inputs]
    GradientCheck(fn, inputs, seed, train_mode).check(order, epsilon, rtol, atol)
