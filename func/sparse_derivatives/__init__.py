"""Sparse Jacobians and Hessians: their patterns, colourings, and compressed evaluation.

`dependence` derives the pattern from a function's Program by index sets. `terms` computes the entries directly, or
`coloring` evaluates columns without a common row together. `derivatives` returns SciPy's sparse arrays.
"""
