"""The door for ops of users' kernels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.registry import REGISTRY
from numbagrad.own_ops.declaration import Declaration, check_arity, check_names
from numbagrad.own_ops.op import OwnOp


def register_op(
    name: str,
    *,
    inputs: str,
    forward: Callable[..., Any],
    vjp: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    keeps: str = "",
    sizes: str = "n",
    params: Mapping[str, int | float] | None = None,
    shape: Callable[..., Any] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    failures: Mapping[int, str] | None = None,
    reference: Callable[..., Any] | None = None,
) -> OwnOp:
    """Make an op of kernels: functions of flat arrays and sizes, which are compiled by Numba.

    What a kernel calls an argument says what it gets: an input by its name; ``y``, the output; the kept arrays, the
    sizes and the parameters by their names; and in a VJP ``g``, the gradient of the output, and ``dx``, the gradient of
    the input ``x``. All arrays are 1-d and contiguous. Those that a kernel writes (in the forward ``y`` and the kept
    ones, in a VJP the ``d...``) hold anything before: each element must be written, none read. A kernel returns 0, or
    from the forward the code of a failure that it has found before its first write.

    Parameters
    ----------
    name : str
        For messages and profiles; the name of none of our ops. The op is pickled by it, so give the op this name in the
        module of its forward, if it shall be.
    inputs : str
        The names of the input arrays, as in ``"x w"``.
    forward : callable
        The kernel that computes ``y``: a plain function, or one jitted already, whose flags do not count. Jitted
        functions that it calls are compiled anew too. What it reaches as globals is read now.
    vjp : callable or list of callables
        The kernel that writes the gradients of all inputs; or several, each writing those of some inputs. One runs only
        if a gradient that it writes is wanted.
    keeps : str
        The names of arrays that the forward writes for the VJP.
    sizes : str
        The names of the ints that kernels take.
    params : dict of str to number
        The keyword parameters of the op and their defaults; int or float, as the default is.
    shape : callable, optional
        ``shape(*shapes of the inputs, **params)`` returns a dict: the shape of ``y`` and of each kept array, and each
        size. It raises ValueError for shapes that do not fit. Where left out, all inputs have one shape, ``y`` has it,
        and the only size is ``n``, the number of elements.
    dtypes : dict of str to dtype, optional
        For inputs, ``y`` and kept arrays. Those not named have the widest floating dtype among the inputs (float32
        for integers; float16 is computed in float32). Inputs of integers, such as labels, must be named here.
    failures : dict of int to str, optional
        The message of each code, 1 to 255, that the forward may return.
    reference : callable, optional
        ``reference(*arrays, **params)`` computes the same from other ops. Higher orders go through it; without it a
        second-order gradient is an error.

    Returns
    -------
    callable
        ``op(*arrays, **params)``.

    Raises
    ------
    MXNetError
        For a declaration that does not fit together.

    Examples
    --------
    >>> import numbagrad as mx
    >>> from numbagrad import nd
    >>> def forward(x, y, n):
    ...     for i in range(n):
    ...         y[i] = x[i] * x[i] * x[i]
    ...     return 0
    >>> def vjp(g, x, dx, n):
    ...     for i in range(n):
    ...         dx[i] = 3 * x[i] * x[i] * g[i]
    ...     return 0
    >>> cube = mx.register_op("cube", inputs="x", forward=forward, vjp=vjp, reference=lambda x: x * x * x)
    >>> cube(nd.array([1, 2]))
    <BLANKLINE>
    [1. 8.]
    <NDArray 2 @cpu(0)>
    >>> mx.testing.check_gradients(cube, nd.array([1, 2]), order=2)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise MXNetError(f"register_op: the name must be an identifier, not {name!r}")
    if name in REGISTRY:
        raise MXNetError(f"register_op: numbagrad has an op {name} of its own")
    declared = Declaration(
        name,
        tuple(inputs.split()),
        tuple(keeps.split()),
        tuple(sizes.split()),
        dict(params or {}),
        {each: as_dtype(dtype) for each, dtype in (dtypes or {}).items()},
    )
    check_names(declared)
    if shape is None and declared.sizes != ("n",):
        raise MXNetError(f"{name}: without a shape rule the only size is n, not {sizes}")
    for code in failures or {}:
        if not isinstance(code, int) or not 0 < code < 256:
            raise MXNetError(f"{name}: the code of a failure is an int from 1 to 255, not {code!r}")
    messages = {code: (MXNetError, f"{name}: {text}") for code, text in (failures or {}).items()}
    written = ["y", *declared.keeps]
    first = declared.step("forward", forward, declared.inputs, written, messages)
    for each in written:
        if each not in first.names:
            raise MXNetError(f"{name}: forward takes no {each!r}, so nothing would write it")
    steps = []
    gradients = [f"d{x}" for x in declared.differentiable()]
    reads = ["g", *declared.inputs, *written]
    for k, kernel in enumerate([vjp] if callable(vjp) else vjp):
        step = declared.step(f"vjp{k or ''}", kernel, reads, gradients, {})
        if "g" not in step.names or not step.writes:
            raise MXNetError(f"{name}: the VJP kernel {k} must take g and write one of {', '.join(gradients)}")
        steps.append(step)
    for gradient, x in zip(gradients, declared.differentiable(), strict=True):
        count = sum(gradient in step.names for step in steps)
        if steps and count != 1:
            raise MXNetError(
                f"{name}: {count or 'no'} VJP kernels write {gradient}; one must "
                f"(inputs without a gradient have an integer dtype: dtypes={{{x!r}: 'int32'}})"
            )
    if shape is not None:
        check_arity(name, "shape", shape, declared)
    if reference is not None:
        check_arity(name, "reference", reference, declared)
    return OwnOp(declared, first, steps, shape, reference)
