"""Preload: a thread loads LLVM's library while Python traces a function and imports the compiler.

Loading the library and the first code generation take a third of a first call with a new program. Both are C and C++
work without Python's lock. So a thread does them as soon as code generation is certain. That is at the first call on a
machine without compiled code, or for a program that is not on disk. The thread imports nothing. A fork waits for it,
since it holds `machine.lock` while it prepares LLVM. In steps during which others may compile it holds a private lock,
which forks take after that one.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

from func.backends import messages
from func.backends.llvm import llvm_library
from func.backends.llvm.machine import lock, locks_after

FIRST_MODULE = """
define void @first(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr double, ptr %x, i64 %i
  %a = load <8 x double>, ptr %place, align 8
  %b = fmul <8 x double> %a, %a
  %is_large = fcmp ogt <8 x double> %b, %a
  %c = select <8 x i1> %is_large, <8 x double> %a, <8 x double> %b
  store <8 x double> %c, ptr %place, align 8
  %next = add i64 %i, 8
  %goes_on = icmp ult i64 %next, %n
  br i1 %goes_on, label %loop, label %end
end:
  ret void
}
"""
"""The first code to generate: a loop over vectors, as in programs."""

_begun = False
_working = threading.RLock()
locks_after.append(_working)


def begin() -> None:
    """Load LLVM's library and generate code once, in a thread."""
    global _begun
    if _begun or "llvmlite.binding" in sys.modules:
        return
    _begun = True
    path = llvm_library.path()
    if path is not None:
        try:
            threading.Thread(target=_work, args=(os.fsencode(path),), name=__name__).start()
        except RuntimeError as error:  # no thread can start
            messages.debug("LLVM's library is loaded without a thread: %s", error)


def _work(path: bytes) -> None:
    try:
        with _working:
            load = ctypes.CDLL(None).dlopen  # called by ctypes, it releases Python's lock
            load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
            load(path, os.RTLD_NOW | os.RTLD_LOCAL)
        with lock:
            if not llvm_library.is_usable():
                return
            machine = llvm_library.new_machine()
        with _working:
            llvm_library.emit(FIRST_MODULE, machine)
    except Exception as error:
        messages.debug("LLVM's library is loaded without a thread: %s", error)
