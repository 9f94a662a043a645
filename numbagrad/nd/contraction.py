"""``einsum``: sums of products of arrays, lowered to diagonals, sums, transposes and batches of matrix products.

The lowering depends on the subscripts and shapes alone, so it is planned once and then run: a list of ops, which have
derivatives of every order and can be captured.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, NamedTuple

from numbagrad.kernels.strided import contiguous_strides
from numbagrad.nd.arguments import in_one_dtype
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.subscripts import Labels, read
from numbagrad.ops.arithmetic import multiply
from numbagrad.ops.layout import Shape, broadcast_shape, size_of
from numbagrad.ops.linalg import batch_dot, dot
from numbagrad.ops.reduction import sum_
from numbagrad.ops.shaping import identity, reshape, transpose
from numbagrad.ops.slicing import strided_slice


class Step(NamedTuple):
    """One op of a plan: its arguments are operands, or results of steps before, counted together."""

    op: Callable[..., Any]
    arguments: tuple[int, ...]
    params: dict[str, Any]


class Factor(NamedTuple):
    """An operand or result whose axes have names, each name once."""

    place: int
    labels: Labels
    shape: Shape

    def lengths(self, labels: Labels) -> Shape:
        """The lengths of the axes `labels`."""
        return tuple(self.shape[self.labels.index(label)] for label in labels)


class _Planner:
    """Writes the steps that lower one call."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.steps: list[Step] = []

    def add(self, op: Callable[..., Any], *arguments: int, **params: Any) -> int:
        """Add a step; the place of its result."""
        self.steps.append(Step(op, arguments, params))
        return self.count + len(self.steps) - 1

    def distinct(self, place: int, labels: Labels, shape: Shape) -> Factor:
        """The diagonal along axes that have one name."""
        names = tuple(dict.fromkeys(labels))
        if len(names) == len(labels):
            return Factor(place, labels, shape)
        steps = contiguous_strides(shape)
        strides = tuple(sum(s for s, other in zip(steps, labels, strict=True) if other == name) for name in names)
        lengths = tuple(shape[labels.index(name)] for name in names)
        return Factor(self.add(strided_slice, place, offset=0, shape=lengths, strides=strides), names, lengths)

    def reshaped(self, factor: Factor, labels: Labels, shape: Shape) -> Factor:
        """The same elements in another shape."""
        if shape == factor.shape:
            return Factor(factor.place, labels, shape)
        return Factor(self.add(reshape, factor.place, shape=shape), labels, shape)

    def without_ones(self, factor: Factor, sizes: dict[str, int]) -> Factor:
        """Drop axes of length 1 that are longer in other operands: what is left out broadcasts."""
        kept = tuple(name for name, n in zip(factor.labels, factor.shape, strict=True) if n != 1 or sizes[name] == 1)
        return self.reshaped(factor, kept, factor.lengths(kept))

    def summed(self, factor: Factor, needed: Collection[str]) -> Factor:
        """Sum over all axes but the `needed` ones."""
        axes = tuple(k for k, name in enumerate(factor.labels) if name not in needed)
        if not axes:
            return factor
        kept = tuple(name for name in factor.labels if name in needed)
        return Factor(self.add(sum_, factor.place, axes=axes, keepdims=False), kept, factor.lengths(kept))

    def ordered(self, factor: Factor, labels: Labels) -> Factor:
        """The axes in the order of `labels`, which are all of them."""
        if factor.labels == labels:
            return factor
        axes = tuple(factor.labels.index(name) for name in labels)
        return Factor(self.add(transpose, factor.place, axes=axes), labels, factor.lengths(labels))

    def product(self, a: Factor, b: Factor) -> Factor:
        """The product where no axis is summed over."""
        order = (*a.labels, *[name for name in b.labels if name not in a.labels])
        parts = []
        for factor in (a, b):
            factor = self.ordered(factor, tuple(name for name in order if name in factor.labels))
            shape = tuple(factor.lengths((name,))[0] if name in factor.labels else 1 for name in order)
            parts.append(self.reshaped(factor, order, shape))
        shape = broadcast_shape("einsum", (parts[0].shape, parts[1].shape))
        return Factor(self.add(multiply, parts[0].place, parts[1].place), order, shape)

    def contracted(self, a: Factor, b: Factor, needed: Collection[str]) -> Factor:
        """The product, summed over the axes that are not `needed` later."""
        a, b = self.summed(a, {*needed, *b.labels}), self.summed(b, {*needed, *a.labels})
        shared = tuple(name for name in a.labels if name in b.labels)
        batch = tuple(name for name in shared if name in needed)
        summed = tuple(name for name in shared if name not in needed)
        if not summed:
            return self.product(a, b)
        lead = (size_of(a.lengths(batch)),) if batch else ()
        k = size_of(a.lengths(summed))
        places, flags, rest, sides = [], [], [], []
        for factor in (a, b):
            own = tuple(name for name in factor.labels if name not in shared)
            last = factor.labels != (*batch, *summed, *own)  # whether the axes summed over come last
            order = (*batch, *own, *summed) if last else (*batch, *summed, *own)
            m = size_of(factor.lengths(own))
            shape = (*lead, m, k) if last else (*lead, k, m)
            places.append(self.reshaped(self.ordered(factor, order), order, shape).place)
            flags.append(int(last))
            rest.append(Factor(factor.place, own, factor.lengths(own)))
            sides.append(m)
        flat = self.add(batch_dot if batch else dot, *places, ta=1 - flags[0], tb=flags[1])
        labels = (*batch, *rest[0].labels, *rest[1].labels)
        shape = a.lengths(batch) + rest[0].shape + rest[1].shape
        return self.reshaped(Factor(flat, (), (*lead, *sides)), labels, shape)

    def returned(self, factor: Factor) -> None:
        """End with an array of at least one axis, in memory of its own."""
        factor = self.reshaped(factor, factor.labels, factor.shape or (1,))
        place = factor.place
        while place >= self.count and self.steps[place - self.count].op is reshape:
            (place,) = self.steps[place - self.count].arguments
        if place < self.count:
            self.add(identity, factor.place)


def _order(
    terms: tuple[Labels, ...], output: Labels, sizes: dict[str, int], optimize: bool
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
    symbols = {name: get_symbol(k) for k, name in enumerate(sizes)}
    written = ["".join(symbols[name] for name in labels) for labels in (*terms, output)]
    shapes = [tuple(sizes[name] for name in labels) for labels in terms]
    path, _ = contract_path(f"{','.join(written[:-1])}->{written[-1]}", *shapes, shapes=True)
    return tuple(tuple(step) for step in path)


@lru_cache(maxsize=1024)
def plan(subscripts: str, shapes: tuple[Shape, ...], optimize: bool) -> tuple[Step, ...]:
    """The ops that compute ``einsum(subscripts, ...)`` of arrays of `shapes`; the last one gives the result.

    Raises
    ------
    MXNetError
        If the subscripts are not well formed, or do not fit the shapes.
    """
    terms, output, sizes = read(subscripts, shapes)
    planner = _Planner(len(shapes))
    factors = [
        planner.without_ones(planner.distinct(k, labels, shape), sizes)
        for k, (labels, shape) in enumerate(zip(terms, shapes, strict=True))
    ]
    for step in _order(tuple(factor.labels for factor in factors), output, sizes, optimize):
        taken = [factors.pop(k) for k in sorted(step, reverse=True)][::-1]
        for k, factor in enumerate(taken[1:], 2):
            rest = [other.labels for other in (*factors, *taken[k:])]
            needed = {*output, *[label for labels in rest for label in labels]}
            taken[0] = planner.contracted(taken[0], factor, needed)
        factors.append(taken[0])
    (last,) = factors
    planner.returned(planner.ordered(planner.summed(last, output), output))
    return tuple(planner.steps)


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
    if not operands:
        raise TypeError("einsum: takes at least one NDArray")
    arrays = in_one_dtype("einsum", *operands)
    for op, arguments, params in plan(subscripts, tuple([array._shape for array in arrays]), bool(optimize)):
        arrays.append(op(*[arrays[k] for k in arguments], **params))
    return deliver(arrays[-1], out)


FUNCTIONS: dict[str, Callable[..., Any]] = {"einsum": einsum}
