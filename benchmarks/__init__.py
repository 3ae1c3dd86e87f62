"""Benchmarks of func against its peers; run with `python -m benchmarks`."""
