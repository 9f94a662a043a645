"""``numbagrad run``: a program as Python itself would run it, but for what ``mxnet`` means."""

import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

from numbagrad import absent, mxnet_name


def run(script: str, arguments: Sequence[str]) -> int:
    """Run the file `script` as ``__main__``; returns the exit status that Python would give it.

    ``sys.exit`` in the program raises SystemExit here, which goes through.
    """
    path = os.path.abspath(script)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        print(f"numbagrad run: cannot read {script}: {error.strerror}", file=sys.stderr)
        return 2
    mxnet_name.install()
    sys.argv = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):  # there, Python adds no folder either
        sys.path[0] = os.path.dirname(path)
    program = ModuleType("__main__")
    program.__file__ = path
    program.__dict__.update(__builtins__=__builtins__, __cached__=None)
    ours, sys.modules["__main__"] = sys.modules["__main__"], program
    try:
        exec(compile(source, path, "exec", dont_inherit=True), program.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1  # 130: as a shell reports SIGINT
    finally:
        # Threads and exit handlers of the program still find themselves in its __main__.
        if program is not sys.modules.get("__main__"):
            sys.modules["__main__"] = ours
    return 0


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as the program's own: without this file at its head, and without who missed a name at its end."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    last = frame = traceback
    while frame is not None:
        if frame.tb_frame.f_code.co_filename not in (absent.__file__, mxnet_name.__file__):
            last = frame
        frame = frame.tb_next
    if last is not None:
        last.tb_next = None
    return traceback
