"""Control flow for users: cond, switch, while_loop, fori_loop, scan, map, associative_scan.

With known numbers they run as plain Python. Otherwise they trace the bodies and apply a primitive of
`func.interpreters.control`.
"""
