"""NumPy's own BLAS, where its wheel brings OpenBLAS: what multiplies NumPy's matrices multiplies ours.

SciPy's wheel brings another copy, as a rule an older and slower one, with threads of its own.
"""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np


@cache
def _library() -> tuple[ctypes.CDLL | None, str]:
    """The library, which is loaded already, and its path; None and "" where NumPy was built in another way."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):  # of wheels for Linux and Windows, for macOS
        for path in sorted(folder.glob("libscipy_openblas64_*")):
            try:
                return ctypes.CDLL(str(path)), str(path.resolve())
            except OSError:
                continue
    return None, ""


def path() -> str:
    """Where the library is, or ""."""
    return _library()[1]


@cache
def address(name: str) -> int | None:
    """The address of a routine such as ``sgemm``, whose integers have 64 bits; None where there is none."""
    try:
        routine = getattr(_library()[0], f"scipy_{name}_64_")
    except AttributeError:
        return None
    return ctypes.cast(routine, ctypes.c_void_p).value
