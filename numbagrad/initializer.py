"""How parameters get their first values.

All random draws come from numbagrad's own stream, so ``random.seed`` reproduces them.
"""

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numbagrad.array import wrote
from numbagrad.kernels import random as draws
from numbagrad.kernels.strided import fill
from numbagrad.launch import launch
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.refusal import guarded
from numbagrad.nd.serialization import load
from numbagrad.ops.casting import write_cast
from numbagrad.ops.layout import size_of
from numbagrad.ops.random import STATE, draw


class InitDesc(str):
    """The name of a parameter, for an initializer to choose by.

    Parameters
    ----------
    name : str
    attrs : dict, optional
        ``__init__`` names the initializer to use whatever the name is.
    global_init : Initializer, optional
        The initializer of the rest.
    """

    attrs: dict[str, Any]
    global_init: Any

    def __new__(cls, name: str, attrs: dict[str, Any] | None = None, global_init: Any = None) -> "InitDesc":
        """Make the name, with its attributes."""
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


# --------------------------------------------------------------------------------------------------- writing


def _set(array: NDArray, value: Any) -> None:
    """Write a number, or values of the same size, over the whole of `array`."""
    flat = array._flat
    if isinstance(value, (bool, int, float, np.generic)):
        if flat.dtype == np.float16:
            write_cast(np.full(flat.size, value, "float32"), flat)
        else:
            launch(fill, value, flat, flat.size)
    else:
        values = value._flat if isinstance(value, NDArray) else np.ascontiguousarray(value).reshape(-1)
        if values.size != flat.size:
            raise ValueError(f"cannot initialise an array of shape {array._shape} from {values.size} values")
        write_cast(values, flat)
    wrote(array._storage)


def _draw(array: NDArray, kernel: Any, *scalars: float) -> None:
    """Fill `array` from the stream; ints (which MXNet cannot draw either) by truncation."""
    flat = array._flat
    if flat.dtype.name in ("float32", "float64"):
        launch(kernel, STATE, flat, flat.size, *scalars)
    else:
        write_cast(draw(kernel, flat.size, np.dtype("float32"), *scalars), flat)
    wrote(array._storage)


def _uniform(array: NDArray, scale: float) -> None:
    if scale == 0:
        _set(array, 0)
    else:
        _draw(array, draws.uniform, -scale, scale)


def _normal(array: NDArray, sigma: float) -> None:
    if sigma == 0:
        _set(array, 0)
    else:
        _draw(array, draws.normal, 0.0, sigma)


# ---------------------------------------------------------------------------------------------- the registry

_REGISTRY: dict[str, type["Initializer"]] = {}


def register(klass: type["Initializer"]) -> type["Initializer"]:
    """Make an :class:`Initializer` class known under its name in lower case; a decorator."""
    _REGISTRY[klass.__name__.lower()] = guarded(klass)
    return klass


def alias(*aliases: str) -> Callable[[type["Initializer"]], type["Initializer"]]:
    """Make the decorated class known under more names."""

    def decorate(klass: type["Initializer"]) -> type["Initializer"]:
        for name in aliases:
            _REGISTRY[name.lower()] = klass
        return klass

    return decorate


def create(initializer: Any, *args: Any, **kwargs: Any) -> "Initializer":
    """An initializer from its name, from what :meth:`Initializer.dumps` gave, or itself.

    Raises
    ------
    AssertionError
        For a name that is not registered, and for anything that is no initializer.
    """
    if isinstance(initializer, Initializer):
        assert len(args) + len(kwargs) == 0, "arguments make no sense with an initializer that exists already"
        return initializer
    assert isinstance(initializer, str), (
        f"an initializer is expected, by name or as an instance, not {type(initializer).__name__}"
    )
    name = initializer
    if name.startswith("["):
        assert len(args) + len(kwargs) == 0, "arguments make no sense with an initializer that was dumped with its own"
        name, kwargs = json.loads(name)
    assert name.lower() in _REGISTRY, (
        f"{name} is not registered. Registered initializers: {', '.join(sorted(_REGISTRY))}; "
        "add your own with initializer.register"
    )
    return _REGISTRY[name.lower()](*args, **kwargs)


# -------------------------------------------------------------------------------------------- the base class


class Initializer:
    """The base class: a subclass writes ``_init_weight(self, name, array)`` and hands its arguments to ``__init__``.

    Called as ``initializer(InitDesc(name), array)`` it goes by the end of the name: ``weight`` is initialised by
    :meth:`_init_weight`, ``bias``, ``beta`` and ``min`` become 0, ``gamma`` and ``max`` become 1. Gluon does not go by
    names: there an initializer always does what it does to a weight.

    Parameters
    ----------
    **kwargs
        The arguments, as :meth:`dumps` writes them.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] | None = None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> "Initializer":
        """Print what is initialised, and the root mean square of its values, or what `print_func` makes of them."""
        self._verbose = verbose
        self._print_func = print_func
        return self

    def dumps(self) -> str:
        """Name and arguments as JSON, from which :func:`create` makes the same again."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Initializer) and type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = object.__hash__

    def __call__(self, desc: Any, arr: NDArray) -> None:
        """Initialise `arr` by the rule for its name.

        Raises
        ------
        ValueError
            For a name that no rule knows.
        """
        if not isinstance(desc, InitDesc):
            warnings.warn(
                "calling an initializer with a plain name is deprecated: use InitDesc(name)",
                DeprecationWarning,
                stacklevel=2,
            )
            desc = InitDesc(desc)
        if desc.global_init is None:
            desc.global_init = self
        chosen = desc.attrs.get("__init__", "")
        if chosen:
            chosen = create(chosen)
            chosen._init_weight(desc, arr)
            self._report(desc, chosen, arr)
            return
        for ending in ("weight", "bias", "gamma", "beta", "min", "max"):
            if desc.endswith(ending):
                getattr(self, f"_init_{ending}")(desc, arr)
                self._report(desc, ending, arr)
                return
        self._init_default(desc, arr)

    def _report(self, desc: InitDesc, how: Any, arr: NDArray) -> None:
        if self._verbose:
            values = arr.asnumpy().astype("float64")
            figure = self._print_func(arr) if self._print_func else f"{np.sqrt(np.square(values).mean()):g}"
            print(f"Initialized {desc} as {how if isinstance(how, str) else how.dumps()}: {figure}")

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _init_weight")

    def _init_bias(self, name: str, arr: NDArray) -> None:
        _set(arr, 0)

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        _set(arr, 1)

    def _init_beta(self, name: str, arr: NDArray) -> None:
        _set(arr, 0)

    def _init_min(self, name: str, arr: NDArray) -> None:
        _set(arr, 0)

    def _init_max(self, name: str, arr: NDArray) -> None:
        _set(arr, 1)

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ValueError(
            f"no rule initialises a parameter called {name}: only names that end in weight, bias, gamma, beta, min "
            "or max have one; give the parameter an initializer of its own"
        )


# ------------------------------------------------------------------------------------------- the initializers


@alias("zeros")
@register
class Zero(Initializer):
    """Zeros."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _set(arr, 0)


@alias("ones")
@register
class One(Initializer):
    """Ones."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _set(arr, 1)


@register
class Constant(Initializer):
    """A number everywhere, or the values of an array of the parameter's size.

    Parameters
    ----------
    value : number or NDArray
    """

    def __init__(self, value: Any = 0.0) -> None:
        super().__init__(value=value)
        self.value = value

    def dumps(self) -> str:
        """Name and value as JSON."""
        if isinstance(self.value, (NDArray, np.ndarray, np.generic)):
            self._kwargs["value"] = self.value.tolist()
        return super().dumps()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.dumps() == other.dumps()

    __hash__ = object.__hash__

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _set(arr, self.value)


@register
class Uniform(Initializer):
    """Uniform on [-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Normal with mean 0 and standard deviation `sigma`."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """`scale` times a matrix with orthonormal rows or columns (Saxe, McClelland and Ganguli 2013).

    Parameters
    ----------
    scale : float
    rand_type : {"uniform", "normal"}
        The distribution of the random matrix whose singular vectors are taken.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        rows = arr._shape[0]
        columns = size_of(arr._shape[1:])
        if self.rand_type == "uniform":
            values = draw(draws.uniform, rows * columns, np.dtype("float64"), -1.0, 1.0)
        elif self.rand_type == "normal":
            values = draw(draws.normal, rows * columns, np.dtype("float64"), 0.0, 1.0)
        else:
            raise ValueError(f"Orthogonal: rand_type must be uniform or normal, not {self.rand_type!r}")
        left, _, right = np.linalg.svd(values.reshape(rows, columns), full_matrices=False)
        _set(arr, self.scale * (left if left.shape == (rows, columns) else right))


@register
class Xavier(Initializer):
    """Values of a variance that keeps signals of one size from layer to layer (Glorot and Bengio 2010).

    Parameters
    ----------
    rnd_type : {"uniform", "gaussian"}
        Uniform on [-s, s), or normal with standard deviation s.
    factor_type : {"avg", "in", "out"}
        Which of the numbers of inputs and outputs of a unit is `f` in ``s = sqrt(magnitude / f)``.
    magnitude : float

    Raises
    ------
    ValueError
        From the call, for an array of fewer than two axes and for unknown types.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr._shape
        if len(shape) < 2:
            raise ValueError(
                f"{type(self).__name__} cannot initialise {name} of shape {shape}: it needs two axes at least"
            )
        field = size_of(shape[2:])
        fan_in, fan_out = shape[1] * field, shape[0] * field
        factors = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise ValueError(f"Xavier: factor_type must be avg, in or out, not {self.factor_type!r}")
        scale = math.sqrt(self.magnitude / factors[self.factor_type])
        if self.rnd_type == "uniform":
            _uniform(arr, scale)
        elif self.rnd_type == "gaussian":
            _normal(arr, scale)
        else:
            raise ValueError(f"Xavier: rnd_type must be uniform or gaussian, not {self.rnd_type!r}")


@register
class MSRAPrelu(Xavier):
    """Normal :class:`Xavier` of magnitude 2 / (1 + slope^2), for layers before a PReLU of that slope.

    K. He et al., Delving Deep into Rectifiers, 2015.
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """The weights of a bilinear interpolation, for upsampling by transposed convolution."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr._shape
        factor = math.ceil(shape[3] / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        column = 1 - np.abs(np.arange(shape[3]) / factor - center)
        row = 1 - np.abs(np.arange(shape[2]) / factor - center)
        _set(arr, np.broadcast_to(np.outer(row, column), shape))


@register
class LSTMBias(Initializer):
    """Zeros, but `forget_bias` for the second quarter, which is the forget gate's."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        values = np.zeros(arr._flat.size, "float32")
        hidden = values.size // 4
        values[hidden : 2 * hidden] = self.forget_bias
        _set(arr, values)

    _init_bias = _init_weight


class Mixed:
    """Several initializers, each for the names that its pattern is found in; the first that fits counts.

    Raises
    ------
    AssertionError
        If the numbers of patterns and initializers differ.
    ValueError
        From the call, if no pattern fits.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]) -> None:
        assert len(patterns) == len(initializers), (
            f"Mixed: {len(patterns)} patterns but {len(initializers)} initializers"
        )
        self.map = [(re.compile(pattern), initializer) for pattern, initializer in zip(patterns, initializers)]

    def __call__(self, name: Any, arr: NDArray) -> None:
        """Initialise `arr`, called `name`."""
        for pattern, initializer in self.map:
            if pattern.match(name):
                initializer(name, arr)
                return
        raise ValueError(f'no pattern of Mixed matches {name}; add ".*" as the last one')


class Load:
    """Initialises from arrays by name.

    Parameters
    ----------
    param : dict of str to NDArray, or the name of a file with one
        ``arg:`` and ``aux:`` before names are dropped.
    default_init : callable, optional
        For names that are not in it.
    verbose : bool
        Print what comes from where.

    Raises
    ------
    AssertionError
        From the call, for another shape, or a name that is missing without `default_init`.
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        if isinstance(param, str):
            param = load(param)
        assert isinstance(param, Mapping), f"Load: a dict of arrays is needed, not {type(param).__name__}"
        self.param = {name[4:] if name.startswith(("arg:", "aux:")) else name: arr for name, arr in param.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: Any, arr: NDArray) -> None:
        """Initialise `arr`, called `name`."""
        if name in self.param:
            found = self.param[name]
            assert found.shape == arr.shape, (
                f"Load: {name} has shape {arr.shape}, but what was loaded has {found.shape}"
            )
            _set(arr, found)
        else:
            assert self.default_init is not None, f"Load: {name} was not loaded, and there is no default_init"
            self.default_init(name, arr)
        if self.verbose:
            print(f"Initialized {name} by {'loading' if name in self.param else 'default'}")
