"""NDArray: the array that programs hold."""

from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from numbagrad import autograd, tape
from numbagrad.array import Array, wrote
from numbagrad.autograd import backward
from numbagrad.context import CPU0, Context
from numbagrad.dispatch import check_writable, run_binary, run_unary, update
from numbagrad.errors import MXNetError
from numbagrad.launch import reading
from numbagrad.nd.reshaping import resolve_shape
from numbagrad.ops import arithmetic as a
from numbagrad.ops.casting import cast, cast_flat, write_cast
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.registry import Elementwise
from numbagrad.ops.shaping import identity, reshape, transpose
from numbagrad.tape import Leaf, place, readable, rebound, state

_NUMBERS = (int, float, np.generic)
_PLAIN = frozenset({int, float})


def _operator(op: Elementwise) -> Callable[["NDArray", Any], "NDArray"]:
    """The method of an operator, with the array on the left."""

    def method(self: "NDArray", other: Any) -> Any:
        kind = type(other)
        if kind is NDArray or kind in _PLAIN or isinstance(other, _NUMBERS):
            return run_binary(op, self, other)
        return NotImplemented

    return method


def _reflected(op: Elementwise) -> Callable[["NDArray", Any], "NDArray"]:
    """The method of an operator, with the array on the right of a number."""
    return lambda self, other: run_binary(op, other, self) if isinstance(other, _NUMBERS) else NotImplemented


_power, _equal, _not_equal = _operator(a.power), _operator(a.equal), _operator(a.not_equal)


class NDArray(Array):
    """An n-dimensional array of one dtype.

    Make one with :func:`numbagrad.nd.array`, :func:`~numbagrad.nd.zeros` and their kin. Operators work elementwise with
    NumPy's broadcasting, on arrays and numbers; dtypes mix by category (bool < int < float), numbers never widen.
    Comparisons give 1 and 0 in the dtype of the operands.
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    if TYPE_CHECKING:  # numbagrad.nd attaches it

        def __getitem__(self, key: Any) -> "NDArray": ...

    # ---------------------------------------------------------------------------------------- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        node, recording = place(self), state.recording
        state.recording = node is not None and (recording or type(node) is not Leaf)
        try:
            view = self.reshape(shape)
        finally:
            state.recording = recording
        if type(node) is Leaf and not recording:
            view._node = Leaf(node.gradient.reshape(view._shape), node.request)
            view._node.flag = node.flag
        self._shape, self._node = view._shape, view._node
        rebound(self)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._flat.size

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> Any:
        """The NumPy scalar class of the elements."""
        return self._flat.dtype.type

    @property
    def context(self) -> Context:
        """The device label."""
        return CPU0 if self._context is None else self._context

    ctx = context

    @property
    def stype(self) -> str:
        """The storage type: always ``default``."""
        return "default"

    @property
    def writable(self) -> bool:
        """Whether the array can be written to: always."""
        return True

    @property
    def handle(self) -> int:
        """The address of the first element."""
        return self._flat.ctypes.data

    @property
    def T(self) -> "NDArray":
        """The array with its axes reversed; itself below two axes."""
        ndim = len(self._shape)
        return self if ndim < 2 else transpose(self, axes=tuple(range(ndim - 1, -1, -1)))

    def __len__(self) -> int:
        if not self._shape:
            raise IndexError("an array of no dimension has no length")
        return self._shape[0]

    def __iter__(self) -> Iterator["NDArray"]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shape = "x".join(map(str, self._shape))
        return f"\n{self.asnumpy()!s}\n<{type(self).__name__} {shape} @{self.context}>"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self._flat.size != 1:
            raise TypeError(f"format {spec!r} is for an array of one element, not of shape {self._shape}")
        return format(self.item(), spec)

    def __contains__(self, value: Any) -> bool:
        if value is None:
            return False
        return (value.asnumpy() if isinstance(value, NDArray) else value) in self.asnumpy()

    __hash__ = object.__hash__

    # ------------------------------------------------------------------------------------ out to Python

    def asnumpy(self) -> np.ndarray:
        """The elements as a new NumPy array of the same shape and dtype."""
        reading()
        return self._flat.copy().reshape(self._shape)

    def asscalar(self) -> Any:
        """The value of an array of one element, as a NumPy scalar.

        Raises
        ------
        ValueError
            For any other size.
        """
        if self._flat.size != 1:
            raise ValueError(f"asscalar: the array has {self._flat.size} elements (shape {self._shape}), not one")
        reading()
        return self._flat[0]

    def item(self) -> Any:
        """The value of an array of one element, as a Python number."""
        return self.asscalar().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.asnumpy().tolist()

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __index__(self) -> int:
        if self._flat.dtype.kind not in "iu" or self._flat.size != 1:
            raise TypeError(f"only an int array of one element can be an index, not {self._flat.dtype} {self._shape}")
        return int(self.asscalar())

    def __bool__(self) -> bool:
        if self._flat.size > 1:
            raise ValueError(
                f"the truth of an array of several elements (shape {self._shape}) is ambiguous; "
                "reduce it to one element"
            )
        reading()
        return self._flat.size == 1 and bool(self._flat[0])

    def wait_to_read(self) -> None:
        """Nothing: every result is there when its call returns."""

    # ------------------------------------------------------------------------------ copies, dtype, place

    def copy(self) -> "NDArray":
        """A copy; recorded while recording."""
        return identity(self)

    def astype(self, dtype: Any, copy: bool = True) -> "NDArray":
        """The array in another dtype; itself where the dtype is that and `copy` is False."""
        target = as_dtype(dtype)
        if self._flat.dtype == target:
            return identity(self) if copy else self
        return cast(self, dtype=target)

    def as_in_context(self, ctx: Context) -> "NDArray":
        """The array under another device label; itself where it has that label."""
        if self.context == ctx:
            return self
        _refuse_gpu(ctx)
        result = identity(self)
        result._context = ctx
        return result

    as_in_ctx = as_in_context

    def copyto(self, other: Any) -> Any:
        """Copy into another array of the same shape (and return it), or to another device label.

        Raises
        ------
        MXNetError
            For another shape.
        TypeError
            For anything but an NDArray or Context.
        """
        if isinstance(other, Context):
            _refuse_gpu(other)
            result = identity(self)
            result._context = other
            return result
        if not isinstance(other, NDArray):
            raise TypeError(f"copyto: takes an NDArray or a Context, not {type(other).__name__}")
        if other is self:
            import warnings

            warnings.warn("copyto: an array cannot be copied onto itself", RuntimeWarning, stacklevel=3)
            return False
        if other._shape != self._shape:
            raise MXNetError(f"copyto: shape {self._shape} cannot be copied to shape {other._shape}")
        other._assign(self)
        return other

    def _assign(self, value: "NDArray") -> None:
        """Write `value`, of the same shape, over the whole array; while recording, the copy is recorded."""
        check_writable(self, "x[:] = y")
        same = value._storage is self._storage
        write_cast(cast_flat(value._flat, value._flat.dtype) if same else value._flat, self._flat)
        wrote(self._storage)
        if state.recording and value._node is not None:
            self._node = cast(identity(value), dtype=self._flat.dtype)._node
            rebound(self)

    def detach(self) -> "NDArray":
        """An array on the same memory, off the graph and without a gradient."""
        result = NDArray(self._flat, self._shape, self._storage)
        result._context = self._context
        return result

    # ------------------------------------------------------------------------------------------ autograd

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make the array a variable: backward puts its gradient into :attr:`grad`.

        Parameters
        ----------
        grad_req : {"write", "add", "null"}
            Overwrite the gradient at each backward, add to it, or want none.
        stype : str, optional
            Accepted for MXNet's sake; gradients are dense.

        Raises
        ------
        KeyError
            For another `grad_req`.

        Notes
        -----
        The history of the array is dropped. The gradient starts as zeros; of an integer array it is float32.
        """
        autograd.attach_grad(self, grad_req)

    @property
    def grad(self) -> "NDArray | None":
        """The gradient buffer of a marked array, sharing memory with it; None for others."""
        node = self._node
        if type(node) is not Leaf:
            return None
        return readable(node).detach()

    @property
    def _fresh_grad(self) -> int:
        return int(type(self._node) is Leaf and self._node.flag[0] == 1)

    @_fresh_grad.setter
    def _fresh_grad(self, value: Any) -> None:
        if type(self._node) is Leaf:
            self._node.flag[0] = int(bool(value))

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of this array for the marked arrays below it; see :func:`.autograd.backward`."""
        backward(self, out_grad, retain_graph, train_mode)

    # ----------------------------------------------------------------------------------------- operators

    def __neg__(self) -> "NDArray":
        return run_unary(a.negative, self)

    def __pos__(self) -> "NDArray":
        return self

    def __abs__(self) -> "NDArray":
        return run_unary(a.absolute, self)

    __add__ = _operator(a.add)
    __radd__ = __add__
    __sub__ = _operator(a.subtract)
    __rsub__ = _reflected(a.subtract)
    __mul__ = _operator(a.multiply)
    __rmul__ = __mul__
    __truediv__ = _operator(a.divide)
    __rtruediv__ = _reflected(a.divide)
    __floordiv__ = _operator(a.floor_divide)
    __rfloordiv__ = _reflected(a.floor_divide)
    __mod__ = _operator(a.mod)
    __rmod__ = _reflected(a.mod)

    def __pow__(self, other: Any) -> "NDArray":
        if type(other) is not NDArray and isinstance(other, _NUMBERS) and other == 2:
            return run_unary(a.square, self)
        return _power(self, other)

    __rpow__ = _reflected(a.power)

    def __eq__(self, other: object) -> Any:
        return False if other is None else _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return True if other is None else _not_equal(self, other)

    __lt__ = _operator(a.lesser)
    __le__ = _operator(a.lesser_equal)
    __gt__ = _operator(a.greater)
    __ge__ = _operator(a.greater_equal)

    def __iadd__(self, other: Any) -> "NDArray":
        return update(a.add, self, other, "+=")

    def __isub__(self, other: Any) -> "NDArray":
        return update(a.subtract, self, other, "-=")

    def __imul__(self, other: Any) -> "NDArray":
        return update(a.multiply, self, other, "*=")

    def __itruediv__(self, other: Any) -> "NDArray":
        return update(a.divide, self, other, "/=")

    def __imod__(self, other: Any) -> "NDArray":
        return update(a.mod, self, other, "%=")

    # -------------------------------------------------------------------------------------------- shapes

    def reshape(self, *shape: int | Sequence[int], **kwargs: Any) -> "NDArray":
        """The elements in another shape; a view on the same memory.

        Parameters
        ----------
        *shape : int, or one tuple; or ``shape=``
            Lengths, and codes that are resolved from the left: ``0`` keeps an axis, ``-1`` is inferred (once), ``-2``
            keeps all that remain, ``-3`` merges two axes, ``-4, a, b`` splits one into a and b (one may be -1).
        reverse : bool
            Resolve the codes from the right.

        Raises
        ------
        MXNetError, ValueError
            If the sizes do not agree.
        """
        reverse = kwargs.pop("reverse", False)
        if "shape" in kwargs:
            shape = (kwargs.pop("shape"),)
        if kwargs:
            raise TypeError(f"reshape: unexpected keyword {', '.join(kwargs)}; it takes shape and reverse")
        assert shape, "reshape: a shape must be given"
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        codes = tuple([index(n) for n in shape])  # type: ignore[arg-type]
        return reshape(self, shape=resolve_shape(self._shape, codes, reverse))


def _refuse_gpu(ctx: Context) -> None:
    if ctx.device_type == "gpu":
        raise MXNetError(f"there is no {ctx}: numbagrad computes on the CPU")


tape.new = autograd.NDArray = NDArray
