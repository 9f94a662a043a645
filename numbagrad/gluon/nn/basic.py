"""Containers and the layers that most networks are made of."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from numbagrad import nd
from numbagrad.errors import MXNetError
from numbagrad.gluon.block import Block, HybridBlock, indent
from numbagrad.gluon.nn.activations import Activation
from numbagrad.gluon.parameter import Parameter
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.dense import ACTIVATIONS, fully_connected
from numbagrad.ops.layout import size_of
from numbagrad.ops.shaping import reshape

# ------------------------------------------------------------------------------------------------- containers


class _Container(Block):
    """What both kinds of sequences share."""

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            if not isinstance(block, Block):
                raise TypeError(f"{type(self).__name__}.add: takes Blocks, not {type(block).__name__}")
            self.register_child(block)

    def forward(self, x: Any, *args: Any) -> Any:
        """Each block on what the one before it gave."""
        for block in self._children.values():
            if args:
                x, args = block(x, *args), ()
            else:
                x = block(x) if block._hooked else block.forward(x)
            if type(x) is not NDArray and isinstance(x, (tuple, list)) and x:
                x, args = x[0], tuple(x[1:])
        return (x, *args) if args else x

    def __repr__(self) -> str:
        lines = [f"  ({key}): {indent(repr(block))}" for key, block in self._children.items()]
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"

    def __getitem__(self, key: int | slice) -> Any:
        found = list(self._children.values())[key]
        if isinstance(found, list):
            part = type(self)(prefix=self._prefix)
            part.add(*found)
            return part
        return found

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._children.values())


class Sequential(_Container):
    """Blocks one after the other.

    Examples
    --------
    >>> from numbagrad import gluon, nd
    >>> net = gluon.nn.Sequential()
    >>> net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net(nd.ones((3, 5))).shape
    (3, 2)
    """

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize the children."""
        if self._children and all(isinstance(child, HybridBlock) for child in self._children.values()):
            warnings.warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                "HybridSequential for the best performance.",
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Container, HybridBlock):
    """HybridBlocks one after the other."""


# ------------------------------------------------------------------------------------------------------ dense


class Dense(HybridBlock):
    """A dense layer: ``activation(x weight' + bias)``, in one kernel each way.

    Parameters
    ----------
    units : int
        The number of outputs.
    activation : str, optional
        ``relu``, ``sigmoid``, ``tanh``, ``softrelu`` or ``softsign``.
    use_bias : bool
    flatten : bool
        Take all axes of the input but the first as one; without it the layer acts on the last axis.
    dtype : str or NumPy dtype
    weight_initializer, bias_initializer : str or Initializer, optional
        For the weight the block's initializer is the default.
    in_units : int
        The number of inputs; 0: the first input tells.

    Raises
    ------
    MXNetError
        From the call, for an input of another width.

    Examples
    --------
    >>> from numbagrad import gluon, nd
    >>> layer = gluon.nn.Dense(2, in_units=3)
    >>> layer.initialize("ones")
    >>> layer(nd.array([[1, 2, 3]])).tolist()
    [[6.0, 6.0]]
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._units = units
        self._in_units = in_units
        self._flatten = flatten
        self._code = 0
        self.act: Activation | None
        with self.name_scope():
            self.weight: Parameter = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True
            )
            self.bias: Parameter | None = None
            if use_bias:
                self.bias = self.params.get(
                    "bias", shape=(units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True
                )
            self.act = None if activation is None else Activation(activation, prefix=activation + "_")

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child; as ``act`` it becomes the activation."""
        super().register_child(block, name)
        if name == "act":
            if isinstance(block, Activation):
                block._watchers.append(self._choose)
            self._choose(block)

    def _choose(self, act: Any) -> None:
        """Hand the activation to the kernel, unless it has hooks or is no plain one: code -1."""
        plain = type(act) is Activation and not act._hooked and act._act_type in ACTIVATIONS
        object.__setattr__(self, "_code", ACTIVATIONS[act._act_type][0] if plain else -1)

    def forward(self, x: Any) -> NDArray:
        """The outputs for `x`, of shape (batch, units)."""
        weight = self.weight._data
        bias: Any = self.bias
        if bias is not None:
            bias = bias._data
            if bias is None:
                return self._forward_any(x)
        code = self._code
        if type(x) is NDArray and type(weight) is NDArray and len(x._shape) == 2 and code >= 0:
            try:
                return fully_connected(x, weight, bias, code)
            except MXNetError as error:
                raise type(error)(f"{self.name}: {self!r}: {error}") from None
        return self._forward_any(x)

    def _forward_any(self, x: Any) -> NDArray:
        """Inputs of any number of axes, parameters that wait for their shape or have replicas, other activations."""
        if not isinstance(x, NDArray):
            raise ValueError(f"{self.name}: the input must be an NDArray, not {type(x).__name__}; use nd.array")
        shape = x._shape
        if not shape:
            raise MXNetError(f"{self.name}: {self!r} cannot take an input without axes")
        rows = shape[:1] if self._flatten else shape[:-1]
        width = size_of(shape[1:]) if self._flatten else shape[-1]
        if self.weight._deferred_init is not None or (self.bias is not None and self.bias._deferred_init is not None):
            self.infer_shape(x)
            self.weight._finish_deferred_init()
            if self.bias is not None:
                self.bias._finish_deferred_init()
        weight = self._replica(self.weight, x)
        bias = None if self.bias is None else self._replica(self.bias, x)
        flat = (size_of(rows), width)
        if width != weight._shape[1]:
            raise MXNetError(
                f"{self.name}: {self!r} cannot take an input of shape {shape}: it has {weight._shape[1]} inputs, "
                f"not {width}"
            )
        y = fully_connected(x if shape == flat else reshape(x, shape=flat), weight, bias, max(self._code, 0))
        if len(rows) != 1:
            y = reshape(y, shape=(*rows, self._units))
        return y if self._code >= 0 else self.act(y)  # type: ignore[misc]

    @staticmethod
    def _replica(parameter: Parameter, x: NDArray) -> NDArray:
        return parameter.data(x.context) if type(parameter._data) is list else parameter.data()

    def infer_shape(self, *args: Any) -> None:
        """Take the number of inputs from the first one."""
        shape = args[0].shape
        self.weight.shape = (self._units, size_of(shape[1:]) if self._flatten else shape[-1])

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> NDArray:
        """The same from given parameters."""
        y = F.FullyConnected(x, weight, bias, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten)
        return y if self.act is None else self.act(y)

    def __repr__(self) -> str:
        width = self.weight.shape[1]  # type: ignore[index]
        return f"{type(self).__name__}({width or None} -> {self._units}, {self.act or 'linear'})"


# ---------------------------------------------------------------------------------------------- small layers


class Dropout(HybridBlock):
    """Sets elements to 0 with probability `rate` in training and divides the others by ``1 - rate``.

    Parameters
    ----------
    rate : float
    axes : tuple of int
        Axes along which all elements share one draw.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._rate = rate
        self._axes = axes

    def forward(self, x: Any) -> NDArray:
        """`x` with elements dropped."""
        return nd.Dropout(x, p=self._rate, axes=self._axes)

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The same with the functions of `F`."""
        return F.Dropout(x, p=self._rate, axes=self._axes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Flatten(HybridBlock):
    """All axes but the first as one."""

    def forward(self, x: Any) -> NDArray:
        """`x` in the shape (batch, rest)."""
        return nd.flatten(x)

    def hybrid_forward(self, F: Any, x: Any) -> NDArray:
        """The same with the functions of `F`."""
        return F.flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Embedding(HybridBlock):
    """A vector for each of `input_dim` numbers, which is trained.

    Parameters
    ----------
    input_dim : int
        How many there are.
    output_dim : int
        The length of a vector.
    dtype : str or NumPy dtype
    weight_initializer : str or Initializer, optional
    sparse_grad : bool
        Accepted for MXNet's sake; gradients are dense.

    Notes
    -----
    Indices have any number dtype; those out of range are clipped, as in MXNet.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._input_dim = input_dim
        self._output_dim = output_dim
        self._dtype = dtype
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> NDArray:
        """The vectors of the numbers in `x`, of the shape of `x` and output_dim."""
        return F.Embedding(x, weight, input_dim=self._input_dim, output_dim=self._output_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._input_dim} -> {self._output_dim}, {self._dtype})"


# ------------------------------------------------------------------------------------------------- functions


class Lambda(Block):
    """A function as a block.

    Parameters
    ----------
    function : callable or str
        Called with the inputs; or the name of a function of ``nd``.

    Raises
    ------
    AssertionError
        If ``nd`` has no function of that name.
    ValueError
        For anything else.
    """

    def __init__(self, function: Callable[..., Any] | str, prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._func, self._func_name = _named(function)

    def forward(self, *args: Any) -> Any:
        """The function of the inputs."""
        return self._func(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


class HybridLambda(HybridBlock):
    """A function as a HybridBlock.

    Parameters
    ----------
    function : callable or str
        Called with ``nd`` and the inputs; or the name of a function of ``nd``.

    Raises
    ------
    AssertionError, ValueError
        As :class:`Lambda`.
    """

    def __init__(self, function: Callable[..., Any] | str, prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        found, self._func_name = _named(function)
        self._func = (lambda F, *args: found(*args)) if isinstance(function, str) else found

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """The function of the inputs."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


def _named(function: Any) -> tuple[Callable[..., Any], str]:
    if isinstance(function, str):
        assert hasattr(nd, function), f"Function name {function} is not found in ndarray."
        return getattr(nd, function), function
    if callable(function):
        return function, getattr(function, "__name__", type(function).__name__)
    raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")
