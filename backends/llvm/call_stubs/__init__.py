"""Call stubs: Python callables around compiled programs.

The trees of the arguments and of the result come in as a table. A callable comes out that checks types, shapes and
layouts, runs the program, and builds the result; one native C function serves all tables.
"""
