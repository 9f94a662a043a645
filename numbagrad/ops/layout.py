"""How the inputs of an elementwise op line up: NumPy's broadcasting, boiled down to a loop pattern."""

from functools import lru_cache
from typing import NamedTuple

from numbagrad.errors import MXNetError

Shape = tuple[int, ...]


class Layout(NamedTuple):
    """The result's shape, the pattern letters of the inputs (see ``native.source``), the loop sizes."""

    shape: Shape
    pattern: str
    sizes: tuple[int, ...]
    expand: tuple[int, ...]
    """Inputs that fit no letter and must be expanded to the full shape first."""
    size: int
    """The number of elements of the result."""


def size_of(shape: Shape) -> int:
    """The number of elements."""
    size = 1
    for n in shape:
        size *= n
    return size


def broadcast_shape(name: str, shapes: tuple[Shape | None, ...]) -> Shape:
    """The common shape of `shapes` (None: a number).

    Raises
    ------
    MXNetError
        Where they do not broadcast.
    """
    known = [shape for shape in shapes if shape is not None]
    ndim = max((len(shape) for shape in known), default=0)
    result = [1] * ndim
    for shape in known:
        for k, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and result[k] != n:
                if result[k] != 1:
                    raise MXNetError(
                        f"{name}: shapes {' and '.join(map(str, known))} do not broadcast: "
                        f"{result[k]} against {n} at axis {k - ndim}"
                    )
                result[k] = n
    return tuple(result)


def _split(shape: Shape, full: Shape) -> tuple[str, int] | None:
    """The letter ``r`` or ``c`` and the axis where rows end and columns begin, if `shape` is one of these."""
    padded = (1,) * (len(full) - len(shape)) + shape
    stretched = [m != n for m, n in zip(padded, full, strict=True) if n != 1]
    turn = next((k for k in range(1, len(stretched)) if stretched[k] != stretched[k - 1]), None)
    if turn is None or any(stretched[k] != stretched[turn] for k in range(turn, len(stretched))):
        return None
    return ("r" if stretched[0] else "c"), turn


@lru_cache(maxsize=4096)
def layout(name: str, shapes: tuple[Shape | None, ...]) -> Layout:
    """The loop that computes an elementwise op on inputs of these shapes (None: a number passed by value)."""
    full = broadcast_shape(name, shapes)
    size = size_of(full)
    letters: list[str] = []
    expand: list[int] = []
    turn: int | None = None
    for i, shape in enumerate(shapes):
        if shape is None:
            letters.append("k")
        elif size_of(shape) == size:
            letters.append("s")
        elif size_of(shape) == 1:
            letters.append("0")
        else:
            found = _split(shape, full)
            if found is None or (turn is not None and found[1] != turn):
                expand.append(i)
                letters.append("s")
            else:
                turn = found[1]
                letters.append(found[0])
    if turn is None:
        return Layout(full, "".join(letters), (size,), tuple(expand), size)
    compact = [n for n in full if n != 1]
    sizes = (size_of(tuple(compact[:turn])), size_of(tuple(compact[turn:])))
    return Layout(full, "".join(letters), sizes, tuple(expand), size)
