"""Primitives of linear algebra on stacks of matrices, each with the formula and the source of its derivative.

Arrays of shape (…, m, n) come in; factors, solutions, spectra or functions of the matrices come out. Leading axes are a
batch.
"""
