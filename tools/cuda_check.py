"""Check the CUDA backend without a device: `python -m tools.cuda_check` (`--help` lists the options).

Every kernel of the sample table and of random programs is compiled by NVRTC for two architectures, which needs neither
a driver nor a device (`pip install nvidia-cuda-nvrtc`); registers and spills are recorded. The same text runs on the
processor, and the results are compared with those of native code. Half of the programs are planned with limits at which
small arrays take the forms of large ones.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import importlib
import json
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from func.backends.cuda import plan
from func.backends.cuda.cupy_device import OPTIONS
from func.backends.cuda.dialect import PRELUDE

ARCHITECTURES = ("sm_80", "sm_90")
BATCH = 40
"""Programs that one process takes at a time."""
TOGETHER = 16
"""Texts that NVRTC compiles at once."""
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.S)
REGISTERS, SPILLS = (
    re.compile(r"Used (\d+) registers"),
    re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads"),
)


@dataclass(frozen=True)
class Compiled:
    """What ptxas says of one kernel."""

    kernel: str
    architecture: str
    registers: int
    spills: int
    """Bytes that are stored to memory for want of registers."""


class Refused(Exception):
    """NVRTC does not compile a text; the message is its log."""


@functools.cache
def nvrtc() -> Any:
    """The library, None where it is not installed."""
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
    """What one process has found."""

    cases: int
    kernels: list[Compiled]
    faults: list[str]


def checked(task: tuple[str, tuple[Any, ...], bool, bool, bool]) -> Outcome:
    """Check some programs: primitives by their names, or random programs by their numbers. If `is_small`, small arrays
    take the forms of large ones."""
    kind, items, numbers, compiles, is_small = task
    from tests.support import cuda_cases
    from tests.support.cuda_host import HostDevice
    from tests.support.device_double import DeviceArray

    warnings.simplefilter("ignore")
    plan.LIMITS = cuda_cases.SMALL if is_small else plan.Limits()
    cases = list(cuda_cases.sample_cases(items) if kind == "samples" else cuda_cases.random_cases(items))
    device = HostDevice(DeviceArray)
    faults = cuda_cases.run_together(device, cases, numbers)
    kernels: list[Compiled] = []
    if compiles:
        for text in joined(device.sources):
            for architecture in ARCHITECTURES:
                try:
                    kernels += compiled(text, architecture)
                except Refused as error:
                    faults.append(f"NVRTC for {architecture}: {str(error)[:1000]}")
    return Outcome(len(cases), kernels, faults)


def joined(sources: Sequence[str]) -> Iterator[str]:
    """Several texts as one, each in a namespace, since starting NVRTC takes as long as a kernel."""
    for start in range(0, len(sources), TOGETHER):
        some = sources[start : start + TOGETHER]
        yield "\n".join([f"namespace n{place} {{\n{source}\n}}" for place, source in enumerate(some)])


def tasks(programs: int, samples: Sequence[str], numbers: bool, compiles: bool) -> Iterable[Any]:
    """The work in parts."""
    for start in range(0, len(samples), BATCH):
        yield "samples", tuple(samples[start : start + BATCH]), numbers, compiles, start // BATCH % 2 == 1
    for start in range(0, programs, BATCH):
        yield "random", tuple(range(start, min(start + BATCH, programs))), numbers, compiles, start // BATCH % 2 == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, print what was found; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.cuda_check", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="random programs, each with its gradient")
    parser.add_argument("--primitives", nargs="*", help="primitives whose samples are checked; all if not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--no-numbers", action="store_true", help="compile only")
    parser.add_argument("--no-nvrtc", action="store_true", help="compare results only")
    parser.add_argument("--json", type=Path, help="write registers and spills of every kernel to this file")
    options = parser.parse_args(arguments)
    compiles = not options.no_nvrtc
    if compiles and nvrtc() is None:
        print("NVRTC is not installed: pip install nvidia-cuda-nvrtc, or --no-nvrtc", file=sys.stderr)
        return 2
    from tests.support.samples import SAMPLES

    names = sorted(SAMPLES) if options.primitives is None else options.primitives
    start = time.perf_counter()
    outcomes: list[Outcome] = []
    work = list(tasks(options.programs, names, not options.no_numbers, compiles))
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for outcome in pool.imap_unordered(checked, work):
            outcomes.append(outcome)
            for fault in outcome.faults:
                print(fault, flush=True)
    kernels = {(each.kernel, each.architecture): each for outcome in outcomes for each in outcome.kernels}
    faults = sum([len(outcome.faults) for outcome in outcomes])
    print(
        f"{sum([outcome.cases for outcome in outcomes])} programs, {faults} faults, {time.perf_counter() - start:.0f} s"
    )
    if kernels:
        print(summary(list(kernels.values())))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in kernels.values()], indent=0) + "\n")
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
