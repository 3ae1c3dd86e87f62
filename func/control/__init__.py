"""Control flow for users: cond, switch, while_loop, fori_loop, scan, map, associative_scan.

Functions and operands come in. Where the numbers are known plain Python runs; elsewhere the bodies are traced and a
primitive of `func.interpreters.control` comes out.
"""
