"""A picture of a Program's dataflow as an SVG file: boxes for equations, edges for variables.

The layers order the graph: a box's layer is its longest path from an input. The order inside a layer follows the
barycentres of the neighbours, and horizontal positions are least squares.

Source: K. Sugiyama, S. Tagawa, M. Toda (1981), IEEE Trans. SMC 11(2).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from func.interpreters.host.display import Picture, escaped, write_svg
from func.interpreters.program.printing import brief, names_of, params_text
from func.interpreters.program.program import Equation, Program, Var

LETTER = 7.3
"""The width of a letter."""
GAP = 26.0
"""The distance between boxes of a layer."""
FALL = 46.0
"""The distance between layers."""
BENDS = 20_000
"""With more bends than this, edges across several layers are straight."""
SWEEPS = 6
"""The number of times that neighbours above and below in turn order and place the layers."""
LONGEST = 36
"""Letters of a box's second line; the whole text is in its tooltip."""
MARGIN = 24
HEADING = 30
SCOPE = "func-program"
"""The class of the picture: its style applies to nothing else on the page of a notebook."""
STYLE = "".join(
    f".{SCOPE} {rule}"
    for rule in (
        "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328;text-anchor:middle}",
        ".small{font-size:10px;fill:#57606a}",
        ".label{font-size:10px;fill:#0550ae;text-anchor:start}",
        ".heading{text-anchor:start;font-weight:bold}",
        "rect{stroke:#6e7781;fill:#f6f8fa}",
        ".input{fill:#ddf4ff;stroke:#0550ae}",
        ".output{fill:#dafbe1;stroke:#116329}",
        ".constant{fill:#fff8c5;stroke:#9a6700}",
        ".page{fill:#ffffff;stroke:none}",
        "path{fill:none;stroke:#8c959f}",
    )
)


@dataclass(eq=False)
class DrawnNode:
    """A box, or (without text) a bend of an edge in a layer between its ends."""

    kind: str
    text: str = ""
    detail: str = ""
    hint: str = ""
    ins: int = 0
    outs: int = 0
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list[DrawnNode] = field(default_factory=list)
    below: list[DrawnNode] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max(len(self.text), 6 / 7 * len(self.detail)) * LETTER + 16 if self.text else 2.0

    @property
    def height(self) -> float:
        return (36.0 if self.detail else 22.0) if self.text else 0.0

    def port(self, number: int, count: int) -> float:
        """The horizontal position of a port, one of `count` on a side."""
        return self.x + self.width * ((number + 1) / (count + 1) - 0.5)


@dataclass(eq=False)
class Edge:
    """An edge from a port at the bottom of a box, by way of bends, to a port at the top of another box."""

    source: DrawnNode
    out: int
    target: DrawnNode
    port: int
    label: str = ""
    bends: list[DrawnNode] = field(default_factory=list)

    def points(self) -> list[tuple[float, float]]:
        """The points that the edge passes."""
        start = self.source.port(self.out, self.source.outs), self.source.y + self.source.height
        end = self.target.port(self.port, self.target.ins), self.target.y
        return [start, *[(bend.x, bend.y) for bend in self.bends], end]


class Graph:
    """Boxes and edges. Boxes are added in topological order."""

    def __init__(self) -> None:
        self.nodes: list[DrawnNode] = []
        self.edges: list[Edge] = []
        self.width = 0.0
        self.height = 0.0

    def add(self, node: DrawnNode) -> DrawnNode:
        """Add a node and return it."""
        self.nodes.append(node)
        return node

    def arrange(self) -> None:
        """Give every box its position."""
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
        """Put equations as high as they can be, and constants just above their first use."""
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

    def _layers(self) -> list[list[DrawnNode]]:
        layers: list[list[DrawnNode]] = [[] for _ in range(max([node.layer for node in self.nodes], default=-1) + 1)]
        for node in self.nodes:
            layers[node.layer].append(node)
        has_bends = sum([edge.target.layer - edge.source.layer - 1 for edge in self.edges]) <= BENDS
        shared: dict[tuple[int, int], list[DrawnNode]] = {}
        for edge in self.edges:
            chain = shared.setdefault((id(edge.source), edge.out), []) if has_bends else []
            while has_bends and edge.source.layer + len(chain) + 1 < edge.target.layer:
                bend = DrawnNode("bend", layer=edge.source.layer + len(chain) + 1)
                layers[bend.layer].append(bend)
                _join(chain[-1] if chain else edge.source, bend)
                chain.append(bend)
            edge.bends = chain[: edge.target.layer - edge.source.layer - 1] if has_bends else []
            _join(edge.bends[-1] if edge.bends else edge.source, edge.target)
        return layers

    def _set_heights(self, layers: list[list[DrawnNode]]) -> None:
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


def _join(upper: DrawnNode, lower: DrawnNode) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(layer: list[DrawnNode], downwards: bool) -> None:
    """Sort a layer by the barycentres of its neighbours; `x` is a rank until boxes are placed."""
    barycentres = {id(node): _barycentre(node, downwards) for node in layer}
    layer.sort(key=lambda node: barycentres[id(node)])
    for i, node in enumerate(layer):
        node.x = i - (len(layer) - 1) / 2


def _barycentre(node: DrawnNode, downwards: bool) -> float:
    neighbours = node.above if downwards else node.below
    return sum([neighbour.x for neighbour in neighbours]) / len(neighbours) if neighbours else node.x


def _place(layer: list[DrawnNode], downwards: bool) -> None:
    """Move boxes to the barycentres of their neighbours, as near as order and gaps allow (isotonic regression)."""
    offset = 0.0
    offsets: list[float] = []
    for i, node in enumerate(layer):
        if i:
            offset += (layer[i - 1].width + node.width) / 2 + GAP
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for node, offset in zip(layer, offsets, strict=True):
        total, count = _barycentre(node, downwards) - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    for node, mean, offset in zip(layer, means, offsets, strict=True):
        node.x = mean + offset


def draw_program(program: Program, path: str | os.PathLike[str] | None = None) -> str:
    """Write the picture of a program and return the path; without one, return the picture."""
    if path is None:
        return Picture(program.text(), program_svg(program))
    return write_svg(path, program_svg(program), "program.draw")


def program_svg(program: Program) -> str:
    """The picture as SVG text, with nested programs below, each under a heading."""
    parts: list[str] = []
    width, top = 0.0, float(MARGIN)
    for heading, panel in _panels(program, ""):
        if heading:
            parts.append(f'<text class="heading" x="{MARGIN}" y="{top + 12:.0f}">{escaped(heading)}</text>')
            top += HEADING
            width = max(width, len(heading) * LETTER)
        graph = program_graph(panel)
        graph.arrange()
        parts.append(f'<g transform="translate({MARGIN},{top:.0f})">{"".join(_svg_elements(graph))}</g>')
        width = max(width, graph.width)
        top += graph.height + MARGIN
    width += 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" width="{width:.0f}" height="{top:.0f}" '
        f'viewBox="0 0 {width:.0f} {top:.0f}"><style>{STYLE}</style>'
        f'<rect class="page" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def _panels(program: Program, heading: str) -> Iterator[tuple[str, Program]]:
    """The program and all programs nested in it, each with a heading."""
    yield heading, program
    names = names_of(program)
    for equation in program.equations:
        for key, nested in equation.nested():
            outs = ", ".join([names[out] for out in equation.outputs])
            inside = f" in {heading}" if heading else ""
            yield from _panels(nested, f"{key} of {outs} = {equation.primitive.name}{inside}")


def program_graph(program: Program) -> Graph:
    """The boxes and edges of a program, without those of nested programs."""
    names = names_of(program)
    graph = Graph()
    ports: dict[Var, tuple[DrawnNode, int]] = {}
    for var in program.inputs:
        ports[var] = graph.add(DrawnNode("input", f"{names[var]}:{var.aval}", outs=1)), 0
    for var, value in program.constants.items():
        number = _short(brief(value)) if var.size <= 4 else ""
        ports[var] = graph.add(DrawnNode("constant", f"{names[var]}:{var.aval}", number, outs=1)), 0
    for equation in program.equations:
        box = graph.add(_box(equation))
        _connect(graph, ports, names, equation.inputs, box)
        for port, out in enumerate(equation.outputs):
            ports[out] = box, port
    for x in program.outputs:
        text = f"return {names.get(x, '?')}" if type(x) is Var else f"return {x!r}"
        _connect(graph, ports, names, [x], graph.add(DrawnNode("output", text, ins=1)))
    return graph


def _connect(
    graph: Graph, ports: dict[Var, tuple[DrawnNode, int]], names: dict[Var, str], inputs: Any, box: DrawnNode
) -> None:
    variables = [x for x in inputs if type(x) is Var]
    for port, x in enumerate(variables):
        source, out = ports[x]
        label = f"{names[x]}:{x.aval}" if source.kind == "equation" else ""
        graph.edges.append(Edge(source, out, box, port, label))


def _box(equation: Equation) -> DrawnNode:
    """A box with the primitive's name and, below it, parameters and the Python scalars among the operands."""
    scalars = any([type(x) is not Var for x in equation.inputs])
    operands = " ".join(["·" if type(x) is Var else repr(x) for x in equation.inputs]) if scalars else ""
    params = params_text(equation)
    details = "  ".join([text for text in (operands, params) if text])
    hint = f"{equation.primitive.name} {details}" + (f"\n{equation.line}" if equation.line is not None else "")
    ins = sum([type(x) is Var for x in equation.inputs])
    return DrawnNode("equation", equation.primitive.name, _short(details), hint, ins, len(equation.outputs))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _svg_elements(graph: Graph) -> Iterator[str]:
    """The SVG elements of a graph: edges below boxes, the labels of edges on top."""
    labels: dict[tuple[int, int], tuple[float, float, str]] = {}
    for edge in graph.edges:
        points = edge.points()
        yield f'<path d="{_curve(points)}"/>'
        if edge.label:
            labels.setdefault((id(edge.source), edge.out), (*points[0], edge.label))
    for node in graph.nodes:
        yield f"<g>{f'<title>{escaped(node.hint)}</title>' if node.hint else ''}"
        corner = 4 if node.kind == "equation" else 11
        yield (
            f'<rect class="{node.kind}" x="{node.x - node.width / 2:.1f}" y="{node.y:.1f}" '
            f'width="{node.width:.1f}" height="{node.height:.1f}" rx="{corner}"/>'
        )
        yield f'<text x="{node.x:.1f}" y="{node.y + 15:.1f}">{escaped(node.text)}</text>'
        if node.detail:
            yield f'<text class="small" x="{node.x:.1f}" y="{node.y + 29:.1f}">{escaped(node.detail)}</text>'
        yield "</g>"
    for x, y, label in labels.values():
        yield f'<text class="label" x="{x + 4:.1f}" y="{y + 11:.1f}">{escaped(label)}</text>'


def _curve(points: list[tuple[float, float]]) -> str:
    """A smooth line that leaves each point downwards."""
    x, y = points[0]
    text = [f"M{x:.1f},{y:.1f}"]
    for nx, ny in points[1:]:
        bend = (ny - y) / 2
        text.append(f"C{x:.1f},{y + bend:.1f} {nx:.1f},{ny - bend:.1f} {nx:.1f},{ny:.1f}")
        x, y = nx, ny
    return "".join(text)
