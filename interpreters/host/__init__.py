"""The Python process and the engine: lines of users' code, frames, swallowed errors, garbage, display, completion.

`source`, `garbage` and `completion` do not depend on func's types; the other modules are above the core.
"""
