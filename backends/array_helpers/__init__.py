"""Array helpers: functions of plain arrays that primitives and generated source share.

They take arrays of one backend and its namespace `xp`, and return arrays. Each function is self-contained, so that an
exported module can include its source.
"""
