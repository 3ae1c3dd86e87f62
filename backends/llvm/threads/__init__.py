"""The thread pool of native code, and compilation in the background.

Chunks of a native program come in. They run on workers that know nothing of Python; their number is settled once for
the process.
"""
