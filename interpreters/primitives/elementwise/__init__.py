"""Elementwise primitives: their builder, and the table that names the partial derivatives of each.

Arrays that broadcast against each other come in, one array of the broadcast shape comes out. Tangent, pullback and
batch rule follow from the partial derivatives.
"""
