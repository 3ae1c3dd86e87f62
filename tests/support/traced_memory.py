"""Memory that tests measure."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import func
from func.backends.llvm.threads import background


@contextmanager
def tracing() -> Iterator[None]:
    """Inside, `tracemalloc` sees every array of eager code: func's own allocator is off, and no backward pass is code,
    whose arena it would not see. Nothing compiles meanwhile.
    """
    background.finish()
    with func.config.override(array_cache=0, compile_backward=False):
        tracemalloc.start()
        try:
            yield
        finally:
            tracemalloc.stop()
