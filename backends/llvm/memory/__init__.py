"""Memory of NumPy arrays, kept for the next array instead of returned to the system.

NumPy asks for memory and frees it through a handler, which each thread may set and each array keeps. This handler wraps
NumPy's own: large freed blocks wait in lists by size for the next array of that size.
"""
