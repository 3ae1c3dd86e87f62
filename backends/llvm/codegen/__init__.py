"""Kernel descriptions as LLVM IR.

A native program comes in: nests, library calls, buffers. One IR function that runs it comes out, with explicit vectors
and with chunks as functions of their own.
"""
