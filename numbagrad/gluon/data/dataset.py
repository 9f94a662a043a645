"""Datasets: examples by number."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad.gluon.data.sampler import FilterSampler, Sampler, SequentialSampler
from numbagrad.nd.ndarray import NDArray


class Dataset:
    """The base class: a subclass writes ``__getitem__`` and ``__len__``."""

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> "Dataset":
        """The dataset of ``fn(*example)``, or of ``fn(example)`` where examples are no tuples.

        Parameters
        ----------
        fn : callable
        lazy : bool
            Call `fn` each time an example is asked for; otherwise once for each, now.
        """
        made = _Transformed(self, fn)
        return made if lazy else SimpleDataset([made[i] for i in range(len(made))])

    def transform_first(self, fn: Callable[..., Any], lazy: bool = True) -> "Dataset":
        """The dataset with `fn` applied to the first part of every example only."""
        return self.transform(_First(fn), lazy)

    def filter(self, fn: Callable[[Any], Any]) -> "Dataset":
        """The dataset of the examples for which ``fn(example)`` is true; asked for each of them now."""
        return _Chosen(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> "Dataset":
        """Part `index` of `num_shards` parts of consecutive examples; the first ones are longer by one if need be."""
        assert 0 <= index < num_shards, f"shard: index {index} is out of range for {num_shards} shards"
        step, more = divmod(len(self), num_shards)
        start = step * index + min(index, more)
        return _Chosen(self, SequentialSampler(step + (index < more), start))

    def take(self, count: int | None) -> "Dataset":
        """The first `count` examples; all of them for None, or where there are no more."""
        n = len(self)
        return _Chosen(self, SequentialSampler(n if count is None or count > n else count))

    def sample(self, sampler: Sampler) -> "Dataset":
        """The examples that a sampler chooses.

        Raises
        ------
        TypeError
            If it is no Sampler.
        """
        if not isinstance(sampler, Sampler):
            raise TypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _Chosen(self, sampler)


class SimpleDataset(Dataset):
    """Anything that has a length and can be indexed, as a dataset."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]


class ArrayDataset(Dataset):
    """Several arrays of equal length; an example is a tuple of their rows, or a row where there is one array.

    Parameters
    ----------
    *args : NDArray, numpy.ndarray or sequence
        NDArrays of one axis are taken as NumPy arrays, so that labels are numbers.

    Raises
    ------
    AssertionError
        Without arrays, or where their lengths differ.
    """

    def __init__(self, *args: Any) -> None:
        assert len(args) > 0, "Needs at least 1 arrays"
        self._length = len(args[0])
        self._data: list[Any] = []
        for i, data in enumerate(args):
            assert len(data) == self._length, (
                f"All arrays must have the same length; array[0] has length {self._length} while array[{i}] has "
                f"{len(data)}."
            )
            self._data.append(data.asnumpy() if isinstance(data, NDArray) and data.ndim == 1 else data)

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple([data[idx] for data in self._data])

    def __len__(self) -> int:
        return self._length


class _First:
    """Applies a function to the first part of an example; a class, so that it can be pickled."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def __call__(self, x: Any, *rest: Any) -> Any:
        return (self._fn(x), *rest) if rest else self._fn(x)


class _Transformed(Dataset):
    def __init__(self, data: Any, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _Chosen(Dataset):
    def __init__(self, data: Any, sampler: Sampler) -> None:
        self._data = data
        self._indices = list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[self._indices[idx]]


__all__ = ["ArrayDataset", "Dataset", "SimpleDataset"]


def rows(dataset: Any) -> list[np.ndarray | NDArray] | None:
    """The arrays of a dataset whose batches are rows of arrays; None where examples must be asked for one by one."""
    if type(dataset) is ArrayDataset:
        arrays = dataset._data
    elif type(dataset) is SimpleDataset:
        arrays = [dataset._data]
    else:
        arrays = [dataset]
    usable = [
        type(data) is NDArray or (type(data) is np.ndarray and data.ndim > 0 and data.dtype.kind in "biuf")
        for data in arrays
    ]
    return arrays if all(usable) else None
