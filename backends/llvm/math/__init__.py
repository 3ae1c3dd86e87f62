"""Elementary functions on vectors of any length.

A vector of IR comes in; the instructions of sine, exponential and the like come out, as calls of glibc's libmvec
where it has the function and as polynomials elsewhere.
"""
