"""Random numbers: the seed of the process's stream, and the samplers of :mod:`numbagrad.nd.random`."""

from typing import Any

import numpy as np

from numbagrad.nd.random import *  # noqa: F403
from numbagrad.nd.random import __all__ as _samplers
from numbagrad.ops import random as _stream


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Start the stream of random numbers anew.

    Parameters
    ----------
    seed_state : int
        Any integer; the same one gives the same numbers. Independent of :mod:`random` and :mod:`numpy.random`.
    ctx : Context or "all"
        Accepted for MXNet's sake: there is one stream.

    Raises
    ------
    ValueError
        If `seed_state` is no int.

    Examples
    --------
    >>> import numbagrad as mx
    >>> mx.random.seed(7)
    >>> first = mx.random.uniform().asscalar()
    >>> mx.random.seed(7)
    >>> bool(first == mx.random.uniform().asscalar())
    True
    """
    if isinstance(seed_state, bool) or not isinstance(seed_state, (int, np.integer)):
        raise ValueError(f"seed: takes an int, not {type(seed_state).__name__}")
    _stream.seed(int(seed_state))


__all__ = ["seed", *_samplers]
