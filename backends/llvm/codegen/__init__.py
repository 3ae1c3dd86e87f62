"""Kernel descriptions as LLVM IR.

A native program (nests, library calls, buffers) becomes one IR function, with explicit vectors and with chunks as
separate functions.
"""
