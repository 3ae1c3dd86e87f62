"""Memory of NumPy arrays that is kept for the next array instead of given back to the system.

NumPy asks for memory and frees it through a handler, which each thread may set and each array keeps. What is here goes
around NumPy's own handler: large blocks that are freed wait in lists by size for the next array of that size.
"""
