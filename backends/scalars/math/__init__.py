"""Elementary functions as instructions: one body for a vector of any length, or for a number of C.

An emitter turns the name of a function (`registry.py`) and its arguments into instructions of polynomials.
"""
