"""Loop re-rolling: Python loops that tracing unrolled become scans again.

A Program with repeated stretches of equations comes in. Each stretch is one `scan_call` in the Program that comes out.
"""
