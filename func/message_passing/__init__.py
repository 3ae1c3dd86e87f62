"""One program on many processes: `func.spmd` and what it needs of MPI.

A function and a communicator of mpi4py come in. The collectives of `func.collectives` inside the function find the
processes by a name and communicate; the results are those of the function, one on each process. mpi4py is imported by
those who make communicators, never by func.
"""
