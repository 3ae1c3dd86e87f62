"""Primitives whose parameters are functions: custom derivative rules, checkpoints, custom batching, callbacks.

A user's function and its rules come in as parameters; every interpreter binds the primitive again with transformed
functions. The outputs of the function come out, with the derivative or the batching that the rule gives.
"""
