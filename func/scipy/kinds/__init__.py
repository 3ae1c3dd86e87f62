"""Kinds of versions of SciPy's functions: what follows for a function from how it is computed and differentiated.

- *traced*: SciPy's own Python code runs on traced values (`~name` among the hooks; `traces` where names in it stand for
  something else). What it calls that is compiled has versions behind hooks of their own.
- *plain*: SciPy's function runs on plain values: on those of traced arrays, as a constant, or on stand-ins, for its
  checks and the shapes of its results (`plain_values`).
- *written*: func's function computes for traced arguments, SciPy's for all others (`versions`).
"""
