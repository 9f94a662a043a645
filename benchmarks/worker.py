"""One system in one process: reads ``build NAME``, ``losses STEPS`` and ``time STEPS`` on stdin, answers in JSON lines.

A process a system keeps thread pools, allocators and caches of the systems apart, and lets a peer live in another
interpreter; the caller lets one process work at a time.
"""

import gc
import json
import os
import sys
import time


def serve(key, optimizer):
    """Answer requests for system `key` until stdin ends."""
    from benchmarks import systems

    wait = systems.SYSTEMS[key].wait
    answers = sys.stdout
    sys.stdout = sys.stderr
    step = None
    for line in sys.stdin:
        request, argument = line.split()
        if request == "check":
            answer = {"missing": systems.missing(key, optimizer)}
        elif request == "build":
            step = None
            gc.collect()
            start = time.perf_counter()
            step = systems.SYSTEMS[key].build(argument, optimizer)
            step()
            wait()
            answer = {"first": time.perf_counter() - start}
        elif request == "losses":
            answer = {"losses": [systems.value(step()) for _ in range(int(argument))]}
        else:
            count = int(argument)
            start = time.perf_counter()
            for _ in range(count):
                step()
            wait()
            answer = {"seconds": (time.perf_counter() - start) / count}
        print(json.dumps(answer), file=answers, flush=True)


def pin(count):
    """Keep this process on `count` cores, where the system allows it: a pool with its own mind is no fair peer."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


if __name__ == "__main__":
    pin(int(sys.argv[2]))
    serve(sys.argv[1], sys.argv[3])
