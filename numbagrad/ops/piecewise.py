"""Elementwise functions made of pieces, with MXNet's choice at the joints."""

import numpy as np

from numbagrad.native import scalar as s
from numbagrad.native.expr import Expr
from numbagrad.ops.registry import elementwise


def _hard_sigmoid(x: Expr, alpha: Expr, beta: Expr) -> Expr:
    y = alpha * x + beta
    return s.where(y <= 0, 0, s.where(y >= 1, 1, y))


hard_sigmoid = elementwise(
    "hard_sigmoid",
    _hard_sigmoid,
    3,
    numpy=lambda x, a, b: np.clip(a * x + b, 0, 1),
    domain=((-1, 1), (0.1, 0.3), (0.4, 0.6)),
    result="float",
)


def _smooth_l1(x: Expr, sigma: Expr) -> Expr:
    square = sigma * sigma
    return s.where(abs(x) * square < 1, 0.5 * (x * x) * square, abs(x) - 0.5 / square)


smooth_l1 = elementwise(
    "smooth_l1",
    _smooth_l1,
    2,
    numpy=lambda x, sigma: np.where(np.abs(x) < 1 / sigma**2, 0.5 * (sigma * x) ** 2, np.abs(x) - 0.5 / sigma**2),
    domain=((-0.4, 0.4), (0.9, 1.1)),
    result="float",
)

isnan = elementwise("isnan", lambda x: x != x, 1, numpy=np.isnan, differentiable=False, result="float")
isinf = elementwise(
    "isinf", lambda x: s.where(x == x, x - x != 0, 0), 1, numpy=np.isinf, differentiable=False, result="float"
)
isfinite = elementwise("isfinite", lambda x: x - x == 0, 1, numpy=np.isfinite, differentiable=False, result="float")

norm_slope = elementwise(
    "norm_slope",
    lambda g, x, y: s.where(y == 0, 0, g * (x / y)),
    3,
    numpy=lambda g, x, y: g * x / y,
    domain=((0.5, 2), (-2, 2), (0.5, 2)),
    result="float",
)
"""The gradient of a Euclidean norm y: g x / y, and 0 where y is 0."""
