"""One captured run made into programs, and its replay."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.array import Storage, wrote
from numbagrad.capture.fast import MISS, miss
from numbagrad.capture.guards import Guard, flat_of
from numbagrad.capture.node import Backward
from numbagrad.capture.program import Program
from numbagrad.containers import rebuild
from numbagrad.tape import Node, Projection, RebindEpoch


class Variant:
    """What ``lower`` makes of a run.

    ``takes`` are the arguments whose memory the table takes; ``makes`` the (elements, dtype) of what is made for
    results; ``results`` how each is made: ("new", which, start, size, shape), ("same", argument), ("view", argument,
    start, size, shape) or ("keep", object). With ``backward`` the results are on the tape, and the call is one node
    there.
    """

    def __init__(self, reason: str, guard: Guard) -> None:
        self.reason = reason
        self.guard = guard
        self.program: Program
        self.fast: Callable[..., Any] = miss
        self.unrolled = -1
        """How many fixed arguments the guard had when :attr:`fast` was made; -1 before."""
        self.backward: Backward | None = None
        self.passes: dict[str, tuple[int, int]] = {}
        self.compiled: list[Any] = []
        self.seconds = 0.0
        self.takes: list[int] = []
        self.makes: list[tuple[int, np.dtype]] = []
        self.results: list[Any] = []
        self.result_structure: Any = None
        self.contexts: list[Any] = []
        self.written: list[Any] = []
        self.written_leaves: list[int] = []

    def replay(self, leaves: list[Any]) -> Any:
        """The results for these arguments, or MISS where an effect found that the run no longer stands for the call."""
        program = self.program
        arrays = [flat_of(leaves[i]) for i in self.takes]
        made = [np.empty(size, dtype) for size, dtype in self.makes]
        backward = self.backward
        carry: tuple[Any, ...] = () if backward is None else (np.empty(backward.carry_bytes, np.uint8),)
        for effect in program.before:
            effect.function()
        if self.guard.epoch != RebindEpoch.value:
            return MISS
        status = program.run(program.code, *arrays, *made, *carry)
        if status:
            raise program.failure(status)
        for after in program.after:
            after()
        wrote(*self.written, *[leaves[i]._storage for i in self.written_leaves])
        results = self._results(leaves, made)
        if backward is not None:
            self.attach(results, leaves, carry[0], made)
        return results[0] if self.result_structure is None else rebuild(self.result_structure, iter(results))

    def attach(self, results: list[Any], leaves: list[Any], carry: np.ndarray, made: list[np.ndarray]) -> None:
        """Put the results on the tape as the outputs of one node."""
        backward = self.backward
        assert backward is not None
        parents = [tape.place(leaves[i]) if type(i) is int else i for i in backward.wanted]
        saved = [leaves[i] for i in backward.takes if type(leaves[i]) is tape.new]
        saved += backward.reads
        storages = {how[0]: results[k]._storage for k, (kind, *how) in enumerate(self.results) if kind == "new"}
        kept = [made[j] for j in backward.keeps]
        saved += [tape.new(made[j], (made[j].size,), storages[j]) for j in backward.keeps]
        node = Node(backward.op, parents, saved, (), backward.shapes, {}, (carry, leaves, kept))
        outputs = [results[k] for k in backward.attached]
        if backward.op.multi:
            node.outputs = [(output._shape, output._flat.dtype) for output in outputs]
            for k, output in enumerate(outputs):
                output._node = Projection(node, k)
        else:
            outputs[0]._node = node

    def _results(self, leaves: list[Any], made: list[np.ndarray]) -> list[Any]:
        new = tape.new
        results = []
        storages: dict[int, Any] = {}
        for kind, *how in self.results:
            if kind == "new":
                which, start, size, shape = how
                whole = made[which]
                if which not in storages:
                    storages[which] = Storage(whole)
                flat = whole if start == 0 and size == whole.size else whole[start : start + size]
                results.append(new(flat, shape, storages[which]))
            elif kind == "same":
                results.append(leaves[how[0]])
            elif kind == "view":
                leaf = leaves[how[0]]
                results.append(new(leaf._flat[how[1] : how[1] + how[2]], how[3], leaf._storage))
            else:
                result = how[0]
                if kind == "outer":  # on the tape: an array of each call's own
                    result = new(result._flat, result._shape, result._storage)
                results.append(result)
        for result, context in zip(results, self.contexts, strict=True):
            if context is not None:
                result._context = context
        return results
