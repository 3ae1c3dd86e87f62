"""The kernel description: loop nests with a scalar body, and the passes that build and improve it.

The Fuser turns array operations, in program order, into plain data for the code generators: nests, library calls,
buffers, chunks.
"""
