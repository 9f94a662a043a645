"""How many ops there are and how often the sweep checks them, ``python -m tests.count``; ``--write`` tells the docs."""

import pathlib
import re
import sys

import numpy as np

import numbagrad  # noqa: F401 - registers every op
from numbagrad.ops.registry import REGISTRY, Elementwise
from tests.ops import test_registry, test_third_order

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "how-it-works.md"
LINE = re.compile(r"^\d+ ops, .* central differences\.$", re.MULTILINE)


def gradient_checks():
    """The gradients of an input, of first and of second order, that the sweep compares with central differences."""
    rng = np.random.default_rng(0)
    count = 0
    for op in REGISTRY.values():
        if not op.differentiable:
            continue
        elementwise = isinstance(op, Elementwise)
        cases = test_registry.elementwise_cases(op, rng) if elementwise else test_registry.general_cases(op)
        for _, inputs in cases:
            count += 2 * sum(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in inputs)
    return count


def line():
    """The sentence that stands in the docs."""
    differentiable = sum(op.differentiable for op in REGISTRY.values())
    return (
        f"{len(REGISTRY)} ops, {differentiable} of them differentiable: {gradient_checks()} gradients of first and "
        f"second order and {test_third_order.count()} directions of third order are compared with central differences."
    )


if __name__ == "__main__":
    print(line())
    if "--write" in sys.argv:
        PAGE.write_text(LINE.sub(line(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
