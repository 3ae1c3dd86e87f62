"""Native programs for people: listings, memory traffic, times of kernels.

A compiled program comes in; text and numbers come out.
"""
