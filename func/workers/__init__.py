"""Maps, Jacobians and sums over chunks that other threads, processes or machines compute.

An executor computes the chunks of a function, its arguments or its remote data. Derivatives go through the primitive
`remote_map`, whose chunks this package runs. func contains no scheduler.
"""
