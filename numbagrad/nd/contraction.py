"""``einsum``: sums of products of arrays, lowered to diagonals, sums, transposes and batches of matrix products.

Everything is done by ops, so there are derivatives of every order, and it can be captured.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, NamedTuple

from numbagrad.kernels.strided import contiguous_strides
from numbagrad.nd.arguments import in_one_dtype
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.selection import at_least_1d
from numbagrad.nd.subscripts import Labels, Subscripts, read
from numbagrad.ops.arithmetic import multiply
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.linalg import batch_dot
from numbagrad.ops.reduction import sum_
from numbagrad.ops.shaping import identity, reshape, transpose
from numbagrad.ops.slicing import strided_slice


class Factor(NamedTuple):
    """An array whose axes have names, each name once."""

    array: NDArray
    labels: Labels

    def sizes(self, labels: Labels) -> Shape:
        """The lengths of the axes `labels`."""
        return tuple(self.array._shape[self.labels.index(label)] for label in labels)


def _distinct(array: NDArray, labels: Labels) -> Factor:
    """The diagonal along axes that have one name."""
    names = tuple(dict.fromkeys(labels))
    if len(names) == len(labels):
        return Factor(array, labels)
    steps = contiguous_strides(array._shape)
    strides = tuple(sum(s for s, other in zip(steps, labels, strict=True) if other == name) for name in names)
    shape = tuple(array._shape[labels.index(name)] for name in names)
    return Factor(strided_slice(array, offset=0, shape=shape, strides=strides), names)


def _without_ones(factor: Factor, sizes: dict[str, int]) -> Factor:
    """Drop axes of length 1 that are longer in other operands: what is left out broadcasts."""
    kept = tuple(name for name in factor.labels if factor.sizes((name,)) != (1,) or sizes[name] == 1)
    return Factor(reshape(factor.array, shape=factor.sizes(kept)), kept) if kept != factor.labels else factor


def _summed(factor: Factor, needed: Collection[str]) -> Factor:
    """Sum over all axes but the `needed` ones."""
    axes = tuple(k for k, name in enumerate(factor.labels) if name not in needed)
    if not axes:
        return factor
    return Factor(sum_(factor.array, axes=axes, keepdims=False), tuple(n for n in factor.labels if n in needed))


def _ordered(factor: Factor, labels: Labels) -> NDArray:
    """The array with its axes in the order of `labels`, which are all of them."""
    if factor.labels == labels:
        return factor.array
    return transpose(factor.array, axes=tuple(factor.labels.index(name) for name in labels))


def _product(a: Factor, b: Factor) -> Factor:
    """The product where no axis is summed over."""
    order = (*a.labels, *[name for name in b.labels if name not in a.labels])
    parts = []
    for factor in (a, b):
        array = _ordered(factor, tuple(name for name in order if name in factor.labels))
        shape = tuple(factor.sizes((name,))[0] if name in factor.labels else 1 for name in order)
        parts.append(reshape(array, shape=shape) if array._shape != shape else array)
    return Factor(multiply(*parts), order)


def _contract(a: Factor, b: Factor, needed: Collection[str]) -> Factor:
    """The product, summed over the axes that are not `needed` later."""
    a, b = _summed(a, {*needed, *b.labels}), _summed(b, {*needed, *a.labels})
    shared = tuple(name for name in a.labels if name in b.labels)
    batch = tuple(name for name in shared if name in needed)
    summed = tuple(name for name in shared if name not in needed)
    if not summed:
        return _product(a, b)
    matrices, flags, free = [], [], []
    for factor in (a, b):
        own = tuple(name for name in factor.labels if name not in shared)
        last = factor.labels != (*batch, *summed, *own)  # whether the axes summed over come last
        order = (*batch, *own, *summed) if last else (*batch, *summed, *own)
        count, k, m = (size_of(factor.sizes(part)) for part in (batch, summed, own))
        array = _ordered(factor, order)
        matrices.append(reshape(array, shape=(count, m, k) if last else (count, k, m)))
        flags.append(int(last))
        free.append(own)
    product = batch_dot(*matrices, ta=1 - flags[0], tb=flags[1])
    shape = a.sizes(batch) + a.sizes(free[0]) + b.sizes(free[1])
    return Factor(reshape(product, shape=shape), (*batch, *free[0], *free[1]))


@lru_cache(maxsize=1024)
def _order(
    terms: tuple[Labels, ...], output: Labels, sizes: tuple[tuple[str, int], ...], optimize: bool
) -> tuple[tuple[int, ...], ...]:
    """Which factors to take out of the list for the next product, which is put at its end."""
    count = len(terms)
    from_left = (tuple(range(min(count, 2))), *[(0, count - 2 - k) for k in range(count - 2)])
    if count < 3 or not optimize:
        return from_left
    try:
        from opt_einsum import contract_path, get_symbol
    except ImportError:
        return from_left
    symbols = {name: get_symbol(k) for k, (name, _) in enumerate(sizes)}
    written = ["".join(symbols[name] for name in labels) for labels in (*terms, output)]
    lengths = dict(sizes)
    shapes = [tuple(lengths[name] for name in labels) for labels in terms]
    path, _ = contract_path(f"{','.join(written[:-1])}->{written[-1]}", *shapes, shapes=True)
    return tuple(tuple(step) for step in path)


def einsum(
    subscripts: str, *operands: NDArray, optimize: bool = True, out: NDArray | None = None, name: str | None = None
) -> NDArray:
    """Sums of products of arrays by Einstein's convention, as ``numpy.einsum``.

    Parameters
    ----------
    subscripts : str
        A term of letters an operand, separated by commas, one letter an axis; ``...`` stands for axes without letters,
        which broadcast. A letter twice in a term takes the diagonal. After ``->`` the axes of the result; what is not
        among them is summed over. Without ``->``: the axes of the ellipsis, then the letters that occur once, sorted.
    *operands : NDArray
        Axes of length 1 broadcast.
    optimize : bool
        Whether the order of three or more factors is found by the package opt_einsum, if it is installed; else they
        are multiplied from left to right.
    out : NDArray, optional
        Where to write the result.

    Returns
    -------
    NDArray
        Of shape (1,) where no axis is left.

    Raises
    ------
    MXNetError
        If the subscripts are not well formed, or do not fit the shapes.

    Examples
    --------
    >>> from numbagrad import nd
    >>> a, b = nd.ones((2, 3)), nd.ones((3, 4))
    >>> nd.einsum("ij,jk->k", a, b).asnumpy()
    array([6., 6., 6., 6.], dtype=float32)
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts are a str, not {type(subscripts).__name__}")
    arrays = in_one_dtype("einsum", *operands)
    found = read(subscripts, tuple(array._shape for array in arrays))
    result = _evaluate(found, arrays, bool(optimize))
    if any(result._storage is array._storage for array in operands):
        result = identity(result)
    return deliver(at_least_1d(result), out)


def _evaluate(found: Subscripts, arrays: list[NDArray], optimize: bool) -> NDArray:
    factors = [
        _without_ones(_distinct(array, labels), found.sizes) for array, labels in zip(arrays, found.terms, strict=True)
    ]
    terms = tuple(factor.labels for factor in factors)
    for step in _order(terms, found.output, tuple(found.sizes.items()), optimize):
        taken = [factors.pop(k) for k in sorted(step, reverse=True)][::-1]
        for k, factor in enumerate(taken[1:], 2):
            rest = [other.labels for other in (*factors, *taken[k:])]
            needed = {*found.output, *[label for labels in rest for label in labels]}
            taken[0] = _contract(taken[0], factor, needed)
        factors.append(taken[0])
    (last,) = factors
    return _ordered(_summed(last, found.output), found.output)


FUNCTIONS: dict[str, Callable[..., Any]] = {"einsum": einsum}
