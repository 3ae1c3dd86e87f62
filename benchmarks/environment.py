"""The same cores for everyone, and a description of the machine.

Only the standard library is imported here: thread counts must be set before any numerical library loads.
"""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_PACKAGES = ("func", "numpy", "scipy", "optree", "llvmlite", "autograd", "torch", "jax", "jaxlib")


def limit_threads(threads: int) -> None:
    """Give this process and its children this number of cores, and nothing compiled in earlier runs.

    Call it before importing NumPy. XLA has no thread variable, but sizes its pool by the cores the process
    may run on. func and torch keep what they compiled on disk; without those caches a first call is a first call.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["FUNC_NUM_THREADS"] = str(threads)
    os.environ["FUNC_CACHE_DIR"] = ""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def describe() -> dict[str, str]:
    """The facts that a reader needs to compare two runs: processor, threads, load, versions."""
    return {
        "processor": _processor(),
        "cores in the machine": str(os.cpu_count()),
        "threads per contestant": os.environ["OMP_NUM_THREADS"],
        "load average at the start": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        **{package: _version(package) for package in _PACKAGES},
    }


def _load() -> str:
    """The load of the last minute, with a warning when others use the cores of the benchmark."""
    if not hasattr(os, "getloadavg"):
        return "unknown"
    load = os.getloadavg()[0]
    busy = load > 0.25 * (os.cpu_count() or 1)
    return f"{load:.1f}{' (BUSY: threaded BLAS suffers most; wait, or use --threads 1)' if busy else ''}"


def _processor() -> str:
    """The processor's model name, from the kernel if it has it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    """The installed version of a distribution."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed as a package"
