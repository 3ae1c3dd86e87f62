"""Native programs for people: listings, memory traffic, times of kernels.

Turns a compiled program into text and numbers.
"""
