"""``numbagrad info``: what numbagrad runs on, for a bug report."""

import importlib.metadata
import os
import platform
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import scipy

import numbagrad
from numbagrad.command.cache import describe
from numbagrad.native import openblas

FEATURES = "sse4.2 avx avx2 fma f16c avx512f avx512vl avx512bf16 neon fullfp16 sve".split()
"""The CPU features that vectors, fused multiply-add and float16 depend on."""

THREAD_VARIABLES = "OPENBLAS_NUM_THREADS MKL_NUM_THREADS VECLIB_MAXIMUM_THREADS OMP_NUM_THREADS".split()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def cpu_name() -> str:
    """The CPU as its maker calls it, where the system tells, and as LLVM does."""
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model or platform.processor() or platform.machine()} ({llvm.get_host_cpu_name()})"


def cores() -> str:
    """How many CPUs there are, and how many this process may use."""
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return str(total) if usable == total else f"{total}, of which {usable} may be used"


def blas() -> list[tuple[str, str]]:
    """The BLAS that kernels call, NumPy's or SciPy's, and its threads, as pairs of a name and its value."""
    named = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        try:
            built = (np if openblas.path() else scipy).show_config(mode="dicts")["Build Dependencies"]["blas"]
            library = f"{built['name']} {built['version']}"
        except (KeyError, TypeError):
            library = "unknown"
        threads = ", ".join(named) or f"not set; by default one a CPU ({os.cpu_count()})"
        return [("BLAS", library), ("BLAS threads", threads)]
    own = openblas.path()
    if not own:
        pass  # the library is loaded with it
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    called = [pool for pool in pools if (pool["filepath"] == own if own else "scipy" in pool["filepath"].lower())]
    pool = next(iter(called or pools), None)
    if pool is None:
        return [("BLAS", "unknown"), ("BLAS threads", ", ".join(named) or "unknown")]
    kernels = f", kernels for {pool['architecture']}" if pool.get("architecture") else ""
    set_by = f" ({', '.join(named)})" if named else ""
    return [
        ("BLAS", f"{pool['internal_api']} {pool['version']}{kernels}"),
        ("BLAS threads", f"{pool['num_threads']}{set_by}"),
    ]


def info() -> int:
    """Print it all, one line each."""
    features = llvm.get_host_cpu_features()
    lines = [
        ("numbagrad", numbagrad.__version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"),
        *[(name, _version(name.lower())) for name in ("NumPy", "SciPy", "Numba", "llvmlite")],
        *blas(),
        ("CPU", cpu_name()),
        ("CPUs", cores()),
        ("CPU features", " ".join(name for name in FEATURES if features.get(name)) or "none of note"),
        *[(f"cache {name}", value) for name, value in describe()],
    ]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:{width}}  {value}")
    return 0
