"""A layered drawing of a directed graph: layers by longest path, order by barycentres, places by least squares.

Source: K. Sugiyama, S. Tagawa, M. Toda (1981), IEEE Trans. SMC 11(2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

LETTER = 7.3
"""The width of a letter."""
GAP = 26.0
"""Between boxes of a layer."""
FALL = 46.0
"""Between layers."""
BENDS = 20_000
"""With more bends than this, edges across several layers go straight."""
SWEEPS = 6


@dataclass(eq=False)
class Node:
    """A box, or (without text) the bend of an edge in a layer between its ends."""

    kind: str
    text: str = ""
    detail: str = ""
    hint: str = ""
    ins: int = 0
    outs: int = 0
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max(len(self.text), 6 / 7 * len(self.detail)) * LETTER + 16 if self.text else 2.0

    @property
    def height(self) -> float:
        return (36.0 if self.detail else 22.0) if self.text else 0.0

    def port(self, number: int, count: int) -> float:
        """Where on the width the port of this number is."""
        return self.x + self.width * ((number + 1) / (count + 1) - 0.5)


@dataclass(eq=False)
class Edge:
    """From a port at the bottom of one box, by way of bends, to one at the top of another."""

    source: Node
    out: int
    target: Node
    port: int
    label: str = ""
    bends: list[Node] = field(default_factory=list)

    def points(self) -> list[tuple[float, float]]:
        """Where the edge passes."""
        start = self.source.port(self.out, self.source.outs), self.source.y + self.source.height
        end = self.target.port(self.port, self.target.ins), self.target.y
        return [start, *[(bend.x, bend.y) for bend in self.bends], end]


class Graph:
    """Boxes and edges. Boxes are added in an order in which edges lead forwards."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.width = 0.0
        self.height = 0.0

    def add(self, node: Node) -> Node:
        """The node, which is now in the graph."""
        self.nodes.append(node)
        return node

    def arrange(self) -> None:
        """Give every box its place."""
        self._choose_layers()
        layers = self._layers()
        for sweep in range(SWEEPS):
            downwards = sweep % 2 == 0
            for layer in layers if downwards else reversed(layers):
                _order(layer, downwards)
        for sweep in range(SWEEPS):
            downwards = sweep % 2 == 0
            for layer in layers if downwards else reversed(layers):
                _place(layer, downwards)
        self._set_heights(layers)

    def _choose_layers(self) -> None:
        """Equations as high as they can be; inputs and constants just above where they are first used."""
        incoming: dict[int, list[Edge]] = {}
        outgoing: dict[int, list[Edge]] = {}
        for edge in self.edges:
            incoming.setdefault(id(edge.target), []).append(edge)
            outgoing.setdefault(id(edge.source), []).append(edge)
        for node in self.nodes:
            node.layer = max([edge.source.layer + 1 for edge in incoming.get(id(node), ())], default=0)
        for node in self.nodes:
            if node.kind == "constant":
                node.layer = min([edge.target.layer - 1 for edge in outgoing.get(id(node), ())], default=0)
        lowest = max([node.layer for node in self.nodes], default=0)
        for node in self.nodes:
            if node.kind == "output":
                node.layer = lowest

    def _layers(self) -> list[list[Node]]:
        layers: list[list[Node]] = [[] for _ in range(max([node.layer for node in self.nodes], default=-1) + 1)]
        for node in self.nodes:
            layers[node.layer].append(node)
        bent = sum([edge.target.layer - edge.source.layer - 1 for edge in self.edges]) <= BENDS
        shared: dict[tuple[int, int], list[Node]] = {}
        for edge in self.edges:
            chain = shared.setdefault((id(edge.source), edge.out), []) if bent else []
            while bent and edge.source.layer + len(chain) + 1 < edge.target.layer:
                bend = Node("bend", layer=edge.source.layer + len(chain) + 1)
                layers[bend.layer].append(bend)
                _join(chain[-1] if chain else edge.source, bend)
                chain.append(bend)
            edge.bends = chain[: edge.target.layer - edge.source.layer - 1] if bent else []
            _join(edge.bends[-1] if edge.bends else edge.source, edge.target)
        return layers

    def _set_heights(self, layers: list[list[Node]]) -> None:
        left = min([node.x - node.width / 2 for layer in layers for node in layer], default=0.0)
        y = 0.0
        for layer in layers:
            height = max([node.height for node in layer], default=0.0)
            for node in layer:
                node.x -= left
                node.y = y + (height - node.height) / 2
            y += height + FALL
        self.width = max([node.x + node.width / 2 for layer in layers for node in layer], default=0.0)
        self.height = max(y - FALL, 0.0)


def _join(upper: Node, lower: Node) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(layer: list[Node], downwards: bool) -> None:
    """Sort a layer by the mean place of its neighbours; `x` counts places until boxes are placed."""
    wanted = {id(node): _mean(node, downwards) for node in layer}
    layer.sort(key=lambda node: wanted[id(node)])
    for i, node in enumerate(layer):
        node.x = i - (len(layer) - 1) / 2


def _mean(node: Node, downwards: bool) -> float:
    neighbours = node.above if downwards else node.below
    return sum([one.x for one in neighbours]) / len(neighbours) if neighbours else node.x


def _place(layer: list[Node], downwards: bool) -> None:
    """Move boxes to the mean of their neighbours, as nearly as their order and the gaps allow (isotonic regression)."""
    offset = 0.0
    offsets: list[float] = []
    for i, node in enumerate(layer):
        if i:
            offset += (layer[i - 1].width + node.width) / 2 + GAP
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for node, moved in zip(layer, offsets, strict=True):
        total, count = _mean(node, downwards) - moved, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    for node, mean, moved in zip(layer, means, offsets, strict=True):
        node.x = mean + moved
