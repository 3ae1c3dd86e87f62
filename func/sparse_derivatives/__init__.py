"""Sparse Jacobians and Hessians: their patterns, colourings, and compressed evaluation.

A function and its arguments come in. The pattern is found from the Program by index sets (`dependence`), the entries
are computed directly (`terms`) or columns that share no row are evaluated together (`coloring`), and SciPy's sparse
arrays come out (`derivatives`).
"""
