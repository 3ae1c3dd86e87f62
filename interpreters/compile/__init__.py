"""From a traced Program to code that runs.

A Program comes in from `jit`. It is inlined, optimised by `passes`, translated to native kernels (`native`) or to NumPy
source (`lowering`), and comes out as a callable. An equation without a native form stays a call of NumPy.
"""
