"""Rewriting by rules: algebra, shapes, slices, reductions, contractions and sums.

A Program comes in, and each equation is copied or replaced by the result of a rule. An equivalent Program comes out,
the same object where no rule applied.
"""
