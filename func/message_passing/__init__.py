"""One program on many processes: `func.spmd`, and its use of MPI.

`func.spmd` takes a function and a communicator of mpi4py. The collectives of `func.collectives` inside the function
find the processes by a name; each process gets its own result. Users who make communicators import mpi4py, never func.
"""
