"""The command line: ``python -m numbagrad`` and ``numbagrad``."""

import argparse
from collections.abc import Sequence

import numbagrad


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    top = argparse.ArgumentParser(
        prog="numbagrad",
        description="MXNet's imperative training API (autograd, nd, gluon) on Numba kernels.",
        epilog="numbagrad COMMAND --help tells more of a command.",
    )
    top.add_argument("--version", action="version", version=f"numbagrad {numbagrad.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run",
        help="run a program written for mxnet, unchanged",
        description="Run a Python program in which `mxnet` and its submodules mean numbagrad.",
    )
    run.add_argument("script", metavar="SCRIPT", help="the program's file")
    rest = run.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="what the program's sys.argv holds"
    )
    rest.required = False  # argparse would count it among what is missing

    demo = commands.add_parser(
        "demo",
        help="train a network on handwritten digits",
        description="Train a dense network on scikit-learn's handwritten digits twice from the same seed, step by step "
        "as Python runs it (eager) and captured by jit. Prints accuracy and steps a second of both, their ratio, and "
        "whether they agree; writes curves.png and digits.params.",
    )
    demo.add_argument("--epochs", type=_positive, default=30, help="passes over the data (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="of weights, dropout and the order of batches (default: 0)")
    demo.add_argument("--out", metavar="DIR", default="numbagrad-demo", help="where to write (default: %(default)s)")

    cache = commands.add_parser(
        "cache",
        help="the compiled kernels on disk",
        description="The compiled kernels on disk. NUMBAGRAD_CACHE_DIR moves them to another directory.",
    )
    cache.add_argument(
        "action",
        choices=["info", "warm", "clear"],
        help="info: where and how much; warm: compile what common training programs need; clear: remove all",
    )

    commands.add_parser(
        "info",
        help="versions, BLAS, CPU and cache, for a bug report",
        description="Print the versions of what numbagrad runs on, the BLAS and its threads, the CPU and the cache.",
    )
    return top


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv` (``sys.argv[1:]`` by default); returns the exit status.

    0 is success, 1 a failure, 2 a mistake in the arguments; ``run`` has the status of its program.
    """
    options = parser().parse_args(argv)
    # Imported here: each command needs other things, and some of them take long.
    if options.command == "run":
        from numbagrad.command.run import run

        return run(options.script, options.arguments)
    if options.command == "demo":
        from numbagrad.command.demo import demo

        return demo(epochs=options.epochs, seed=options.seed, out=options.out)
    if options.command == "cache":
        from numbagrad.command import cache

        return {"info": cache.info, "warm": cache.warm, "clear": cache.clear}[options.action]()
    from numbagrad.command.info import info

    return info()
