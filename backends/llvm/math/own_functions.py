"""Elementary functions that are not libmvec's, compiled: the features of the host, names, and addresses.

Compiled programs from the cache need the addresses alone, so nothing here imports printers unless a function needs
compilation.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from func.backends.llvm import symbols
from func.backends.llvm.host import host
from func.backends.llvm.machine import MachineCode, compile_ir


class Features(NamedTuple):
    """The facts about a host for the elementary functions: libmvec, the bits of a vector register, fused multiply-add.

    On x86-64, 256 bits mean AVX2 and 512 bits AVX-512.
    """

    libmvec: bool
    bits: int
    fma: bool


def host_features() -> Features:
    """The features of this host; FUNC_NO_LIBMVEC=1 in the environment leaves libmvec out."""
    return _host_features(uses_libmvec())


def uses_libmvec() -> bool:
    """Whether the environment lets programs use libmvec."""
    return os.environ.get("FUNC_NO_LIBMVEC", "0") in ("", "0")


@cache
def _host_features(libmvec: bool) -> Features:
    machine = host()
    if not machine.triple.startswith(("x86_64", "amd64")):
        return Features(libmvec=False, bits=128, fma=machine.triple.startswith(("aarch64", "arm64")))
    wide = all([machine.has(name) for name in ("avx512f", "avx512dq", "avx512bw", "avx512vl")])
    bits = 512 if wide else 256 if machine.has("avx2") else 128
    return Features(libmvec and symbols.load_libmvec() is not None, bits, machine.has("fma"))


# Names of functions that are not libmvec's: the features they are compiled for, their type, NumPy's name.
OWN_PREFIX = "func_own_"
OWN_NAME = re.compile(
    OWN_PREFIX + r"(?P<bits>\d+)(?P<libmvec>m?)(?P<fma>f?)_v(?P<count>\d+)f(?P<width>\d+)_(?P<name>\w+)"
)

_compiled: dict[str, MachineCode] = {}
"""Compiled functions that are not libmvec's; they live as long as the process."""


def address_of(name: str) -> int | None:
    """The address of the function of this name, compiled now if necessary; None if it is not one of these functions.

    >>> address_of("func_own_256f_v4f64_exp") is None, address_of("exp") is None
    (False, True)
    """
    module = module_of(name)
    if module is None:
        return None
    code = _compiled.get(name)
    if code is None:
        code = _compiled[name] = compile_ir(module[1], key=name)
    return code.address(name)


def module_of(name: str) -> tuple[str, Callable[[], Any]] | None:
    """The key of the code of a function, and the printer of its module; None if it is not one of these functions."""
    match = OWN_NAME.fullmatch(name)
    if match is None:
        return None
    from func.backends.scalars.math.registry import FUNCTIONS  # start-up time: many programs have libmvec's alone

    if match["name"] not in FUNCTIONS or FUNCTIONS[match["name"]].intrinsic:
        return None
    return name, lambda: _printer().own_module(name, match)


def _printer() -> Any:
    """The module that prints functions: only functions missing on disk import it."""
    return importlib.import_module("func.backends.llvm.math.elementary")
