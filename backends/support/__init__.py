"""Functions of plain arrays that primitives and generated source share.

Arrays of one backend come in beside its namespace `xp`; arrays come out. Each function stands alone, so that its source
can be pasted into an exported module.
"""
