"""The thread pool of native code, and background compilation.

Chunks of a native program come in, and run on workers that know nothing of Python. One number of threads holds for the
whole process.
"""
