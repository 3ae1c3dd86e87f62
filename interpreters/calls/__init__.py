"""Primitives whose parameters are functions or programs: custom rules, checkpoints, callbacks, compiled calls.

A user's function and its rules come in as parameters, flat: they take and return lists of arrays. Each interpreter
binds the primitive again with a transformed function or program, whose outputs come out.
"""
