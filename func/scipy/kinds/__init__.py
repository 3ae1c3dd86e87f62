"""Kinds of versions of SciPy's functions: each kind determines how functions are computed and differentiated.

- *traced*: SciPy's own Python code runs on traced values (`~name` among the hooks). With `traces` it uses other objects
  for some names; `traces_callbacks` takes callbacks too. Compiled functions that it calls have separate hooks.
- *plain*: SciPy's function runs on plain values (`plain_values`): as a constant on those behind traced arrays, or on
  stand-ins. The latter serve its checks and the shapes of its results.
- *written*: func's function computes for traced arguments, SciPy's for all others (`versions`).
"""
