"""Maps, Jacobians and sums over chunks that other threads, processes or machines compute.

A function, its arguments or the places of its data, and an executor come in; chunks go to the executor, and arrays come
out. Derivatives go through the primitive `remote_map`, whose chunks this package runs. It has no scheduler of its own.
"""
