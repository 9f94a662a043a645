"""Functions whose gradient the user writes."""

from typing import Any

from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import floating
from numbagrad.ops.shaping import identity
from numbagrad.tape import Node, Projection, place, state


class _Recorded(tape.Rule):
    """A call of a Function as the tape sees it: an op of its own."""

    may_fail = True
    differentiable = True

    def __init__(self, function: "Function", dtypes: list[Any], multi: bool) -> None:
        self.function = function
        self.name = type(function).__name__
        self.dtypes = dtypes
        self.multi = multi

    def vjp(self, node: Node, *gradients: Any) -> list[Any]:
        if state.recording:
            raise MXNetError(f"{self.name}: the gradient of a Function cannot be differentiated again")
        try:
            # Copies: user code may write to what it gets.
            results = self.function.backward(*[identity(gradient) for gradient in gradients])
        except Exception as error:
            raise MXNetError(f"{self.name}.backward raised {type(error).__name__}: {error}") from error
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(results) != len(self.dtypes):
            raise MXNetError(f"{self.name}.backward returned {len(results)} gradients for {len(self.dtypes)} inputs")
        for i, result in enumerate(results):
            if not isinstance(result, tape.new):  # type: ignore[arg-type]
                raise MXNetError(
                    f"{self.name}.backward returned {type(result).__name__} instead of an NDArray for input {i}"
                )
            if result._shape != node.shapes[i]:
                raise MXNetError(
                    f"{self.name}.backward returned a gradient of shape {result._shape} for input {i} "
                    f"of shape {node.shapes[i]}"
                )
            # A copy here too: what is given away must not change when the user's array does.
            results[i] = cast(identity(result.detach()), dtype=self.dtypes[i])
        return results


class Function:
    """A function with a gradient of its own: subclass it, write ``forward`` and ``backward``, call an instance once.

    ``forward(*arrays)`` runs unrecorded and returns one array or a tuple or list of them; ``backward`` gets one
    gradient an output and returns one an input, also for inputs that need none.

    Raises
    ------
    AssertionError
        When an instance is called a second time.
    MXNetError
        From ``backward()`` of the graph, where the user's ``backward`` raises or returns the wrong number, type or
        shape. No gradient has been written then.

    Examples
    --------
    >>> from numbagrad import autograd, nd
    >>> class Cube(autograd.Function):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return x * x * x
    ...     def backward(self, dy):
    ...         (x,) = self.saved_tensors
    ...         return dy * 3 * x * x
    >>> x = nd.array([2.0])
    >>> x.attach_grad()
    >>> with autograd.record():
    ...     y = Cube()(x)
    >>> y.backward()
    >>> float(x.grad)
    12.0
    """

    _used = False
    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for ``backward``, as :attr:`saved_tensors`."""
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def backward(self, *output_grads: Any) -> Any:
        """Compute the gradients of the inputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define backward")

    def __call__(self, *inputs: Any) -> Any:
        """Run ``forward``, and record the call with ``backward`` as its gradient."""
        assert not self._used, f"{type(self).__name__}: each Function instance can only be called once"
        self._used = True
        recording = state.recording
        state.recording = False
        try:
            outputs = self.forward(*inputs)
        finally:
            state.recording = recording
        if not recording:
            return outputs
        parents = tuple([place(array) for array in inputs])
        if all(parent is None for parent in parents):
            return outputs
        several = isinstance(outputs, (list, tuple))
        results = list(outputs) if several else [outputs]
        for result in results:
            if not isinstance(result, tape.new):  # type: ignore[arg-type]
                raise TypeError(f"{type(self).__name__}.forward returned {type(result).__name__} instead of an NDArray")
            if any(result is array for array in inputs) and result._node is not None:
                raise MXNetError(
                    f"{type(self).__name__}.forward returned one of its inputs; return a copy. Inplace operations "
                    "(+=, -=, x[:]=, etc) are not supported when recording with autograd"
                )
        results = [result.detach() for result in results]
        op = _Recorded(self, [floating(array._flat.dtype) for array in inputs], several)
        shapes = [array._shape for array in inputs] + [result._shape for result in results]
        node = Node(op, parents, (), (), shapes, {}, None)
        if several:
            node.outputs = [(result._shape, result._flat.dtype) for result in results]
            for i, result in enumerate(results):
                result._node = Projection(node, i)
            return type(outputs)(results)
        results[0]._node = node
        return results[0]
