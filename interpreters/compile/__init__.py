"""From a traced Program to code that runs.

A Program comes in from `jit`. It is inlined, optimised by `passes`, translated to native kernels (`native`) or to NumPy
source (`lowering`), and comes out as a callable; `compiled_call` is the primitive that represents the call in other
transforms, and `partition` splits derivatives into a forward and a linear program.
"""
