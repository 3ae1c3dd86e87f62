"""Check the CUDA backend without a device: `python -m tools.cuda_check` (`--help` lists the options).

NVRTC compiles every kernel of the sample table and of random programs for two architectures, which needs neither a
driver nor a device (`pip install nvidia-cuda-nvrtc`). The check records registers and spills. The same text runs on the
processor, and its results are compared with those of native code. They must agree to the last bit if the plan has the
same operations in the same order. Half of the programs are planned with limits at which small arrays take the forms of
large ones. A kernel that several programs have is compiled once; with `--cache`, so are those of earlier runs.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from func.backends.cuda import plan
from func.backends.cuda.cupy_device import OPTIONS
from func.backends.cuda.dialect import PRELUDE

ARCHITECTURES = ("sm_80", "sm_90")
BATCH = 40
"""Programs, or primitives, that one process takes at a time."""
BFLOAT16 = "bfloat16"
"""The name of this type among the primitives, for operations and programs."""
TOGETHER = 40_000
"""Characters of the texts of one NVRTC call: its start takes as long as a kernel."""
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.S)
REGISTERS, SPILLS = (
    re.compile(r"Used (\d+) registers"),
    re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads"),
)


@dataclass(frozen=True)
class Compiled:
    """The report of ptxas on one kernel."""

    kernel: str
    architecture: str
    registers: int
    spills: int
    """Bytes that go to memory for want of registers."""


class Refused(Exception):
    """NVRTC does not compile a text; the message is its log."""


@functools.cache
def nvrtc() -> Any:
    """The library, None if it is not installed."""
    for place in _places():
        with contextlib.suppress(OSError):
            return ctypes.CDLL(place)
    return None


def _places() -> Iterator[str]:
    with contextlib.suppress(ImportError):
        nvidia = importlib.import_module("nvidia")
        for folder in nvidia.__path__:
            yield from map(str, sorted(Path(folder).glob("**/libnvrtc.so*")))
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    yield from map(str, sorted(Path("/usr/local/cuda/lib64").glob("libnvrtc.so*")))


def compiled(source: str, architecture: str) -> list[Compiled]:
    """Compile kernels as CuPy does. Raises Refused."""
    library = nvrtc()
    program = ctypes.c_void_p()
    text = f"{PRELUDE}\n{source}".encode()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None))
    try:
        options = [f"--gpu-architecture={architecture}", "--ptxas-options=-v", *OPTIONS]
        passed = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        status = library.nvrtcCompileProgram(program, len(options), passed)
        size = ctypes.c_size_t()
        _check(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        _check(library.nvrtcGetProgramLog(program, log))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        raise Refused(log.value.decode())
    return list(_read(log.value.decode()))


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC fails with status {status}")


def _read(log: str) -> Iterator[Compiled]:
    for name, architecture, text in ENTRY.findall(log):
        registers, spills = REGISTERS.search(text), SPILLS.search(text)
        if registers is not None:
            yield Compiled(name, architecture, int(registers[1]), int(spills[1]) + int(spills[2]) if spills else 0)


@dataclass
class Outcome:
    """The findings of one process."""

    cases: int = 0
    texts: list[str] = field(default_factory=list)
    """The kernels of each program with the functions that they call."""
    faults: list[str] = field(default_factory=list)
    orders: Counter[str] = field(default_factory=Counter)
    """The programs that must be equal to the last bit, and why others need not."""
    seconds: float = 0.0
    """Time of the processor."""


@dataclass(frozen=True)
class Work:
    """Primitives by their names, or random programs by their numbers. If `is_small`, small arrays take the forms of
    large ones. Without `numbers` nothing is computed."""

    kind: str
    items: tuple[Any, ...]
    is_small: bool
    numbers: bool = True


def checked(work: Work) -> Outcome:
    """Plan programs, run their kernels and compare results."""
    from tests.support import cuda_cases
    from tests.support.cuda_host import HostDevice
    from tests.support.device_double import DeviceArray

    warnings.simplefilter("ignore")
    start = _seconds()
    plan.LIMITS = cuda_cases.SMALL if work.is_small else plan.Limits()
    makers: dict[str, Callable[[], Iterator[cuda_cases.Case]]] = {
        "samples": lambda: cuda_cases.sample_cases(work.items),
        "random": lambda: cuda_cases.random_cases(work.items),
        BFLOAT16: cuda_cases.bfloat16_cases,
    }
    made = makers[work.kind]()
    outcome, device, cases = Outcome(), HostDevice(DeviceArray), list(made)
    outcome.faults = cuda_cases.run_together(device, cases, work.numbers, outcome.orders)
    outcome.cases, outcome.texts = len(cases), device.sources
    outcome.seconds = _seconds() - start
    return outcome


def _seconds() -> float:
    """Time of the processor, of this process and of those that it started."""
    return sum(os.times()[:4])


def registers_of(task: tuple[str, str]) -> tuple[list[Compiled], str, float]:
    """The kernels of a text for an architecture, the reason if NVRTC refuses it, and the time that it took."""
    text, architecture = task
    start = _seconds()
    try:
        return compiled(text, architecture), "", _seconds() - start
    except Refused as error:
        return [], f"NVRTC for {architecture}: {str(error)[:2000]}", _seconds() - start


class Kernels:
    """The kernels to compile, each once, and NVRTC's results for them."""

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = cache
        self.known: dict[tuple[str, str], Compiled] = {}
        """By the digest of the kernel with all its functions, and the architecture."""
        self.digests: dict[str, str] = {}
        """By the names of the added kernels."""
        self.texts: list[str] = []
        self.repeated = 0
        if cache is not None and cache.exists():
            stored = json.loads(cache.read_text())
            if stored["version"] == self.version():
                self.known = {(digest, row["architecture"]): Compiled(**row) for digest, row in stored["kernels"]}

    @staticmethod
    def version() -> str:
        """The inputs of results in addition to the text."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        _check(nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return f"NVRTC {major.value}.{minor.value} {' '.join(OPTIONS)}"

    def add(self, source: str) -> None:
        """Add the new kernels of a text."""
        definitions, *kernels = re.split(r'(?=^extern "C" __global__)', source, flags=re.M)
        new = []
        for kernel in kernels:
            name = NAME.search(kernel)
            assert name is not None
            digest = hashlib.sha256(f"{PRELUDE}{definitions}{kernel}".encode()).hexdigest()
            if name[1] in self.digests:
                self.repeated += 1
                continue
            self.digests[name[1]] = digest
            if any([(digest, architecture) not in self.known for architecture in ARCHITECTURES]):
                new.append(kernel)
        if new:
            self.texts.append(definitions + "".join(new))

    def tasks(self) -> Iterator[tuple[str, str]]:
        """Texts and architectures for NVRTC, the longest texts first."""
        for text in sorted(joined(self.texts), key=len, reverse=True):
            for architecture in ARCHITECTURES:
                yield text, architecture

    def keep(self, rows: Iterable[Compiled]) -> None:
        """Keep NVRTC's results for kernels."""
        for row in rows:
            self.known[self.digests[row.kernel], row.architecture] = row

    def found(self) -> list[Compiled]:
        """The known facts about the kernels that were added."""
        places = [(digest, architecture) for digest in self.digests.values() for architecture in ARCHITECTURES]
        return [self.known[place] for place in places if place in self.known]

    def store(self) -> None:
        """Write the cache."""
        if self.cache is not None:
            rows = [(digest, asdict(row)) for (digest, _), row in self.known.items()]
            self.cache.write_text(json.dumps({"version": self.version(), "kernels": rows}))


NAME = re.compile(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(")


def joined(sources: Sequence[str]) -> Iterator[str]:
    """Several texts as one, each in a namespace."""
    some: list[str] = []
    size = 0
    for source in sorted(sources, key=len):
        if some and size + len(source) > TOGETHER:
            yield "\n".join(some)
            some, size = [], 0
        some.append(f"namespace n{len(some)} {{\n{source}\n}}")
        size += len(source)
    if some:
        yield "\n".join(some)


def works(programs: int, samples: Sequence[str], numbers: bool) -> Iterator[Work]:
    """The work in parts."""
    if BFLOAT16 in samples:
        yield from [Work(BFLOAT16, (), is_small, numbers) for is_small in (False, True)]
        samples = [name for name in samples if name != BFLOAT16]
    for place, start in enumerate(range(0, len(samples), BATCH)):
        yield Work("samples", tuple(samples[start : start + BATCH]), place % 2 == 1, numbers)
    from tests.support.cuda_cases import first_seeds

    seeds = first_seeds(programs)
    for place, start in enumerate(range(0, len(seeds), BATCH)):
        yield Work("random", tuple(seeds[start : start + BATCH]), place % 2 == 0, numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and print their findings; 1 for a fault."""
    parser = argparse.ArgumentParser(prog="python -m tools.cuda_check", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="random programs, their gradients among them")
    parser.add_argument(
        "--primitives",
        nargs="*",
        help="primitives whose samples are checked, and bfloat16 for what computes with it; all if not given",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--no-numbers", action="store_true", help="compile only")
    parser.add_argument("--no-nvrtc", action="store_true", help="compare results only")
    parser.add_argument("--cache", type=Path, help="a file that keeps what NVRTC said of kernels for the next run")
    parser.add_argument("--json", type=Path, help="write registers and spills of every kernel to this file")
    options = parser.parse_args(arguments)
    compiles = not options.no_nvrtc
    if compiles and nvrtc() is None:
        print("NVRTC is not installed: pip install nvidia-cuda-nvrtc, or --no-nvrtc", file=sys.stderr)
        return 2
    from tests.support.samples import SAMPLES

    names = [*sorted(SAMPLES), BFLOAT16] if options.primitives is None else options.primitives
    start = time.perf_counter()
    total, kernels, faults, compiling = Outcome(), Kernels(options.cache if compiles else None), 0, 0.0
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for outcome in pool.imap_unordered(checked, works(options.programs, names, not options.no_numbers)):
            total.cases += outcome.cases
            total.seconds += outcome.seconds
            total.orders += outcome.orders
            faults += len(outcome.faults)
            for fault in outcome.faults:
                print(fault, flush=True)
            for text in outcome.texts if compiles else ():
                kernels.add(text)
        for rows, fault, seconds in pool.imap_unordered(registers_of, kernels.tasks()):
            kernels.keep(rows)
            compiling += seconds
            if fault:
                faults += 1
                print(fault, flush=True)
    print(f"{total.cases} programs, {faults} faults, {time.perf_counter() - start:.0f} s")
    print(f"time of processors: {total.seconds:.0f} s for plans and results, {compiling:.0f} s for NVRTC")
    for reason, count in total.orders.most_common():
        print(f"  {count} {reason}")
    found = kernels.found()
    if found:
        print(summary(found))
    kernels.store()
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=0) + "\n")
    return int(faults > 0)


def summary(kernels: Sequence[Compiled]) -> str:
    """The numbers of kernels, their registers and spills."""
    lines = []
    for architecture in dict.fromkeys([each.architecture for each in kernels]):
        own = [each for each in kernels if each.architecture == architecture]
        registers = sorted([each.registers for each in own])
        spilling = [each for each in own if each.spills]
        lines.append(
            f"{architecture}: {len(own)} kernels, registers {registers[0]} to {registers[-1]}, median "
            f"{registers[len(registers) // 2]}; {len(spilling)} spill"
            + (f", at most {max([each.spills for each in spilling])} bytes" if spilling else "")
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
