"""Memory that tests measure."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import func
from func.backends.llvm.threads import background


@contextmanager
def tracing() -> Iterator[None]:
    """Inside, `tracemalloc` sees every array, for func's own allocator is off; no code is compiled beside it."""
    background.finish()
    with func.config.override(array_cache=0):
        tracemalloc.start()
        try:
            yield
        finally:
            tracemalloc.stop()
