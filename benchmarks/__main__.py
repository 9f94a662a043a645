"""``python -m benchmarks``: training steps of numbagrad beside NumPy by hand, the hand-fused limit and peers."""

import argparse
import json
import pathlib
import platform
import sys

from benchmarks import startup
from benchmarks.compare import compare, table
from benchmarks.systems import SYSTEMS
from benchmarks.workloads import WORKLOADS


def names_of(choices):
    """An argparse type: a comma-separated choice of `choices`, or all of them."""

    def parse(text):
        names = list(choices) if text == "all" else text.split(",")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return names

    return parse


def interpreter(text):
    """An argparse type: ``SYSTEM=PATH``."""
    key, _, path = text.partition("=")
    if key not in SYSTEMS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not SYSTEM=PATH with SYSTEM one of {', '.join(SYSTEMS)}")
    return key, path


def main():
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--workloads", type=names_of(WORKLOADS), default="A,E,B,C,D", help="default: %(default)s")
    parser.add_argument("--systems", type=names_of(SYSTEMS), default="all", help="what is not installed is left out")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="cores and threads for each system (default: 1)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds; the minimum counts (default: 7)")
    parser.add_argument("--budget", type=float, default=0.15, help="seconds a system and round (default: 0.15)")
    parser.add_argument(
        "--python", type=interpreter, action="append", default=[], metavar="SYSTEM=PATH", help="interpreter of a peer"
    )
    parser.add_argument("--startup", action="store_true", help="also import time and first steps in new processes")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()

    machine = f"{platform.machine()}, Python {platform.python_version()}, {options.threads} thread(s)"
    print(f"{machine}; {options.optimizer}; minimum of {options.rounds} interleaved rounds", flush=True)
    try:
        results = compare(
            options.systems,
            options.workloads,
            optimizer=options.optimizer,
            threads=options.threads,
            rounds=options.rounds,
            budget=options.budget,
            pythons=options.python,
        )
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{table(results)}")
    report = {"machine": machine, "training": results}
    if options.startup:
        report["startup"] = startup.measure()
        print(f"\n{startup.table(report['startup'])}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
