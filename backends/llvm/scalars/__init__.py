"""NumPy's operations on elements as LLVM IR.

The name of an operation and operands come in, scalars, vectors or complex pairs; a value with NumPy's result comes out.
"""
