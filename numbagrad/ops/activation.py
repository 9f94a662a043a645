"""Activations beyond the five of ``Activation``: each an expression, so that its derivatives follow.

At a kink the left branch counts, as in MXNet; the sign conventions are those of the sources named.
"""

import math
from typing import Any

import numpy as np

from numbagrad.native import scalar as s
from numbagrad.native.expr import Expr, node
from numbagrad.ops import special
from numbagrad.ops.registry import elementwise

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
"""The fixed point of mean 0 and variance 1 (G. Klambauer et al., "Self-normalizing neural networks", 2017)."""

_SLOPES = (0.1, 0.5)
_ROOT_HALF = math.sqrt(0.5)


def _elu(x: Expr, alpha: Any) -> Expr:
    return s.where(x > 0, x, alpha * node("expm1", x))


def _elu_numpy(x: Any, alpha: Any) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


leaky_relu = elementwise(
    "leaky_relu",
    lambda x, slope: s.where(x > 0, x, slope * x),
    2,
    numpy=lambda x, slope: np.where(x > 0, x, slope * x),
    domain=((-2.0, -0.1), _SLOPES),
    result="float",
)
"""x above 0, slope x below and at 0."""

elu = elementwise("elu", _elu, 2, numpy=_elu_numpy, domain=((-2.0, -0.1), _SLOPES), result="float")
"""x above 0, alpha (exp(x) - 1) below (D.-A. Clevert et al., 2016)."""

selu = elementwise(
    "selu",
    lambda x: SELU_SCALE * _elu(x, SELU_ALPHA),
    1,
    numpy=lambda x: SELU_SCALE * _elu_numpy(x, SELU_ALPHA),
    domain=(-2.0, -0.1),
    result="float",
)
"""The self-normalising exponential linear unit."""

gelu = elementwise(
    "gelu",
    # x Phi(x), by erfc: 1 + erf would lose the left tail to cancellation.
    lambda x: x * (0.5 * node("erfc", -_ROOT_HALF * x)),
    1,
    numpy=lambda x: x * special.ndtr(x),
    result="float",
)
"""x times the normal distribution function of x (D. Hendrycks, K. Gimpel, 2016)."""

swish = elementwise(
    "swish",
    lambda x, beta: x * node("sigmoid", beta * x),
    2,
    numpy=lambda x, beta: x * special.expit(beta * x),
    domain=((-2.0, 2.0), (0.5, 2.0)),
    result="float",
)
"""x sigmoid(beta x) (P. Ramachandran et al., 2017)."""
