"""Kernels in the one form that a table can call: a C function of words and scalars.

A thunk reads its arguments in order: an array is two words (address, length), a size or static one word, a scalar one
float64. There is one thunk a kernel and set of dtypes; its code is cached on disk like any kernel's.
"""

from typing import Any

import numpy as np

from numbagrad.kernels.kernel import Kernel
from numbagrad.native.cache import fingerprint, generated_module
from numbagrad.native.compiler import address_of
from numbagrad.native.memory import THUNK

_addresses: dict[tuple[int, tuple[str, ...]], tuple[int, Kernel]] = {}


def kinds_of(kernel: Kernel, arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """What each argument is: the dtype name of an array, ``word`` or ``scalar``."""
    kinds = []
    for role, value in zip(kernel.roles, arguments, strict=True):
        if isinstance(value, np.ndarray):
            kinds.append(value.dtype.name)
        elif role == "scalar" and isinstance(value, (float, np.floating)):
            kinds.append("scalar")
        else:
            kinds.append("word")
    return tuple(kinds)


def thunk_source(name: str, kinds: tuple[str, ...], mark: str) -> str:
    """The module of a thunk; ``kernel`` is put into its namespace before it is compiled."""
    arguments, words, scalars = [], 0, 0
    arrays = sorted({kind for kind in kinds if kind not in ("word", "scalar")})
    for kind in kinds:
        if kind == "word":
            arguments.append(f"words[{words}]")
            words += 1
        elif kind == "scalar":
            arguments.append(f"scalars[{scalars}]")
            scalars += 1
        else:
            arguments.append(f"{kind}_at(words[{words}], words[{words + 1}])")
            words += 2
    lines = [
        f"# {mark}",
        "from numbagrad.native.compiler import njit",
        "from numbagrad.native.memory import ARRAY_AT",
        "",
    ]
    lines += [f'{kind}_at = ARRAY_AT["{kind}"]' for kind in arrays]
    lines += [
        "",
        "",
        "@njit(c_form=True)",
        "def thunk(words, scalars):",
        f"    return kernel({', '.join(arguments)})",
        "",
    ]
    return "\n".join(lines)


def thunk_address(kernel: Kernel, kinds: tuple[str, ...]) -> int:
    """The address of the thunk of `kernel` for arguments of these kinds."""
    key = (id(kernel), kinds)
    found = _addresses.get(key)
    if found is None:
        mark = fingerprint(kernel.function)
        module = generated_module(f"thunk_{kernel.name}", thunk_source(kernel.name, kinds, mark))
        module.kernel = kernel.function  # type: ignore[attr-defined]
        found = _addresses[key] = (address_of(module.thunk, THUNK), kernel)
    return found[0]
