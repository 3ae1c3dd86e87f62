"""BLAS and LAPACK in native code.

A library call of a native program becomes IR that calls SciPy's routines for every matrix of the batch.
"""
