"""Elementary functions on vectors of any length.

A vector of IR comes in; a call of glibc's libmvec comes out where it has the function, and elsewhere one of the
functions of `backends/scalars/math/`, compiled once for all programs.
"""
