"""Native programs as Python callables."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.codegen.printer import FOUND_NAN, print_program
from func.backends.llvm.entry.call_stubs import is_ready, normalised, patient_entry, release
from func.backends.llvm.entry.trees import Leaf, Mismatch, Signature, Tree, tree_of
from func.backends.llvm.machine import Code, compile_ir, lock
from func.backends.llvm.math.elementary import host_features
from func.backends.loops.kernels import NativeProgram, Result

LONG_CALL = 1 << 15
"""Bytes read and written from which on other Python threads run during a call."""

_constants: weakref.WeakKeyDictionary[Code, list[Any]] = weakref.WeakKeyDictionary()
"""Arrays whose addresses stand in the table of a piece of code."""


class Executor:
    """A compiled program: what it was made of, and its entries."""

    def __init__(
        self, program: NativeProgram, fallback: Callable[..., Any], on_nan: Callable[..., Any] | None = None
    ) -> None:
        self.program = program
        self.fallback = fallback
        """Computes the same: for arguments that native code refuses, and to raise what NumPy would."""
        self.on_nan = on_nan
        """Computes the outputs where native code has found a NaN among them."""
        self._code: Code | None = None
        self._flat: weakref.ref[Callable[..., Any]] | None = None

    @property
    def overwrites(self) -> frozenset[int]:
        """The inputs in whose memory there are outputs after a call."""
        return frozenset([one.input for one in self.program.written.values()])

    @property
    def is_ready(self) -> bool:
        """Whether entries are native as soon as they are made."""
        return is_ready()

    def module(self) -> ir.Module:
        """The program as IR."""
        return print_program(self.program, host_features())

    @property
    def code(self) -> Code:
        """The machine code, with the table of constants filled."""
        # `functools.cached_property` of Python 3.11 would hold a lock over all programs, which a fork leaves closed.
        if self._code is None:
            self._code = self._compiled()
        return self._code

    def _compiled(self) -> Code:
        module = self.module()
        with lock:  # another thread that has the same code never sees its table half filled
            code = compile_ir(module)
            if self.program.constants and code not in _constants:
                _constants[code] = list(self.program.constants)
                table = (ctypes.c_void_p * len(self.program.constants)).from_address(code.address("constants"))
                for place, array in enumerate(self.program.constants):
                    table[place] = array.ctypes.data
        return code

    def entry(
        self, args: tuple[Tree, ...], result: Tree, slow: Callable[..., Any], failed: Callable[..., Any]
    ) -> Callable[..., Any]:
        """A callable of arguments in these trees. What does not fit them goes to `slow`; `failed` is called with a
        status and the arguments where the program reports one."""
        size = sum([_bytes(one) for one in (*self.program.inputs, *self.program.outputs)])
        signature = Signature(args, result, self.program.arena, size >= LONG_CALL)
        return patient_entry(self.code.address("run"), signature, slow, failed, self)

    def failed(self, status: int, given: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs for which native code has returned a status."""
        if status == FOUND_NAN and self.on_nan is not None:
            return self.on_nan(*given)  # type: ignore[no-any-return]
        return self._other_way(*given)

    def _other_way(self, *given: Any) -> tuple[Any, ...]:
        outs = self.fallback(*given)
        inexact = [out for out in outs if np.asarray(out).dtype.kind in "fc"]
        if self.on_nan is not None and any([bool(np.isnan(out).any()) for out in inexact]):
            return self.on_nan(*given)  # type: ignore[no-any-return]
        return outs  # type: ignore[no-any-return]

    def for_trees(
        self,
        args: tuple[Any, ...],
        unflatten: Callable[[Sequence[Any]], Any],
        slow: Callable[..., Any],
        failed: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """A callable of arguments like these, trees of arrays, with the whole result; None where an entry cannot take
        or make such trees."""
        result = unflatten([leaf_of(one) for one in self.program.outputs])
        try:
            trees = tuple([tree_of(arg) for arg in args])
            return self.entry(trees, result, slow, failed) if _is_plain(result) else None
        except Mismatch:
            return None

    def flat(self) -> Callable[..., tuple[Any, ...]]:
        """A callable of the program's inputs that returns the tuple of its outputs."""
        args = tuple([leaf_of(one) for one in self.program.inputs])
        result = tuple([leaf_of(one) for one in self.program.outputs])
        signature = Signature(args, result)

        def slow(*given: Any) -> Any:
            try:
                fitting = normalised(signature, given)
            except (TypeError, ValueError):
                return self._other_way(*given)
            for place, leaf in enumerate(args):
                if leaf.kind == "python":  # an integer beyond 64 bits comes here too
                    return self._other_way(*given)
                if not leaf.shape:
                    fitting[place] = fitting[place].reshape(())
            return entry(*fitting)

        def failed(status: int, *given: Any) -> Any:
            return self.failed(status, given)

        entry = self.entry(args, result, slow, failed)
        self._flat = weakref.ref(entry)
        return entry

    def release(self) -> None:
        """Give back the memory that `flat` keeps for its next call, since calls go another way now."""
        entry = self._flat() if self._flat is not None else None
        if entry is not None:
            release(entry)


def _is_plain(tree: Any) -> bool:
    """Whether a tree is made of tuples, lists and dicts only."""
    if tree is None or isinstance(tree, Leaf):
        return True
    if type(tree) not in (tuple, list, dict):
        return False
    return all([_is_plain(child) for child in (tree.values() if type(tree) is dict else tree)])


def leaf_of(result: Result) -> Leaf:
    """What an entry takes or makes."""
    return Leaf("python" if result.weak else "array", result.shape, result.dtype)


def _bytes(result: Result) -> int:
    return int(np.prod(result.shape, dtype=np.int64)) * result.dtype.itemsize
