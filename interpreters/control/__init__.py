"""Control flow as primitives: branches, loops of unknown length, and scans.

Programs of the bodies come in as parameters besides the operands. Derived programs come out of each rule: a pullback, a
tangent or a batched form is again a branch, a loop or a scan.
"""
