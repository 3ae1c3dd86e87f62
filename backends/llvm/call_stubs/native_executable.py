"""Native programs as Python callables."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.backends.llvm.call_stubs.binding import bind_deferred, can_bind_natively, normalised, release_memory
from func.backends.llvm.call_stubs.signature import Leaf, Mismatch, StubSignature, Tree, tree_of
from func.backends.llvm.machine import MachineCode, compile_ir, load_code, lock
from func.backends.llvm.math.own_functions import host_features
from func.backends.loops.interface import HAS_NAN, ArraySpec, Interface
from func.backends.records import Record

if TYPE_CHECKING:
    from func.backends import ir
    from func.backends.loops.kernels import NativeProgram

LONG_CALL = 1 << 15
"""Fewest bytes read and written for a call that lets other Python threads run."""

_constants: weakref.WeakKeyDictionary[MachineCode, list[Any]] = weakref.WeakKeyDictionary()
"""Arrays whose addresses are in the table of a module's code."""


class NativeExecutable:
    """A compiled program: its description, its code, and its call stubs."""

    def __init__(
        self,
        program: NativeProgram | Callable[[], NativeProgram],
        fallback: Callable[..., Any],
        nan_safe: Callable[..., Any] | None = None,
        interface: Interface | None = None,
    ) -> None:
        self._program = program
        self.interface = self.program.interface if interface is None else interface
        self.fallback = fallback
        """Computes the same with NumPy: for arguments that native code rejects, and to raise NumPy's errors."""
        self.nan_safe = nan_safe
        """Computes the outputs if native code has found a NaN among them."""
        self._code: MachineCode | None = None
        self._flat_stub: weakref.ref[Callable[..., Any]] | None = None

    @property
    def program(self) -> NativeProgram:
        """The description of the kernels, made now if the code is from the disk cache."""
        if not isinstance(self._program, Record):
            self._program = self._program()
        program_or_maker: Any = self._program
        program: NativeProgram = program_or_maker
        return program

    def load(self, key: str) -> bool:
        """Use the cached object code of a key; whether there is any."""
        reference: Any = weakref.ref(self)  # which keeps the code
        with lock:
            code = load_code(key, lambda: reference().module())
            if code is not None:
                self._code = self._with_constants(code)
        return code is not None

    @property
    def overwrites(self) -> frozenset[int]:
        """The inputs whose memory a call overwrites with outputs."""
        return frozenset([alias.input for alias in self.interface.aliased.values()])

    @property
    def can_bind_natively(self) -> bool:
        """Whether new stubs are native at once."""
        return can_bind_natively()

    def module(self) -> ir.Module:
        """The program as IR."""
        from func.backends.llvm.codegen.printer import print_program  # start-up time: programs on disk are not printed

        return print_program(self.program, host_features())

    @property
    def code(self) -> MachineCode:
        """The machine code, with the table of constants filled."""
        # `functools.cached_property` of Python 3.11 holds one lock for all programs, which a fork may leave locked.
        if self._code is None:
            self._code = self._compiled()
        return self._code

    def _compiled(self) -> MachineCode:
        module = self.module()
        with lock:  # another thread with the same code never sees its table half filled
            return self._with_constants(compile_ir(module))

    def _with_constants(self, code: MachineCode) -> MachineCode:
        """The code with the table of constants filled."""
        constants = self.interface.constants
        if constants and code not in _constants:
            table = (ctypes.c_void_p * len(constants)).from_address(code.address("constants"))
            for place, array in enumerate(constants):
                table[place] = array.ctypes.data
            _constants[code] = list(constants)
        return code

    def stub(
        self,
        args: tuple[Tree, ...],
        result: Tree,
        slow: Callable[..., Any],
        failed: Callable[..., Any],
        separate: tuple[tuple[int, int], ...] = (),
        fixed: tuple[tuple[int, int, int], ...] = (),
        keeps_outputs: bool = True,
        expected: int | None = None,
    ) -> Callable[..., Any]:
        """A callable of arguments in these trees; see `StubSignature` for the other parameters.

        Arguments that do not match go to `slow`. `failed` gets the status and the arguments if the program reports one.
        """
        size = sum([_bytes(buffer) for buffer in (*self.interface.inputs, *self.interface.outputs)])
        releases_gil = size >= LONG_CALL
        signature = StubSignature(
            args, result, self.interface.arena, releases_gil, separate, fixed, keeps_outputs, expected
        )
        return bind_deferred(self.code.address("run"), signature, slow, failed, self)

    def failed(self, status: int, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs after native code has returned a status."""
        run = self.nan_safe if status == HAS_NAN and self.nan_safe is not None else self.fallback
        return run(*inputs)  # type: ignore[no-any-return]

    def tree_stub(
        self,
        args: tuple[Any, ...],
        unflatten: Callable[[Sequence[Any]], Any],
        slow: Callable[..., Any],
        failed: Callable[..., Any],
        separate: tuple[tuple[int, int], ...] = (),
        fixed: tuple[tuple[int, int, int], ...] = (),
        expected: int | None = None,
    ) -> Callable[..., Any] | None:
        """A callable of arguments like these, trees of arrays, with the whole result; None if a stub cannot take or
        make such trees. With `expected`, the last output is not a part of the result."""
        outputs = self.interface.outputs if expected is None else self.interface.outputs[:-1]
        result = unflatten([leaf_of(output) for output in outputs])
        try:
            trees = tuple([tree_of(arg) for arg in args])
            keywords: dict[str, Any] = {"separate": separate, "fixed": fixed, "expected": expected}
            return self.stub(trees, result, slow, failed, **keywords) if _is_plain(result) else None
        except Mismatch:
            return None

    def flat_stub(self) -> Callable[..., tuple[Any, ...]]:
        """A callable of the program's inputs that returns the tuple of its outputs."""
        args = tuple([leaf_of(argument) for argument in self.interface.inputs])
        result = tuple([leaf_of(output) for output in self.interface.outputs])
        signature = StubSignature(args, result)

        def slow(*inputs: Any) -> Any:
            try:
                arrays = normalised(signature, inputs)
            except (TypeError, ValueError):
                return self.fallback(*inputs)
            for place, leaf in enumerate(args):
                if leaf.kind == "python":  # an integer beyond 64 bits comes here too
                    return self.fallback(*inputs)
                if not leaf.shape:
                    arrays[place] = arrays[place].reshape(())
            return reference()(*arrays)

        def failed(status: int, *inputs: Any) -> Any:
            return self.failed(status, inputs)

        stub = self.stub(args, result, slow, failed)
        reference: Any = weakref.ref(stub)  # the stub's callees must not hold a reference to it
        self._flat_stub = reference
        return stub

    def strict_stub(self, slow: Callable[..., Any], keeps_outputs: bool = True) -> Callable[..., tuple[Any, ...]]:
        """`flat_stub`, which passes inputs to `slow` that do not match, or have an unexpected layout."""
        args = tuple([leaf_of(argument) for argument in self.interface.inputs])
        result = tuple([leaf_of(output) for output in self.interface.outputs])

        def failed(status: int, *inputs: Any) -> Any:
            return self.failed(status, inputs)

        return self.stub(args, result, slow, failed, keeps_outputs=keeps_outputs)

    def release_memory(self) -> None:
        """Free the memory that the flat stub keeps for its next call."""
        stub = self._flat_stub() if self._flat_stub is not None else None
        if stub is not None:
            release_memory(stub)


def _is_plain(tree: Any) -> bool:
    """Whether all containers of a tree are tuples, lists and dicts."""
    if tree is None or isinstance(tree, Leaf):
        return True
    if type(tree) not in (tuple, list, dict):
        return False
    return all([_is_plain(child) for child in (tree.values() if type(tree) is dict else tree)])


def leaf_of(result: ArraySpec) -> Leaf:
    """The leaf that a stub takes for an input or makes for an output."""
    return Leaf("python" if result.weak else "array", result.shape, result.dtype)


def _bytes(result: ArraySpec) -> int:
    return int(np.prod(result.shape, dtype=np.int64)) * result.dtype.itemsize
