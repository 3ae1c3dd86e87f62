"""Call stubs: Python callables around compiled programs.

A table has the trees of the arguments and of the result. The callable checks types, shapes and layouts, runs the
program, and builds the result; one native C function serves all tables.
"""
