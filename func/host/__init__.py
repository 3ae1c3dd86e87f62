"""The Python process: func's hooks into NumPy, SciPy, warnings and imports, and their removal.

Within the scopes of transforms and tensors, NumPy's and SciPy's functions take traced values. `docs/process.md` lists
every hook with its moment, its lock and its end.
"""
