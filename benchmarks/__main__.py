"""The command line: `python -m benchmarks`; `--help` lists the options."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.environment import describe, limit_threads
from benchmarks.names import matches


def main() -> int:
    """Run the chosen workloads, print the tables; 1 if a contestant failed or gave a different result."""
    options = _options()
    limit_threads(options.threads)
    from benchmarks.apart import Settings, run_apart
    from benchmarks.memory import add_peaks
    from benchmarks.report import as_data, bars_table, check_table, summary_table, workload_table
    from benchmarks.timing import Effort
    from benchmarks.workloads import WORKLOADS

    chosen = [workload for workload in WORKLOADS if matches(workload.name, options.patterns)]
    if not chosen:
        names = ", ".join(workload.name for workload in WORKLOADS)
        print(f"no workload matches {' '.join(options.patterns)}; there are: {names}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{workload.name:26}{workload.title}" for workload in chosen))
        return 0

    effort = Effort(
        0 if options.check else options.rounds or (3 if options.quick else 15),
        block=0.005 if options.quick else 0.02,
        warm_up=0.05 if options.quick else 0.6,
        first_limit=options.limit,
        call_limit=options.limit / 4,
    )
    limits = f"{effort.first_limit:g} s for a first call, {effort.call_limit:g} s for a later one"
    environment = describe() | {"rounds": str(effort.rounds), "a contestant is left out after": limits}
    print("\n".join(f"{name}: {value}" for name, value in environment.items()), end="\n\n", flush=True)
    results = []
    for workload in chosen:
        names = tuple(options.contestants or workload.entries)
        results.append(run_apart(workload, Settings(workload.name, effort, names, options.slow, options.threads)))
        if options.memory:
            add_peaks(results[-1], options.threads)
        table = check_table(results[-1]) if options.check else workload_table(results[-1])
        print(table.text(), end="\n\n", flush=True)
    broken = any(measurement.broken for result in results for measurement in result.measurements)
    if options.check:
        return int(broken)
    if options.memory:
        environment["peak memory"] = "of a call in a separate process, without libraries and data"
    totals = [summary_table(results), bars_table(results)]
    print("\n\n".join(table.text() for table in totals))

    if options.json:
        options.json.write_text(json.dumps(as_data(environment, results), indent=1) + "\n")
    return int(broken)


def _options() -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="func against its peers")
    add = parser.add_argument
    add("patterns", metavar="PATTERN", nargs="*", help="workloads with one of these texts in their name (all)")
    add("--rounds", metavar="N", type=_positive, help="rounds per workload (15, or 3 with --quick)")
    add("--contestants", metavar="NAMES", type=lambda text: text.split(","), help="only these, with commas between")
    add("--memory", action="store_true", help="measure peak memory too, where arrays are large (Linux)")
    add("--threads", metavar="N", type=_positive, default=2, help="threads for every contestant (2)")
    add("--quick", action="store_true", help="a short run to see that everything works")
    add("--check", action="store_true", help="time nothing: see that every contestant runs and agrees")
    add("--slow", action="store_true", help="include contestants that take very long to start, and huge arrays")
    add("--limit", metavar="S", type=float, default=60.0, help="seconds for a first call (60); later ones a quarter")
    add("--list", action="store_true", help="list the workloads and stop")
    add(
        "--json",
        metavar="FILE",
        type=Path,
        help="write every measurement to this file, for python -m benchmarks.figures",
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    """A whole number of at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"wanted at least 1, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
