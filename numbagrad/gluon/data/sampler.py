"""Samplers: in which order a loader takes examples."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Sampler:
    """The base class: iterates over indices, and has a length."""

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler):
    """From `start` to ``start + length - 1``."""

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = length
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length

    def order(self) -> np.ndarray:
        """The indices of one pass, int64."""
        return np.arange(self._start, self._start + self._length)


class RandomSampler(Sampler):
    """All of ``0 ... length - 1`` in an order drawn anew at each pass, by NumPy's global generator."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[int]:
        return iter(self.order().tolist())

    def __len__(self) -> int:
        return self._length

    def order(self) -> np.ndarray:
        """The indices of one pass, int64."""
        indices = np.arange(self._length)
        np.random.shuffle(indices)
        return indices


class FilterSampler(Sampler):
    """The indices of those elements of `dataset` for which ``fn(element)`` is true."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler
    batch_size : int
    last_batch : {"keep", "discard", "rollover"}
        What becomes of the rest: a shorter batch, nothing, or the beginning of the next pass.

    Raises
    ------
    ValueError
        For another `last_batch`.

    Examples
    --------
    >>> list(BatchSampler(SequentialSampler(5), 2, "keep"))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, last_batch: str = "keep") -> None:
        if last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}")
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._prev: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._prev = self._prev, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch:
            if self._last_batch == "keep":
                yield batch
            elif self._last_batch == "rollover":
                self._prev = batch

    def __len__(self) -> int:
        n, size = len(self._sampler), self._batch_size
        if self._last_batch == "keep":
            return -(-n // size)
        return n // size if self._last_batch == "discard" else (n + len(self._prev)) // size


class IntervalSampler(Sampler):
    """Every `interval`-th index; then, with `rollover`, those that were left out, from the next start on."""

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        assert interval <= length, f"Interval {interval} must be smaller than or equal to length {length}"
        self._length = length
        self._interval = interval
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)
