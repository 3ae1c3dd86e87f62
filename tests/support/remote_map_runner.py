"""Runners for tests of `remote_map`: chunks of a few rows in this thread."""

from func.workers.engines import HereEngine
from func.workers.running import ChunkRunner


def runner(rows: int) -> ChunkRunner:
    """A runner with chunks of this number of rows."""
    return ChunkRunner(HereEngine(None), "test", rows)
