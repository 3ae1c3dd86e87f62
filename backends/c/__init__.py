"""The C backend: native programs as text of C99.

The kernel description (`backends/loops/`) says what to compute. Operations on elements are those of the LLVM backend:
its tables of scalar operations and of elementary functions run on a builder that writes expressions of C.
"""
