"""The thread pool of native code, and background compilation.

It runs chunks of a native program on workers without Python. One number of threads applies to the whole process.
"""
