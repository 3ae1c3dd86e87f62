"""The settings of a process: `func.config`."""

from __future__ import annotations

import importlib
import operator
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import numpy as np

from func.backends import thread_count
from func.backends.array_memory import MEMORY
from func.backends.defensive_copies import forget_copies
from func.interpreters.compiled_backward import BACKWARD
from func.interpreters.core.errors import ArgumentError
from func.interpreters.program.translations import TRANSLATIONS

COMPILERS = (None, "numpy", "llvm", "cuda")


class Settings(TypedDict, total=False):
    """The keywords of `override`."""

    num_threads: int
    compiler: str | None
    check_frozen: bool
    validate: bool
    promote_integers: bool
    compile_backward: bool
    array_cache: int | str
    matmul_precision: str


UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}


def bytes_in(size: Any) -> int | None:
    """A number of bytes, possibly as a text with a unit ("2 GiB"); None for anything else."""
    if isinstance(size, str):
        from fractions import Fraction  # here, for the start-up time

        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", size)
        unit = UNITS.get((match.group(2) or "b").lower()) if match else None
        return int(Fraction(match.group(1)) * unit) if match and unit else None
    try:
        return None if isinstance(size, (bool, np.bool_)) else operator.index(size)
    except TypeError:
        return None


class Config:
    """The settings of the whole process, for all threads.

    Example:
        >>> import func
        >>> func.config.num_threads = 2
        >>> with func.config.override(num_threads=1, compiler="numpy"):
        ...     func.config.num_threads, func.config.compiler
        (1, 'numpy')
        >>> func.config.num_threads, func.config.compiler
        (2, None)
    """

    __slots__ = ("_check_frozen", "_compiler", "_matmul_precision", "_promote_integers")

    def __init__(self) -> None:
        self._compiler: str | None = None
        self._promote_integers = False
        self._matmul_precision = "highest"
        self._check_frozen = os.environ.get("FUNC_CHECK_FROZEN", "") not in ("", "0")

    @property
    def num_threads(self) -> int:
        """The most threads of a large native kernel, or of NumPy on a large array, the caller's own included.

        Initially the number in the environment variable FUNC_NUM_THREADS, or else that of the cores of the process.
        Results do not depend on it. A new number applies from the next call on.

        Raises:
            ArgumentError: The number, or that of the environment, is not an integer from 1 to 1024.
        """
        try:
            return thread_count.num_threads()
        except ValueError as error:
            raise ArgumentError(f"func.config.num_threads: {error}") from None

    @num_threads.setter
    def num_threads(self, number: int) -> None:
        try:
            if isinstance(number, bool):
                raise TypeError
            thread_count.set_num_threads(operator.index(number))
        except TypeError:
            raise ArgumentError(f"func.config.num_threads must be a whole number of threads, not {number!r}") from None
        except ValueError as error:
            raise ArgumentError(f"func.config.num_threads: {error}") from None

    @property
    def compiler(self) -> str | None:
        """The compiler of a `jit` without `compiler=`: "llvm", "numpy", "cuda", or None, the best.

        A compilation reads it; compiled programs stay unchanged.

        Raises:
            ArgumentError: There is no such compiler.
        """
        return self._compiler

    @compiler.setter
    def compiler(self, name: str | None) -> None:
        if name not in COMPILERS:
            raise ArgumentError(f"func.config.compiler={name!r} is not one of {', '.join(map(repr, COMPILERS))}")
        self._compiler = name
        BACKWARD.on_host, BACKWARD.on_device = name in (None, "llvm"), name in (None, "cuda")

    @property
    def check_frozen(self) -> bool:
        """Whether functions that `func.jit` wraps from now on look for frozen values that have changed.

        Every call first compares the globals, attributes and enclosing variables of the function with those of the
        trace; a FrozenValueWarning names the changes. This is slow: use it to search for such a fault. Initially the
        environment variable FUNC_CHECK_FROZEN decides (1: on).
        """
        return self._check_frozen

    @check_frozen.setter
    def check_frozen(self, is_on: bool) -> None:
        self._check_frozen = bool(is_on)

    @property
    def validate(self) -> bool:
        """Whether numerical checks follow each translation of a program: passes, compilers, derivatives of `jit`.

        A check evaluates the program before and after, on small inputs with special and coinciding values. A difference
        raises ValidationError, with the smallest program that shows it. Compilation reads the setting, and takes
        several times as long; calls of compiled code keep their speed. Initially the environment variable FUNC_VALIDATE
        decides (1: on).

        Example:
            >>> import func
            >>> with func.config.override(validate=True):
            ...     func.jit(lambda x: x + 1)(1.0)
            2.0
        """
        return TRANSLATIONS.are_validated

    @validate.setter
    def validate(self, is_on: bool) -> None:
        TRANSLATIONS.are_validated = bool(is_on)

    @property
    def promote_integers(self) -> bool:
        """Whether transforms differentiate integer arguments as floats of the same value.

        Initially off: such arguments raise DifferentiatedInputError. It helps callers that pass integers on, as
        `scipy.optimize.fsolve` does with a start of [0, 0]. The function then gets float64, also the dtype of the
        derivative. Integers above 2**53 are rounded. Trees of arguments stay unchanged. The trace of a jitted function
        reads the setting.

        Example:
            >>> import func
            >>> with func.config.override(promote_integers=True):
            ...     float(func.grad(lambda x: x**3)(2))
            12.0
        """
        return self._promote_integers

    @promote_integers.setter
    def promote_integers(self, is_on: bool) -> None:
        self._promote_integers = bool(is_on)

    @property
    def compile_backward(self) -> bool:
        """Whether eager transforms compile long backward passes that they run repeatedly. Initially on.

        A compiled pass reads and writes arrays once, instead of once for each NumPy operation. NumPy still computes the
        function itself. Gradients differ by rounding from those of NumPy's operations. So a gradient before the
        compilation and one after it may differ in the last bits. The number of calls and the sizes of arrays decide,
        not the clock. A `compiler` that is not native switches it off.

        Example:
            >>> import func
            >>> with func.config.override(compile_backward=False):
            ...     func.config.compile_backward
            False
        """
        return BACKWARD.is_on

    @compile_backward.setter
    def compile_backward(self, is_on: bool) -> None:
        BACKWARD.is_on = bool(is_on)

    @property
    def array_cache(self) -> int:
        """The bytes of dead arrays that transforms keep for reuse, at most: initially 256 MiB.

        Inside transforms NumPy takes the memory of large arrays from dead ones, as fresh pages of the system cost more
        than most arithmetic. The peak memory of the process does not rise. Accepts a text with a unit ("1 GiB"), too; 0
        switches it off. `func.clear_caches()` frees the memory. It needs Linux and native code; elsewhere the setting
        has no effect.

        Raises:
            ArgumentError: The limit is not a number of bytes.

        Example:
            >>> import func
            >>> with func.config.override(array_cache="1 GiB"):
            ...     func.config.array_cache
            1073741824
        """
        return MEMORY.limit

    @array_cache.setter
    def array_cache(self, most: int | str) -> None:
        count = bytes_in(most)
        if count is None or not 0 <= count < 1 << 62:
            raise ArgumentError(
                f"func.config.array_cache must be a number of bytes, as an int or as a text with a unit (kB, MB, GB, "
                f"KiB, MiB, GiB), not {most!r}"
            )
        MEMORY.limit = count
        forget_copies()

    @property
    def matmul_precision(self) -> str:
        """The precision of float32 matrix products on devices in compiled programs: "highest", as on processors, or
        "tf32".

        "tf32" rounds the operands to 10 binary digits after the first, and products are several times faster. A
        compilation reads it. It does not affect float64.

        Raises:
            ArgumentError: It is neither of them.
        """
        return self._matmul_precision

    @matmul_precision.setter
    def matmul_precision(self, name: str) -> None:
        if name not in ("highest", "tf32"):
            raise ArgumentError(f"func.config.matmul_precision={name!r} is not 'highest' or 'tf32'")
        self._matmul_precision = name

    @property
    def cache_dir(self) -> Path | None:
        """The folder in which processes share compiled code, or None; read-only.

        The folder that the environment variable FUNC_CACHE_DIR names, or else the platform's folder for caches; none
        if the variable is empty.
        """
        return cast("Path | None", _native("cache").folder())

    @contextmanager
    def override(self, **settings: Unpack[Settings]) -> Iterator[None]:
        """Give settings other values inside a block; at its end the earlier ones return. All threads see the change.

        Raises:
            ArgumentError: A setting is unknown or cannot have the value.

        Example:
            >>> import func
            >>> with func.config.override(compiler="numpy"):
            ...     func.jit(lambda x: x + 1)(1.0)
            2.0
        """
        if unknown := sorted(settings.keys() - Settings.__annotations__.keys()):
            names = ", ".join(Settings.__annotations__)
            raise ArgumentError(f"func.config.override: {unknown[0]!r} is not a setting; those are {names}")
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        names = (
            *("num_threads", "compiler", "check_frozen", "validate", "promote_integers", "compile_backward"),
            *("array_cache", "matmul_precision", "cache_dir"),
        )
        values = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"func.config({', '.join(values)})"


def _native(module: str) -> Any:
    """A module of the native backend, imported at its first use."""
    return importlib.import_module(f"func.backends.llvm.{module}")


config = Config()
"""The settings of this process."""
