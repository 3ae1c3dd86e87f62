"""Low-rank structure: outer products that are not multiplied out.

A Program comes in. Reductions and contractions of outer products become contractions of their factors in the Program
that comes out: Σᵢⱼ (uᵢ vⱼ)² = Σᵢ uᵢ² · Σⱼ vⱼ².
"""
