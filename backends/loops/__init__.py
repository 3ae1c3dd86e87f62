"""The kernel description: loop nests with a scalar body, and the passes that build and improve it.

Array operations come in through the Fuser, in program order. Plain data comes out for the code generators: nests,
library calls, buffers, chunks.
"""
