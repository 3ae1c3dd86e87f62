"""Primitives that move, select, join, sort and sum elements.

Arrays come in with static parameters (axes, indices, shapes); rearranged or reduced arrays come out. Most are linear,
so that a transpose is their whole derivative.
"""
