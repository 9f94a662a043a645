"""A log made into programs: memory is sorted into what calls bring, what stays and what is the programs' own."""

import gc
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.array import root_of
from numbagrad.capture.guards import IMMUTABLE, address_of_array, flat_of, position
from numbagrad.capture.node import Backward, CapturedOp
from numbagrad.capture.passes import run_passes
from numbagrad.capture.program import Brought, Program
from numbagrad.capture.recorder import Buffer, Call, Recorder, Slot
from numbagrad.capture.uses import Facts
from numbagrad.capture.variant import Variant
from numbagrad.containers import flatten
from numbagrad.errors import CaptureError
from numbagrad.ops.dtypes import floating
from numbagrad.ops.shaping import identity
from numbagrad.tape import Leaf, state
from numbagrad.walk import walk

_ALIGN = 64


def lower(
    variant: Variant,
    recorder: Recorder,
    function: Callable[..., Any],
    leaves: list[Any],
    result: Any,
    passes: Sequence[str],
) -> Any:
    """Fill in `variant` from what the recorder has logged; returns the result of the run.

    Raises
    ------
    CaptureError
        If an array made in the run outlives it, or the result holds something that cannot be made again.
    """
    name = getattr(function, "__name__", "function")
    outputs: list[Any] = []
    variant.result_structure = flatten(result, outputs)
    attached = [
        k
        for k, output in enumerate(outputs)
        if type(output) is tape.new
        and type(tape.place(output)) not in (type(None), Leaf)
        and not any(output is leaf for leaf in leaves)
    ]
    _refuse_marks(variant, name, leaves)
    split = len(recorder.log.calls)
    gradients: list[Any] = []
    heads: list[Any] = []
    if attached:
        ends = [outputs[k] for k in attached]
        heads, gradients = _record_backward(variant, recorder, name, function, leaves, ends, attached)
    by_root = {id(buffer.root): buffer for buffer in recorder.log.buffers}
    _refuse_overlaps(name, recorder.log.buffers)
    arguments = _arguments(variant, leaves, by_root)
    results = _results(variant, name, recorder, leaves, outputs, by_root, set(arguments), attached)
    _note_writes(variant, recorder, leaves)
    fold = _foldable(recorder, by_root)
    forward, backward = recorder.log.calls[:split], recorder.log.calls[split:]
    before, after = _touched(forward), _touched(backward)
    made = _gradient_memory(variant, gradients, by_root)
    snapshots = {
        buffer: buffer.root.copy()  # type: ignore[union-attr]
        for buffer in before & after
        if buffer.first == "out" and buffer not in arguments and buffer not in results
    }
    kept = {id(output._storage) for output in outputs if type(output) is tape.new}
    if attached:
        # The eager graph goes; the call becomes one node.
        for k in attached:
            outputs[k]._node = None
    gradients.clear()
    made_before: list[Any] = [buffer.root for buffer in results]
    _refuse_escapes(recorder, name, kept, by_root, {*arguments, *results})
    inner = _inner([b for b in recorder.log.buffers if b not in arguments and b not in results and b not in made])
    carried = [buffer for buffer in snapshots if buffer in inner]
    places, carry_bytes = _stack(carried)
    carry = Brought("uint8", {buffer: buffer.address - places[buffer] for buffer in carried})
    facts = Facts(frozenset(inner - set(carried)), frozenset(arguments), fold, _values)
    calls, variant.passes = run_passes(forward, facts, passes)
    brought = [*arguments.values(), *results.values()]
    left = _touched(calls)
    folded = [buffer.root for buffer in fold if buffer not in left]
    own = [buffer for buffer in inner if buffer not in places]
    variant.program = Program(calls, recorder.log.effects, brought + ([carry] if attached else []), own)
    variant.program.hold(folded)  # whoever asks for such a gradient makes the run void
    if attached:
        plan = variant.backward
        assert plan is not None
        plan.carry_bytes = carry_bytes + _ALIGN
        taken = [argument for buffer, argument in arguments.items() if buffer in after]
        plan.takes = [i for i, buffer in zip(variant.takes, arguments, strict=True) if buffer in after]
        shared = [
            Brought(
                head._flat.dtype.name,
                {by_root[id(head._flat)]: address_of_array(head._flat)} if id(head._flat) in by_root else {},
            )
            for head in heads
        ]
        plan.keeps = [j for j, buffer in enumerate(results) if buffer in after]
        read = [brought_here for buffer, brought_here in results.items() if buffer in after]
        plan.program = Program(backward, [], [*taken, *read, *shared, *made.values(), carry], own)
        plan.pure = not variant.written_leaves and not variant.program.written_roots()
        memory = np.empty(plan.carry_bytes, np.uint8)
        for buffer, content in snapshots.items():
            if buffer in places:
                at = places[buffer]
                memory[at : at + content.nbytes] = content.reshape(-1).view(np.uint8)
        variant.attach(outputs, leaves, memory, made_before)
    for buffer in {*arguments, *results, *made}:  # each call brings its own
        buffer.root = None
    return result


# ------------------------------------------------------------------------------------------------------- VJP


def _record_backward(
    variant: Variant,
    recorder: Recorder,
    name: str,
    function: Callable[..., Any],
    leaves: list[Any],
    outputs: list[Any],
    attached: list[int],
) -> tuple[list[Any], list[Any]]:
    """Walk from the outputs to the arguments and leaves below them, under the recorder."""
    arguments = {
        leaf._node: i for i, leaf in enumerate(leaves) if type(leaf) is tape.new and tape.place(leaf) is not None
    }
    wanted: dict[Any, Any] = {}
    seen: set[Any] = set()
    reads: dict[int, Any] = {}
    known = {id(storage) for storage in recorder.born}
    known |= {id(leaf._storage) for leaf in leaves if type(leaf) is tape.new}
    stack = [output._node for output in outputs]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in arguments:
            wanted[node] = arguments[node]
        elif type(node) is not Leaf and node.id < recorder.first:
            raise CaptureError(
                f"{name}: a captured function depends on an array that was computed on the tape before the call; "
                "make it an argument, or detach() it"
            )
        elif type(node) is Leaf:
            if node.wants:
                wanted[node] = node
        elif node.parents is not None:
            stack += [parent for parent in node.parents if parent is not None]
            for array in node.arrays:
                storage = getattr(array, "_storage", None)
                if storage is not None and id(storage) not in known:
                    reads[id(storage)] = tape.new(array._flat, array._shape, storage)
    op = CapturedOp(name, function, variant.guard.structure, len(outputs) > 1)
    plan = variant.backward = Backward(op, list(wanted.values()), attached)
    plan.reads = list(reads.values())
    heads = [tape.new(np.ones(o._flat.size, floating(o._flat.dtype)), o._shape) for o in outputs]
    recording, state.recording = state.recording, False
    recorder.start()
    door.mode = recorder
    try:
        pairs = [(output._node, head) for output, head in zip(outputs, heads, strict=True)]
        found = walk(pairs, True, False, list(wanted))
        gradients: list[Any] = []
        taken: set[int] = set()
        born = {id(storage) for storage in recorder.born}
        for gradient in found:
            if type(gradient) is tape.new:
                if id(gradient._storage) not in born or id(gradient._storage) in taken:
                    gradient = identity(gradient)
                taken.add(id(gradient._storage))
                gradients.append(gradient)
            else:
                gradients.append(None)
    finally:
        door.mode = None
        recorder.stop()
        state.recording = recording
    plan.shapes = [node.gradient._shape if type(node) is Leaf else leaves[i]._shape for node, i in wanted.items()]
    return heads, gradients


def _gradient_memory(variant: Variant, gradients: list[Any], by_root: dict[int, Buffer]) -> dict[Buffer, Brought]:
    made: dict[Buffer, Brought] = {}
    plan = variant.backward
    if plan is None:
        return made
    for gradient in gradients:
        if gradient is None:
            plan.gradients.append(None)
            continue
        root = root_of(gradient._flat)
        buffer = by_root[id(root)]
        plan.gradients.append((len(plan.makes), gradient._shape))
        plan.makes.append((gradient._flat.size, gradient._flat.dtype))
        made[buffer] = Brought(gradient._flat.dtype.name, {buffer: address_of_array(gradient._flat)})
    return made


# --------------------------------------------------------------------------------------- memory of the caller


def _arguments(variant: Variant, leaves: list[Any], by_root: dict[int, Buffer]) -> dict[Buffer, Brought]:
    """The buffers that are arguments; the table gets the addresses of the arguments themselves."""
    found: dict[Buffer, Brought] = {}
    for i, leaf in enumerate(leaves):
        if type(leaf) is tape.new or type(leaf) is np.ndarray:
            flat = flat_of(leaf)
            buffer = by_root.get(id(root_of(flat)))
            if buffer is not None and buffer not in found:
                found[buffer] = Brought(flat.dtype.name, {buffer: address_of_array(flat)})
                variant.takes.append(i)
    return found


def _results(
    variant: Variant,
    name: str,
    recorder: Recorder,
    leaves: list[Any],
    outputs: list[Any],
    by_root: dict[int, Buffer],
    arguments: set[Buffer],
    attached: Sequence[int],
) -> dict[Buffer, Brought]:
    """How each result is made, and the buffers that are results."""
    made: dict[Buffer, Brought] = {}
    numbers: dict[Buffer, int] = {}
    born = {id(storage) for storage in recorder.born}
    storages = {id(leaf._storage): i for i, leaf in enumerate(leaves) if type(leaf) is tape.new}
    for k, output in enumerate(outputs):
        variant.contexts.append(output._context if type(output) is tape.new else None)
        if type(output) is not tape.new:
            if not isinstance(output, IMMUTABLE):
                raise CaptureError(
                    f"{name}: a captured function returns arrays, numbers, None and containers of them, "
                    f"not {type(output).__name__}"
                )
            variant.results.append(("keep", output))
            continue
        flat = output._flat
        same = next((i for i, leaf in enumerate(leaves) if leaf is output), None)
        buffer = by_root.get(id(root_of(flat)))
        if same is not None:
            variant.results.append(("same", same))
        elif id(output._storage) in born and buffer is not None and buffer not in arguments:
            root = buffer.root
            assert root is not None
            if buffer not in made:
                numbers[buffer] = len(variant.makes)
                made[buffer] = Brought(root.dtype.name, {buffer: buffer.address})
                variant.makes.append((root.size, root.dtype))
            start = (address_of_array(flat) - buffer.address) // root.itemsize
            variant.results.append(("new", numbers[buffer], start, flat.size, output._shape))
        elif id(output._storage) in storages:
            i = storages[id(output._storage)]
            start = (address_of_array(flat) - address_of_array(leaves[i]._flat)) // flat.itemsize
            variant.results.append(("view", i, start, flat.size, output._shape))
        else:
            variant.results.append(("outer" if k in attached else "keep", output))
    return made


def _refuse_marks(variant: Variant, name: str, leaves: list[Any]) -> None:
    """See that the run has left the arguments' places and shapes as they were: a replay would not change them."""
    for i, (kept, leaf) in enumerate(zip(variant.guard.leaves, leaves, strict=True)):
        if type(leaf) is tape.new and (leaf._shape != kept[0] or position(leaf) is not kept[2]):
            raise CaptureError(
                f"{name}: a captured function cannot mark, record into or reshape its argument {i}: do that before the "
                "call (attach_grad, x.shape = ...), or work on a copy"
            )


def _refuse_overlaps(name: str, buffers: Sequence[Buffer]) -> None:
    """See that no two buffers are the same memory, which somebody has handed over in pieces."""
    end, last = 0, None
    for buffer in sorted([b for b in buffers if b.nbytes], key=attrgetter("address")):
        if buffer.address < end:
            assert last is not None
            raise CaptureError(
                f"{name}: the arrays at {last.line} and {buffer.line} share memory, which cannot be seen from them: "
                "from_dlpack was given both, or it was given one and the other is a NumPy argument. Make one from the "
                "other here, or copy one"
            )
        end, last = buffer.address + buffer.nbytes, buffer


def _note_writes(variant: Variant, recorder: Recorder, leaves: list[Any]) -> None:
    """The storages that stay and are written, and the arguments that are."""
    born = {id(storage) for storage in recorder.born}
    storages = {id(leaf._storage): i for i, leaf in enumerate(leaves) if type(leaf) is tape.new}
    for storage in dict.fromkeys([storage for storage, _ in recorder.wrote]):
        if id(storage) in storages:
            variant.written_leaves.append(storages[id(storage)])
        elif id(storage) not in born:
            variant.written.append(storage)
    variant.guard.written = set(variant.written)
    if any(type(leaf) is np.ndarray for leaf in leaves):
        variant.guard.written_spans = sorted(
            np.lib.array_utils.byte_bounds(root_of(storage.array)) for storage in variant.written
        )


def _foldable(recorder: Recorder, by_root: dict[int, Buffer]) -> dict[Buffer, Buffer]:
    """The gradient buffers that nobody else holds, and the buffers of their flags."""
    found = {}
    for leaf in recorder.leaves:
        gradient = by_root.get(id(root_of(leaf.gradient._flat)))
        if gradient is not None and not leaf.adds and not leaf.gradient._storage.pinned:
            found[gradient] = by_root[id(root_of(leaf.flag_memory()))]
    return found


# ----------------------------------------------------------------------------------------- memory of the run


def _touched(calls: Sequence[Call]) -> set[Buffer]:
    return {value.buffer for call in calls for value in call.arguments if isinstance(value, Slot)}


def _refuse_escapes(
    recorder: Recorder, name: str, kept: set[int], by_root: dict[int, Buffer], brought: set[Buffer]
) -> None:
    """Let go of the run, and see that nothing made in it is held by somebody else."""
    watched = [
        (weakref.ref(storage), by_root[id(root_of(storage.array))])
        for storage in recorder.born
        if id(storage) not in kept and id(root_of(storage.array)) in by_root
    ]
    recorder.forget()
    if any(reference() is not None for reference, _ in watched):
        gc.collect()
    for reference, buffer in watched:
        if reference() is not None and buffer not in brought:
            raise CaptureError(
                f"{name}: an array made in the captured function (at {buffer.line}) outlives the call: return it, or "
                "write it to an array that exists before (x[:] = ...)"
            )


def _inner(buffers: Sequence[Buffer]) -> set[Buffer]:
    """Those of `buffers` that nobody else holds and that the run writes before it reads."""
    candidates = [(buffer, weakref.ref(buffer.root)) for buffer in buffers if buffer.first == "out"]
    for buffer, _ in candidates:
        buffer.root = None
    inner = set()
    for buffer, reference in candidates:
        root = reference()
        if root is None:
            inner.add(buffer)
        else:
            buffer.root = root
    return inner


def _stack(buffers: Sequence[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Places one after the other for `buffers`, and their bytes in all."""
    places, top = {}, 0
    for buffer in buffers:
        places[buffer] = top
        top += buffer.nbytes + -buffer.nbytes % _ALIGN
    return places, top


def _values(slot: Slot) -> np.ndarray:
    """What a slot of memory that stays holds now."""
    root = slot.buffer.root
    assert root is not None
    whole = root.reshape(-1).view(slot.dtype)
    start = slot.offset // whole.itemsize
    return whole[start : start + slot.size]
