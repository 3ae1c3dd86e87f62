"""The Python process: what func hooks into NumPy, SciPy, warnings and imports, and how it undoes that.

What comes in are the scopes of transforms and tensors; what goes out are traced values at NumPy's and SciPy's names.
`docs/process.md` lists every hook with its moment, its lock and its end.
"""
