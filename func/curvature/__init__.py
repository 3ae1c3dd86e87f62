"""Curvature of functions as linear operators, and what is computed from their products.

A function and a point come in. Its derivatives there are linearised once (`linearized_products`), SciPy's solvers
multiply with them as compiled operators (`curvature_operators`), and spectra, traces and determinants follow from few
products (`krylov`).
"""
