"""The collector of cycles, held back while many small objects are made of which none is garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[None]:
    """A scope without collections; one that was put off happens after the next allocation."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
