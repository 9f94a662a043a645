"""How the inputs of an elementwise op line up: NumPy's broadcasting, boiled down to a loop pattern."""

from dataclasses import dataclass
from functools import lru_cache

from numbagrad.errors import MXNetError

Shape = tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Layout:
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


_LETTERS = {
    (False, False, True): "r",
    (True, True, False): "c",
    (True, False, False): "p",
    (False, True, False): "m",
    (True, False, True): "e",
    (False, True, True): "q",
}
"""The letter of an input by the loops over planes, rows and columns along which it has elements of its own."""


def _own(shape: Shape, full: Shape) -> tuple[list[bool], set[int]]:
    """Whether `shape` has elements of its own along each axis of `full` that is not 1, and where that changes."""
    padded = (1,) * (len(full) - len(shape)) + shape
    own = [m == n for m, n in zip(padded, full, strict=True) if n != 1]
    return own, {k for k in range(1, len(own)) if own[k] != own[k - 1]}


@lru_cache(maxsize=4096)
def layout(name: str, shapes: tuple[Shape | None, ...]) -> Layout:
    """The loop that computes an elementwise op on inputs of these shapes (None: a number passed by value)."""
    full = broadcast_shape(name, shapes)
    size = size_of(full)
    letters: list[str] = []
    expand: list[int] = []
    turns: set[int] = set()
    partial: list[tuple[int, list[bool]]] = []
    for i, shape in enumerate(shapes):
        letters.append("s")
        if shape is None:
            letters[i] = "k"
        elif size_of(shape) == size:
            pass
        elif size_of(shape) == 1:
            letters[i] = "0"
        else:
            own, changes = _own(shape, full)
            if len(turns | changes) > 2:
                expand.append(i)
            else:
                turns |= changes
                partial.append((i, own))
    if not turns:
        return Layout(full, "".join(letters), (size,), tuple(expand), size)
    first, last = min(turns), max(turns)
    for i, own in partial:
        letters[i] = _LETTERS[own[0], own[first] if first < last else own[0], own[last]]
    compact = [n for n in full if n != 1]
    sizes = tuple([size_of(tuple(part)) for part in (compact[:first], compact[first:last], compact[last:])])
    return Layout(full, "".join(letters), sizes if first < last else (sizes[0], sizes[2]), tuple(expand), size)
