"""Graphs of nodes as tables, for printing and pickling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from func.interpreters.grad import INDEX, OUTPUT, Node, tick


def graph_of(roots: Iterable[Any]) -> list[Node]:
    """All nodes that some roots (None among them is skipped) depend on, oldest first."""
    seen: dict[int, Node] = {}
    stack = [root for root in roots if root is not None]
    while stack:
        node = stack.pop()
        if node[INDEX] not in seen:
            seen[node[INDEX]] = Node(*node)
            stack.extend([parent for parent in node[2] if parent is not None])
    return [seen[index] for index in sorted(seen, reverse=True)]


def graph_table(nodes: Sequence[Node]) -> tuple[list[Any], dict[int, int]]:
    """Nodes with their parents as numbers in the table, and the number of each node's index."""
    numbers = {node.serial: i for i, node in enumerate(nodes)}
    table = []
    for node in nodes:
        parents = [None if parent is None else numbers[parent[INDEX]] for parent in node.parents]
        wanted = None if node.row is OUTPUT else list(node.wanted)
        table.append((node.row, parents, wanted, node.saved, node.params, node.aval))
    return table, numbers


def rebuild_graph(table: Sequence[Any]) -> list[Any]:
    """The nodes of a table."""
    nodes: list[Any] = []
    for row, numbers, wanted, saved, params, aval in table:
        parents = [None if number is None else nodes[number] for number in numbers]
        nodes.append((tick(), row, parents, parents if wanted is None else wanted, saved, params, aval))
    return nodes
