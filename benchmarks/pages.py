"""The generated tables of the documentation: sections between marks, and docs/performance-tables.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.contestants import (
    BY_HAND,
    CONTESTANTS,
    FUNC,
    FUNC_JIT,
    HIPS,
    JAX,
    JAX_JIT,
    TORCH,
    TORCH_COMPILE,
    TORCH_FUNC,
)
from benchmarks.figures import BEST, BEST_EAGER, BEST_TORCH, ROOT, Figures
from benchmarks.report import NOTHING, number, seconds, size
from benchmarks.tables import Table

TABLES = "docs/performance-tables.md"
KINDS: Mapping[str, str] = {
    "small gradients, Hessians, training steps": "small gradient, rosenbrock *, * step, backward",
    "loops over slices, `where` and reductions": "slicing, where, reductions",
    "chains of 100 elementwise operations": "chain *",
    "Black-Scholes prices with all greeks": "black-scholes *",
    "gelu, softmax, layer norm": "gelu *, softmax *, layer norm *",
    "logistic regression": "logistic *",
    "MLPs": "mlp 32, mlp 1024, mlp memory",
    "transformer blocks": "transformer *",
    "per-sample gradients, their norms and clipped sums": "per-sample, norms *, clipped sum",
    "recurrences and differential equations": "rnn *, ode *",
    "Gaussian processes": "gaussian process *",
    "Hessian, Hessian-vector product, Laplacian of an MLP": "mlp hessian, mlp hvp, mlp laplacian",
    "Jacobians of a layer": "jacobian *",
    "derivatives of orders 1 to 10": "nested *, derivatives *",
    "ADBench: mixture model, bundle adjustment": "gmm *, bundle *",
}
"""The workloads by kind, for the first table of the page."""
FIRST_CALLS = (
    "small gradient", "chain 1000", "black-scholes 100k", "gelu large", "mlp 32", "mlp hvp", "transformer small",
    "rnn scan", "rnn loop", "ode scan", "ode loop",
)  # fmt: skip
"""The workloads whose first calls the page shows; docs/performance-tables.md has all."""
HEAD = """# Performance: all tables

This page lets you look up every figure of the benchmark's last run; [Performance](performance.md) explains them.
Columns with the name of another contestant are func's time divided by its time: below 1, func is faster.
`python -m benchmarks.figures` writes this page from `benchmarks/figures.json`, which also has the medians.
"""


def spread(values: Sequence[float]) -> str:
    """The least and the greatest of several ratios."""
    if not values:
        return NOTHING
    least, greatest = number(min(values)), number(max(values))
    return least if least == greatest else f"{least} to {greatest}"


def kinds_table(figures: Figures) -> Table:
    """One row per kind of work: the range of ratios over its workloads."""
    columns = ((FUNC_JIT, JAX_JIT), (FUNC_JIT, BEST_TORCH), (FUNC, BEST_EAGER))
    rows = [
        (kind, *(spread(figures.ratios(mine, peer, works)) for mine, peer in columns)) for kind, works in KINDS.items()
    ]
    header = ("kind of work", "func.jit / jax.jit", "func.jit / eager PyTorch", "eager func / best eager library")
    return Table("By kind", header, tuple(rows))


def cell(figures: Figures, work: str, mine: str, peer: str, threads: int = 2) -> str:
    """The ratio of ours to a peer."""
    found = figures.peer(work, mine, peer, threads)
    return NOTHING if found is None else number(found.ratio)


def compiled_table(figures: Figures) -> Table:
    """One row per workload with func.jit: its time, its ratios to others, first calls, peak memory, one thread."""
    rows = []
    for work in figures.works:
        mine, jax = figures.row(work, FUNC_JIT), figures.row(work, JAX_JIT)
        if mine is None:
            continue
        ratios = [cell(figures, work, FUNC_JIT, peer) for peer in (JAX_JIT, BEST_TORCH, TORCH_COMPILE, BY_HAND)]
        memory = number(mine["peak"] / jax["peak"]) if jax and mine.get("peak") and jax.get("peak") else NOTHING
        alone = [cell(figures, work, FUNC_JIT, peer, 1) for peer in (JAX_JIT, BEST_TORCH)]
        rows.append((work, seconds(mine["least"]), *ratios, memory, *alone))
    header = (
        "work", "func.jit", "jax.jit", "eager PyTorch", "torch.compile", "by hand", "memory", "1 thread: jax.jit",
        "eager PyTorch",
    )  # fmt: skip
    return without_empty(Table("Compiled calls", header, tuple(rows)))


def eager_table(figures: Figures) -> Table:
    """One row per workload: the time of func without compilation, and its ratios to the eager libraries."""
    peers = (HIPS, TORCH_FUNC, TORCH, JAX)
    rows = []
    for work in figures.works:
        mine = figures.row(work, FUNC)
        ratios = [cell(figures, work, FUNC, peer) for peer in (*peers, BY_HAND)]
        if mine is not None and {*ratios[: len(peers)]} != {NOTHING}:
            rows.append((work, seconds(mine["least"]), *ratios, cell(figures, work, FUNC, BEST_EAGER, 1)))
    header = ("work", "func", *peers, "by hand", "1 thread: best")
    return without_empty(Table("Eager calls", header, tuple(rows)))


def overview_table(figures: Figures) -> Table:
    """One row per workload: compiled and eager times, with ratios to the contestants that readers ask about."""
    columns = ((FUNC_JIT, (JAX_JIT, BEST_TORCH, BY_HAND)), (FUNC, (BEST_EAGER, HIPS)))
    rows = []
    for work in figures.works:
        cells: list[str] = []
        for mine, peers in columns:
            row = figures.row(work, mine)
            cells += [
                NOTHING if row is None else seconds(row["least"]),
                *(cell(figures, work, mine, peer) for peer in peers),
            ]
        rows.append((work, *cells))
    header = (
        "work",
        "func.jit",
        "/ jax.jit",
        "/ eager PyTorch",
        "/ by hand",
        "func",
        "/ best eager library",
        "/ HIPS autograd",
    )
    return Table("All workloads", header, tuple(rows))


def slower_table(figures: Figures) -> Table:
    """One row per workload where another contestant is ahead: how many times as long func takes."""
    columns = ((FUNC_JIT, BEST), (FUNC_JIT, BY_HAND), (FUNC, BEST_EAGER))
    rows = []
    for work in figures.works:
        cells = [ahead(figures, work, mine, peer) for mine, peer in columns]
        if {*cells} != {NOTHING}:
            rows.append((work, *cells))
    header = ("work", "func.jit / best library", "func.jit / NumPy by hand", "eager func / best eager library")
    return Table("Where func is slower", header, tuple(rows))


def ahead(figures: Figures, work: str, mine: str, peer: str) -> str:
    """The ratio to a peer that is ahead, and which of a group it is."""
    found = figures.peer(work, mine, peer)
    if found is None or found.ratio < 1.005:
        return NOTHING
    return number(found.ratio) if found.name == peer else f"{number(found.ratio)} ({found.name})"


def first_calls_table(figures: Figures, works: Sequence[str]) -> Table:
    """The first calls of compiled contestants, in the process of the workload."""
    rows = []
    for work in works:
        mine, jax = figures.row(work, FUNC_JIT), figures.row(work, JAX_JIT)
        ratio = number(mine["first call"] / jax["first call"]) if mine and jax else NOTHING
        calls = [figures.row(work, name) for name in (FUNC_JIT, JAX_JIT, TORCH_COMPILE)]
        rows.append((work, *(seconds(call["first call"]) if call else NOTHING for call in calls), ratio))
    header = ("work", FUNC_JIT, JAX_JIT, TORCH_COMPILE, "func.jit / jax.jit")
    return without_empty(Table("First calls", header, tuple(rows)))


def processes_table(figures: Figures) -> Table:
    """First calls of a process with the program on disk, with an empty cache, and of jax.jit."""
    rows = []
    for work, call in figures.data["first calls"].items():
        warm, cold, jax = [call.get(name) for name in ("warm", "cold", JAX_JIT)]
        ratio = number(cold / jax) if cold and jax else NOTHING
        rows.append((work, *(seconds(value) for value in (warm, cold, jax)), ratio))
    header = ("work", "program on disk", "empty cache", "jax.jit", "empty cache / jax.jit")
    return Table("First calls of a process", header, tuple(rows))


def imports_table(figures: Figures) -> Table:
    """The time of imports in a fresh interpreter."""
    rows = tuple((f"`{name}`", seconds(value)) for name, value in figures.data["imports"].items())
    return Table("Imports", ("import", "time"), rows)


def without_empty(table: Table) -> Table:
    """A table without the columns that have no figure."""
    kept = [i for i in range(len(table.header)) if any(row[i] != NOTHING for row in table.rows)]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return Table(table.title, tuple(table.header[i] for i in kept), rows)


def times_table(figures: Figures, threads: int) -> Table:
    """The time of every contestant."""
    names = [row.name for row in CONTESTANTS if any(figures.row(work, row.name, threads) for work in figures.works)]
    rows = [
        (work, *(seconds(row["least"]) if (row := figures.row(work, name, threads)) else NOTHING for name in names))
        for work in figures.works
        if figures.rows(work, threads)
    ]
    words = "one thread" if threads == 1 else "two threads"
    return Table(f"Times, {words}", ("work", *names), tuple(rows))


def peaks_table(figures: Figures) -> Table:
    """The memory that a call adds to its process."""
    names = [
        name
        for name in (FUNC, FUNC_JIT, JAX_JIT)
        if any((figures.row(w, name) or {}).get("peak") for w in figures.works)
    ]
    rows = [
        (work, *(size((figures.row(work, name) or {}).get("peak")) for name in names))
        for work in figures.works
        if any((figures.row(work, name) or {}).get("peak") for name in names)
    ]
    return Table("Peak memory of a call", ("work", *names), tuple(rows))


def titles_text(figures: Figures) -> str:
    """The description of each workload, as a list."""
    return "\n".join(f"- **{work}**: {figures.title(work)}" for work in figures.works)


def machine_text(figures: Figures) -> str:
    """The machine, the versions and the rounds, as a list."""
    rounds = ", ".join(f"{count} ({part})" for part, count in figures.data["rounds"].items())
    facts = {"date": figures.data["date"], **figures.data["machine"], "rounds": rounds}
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- measured again in a quieter hour: {work}" for work in figures.data["measured again"]]
    for part, works in figures.data["disturbed"].items():
        lines += [
            f"- left out of {work} ({part}), disturbed by other work: {', '.join(names)}"
            for work, names in works.items()
        ]
    return "\n".join(lines)


def speed_table(figures: Figures) -> Table:
    """One row per pair of contestants: the spread of ratios over all workloads."""
    pairs = (
        ("compiled func / jax.jit", FUNC_JIT, JAX_JIT),
        ("compiled func / eager PyTorch", FUNC_JIT, BEST_TORCH),
        ("eager func / eager PyTorch", FUNC, BEST_TORCH),
        ("eager func / HIPS autograd", FUNC, HIPS),
    )
    spreads = {name: figures.ratios(mine, peer) for name, mine, peer in pairs}
    spreads["first call of compiled func / of jax.jit"] = figures.first_calls()
    rows = [
        (name, *(number(value) for value in (min(values), median(values), max(values))))
        for name, values in spreads.items()
    ]
    return Table("Speed", ("", "least", "median", "greatest"), tuple(rows))


def sections(figures: Figures) -> dict[str, dict[str, Table]]:
    """The generated tables of each page, by the names of their marks."""
    return {
        "docs/performance.md": {
            "kinds": kinds_table(figures),
            "slower": slower_table(figures),
            "first calls": first_calls_table(figures, FIRST_CALLS),
            "all": overview_table(figures),
        },
        "docs/comparison.md": {"speed": speed_table(figures)},
    }


def tables_page(figures: Figures) -> str:
    """The text of docs/performance-tables.md."""
    compiled = [work for work in figures.works if figures.row(work, FUNC_JIT)]
    tables = [
        compiled_table(figures), eager_table(figures), first_calls_table(figures, compiled), processes_table(figures),
        imports_table(figures), peaks_table(figures), times_table(figures, 2), times_table(figures, 1),
    ]  # fmt: skip
    tables = [table for table in tables if table.rows]
    parts = [table.markdown().replace("### ", "## ", 1) for table in tables]
    picture = "![For each workload the time of every contestant, divided by that of func.jit](_static/performance.svg)"
    lists = ["## The workloads", titles_text(figures), "## The machine and the run", machine_text(figures)]
    return "\n\n".join([HEAD + "\n" + picture, *parts, *lists]) + "\n"


def with_section(page: str, name: str, text: str) -> str:
    """A page with new text between the marks of a section. Raises ValueError without them."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the page has no section between {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def with_tables(page: str, tables: Mapping[str, Table]) -> str:
    """A page with these tables between their marks."""
    for name, table in tables.items():
        page = with_section(page, name, table.markdown(with_title=False))
    return page


def write(figures: Figures, root: Path = ROOT) -> None:
    """Write the tables into all pages."""
    for name, tables in sections(figures).items():
        page = root / name
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    (root / TABLES).write_text(tables_page(figures), encoding="utf-8")
