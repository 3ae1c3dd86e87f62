"""The NumPy (SciPy, CuPy) source text of equations.

An equation comes in, with the shapes and dtypes of its operands and its parameters. Text comes out with a place for
each operand and, if it can write into given memory, for the output. It is the record of the primitive's
implementation, but for the few primitives with a rule.
"""
