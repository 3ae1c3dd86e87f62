"""Loop re-rolling: Python loops that tracing unrolled become scans again.

A Program in which runs of equations repeat comes in. A Program with one `scan_call` for each of these loops comes out.
"""
