"""jit and its tools: static and donated arguments, inspection, profiles, export.

They take a function and its arguments, and return a traced Program, or results of its compiled code.
"""
