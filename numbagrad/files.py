"""Files that are there whole or not at all."""

import contextlib
import os
import threading
from collections.abc import Iterable


def write_whole(name: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Write `chunks` to a file beside `name` and rename it: whoever reads finds the old file or the whole new one.

    A link is followed. What is no regular file (a pipe, a device) is written to as it is.

    Raises
    ------
    OSError
        What was there before is there still.
    """
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            file.writelines(chunks)
        return
    folder, base = os.path.split(target)
    aside = os.path.join(folder, f".writing-{os.getpid()}-{threading.get_ident()}-{base}")
    try:
        with open(aside, "wb") as file:
            file.writelines(chunks)
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
