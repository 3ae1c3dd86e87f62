"""Diagonal sparsity: arrays that are zero except on diagonals are computed as vectors.

A Program with identity seeds (of Jacobians and Hessians) comes in. An equivalent Program comes out in which such arrays
are sums of terms, each a dense value with the diagonals on which it lies.
"""
