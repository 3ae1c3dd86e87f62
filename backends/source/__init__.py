"""Programs as NumPy source.

A plan comes in: statements in order, with names and memory. Straight-line Python comes out, compiled to a function or
printed as a module that people keep.
"""
