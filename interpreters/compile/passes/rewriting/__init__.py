"""Rewriting of single equations by rules: algebra, shapes, slices, reductions and contractions.

A Program comes in; each equation is copied or replaced by what a rule gives for its output. An equivalent Program comes
out, the same object where no rule applied.
"""
