"""The names of the functions and variables of the caching allocator."""

from __future__ import annotations

BASE = "func_memory_base"
"""The variable with the address of the PyDataMemAllocator of NumPy's own handler."""
LIMIT, WAITING = "func_memory_limit", "func_memory_waiting"
"""The variables with the number of bytes that may wait, and of those that do."""
USED, PEAK = "func_memory_used", "func_memory_peak"
"""The variables with the bytes of blocks that could wait and are in use, and the highest number of these so far."""
NAMES = ("func_memory_malloc", "func_memory_calloc", "func_memory_realloc", "func_memory_free")
RELEASE = "func_memory_release"
