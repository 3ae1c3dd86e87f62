"""The engine of the imperative interface: reverse mode without a transform around it.

Tensors come in as tracers of an interpreter that stays open; each operation records a node whose state can change.
`backward` walks the nodes and gives the gradients of the leaves.
"""
