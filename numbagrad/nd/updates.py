"""MXNet's update operators: one step of an optimiser on one array, with the states written in place.

The weight is left alone unless it is `out` too. ``clip_gradient`` (and ``clip_weights``) of 0 or less is off.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.kernels import adaptive
from numbagrad.kernels import optimizer as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.launch import launch
from numbagrad.nd.arguments import REQUIRED, check_out, expect_array, spelled
from numbagrad.nd.indexing import setitem
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic as a
from numbagrad.ops.casting import cast_flat, write_cast
from numbagrad.ops.dtypes import FLOAT32

_HALF = np.dtype("float16")
_INFINITE = float("inf")


class _Update(NamedTuple):
    """An update operator."""

    kernel: Kernel
    states: tuple[str, ...]
    row: tuple[Any, ...]
    """What stands in a row of the kernel's `hyper` between clipping and count: names of parameters, or numbers."""
    defaults: dict[str, Any]
    made: float | str = 0.0
    """The number of steps made before, or the name of the parameter that is the number of this one."""


_COMMON = {"wd": 0.0, "rescale_grad": 1.0, "clip_gradient": -1.0}
_LAZY = {**_COMMON, "lazy_update": True}
_RMS = {"epsilon": 1e-8, **_COMMON, "clip_weights": -1.0}

_UPDATES = {
    "sgd_update": _Update(kernels.SGD.array, (), (0.0,), {"lr": REQUIRED, **_LAZY}),
    "sgd_mom_update": _Update(
        kernels.SGD_MOMENTUM.array, ("mom",), ("momentum",), {"lr": REQUIRED, "momentum": 0.0, **_LAZY}
    ),
    "nag_mom_update": _Update(
        adaptive.NAG.array, ("mom",), ("momentum",), {"lr": REQUIRED, "momentum": 0.0, **_COMMON}
    ),
    # After infinitely many steps nothing is left of Adam's correction, which this operator leaves to the rate.
    "adam_update": _Update(
        kernels.ADAM.array,
        ("mean", "var"),
        ("beta1", "beta2", "epsilon", 1.0),
        {"lr": REQUIRED, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, **_LAZY},
        _INFINITE,
    ),
    "rmsprop_update": _Update(
        adaptive.RMSPROP.array,
        ("n",),
        ("gamma1", 0.0, "epsilon", "clip_weights"),
        {"lr": REQUIRED, "gamma1": 0.95, **_RMS},
    ),
    "rmspropalex_update": _Update(
        adaptive.RMSPROP_CENTERED.array,
        ("n", "g", "delta"),
        ("gamma1", "gamma2", "epsilon", "clip_weights"),
        {"lr": REQUIRED, "gamma1": 0.95, "gamma2": 0.9, **_RMS},
    ),
    "ftrl_update": _Update(
        adaptive.FTRL.array, ("z", "n"), ("lamda1", "beta"), {"lr": REQUIRED, "lamda1": 0.01, "beta": 1.0, **_COMMON}
    ),
    "ftml_update": _Update(
        adaptive.FTML.array,
        ("d", "v", "z"),
        ("beta1", "beta2", "epsilon"),
        {
            "lr": REQUIRED,
            "beta1": 0.6,
            "beta2": 0.999,
            "epsilon": 1e-8,
            "t": None,
            "wd": 0.0,
            "rescale_grad": 1.0,
            "clip_grad": -1.0,
        },
        "t",
    ),
    "signsgd_update": _Update(adaptive.SIGNSGD.array, (), (0.0, 0.0), {"lr": REQUIRED, **_COMMON}),
    "signum_update": _Update(
        adaptive.SIGNUM.array,
        ("mom",),
        ("momentum", "wd_lh"),
        {"lr": REQUIRED, "momentum": 0.0, **_COMMON, "wd_lh": 0.0},
    ),
}


def _checked(name: str, weight: Any, others: dict[str, Any]) -> None:
    """See that gradient and states have the shape of the weight."""
    expect_array(name, weight, *others.values())
    for title, array in others.items():
        if array._shape != weight._shape:
            raise MXNetError(f"{name}: {title} of shape {array._shape} does not fit a weight of shape {weight._shape}")


def _run(kernel: Kernel, weight: np.ndarray, grad: NDArray, states: list[NDArray], row: Any, rescale: float) -> None:
    """Update the flat `weight`, and the states, in place."""
    dtype = FLOAT32 if weight.dtype == _HALF else weight.dtype
    targets = [weight, *[state._flat for state in states]]
    flats = [flat if flat.dtype == dtype else cast_flat(flat, dtype) for flat in targets]
    slope = grad._flat if grad._flat.dtype == dtype else cast_flat(grad._flat, dtype)
    launch(kernel, flats[0], slope, *flats[1:], row, rescale)
    for flat, target in zip(flats, targets, strict=True):
        if flat is not target:
            write_cast(flat, target)


def _update_operator(name: str, update: _Update, wide: bool) -> Any:
    """The operator; with `wide` the one that keeps a float32 copy of the weight as its last state."""
    title = f"mp_{name}" if wide else name

    def call(weight: NDArray, grad: NDArray, out: Any, **given: Any) -> NDArray:
        states = [given[state] for state in update.states]
        arrays = dict(zip(("grad", *update.states), (grad, *states), strict=True))
        if wide:
            arrays["weight32"] = given["weight32"]
        _checked(title, weight, arrays)
        if weight._flat.dtype.kind != "f":
            raise MXNetError(f"{title}: a weight is of a floating-point dtype, not {weight._flat.dtype}")
        for array in list(arrays.values())[1:]:
            check_writable(array, title)
        if out is not None:
            check_out(title, weight._shape, out)
        clip = given["clip_grad" if "clip_grad" in given else "clip_gradient"]
        middle = [given[entry] if isinstance(entry, str) else entry for entry in update.row]
        made = update.made
        if isinstance(made, str):
            if given[made] is None:
                raise TypeError(f"{title}: {made}, the number of the step, must be given")
            made = given[made] - 1
        row = np.array([float(number) for number in (given["lr"], given["wd"], clip, *middle, made)])
        result = weight
        if out is not weight:
            result = NDArray(cast_flat(weight._flat, weight._flat.dtype), weight._shape)
        if wide:
            master = given["weight32"]
            _run(update.kernel, master._flat, grad, states, row, float(given["rescale_grad"]))
            write_cast(master._flat, result._flat)
            states = [*states, master]
        else:
            _run(update.kernel, result._flat, grad, states, row, float(given["rescale_grad"]))
        wrote(result._storage, *[state._storage for state in states])
        return result if out is None or out is weight else deliver(result, out)

    masters = ("weight32",) if wide else ()
    arrays = dict.fromkeys(("weight", "grad", *update.states, *masters), REQUIRED)
    summary = f"One step of an optimiser: the new weight; {', '.join(update.states) or 'nothing'} written in place."
    parameters = {**arrays, **update.defaults, "out": None, "name": None}
    takes = {**dict.fromkeys(arrays, NDArray), **dict.fromkeys(update.defaults, float)}
    return spelled(title, summary, parameters, call, takes)


def lamb_update_phase1(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int = 1,
    bias_correction: bool = True,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """The direction of a step of LAMB number `t`; `mean` and `var` are written in place."""
    _checked("lamb_update_phase1", weight, {"grad": grad, "mean": mean, "var": var})
    if out is not None:
        check_out("lamb_update_phase1", weight._shape, out)
    for array in (mean, var):
        check_writable(array, "lamb_update_phase1")
    wd, epsilon = float(wd), float(epsilon)
    made1, made2 = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1.0, 1.0)
    g = a.multiply(grad, float(rescale_grad))
    if clip_gradient > 0:
        g = a.clip(g, -float(clip_gradient), float(clip_gradient))
    mean._assign(a.add(a.multiply(mean, beta1), a.multiply(g, 1 - beta1)))
    var._assign(a.add(a.multiply(var, beta2), a.multiply(a.square(g), 1 - beta2)))
    step = a.divide(a.divide(mean, made1), a.add(a.sqrt(a.divide(var, made2)), epsilon))
    return deliver(a.add(step, a.multiply(weight, wd)), out)


def lamb_update_phase2(
    weight: NDArray,
    g: NDArray,
    r1: NDArray,
    r2: NDArray,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """``weight - lr r1 / r2 g`` for norms r1 of the weight, within the bounds, and r2 of g; the ratio of 0 is 1."""
    _checked("lamb_update_phase2", weight, {"g": g})
    expect_array("lamb_update_phase2", r1, r2)
    size = r1
    if lower_bound > 0:
        size = a.maximum(size, float(lower_bound))
    if upper_bound > 0:
        size = a.minimum(size, float(upper_bound))
    ratio = a.where(a.multiply(size, r2) == 0, 1.0, a.divide(size, r2))
    return deliver(a.subtract(weight, a.multiply(a.multiply(g, ratio), float(lr))), out)


def reset_arrays(*arrays: NDArray, num_arrays: int | None = None, name: str | None = None) -> None:
    """Fill arrays with zeros.

    Raises
    ------
    MXNetError
        If there are not `num_arrays` of them.
    """
    expect_array("reset_arrays", *arrays)
    if num_arrays is not None and num_arrays != len(arrays):
        raise MXNetError(f"reset_arrays: num_arrays is {num_arrays!r}, but there are {len(arrays)} arrays")
    for array in arrays:
        check_writable(array, "reset_arrays")
    for array in arrays:
        setitem(array, slice(None), 0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _update_operator(name, update, False) for name, update in _UPDATES.items()},
    **{
        f"mp_{name}": _update_operator(name, _UPDATES[name], True)
        for name in ("sgd_update", "sgd_mom_update", "nag_mom_update")
    },
    "lamb_update_phase1": lamb_update_phase1,
    "lamb_update_phase2": lamb_update_phase2,
    "reset_arrays": reset_arrays,
}
