"""What a test changes around itself and puts back, and how its failures are caught."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from numbagrad.context import Context, current_context


def default_context() -> Context:
    """The label that new arrays get in this thread."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Set the label that new arrays get in this thread."""
    Context.default_ctx = ctx


def list_gpus() -> list[int]:
    """The numbers of the GPUs: none."""
    return []


def assert_exception(f: Callable[..., Any], exception_type: Any, *args: Any, **kwargs: Any) -> None:
    """Raise AssertionError unless ``f(*args, **kwargs)`` raises `exception_type`, a class or a tuple of them."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type}")


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Run the decorated test up to `n` times, until an attempt raises no AssertionError; for tests that draw."""
    assert n > 0, "retry: at least one attempt"

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(test)
        def attempts(*args: Any, **kwargs: Any) -> None:
            for left in range(n - 1, -1, -1):
                try:
                    test(*args, **kwargs)
                    return
                except AssertionError:
                    if not left:
                        raise

        return attempts

    return decorate


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """A block with environment variables set, or unset where the value is None; afterwards they are as before.

    Parameters
    ----------
    *args
        A name and a value, or a dict of them.
    """
    changes: dict[str, str | None] = dict(args[0]) if len(args) == 1 else {args[0]: args[1]}

    def put(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    before = {name: os.environ.get(name) for name in changes}
    try:
        put(changes)
        yield
    finally:
        put(before)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """A block whose error output goes nowhere: that of Python, and of native code."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        try:
            kept = os.dup(2)
        except OSError:  # the process has no stderr
            yield
            return
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
