"""Curvature of functions as linear operators, and quantities from their products.

`linearized_products` linearises a function at a point once. SciPy's solvers multiply with the compiled operators of
`curvature_operators`, and `krylov` computes spectra, traces and determinants from few products.
"""
