"""From Programs to native programs: what every primitive is in terms of loops over arrays.

An optimised Program comes in. Every equation becomes array operations of a `Fuser` by the rule of its primitive, in the
file with the primitive's subject; equations without a rule stay with NumPy. A callable comes out, compiled as a whole
or in native parts.
"""
