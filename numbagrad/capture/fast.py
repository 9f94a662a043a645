"""The common call of a captured function with its guard and replay unrolled into one Python function.

What a replay does in Python - compare shapes, make results, raise versions - takes longer than many a small step takes
in kernels; written out for one variant it takes about a microsecond. Whatever it does not cover is a miss, and goes the
long way.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad import array as memory
from numbagrad import launch as door
from numbagrad import tape
from numbagrad.capture.guards import ON_TAPE

MISS = object()
"""Returned where the variant does not fit."""


def miss(*args: Any) -> Any:
    """The fast call of a variant that has none."""
    return MISS


def fast_call(variant: Any, lock: Any) -> Callable[..., Any]:
    """The function for `variant`: takes the arguments, returns the result or MISS."""
    space: dict[str, Any] = {
        "MISS": MISS,
        "door": door,
        "memory": memory,
        "epoch": tape.RebindEpoch,
        "flags": tape.state,
        "NDArray": tape.new,
        "empty": np.empty,
        "acquire": lock.acquire,
        "release": lock.release,
        "program": variant.program,
        "run": variant.program.run,
        "code": variant.program.code,
        "on_tape": (tape.Node, tape.Projection),
        "Node": tape.Node,
    }
    guard = variant.guard
    space["written"] = guard.written
    positional, named = guard.structure[1]
    if variant.backward is not None and variant.backward.op.multi:
        return miss
    if named[1] or any(item is not None for item in positional[1]):
        return miss
    count = len(positional[1])
    checks = [
        "door.mode is not None",
        f"epoch.value != {guard.epoch}",
        f"flags.recording is not {guard.recording}",
        f"flags.training is not {guard.training}",
    ]
    arrays = []
    for i, kept in enumerate(guard.leaves):
        if type(kept) is tuple:
            arrays.append(i)
            if kept[3] is not None:
                return miss
            space[f"s{i}"], space[f"d{i}"], space[f"n{i}"] = kept[:3]
            checks += [f"type(x{i}) is not NDArray", f"x{i}._shape != s{i}", f"x{i}._flat.dtype is not d{i}"]
            checks.append(f"x{i}._context is not None")
            if i in guard.fixed:
                space[f"z{i}"] = guard.fixed[i].array
                checks.append(f"x{i}._storage.array is not z{i}()")
            if guard.written:
                checks.append(f"x{i}._storage in written")
            if kept[2] is ON_TAPE:
                checks.append(f"type(x{i}._node) not in on_tape or x{i}._node.parents is None")
            else:
                checks.append(f"x{i}._node is not n{i}")
        elif type(kept) is list:
            return miss
        else:
            space[f"v{i}"] = kept
            checks.append(f"x{i} is not v{i}")
    if guard.sharing:
        return miss
    checks += [f"x{i}._storage is x{j}._storage" for k, i in enumerate(arrays) for j in arrays[:k]]
    for k, (place, value) in enumerate(guard.values):
        space[f"w{k}"] = value
        if type(place) is tuple:
            space[f"g{k}"] = place[0]
            checks.append(f"g{k}.get({place[1]!r}) is not w{k}")
        else:
            space[f"c{k}"] = place
            checks.append(f"c{k}.cell_contents is not w{k}")
    names = [f"x{i}" for i in range(count)]
    lines = ["def fast(*args):", f"    if len(args) != {count}:", "        return MISS"]
    if names:
        lines.append(f"    {', '.join(names)}, = args")
    lines += ["    if (", f"        {checks[0]}", *[f"        or {check}" for check in checks[1:]], "    ):"]
    lines += ["        return MISS", "    acquire()", "    try:"]  # `with` takes twice as long
    for k, (size, dtype) in enumerate(variant.makes):
        space[f"t{k}"] = dtype
        lines.append(f"        m{k} = empty({size}, t{k})")
    for k, effect in enumerate(variant.program.before):
        space[f"b{k}"] = effect.function
        check = [f"b{k}()", f"if epoch.value != {guard.epoch}:", "    return MISS"]
        if effect.epoch is None:
            lines += [f"        {line}" for line in check]
            continue
        space[f"p{k}"] = effect.epoch
        space[f"h{k}"] = [-1]
        lines += [f"        now = p{k}.value", f"        if now != h{k}[0]:"]
        lines += [f"            {line}" for line in [*check, f"h{k}[0] = now"]]
    memory_of_call = [f"x{i}._flat" for i in variant.takes] + [f"m{k}" for k in range(len(variant.makes))]
    if variant.backward is not None:
        space["uint8"] = np.dtype("uint8")
        lines.append(f"        carry = empty({variant.backward.carry_bytes}, uint8)")
        memory_of_call.append("carry")
    lines += [f"        status = run({', '.join(['code', *memory_of_call])})", "    finally:", "        release()"]
    lines.append("    if status:")
    lines.append("        raise program.failure(status)")
    for k, effect in enumerate(variant.program.after):
        space[f"e{k}"] = effect
        lines.append(f"    e{k}()")
    written = [f"x{i}._storage" for i in variant.written_leaves]
    for k, storage in enumerate(variant.written):
        space[f"q{k}"] = storage
        written.append(f"q{k}")
    if written:
        lines.append("    memory.serial = serial = memory.serial + 1")
        lines.append(f"    {' = '.join(f'{name}.version' for name in written)} = serial")
    results = []
    whole: set[int] = set()
    if any(context is not None for context in variant.contexts):
        return miss
    if variant.backward is not None and set(variant.backward.keeps) - {
        variant.results[k][1] for k in variant.backward.attached if variant.results[k][0] == "new"
    }:
        return miss
    for k, (kind, *how) in enumerate(variant.results):
        if kind == "new":
            which, start, size, shape = how
            if start or size != variant.makes[which][0] or which in whole:
                return miss
            whole.add(which)
            space[f"r{k}"] = shape
            results.append(f"NDArray(m{which}, r{k})")
        elif kind == "same":
            results.append(f"x{how[0]}")
        elif kind == "keep":
            space[f"r{k}"] = how[0]
            results.append(f"r{k}")
        else:
            return miss
    if variant.backward is not None:
        lines += _attach(variant, space, names, results)
    shape_of_result = variant.result_structure
    if shape_of_result is None:
        lines.append(f"    return {results[0]}")
    elif shape_of_result[0] is tuple and all(item is None for item in shape_of_result[1]):
        lines.append(f"    return ({''.join(result + ', ' for result in results)})")
    else:
        return miss
    exec(compile("\n".join(lines), "<numbagrad fast call>", "exec"), space)
    return space["fast"]


def _attach(variant: Any, space: dict[str, Any], names: list[str], results: list[str]) -> list[str]:
    """The lines that put the one result on the tape; the results are then named, not made again."""
    backward = variant.backward
    parents = []
    for k, target in enumerate(backward.wanted):
        if type(target) is int:
            parents.append(f"x{target}._node")
        else:
            space[f"l{k}"] = target
            parents.append(f"l{k}")
    saved = [f"x{i}" for i in backward.takes if type(variant.guard.leaves[i]) is tuple]
    for k, array in enumerate(backward.reads):
        space[f"o{k}"] = array
        saved.append(f"o{k}")
    saved += [f"NDArray(m{j}, ({variant.makes[j][0]},), result._storage)" for j in backward.keeps]
    kept = "".join(f"m{j}, " for j in backward.keeps)
    space["op"], space["shapes"] = backward.op, backward.shapes
    (at,) = backward.attached
    lines = [f"    result = {results[at]}"]
    lines.append(
        f"    result._node = Node(op, [{', '.join(parents)}], [{', '.join(saved)}], (), shapes, {{}}, "
        f"(carry, [{', '.join(names)}], ({kept})))"
    )
    results[at] = "result"
    return lines
