"""jit and what belongs to it: static and donated arguments, inspection, profiles, export.

A function and its arguments come in; a traced Program, or results of its compiled code, come out.
"""
