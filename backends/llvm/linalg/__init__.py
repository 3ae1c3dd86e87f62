"""BLAS and LAPACK in native code.

A library call of a native program comes in; IR that calls SciPy's routines comes out, or loops over registers where
matrices are small.
"""
