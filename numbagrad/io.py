"""Iterators over arrays in batches, as MXNet programs had them before ``gluon.data``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numbagrad import nd
from numbagrad.nd.ndarray import NDArray


class _Description(NamedTuple):
    name: str
    shape: tuple[int, ...]


class DataDesc(_Description):
    """The name and shape of an array of each batch; unpacks to these two.

    Attributes
    ----------
    dtype : dtype
    layout : str
        A letter an axis, ``N`` for the batch.
    """

    dtype: Any
    layout: str

    def __new__(cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str = "NCHW") -> "DataDesc":
        """Make one."""
        made = super().__new__(cls, name, tuple(shape))
        made.dtype = dtype
        made.layout = layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The place of ``N`` in `layout`; 0 for None."""
        return 0 if layout is None else layout.find("N")


class DataBatch:
    """What an iterator gives: arrays, and how many examples at the end are padding.

    Parameters
    ----------
    data, label : list of NDArray
    pad : int, optional
    index : optional
    bucket_key : optional
    provide_data, provide_label : list of DataDesc, optional
    """

    def __init__(
        self,
        data: list[NDArray],
        label: list[NDArray] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: list[DataDesc] | None = None,
        provide_label: list[DataDesc] | None = None,
    ) -> None:
        for name, arrays in (("data", data), ("label", label)):
            assert arrays is None or isinstance(arrays, (list, tuple)), f"DataBatch: {name} must be a list of NDArrays"
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        shapes = [[array.shape for array in arrays or []] for arrays in (self.data, self.label)]
        return f"{type(self).__name__}: data shapes: {shapes[0]} label shapes: {shapes[1]}"


class DataIter:
    """An iterator over batches; a subclass states :meth:`iter_next`, and what is got then, or :meth:`next`.

    Parameters
    ----------
    batch_size : int
    """

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Go back to the first batch."""

    def next(self) -> DataBatch:
        """The next batch; StopIteration after the last one."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Go on to the next batch; False if there is none."""
        raise NotImplementedError

    def getdata(self) -> list[NDArray]:
        """The data of the batch."""
        raise NotImplementedError

    def getlabel(self) -> list[NDArray]:
        """The labels of the batch."""
        raise NotImplementedError

    def getindex(self) -> Any:
        """The indices of the examples, if they are known."""
        return None

    def getpad(self) -> int:
        """How many examples at the end of the batch are padding."""
        raise NotImplementedError


def _named(values: Any, default: str) -> list[tuple[str, NDArray]]:
    """Arrays with their names, from an array, a list of them or a dict."""
    if values is None:
        return []
    if isinstance(values, (np.ndarray, NDArray)):
        values = [values]
    if isinstance(values, (list, tuple)):
        names = [default] if len(values) == 1 else [f"_{i}_{default}" for i in range(len(values))]
        values = dict(zip(names, values, strict=True))
    if not isinstance(values, Mapping):
        raise TypeError(f"takes NumPy arrays or NDArrays, a list or a dict of them, not {type(values).__name__}")
    return [(name, value if isinstance(value, NDArray) else nd.array(value)) for name, value in values.items()]


class NDArrayIter(DataIter):
    """Batches of arrays along their first axis.

    Parameters
    ----------
    data : array, list or dict of arrays
        NumPy arrays become float32.
    label : array, list or dict of arrays, optional
    batch_size : int
    shuffle : bool
        Take the examples in another order in each round, from NumPy's global random numbers.
    last_batch_handle : {"pad", "discard", "roll_over"}
        Of a last batch that is not full: fill it with the first examples; leave it out; begin the next round with it.
        What a round begins with so is no padding: `pad` is 0 there.
    data_name, label_name : str
        The names of arrays given without one.

    Raises
    ------
    AssertionError
        If arrays differ in length, there are no examples, or `batch_size` is less than 1.
    ValueError
        For another `last_batch_handle`.

    Examples
    --------
    >>> import numbagrad as mx
    >>> batches = mx.io.NDArrayIter(mx.nd.arange(5), batch_size=2)
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0], 0), ([2.0, 3.0], 0), ([4.0, 0.0], 1)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        super().__init__(batch_size)
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ValueError(f"NDArrayIter: last_batch_handle is pad, discard or roll_over, not {last_batch_handle!r}")
        self.data = _named(data, data_name)
        self.label = _named(label, label_name)
        arrays = [array for _, array in (*self.data, *self.label)]
        self.num_data = arrays[0].shape[0] if arrays else 0
        assert all(array.shape[0] == self.num_data for array in arrays), (
            f"NDArrayIter: arrays of different lengths, {[array.shape[0] for array in arrays]}"
        )
        assert batch_size > 0, f"NDArrayIter: batch_size must be at least 1, not {batch_size}"
        assert self.num_data > 0, "NDArrayIter: there are no examples"
        self.shuffle = shuffle
        self.last_batch_handle = last_batch_handle
        self.num_source = len(self.data)
        self._rest = np.empty(0, np.int64)
        self._begin()

    def _begin(self) -> None:
        order = np.arange(self.num_data)
        if self.shuffle:
            np.random.shuffle(order)
        self.idx = np.concatenate([self._rest, order])
        self._rest = np.empty(0, np.int64)
        self._cursor = -self.batch_size

    def _provided(self, arrays: list[tuple[str, NDArray]]) -> list[DataDesc]:
        return [DataDesc(name, (self.batch_size, *array.shape[1:]), array.dtype) for name, array in arrays]

    @property
    def provide_data(self) -> list[DataDesc]:
        """The names and shapes of the data of a batch."""
        return self._provided(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The names and shapes of the labels of a batch."""
        return self._provided(self.label)

    def reset(self) -> None:
        """Begin another round; with ``roll_over`` with what the last one has left."""
        left = self.idx[self._cursor :] if self._cursor >= 0 else self._rest
        if self.last_batch_handle == "roll_over" and 0 < len(left) < self.batch_size:
            self._rest = left
        self._begin()

    def hard_reset(self) -> None:
        """Begin another round, and forget what the last one has left."""
        self._rest = np.empty(0, np.int64)
        self._begin()

    def iter_next(self) -> bool:
        """Go on to the next batch; False if there is none."""
        if self._cursor < len(self.idx):
            self._cursor += self.batch_size
        left = len(self.idx) - self._cursor
        return left >= self.batch_size or (left > 0 and self.last_batch_handle == "pad")

    def next(self) -> DataBatch:
        """The next batch; StopIteration after the last one."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(
            self.getdata(),
            self.getlabel(),
            self.getpad(),
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    def _taken(self, arrays: list[tuple[str, NDArray]]) -> list[NDArray]:
        chosen = self.idx[self._cursor : self._cursor + self.batch_size]
        if len(chosen) < self.batch_size:
            chosen = np.concatenate([chosen, np.resize(self.idx, self.batch_size - len(chosen))])
        index = nd.array(chosen, dtype="int64")
        return [nd.take(array, index) for _, array in arrays]

    def getdata(self) -> list[NDArray]:
        """The data of the batch."""
        return self._taken(self.data)

    def getlabel(self) -> list[NDArray]:
        """The labels of the batch."""
        return self._taken(self.label)

    def getpad(self) -> int:
        """How many examples at the end of the batch are padding."""
        return max(0, self._cursor + self.batch_size - len(self.idx))


__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter"]
