"""``jit``: run once with the recorder at the door, replay from then on."""

import functools
import gc
import inspect
import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.array import Storage, wrote
from numbagrad.capture.fast import MISS, fast_call
from numbagrad.capture.passes import PASSES, Facts, run_passes
from numbagrad.capture.program import Program
from numbagrad.capture.recorder import Buffer, Recorder, root_of
from numbagrad.errors import CaptureError
from numbagrad.native.cache import compilations
from numbagrad.tape import Leaf, RebindEpoch, state

_log = logging.getLogger("numbagrad.jit")
_IMMUTABLE = (int, float, complex, str, bytes, bool, type(None), np.generic)
MAX_VARIANTS = 64


# -------------------------------------------------------------------------------------------- containers


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Take the leaves out of nested tuples, lists and dicts; what is left describes the structure."""
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, tuple([flatten(item, leaves) for item in value]))
    if kind is dict:
        return (dict, tuple([(key, flatten(value[key], leaves)) for key in value]))
    leaves.append(value)
    return None


def rebuild(structure: Any, leaves: Any) -> Any:
    """The inverse of :func:`flatten`; `leaves` is an iterator."""
    if structure is None:
        return next(leaves)
    kind, items = structure
    if kind is dict:
        return {key: rebuild(item, leaves) for key, item in items}
    return kind(rebuild(item, leaves) for item in items)


def _miss(*args: Any) -> Any:
    return MISS


# ----------------------------------------------------------------------------------------------- variants


class Variant:
    """One captured run: its guard, its program and how its results are made."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.program: Program
        self.passes: dict[str, tuple[int, int]] = {}
        """Rows before and after each pass."""
        self.compiled: list[Any] = []
        """What had to be compiled for the capture."""
        self.fast: Callable[..., Any] = _miss
        self.seconds = 0.0
        self.epoch = 0
        self.recording = False
        self.training = False
        self.structure: Any = None
        self.guards: list[Any] = []
        """One a leaf of the arguments: (shape, dtype) of an array, or the number itself."""
        self.sharing: tuple[int, ...] = ()
        self.values: list[tuple[Any, Any]] = []
        """(cell or (dict, name), value) of what the function reaches that may change."""
        self.takes: list[int] = []
        """The leaves whose memory the table takes, in order."""
        self.makes: list[tuple[int, np.dtype]] = []
        """(elements, dtype) of the memory made for each result."""
        self.results: list[Any] = []
        """How each result is made: ("new", which, offset, size, shape), ("same", leaf number) or ("keep", object)."""
        self.result_structure: Any = None
        self.written: list[Any] = []
        """The storages that stay and are written, whose versions rise."""
        self.written_leaves: list[int] = []


class Jitted:
    """A function that is captured on its first call and replayed on the next ones; made by :func:`jit`."""

    __name__: str

    def __init__(
        self, function: Callable[..., Any], check: bool, max_variants: int, passes: Sequence[str]
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._check = check
        self._max_variants = max_variants
        self._passes = tuple(passes)
        self._variants: list[Variant] = []
        self._lock = threading.RLock()
        self._fast: Callable[..., Any] = _miss
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
        if not kwargs and not self._check:
            result = self._fast(*args)
            if result is not MISS:
                return result
        if door.mode is not None:  # inside a capture, or under the profiler
            return self._function(*args, **kwargs)
        leaves: list[Any] = []
        structure = flatten((args, kwargs) if kwargs else args, leaves)
        if any([type(leaf) is np.ndarray and not leaf.flags.c_contiguous for leaf in leaves]):
            leaves = [np.ascontiguousarray(leaf) if type(leaf) is np.ndarray else leaf for leaf in leaves]
            rebuilt = rebuild(structure, iter(leaves))
            args, kwargs = rebuilt if kwargs else (rebuilt, kwargs)
        with self._lock:
            for variant in self._variants:
                if self._fits(variant, structure, leaves):
                    if self._check:
                        return self._checked(variant, leaves, args, kwargs)
                    result = self._replay(variant, leaves)
                    if result is not MISS:
                        self._fast = variant.fast
                        return result
            return self._capture(structure, leaves, args, kwargs)

    # --------------------------------------------------------------------------------------------- guards

    def _fits(self, variant: Variant, structure: Any, leaves: list[Any]) -> bool:
        flags = state
        if (
            variant.epoch != RebindEpoch.value
            or variant.recording != flags.recording
            or variant.training != flags.training
            or variant.structure != structure
        ):
            return False
        new = tape.new
        for guard, leaf in zip(variant.guards, leaves):  # as many, by the structure
            if type(leaf) is new:
                if type(guard) is not tuple or leaf._shape != guard[0] or leaf._flat.dtype != guard[1]:
                    return False
                if leaf._node is not guard[2]:
                    return False
            elif type(leaf) is np.ndarray:
                if type(guard) is not list or leaf.shape != guard[0] or leaf.dtype != guard[1]:
                    return False
            elif type(guard) is not type(leaf) or not (guard is leaf or guard == leaf):
                return False
        for place, value in variant.values:
            if _current(place) is not value and not _equal(_current(place), value):
                return False
        return _sharing(leaves) == variant.sharing

    def _why_not(self, structure: Any, leaves: list[Any]) -> str:
        """Why the newest variant does not fit, for the log and the report."""
        if not self._variants:
            return "first call"
        variant = self._variants[-1]
        if variant.structure != structure:
            return "other arguments"
        for i, (guard, leaf) in enumerate(zip(variant.guards, leaves, strict=True)):
            if isinstance(leaf, (tape.new, np.ndarray)):  # type: ignore[arg-type]
                if not isinstance(guard, (tuple, list)):
                    return f"argument {i} became an array"
                if leaf.shape != guard[0]:
                    return f"argument {i} has shape {leaf.shape}, was {guard[0]}"
                if np.dtype(leaf.dtype) != guard[1]:
                    return f"argument {i} has dtype {np.dtype(leaf.dtype)}, was {guard[1]}"
            elif type(guard) is not type(leaf) or guard != leaf:
                return f"argument {i} is {leaf!r}, was {guard!r}"
        if (variant.recording, variant.training) != (state.recording, state.training):
            return "recording or training changed"
        for place, value in variant.values:
            if not _equal(_current(place), value):
                return f"{_place_name(place)} is {_current(place)!r}, was {value!r}"
        if variant.epoch != RebindEpoch.value:
            return "an array was marked or got other memory (rebind epoch)"
        return "arrays share memory in another way"

    # --------------------------------------------------------------------------------------------- replay

    def _replay(self, variant: Variant, leaves: list[Any]) -> Any:
        program = variant.program
        arrays = []
        for i in variant.takes:
            leaf = leaves[i]
            arrays.append(leaf._flat if type(leaf) is tape.new else _flat(leaf))
        made = [np.empty(size, dtype) for size, dtype in variant.makes]
        for effect in program.before:
            effect()
        if variant.epoch != RebindEpoch.value:
            return MISS
        status = program.run(program.code, *arrays, *made)
        if status:
            raise program.failure(status)
        for effect in program.after:
            effect()
        wrote(*variant.written)
        for i in variant.written_leaves:
            wrote(leaves[i]._storage)
        return self._make_results(variant, leaves, made)

    def _checked(self, variant: Variant, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Replay, go back, run the function itself, and compare all that they return and write."""
        roots = variant.program.written_roots()
        roots += [root_of(leaves[i]._flat) for i in variant.written_leaves]
        before = [root.copy() for root in roots]
        replayed = self._replay(variant, leaves)
        if replayed is MISS:
            replayed = None
        written = [root.copy() for root in roots]
        for root, old in zip(roots, before, strict=True):
            root[...] = old
        result = self._function(*args, **kwargs)
        if replayed is None:
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
                    f"{self.__name__}: {what} {k} of a replay differs from what the function computes: it depends on something "
                    "that is neither an argument, nor an array, nor an immutable value of its own closure or globals"
                )
        return result

    def _make_results(self, variant: Variant, leaves: list[Any], made: list[np.ndarray]) -> Any:
        new = tape.new
        results = []
        storages: dict[int, Any] = {}
        for kind, *how in variant.results:
            if kind == "new":
                which, start, size, shape = how
                whole = made[which]
                storage = storages.get(which)
                if storage is None:
                    result = new(whole, shape) if start == 0 and size == whole.size else None
                    if result is None:
                        result = new(whole[start : start + size], shape, Storage(whole))
                    storages[which] = result._storage
                else:
                    result = new(whole[start : start + size], shape, storage)
                results.append(result)
            elif kind == "same":
                results.append(leaves[how[0]])
            elif kind == "view":
                leaf = leaves[how[0]]
                flat = leaf._flat[how[1] : how[1] + how[2]] if how[1] or how[2] != leaf._flat.size else leaf._flat
                results.append(new(flat, how[3], leaf._storage))
            else:
                results.append(how[0])
        if variant.result_structure is None:
            return results[0]
        return rebuild(variant.result_structure, iter(results))

    # -------------------------------------------------------------------------------------------- capture

    def _capture(self, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        reason = self._why_not(structure, leaves)
        if self._variants:
            _log.info("%s: captured again: %s", self.__name__, reason)
        start = time.perf_counter()
        compiled = len(compilations)
        self._variants = [v for v in self._variants if v.epoch == RebindEpoch.value]
        if len(self._variants) >= self._max_variants:
            self._variants.pop(0)
        variant = Variant(reason)
        variant.recording, variant.training = state.recording, state.training
        self._note_guards(variant, leaves)
        recorder = Recorder()
        recorder.start()
        door.mode = recorder
        try:
            result = self._function(*args, **kwargs)
            door.mode = None
            recorder.stop()
            result = self._lower(variant, recorder, leaves, result)
        except BaseException:
            door.mode = None
            recorder.stop()
            recorder.undo()
            raise
        variant.structure = structure
        variant.epoch = RebindEpoch.value
        variant.fast = fast_call(variant, self._lock)
        variant.seconds = time.perf_counter() - start
        variant.compiled = compilations[compiled:]
        self._variants.append(variant)
        self._fast = variant.fast
        return result

    def _note_guards(self, variant: Variant, leaves: list[Any]) -> None:
        for leaf in leaves:
            if type(leaf) is tape.new:
                variant.guards.append((leaf._shape, leaf._flat.dtype, leaf._node))
            elif type(leaf) is np.ndarray:
                variant.guards.append([leaf.shape, leaf.dtype])
            elif isinstance(leaf, _IMMUTABLE):
                variant.guards.append(leaf)
            else:
                raise CaptureError(
                    "a captured function takes arrays, numbers, str, None and containers of them, "
                    f"not {type(leaf).__name__}; reach other objects as globals or in a closure"
                )
        variant.sharing = _sharing(leaves)
        variant.values = _reached(self._function)

    def _lower(self, variant: Variant, recorder: Recorder, leaves: list[Any], result: Any) -> Any:
        """Sort the memory of the log into what calls bring, what stays and the program's own; lay out the table."""
        log = recorder.log
        by_root = {id(buffer.root): buffer for buffer in log.buffers}
        brought: dict[Buffer, tuple[Buffer, int, str]] = {}
        for i, leaf in enumerate(leaves):
            if type(leaf) is tape.new or type(leaf) is np.ndarray:
                flat = _flat(leaf)
                buffer = by_root.get(id(root_of(flat)))
                if buffer is not None and buffer not in brought:
                    brought[buffer] = (buffer, address_of_array(flat), flat.dtype.name)
                    variant.takes.append(i)
        arguments = set(brought)
        argument_storages = {id(leaf._storage): i for i, leaf in enumerate(leaves) if type(leaf) is tape.new}
        outputs: list[Any] = []
        variant.result_structure = flatten(result, outputs)
        born = {id(storage) for storage in recorder.born}
        result_storages = set()
        made: dict[Buffer, int] = {}
        for output in outputs:
            if type(output) is not tape.new:
                if not isinstance(output, _IMMUTABLE):
                    raise CaptureError(
                        f"{self.__name__}: a captured function returns arrays, numbers, None and containers of them, "
                        f"not {type(output).__name__}"
                    )
                variant.results.append(("keep", output))
                continue
            if type(tape.place(output)) not in (type(None), Leaf):
                raise CaptureError(f"{self.__name__}: returned an array that is still on the tape")
            result_storages.add(id(output._storage))
            same = next((i for i, leaf in enumerate(leaves) if leaf is output), None)
            buffer = by_root.get(id(root_of(output._flat)))
            if same is not None:
                variant.results.append(("same", same))
            elif id(output._storage) in born and buffer is not None and buffer not in arguments:
                root = buffer.root
                assert root is not None
                if buffer not in made:
                    made[buffer] = len(variant.makes)
                    brought[buffer] = (buffer, buffer.address, root.dtype.name)
                    variant.makes.append((root.size, root.dtype))
                offset = (address_of_array(output._flat) - buffer.address) // root.itemsize
                variant.results.append(("new", made[buffer], offset, output._flat.size, output._shape))
            elif id(output._storage) in argument_storages:
                i = argument_storages[id(output._storage)]
                offset = (address_of_array(output._flat) - address_of_array(leaves[i]._flat)) // output._flat.itemsize
                variant.results.append(("view", i, offset, output._flat.size, output._shape))
            else:
                variant.results.append(("keep", output))
        for storage in dict.fromkeys([storage for storage, _ in recorder.wrote]):
            if id(storage) in argument_storages:
                variant.written_leaves.append(argument_storages[id(storage)])
            elif id(storage) not in born:
                variant.written.append(storage)
        escaping = [
            (weakref.ref(storage), by_root[id(root_of(storage.array))])
            for storage in recorder.born
            if id(storage) not in result_storages and id(root_of(storage.array)) in by_root
        ]
        gradients = {}
        for leaf in recorder.leaves:
            gradient = by_root.get(id(root_of(leaf.gradient._flat)))
            if gradient is not None and not leaf.adds and not leaf.gradient._storage.pinned:
                gradients[gradient] = by_root[id(root_of(leaf.flag_memory()))]
        root = storage = buffer = leaf = None
        recorder.forget()
        if any(reference() is not None for reference, _ in escaping):
            gc.collect()
        for reference, buffer in escaping:
            if reference() is not None and buffer not in brought:
                raise CaptureError(
                    f"{self.__name__}: an array made in the captured function (at {buffer.line}) outlives the call: "
                    "return it, "
                    "or write it to an array that exists before (x[:] = ...)"
                )
        inner = _inner([buffer for buffer in log.buffers if buffer not in brought])
        calls, variant.passes = run_passes(log.calls, Facts(frozenset(inner), gradients, _values), self._passes)
        variant.program = Program(calls, log.effects, list(brought.values()), inner)
        return result

    # --------------------------------------------------------------------------------------------- report

    def report(self) -> str:
        """The variants: why each was captured, how long that took, rows and bytes."""
        lines = [f"{self.__name__}: {len(self._variants)} variant(s)"]
        for k, variant in enumerate(self._variants):
            program = variant.program
            lines.append(
                f"  {k}: {variant.reason}; {len(program.calls)} rows, {program.arena_bytes} bytes of buffers, "
                f"captured in {variant.seconds * 1e3:.1f} ms"
            )
            for name, (before, after) in variant.passes.items():
                lines.append(f"     {name}: {before} rows, then {after}")
            for compiled in variant.compiled:
                lines.append(f"     compiled {compiled.name} in {compiled.seconds * 1e3:.0f} ms")
        return "\n".join(lines)

    def source(self) -> str:
        """The tables: each row with its kernel, its arguments and the line that asked for it."""
        lines = []
        for k, variant in enumerate(self._variants):
            lines.append(f"variant {k}")
            program = variant.program
            for row, call in enumerate(program.calls):
                words = []
                for value in call.arguments:
                    if hasattr(value, "buffer"):
                        span = program.spans[value.buffer]
                        words.append(f"{span.kind}{value.buffer.index}[{value.size} {value.dtype}]")
                    else:
                        words.append(repr(value))
                lines.append(f"  {row:3} {call.kernel.name}({', '.join(words)})  # {call.line}")
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

    `function` must depend only on its arguments, on arrays, and on immutable Python values that it reaches as closure cells
    or globals of its own; anything else is read once, when it is captured.

    Parameters
    ----------
    function : callable
        Takes and returns NDArrays, NumPy arrays, numbers, None and containers of them. May record, call backward and
        ``trainer.step``, write to arrays in place, draw random numbers.
    check : bool
        Also run the function itself at each call, and compare results and everything that is written; no pass is run.
    keep_grads : bool
        Leave gradients in their buffers. Otherwise plain SGD without decay and clipping is folded into the products that
        compute its gradients, and reading such a gradient raises.
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
        return lambda named: jit(
            named, check=check, keep_grads=keep_grads, max_variants=max_variants, passes=passes
        )
    unknown = set(passes) - set(PASSES)
    if unknown:
        raise ValueError(f"jit: no pass {', '.join(sorted(unknown))}; there are {', '.join(PASSES)}")
    wanted = [name for name in passes if not check and not (keep_grads and name == "fold_updates")]
    return Jitted(function, check, max_variants, wanted)


# ------------------------------------------------------------------------------------------------- pieces


class _Method:
    """A bound method that does not keep its instance alive."""

    def __init__(self, method: Any, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method()(*args, **kwargs)


def address_of_array(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def _numpy(value: Any) -> Any:
    return value._flat if type(value) is tape.new else 0 if value is None or isinstance(value, str) else value


def _values(slot: Any) -> np.ndarray:
    """What a slot of memory that stays holds now."""
    whole = slot.buffer.root.reshape(-1).view(slot.dtype)
    start = slot.offset // whole.itemsize
    return whole[start : start + slot.size]


def _flat(leaf: Any) -> np.ndarray:
    return leaf._flat if type(leaf) is tape.new else leaf.reshape(-1)


def _inner(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Those of `buffers` that nobody else holds and that the program writes before it reads."""
    candidates = [(buffer, weakref.ref(buffer.root)) for buffer in buffers if buffer.first == "out"]
    for buffer, _ in candidates:
        buffer.root = None
    inner = []
    for buffer, reference in candidates:
        root = reference()
        if root is None:
            inner.append(buffer)
        else:
            buffer.root = root
    return inner


def _sharing(leaves: list[Any]) -> tuple[int, ...]:
    """For each array argument, the number of the first one on the same memory; () if no two share."""
    owners = [id(leaf._storage) if type(leaf) is tape.new else id(leaf) for leaf in leaves if hasattr(leaf, "shape")]
    if len(set(owners)) == len(owners):
        return ()
    starts = [address_of_array(_flat(leaf)) for leaf in leaves if hasattr(leaf, "shape")]
    first = {owner: starts[owners.index(owner)] for owner in owners}
    return tuple(
        value
        for owner, start in zip(owners, starts, strict=True)
        for value in (owners.index(owner), start - first[owner])
    )


def _reached(function: Any) -> list[tuple[Any, Any]]:
    """The immutable values that `function` reaches as closure cells and globals, with where they are."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    found: list[tuple[Any, Any]] = []
    for cell in function.__closure__ or ():
        try:
            if _is_immutable(cell.cell_contents):
                found.append((cell, cell.cell_contents))
        except ValueError:
            continue
    names = set(code.co_names)
    for constant in code.co_consts:
        names |= set(getattr(constant, "co_names", ()))
    for name in sorted(names):
        if name in function.__globals__ and _is_immutable(function.__globals__[name]):
            found.append(((function.__globals__, name), function.__globals__[name]))
    return found


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_immutable(item) for item in value)
    return isinstance(value, _IMMUTABLE)


def _current(place: Any) -> Any:
    return place[0].get(place[1]) if type(place) is tuple else place.cell_contents


def _place_name(place: Any) -> str:
    return f"global {place[1]}" if type(place) is tuple else "a closure variable"


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
