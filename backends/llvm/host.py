"""The machine that runs compiled code, as LLVM describes it.

LLVM answers once for every processor and version of llvmlite. The cache of object code has its answer, under the
system's and NumPy's description of the processor.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from func.backends.llvm import cache

PROCESSOR_FIELDS = frozenset(
    {
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "flags",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
        "Features",
    }
)
"""The lines of /proc/cpuinfo that identify the processor; others change while it runs."""
FIRST_PROCESSOR = 1 << 14
"""Bytes of /proc/cpuinfo that have the first processor."""


class Host(NamedTuple):
    """The machine that runs the code.

    >>> host().triple.count("-") >= 2
    True
    """

    triple: str
    cpu: str
    features: str
    llvm_version: str

    @property
    def fingerprint(self) -> str:
        """Everything besides the source that object code depends on."""
        return "\n".join((self.triple, self.cpu, self.features, self.llvm_version))

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by LLVM's name."""
        return f"+{feature}" in self.features.split(",")


@functools.cache
def host() -> Host:
    """The host's triple, processor and features. Raises: CompileError without LLVM."""
    answer = known()
    if answer is not None:
        return answer
    key = _key()
    asked: Host = importlib.import_module("func.backends.llvm.machine").generator().ask_host()
    if key is not None:
        cache.store(key, cache.ObjectCode(asked.fingerprint.encode(), ()))
    return asked


@functools.cache
def known() -> Host | None:
    """LLVM's answer about the host, if it is in the cache on disk."""
    key = _key()
    entry = None if key is None else cache.load(key)
    fields = [] if entry is None else entry.image.decode().split("\n")
    return Host(*fields) if len(fields) == len(Host._fields) else None


@functools.cache
def _key() -> str | None:
    """The key of LLVM's answer in the cache; None if too little is known about the processor without LLVM."""
    processor, library = _processor(), llvmlite_stamp()
    if not processor or not library:
        return None
    return cache.digest("host", processor, library, str(sys.maxsize), platform.machine(), sys.platform)


def _processor() -> str:
    """The system's and NumPy's description of the processor; empty without one.

    NumPy asks the processor itself: an emulator may have other features than the system reports.
    """
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(FIRST_PROCESSOR).decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.split("\n\n")[0].splitlines() if line.partition(":")[0].strip() in PROCESSOR_FIELDS]
    features = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    known = getattr(features, "__cpu_features__", None)
    return "\n".join([*lines, repr(sorted(known.items()))]) if lines and known else ""


@functools.cache
def llvmlite_stamp() -> str:
    """The installed llvmlite, without its import: sizes and times of its files; "" without files."""
    spec = importlib.util.find_spec("llvmlite")
    places = spec.submodule_search_locations if spec is not None else None
    stamps = []
    for name in ("_version.py", os.path.join("binding", "libllvmlite.so")):
        stamp = cache.file_stamp(Path(places[0], name)) if places else ""
        if not stamp:
            return ""
        stamps.append(stamp)
    return "\n".join(stamps)
