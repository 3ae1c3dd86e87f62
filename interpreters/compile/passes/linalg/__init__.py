"""Passes for linear algebra: closed-form Cholesky pullbacks, shared LU factorizations, rules for solves.

A Program with solves, inverses, determinants or Cholesky factors comes in. A Program with fewer factorizations and
products of matrices comes out.
"""
