"""Primitives of random numbers: words from keys, and variates that are differentiable in their parameters.

Keys and parameters come in as arrays; bits or variates come out, the same for the same key under every transform.
"""
