"""The C backend: native programs as text of C99.

It prints the kernel description (`backends/loops/`). Operations on elements are those of the LLVM backend: its tables
of scalar operations and elementary functions run on a builder that writes expressions of C.
"""
