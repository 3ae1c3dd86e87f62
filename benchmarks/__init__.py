"""Benchmarks of func and its peers; run with `python -m benchmarks`."""
