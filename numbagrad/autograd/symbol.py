"""What MXNet's ``get_symbol`` is used for here: the variables that a recorded array depends on."""

from typing import Any

from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.tape import Leaf, place


class RecordedSymbol:
    """The graph that computed an array, as far as its names go; there is no symbolic execution.

    Parameters
    ----------
    arguments : list of str
        A name for each marked array that the graph reads.
    output : str
        The name of the result.
    """

    def __init__(self, arguments: list[str], output: str) -> None:
        self._arguments = arguments
        self._output = output

    def list_arguments(self) -> list[str]:
        """A name for each marked array that the graph reads, in the order of the operations that read them."""
        return list(self._arguments)

    def list_outputs(self) -> list[str]:
        """The name of the result."""
        return [self._output]

    def __repr__(self) -> str:
        return f"<RecordedSymbol {self._output} of {', '.join(self._arguments)}>"


def get_symbol(x: Any) -> RecordedSymbol:
    """The graph that computed `x`.

    Raises
    ------
    MXNetError
        If `x` is not in a graph.
    """
    if not isinstance(x, tape.new):  # type: ignore[arg-type]
        raise TypeError(f"get_symbol: takes an NDArray, not {type(x).__name__}")
    root = place(x)
    if root is None:
        raise MXNetError(f"get_symbol: an array of shape {x._shape} is not in a graph")
    leaves: dict[Any, str] = {}
    nodes = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) is not Leaf and node.id not in nodes:
            nodes[node.id] = node
            stack += [parent for parent in node.parents or () if parent is not None]
    if type(root) is Leaf:
        leaves[root] = "var0"
    for number in sorted(nodes):
        for parent in nodes[number].parents or ():
            if type(parent) is Leaf and parent not in leaves:
                leaves[parent] = f"var{len(leaves)}"
    output = "var0" if type(root) is Leaf else f"{root.op.name.replace(' ', '_')}_output"
    return RecordedSymbol(list(leaves.values()), output)
