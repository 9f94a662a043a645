"""Nested tuples, lists and dicts taken apart and put together again."""

from collections.abc import Iterator
from typing import Any


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Take the leaves out of nested tuples, lists and dicts; what is left describes the structure."""
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, tuple([flatten(item, leaves) for item in value]))
    if kind is dict:
        return (dict, tuple([(key, flatten(value[key], leaves)) for key in value]))
    leaves.append(value)
    return None


def rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    """The inverse of :func:`flatten`."""
    if structure is None:
        return next(leaves)
    kind, items = structure
    if kind is dict:
        return {key: rebuild(item, leaves) for key, item in items}
    return kind([rebuild(item, leaves) for item in items])
