"""From Programs to native programs: every primitive as loops over arrays.

An optimised Program comes in. The rule of its primitive, in the file with the primitive's subject, translates every
equation to array operations of a `Fuser`. Equations without a rule stay with NumPy. A callable comes out, compiled as a
whole or in native parts.
"""
