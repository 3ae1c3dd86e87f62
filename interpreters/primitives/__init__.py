"""The primitives: one folder per subject, the rules of each primitive next to it.

Arrays and parameters come in, arrays or tuples of them come out. A primitive has all facts about itself.
"""
