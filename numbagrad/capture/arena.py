"""Places in one block of memory for buffers that are in use for a while each."""

from bisect import bisect_left, insort
from collections.abc import Sequence


def places(spans: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """The offset of each of `spans`, and the bytes they take together.

    Parameters
    ----------
    spans : sequence of (first, last, size)
        In the order of their first use; those whose uses overlap, `last` included, get places apart.

    Notes
    -----
    Each takes the smallest free piece that is large enough; what becomes free is joined with its neighbours. A span
    takes logarithmic time.
    """
    free = _Free()
    ending: dict[int, list[tuple[int, int]]] = {}
    for _, last, _ in spans:
        ending.setdefault(last, [])
    rows = sorted(ending)
    done = top = 0
    offsets = []
    for first, last, size in spans:
        while rows[done] < first:
            for piece in ending[rows[done]]:
                free.give(*piece)
            done += 1
        at = free.take(size)
        if at is None:
            at, top = free.extend(top, size)
        offsets.append(at)
        ending[last].append((at, size))
    return offsets, top


class _Free:
    """The free pieces below the top, by size, by beginning and by end."""

    def __init__(self) -> None:
        self._by_size: list[tuple[int, int]] = []
        self._sizes: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def _add(self, at: int, size: int) -> None:
        insort(self._by_size, (size, at))
        self._sizes[at] = size
        self._ends[at + size] = at

    def _remove(self, at: int) -> int:
        size = self._sizes.pop(at)
        del self._ends[at + size]
        del self._by_size[bisect_left(self._by_size, (size, at))]
        return size

    def give(self, at: int, size: int) -> None:
        """Take back a piece."""
        if at in self._ends:
            before = self._ends[at]
            size += self._remove(before)
            at = before
        if at + size in self._sizes:
            size += self._remove(at + size)
        self._add(at, size)

    def take(self, size: int) -> int | None:
        """The beginning of a piece of this size, or None."""
        where = bisect_left(self._by_size, (size, 0))
        if where == len(self._by_size):
            return None
        found, at = self._by_size[where]
        self._remove(at)
        if found > size:
            self._add(at + size, found - size)
        return at

    def extend(self, top: int, size: int) -> tuple[int, int]:
        """A piece that ends at the new top, with what is free below the old one; its beginning and that top."""
        at = self._ends.get(top, top)
        if at != top:
            self._remove(at)
        return at, at + size
