"""Diagonal sparsity: values that are zero except on diagonals are computed as vectors.

A Program with identity seeds, as of Jacobians and Hessians, comes in. An equivalent Program comes out in which such
values are sums of terms, each a dense value with its positions.
"""
