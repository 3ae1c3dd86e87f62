"""Kinds of versions of SciPy's functions: what follows for a function from how it is computed and differentiated.

- *traced*: SciPy's own Python code runs on traced values (`~name` among the hooks; `traces` where names in it stand for
  something else). What it calls that is compiled has versions behind hooks of their own.
- *written*: func's function computes for traced arguments, SciPy's for all others (`versions`).
"""
