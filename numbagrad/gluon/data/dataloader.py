"""The loader: batches of a dataset."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numbagrad import nd
from numbagrad.context import cpu_pinned
from numbagrad.gluon.data.dataset import rows
from numbagrad.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from numbagrad.kernels.index import RAISE
from numbagrad.kernels.index import take as take_kernel
from numbagrad.launch import launch
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.casting import raw
from numbagrad.ops.dtypes import as_dtype
from numbagrad.ops.layout import size_of

if TYPE_CHECKING:
    from concurrent.futures import Future


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """A batch of examples: NDArrays are stacked, tuples become a list with each part batched, the rest goes by NumPy.

    Raises
    ------
    KeyError
        For what is no number.
    """
    first = data[0]
    if isinstance(first, NDArray):
        return nd.stack(*data)
    if isinstance(first, tuple):
        return [default_batchify_fn(part) for part in zip(*data)]
    values = np.asarray(data)
    try:
        dtype = as_dtype(values.dtype)
    except TypeError as error:
        raise KeyError(f"DataLoader: examples of type {type(first).__name__} make no batch: {error}") from None
    return nd.array(values, dtype=dtype)


default_mp_batchify_fn = default_batchify_fn


def _gather(data: Any, is_column: bool) -> Callable[[np.ndarray], NDArray]:
    """What makes a batch of the rows of `data` at given indices, in one kernel call.

    `is_column`: the elements keep an axis of their own, as those of an NDArray do.
    """
    if isinstance(data, NDArray):
        flat, shape, context = data._flat, data._shape, data._context
    else:
        flat, shape, context = np.ascontiguousarray(data).reshape(-1), data.shape, None
    tail = (1,) if is_column and len(shape) == 1 else shape[1:]
    length, width, dtype = shape[0], size_of(shape[1:]), flat.dtype
    flat = raw(flat)
    is_viewed = flat.dtype is not dtype
    empty, moved = np.empty, flat.dtype

    def gather(index: np.ndarray) -> NDArray:
        count = index.size
        out = empty(count * width, moved)
        launch(take_kernel, flat, index, out, 1, length, width, count, RAISE)
        result = NDArray(out.view(dtype) if is_viewed else out, (count, *tail))
        if context is not None:
            result._context = context
        return result

    return gather


class DataLoader:
    """Batches of a dataset; can be gone through again and again.

    Parameters
    ----------
    dataset : Dataset, NDArray, numpy.ndarray or sequence
    batch_size : int
    shuffle : bool
        A new order at each pass, by NumPy's global generator.
    sampler : Sampler, optional
        Another order.
    last_batch : {"keep", "discard", "rollover"}, optional
        What becomes of a last, shorter batch: ``keep`` by default.
    batch_sampler : Sampler, optional
        Gives lists of indices, instead of the four above.
    batchify_fn : callable, optional
        Makes a batch of a list of examples; :func:`default_batchify_fn` by default.
    num_workers : int
        So many threads prepare batches ahead, in order. Threads, not processes: kernels and NumPy release the
        interpreter, a transform in Python does not.
    pin_memory : bool
        Label batches ``cpu_pinned(pin_device_id)``.
    pin_device_id : int
    prefetch : int, optional
        How many batches are prepared ahead; twice `num_workers` by default.
    thread_pool, auto_reload : bool
        Accepted for MXNet's sake.
    timeout : int
        Seconds to wait for a worker.

    Raises
    ------
    ValueError
        Without `batch_size`, and where arguments contradict each other.

    Notes
    -----
    Rows of arrays (an :class:`ArrayDataset` of NDArrays and NumPy arrays, or one of these itself) are gathered a whole
    batch at a time. Batches keep the dtype of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from numbagrad import gluon
    >>> data = gluon.data.ArrayDataset(np.arange(6).reshape(3, 2), np.arange(3))
    >>> [(x.shape, y.tolist()) for x, y in gluon.data.DataLoader(data, batch_size=2)]
    [((2, 2), [0, 1]), ((1, 2), [2])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: int = 120,
        auto_reload: bool = False,
    ) -> None:
        if batch_sampler is None:
            if batch_size is None:
                raise ValueError("batch_size must be specified unless batch_sampler is specified")
            if batch_size < 1:
                raise ValueError(f"batch_size must be at least 1, not {batch_size}")
            if sampler is None:
                sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
            elif shuffle:
                raise ValueError("shuffle must not be specified if sampler is specified")
            batch_sampler = BatchSampler(sampler, batch_size, last_batch if last_batch else "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError(
                "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified."
            )
        self._dataset = dataset
        self._batch_sampler = batch_sampler
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._num_workers = max(num_workers, 0)
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._timeout = timeout

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if self._batchify_fn is default_batchify_fn:
            arrays = rows(self._dataset)
            if arrays is not None:
                batches = self._gathered(arrays)
                return self._pinned(batches) if self._pin_memory else batches
        batches = self._by_workers() if self._num_workers else self._one_by_one()
        return self._pinned(batches) if self._pin_memory else batches

    # ------------------------------------------------------------------------------------- rows of arrays

    def _gathered(self, arrays: list[Any]) -> Iterator[Any]:
        # A row of a 1-d NDArray is an array of one element, and stays one in the batch.
        gathers = [_gather(data, isinstance(data, NDArray)) for data in arrays]
        if len(gathers) == 1:
            return map(gathers[0], self._indices())
        return ([gather(index) for gather in gathers] for index in self._indices())

    def _indices(self) -> Iterator[np.ndarray]:
        """The indices of each batch, int64."""
        batches = self._batch_sampler
        if type(batches) is BatchSampler and batches._last_batch != "rollover":
            sampler = batches._sampler
            if type(sampler) in (SequentialSampler, RandomSampler):
                order, size = sampler.order(), batches._batch_size
                n = order.size if batches._last_batch == "keep" else order.size // size * size
                for start in range(0, n, size):
                    yield order[start : min(start + size, n)]
                return
        for batch in batches:
            index = np.asarray(batch)
            if index.dtype.kind not in "iu":
                raise TypeError(f"DataLoader: indices must be ints, not {index.dtype}")
            yield index.astype(np.int64)

    # ------------------------------------------------------------------------------------ any other dataset

    def _one_by_one(self) -> Iterator[Any]:
        dataset, batchify = self._dataset, self._batchify_fn
        for batch in self._batch_sampler:
            yield batchify([dataset[i] for i in batch])

    def _by_workers(self) -> Iterator[Any]:
        dataset, batchify = self._dataset, self._batchify_fn

        def make(batch: list[Any]) -> Any:
            return batchify([dataset[i] for i in batch])

        from concurrent.futures import ThreadPoolExecutor  # not at the top: few programs need it

        waiting: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(self._num_workers, thread_name_prefix="DataLoader")
        try:
            batches = iter(self._batch_sampler)
            for batch in batches:
                waiting.append(pool.submit(make, batch))
                if len(waiting) > self._prefetch:
                    yield waiting.popleft().result(self._timeout)
            while waiting:
                yield waiting.popleft().result(self._timeout)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _pinned(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = cpu_pinned(self._pin_device_id)

        def pin(batch: Any) -> Any:
            if isinstance(batch, NDArray):
                return batch.as_in_context(context)
            return [pin(part) for part in batch] if isinstance(batch, (list, tuple)) else batch

        for batch in batches:
            yield pin(batch)
