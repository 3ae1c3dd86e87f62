"""Primitives of the special functions, with derivatives that SciPy does not have.

Real (for some functions complex) arrays come in and broadcast; values of scipy.special come out. Each derivative cites
its source.
"""
