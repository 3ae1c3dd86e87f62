"""Elementary functions as instructions: one body for a vector of any length, or for a number of C.

The name of a function comes in (`registry.py`), with an emitter and its arguments; the instructions of sine,
exponential and the like come out, as polynomials.
"""
