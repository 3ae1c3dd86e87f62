"""NumPy's operations on elements, for every printer of instructions.

The name of an operation and operands come in, scalars, vectors or complex pairs; a value with NumPy's result comes out.
LLVM IR, C and CUDA share the tables: each has a builder with the same methods.
"""
