"""One recorded run of a function whose arguments are at places of their own on the tape."""

from collections.abc import Callable, Sequence
from typing import Any

from numbagrad import tape
from numbagrad.autograd.gradients import pull
from numbagrad.containers import flatten, rebuild
from numbagrad.errors import MXNetError
from numbagrad.tape import argument, state
from numbagrad.vjp import zeros

Argnums = int | Sequence[int]


def is_array(value: Any) -> bool:
    """Whether `value` is an NDArray."""
    return isinstance(value, tape.new)  # type: ignore[arg-type]


def name_of(function: Callable[..., Any]) -> str:
    """What messages call `function`."""
    return getattr(function, "__name__", type(function).__name__)


def check_argnums(name: str, argnums: Argnums) -> tuple[int, ...]:
    """The numbers of the arguments to differentiate for, one or more different ones."""
    numbers = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    if not numbers or any(type(number) is not int for number in numbers):
        raise TypeError(f"{name}: argnums is an int or a tuple of ints, not {argnums!r}")
    return numbers


def chosen(name: str, numbers: tuple[int, ...], count: int) -> list[int]:
    """The positions that `numbers` mean among `count` arguments.

    Raises
    ------
    ValueError
        If one is out of range, or one comes twice.
    """
    for number in numbers:
        if not -count <= number < count:
            raise ValueError(
                f"{name}: argnums {number} is out of range: the function was called with {count} argument(s)"
            )
    places = [number % count for number in numbers]
    if len(set(places)) < len(places):
        raise ValueError(f"{name}: argnums {numbers} name an argument twice")
    return places


class Run:
    """One recorded run of `function`, whose arguments at `places` are differentiated for.

    ``value`` and ``aux`` are what it returned, ``outputs`` the arrays of ``value`` in order, ``inputs`` the arrays of
    the arguments as the function saw them.

    Raises
    ------
    TypeError
        Where a differentiated argument holds anything but NDArrays of floats and None, or the value anything but
        NDArrays; with `has_aux`, where the function returns no pair.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        places: Sequence[int],
        has_aux: bool = False,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.inputs: list[Any] = []
        self.create_graph = state.recording
        given = list(args)
        leaves: list[Any] = []
        self._structure = [flatten(given[place], leaves) for place in places]
        for leaf in leaves:
            if leaf is not None and not (is_array(leaf) and leaf._flat.dtype.kind == "f"):
                what = f"an NDArray of {leaf._flat.dtype}" if is_array(leaf) else f"a {type(leaf).__name__}"
                raise TypeError(
                    f"{name}: cannot differentiate {name_of(function)} for {what}; make it an NDArray of floats "
                    "(nd.array(x), x.astype('float32')), or leave it out of argnums"
                )
        self.since = tape.next_id()
        self._leaves = [leaf if leaf is None else argument(leaf) for leaf in leaves]
        self.inputs = [leaf for leaf in self._leaves if leaf is not None]
        replaced = iter(self._leaves)
        for place, structure in zip(places, self._structure, strict=True):
            given[place] = rebuild(structure, replaced)
        recording, state.recording = state.recording, True
        try:
            value = function(*given, **(kwargs or {}))
        finally:
            state.recording = recording
        self.aux = None
        if has_aux:
            if not isinstance(value, tuple) or len(value) != 2:
                raise TypeError(f"{name}: with has_aux {name_of(function)} returns a pair (value, aux)")
            value, self.aux = value
        self.value = value
        self.outputs: list[Any] = []
        self._out_structure = flatten(value, self.outputs)
        for output in self.outputs:
            if not is_array(output):
                raise TypeError(f"{name}: {name_of(function)} returned a {type(output).__name__} and no NDArray")

    def scalar(self) -> Any:
        """The value, which is to be one array of one float.

        Raises
        ------
        MXNetError
        """
        if self._out_structure is not None:
            raise TypeError(f"{self.name}: the function returned a {type(self.value).__name__}, not one NDArray")
        flat = self.value._flat
        if flat.size != 1:
            raise MXNetError(
                f"{self.name}: the function returned shape {self.value._shape}, and a gradient is of one number: "
                "reduce it (y.sum()), or take jacobian, vjp or elementwise_grad"
            )
        if flat.dtype.kind != "f":
            raise MXNetError(f"{self.name}: the function returned {flat.dtype}, which has no gradient")
        return self.value

    def gradients(self, heads: Sequence[Any], cotangents: Sequence[Any], create_graph: bool) -> list[Any]:
        """The gradients of `heads`, weighted with `cotangents`, for the inputs; zeros where none depends on one."""
        return pulled(heads, cotangents, self.inputs, create_graph, self.since)

    def packed(self, gradients: Sequence[Any], single: bool) -> Any:
        """Gradients of the inputs in the containers of the arguments."""
        remaining = iter(gradients)
        leaves = iter([None if leaf is None else next(remaining) for leaf in self._leaves])
        parts = tuple([rebuild(structure, leaves) for structure in self._structure])
        return parts[0] if single else parts

    def like_value(self, leaves: Sequence[Any]) -> Any:
        """`leaves` in the containers of the value."""
        return rebuild(self._out_structure, iter(leaves))

    def outcome(self, value: Any) -> Any:
        """`value` for the caller: its arrays are off the graph unless the caller records."""
        return value if self.create_graph else detached(value)


def pulled(
    heads: Sequence[Any], cotangents: Sequence[Any], variables: Sequence[Any], create_graph: bool, since: int
) -> list[Any]:
    """The gradients of `heads`, weighted with `cotangents`, for `variables` that are on the tape from `since` on.

    Zeros where no head depends on one.
    """
    places = [head._node for head in heads]
    pairs = [
        (node, cotangent)
        for node, cotangent in zip(places, cotangents, strict=True)
        if node is not None and type(node) is not tape.Leaf and node.id >= since
    ]
    recording, state.recording = state.recording, create_graph
    try:
        found = pull(pairs, variables, True, create_graph, since) if pairs else [None] * len(variables)
        return [zeros(x._shape, x._flat.dtype) if g is None else g for g, x in zip(found, variables, strict=True)]
    finally:
        state.recording = recording


def detached(value: Any) -> Any:
    """`value` with its arrays off the graph, on the same memory."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    for i, leaf in enumerate(leaves):
        if is_array(leaf) and leaf._node is not None and type(leaf._node) is not tape.Leaf:
            leaves[i] = tape.new(leaf._flat, leaf._shape, leaf._storage)
            leaves[i]._context = leaf._context
    return rebuild(structure, iter(leaves))
