"""Whether two optimizers do the same."""

from typing import Any

from numbagrad import nd
from numbagrad.errors import MXNetError
from numbagrad.test_utils.comparison import assert_almost_equal, compare_ndarray_tuple


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Any,
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """One update of random weights by each of two optimizers; weights and states must agree afterwards.

    Parameters
    ----------
    shape : tuple of int, or list of them
        With a list, `opt2` updates all weights in one call, and `opt1` each by itself.
    dtype : dtype
    w_stype, g_stype : str
        ``default``: there are no others.
    compare_states : bool
        Whether states are compared.
    ntensors : int
        How many shapes there are.

    Raises
    ------
    AssertionError
        Where they differ.
    """
    if (w_stype, g_stype) != ("default", "default"):
        raise MXNetError(f"compare_optimizer: storage types {w_stype!r} and {g_stype!r} are not supported")
    together = isinstance(shape, list)
    shapes = shape if together else [shape]
    assert len(shapes) == ntensors, f"compare_optimizer: {len(shapes)} shapes but ntensors={ntensors}"
    weights = [nd.random.uniform(shape=each, dtype=dtype) for each in shapes]
    gradients = [nd.random.uniform(shape=each, dtype=dtype) for each in shapes]
    weights1, weights2 = ([w.copy() for w in weights] for _ in range(2))
    states1 = [opt1.create_state_multi_precision(i, w) for i, w in enumerate(weights1)]
    states2 = [opt2.create_state_multi_precision(i, w) for i, w in enumerate(weights2)]
    if compare_states:
        compare_ndarray_tuple(tuple(states1), tuple(states2))
    for i, weight in enumerate(weights1):
        opt1.update_multi_precision(i, weight, gradients[i].copy(), states1[i])
    if together:
        opt2.update_multi_precision(list(range(ntensors)), weights2, [g.copy() for g in gradients], states2)
    else:
        opt2.update_multi_precision(0, weights2[0], gradients[0].copy(), states2[0])
    if compare_states:
        compare_ndarray_tuple(tuple(states1), tuple(states2), rtol=rtol, atol=atol)
    for one, other in zip(weights1, weights2, strict=True):
        assert_almost_equal(one, other, rtol=rtol, atol=atol)
