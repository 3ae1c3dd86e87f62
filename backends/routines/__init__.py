"""Algorithms written once, as plain Python functions of numbers and arrays, for all languages that code is printed in.

A routine (`language.py`) runs as it is, which is how tests see it. `typed.py` reads its source and finds the types of
its variables; `backends/c/routine_text.py` and `backends/llvm/routine_code.py` print it as C99, CUDA C and LLVM IR.
"""
