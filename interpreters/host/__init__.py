"""The Python process as the engine meets it: lines of users' code, frames, refusals, garbage, display and completion.

`source`, `garbage` and `completion` know nothing of func's types; the other modules stand above the core.
"""
