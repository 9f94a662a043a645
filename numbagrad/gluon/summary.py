"""The table that :meth:`Block.summary` prints."""

from typing import Any

from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.layout import size_of

_ROW = "{:>20}  {:>42} {:>15}"


def _shapes(value: Any) -> Any:
    """The shape of an array, or of each one that nested lists hold; None for anything else."""
    if isinstance(value, NDArray):
        return value.shape
    if isinstance(value, (list, tuple)):
        shapes = [_shapes(one) for one in value]
        return shapes[0] if len(shapes) == 1 else shapes
    return None


def _is_container(block: Any) -> bool:
    from numbagrad.gluon.nn.basic import HybridSequential, Sequential

    return isinstance(block, (Sequential, HybridSequential))


def summary(block: Any, *inputs: Any) -> None:
    """See :meth:`Block.summary`."""
    rows: list[list[Any]] = [["Input", _shapes(inputs), 0]]
    parameters: list[Any] = []
    handles = []

    def look(each: Any) -> None:
        assert not getattr(each, "_active", False), f'"{each.name}" must not be hybridized to print summary.'
        if _is_container(each):
            return

        def row(layer: Any, args: Any, output: Any) -> None:
            own = list(layer._params.values())
            parameters.extend(own)
            count = sum(size_of(parameter.shape) for parameter in own)
            rows.append([f"{type(layer).__name__}-{len(rows)}", _shapes(output), count])

        handles.append(each.register_forward_hook(row))

    try:
        block.apply(look)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()

    def count(some: Any) -> int:
        return sum(size_of(parameter.shape) for parameter in some)

    unique = list(dict.fromkeys(parameters))
    trainable = count(parameter for parameter in parameters if parameter.grad_req != "null")
    print("-" * 80)
    print(_ROW.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_ROW.format(*map(str, row)))
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {count(parameters)}")
    print(f"   Trainable params: {trainable}")
    print(f"   Non-trainable params: {count(parameters) - trainable}")
    print(f"Shared params in forward computation graph: {count(parameters) - count(unique)}")
    print(f"Unique parameters in model: {count(unique)}")
    print("-" * 80)
