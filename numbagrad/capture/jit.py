"""``jit``: run once with the recorder at the door, replay from then on."""

import functools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.array import root_of
from numbagrad.capture.fast import MISS, fast_call, miss
from numbagrad.capture.guards import Guard
from numbagrad.capture.lower import lower
from numbagrad.capture.passes import PASSES
from numbagrad.capture.recorder import Recorder, Slot
from numbagrad.capture.variant import Variant
from numbagrad.collector import held_back
from numbagrad.containers import flatten, rebuild
from numbagrad.errors import CaptureError
from numbagrad.native.cache import compilations
from numbagrad.native.source import loop_source
from numbagrad.tape import RebindEpoch, state

_log = logging.getLogger("numbagrad.jit")
MAX_VARIANTS = 64
_capturing = threading.RLock()
"""One capture at a time: its recorder stands at the one door."""


class Jitted:
    """A function that is captured on its first call and replayed on the next ones; made by :func:`jit`."""

    __name__: str

    def __init__(self, function: Callable[..., Any], check: bool, max_variants: int, passes: Sequence[str]) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._check = check
        self._max_variants = max_variants
        self._passes = tuple(passes)
        self._variants: list[Variant] = []
        self._lock = threading.RLock()
        self._fast: Callable[..., Any] = miss
        self._bound: weakref.WeakKeyDictionary[Any, Jitted] = weakref.WeakKeyDictionary()

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        found = self._bound.get(instance)
        if found is None:
            # The method holds its instance weakly: the table of bound methods must not keep it alive.
            method = weakref.WeakMethod(self._function.__get__(instance, owner))
            found = self._bound[instance] = Jitted(
                _Method(method, self._function), self._check, self._max_variants, self._passes
            )
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Replay the variant that fits the arguments, or capture one."""
        if not kwargs:
            result = self._fast(*args)
            if result is not MISS:
                return result
        if door.mode is not None:  # inside a capture, or under the profiler
            return self._function(*args, **kwargs)
        leaves: list[Any] = []
        structure = flatten((args, kwargs), leaves)
        if any(type(leaf) is np.ndarray and not _flat_memory(leaf) for leaf in leaves):
            leaves = [leaf.copy() if type(leaf) is np.ndarray and not _flat_memory(leaf) else leaf for leaf in leaves]
            args, kwargs = rebuild(structure, iter(leaves))
        with self._lock:
            for variant in self._variants:
                if variant.guard.fits(structure, leaves):
                    if self._check:
                        return self._checked(variant, leaves, args, kwargs)
                    result = variant.replay(leaves)
                    if result is not MISS:
                        if variant.unrolled != len(variant.guard.fixed):
                            variant.fast = fast_call(variant, self._lock)
                            variant.unrolled = len(variant.guard.fixed)
                        self._fast = variant.fast
                        return result
            with _capturing, held_back():  # collections took a third of the time of a deep network's capture
                return self._capture(structure, leaves, args, kwargs)

    def _capture(self, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        reason = self._variants[-1].guard.misfit(structure, leaves) if self._variants else "first call"
        if self._variants:
            _log.info("%s: captured again: %s", self.__name__, reason)
        start = time.perf_counter()
        compiled = len(compilations)
        self._variants = [variant for variant in self._variants if variant.guard.epoch == RebindEpoch.value]
        if len(self._variants) >= self._max_variants:
            self._variants.pop(0)
        variant = Variant(reason, Guard(structure, leaves, self._function))
        recorder = Recorder()
        marks = [(leaf, leaf._node, leaf._shape) for leaf in leaves if type(leaf) is tape.new]
        if any(type(leaf) is np.ndarray for leaf in leaves):
            given = [leaf.view(door.Handed) if type(leaf) is np.ndarray else leaf for leaf in leaves]
            args, kwargs = rebuild(structure, iter(given))
        recorder.start()
        door.mode = recorder
        try:
            result = self._function(*args, **kwargs)
            door.mode = None
            recorder.stop()
            if (state.recording, state.training) != (variant.guard.recording, variant.guard.training):
                raise CaptureError(
                    f"{self.__name__}: a captured function must leave recording and training as they were"
                )
            result = lower(variant, recorder, self._function, leaves, result, self._passes)
        except BaseException:
            door.mode = None
            recorder.stop()
            recorder.undo()
            state.recording, state.training = variant.guard.recording, variant.guard.training
            for leaf, node, shape in marks:
                leaf._node, leaf._shape = node, shape
            raise
        variant.guard.epoch = RebindEpoch.value
        variant.seconds = time.perf_counter() - start
        variant.compiled = compilations[compiled:]
        self._variants.append(variant)
        return result

    def _checked(self, variant: Variant, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Replay, go back, run the function itself, and compare all that they return and write."""
        roots = variant.program.written_roots()
        roots += [root_of(leaves[i]._flat) for i in variant.written_leaves]
        before = [root.copy() for root in roots]
        replayed = variant.replay(leaves)
        written = [root.copy() for root in roots]
        for root, old in zip(roots, before, strict=True):
            root[...] = old
        result = self._function(*args, **kwargs)
        if replayed is MISS:
            return result
        ours: list[Any] = []
        theirs: list[Any] = []
        flatten(replayed, ours)
        flatten(result, theirs)
        pairs = [("result", _numpy(a), _numpy(b)) for a, b in zip(ours, theirs, strict=True)]
        pairs += [("memory", a, b) for a, b in zip(written, roots, strict=True)]
        for k, (what, a, b) in enumerate(pairs):
            if not np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True):
                raise CaptureError(
                    f"{self.__name__}: {what} {k} of a replay differs from what the function computes: it depends on "
                    "something that is neither an argument, nor an array, nor an immutable value of its own closure or "
                    "globals"
                )
        return result

    # --------------------------------------------------------------------------------------------- report

    def report(self) -> str:
        """The variants: why each was captured, how long that took, rows before and after passes, bytes."""
        lines = [f"{self.__name__}: {len(self._variants)} variant(s)"]
        for k, variant in enumerate(self._variants):
            program = variant.program
            lines.append(
                f"  {k}: {variant.reason}; {len(program.calls)} rows, {program.arena_bytes} bytes of buffers, "
                f"captured in {variant.seconds * 1e3:.1f} ms"
            )
            if variant.backward is not None:
                backward = variant.backward
                lines.append(
                    f"     one node on the tape: VJP of {len(backward.program.calls)} rows, "
                    f"{backward.carry_bytes} bytes kept"
                )
            for name, (before, after) in variant.passes.items():
                lines.append(f"     {name}: {before} rows, then {after}")
            for compiled in variant.compiled:
                lines.append(f"     compiled {compiled.name} in {compiled.seconds * 1e3:.0f} ms")
        return "\n".join(lines)

    def source(self) -> str:
        """The tables: each row with its kernel, its arguments and the line that asked for it; fused loops in full."""
        lines = []
        for k, variant in enumerate(self._variants):
            lines += [f"variant {k}", *_rows(variant.program)]
            if variant.backward is not None:
                lines += [f"variant {k}, VJP", *_rows(variant.backward.program)]
        return "\n".join(lines)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    check: bool = False,
    keep_grads: bool = False,
    max_variants: int = MAX_VARIANTS,
    passes: Sequence[str] = tuple(PASSES),
) -> Any:
    """Capture what `function` computes on its first call, and replay it natively on the next ones.

    `function` must depend only on its arguments, on arrays, and on immutable Python values that it reaches as closure
    cells or globals of its own; anything else is read once, when it is captured.

    Parameters
    ----------
    function : callable
        Takes and returns NDArrays, NumPy arrays, numbers, None and containers of them. May record, call backward and
        ``trainer.step``, write to arrays in place, draw random numbers.
    check : bool
        Also run the function itself at each call, and compare results and everything that is written; no pass is run.
    keep_grads : bool
        Leave gradients in their buffers. Otherwise plain SGD without decay and clipping is folded into the products
        that compute its gradients, and reading such a gradient raises.
    max_variants : int
        How many captures to keep; one is made for each combination of shapes, dtypes, flags and values.
    passes : sequence of str
        The passes to run over the log, names from ``numbagrad.capture.passes.PASSES``.

    Returns
    -------
    callable
        With ``report()`` and ``source()``.

    Raises
    ------
    CaptureError
        When called, if the function reads the value of an array, or an array made in it outlives the call; what it had
        written is put back. With `check`, where replay and function differ.

    Examples
    --------
    >>> import numbagrad
    >>> from numbagrad import nd
    >>> @numbagrad.jit
    ... def area(x):
    ...     return x * x * 3
    >>> area(nd.array([1, 2])).tolist(), area(nd.array([2, 4])).tolist()
    ([3.0, 12.0], [12.0, 48.0])
    """
    if function is None:
        return lambda named: jit(named, check=check, keep_grads=keep_grads, max_variants=max_variants, passes=passes)
    if not callable(function):
        raise TypeError(f"jit: takes a function, not {type(function).__name__}")
    unknown = set(passes) - set(PASSES)
    if unknown:
        raise ValueError(f"jit: no pass {', '.join(sorted(unknown))}; there are {', '.join(PASSES)}")
    wanted = [name for name in passes if not check and not (keep_grads and name == "fold_updates")]
    return Jitted(function, check, max_variants, wanted)


class _Method:
    """A bound method that does not keep its instance alive."""

    __name__: str

    def __init__(self, method: Any, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._method = method

    @property
    def __self__(self) -> Any:
        return self._method().__self__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method()(*args, **kwargs)


def _rows(program: Any) -> list[str]:
    lines = []
    for row, call in enumerate(program.calls):
        words = []
        for value in call.arguments:
            if isinstance(value, Slot):
                span = program.spans[value.buffer]
                words.append(f"{span.kind}{value.buffer.index}[{value.size} {value.dtype}]")
            else:
                words.append(repr(value))
        lines.append(f"  {row:3} {call.kernel.name}({', '.join(words)})  # {call.line}")
        form = call.kernel.loop
        if form is not None and call.kernel.name.startswith("fused"):
            text = loop_source(form.roots, form.dtype, form.pattern, form.out_dtypes)
            lines += [f"        {line}" for line in text[text.index("def ") :].splitlines()]
    return lines


def _flat_memory(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.flags.aligned


def _numpy(value: Any) -> Any:
    if type(value) is tape.new:
        return value._flat
    return 0 if value is None or isinstance(value, str) else value
