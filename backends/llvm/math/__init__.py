"""Elementary functions on vectors of any length.

A function of an IR vector becomes a call of glibc's libmvec, or of one of the functions of `backends/scalars/math/`,
compiled once for all programs.
"""
