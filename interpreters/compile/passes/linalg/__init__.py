"""Structure of linear algebra: closed-form Cholesky pullbacks, shared factorizations, solves with known structure.

A Program comes in. Solves and factorizations that others make superfluous are gone from the Program that comes out.
"""
