"""Einstein's summation convention as text: what ``"...ij,jk->...ik"`` says of arrays of given shapes."""

from typing import NamedTuple

from numbagrad.errors import MXNetError
from numbagrad.ops.layout import Shape

Labels = tuple[str, ...]
"""One name an axis: its letter; for an axis of an ellipsis its number from the right, as in ``.2``."""


class Subscripts(NamedTuple):
    """Subscripts read for arrays of given shapes."""

    terms: tuple[Labels, ...]
    """The axes of each operand."""
    output: Labels
    """The axes of the result."""
    sizes: dict[str, int]
    """The length of each axis; where an operand has 1 and another has more, the operand repeats itself."""


def _labels(text: str, term: str, rank: int) -> Labels:
    """The axes that `term` names, the ellipsis standing for `rank` of them."""
    head, dots, tail = term.partition("...")
    for letter in head + tail:
        if not (letter.isascii() and letter.isalpha()):
            raise MXNetError(f"einsum: {letter!r} in {text!r} is neither a letter nor part of one ellipsis a term")
    return (*head, *[f".{k}" for k in range(rank if dots else 0, 0, -1)], *tail)


def _output(text: str, terms: tuple[Labels, ...], term: str | None, rank: int) -> Labels:
    """The axes of the result: those of `term`, else those of the ellipsis and the letters that occur once, sorted."""
    counts: dict[str, int] = {}
    for label in (label for labels in terms for label in labels):
        counts[label] = counts.get(label, 0) + 1
    if term is None:
        letters = sorted(label for label, count in counts.items() if count == 1 and label[0] != ".")
        return (*_labels(text, "...", rank), *letters)
    output = _labels(text, term, rank)
    if rank and "..." not in term:
        raise MXNetError(f"einsum: {text!r} says nothing of the axes of the ellipsis in the result: it needs one too")
    for label in output:
        if label not in counts:
            raise MXNetError(f"einsum: {label!r} in the result of {text!r} is in no operand")
        if output.count(label) > 1:
            raise MXNetError(f"einsum: {label!r} is twice in the result of {text!r}")
    return output


def read(text: str, shapes: tuple[Shape, ...]) -> Subscripts:
    """Read `text` for arrays of `shapes`.

    Raises
    ------
    MXNetError
        If it is not well formed, or does not fit the shapes.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise MXNetError(f"einsum: {text!r} is for {len(inputs)} operands, not {len(shapes)}")
    ranks, terms = [], []
    for i, (term, shape) in enumerate(zip(inputs, shapes, strict=True)):
        named = len(_labels(text, term, 0))
        rank = len(shape) - named
        if rank < 0 or (rank > 0 and "..." not in term):
            raise MXNetError(f"einsum: {term!r} in {text!r} names {named} axes, operand {i} has shape {shape}")
        ranks.append(rank)
        terms.append(_labels(text, term, rank))
    sizes: dict[str, int] = {}
    for i, (labels, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise MXNetError(
                    f"einsum: {label!r} in {text!r} is {own[label]} and {n} in operand {i} of shape {shape}"
                )
            if sizes.setdefault(label, n) != n:
                if 1 not in (n, sizes[label]):
                    raise MXNetError(
                        f"einsum: {label!r} in {text!r} is {n} in operand {i} of shape {shape}, {sizes[label]} before"
                    )
                sizes[label] = n if sizes[label] == 1 else sizes[label]
    output = _output(text, tuple(terms), right if arrow else None, max(ranks))
    return Subscripts(tuple(terms), output, sizes)
